"""Accepted sources of a value: a section, table, figure, equation, algorithm, theorem or problem of the paper by its
number, the authors' code, a citation with its year, or `our choice: ` and the reason.
"""

import re
from typing import Literal

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
