"""Escape text for Markdown, so that nothing a user writes acts as markup.

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
    """Escape text for a heading or a table cell."""
    return SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


def paragraph(text: str) -> str:
    """Escape text for a paragraph of its own."""
    return BEGINS.sub(r"\g<0>\\", inline(text))


def cell(text: str) -> str:
    """Escape a table cell; one between ** is bold."""
    bold = re.fullmatch(r"\*\*(.+)\*\*", text)
    return f"**{inline(bold[1])}**" if bold else inline(text)
