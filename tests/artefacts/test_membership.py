"""The table of attacks: the models before the request beside those after it, and whether the attack had power."""

import re
from itertools import chain, product
from math import nan
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu.artefacts import panels
from fu.artefacts.entry import ORIGINAL, Entry
from fu.artefacts.membership import make
from tests.artefacts.factories import as_training, cells, make_entry, make_frame, make_method, make_scratch, make_trial

METRICS = ("mia_accuracy", "mia_precision", "lira_auc")


def entry(**changes: Any) -> Entry:
    """One training, one method that starts from it, and retraining; one seed unless told otherwise."""
    training = as_training(make_scratch()).model_copy(update={"name": "fedavg", "label": "FedAvg"})
    trial = make_trial(0.2).model_copy(update={"trained": "scratch", "recovered": "", "recovery_rate": None})
    scenario = make_entry("membership").scenarios[0].model_copy(update={"original": None})
    methods = (training, make_scratch(), make_method(trial))
    about = {"metrics": METRICS, "methods": methods, "scenarios": (scenario,), "seeds": (0,), "chosen": {}}
    return make_entry("membership", **{**about, **changes})


def frame(one: Entry, values: dict[tuple[str, str], float], **published: float) -> pd.DataFrame:
    """Return the frame with some numbers set by method and metric."""
    printed = {("ours", "unlearned", name): value for name, value in published.items()}
    rows = make_frame(one, printed)
    rows = rows[rows["method"] != ORIGINAL]
    for (method, metric), value in values.items():
        here = (rows["method"] == method) & (rows["metric"] == metric) & ~rows["published"]
        assert here.any()
        rows.loc[here, "value"] = value
    return rows


AUC = {("fedavg", "mia_auc"): 0.63, ("fedavg", "mia_auc_std"): 0.06}
DEFINED = {(method, "mia_undefined"): 0.0 for method in ("fedavg", "scratch", "ours")}


def test_every_model_has_a_column_and_the_original_one_is_that_of_its_training() -> None:
    one = entry()
    values = {("ours", "mia_accuracy"): 0.5012, ("ours", "mia_accuracy_std"): 0.0034, **AUC, **DEFINED}
    values |= {("fedavg", "mia_accuracy"): 0.61, ("fedavg", "mia_accuracy_std"): 0.02, ("ours", "lira_auc"): 0.498}
    table = cells(make(frame(one, values), one).body)
    heads = [row for row in table if row[0] == "Data"]
    assert heads[0] == ["Data", "FedAvg before", "Scratch", "Ours *"]
    accuracy, _, lira = (row for row in table if row[0] == "Small")
    assert accuracy[1] == "61.00 ± 2.00"
    assert accuracy[3] == "50.12 ± 0.34"
    assert lira[3] == "49.80"


NUMBERS = {
    **{"mia_members": 400.0, "mia_auc": 0.51, "lira_auc": 0.5, "rmia_auc": 0.49},
    **{"mia_members_trained": 100.0, "mia_auc_trained": 0.5, "lira_auc_trained": 0.55, "rmia_auc_trained": 0.55},
}
NONE = "no attack detects members, so that 50% after unlearning says nothing."
ALL = "Shokri's attack 51.00 (45.61 to 56.39), LiRA 50.00 (44.61 to 55.39), RMIA 49.00 (43.61 to 54.39)"
PART = "Shokri's attack 50.00 (39.20 to 60.80), LiRA 55.00 (44.20 to 65.80), RMIA 55.00 (44.20 to 65.80)"
TRAINED = "; 100 of 400 members (25.0%) were used in training"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, f"{ALL}{TRAINED}, on them {PART}; {NONE}"),  # 2.64 sqrt(801 / (12 * 400 ** 2)) = 5.39%
        ({"lira_auc": 0.5539}, "LiRA 55.39 (50.00 to 60.78)"),
        ({"lira_auc": 0.5539}, NONE),
        ({"lira_auc": 0.5541}, "; LiRA detects members."),
        ({"lira_auc": 0.5541, "rmia_auc": 0.6}, "; LiRA and RMIA detect members."),
        (
            {"rmia_auc": 0.6, "mia_auc_trained": 0.7},
            "; RMIA detects members; Shokri's attack detects members used in training.",
        ),
        ({"rmia_auc": 0.6, "rmia_auc_trained": 0.7}, "; RMIA detects members."),
        ({"mia_members_trained": 0.0}, f"{ALL}; 0 of 400 members (0.0%) were used in training; {NONE}"),
        ({"mia_members_trained": None}, f"{ALL}; {NONE}"),
    ],
)
def test_the_table_says_which_attacks_tell_members_on_the_original_model(
    changes: dict[str, float | None], says: str
) -> None:
    one = entry()
    rows = frame(one, {("fedavg", name): value for name, value in NUMBERS.items()})
    for name, value in changes.items():
        here = (rows["method"] == "fedavg") & (rows["metric"] == name)
        rows = rows[~here] if value is None else rows.assign(value=rows["value"].where(~here, value))
    if changes.get("mia_members_trained", 1) in (0.0, None):
        rows = rows[~rows["metric"].str.endswith("auc_trained")]
    body = make(rows, one).body
    assert says in body
    assert body.count("AUC of ") == 1  # of models before the request alone


def test_what_no_shadow_fits_is_said() -> None:
    one = entry()
    others = [method.model_copy(update={"alike": method.retrains}) for method in one.methods]
    body = make(frame(one, AUC), one.model_copy(update={"methods": tuple(others)})).body
    assert (
        "Shadow models train as the model before the request; Ours unlearns otherwise, so that no shadow fits." in body
    )
    alike = tuple(method.model_copy(update={"alike": True}) for method in one.methods)
    assert "no shadow fits" not in make(frame(one, AUC), one.model_copy(update={"methods": alike})).body


# ---- every claim derived again, of frames with lost seeds, ties and divergence --------------------------------------

LABELS = {"mia": "Shokri's attack", "lira": "LiRA", "rmia": "RMIA"}
SHOWN = ("mia_accuracy", "mia_precision", "lira_auc")
AREAS = [f"{attack}_auc{of}" for of in ("", "_trained") for attack in LABELS]
SAID = re.compile(
    r"^(\w+), FedAvg before: AUC of (.*?)"
    r"(?:; ([\d,]+ of [\d,]+ members \([\d.]+%\)) were used in training(?:, on them (.*?))?)?"
    r"; (no attack .*|[^;]* detects? .*)\.$",
    re.MULTILINE,
)
ITEM = re.compile(r"([A-Z][^,(]*) ([\d.]+) \(([\d.]+) to ([\d.]+)\)")
Values = dict[tuple[str, int], dict[str, float]]  # by method and seed


def drawn(random: np.random.Generator, seeds: range) -> Values:
    """Draw the numbers of every model and seed: some diverged, some lost, many within a last digit of a half, or where
    an interval of one seed begins at a half.
    """
    found: Values = {}
    for key in product(("fedavg", "scratch", "ours"), seeds):
        members = int(random.choice([1, 2, 10, 400, 20_000, 4_000_000]))
        trained = int(random.binomial(members, random.choice([0, 0.2])))
        names = [*SHOWN[:2], *(f"{name}_std" for name in SHOWN[:2]), *AREAS[: 6 if trained else 3]]
        near = 0.5 + random.choice([0, 1e-6, 4e-5, 6e-5, 4e-4, -1e-4, 0.02], len(names))
        for name, m in (("mia_auc", members), ("lira_auc_trained", trained)):
            if m > 10 and name in names:
                near[names.index(name)] += 2.64 * ((2 * m + 1) / 12) ** 0.5 / m
        values = np.where(random.random(len(names)) < 0.3, random.uniform(0.2, 1, len(names)), near)
        numbers = dict(zip(names, map(float, values), strict=True))
        numbers |= {"mia_members": members, "mia_members_trained": trained}
        numbers["mia_undefined"] = int(random.choice([0, 0, 7, 100]))
        lost = str(random.choice([*numbers, *["none"] * len(numbers)]))
        numbers = {name: value for name, value in numbers.items() if name not in (lost, f"{lost}_std")}
        found[key] = {"diverged_round": 3.0} if random.random() < 0.15 else numbers
    return found


def mean(found: Values, method: str, metric: str) -> tuple[float, list[int]]:
    """Return a mean over the seeds that have a number (else nan), and which they are."""
    seeds = [seed for (name, seed), numbers in found.items() if name == method and metric in numbers]
    return sum(found[method, seed][metric] for seed in seeds) / max(len(seeds), 1) if seeds else nan, seeds


def intervals(found: Values, of: str) -> list[list[Any]]:
    """Return attack, AUC, low and high in percent of FedAvg's model, from the numbers of each seed alone."""
    out = []
    for attack, label in LABELS.items():
        area, seeds = mean(found, "fedavg", f"{attack}_auc{of}")
        counts = [found["fedavg", seed].get(f"mia_members{of}", 0) for seed in seeds]
        if seeds and all(counts):
            reach = 2.64 * sum((2 * m + 1) / (12 * m * m) for m in counts) ** 0.5 / len(counts)
            out.append([label, 100 * area, 100 * max(area - reach, 0), 100 * min(area + reach, 1)])
    return out


@pytest.mark.whole
def test_every_claim_follows_from_what_is_printed_in_300_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "picture", lambda *_: None)
    random, told, stages = np.random.default_rng(0), set[str](), ("original", "unlearned", "unlearned")
    frames = {f"s{k}": drawn(random, range(int(random.integers(1, 5)))) for k in range(300)}
    one = entry(metrics=SHOWN, seeds=(0, 1, 2, 3))
    names, methods = ("fedavg", "scratch", "ours"), [method.trials["small"] for method in one.methods]
    places = [one.scenarios[0].model_copy(update={"name": name, "label": name}) for name in frames]
    several = [
        method.model_copy(update={"trials": dict.fromkeys(frames, trials)})
        for method, trials in zip(one.methods, methods, strict=True)
    ]
    one = one.model_copy(update={"scenarios": tuple(places), "methods": tuple(several)})
    rows = [
        (place, method, seed, stages[names.index(method)], metric, value)
        for place, found in frames.items()
        for (method, seed), numbers in found.items()
        for metric, value in numbers.items()
    ]
    columns = ["scenario", "method", "seed", "stage", "metric", "value"]
    body = make(pd.DataFrame(rows, columns=columns).assign(trial="any", published=False, round=-1), one).body
    lines: dict[str, list[list[str]]] = {}
    for row in cells(body):
        lines.setdefault(row[0], []).append(row[1:])
    sentences = {said[1]: said for said in SAID.finditer(body)}
    for place, found in frames.items():
        for (metric, line), (k, method) in product(zip(SHOWN, lines[place], strict=True), enumerate(names)):
            (value, of), (spread, same) = (mean(found, method, f"{metric}{end}") for end in ("", "_std"))
            lost = all("diverged_round" in numbers for (name, _), numbers in found.items() if name == method)
            text = f"{100 * value:.2f}" if of else "diverged in 3" if lost else "–"
            assert line[k].startswith(text), (metric, line[k])
            assert (f"{text} ± {100 * spread:.2f}" in line[k]) if of and of == same else "±" not in line[k]
            missing = metric == "mia_precision" and mean(found, method, "mia_undefined")[0] > 0
            assert ("undefined" in line[k]) == (missing and not lost)
        whole, part, said = intervals(found, ""), intervals(found, "_trained"), sentences.get(place)
        assert (said is None) == (not whole)
        if said is None:
            continue
        _, first, trained, second, verdict = said.groups()
        read = [[[label, *map(float, x)] for label, *x in ITEM.findall(text or "")] for text in (first, second)]
        for item, derived in zip(chain(*read), whole + (part if trained else []), strict=True):
            assert item[0] == derived[0]
            assert item[1:] == pytest.approx(derived[1:], abs=0.00501)
        tell = [[item[0] for item in items if item[2] > 50] for items in read]
        tell[1] = [label for label in tell[1] if label not in tell[0]]
        claims = [
            f"{' and '.join(filter(None, [', '.join(who[:-1]), who[-1]]))} detect{'s' * (len(who) == 1)} {whom}"
            for who, whom in zip(tell, ("members", "members used in training"), strict=True)
            if who
        ]
        assert f"{verdict}." == ("; ".join(claims) + "." if claims else NONE)
        told |= {*claims}
        counts = [numbers for (method, _), numbers in found.items() if method == "fedavg" and "mia_members" in numbers]
        some, every = (
            sum(numbers.get(name, nan) for numbers in counts) for name in ("mia_members_trained", "mia_members")
        )
        known = bool(counts) and not np.isnan(some)
        assert trained == (f"{some:,.0f} of {every:,.0f} members ({100 * some / every:.1f}%)" if known else None)
    assert len(told) > 5  # the frames reach claims of every kind


def test_what_the_spread_is_is_said() -> None:
    one = entry()
    body = make(frame(one, AUC), one).body
    assert "±: standard deviation over the 100 attacks on a model" in body
    assert "it is not that over trainings." in body


def test_attacks_without_a_precision_are_counted_beside_it() -> None:
    one = entry()
    values = {**AUC, **DEFINED, ("ours", "mia_undefined"): 7.0, ("ours", "mia_precision"): 0.6}
    table = cells(make(frame(one, values), one).body)
    assert [row[3].endswith(", 7 undefined") for row in table if row[0] == "Small"] == [False, True, False]
    assert not any("undefined" in cell for row in table for cell in row[1:3])


def test_numbers_are_means_over_seeds_beside_the_paper_s() -> None:
    one = entry(seeds=(0, 1), published="x")
    values = {("ours", "mia_accuracy"): 0.5, ("ours", "mia_accuracy_std"): 0.01, **AUC, **DEFINED}
    rows = frame(one, values, mia_accuracy=0.4835, mia_accuracy_std=0.0528)
    first = (rows["method"] == "ours") & (rows["metric"] == "mia_accuracy") & (rows["seed"] == 0)
    rows.loc[first, "value"] = 0.54
    result = make(rows, one)
    accuracy, precision, _ = [row for row in cells(result.body) if row[0] == "Small"]
    assert len(precision) == 4  # of which the paper says nothing
    assert "diff" not in result.body
    assert accuracy[-2:] == ["52.00 ± 1.00", "48.35 ± 5.28"]
    assert len(accuracy) == 6  # a model before the request is not in the paper
    row = result.frame[(result.frame["method"] == "ours") & (result.frame["metric"] == "mia_accuracy")].iloc[0]
    assert row["difference"] == pytest.approx(0.52 - 0.4835)
    assert row["std"] == pytest.approx(0.04 / 2**0.5)


def test_without_a_retrained_model_the_table_says_so() -> None:
    one = entry()
    bare = one.model_copy(update={"methods": tuple(method for method in one.methods if not method.retrains)})
    assert "No retrained model is shown" in make(frame(bare, AUC), bare).body
    assert "No retrained model is shown" not in make(frame(one, AUC), one).body
