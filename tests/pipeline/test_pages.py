"""The generated pages: where each value of a paper comes from, and which pages there are."""

from pathlib import Path

from fu.pipeline.documents import pages

S = "section 1"


def test_the_sourced_values_of_a_paper_have_their_place() -> None:
    def leaf(value: object) -> dict[str, object]:
        return {"value": value, "source": S}

    raw = {
        "seeds": leaf([0]),
        "settings": {"data": {"clients": leaf(10)}, "grid": {"unlearning.lr": leaf([])}},
        "scenarios": {
            "a": {"label": "A", "settings": {"model": leaf({"name": "mlp"})}, "methods": {"m": {"x": leaf(1)}}}
        },
        "methods": {"m": {"label": "M", "params": {"loss": leaf("uce")}, "settings": {"total_rounds": leaf(3)}}},
    }
    assert list(pages.sourced(raw)) == [
        ("everywhere", "seeds", [0], S),
        ("everywhere", "data.clients", 10, S),
        ("everywhere", "grid.unlearning.lr", [], S),
        ("`a`", "model", {"name": "mlp"}, S),
        ("`a`, `m`", "x", 1, S),
        ("`m`", "total_rounds", 3, S),
        ("`m`", "params.loss", "uce", S),
    ]


def test_a_page_that_nothing_makes_any_more_is_removed(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins/gone.md").touch()
    (tmp_path / "data.md").touch()
    pages.write(tmp_path)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")}
    assert written == {*pages.pages(), "data.md"}
