"""Unlearning times from the sampling history alone: every point beside its exact mean, the bounds and FRS."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fu.artefacts import unlearning_time
from fu.artefacts.entry import Asked, Entry, Sampling, Scenario
from fu.artefacts.requests import asked
from fu.federation.exact import Requests
from fu.federation.request_times import request_times
from fu.federation.sampling import Shape
from tests.artefacts.factories import COLUMNS, cells, claims, held, made, make_entry
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
    given = {"scenarios": scenarios, "x": "K", "lines": ("b", "M"), "draws": 200, **changes}
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


def test_each_scenario_is_of_clients_of_its_own_sizes() -> None:
    one, other = (scenario("sample", K=1, b=b) for b in (3, 4))
    sizes = {one.name: [40, 5, 15] * 10, other.name: [20] * 30}
    frame = pd.DataFrame([row for name in sizes for row in held(name, sizes[name])], columns=COLUMNS)
    found = made(entry(one, other), frame).frame.set_index("scenario")
    for b, name in ((3, one.name), (4, other.name)):
        expected = Requests(Shape(1, 6, 5, b), 30, tuple(sizes[name]))
        assert (found["rho"][name], found["time_exact"][name]) == (expected.rho, expected.mean_time)
    assert found["rho"].tolist() == pytest.approx([0.15, 0.2])


def test_what_a_person_with_a_minute_reads() -> None:
    result = made(entry(*BOTH))
    share = (result.frame["time"] / 30).max()
    has(result.notes, "FRS: retraining from scratch, 30 time steps.", "Markers: means over 200 requests")
    has(result.notes, f"The largest mean is {share:.3f} of FRS (Letters: a client to forget, M = 12, K = 2)")
    has(
        result.notes,
        "9 of 9 points are below half of FRS.",
        "Lines end where ρ reaches 1; points beyond, which are left out: 1.",
    )
    assert "spared" not in result.notes
    assert "spared: the share of requests that compute nothing again" in result.body


def test_panels_of_several_at_once_are_headed_in_the_plural_and_by_their_coordinates() -> None:
    several = [scenario("client", w, K=1, w=w) for w in (1, 2)]
    found = made(entry(*several, x="w", lines=("K",), panels=("K",))).frame
    assert set(found["panel"]) == {"Letters: clients to forget, K = 1"}
    assert found["x"].tolist() == [1, 2]
    assert found["targets"].tolist() == [1, 2]
    assert found["time_exact"].is_monotonic_increasing


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


LETTERS = [(level, b, k) for level in ("sample", "client") for b in (1, 3) for k in (1, 2, 3)]


def fuzzed(random: np.random.Generator) -> tuple[Entry, pd.DataFrame]:
    """Return up to four small systems of clients that differ in size, few requests, and the rows of their sizes."""
    found, rows = [], []
    for k in random.permutation(len(LETTERS))[: random.integers(1, 5)]:
        level, b, per_round = LETTERS[k]
        sizes = random.integers(1, 9, random.integers(3, 7)).tolist()
        drawn = Sampling(
            clients=len(sizes),
            samples=int(np.mean(sizes)),
            clients_per_round=per_round,
            rounds=int(random.integers(1, 4)),
            steps=int(random.integers(1, 3)),
            batch_size=b,
        )
        one = scenario(level, int(random.integers(1, 3)), K=per_round, b=b)
        found.append(one.model_copy(update={"sampling": drawn}))
        rows += held(one.name, sizes)
    about = entry(*found, draws=int(random.choice([3, 10, 25, 40])), seeds=(0, int(random.integers(9))))
    return about, pd.DataFrame(rows, columns=COLUMNS)


CLAIMS = {
    "frs": r"FRS: retraining from scratch, ([\d, and]+) time steps\.",
    "lines": r"Lines: exact means\.",
    "drawn": r"Markers: means over (\d+) requests, 10 in each sampling history(, with their standard error)?\.",
    "samples": r"A sample is drawn out of all training samples, .*; sizes are those of seed 0's partition\.",
    "largest": r"The largest mean is (.{5}) of FRS \((.*), K = (\d)\); (\d) of (\d) points are below half of FRS\.",
    "beyond": r"Lines end where ρ reaches 1; points beyond, which are left out: (\d)\.",
}


@pytest.mark.whole
def test_every_sentence_follows_from_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    random, tried = np.random.default_rng(23), 0

    def near_half(asked: Requests, *about: Any) -> Any:
        """Return times that are drawn, or all just below half of FRS."""
        times = request_times(asked, *about)
        return times if random.random() < 0.7 else np.full(times.shape, 0.4998 * asked.shape.time)

    monkeypatch.setattr(unlearning_time, "_picture", lambda *about: Figure())
    monkeypatch.setattr("fu.artefacts.requests.request_times", near_half)
    for _ in range(300):
        about, frame = fuzzed(random)
        if not any(asked(frame, about, one).rho <= 1 for one in about.scenarios):
            continue
        tried += 1
        result = made(about, frame)
        said = {name: told[0] for name, told in claims(result.notes, CLAIMS).items() if told}
        tables = {heading: cells(body) for heading, body in re.findall(r"## (.*)\n\n((?:\|.*\n)+)", result.body)}
        shown = [
            {"panel": panel} | dict(zip(head, row, strict=True))
            for panel, (head, *rows) in tables.items()
            for row in rows
        ]
        times = {one.sampling.rounds * one.sampling.steps for one in about.scenarios if one.sampling}
        assert {int(time) for time in re.findall(r"\d+", said["frs"][0])} <= times
        requests, error = said["drawn"]
        assert int(requests) == 10 * -(-about.draws // 10)
        assert bool(error) == any("±" in row["time"] for row in shown)
        largest, where, k, below, points = said["largest"]
        assert float(largest) == max(float(row["of FRS"]) for row in shown)
        at = [row for row in shown if (row["panel"], row["line"], row["K"]) == (*where.rsplit(", ", 1), k)]
        assert largest in {row["of FRS"] for row in at}
        assert (int(below), int(points)) == (sum(float(row["of FRS"]) < 0.5 for row in shown), len(shown))
        assert int(said.get("beyond", ["0"])[0]) == len(about.scenarios) - len(shown)
        assert ("lines" in said) == any(row["time, exact"] != "–" for row in shown)
        assert ("samples" in said) == any(one.asked.level == "sample" for one in about.scenarios if one.asked)
    assert tried > 250
