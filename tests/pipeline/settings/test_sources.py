"""What counts as a source, and what does not."""

import pytest

from fu.pipeline.settings.sources import origin_of, unsourced


@pytest.mark.parametrize(
    ("source", "origin"),
    [
        ("section 4.1", "paper"),
        ("Figures 1, 5 and 8", "paper"),
        ("B.1: m = 5", "paper"),
        ("Algorithm 1, line 8", "paper"),
        ("problem P5", "paper"),
        ("Shokri et al. 2017", "paper"),
        ("Simonyan and Zisserman 2015", "paper"),
        ("authors' code: 6/7", "code"),
        ("authors' README: .05", "code"),
        ("a third (FedOSD's code)", "code"),
        ("section 4.1; the rates are the authors' code's", "code"),
        ("section 4.1: one of two; which one is our choice: the fastest (authors' README: .05)", "ours"),
        ("Our choice, as any would do", "ours"),
        ("our choice: twice retraining's", "ours"),
        ("our choice", None),
        ("our choice:", None),
        ("our choice (Shokri et al. 2017)", None),
        ("section 4.1; values between are our choice", None),
        ("our choice: the fastest; the last is our choice", None),
        ("FedOSD", None),
        ("section", None),
        ("in 2024", None),
        ("the ratio 6.5 of two", None),
        ("one rate", None),
        (" ", None),
    ],
)
def test_an_origin_is_the_one_farthest_from_the_paper_if_there_is_one(source: str, origin: str | None) -> None:
    assert origin_of(source) == origin


def test_every_leaf_without_a_source_is_found_by_its_path() -> None:
    leaf = {"value": 1, "source": "section 1"}
    told = unsourced({"a": leaf, "b": {"c": {"value": 2, "source": "our choice"}, "d": 3}}, "settings")
    assert [text.partition(": ")[0] for text in told] == ["settings.b.c", "settings.b.d"]
    assert "'our choice' does not name a source" in told[0]
    assert "has no source" in told[1]
