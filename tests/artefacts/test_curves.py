"""Curves: means by round through both phases, and where a run diverged."""

import numpy as np
import pytest

from tests.artefacts.factories import CHOSEN, SEEDS, cells, diverge, made, make_entry, make_frame, number


def test_curves_are_means_by_round_with_the_last_round_of_unlearning_once() -> None:
    rows = made(make_entry("curves")).frame.to_dict("records")
    found = {(row["method"], row["metric"], row["round"]): row for row in rows}
    for method, model, rounds in (
        ("scratch", "scratch.unlearned", (0, 1, 2)),
        ("ours", f"{CHOSEN}.unlearned", (0, 1, 2)),
        ("ours", f"{CHOSEN}.recovered", (3, 4)),
    ):
        for metric in ("asr", "r_acc"):
            for round in rounds:
                row = found[method, metric, round]
                values = [number(model, metric, seed, round) for seed in SEEDS]
                assert row["mean"] == pytest.approx(np.mean(values))
                assert row["std"] == pytest.approx(np.std(values, ddof=1))
                assert (row["n"], row["stage"]) == (2, model.rpartition(".")[2])
    assert len(found) == len(rows) == 2 * (3 + 5)


def test_a_summary_shows_the_start_the_end_of_unlearning_and_the_end() -> None:
    def mean(model: str, round: int) -> str:
        return f"{np.mean([number(model, 'asr', seed, round) for seed in SEEDS]):.3f}"

    shown = {line[0]: line[1] for line in cells(made(make_entry("curves")).body)}
    steps = [mean(f"{CHOSEN}.unlearned", 0), mean(f"{CHOSEN}.unlearned", 2), mean(f"{CHOSEN}.recovered", 4)]
    assert shown["Ours *"] == " → ".join(steps)


def test_a_dotted_line_stands_where_post_training_begins() -> None:
    for axis in made(make_entry("curves")).figure.axes:
        assert [np.asarray(line.get_xdata()).tolist() for line in axis.lines if line.get_linestyle() == ":"] == [[2, 2]]


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["one seed", "one seed of two"])
def test_a_run_that_diverged_in_unlearning_is_told(seeds: tuple[int, ...]) -> None:
    entry = make_entry("curves", seeds=seeds)
    result = made(entry, diverge(make_frame(entry)))
    assert ("(1 of 2 seeds diverged after 2)" if len(seeds) == 2 else "→ diverged after 2") in result.body
    assert np.isfinite(result.frame["mean"]).all()


@pytest.mark.parametrize("seeds", [[1], [0, 1]], ids=["one of two seeds", "both seeds"])
def test_curves_show_where_a_run_diverged(seeds: list[int]) -> None:
    entry = make_entry("curves")
    frame = make_frame(entry)
    assert "diverged" not in made(entry, frame).body
    lost = (frame["trial"] == CHOSEN) & frame["seed"].isin(seeds) & (frame["round"] > 1)
    result = made(entry, frame[~lost | (frame["metric"] == "seconds")])
    said = "diverged after 1, 1" if len(seeds) == 2 else "(1 of 2 seeds diverged after 1)"
    assert result.body.count(said) == 2  # metrics
    for axis in result.figure.axes:
        marks = [np.asarray(line.get_xdata()).tolist() for line in axis.lines if line.get_marker() == "X"]
        assert [mark for mark in marks if mark] == [[1]] * len(seeds)
    legend = result.figure.axes[0].get_legend()
    assert legend is not None
    assert "diverged" in [text.get_text() for text in legend.get_texts()]
