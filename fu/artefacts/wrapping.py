"""Lines of text, broken at spaces, but neither at hyphens nor within brackets: [on digits rgb] stays whole."""

import re
import textwrap

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

HARD = "\u00a0"  # a space at which no line is broken
LEAST = 8  # letters of the shortest line that `fit` tries


def fill(text: str, width: int) -> str:
    """Return the text in lines of at most so many letters; of brackets only those are broken that are longer."""

    def whole(found: re.Match[str]) -> str:
        return found[0].replace(" ", HARD) if len(found[0]) <= width else found[0]

    kept = re.sub(r"\[[^]]*\]", whole, text)
    return textwrap.fill(kept, width, break_long_words=False, break_on_hyphens=False).replace(HARD, " ")


def fit(text: str, room: float, size: float) -> str:
    """Return a bold text of this size in as few lines as have room, all in points; a line break in it stays."""
    font = FontProperties(size=size, weight="bold")
    lines = []
    for line in text.split("\n"):
        widths = range(len(line), LEAST, -1)
        filled = (fill(line, width) for width in widths)
        lines.append(next((found for found in filled if _widest(found, font) <= room), fill(line, LEAST)))
    return "\n".join(lines)


def _widest(text: str, font: FontProperties) -> float:
    return max(text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] for line in text.split("\n"))
