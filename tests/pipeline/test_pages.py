"""The generated pages of papers and plug-ins."""

from pathlib import Path

from fu.pipeline.documents import pages
from fu.pipeline.provenance import catalogue
from fu.pipeline.settings import papers
from fu.plugins import load

S = "section 1"


def test_every_plugin_and_hyper_parameter_is_on_its_page() -> None:
    for kind in catalogue.KINDS:
        page = pages.plugins_page(kind)
        for name in catalogue.available(kind):
            assert f"\n## {name}\n" in page
            params = getattr(load(kind, name), "Params", None)
            for field, about in params.model_fields.items() if params else ():
                assert f"| `{about.alias or field}` |" in page
    both = pages.plugins_page("evaluation") + pages.plugins_page("audits")
    for metric in catalogue.metrics().values():
        assert f"| `{metric.name}` | {metric.label} |" in both


def test_a_paper_page_has_every_target_method_and_source() -> None:
    page, paper = pages.paper_page("fedosd"), papers.read_paper("fedosd")
    assert [f"`fedosd_{name}`" in page for name in paper["artefacts"]] == [True] * len(paper["artefacts"])
    for name, method in paper["methods"].items():
        assert f"\n| `{name}` | {method['label']}{'' if method.get('in_paper', True) else ' *'} |" in page
    for _, _, _, source in pages.sourced(papers.load("papers", "fedosd", "paper")):
        assert source.replace("|", r"\|") in page


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
