"""What a person writes is text in Markdown, too: as a parser of CommonMark and of GitHub's tables reads it."""

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from fu.artefacts.escaping import cell, inline, paragraph
from fu.artefacts.panels import grid
from fu.artefacts.panels import markdown as tables
from fu.artefacts.result import markdown
from fu.pipeline.provenance.catalogue import available
from tests.artefacts.factories import made
from tests.artefacts.hostile import MARKUP, hostile

pytestmark = pytest.mark.filterwarnings("ignore:Glyph")
SHOWN = " ".join(MARKUP.split())
PLAIN = ["ρ_S", "Ours *", "w* against w_r*, and F_-J(w_r*)", "Small [on digits]: ASR", "p < .05 & q > 1", "# 1", "ω⁰¹"]
TEXTS = ["*a", "(*a*)", "a*b*c", "w*😀*", "_a_(b)", "__a__", "a ##", "1. a", "- a", "* a", "> a", "---", "[a]: b"]
TEXTS += ["a\\", "|", "$x$"]


def parsed(text: str) -> list[Token]:
    """Return the tokens of Markdown, those within lines included."""
    found = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    return [token for block in found for token in (block.children if block.type == "inline" else [block]) or []]


@pytest.mark.parametrize("text", [*PLAIN, *TEXTS, SHOWN])
def test_text_is_shown_as_it_is(text: str) -> None:
    for written_as, around in ((paragraph(text), "paragraph"), (f"# {inline(text)}", "heading")):
        first, *within, last = parsed(written_as)
        assert (first.type, last.type) == (f"{around}_open", f"{around}_close")
        assert {token.type for token in within} <= {"text", "text_special"}
        assert "".join(token.content for token in within) == text
    table = [
        token for token in parsed(tables([("x", grid([{text: text, "b": "c"}]))])) if token.type not in ("softbreak",)
    ]
    cells = [token.content for token in table if token.type.startswith("text")]
    assert "".join(cells) == f"x{text}b{text}c"
    assert [token.type for token in table].count("td_open") == 2


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_no_markup_stays_as_it_is_written(text: str) -> None:
    assert inline(text) == text


def test_a_cell_is_bold_between_asterisks_and_its_text_is_no_markup() -> None:
    assert cell("**a*b**") == r"**a\*b**"
    assert [token.type for token in parsed(cell("**.5 [x](y)**"))].count("strong_open") == 1


@pytest.mark.parametrize("kind", available("artefacts"))
def test_markdown_of_every_kind_holds_no_markup_of_a_persons(kind: str) -> None:
    plain, entry = hostile(kind, "words *"), hostile(kind, MARKUP)
    before, after = (parsed(markdown(made(one), one)) for one in (plain, entry))
    assert not {token.type for token in after} - {token.type for token in before} - {"text_special"}
    kept = ("table_open", "tr_open", "td_open", "heading_open", "paragraph_open")
    assert [t.type for t in after if t.type in kept] == [t.type for t in before if t.type in kept]
    assert SHOWN in "".join(token.content for token in after if token.type.startswith("text"))
