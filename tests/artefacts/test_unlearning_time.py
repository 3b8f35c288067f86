"""Unlearning times from the sampling history alone: every point beside its exact mean, the bounds and FRS."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu.artefacts import unlearning_time
from fu.artefacts.entry import Asked, Entry, Sampling, Scenario
from fu.federation.exact import Requests
from fu.federation.sampling import Shape
from tests.artefacts.factories import COLUMNS, cells, held, made, make_entry, make_frame
from tests.mistakes import has, sentence

SAMPLING = {"clients": 30, "samples": 20, "rounds": 6, "steps": 5, "batch_size": 4}


def scenario(level: str, number: int = 1, **at: int) -> Scenario:
    """Return a scenario in which K, b and M are set by its coordinates."""
    names = {"K": "clients_per_round", "b": "batch_size", "M": "clients"}
    drawn = SAMPLING | {names[short]: value for short, value in at.items() if short in names}
    (small,) = make_entry("unlearning_time").scenarios
    label = ", ".join(["Letters", *(f"{short} = {value}" for short, value in at.items())])
    about = {"sampling": Sampling(**drawn), "asked": Asked(level=level, number=number)}  # type: ignore[arg-type]
    return small.model_copy(
        update={"name": f"{level}-{at}-{number}", "label": label, "family": "Letters", "at": at, **about}
    )


def entry(*scenarios: Scenario, **changes: Any) -> Entry:
    given = {"scenarios": scenarios, "x": "K", "lines": ("b", "M"), "draws": 196, **changes}
    return make_entry("unlearning_time", **given)


BOTH = (
    *(scenario("sample", K=k, b=b) for b in (2, 4) for k in (1, 2)),
    *(scenario("client", K=k, M=m) for m in (12, 30) for k in (1, 2, 3)),
)


def test_a_panel_for_each_level_and_a_line_for_each_value_end_where_rho_reaches_1() -> None:
    found = made(entry(*BOTH)).frame
    assert found.groupby(["panel", "line"], sort=False)["x"].agg(list).to_dict() == {
        ("Letters: a sample to forget", "b = 2"): [1, 2],
        ("Letters: a sample to forget", "b = 4"): [1, 2],
        ("Letters: a client to forget", "M = 12"): [1, 2],  # K = 3: rho_C = 1.5
        ("Letters: a client to forget", "M = 30"): [1, 2, 3],
    }
    assert found["rho"].max() == 1
    assert (found["frs"] == 30).all()


def test_means_and_shares_stand_beside_the_exact_ones_and_the_paper_s_bounds() -> None:
    result = made(entry(scenario("sample", K=2, b=4), scenario("client", 3, K=2, M=30)))
    sample, client = result.frame.to_dict("records")
    shape = Shape(2, 6, 5, 4)
    for row, one in ((sample, Requests(shape, 30, (20,) * 30)), (client, Requests(shape, 30, None, 3))):
        assert (row["spared_exact"], row["time_exact"]) == (1 - one.probability, one.mean_time)
        assert row["n"] == 200
        assert f"means over {row['n']} requests" in result.notes
        assert abs(row["time"] - row["time_exact"]) < 4 * row["error"]
        assert row["spared"] == pytest.approx(row["spared_exact"], abs=0.12)
    assert (sample["rho"], sample["spared_bound"], sample["number_bound"]) == pytest.approx((0.4, 0.6, 1.6))
    assert (client["rho"], client["probability_bound"], client["number_bound"]) == pytest.approx((0.4, 1, 4.8))
    assert sample["spared"] > sample["spared_bound"]
    table = cells(result.body)
    head = ["line", "K", "ρ", "spared", "spared, exact", "spared, paper ≥", "re-computed", "Theorem 1 ≤"]
    assert table[0] == [*head, "section 5.3 ≤", "time", "time, exact", "of FRS", "of FRS, exact"]
    shown = [f"{sample['spared']:.3f}", f"{sample['spared_exact']:.3f}", "0.600", f"{1 - sample['spared']:.3f}"]
    assert table[1][:9] == ["b = 4", "2", "0.400", *shown, "0.400", "1.600"]
    assert table[1][11] == f"{sample['time'] / 30:.3f}"


def test_claims_are_judged_on_the_share_of_frs_and_on_what_a_bound_below_1_leaves() -> None:
    """Two of 30 clients are drawn with replacement in each of six rounds, so that w rho is .4 w."""
    one, three = scenario("client", K=2, M=30), scenario("client", 3, K=2, M=30)
    of = entry(one, three)
    found = unlearning_time.by_seed(make_frame(of), of).set_index(["scenario", "metric"])["value"]
    assert [*found.index] == [(one.name, "time_share"), (one.name, "room"), (three.name, "time_share")]
    assert found[one.name, "room"] == pytest.approx(0.4 - (1 - (29 / 30) ** 12))
    times = made(of).frame.set_index("scenario")["time_exact"] / 30
    assert found[one.name, "time_share"] == times[one.name] < found[three.name, "time_share"]


def test_each_scenario_is_of_clients_of_its_own_sizes() -> None:
    one, other = (scenario("sample", K=1, b=b) for b in (3, 4))
    sizes = {one.name: [40, 5, 15] * 10, other.name: [20] * 30}
    frame = pd.DataFrame([row for name in sizes for row in held(name, sizes[name])], columns=COLUMNS)
    found = made(entry(one, other), frame).frame.set_index("scenario")
    for b, name in ((3, one.name), (4, other.name)):
        expected = Requests(Shape(1, 6, 5, b), 30, tuple(sizes[name]))
        assert (found["rho"][name], found["time_exact"][name]) == (expected.rho, expected.mean_time)
    assert found["rho"].tolist() == pytest.approx([0.15, 0.2])


def test_of_several_trainings_each_retraining_is_drawn() -> None:
    short = scenario("client", K=1, R=4)
    assert short.sampling
    short = short.model_copy(update={"sampling": short.sampling.model_copy(update={"rounds": 4})})
    [axis] = made(entry(short, scenario("client", K=2, R=6), lines=("R",))).figure.axes
    flat = [np.asarray(line.get_ydata()).tolist() for line in axis.lines if line.get_color() == "0.35"]
    assert flat == [[20, 20], [30, 30]]
    assert axis.get_ylim() == pytest.approx((0, 1.06 * 30))


def test_another_seed_draws_other_requests_and_the_same_seeds_the_same() -> None:
    times = [made(entry(*BOTH, seeds=seeds)).frame["time"].tolist() for seeds in ((0, 1), (0, 1), (0, 2))]
    assert times[0] == times[1] != times[2]


def test_what_is_missing_is_named() -> None:
    whole = scenario("client", K=1)
    for lacking in (whole.model_copy(update={"sampling": None}), whole.model_copy(update={"asked": None})):
        said = sentence(lambda lacking=lacking: made(entry(lacking)))  # type: ignore[misc]
        has(said, f"thing: {whole.name!r} needs training.clients_per_round", "and data.forget.")
    has(sentence(lambda: made(entry(scenario("client", K=30)))), "thing: rho exceeds 1 in every scenario")


def test_the_picture_has_markers_thin_exact_lines_and_frs() -> None:
    result = made(entry(*BOTH))
    one, other = result.figure.axes
    found = result.frame[result.frame["panel"].str.contains("client")]
    exact = [line for line in other.lines if line.get_linestyle() == "-"]
    assert [list(np.asarray(line.get_ydata())) for line in exact if len(line.get_xdata()) > 1] == [  # type: ignore[arg-type]
        found[found["line"] == line]["time_exact"].tolist() for line in ("M = 12", "M = 30")
    ]
    drawn = [(marks, bars.get_segments()) for marks, _, [bars] in other.containers if len(marks.get_xdata())]
    for (marks, bars), line in zip(drawn, ("M = 12", "M = 30"), strict=True):
        own = found[found["line"] == line]
        assert marks.get_linestyle() == "None"
        assert marks.get_xydata().tolist() == own[["x", "time"]].to_numpy().tolist()
        assert [(high - low) / 2 for (_, low), (_, high) in bars] == pytest.approx(own["error"].tolist())
    assert [30, 30] in [list(np.asarray(line.get_ydata())) for line in one.lines]
    assert one.get_ylim() == pytest.approx((0, 1.06 * 30))
    assert list(other.get_xticks()) == [1, 2, 3]
