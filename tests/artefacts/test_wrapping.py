"""Where lines of text are broken: at spaces, not at hyphens, not within brackets, and so that they have room."""

import pytest

from fu.artefacts.wrapping import fill, fit, width


@pytest.mark.parametrize(
    ("text", "letters", "lines"),
    [
        ("in the paper [on digits rgb]", 22, ["in the paper", "[on digits rgb]"]),
        ("in the paper [on digits rgb]", 28, ["in the paper [on digits rgb]"]),
        ("paper [on digits rgb]", 15, ["paper", "[on digits rgb]"]),
        ("in the paper [on digits rgb]", 14, ["in the paper", "[on digits", "rgb]"]),
        ("after post-training", 11, ["after", "post-training"]),
    ],
)
def test_a_line_is_broken_neither_in_brackets_that_have_room_nor_at_a_hyphen(
    text: str, letters: int, lines: list[str]
) -> None:
    assert fill(text, letters).split("\n") == lines


@pytest.mark.parametrize("text", ["MMMM WWWW MMMM [on MM]", "iiii llll iiii [on ii]"])
def test_a_heading_has_as_few_lines_as_have_room(text: str) -> None:
    first, _, second = text.partition(" [")
    assert fit(text, width(text, 8) + 0.1, 8) == text
    assert fit(text, width(text, 8) - 0.1, 8) == f"{first}\n[{second}"
    assert fit(text, width(first, 8) + 0.1, 8) == f"{first}\n[{second}"
    assert fit(text, width(first, 8) - 0.1, 8).split("\n")[0] == first[:9]


def test_a_break_in_a_heading_stays() -> None:
    assert fit("One\nTwo three", 1000, 8) == "One\nTwo three"
