"""From predictions, traces and archive to the frames of plots of repeats."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fu.artefacts.entry import Entry
from fu.audits import exposed, nearest, ulira
from fu.audits.models import FORGOTTEN, Models
from fu.evaluation import predictions
from fu.pipeline import frames
from fu.pipeline.paths import Paths
from tests.artefacts.factories import CHOSEN, RATES, ROUNDS, make_audit, make_entry, number
from tests.audits.synthetic import PROBES, labels_of, logits_of
from tests.factories import CLASSES, MARK
from tests.pipeline.results_folder import IMAGES, LABELS, PART, make_results

GONE = PART.train[1]
TRIALS = {CHOSEN: 0.0, "scratch": 0.5, "original": 1.0}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    make_results(tmp_path)
    random = np.random.default_rng(0)
    for trial, shift in TRIALS.items():
        margins = random.normal(size=(9, len(GONE))) + shift * np.arange(len(GONE))
        logits = {probe: torch.from_numpy(logits_of(margins)) for probe in PROBES}
        labels = {probe: torch.from_numpy(labels_of(len(GONE))) for probe in PROBES}
        says = {predictions.ROWS: {FORGOTTEN: torch.from_numpy(GONE)}, predictions.REPEATS: logits}
        predictions.save(tmp_path / f"toy/small/{trial}.predicted.safetensors", labels, says)
    return tmp_path


def entry_of(kind: str, **changes: Any) -> Entry:
    entry = make_entry(kind, rates=RATES, **changes)
    methods = []
    for method in entry.methods:
        trials = tuple(
            trial.model_copy(update={"predicted": (f"small/{trial.name}", "small/original")})
            for trial in method.trials["small"]
        )
        methods.append(method.model_copy(update={"trials": {"small": trials}}))
    return entry.model_copy(update={"methods": tuple(methods)})


def read(entry: Entry, results: Path) -> pd.DataFrame:
    return frames.read(entry, Paths(str(results)), None)


def models(results: Path) -> Models:
    loaded = [predictions.load(results / f"toy/small/{CHOSEN}.predicted.safetensors", predictions.LABELS)]
    loaded += [
        predictions.load(results / f"toy/small/{trial}.predicted.safetensors", predictions.REPEATS) for trial in TRIALS
    ]
    return Models(*({probe: value.numpy() for probe, value in one.items()} for one in loaded))


def test_audits_are_read_of_the_first_repeats(results: Path) -> None:
    found = read(entry_of("epsilon", firsts=(4, 9)), results)
    for first in (4, 9):
        rows = found[found["first"] == first].set_index("metric")["value"]
        expected = ulira.audit(models(results).first(first))
        assert {name: rows[name] for name in expected} == pytest.approx(expected)
        assert rows["repeats"] == first
        assert rows["ulira.found"] == (expected["ulira_epsilon_low"] > 0)
    assert {*found["method"]} == {"ours"}


def test_costs_are_those_of_the_last_round_of_each_phase_in_each_seed(results: Path) -> None:
    found = read(entry_of("pareto"), results)
    for stage, seed in (("unlearned", 0), ("recovered", 1)):
        model = f"{CHOSEN}.{stage}"
        rows = found[(found["stage"] == stage) & (found["seed"] == seed)].set_index("metric")["value"]
        assert rows["bytes_up"] == number(model, "bytes_up", seed, ROUNDS[stage][-1])
        assert rows["seconds"] == 10 * number(model, "seconds", seed)
    assert {*found["method"]} == {"ours"}


@pytest.mark.parametrize("attack", [None, "patch"])
def test_exposed_samples_come_from_the_archive_as_they_were_trained_on(results: Path, attack: str | None) -> None:
    entry = entry_of("exposed")
    scenario = entry.scenarios[0].model_copy(update={"attack": attack})
    found = read(entry.model_copy(update={"scenarios": (scenario,), "attacks": (attack,) if attack else ()}), results)
    order = exposed.indices(models(results))
    number = len(GONE) // 2
    assert found["sample"].tolist() == GONE[order].tolist()
    assert found["exposed"].tolist() == ["most"] * number + ["least"] * number
    assert found["place"].tolist() == [*range(1, len(GONE) + 1)]
    marked = np.isin(GONE[order], PART.backdoored) & (attack is not None)
    shift = np.where(marked, CLASSES // 2, 0)
    assert found["label"].tolist() == ((LABELS[GONE[order]] + shift) % CLASSES).tolist()
    for row, backdoored in zip(found.to_dict("records"), marked, strict=True):
        clean = IMAGES[row["sample"]] / 255
        changed = np.abs(row["pixels"] - clean).max(-1) > 1e-6
        assert changed.sum() == (3 if backdoored else 0)
        assert np.allclose(row["pixels"][changed], MARK * 0.334 + 0.195)
    first = predictions.load(results / f"toy/small/{CHOSEN}.predicted.safetensors", predictions.REPEATS)[FORGOTTEN]
    top = torch.log_softmax(first, -1)[:, order[0], labels_of(len(GONE))[order[0]]]
    assert found["unlearned"].iloc[0] == pytest.approx(float((top - torch.log1p(-top.exp())).mean()), rel=1e-4)


def test_too_few_models_expose_nobody(results: Path) -> None:
    path = results / "toy/small/scratch.predicted.safetensors"
    labels = predictions.load(path, predictions.LABELS)
    few = {probe: says[:3] for probe, says in predictions.load(path, predictions.REPEATS).items()}
    predictions.save(path, labels, {predictions.REPEATS: few})
    assert read(entry_of("exposed"), results).empty


def test_a_repeat_with_infinite_logits_counts_as_diverged(results: Path) -> None:
    path = results / f"toy/small/{CHOSEN}.predicted.safetensors"
    labels = predictions.load(path, predictions.LABELS)
    says = predictions.load(path, predictions.REPEATS)
    says["retained_train"][2, 0, 1] = torch.inf  # of the third of nine, on one probe
    predictions.save(path, labels, {predictions.REPEATS: says})
    found = read(entry_of("epsilon", firsts=(9,)), results).set_index("metric")["value"]
    left = models(results)
    kept = {probe: np.delete(logits, 2, 0) for probe, logits in left.unlearned.items()}
    expected = ulira.audit(Models(left.labels, kept, left.retrained, left.original))
    assert found["repeats"] == 8
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_the_least_exposed_are_the_last_of_all(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "EXPOSED", 1)
    assert len(GONE) > 3
    found = read(entry_of("exposed"), results)
    order = exposed.indices(models(results))
    assert found["sample"].tolist() == GONE[order[[0, -1]]].tolist()
    assert found["place"].tolist() == [1, len(GONE)]


def test_a_p_value_is_the_audit_s_own_however_many_methods_there_are(results: Path) -> None:
    """Thirteen methods are judged as one is, and as controls are."""
    entry = entry_of("epsilon", firsts=(9,))
    of = models(results)
    nearest_alone = nearest.audit(of)["nearest_p"]
    audits = {"nearest": make_audit("nearest")}
    several = {f"m{k}": of for k in range(13)}
    said = frames._said(entry.model_copy(update={"audits": audits}), several)
    assert {one["nearest_p"] for one in said.values()} == {nearest_alone}
    assert 0 < nearest_alone < 1 / 13  # a correction would show
