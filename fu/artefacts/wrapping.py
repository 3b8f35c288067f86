"""Lines of text, broken at spaces, but neither at hyphens nor within brackets: [on digits rgb] stays whole."""

import re
import textwrap

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

HARD = "\u00a0"  # a space at which no line is broken
HINTED = 1.05  # letters that are fitted to pixels are wider by so much, about
LEAST = 8  # letters of the shortest line that `fit` tries


def fill(text: str, letters: int) -> str:
    """Wrap a text at so many characters. Brackets are broken only if they are longer, and no line begins with *."""

    def whole(found: re.Match[str]) -> str:
        return found[0].replace(" ", HARD) if len(found[0]) <= letters else found[0]

    kept = re.sub(r"\[[^]]*\]", whole, text).replace(" *", f"{HARD}*")
    return textwrap.fill(kept, letters, break_long_words=False, break_on_hyphens=False).replace(HARD, " ")


def fit(text: str, room: float, size: float) -> str:
    """Return a bold text of this size in as few lines as have room, all in points; a line break in it stays."""
    lines = []
    for line in text.split("\n"):
        filled = (fill(line, letters) for letters in range(len(line), LEAST, -1))
        lines.append(next((found for found in filled if width(found, size) <= room), fill(line, LEAST)))
    return "\n".join(lines)


def width(text: str, size: float) -> float:
    """Return how many points the longest line of a bold text of this size takes, in pixels too."""
    font = FontProperties(size=size, weight="bold")
    lines = [text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] for line in text.split("\n")]
    return float(max(lines)) * HINTED
