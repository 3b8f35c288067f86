"""Sentences against the cells that stand beside them, on 300 random frames of each kind.

Every claim is derived once more from the printed cells (or, of the seeds behind them, from what was drawn): seeds are
lost, numbers tie or lie just beside a limit, the paper has gaps.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.stats import ttest_ind_from_stats

from fu import plugins
from fu.artefacts.entry import Method, Trial
from fu.artefacts.result import Result
from tests.artefacts import test_sampling_table
from tests.artefacts.factories import (
    cells,
    made,
    make_across,
    make_entry,
    make_frame,
    make_method,
    make_scratch,
    make_trial,
)

pytestmark = pytest.mark.whole

FRAMES = 300
KINDS = ("curves", "table", "across", "classes")
Draw = np.random.Generator


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no pictures: they say nothing in sentences, and take most of the time."""
    monkeypatch.setattr("fu.artefacts.panels.picture", lambda panels: Figure())
    monkeypatch.setattr("fu.artefacts.lines.picture", lambda *_, **__: Figure())
    for kind in KINDS:
        monkeypatch.setattr(plugins.load("artefacts", kind), "_picture", lambda *_: Figure(), raising=False)


def frames() -> Iterator[Draw]:
    return (np.random.default_rng(k) for k in range(FRAMES))


def numbers(draw: Draw, limits: tuple[float, ...], size: int) -> list[float]:
    """Return numbers in [0, 1]: some of three digits, some at or a little beside one of the limits."""
    near = draw.choice(limits, size) + draw.choice([-0.001, -0.0004, 0, 0.0004, 0.001], size)
    return [float(x) for x in np.where(draw.random(size) < 0.4, near, draw.random(size).round(3)).clip(0, 1)]


def lost(draw: Draw, values: list[float], share: float = 0.25) -> tuple[float | None, ...]:
    """Return the numbers, None where a seed diverged."""
    return tuple(None if gone else value for value, gone in zip(values, draw.random(len(values)) < share, strict=True))


def found(pattern: str, text: str) -> list[tuple[str, ...]]:
    """Return the groups of each sentence of this form."""
    return [match.groups(default="") for match in re.finditer(pattern, text)]


# ---- curves --------------------------------------------------------------------------------------------------------

TRAINED, AFTER = 2, 6  # rounds of training, and after the first request


def test_curves_say_when_a_method_is_back_as_their_means_do() -> None:
    said: Counter[str] = Counter()
    for draw in frames():
        recovers = bool(draw.integers(2))
        requests = 1 if recovers else int(draw.integers(1, 4))
        seeds, every = tuple(range(int(draw.integers(1, 3)))), int(draw.integers(1, 3))
        methods = tuple(method_of(name, recovers) for name in ("one", "two"))
        turns = {m.name: TRAINED + (int(draw.integers(1, AFTER)) if recovers else AFTER) for m in methods}
        cut: dict[tuple[str, int], int] = {}
        rows: list[dict[str, Any]] = []
        for method, seed in product(methods, seeds):
            end = int(draw.integers(TRAINED, TRAINED + AFTER)) if draw.random() < 0.15 else TRAINED + AFTER
            turn = turns[method.name]
            stages = {"original": (0, TRAINED), "unlearned": (TRAINED, turn), "recovered": (turn, TRAINED + AFTER)}
            for stage, (first, last) in [*stages.items()][: 2 + recovers]:
                rounds = [r for r in range(first, last + 1) if r == last or (r - first) % every == 0]
                about = {
                    "scenario": "small",
                    "method": method.name,
                    "trial": method.name,
                    "model": f"{method.name}.{stage}",
                }
                values = numbers(draw, (0.5, 0.51), len(rounds)) if stage != "original" else [0.5] * len(rounds)
                rows += [
                    {**about, "seed": seed, "stage": stage, "round": r, "metric": "accuracy", "value": value}
                    for r, value in zip(rounds, values, strict=True)
                    if r <= end and first <= end
                ]
            ran = max(row["round"] for row in rows if row["method"] == method.name and row["seed"] == seed)
            if ran < TRAINED + AFTER:
                cut[method.name, seed] = ran
        entry = make_entry("curves", metrics=("accuracy",), from_training=True, methods=methods, seeds=seeds, chosen={})
        [small] = entry.scenarios
        small = small.model_copy(update={"rounds": (TRAINED, AFTER), "requests": requests})
        entry = entry.model_copy(update={"scenarios": (small,)})
        result = made(entry, pd.DataFrame(rows).assign(device=None, published=False))
        said.update(check_curves(result, small.request_rounds, cut, len(seeds), turns))
    assert min(said[claim] for claim in ("0", "never", "later", "some diverged", "all diverged", "turn")) > 20


def method_of(name: str, recovers: bool) -> Method:
    trial = Trial(name=name, rate=0.1, values={}, unlearned=name, recovered=name if recovers else "")
    return Method(name=name, label=name, in_paper=True, post_training="after", trials={"small": (trial,)})


def check_curves(
    result: Result, requests: list[int], cut: dict[tuple[str, int], int], seeds: int, turns: dict[str, int]
) -> Iterator[str]:
    for name, text, back, *_ in cells(result.body)[1:]:
        rounds = sorted(last for (method, _), last in cut.items() if method == name)
        when = f"diverged after {', '.join(f'round {r}' for r in rounds)}"
        if len(rounds) == seeds:
            assert text.endswith(f"→ {when}")
            assert back == "–"
            yield "all diverged"
            continue
        assert (f"({len(rounds)} of {seeds} seeds {when})" in text) is bool(rounds)
        if rounds:
            yield "some diverged"
        own = result.frame[(result.frame["method"] == name) & (result.frame["metric"] == "accuracy")]
        before, after = 0.5, own[own["stage"] != "original"].sort_values("round")
        expected = []
        for k, asked in enumerate(requests):
            until = requests[k + 1] if k + 1 < len(requests) else after["round"].max()
            window = after[(after["round"] > asked - (not k)) & (after["round"] <= until)]
            near = [
                (r, round(mean - before, 9) >= -0.01) for r, mean in zip(window["round"], window["mean"], strict=True)
            ]
            stays = [r for r, _ in near if all(good for later, good in near if later >= r)]
            expected.append("never" if not stays else "0" if stays[0] == near[0][0] else str(stays[0] - asked))
            before = window["mean"].iloc[-1]
        assert back == ", ".join(expected)
        yield from ("later" if number.isdigit() and number != "0" else number for number in expected)
    for name, told in found(r"Post-training of (.*?) starts after round (\d+)", result.notes):
        assert int(told) == turns[name]
        yield "turn"


# ---- tables --------------------------------------------------------------------------------------------------------


def test_a_table_says_of_the_backdoor_and_marks_what_its_cells_show() -> None:
    said: Counter[str] = Counter()
    names = ("scratch", "one", "two", "three")
    methods = (make_scratch(), *(method_of(name, recovers=name != "three") for name in names[1:]))
    for draw in frames():
        seeds = tuple(range(int(draw.integers(1, 4))))
        frame, drawn = table_frame(draw, methods, seeds)
        entry = make_entry("table", metrics=("asr", "r_acc"), methods=methods, seeds=seeds, chosen={})
        result = made(entry, frame)
        said.update(check_words(result))
        said.update(check_marks(result, drawn))
        said.update(check_bold(result))
    claims = ("held", "hardly", "r", "↑", "one seed", "bold", "not bold")
    assert min(said[claim] for claim in claims) > 10, said


def table_frame(
    draw: Draw, methods: tuple[Method, ...], seeds: tuple[int, ...]
) -> tuple[pd.DataFrame, dict[tuple[str, int], list[tuple[float, float]]]]:
    """Return rows of models, and of each method and seed whose models are whole (ASR, distance) by stage."""
    models: list[tuple[str, str, tuple[float, ...]]]
    models = [("original", "original", (0.5,)), ("scratch", "unlearned", (0.1,))]
    models += [
        (method.name, stage, (0.1, 0.15)) for method in methods[1:] for stage in method.trials["small"][0].models
    ]
    kept = draw.random() < 0.3
    rows, drawn = [], dict[tuple[str, int], list[tuple[float, float]]]()
    gone: set[tuple[str, int]] = set()
    for (name, stage, limits), seed in product(models, seeds):
        about = {"scenario": "small", "method": name, "trial": name, "model": f"{name}.{stage}", "stage": stage}
        if draw.random() < (0.02 if name == "original" else 0.08):
            gone.add((name, seed))
        asr, acc, far = (numbers(draw, near, 1)[0] for near in (limits, (0.5, 0.7), (0.2, 0.3)))
        asr = min(asr + 0.4, 1) if kept and name not in ("original", "scratch") else asr
        values = {"asr": asr, "r_acc": acc, "r_acc_std": 0.1, "distance": far}
        values = {"diverged_round": 3.0} if (name, seed) in gone else values
        rows += [{**about, "seed": seed, "round": -1, "metric": metric, "value": x} for metric, x in values.items()]
        drawn.setdefault((name, seed), []).append((asr, far))
    whole = {key: values for key, values in drawn.items() if key not in gone}
    return pd.DataFrame(rows).assign(published=False), whole


def table_cells(result: Result) -> dict[str, list[str]]:
    """Return the cells of ASR and R-Acc by the label of their row."""
    return {line[0]: line[2:] for line in cells(result.body)[1:]}


def value_of(cell: str) -> float:
    return float(cell.strip("*").partition(" ")[0].partition(",")[0])


def check_words(result: Result) -> Iterator[str]:
    text, shown = " ".join(result.words[0]), table_cells(result)
    if any("diverged" in shown[name][0] for name in ("ω⁰", "Scratch")):
        assert text == ""
        return
    original = value_of(shown["ω⁰"][0])
    hardly = "The backdoor hardly took hold" in text
    assert hardly is (original < 0.5)
    [(before, again)] = found(r"the ASR of ω⁰ is (\d\.\d+).*?(?:that of retraining|has) (\d\.\d+)[.,]", text)
    assert [float(before), float(again)] == [original, value_of(shown["Scratch"][0])]
    yield "hardly" if hardly else "held"


def check_marks(result: Result, drawn: dict[tuple[str, int], list[tuple[float, float]]]) -> Iterator[str]:
    shown = table_cells(result)
    used: set[tuple[str, bool]] = set()
    for name in ("one", "two"):
        own = [values for (method, _), values in drawn.items() if method == name]
        cell = shown[f"{name}²"][0]
        mark = (re.findall(r"[r↑]", re.sub("diverged", "", cell)) or [""])[0]
        if not own:
            assert not mark
            continue
        rise = [after[0] - before[0] for before, after in own]
        rises = value_of(cell) > value_of(shown[f"{name}¹"][0])
        if len(own) > 1:
            beyond = np.mean(rise) > np.std(rise, ddof=1)
        else:
            beyond = value_of(cell) - value_of(shown[f"{name}¹"][0]) > 0.01 + 1e-9
        nearer = np.mean([after[1] for _, after in own]) < np.mean([before[1] for before, _ in own])
        assert mark == ("" if not rises else "r" if beyond and nearer else "↑")
        if mark:
            yield mark
            used.add((mark, len(own) > 1))
    told = found(r"r: it rises by more than (.*?), and the weights", result.notes)
    assert bool(told) is bool(used)
    for [limit] in told:
        assert ("standard deviation" in limit) is any(several for _, several in used)
        assert ("0.01" in limit) is any(not several for _, several in used)
        yield "one seed" if "0.01" in limit else "several seeds"


def check_bold(result: Result) -> Iterator[str]:
    shown = table_cells(result)
    scratch, original = shown["Scratch"][0], shown["ω⁰"][0]
    known = "diverged" not in scratch
    for mark, metric in product("¹²", (0, 1)):
        column = {name: c for name, c in shown.items() if name[-1] == mark or (name, mark) == ("three", "¹")}
        rivals = {name: value_of(c[metric]) for name, c in column.items() if "diverged" not in c[0]}
        best = set[str]()
        if ("diverged in" not in original and value_of(original) < 0.5) or len(set(rivals.values())) < 2:
            rivals = {}
        if metric and known:
            limit = value_of(scratch) + 0.05 + 1e-9
            rivals = {name: value for name, value in rivals.items() if value_of(column[name][0]) <= limit}
        elif metric:
            rivals = {}
        first, second = ([*sorted(rivals, key=rivals.__getitem__, reverse=bool(metric)), "", ""])[:2]
        if second and apart(result, rivals[first] - rivals[second], first, second, mark, ("asr", "r_acc")[metric]):
            best = {first}
        assert {name for name, c in column.items() if "**" in c[metric]} == best
        yield "bold" if best else "not bold"
        assert not best or "Bold" in result.notes


def apart(result: Result, difference: float, one: str, other: str, mark: str, metric: str) -> bool:
    """Whether Welch's interval of a difference excludes 0."""
    stage = {"¹": "unlearned", "²": "recovered"}[mark]
    rows = result.frame[(result.frame["stage"] == stage) & (result.frame["metric"] == metric)].set_index("method")
    a, b = (float(rows["std"][name.strip("¹²")]) for name in (one, other))
    m, n = (int(rows["n"][name.strip("¹²")]) for name in (one, other))
    if min(m, n) < 2 or not a + b:
        return min(m, n) > 1 and difference != 0
    p = ttest_ind_from_stats(difference, a, m, 0, b, n, equal_var=False).pvalue
    return bool(p < 0.05)


# ---- axes, classes, times, settings ------------------------------------------------------------------------


def test_an_axis_counts_the_models_that_diverged_and_names_a_weak_backdoor() -> None:
    said: Counter[str] = Counter()
    for draw in frames():
        seeds, shared = tuple(range(int(draw.integers(1, 4)))), bool(draw.integers(2))
        x = "recovery.lr" if shared else "unlearning.lr"
        trials = [make_trial(rate, {x: rate}) for rate in (0.1, 0.2, 0.4)]
        trials = [trial.model_copy(update={"unlearned": "ours"}) if shared else trial for trial in trials]
        entry = make_across(*trials, x=x, seeds=seeds)
        frame = make_frame(entry)
        original = (frame["stage"] == "original") & (frame["metric"] == "asr")
        frame.loc[original, "value"] = numbers(draw, (0.5,), int(original.sum()))
        gone = set[tuple[str, int]]()
        models = {model for trial in trials for model in trial.models.values()}
        gone |= {key for key in product(sorted(models), seeds) if draw.random() < 0.07}
        for trial, seed in product(trials, seeds):  # what starts from a model that diverged has diverged
            gone |= {(trial.models["recovered"], seed)} if (trial.models["unlearned"], seed) in gone else set()
        lost = np.array([key in gone for key in zip(frame["model"], frame["seed"], strict=True)])
        told = frame[lost].drop_duplicates(["trial", "seed", "stage"]).assign(metric="diverged_round", value=3.0)
        result = made(entry, pd.concat([frame[~lost], told], ignore_index=True))
        counted = found(r"(\d+) models diverged and are left out\.", result.notes)
        assert counted == ([(str(len(gone)),)] if gone else [])
        said["diverged"] += bool(counted)
        weak = found(r"hardly took hold in Small \(ASR of ω⁰: ([\d.]+)\)", made(entry, frame).notes)
        mean = frame[original]["value"].mean()
        assert weak == ([(f"{mean:.3f}",)] if float(f"{mean:.3f}") < 0.5 else [])
        said["weak"] += bool(weak)
    assert min(said[claim] for claim in ("diverged", "weak")) > 20


def test_the_class_that_most_images_get_is_that_of_the_seeds_that_stay() -> None:
    said: Counter[str] = Counter()
    for draw in frames():
        seeds = tuple(range(int(draw.integers(1, 4))))
        entry = make_entry("classes", metrics=("asr",), methods=(make_method(make_trial(0.2)),), seeds=seeds, chosen={})
        frame, ends = make_frame(entry), {}
        for seed in seeds:
            ends[seed] = int(draw.integers(0, 4)) if draw.random() < 0.3 else 4
            here = (frame["seed"] == seed) & frame["metric"].str.startswith("predicted_0")
            frame.loc[here, "value"] = numbers(draw, (0.5,), int(here.sum()))
            other = (frame["seed"] == seed) & (frame["metric"] == "predicted_1")
            frame.loc[other, "value"] = 1 - frame[here]["value"].to_numpy()
        left = [round <= ends[seed] for round, seed in zip(frame["round"], frame["seed"], strict=True)]
        frame = frame[(frame["metric"] != "seconds") & np.array(left)]
        result = made(entry, frame)
        whole = [seed for seed, end in ends.items() if end == 4]
        rounds = [f"round {end}" for end in sorted(end for end in ends.values() if end < 4)]
        [row] = cells(result.body)[1:]
        when = f"diverged after {', '.join(rounds)}"
        count = "" if not whole else f"{len(rounds)} of {len(seeds)} seeds "
        assert row[0] == "Ours *" + (f" ({count}{when})" if rounds else "")
        after = frame[(frame["round"] == 2) & (frame["stage"] == "unlearned")].set_index(["seed", "metric"])["value"]
        told = found(r"([\d.]+) to class (\d)(?: \(seed (\d)\))?", result.body)
        assert [int(seed or whole[0]) for *_, seed in told] == whole
        for share, image, which in told:
            values = [after[int(which or whole[0]), f"predicted_{k}"] for k in range(2)]
            assert share == f"{max(values):.3f}"
            assert values[int(image)] == max(values)
            said["whole"] += 1
        said["lost"] += bool(rounds)
    assert min(said["whole"], said["lost"]) > 20


def test_a_ratio_of_times_is_over_the_seeds_of_both() -> None:
    said: Counter[str] = Counter()
    for draw in frames():
        seeds = tuple(range(int(draw.integers(1, 4))))
        entry = make_entry("runtime", metrics=("steps",), seeds=seeds)
        frame = make_frame(entry)
        whole = {m: [s for s in seeds if draw.random() < 0.7] for m in ("scratch", "ours")}
        left = [s in whole.get(m, ()) for m, s in zip(frame["method"], frame["seed"], strict=True)]
        frame = frame[left]
        spent = frame[frame["metric"] == "seconds"].groupby(["method", "seed"])["value"].sum()
        scaled = {"scratch": spent.get("scratch", spent) * 200 / 2, "ours": spent.get("ours", spent) * 200 / 4}
        shown = {line[0].strip(" *").lower(): line[1:] for line in cells(made(entry, frame).body)[1:]}
        for name, (ratio, seconds, _) in shown.items():
            both = [seed for seed in whole["scratch"] if seed in whole[name]]
            if not whole[name]:
                assert (ratio, seconds) == ("diverged", "–")
                continue
            lost = len(seeds) - len(whole[name])
            assert seconds.endswith(f", {lost} diverged") is bool(lost)
            assert value_of(seconds) == pytest.approx(np.mean([scaled[name][s] for s in whole[name]]), abs=0.006)
            expected = [scaled[name][s] / scaled["scratch"][s] for s in both]
            assert ratio == "–" if not both else value_of(ratio) == pytest.approx(np.mean(expected), abs=0.006)
            said["ratio" if both else "none"] += 1
    assert min(said["ratio"], said["none"]) > 20


def test_settings_contradict_the_paper_where_their_cells_do() -> None:
    said: Counter[str] = Counter()
    for draw in frames():
        printed = {name: float(value) for name, value in test_sampling_table.PRINTED.items()}
        ours = test_sampling_table.CIFAR.model_copy(update={"samples": int(draw.choice([20, 83, 100]))})
        printed["all_samples"] = float(draw.choice([20, 20.4, 20.6, 83, 83.5, 84.6, 100])) * 600
        printed[draw.choice(["clients", "clients_per_round", "rounds", "steps", "batch_size"])] *= draw.choice([1, 2])
        entry = test_sampling_table.entry(ours)
        result = made(entry, test_sampling_table.frame(**printed))
        head, row = cells(result.body)
        cell = dict(zip(head, row, strict=True))
        told = found(r"CIFAR-10: N is (\d+), not (\d+)(?:, so that ρ_S is ([\d.]+), not ([\d.]+))?\.", result.notes)
        for n, theirs, rho, its_rho in told:
            assert (n, theirs) == (cell["N"], cell["N paper"])
            assert n != theirs
            assert cell["M"] == cell["M paper"]
            same = all(cell[name] == cell[f"{name} paper"] for name in "KREb")
            assert (rho, its_rho) == ((cell["ρ_S"], cell["ρ_S paper"]) if same else ("", ""))
            said["so" if rho else "n"] += 1
    assert min(said["so"], said["n"]) > 20
