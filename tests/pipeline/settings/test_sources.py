"""What counts as a source, and what does not."""

import pytest

from fu.pipeline.settings.papers import leaves, load
from fu.pipeline.settings.sources import origin_of
from tests.pipeline.plans import PAPERS


@pytest.mark.parametrize(
    ("source", "origin"),
    [
        ("section 4.1", "paper"),
        ("B.1: m = 5", "paper"),
        ("problem P5", "paper"),
        ("Shokri et al. 2017", "paper"),
        ("authors' code: 6/7", "code"),
        ("a third (FedOSD's code)", "code"),
        ("section 4.1; the rates are the authors' code's", "code"),
        ("section 4.1: one of two; which one is our choice: the fastest (authors' README: .05)", "ours"),
        ("Our choice, as any would do", "ours"),
        ("our choice", None),
        ("our choice (Shokri et al. 2017)", None),
        ("section 4.1; values between are our choice", None),
        ("our choice: the fastest; the last is our choice", None),
        ("section", None),
        ("in 2024", None),
        ("the ratio 6.5 of two", None),
        ("one rate", None),
    ],
)
def test_an_origin_is_the_one_farthest_from_the_paper_if_there_is_one(source: str, origin: str | None) -> None:
    assert origin_of(source) == origin


@pytest.mark.parametrize("paper", PAPERS)
def test_every_setting_training_and_method_of_our_papers_has_a_source(paper: str) -> None:
    raw = load("papers", paper, "paper")
    algorithms = {**raw.get("trainings", {}), **raw.get("methods", {})}
    own = {"settings", "params", "grid", "values", "methods", "trainings"}  # of a scenario, training or method
    parts = {key: raw[key] for key in ("seeds", "settings")} | {"": {**raw["scenarios"], **algorithms}}
    found = {path: leaf for path, leaf in leaves(parts) if path[0] or own & {*path[2:]}}
    sources = {path: leaf["source"] if isinstance(leaf, dict) else "" for path, leaf in found.items()}
    sources |= {(name,): entry["source"] for name, entry in algorithms.items()}
    assert len(sources) > 10
    assert [path for path, source in sources.items() if not origin_of(source)] == []
