"""Accuracy and unlearning time against rho: the numbers of a small system, and what the words make of them."""

import re
from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fu.artefacts import stability
from fu.artefacts.entry import Asked, Entry, Method, Sampling, Scenario, Trial
from fu.artefacts.stability import FORMULAS
from fu.artefacts.words import in_a_row
from fu.federation.exact import Requests
from fu.federation.sampling import Shape
from tests.artefacts.factories import COLUMNS, cells, claims, held, made, make_entry

SEEDS = (0, 1)
VALUES = {"b2": (0.6, 0.7), "b4": (0.7, 0.9), "K2": (0.8, 0.8), "K1": (0.5, 0.5)}  # of accuracy, by seed


def grown() -> tuple[Entry, pd.DataFrame]:
    """Return four systems of M = 4, N = 8, R = 3, E = 2: b is 2 or 4 where K = 1, then K is 2 or 1 where b = 2."""
    [base] = make_entry("stability").scenarios
    scenarios: list[Scenario] = []
    rows: list[dict[str, Any]] = []
    for name, values in VALUES.items():
        short, value = name[0], int(name[1])
        drawn = Sampling(clients=4, samples=8, clients_per_round=1, rounds=3, steps=2, batch_size=2)
        drawn = drawn.model_copy(update={"batch_size" if short == "b" else "clients_per_round": value})
        asked = Asked(level="sample" if short == "b" else "client", number=1)
        named = {"name": f"toy-{name}", "label": f"Toy, {short} = {value}", "family": "Toy"}
        about: dict[str, Any] = {**named, "at": {short: value}, "original": None}
        scenarios.append(base.model_copy(update={**about, "sampling": drawn, "asked": asked}))
        rows += held(f"toy-{name}", [8] * 4)
        for seed, accuracy in zip(SEEDS, values, strict=True):
            about = {"scenario": f"toy-{name}", "method": "fats", "trial": "fats", "model": "fats.trained"}
            rows.append({**about, "seed": seed, "stage": "original", "metric": "accuracy", "value": accuracy})
    trial = Trial(name="fats", rate=0.1, values={}, trained="fats")
    trials = {scenario.name: (trial,) for scenario in scenarios}
    fats = Method(name="fats", label="FATS", in_paper=True, post_training="none", trains=True, trials=trials)
    given: dict[str, Any] = {"scenarios": tuple(scenarios), "methods": (fats,), "seeds": SEEDS, "stages": ("original",)}
    entry = make_entry("stability", metrics=("accuracy",), draws=200, chosen={}, **given)
    return entry, pd.DataFrame(rows).assign(round=-1, device=None, published=False)


def test_rho_accuracy_and_time_are_those_of_each_system() -> None:
    found = made(*grown()).frame
    measured = found[found["metric"] == "accuracy"].set_index("scenario")
    assert measured["rho"].to_dict() == {"toy-b2": 0.375, "toy-b4": 0.75, "toy-K2": 1.5, "toy-K1": 0.75}
    assert measured["mean"].to_dict() == pytest.approx({"toy-b2": 0.65, "toy-b4": 0.8, "toy-K2": 0.8, "toy-K1": 0.5})
    assert measured["std"]["toy-b4"] == pytest.approx(0.2 / np.sqrt(2))
    times = found[found["metric"] == "time"].set_index("scenario")
    expected = {
        "toy-b2": Requests(Shape(1, 3, 2, 2), 4, (8,) * 4).mean_time,
        "toy-b4": Requests(Shape(1, 3, 2, 4), 4, (8,) * 4).mean_time,
        "toy-K2": 6 - 2 * (9 / 16 + (9 / 16) ** 2 + (9 / 16) ** 3) * 1.0,
        "toy-K1": 6 - 2 * (3 / 4 + (3 / 4) ** 2 + (3 / 4) ** 3),
    }
    assert times["exact"].to_dict() == pytest.approx(expected)
    assert set(times["frs"]) == {6}
    assert ((times["mean"] - times["exact"]).abs() < 4 * times["error"]).all()
    assert (times["n"] == 200).all()


def test_a_row_of_panels_holds_accuracy_and_time_and_none_has_two_axes() -> None:
    result = made(*grown())
    axes = result.figure.axes
    assert [axis.get_ylabel() for axis in axes] == ["Accuracy", "unlearning time (time steps)"] * 2
    assert [axis.get_xlabel() for axis in axes] == [FORMULAS["sample"]] * 2 + [FORMULAS["client"]] * 2
    assert all(axis.xaxis.label.get_parse_math() for axis in axes)
    assert [a.get_title(loc="left") for a in axes] == ["Toy, a sample to forget", "", "Toy, a client to forget", ""]
    assert np.asarray(axes[2].lines[0].get_xydata()).tolist() == [[0.75, 0.5], [1.5, 0.8]]
    exact, drawn, frs = (np.asarray(axes[3].lines[k].get_xydata(), float) for k in (0, 1, -1))
    times = result.frame[(result.frame["metric"] == "time") & (result.frame["level"] == "client")].sort_values("rho")
    assert exact.tolist() == times[["rho", "exact"]].to_numpy().tolist()
    assert drawn.tolist() == times[["rho", "mean"]].to_numpy().tolist()
    [bars] = axes[3].containers
    _, _, [lines] = bars
    heights = [(high - low) / 2 for (_, low), (_, high) in lines.get_segments()]
    assert heights == pytest.approx(times["error"].tolist())
    assert frs[:, 1].tolist() == [6, 6]
    assert axes[0].get_ylim() == (-0.03, 1.03)
    assert axes[1].get_ylim()[1] == pytest.approx(6.36)


def test_tables_are_in_the_order_of_rho_and_words_say_where_the_paper_errs() -> None:
    result = made(*grown())
    table = cells(result.body)
    assert [row[:4] for row in table[4:6]] == [["0.750", "1", "2", "0.500 ±0.000"], ["1.500", "2", "2", "0.800 ±0.000"]]
    sample = (
        "Toy, a sample to forget, ρ_S from 0.375 to 0.750: Accuracy goes from 0.650 to 0.800 and the mean time rises"
    )
    assert sample in result.notes
    assert result.notes.count("section 6.2.4 says that it falls") == 1
    client = result.notes.partition("a client to forget")[2]
    assert "rises from 2.5 to 3.9 time steps." in client
    assert "6.2.4" not in client
    assert "FRS: retraining from scratch, 6 time steps." in result.notes


def test_where_time_does_not_rise_nothing_is_said_of_the_paper() -> None:
    entry, frame = grown()
    alone = entry.model_copy(update={"scenarios": entry.scenarios[:1]})
    assert "6.2.4" not in made(alone, frame).notes


def test_seeds_that_diverged_are_left_out_and_named() -> None:
    entry, frame = grown()
    one = frame[(frame["scenario"] != "toy-b2") | (frame["seed"] == 0)]
    assert "Seeds that diverged are left out: toy-b2." in made(entry, one).notes
    assert cells(made(entry, one).body)[1][3] == "0.600"
    assert "ρ_S from 0.375 to 0.750: the mean time rises" in made(entry, one).notes  # of accuracy nothing is said
    none = made(entry, frame[(frame["scenario"] != "toy-b2") | (frame["metric"] != "accuracy")])
    assert cells(none.body)[1][3] == "diverged"
    assert any(line.get_marker() == "X" for line in none.figure.axes[0].lines)


def fuzzed(random: np.random.Generator) -> tuple[Entry, pd.DataFrame]:
    """Return systems of M = 4, N = 8 and their accuracies in tenths, of which a third of the seeds diverged."""
    [base], kept = make_entry("stability").scenarios, random.uniform(0.5, 1)
    seeds, names = tuple(range(random.integers(1, 4))), ["fats", "other"][: random.integers(1, 3)]
    scenarios: list[Scenario] = []
    rows: list[dict[str, Any]] = []
    for k in range(random.integers(1, 7)):
        level = "sample" if random.random() < 0.6 else "client"
        drawn = Sampling(
            clients=4,
            samples=8,
            clients_per_round=int(random.integers(1, 3)),
            rounds=2,
            steps=1,
            batch_size=int(random.integers(1, 5)),
        )
        asked = Asked(level=level, number=1 + (random.random() < 0.2))  # type: ignore[arg-type]
        about: dict[str, Any] = {
            "name": f"toy{k}",
            "label": "Toy",
            "at": {},
            "original": None,
            "sampling": drawn,
            "asked": asked,
        }
        scenarios.append(base.model_copy(update=about))
        rows += held(f"toy{k}", [8] * 4)
        for method, metric in product(names, METRICS):
            told = {"scenario": f"toy{k}", "method": method, "trial": "fats", "stage": "original", "metric": metric}
            values = random.integers(1, 4, len(seeds)) / 10 + random.choice([0, 0.0004], len(seeds))
            there = [(seed, value) for seed, value in enumerate(values) if random.random() < kept]
            rows += [{**told, "seed": seed, "value": value} for seed, value in there]
    trials = {one.name: (Trial(name="fats", rate=0.1, values={}, trained="fats"),) for one in scenarios}
    methods = tuple(
        Method(name=name, label=name, in_paper=True, post_training="none", trains=True, trials=trials) for name in names
    )
    given: dict[str, Any] = {"scenarios": tuple(scenarios), "methods": methods, "seeds": seeds, "stages": ("original",)}
    entry = make_entry("stability", metrics=METRICS, draws=int(random.choice([5, 20])), chosen={}, **given)
    return entry, pd.DataFrame(rows, columns=COLUMNS).assign(published=False)


METRICS = ("accuracy", "r_acc")
CLAIMS = {
    "trend": r"(.*, ρ_. from .{5} to .{5}): (.*?)(; section 6\.2\.4 says that it falls)?\.",
    "drawn": r"Time: time steps computed again, 0 where nothing is; means over (\d+) requests, 10 in each sampling "
    r"history(, with their standard error)?\.",
    "samples": r"A sample is drawn out of all training samples, .*; sizes are those of seed 0's partition\.",
    "frs": r"FRS: retraining from scratch, 2 time steps\.",
    "seeds": r"Means over (\d) seeds; ±: sample standard deviation\.",
    "lost": r"Seeds that diverged are left out: (.*)\.",
}


def trends(entry: Entry, frame: pd.DataFrame, panel: str, rows: list[dict[str, str]]) -> list[tuple[str, str, bool]]:
    """Return what may be said of a panel, from its printed rows and the seeds of its ends."""
    symbol, *_ = rows[0]
    rho, exact = [row[symbol] for row in rows], [row["time, exact"] for row in rows]
    if rho.count(rho[0]) > 1 or rho.count(rho[-1]) > 1 or len(rho) == 1:
        return []
    ends = [  # the scenarios at both ends
        next(
            one.name
            for one in entry.scenarios
            if one.sampling and stability._panel(one) == panel
            if [str(one.sampling.clients_per_round), str(one.sampling.batch_size)] == [row["K"], row["b"]]
        )
        for row in (rows[0], rows[-1])
    ]
    found = []
    for method, metric in product(entry.methods, entry.metrics):
        own = frame[(frame["method"] == method.name) & (frame["metric"] == metric.name)]
        if all(set(own[own["scenario"] == end]["seed"]) == set(entry.seeds) for end in ends):
            several = len(entry.methods) > 1
            column = f"{method.label}, {metric.label}" if several else metric.label
            name = column.replace(", ", "'s ")
            found.append(f"{name} goes from {rows[0][column][:5]} to {rows[-1][column][:5]}")
    rises = "–" not in exact and all(float(one) < float(other) for one, other in pairwise(exact))
    if "–" not in exact:
        found.append(f"the mean time {'rises' if rises else 'goes'} from {exact[0]} to {exact[-1]} time steps")
    head = f"{panel}, {symbol} from {rho[0]} to {rho[-1]}"
    return [(head, in_a_row(found), rises and symbol == "ρ_S")] if found else []


@pytest.mark.whole
def test_every_sentence_follows_from_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stability, "_picture", lambda *about: Figure())
    random, lost_and_said = np.random.default_rng(23), 0
    for _ in range(300):
        entry, frame = fuzzed(random)
        result = made(entry, frame)
        said = claims(result.notes, CLAIMS)
        tables = {head: cells(body) for head, body in re.findall(r"## (.*)\n\n((?:\|.*\n)+)", result.body)}
        shown = {panel: [dict(zip(head, row, strict=True)) for row in rows] for panel, (head, *rows) in tables.items()}
        expected = [claim for panel, rows in shown.items() for claim in trends(entry, frame, panel, rows)]
        assert [(head, text, bool(against)) for head, text, against in said["trend"]] == expected
        [(requests, error)] = said["drawn"]
        assert int(requests) == 10 * -(-entry.draws // 10)
        assert bool(error) == any("±" in row["time"] for rows in shown.values() for row in rows)
        assert said["seeds"] == ([(str(len(entry.seeds)),)] if len(entry.seeds) > 1 else [])
        measured = frame[frame["metric"].isin(METRICS)].value_counts("scenario")
        whole = len(entry.seeds) * len(entry.methods) * len(METRICS)
        lost = [one.name for one in entry.scenarios if measured.get(one.name, 0) < whole]
        assert said["lost"] == ([(in_a_row(lost),)] if lost else [])
        lost_and_said += bool(lost and expected)
    assert lost_and_said > 50
