"""Curves: means by round through both phases, what they start from, and where a run diverged."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fu.artefacts.curves import REQUEST, SIGNS, TURN, back
from fu.artefacts.entry import Entry, Scenario, Trial
from fu.artefacts.statistics import begins, original
from fu.errors import UserError
from fu.pipeline.provenance import catalogue
from tests.artefacts.factories import CHOSEN, SEEDS, cells, made, make_entry, make_frame, method_of, number
from tests.artefacts.trainings import ROUNDS, SCENARIOS, frame_of, make_fedavg, make_safari, make_trained

METRICS = ("asr", "distance", "conflicts")


def points(line: Line2D) -> list[tuple[float, float]]:
    xs, ys = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
    return [*zip(xs.tolist(), ys.tolist(), strict=True)]


def marked(axis: Axes, marker: str) -> list[list[tuple[float, float]]]:
    return [points(line) for line in axis.lines if line.get_marker() == marker and line.get_linestyle() == "None"]


def said(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def starting(ours: float, scratch: float) -> pd.DataFrame:
    """Return a frame whose methods begin at these distances from the original model, and everywhere else at .5."""
    frame = make_frame(make_entry("curves", metrics=METRICS))
    first = (frame["round"] == 0) & (frame["metric"] == "distance")
    frame.loc[frame["metric"] == "distance", "value"] = 0.5
    for name, value in (("ours", ours), ("scratch", scratch)):
        frame.loc[first & (frame["method"] == name), "value"] = value
    return frame


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


def test_lines_and_bands_are_the_numbers() -> None:
    result = made(make_entry("curves"))
    for axis, metric in zip(result.figure.axes, ("asr", "r_acc"), strict=True):
        for k, method in enumerate(("scratch", "ours")):
            rows = result.frame[(result.frame["method"] == method) & (result.frame["metric"] == metric)]
            drawn = points(axis.lines[k])
            assert np.array(drawn) == pytest.approx(rows[["round", "mean"]].to_numpy())
            band = np.asarray(axis.collections[k].get_paths()[0].vertices).tolist()
            mean, std = rows["mean"].iloc[0], rows["std"].iloc[0]
            assert sorted({y for x, y in band if x == 0}) == pytest.approx([mean - std, mean + std])
        assert axis.get_ylabel() == {"asr": "ASR", "r_acc": "R-Acc"}[metric]
    assert said(result.figure) == ["Scratch", "Ours *", "post-training starts"]


def test_a_summary_shows_the_start_the_end_of_unlearning_and_the_end() -> None:
    def mean(model: str, round: int) -> str:
        return f"{np.mean([number(model, 'asr', seed, round) for seed in SEEDS]):.3f}"

    shown = {line[0]: line[1] for line in cells(made(make_entry("curves")).body)}
    steps = [mean(f"{CHOSEN}.unlearned", 0), mean(f"{CHOSEN}.unlearned", 2), mean(f"{CHOSEN}.recovered", 4)]
    assert shown["Ours *"] == " → ".join(steps)
    assert shown["Scratch"] == " → ".join([mean("scratch.unlearned", 0), mean("scratch.unlearned", 2)])


def test_a_dotted_line_stands_where_post_training_begins_however_rarely_it_is_measured() -> None:
    entry = make_entry("curves")
    frame = make_frame(entry)
    frame = frame[(frame["stage"] != "recovered") | frame["round"].isin([2, 4])]
    for axis in made(entry, frame).figure.axes:
        [line] = [line for line in axis.lines if line.get_linestyle() == ":"]
        assert np.asarray(line.get_xdata()).tolist() == [2, 2]
        assert line.get_color() == SIGNS[TURN]["color"]


def test_a_first_point_other_than_the_original_model_is_hollow_and_told() -> None:
    frame = starting(ours=0.25, scratch=0)
    assert begins(frame) == {("small", "ours"): 0.25, ("small", "scratch"): 0}
    result = made(make_entry("curves", metrics=METRICS), frame)
    shares = {line[0]: line[1] for line in cells(result.body)}
    assert shares == {"Method": "starts", "Scratch": "at ω⁰", "Ours *": "0.25 from ω⁰"}
    asr = np.mean([number(f"{CHOSEN}.unlearned", "asr", seed, 0) for seed in SEEDS])
    axis = result.figure.axes[0]
    assert marked(axis, "o") == [[pytest.approx((0, asr))]]
    [hollow] = [line for line in axis.lines if line.get_marker() == "o" and line.get_linestyle() == "None"]
    assert hollow.get_markerfacecolor() == "white"
    assert axis.lines[1].get_markevery() == [1, 2, 3, 4]
    assert "start other than ω⁰" in said(result.figure)


def test_the_original_model_is_a_level_where_a_method_begins_at_it() -> None:
    frame = starting(ours=0.25, scratch=0)
    asr = float(np.mean([number("scratch.unlearned", "asr", seed, 0) for seed in SEEDS]))
    assert original(frame, begins(frame))["small", "asr"] == pytest.approx(asr)
    result = made(make_entry("curves", metrics=METRICS), frame)
    dashed = [[points(line) for line in axis.lines if line.get_linestyle() == "--"] for axis in result.figure.axes]
    assert [[y for (_, y), _ in lines] for lines in dashed[:2]] == [[pytest.approx(asr)], []]  # no distance to itself
    assert "ω⁰" in said(result.figure)
    elsewhere = made(make_entry("curves", metrics=METRICS), starting(ours=0.25, scratch=0.5)).figure
    assert "ω⁰" not in said(elsewhere)


def test_a_backdoor_that_hardly_took_hold_is_told() -> None:
    frame = starting(ours=0.25, scratch=0)
    first = (frame["round"] == 0) & (frame["metric"] == "asr")
    frame.loc[first, "value"] = 0.75  # of `ours`, which starts elsewhere
    frame.loc[first & (frame["method"] == "scratch"), "value"] = 0.25
    told = "The backdoor hardly took hold in Small (ASR of ω⁰: 0.250)"
    assert told in made(make_entry("curves", metrics=METRICS), frame).notes


@pytest.mark.parametrize(("far", "scale"), [(9.0, "linear"), (11.0, "log")])
def test_what_would_lie_at_the_bottom_is_drawn_on_a_logarithmic_axis(far: float, scale: str) -> None:
    frame = starting(ours=0, scratch=0)
    here = (frame["metric"] == "distance") & (frame["round"] > 0)
    frame.loc[here, "value"] = 1.0
    frame.loc[here & (frame["method"] == "ours"), "value"] = far
    result = made(make_entry("curves", metrics=METRICS), frame)
    axes = result.figure.axes
    assert [axis.get_yscale() for axis in axes[:2]] == ["linear", scale]
    assert axes[1].get_ylabel() == ("Distance (log)" if scale == "log" else "Distance")
    told = "A logarithmic axis has no 0, so a curve that starts there is drawn from its next round on."
    assert (told in result.notes) is (scale == "log")
    frame.loc[(frame["metric"] == "distance") & (frame["round"] == 0), "value"] = 0.5
    assert "logarithmic" not in made(make_entry("curves", metrics=METRICS), frame).notes


@pytest.mark.parametrize("seeds", [[1], [0, 1]], ids=["one of two seeds", "both seeds"])
def test_curves_show_where_a_run_diverged(seeds: list[int]) -> None:
    entry = make_entry("curves")
    frame = make_frame(entry)
    assert "diverged" not in made(entry, frame).body
    lost = (frame["trial"] == CHOSEN) & frame["seed"].isin(seeds) & (frame["round"] > 1)
    result = made(entry, frame[~lost])
    told = "diverged after round 1, round 1" if len(seeds) == 2 else "(1 of 2 seeds diverged after round 1)"
    assert result.body.count(told) == 2  # metrics
    for axis, metric in zip(result.figure.axes, ("asr", "r_acc"), strict=True):
        ends = [(1, number(f"{CHOSEN}.unlearned", metric, seed, 1)) for seed in seeds]
        assert [mark for [mark] in marked(axis, "X")] == [pytest.approx(end) for end in ends]
    assert "diverged" in said(result.figure)


def test_a_run_without_any_round_is_told() -> None:
    entry = make_entry("curves", seeds=(0,))
    frame = make_frame(entry)
    gone = frame["method"] == "ours"
    seconds = frame["metric"] == "seconds"
    result = made(entry, frame[~gone | seconds].assign(round=frame["round"].mask(gone, -1)))
    assert ["Ours *", "diverged after no round", "diverged after no round"] in cells(result.body)


def learned(scenario: Scenario, method: str, trial: Trial, seed: int, round: int) -> float:
    """Return .1 in round 0 and in each later one .1 more; .05 p more for FedAvg, n / 1000 for others, and by the q."""
    more = 0.05 * float(scenario.at["p"]) if method == "fedavg" else float(scenario.at["n"]) / 1000
    return 0.1 + 0.1 * round + more + 0.03 * (trial.values.get("params.q") == 0.5) + 0.02 * seed


def grouped(**changes: Any) -> tuple[Entry, pd.DataFrame]:
    """Return curves with a panel for each p and a line for each n, and their frame."""
    picked = zip(SCENARIOS, ("0.9", "0.5", "0.5", "0.5"), strict=True)
    chosen = {scenario.name: {"safari": f"safari+q{q}-lr0.1"} for scenario, q in picked}
    entry = make_trained("curves", **{"panels": ("p",), "lines": ("n",), "chosen": chosen, **changes})
    return entry, frame_of(entry, learned, range(ROUNDS + 1))


def test_trainings_are_curves_in_panels_and_lines() -> None:
    result = made(*grouped())
    found = {(row["panel"], row["line"], row["round"]): row for row in result.frame.to_dict("records")}
    assert len(found) == len(result.frame) == 2 * 3 * 4
    assert found["p2", "fedavg", 0]["mean"] == pytest.approx(0.21)
    assert found["p1", "fedavg", 3]["mean"] == pytest.approx(0.46)
    assert found["p2", "safari.n50", 3]["mean"] == pytest.approx(0.46)  # .4 + .05, the higher q
    assert found["p2", "safari.n100", 3]["mean"] == pytest.approx(0.54)
    assert found["p1", "safari.n100", 3]["mean"] == pytest.approx(0.54)
    assert {row["stage"] for row in found.values()} == {"original"}
    assert {row["n"] for row in found.values()} == {2}
    assert [row["std"] for row in found.values()] == pytest.approx([0.02 / 2**0.5] * len(found))


def test_a_training_that_others_are_compared_with_is_drawn_once_in_each_panel() -> None:
    figure = made(*grouped()).figure
    assert [axis.get_title(loc="left") for axis in figure.axes] == [f"classes per client, p = {p}" for p in (2, 1)]
    for axis, level in zip(figure.axes, (0.1, 0.05), strict=True):
        drawn = [points(line) for line in axis.lines]
        assert len(drawn) == 3
        assert np.array(drawn[0]) == pytest.approx(np.array([(r, 0.11 + 0.1 * r + level) for r in range(4)]))
        assert {line.get_linestyle() for line in axis.lines} == {"-"}  # shades in place of dashes, no request
    assert said(figure) == ["FedAvg", "SAFARI, n = 50", "SAFARI, n = 100"]


def test_trainings_alone_have_a_panel_for_each_scenario() -> None:
    result = made(*grouped(panels=(), lines=()))
    assert [axis.get_title(loc="left") for axis in result.figure.axes] == [s.label for s in SCENARIOS]
    assert [*result.frame][:2] == ["scenario", "method"]
    assert said(result.figure) == ["FedAvg", "SAFARI"]
    assert cells(result.body)[1:3] == [["FedAvg", "0.210 → 0.510"], ["SAFARI", "0.160 → 0.460"]]
    assert "Chosen for P2 N50: q 0.9, server's rate 0.1 (SAFARI)." in result.notes
    every = {s.name: {"safari": "safari+q0.5-lr0.1"} for s in SCENARIOS}
    assert (
        "Chosen for all panels: q 0.5, server's rate 0.1 (SAFARI)."
        in made(*grouped(panels=(), lines=(), chosen=every)).notes
    )


def test_a_panel_has_scenarios_of_equal_rounds() -> None:
    scenarios = tuple(s.model_copy(update={"rounds": (2, None)} if s.at["n"] == 50 else {}) for s in SCENARIOS)
    with pytest.raises(UserError, match="p = 2 has scenarios with different rounds; separate them by panels"):
        made(*grouped(scenarios=scenarios, methods=(make_fedavg(scenarios), make_safari(scenarios))))


def through_training(elsewhere: float = 0) -> tuple[Entry, pd.DataFrame]:
    """Return curves that begin with two rounds of training, and a frame in which everything after counts on."""
    entry = make_entry("curves", metrics=METRICS, from_training=True)
    frame = starting(ours=elsewhere, scratch=0.5)
    later = frame["round"] + (frame["round"] >= 0) * 2
    first = frame[(frame["round"] == 0) & (frame["metric"] == "asr")]
    before = [first.assign(stage="original", model="original.trained", round=r, value=0.2 * (r + 1)) for r in range(3)]
    return entry, pd.concat([*before, frame.assign(round=later)], ignore_index=True)


def test_curves_may_begin_with_the_rounds_of_training() -> None:
    entry, frame = through_training()
    result = made(entry, frame)
    axis = result.figure.axes[0]
    own = [number(f"{CHOSEN}.unlearned", "asr", 0, r) + number(f"{CHOSEN}.unlearned", "asr", 1, r) for r in range(3)]
    drawn = points(axis.lines[2])  # after `scratch` and its hollow start
    assert [x for x, _ in drawn] == [0, 1, 2, 2, 3, 4, 5, 6]
    assert [y for _, y in drawn][:6] == pytest.approx([0.2, 0.4, 0.6, *(value / 2 for value in own)])
    dotted = {line.get_color(): points(line)[0][0] for line in axis.lines if line.get_linestyle() == ":"}
    assert dotted == {SIGNS[REQUEST]["color"]: 2, SIGNS[TURN]["color"]: 4}
    assert said(result.figure) == ["Scratch", "Ours *", "start other than ω⁰", "ω⁰", "request", "post-training starts"]
    assert (
        "Before training → before the request → at the start of the method → after unlearning → at the end."
        in result.body
    )
    assert "diverged" not in result.body
    shown = {line[0]: line[2] for line in cells(result.body)}
    end = np.mean([number(f"{CHOSEN}.recovered", "asr", seed, 4) for seed in SEEDS])
    assert shown["Ours *"] == f"0.200 → 0.600 → {own[0] / 2:.3f} → {own[2] / 2:.3f} → {end:.3f}"
    assert shown["Scratch"].startswith("0.200 → ")


def test_a_method_that_begins_elsewhere_does_so_at_the_request() -> None:
    entry, frame = through_training()
    axis = made(entry, frame).figure.axes[0]
    start = np.mean([number("scratch.unlearned", "asr", seed, 0) for seed in SEEDS])
    assert marked(axis, "o") == [[pytest.approx((2, start))]]
    ours = np.mean([number(f"{CHOSEN}.unlearned", "asr", seed, 0) for seed in SEEDS])
    [level] = [line for line in axis.lines if line.get_linestyle() == "--"]
    assert np.asarray(level.get_ydata(), float)[0] == pytest.approx(ours)


LEVELS = ("samples", "clients")
DATASETS = ("mnist", "cifar10", "femnist")


def exact_and_anew(requests: int = 1) -> tuple[Entry, pd.DataFrame]:
    """Return curves of FATS and FRS through two rounds of training and two after each request, in six scenarios.

    They start from trainings of their own. FATS is back after one round and computes ten time steps, FRS never and 20.
    """
    scenarios = tuple(
        SCENARIOS[0].model_copy(
            update={"name": f"{data}-{level}", "label": f"{data}, {level}", "at": {"level": level, "dataset": data}}
            | {"rounds": (2, 2 * requests), "requests": requests}
        )
        for level in LEVELS
        for data in DATASETS
    )
    starts = {"fats": "fats", "frs": "fedavg"}
    places = [scenario.name for scenario in scenarios]
    methods = tuple(
        method_of(name, *places, label=name.upper(), trial={"trained": start}) for name, start in starts.items()
    )
    rows = []
    for k, scenario in enumerate(scenarios):
        for name, start in starts.items():
            high = 0.9 if name == "fats" else 0.8
            found = [("original", r, high * r / 2 - k / 100, 10 * r, 0) for r in range(3)]
            found += [("unlearned", 2, 0.5, 0, 3)]
            for wave in range(requests):
                ends = (0.6, high - k / 100 - (0.0099 if name == "fats" else 0.0101))
                spent = [(1, 1), (1, 1)] if name == "fats" else [(1, 2), (2, 2)]
                found += [
                    ("unlearned", 3 + 2 * wave + r, value, 10 * (wave * last + steps), 3 * (wave + 1))
                    for r, (value, (steps, last)) in enumerate(zip(ends, spent, strict=True))
                ]
            for stage, round, *values in found:
                model = f"{start}.trained" if stage == "original" else f"{name}.unlearned"
                about = {"scenario": scenario.name, "method": name, "trial": name, "model": model, "seed": 0}
                for metric, value in zip(("accuracy", "time_steps", "replayed"), values, strict=True):
                    rows.append({**about, "stage": stage, "round": round, "metric": metric, "value": float(value)})
    given: dict[str, Any] = {
        "scenarios": scenarios,
        "methods": methods,
        "panels": ("level", "dataset"),
        "seeds": (0,),
        "chosen": {},
    }
    entry = make_entry("curves", metrics=("accuracy",), from_training=True, note="Our choice.", **given)
    return entry, pd.DataFrame(rows).assign(device=None, published=False)


def test_each_scenario_has_a_panel_and_each_method_follows_its_own_training() -> None:
    result = made(*exact_and_anew())
    axes = result.figure.axes
    assert [axis.get_title(loc="left") for axis in axes] == [f"{d}, {level}" for level in LEVELS for d in DATASETS]
    for k, axis in enumerate(axes):
        fats, frs, asked = (points(line) for line in axis.lines)
        low = k / 100
        ends = [(0, -low), (1, 0.45 - low), (2, 0.9 - low), (2, 0.5), (3, 0.6), (4, 0.8901 - low)]
        assert fats == [pytest.approx(point) for point in ends]
        assert frs[:3] == [pytest.approx(point) for point in [(0, -low), (1, 0.4 - low), (2, 0.8 - low)]]
        assert asked[0][0] == 2
    assert said(result.figure) == ["FATS", "FRS", "request"]
    assert "Before the request a curve is the training that its method starts from." in result.notes
    assert "at the end" not in result.body


def test_the_words_say_how_soon_a_method_is_back_and_what_it_computed() -> None:
    result = made(*exact_and_anew())
    head, fats, frs = cells(result.body)[:3]
    assert head[2:] == ["back after", "time steps", "replayed"]
    assert fats[1:] == ["0.000 → 0.900 → 0.500 → 0.890", "2", "10", "3"]
    assert frs[1:] == ["0.000 → 0.800 → 0.500 → 0.790", "never", "20", "3"]
    assert "Back after: rounds until the mean stays at most 0.01 worse than before the request" in result.body
    assert set(result.frame["metric"]) == {"accuracy", "time_steps", "replayed"}


def test_requests_in_a_row_have_a_line_and_a_number_each() -> None:
    result = made(*exact_and_anew(requests=3))
    lines = [points(line)[0][0] for line in result.figure.axes[0].lines if line.get_linestyle() == ":"]
    assert lines == [2, 4, 6]
    _, fats, frs = cells(result.body)[:3]
    assert fats[2:] == ["2, 2, 2", "10, 10, 10", "3, 3, 3"]
    assert frs[2:] == ["never, 2, 2", "20, 20, 20", "3, 3, 3"]  # the second counts from where the first had come
    assert "Consecutive requests have one number each." in result.body


def test_time_is_that_of_unlearning_without_post_training() -> None:
    entry, frame = exact_and_anew()
    first = (frame["scenario"] == "mnist-samples") & (frame["method"] == "fats") & (frame["round"] == 4)
    later = frame[first].assign(stage="recovered", model="fats.recovered")
    after = [later.assign(round=4 + r, value=later["value"] + 7) for r in range(2)]
    assert cells(made(entry, pd.concat([frame, *after], ignore_index=True)).body)[1][3] == "10"


def curve(*after: float) -> pd.DataFrame:
    """Return a curve that is at 0.5 when the request comes after round 1, and has these values from then on."""
    rows = [("original", 0, 0.9), ("original", 1, 0.5), *(("unlearned", 1 + r, value) for r, value in enumerate(after))]
    return pd.DataFrame(rows, columns=["stage", "round", "mean"])


@pytest.mark.parametrize(
    ("after", "metric", "rounds"),
    [
        ((0.49, 0.6), "accuracy", [0]),
        ((0.489, 0.49), "accuracy", [1]),
        ((0.1, 0.2, 0.6), "accuracy", [2]),
        ((0.1, 0.2), "accuracy", ["never"]),
        ((0.5, 0.1, 0.2, 0.5), "accuracy", [3]),  # begins at the original model and collapses
        ((0.5, 0.1), "accuracy", ["never"]),
        ((0.1, 0.6, 0.2, 0.5), "accuracy", [3]),  # one touch is not yet back
        ((0.1, 0.6, 0.2), "accuracy", ["never"]),
        ((0.51, 0.4), "asr", [0]),
        ((0.51, 0.9), "asr", ["never"]),
        ((0.9, 0.511, 0.51), "asr", [2]),
        ((), "accuracy", []),
    ],
)
def test_a_curve_is_back_where_it_is_from_then_on_hardly_worse_than_before(
    after: tuple[float, ...], metric: str, rounds: list[int | str]
) -> None:
    assert back(curve(*after), [1], catalogue.metrics()[metric]) == rounds


def test_a_curve_that_stays_after_a_later_request_is_back_at_once() -> None:
    held = [0.5, 0.5, 0.5, 0.5, 0.5, 0.1, 0.2]
    assert back(curve(*held), [1, 3, 5], catalogue.metrics()["accuracy"]) == [0, 0, "never"]


def test_a_curve_that_diverged_is_not_back() -> None:
    entry, frame = exact_and_anew()
    methods = tuple(method.model_copy(update={"post_training": "after"}) for method in entry.methods)
    whole = frame.replace({"value": {0.5: 0.9, 0.6: 0.9}})
    result = made(entry.model_copy(update={"methods": methods}), whole[whole["round"] < 4])
    assert cells(result.body)[1][1:] == ["0.000 → diverged after round 3", "–", "–", "–"]


def test_there_is_one_level_of_the_original_model_where_all_start_from_one_training() -> None:
    entry, frame = through_training()
    other = entry.methods[0].model_copy(
        update={
            "trials": {"small": tuple(t.model_copy(update={"trained": "x"}) for t in entry.methods[0].trials["small"])}
        }
    )
    result = made(entry.model_copy(update={"methods": (other, *entry.methods[1:])}), frame)
    assert "ω⁰" not in said(result.figure)
    assert "ω⁰" in said(made(entry, frame).figure)
    assert "Before the request" not in made(entry, frame).notes
