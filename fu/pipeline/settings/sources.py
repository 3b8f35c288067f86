"""Accepted sources of a value: a place in a paper, a citation, the authors' code, or our choice with a reason."""

import re
from typing import Any, Literal

ALLOWED = (
    "the paper's section, table, figure, equation, algorithm, theorem or problem by its number, the authors' code, a "
    "citation with its year, or 'our choice: ' and the reason"
)
PLACE = re.compile(
    r"\b(?i:sections?|appendix|tables?|figures?|eq\.|equations?|algorithms?|theorem|lemma|corollary|definitions?|problem)"
    r" [A-Z]?\.?\d|\b[A-Z]\.\d"
)
CODE = re.compile(r"\bauthors' \w|'s (?:published )?code\b")
CITATION = re.compile(r"\b[A-Z]\w+(?: et al\.| and [A-Z]\w+)? (?:19|20)\d\d\b")
CHOICE, REASON = re.compile(r"\bour choice\b", re.IGNORECASE), re.compile(r"\bour choice[:,] \w", re.IGNORECASE)


def origin_of(source: str) -> Literal["paper", "code", "ours"] | None:
    """Return where a value comes from; of several origins, the one farthest from the paper; None: it is not said."""
    chosen = len(CHOICE.findall(source))
    if chosen > len(REASON.findall(source)):
        return None
    if chosen:
        return "ours"
    if CODE.search(source):
        return "code"
    return "paper" if PLACE.search(source) or CITATION.search(source) else None


def unsourced(tree: Any, path: str) -> list[str]:
    """Return what is wrong with leaves: they have no source, or one that says nothing."""
    if isinstance(tree, dict):
        if set(tree) == {"value", "source"}:
            return unsaid(tree["source"], path)
        return [wrong for key, below in tree.items() for wrong in unsourced(below, f"{path}.{key}")]
    return [f"{path}: has no source; write {{value: ..., source: ...}}"]


def unsaid(source: Any, path: str) -> list[str]:
    """Return what is wrong with the text of a source."""
    if isinstance(source, str) and origin_of(source):
        return []
    return [f"{path}: source: {source!r} does not name a source; allowed: {ALLOWED}"]
