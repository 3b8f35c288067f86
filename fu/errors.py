"""The one exception for mistakes that a person can mend: its text is a whole sentence."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake in a config, an input file or an argument, told as where, what and what is allowed."""


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Return "; did you mean 'x'? Allowed: a, b" for a name that is none of `allowed`."""
    options = sorted(allowed)
    close = difflib.get_close_matches(name, options, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return f"{hint} allowed: {', '.join(options) or 'none'}"
