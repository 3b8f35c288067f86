"""Text as Markdown: what a person writes is no markup, whatever signs it holds.

Only what Markdown would read as markup is escaped, so that ρ_S, w* and "Pat-50 *" stay as they are.
"""

import re

SIGNS = re.compile(
    r"[\\`|~$]"
    r"|(?<![^\W_])[*_](?=\S)"  # may open emphasis: after no letter or digit, ...
    r"|(?<=[^\W_])\*(?=[^\s!-)+-/:-@\[-`{-~])"  # ... or between letters, where only * does
    r"|<(?=[A-Za-z/!?])|&(?=#?\w+;)|\](?=[(\[])"  # a tag, an entity, a link
    r"|#(?=#*$)"  # ends a heading
)
BEGINS = re.compile(r"^(?:\d+(?=[.)](?:\s|$))|(?=[-+*>#\[]))")  # a list, a quotation, a heading, a link's target


def inline(text: str) -> str:
    """Return text as it stands in a heading or a cell of Markdown."""
    return SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


def paragraph(text: str) -> str:
    """Return text as a paragraph of Markdown."""
    return BEGINS.sub(r"\g<0>\\", inline(text))


def cell(text: str) -> str:
    """Return a cell of Markdown, which is bold between **."""
    bold = re.fullmatch(r"\*\*(.+)\*\*", text)
    return f"**{inline(bold[1])}**" if bold else inline(text)
