"""From predictions of repeats to what an audit says, and to pictures of the samples that are most exposed."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fu.artefacts.auditing import MODELS
from fu.audits import exposed, line, ulira
from fu.audits.models import FORGOTTEN, Models
from fu.evaluation import predictions
from fu.pipeline.stages import assess, expose
from fu.pipeline.stages.common import Options
from tests.audits.synthetic import PROBES, labels_of, logits_of
from tests.factories import CLASSES, MARK
from tests.pipeline.results_folder import IMAGES, LABELS, PART, make_results

GONE = PART.train[1]
KINDS = {"unlearned": 0.0, "retrained": 0.5, "original": 1.0}  # by how much their margins grow from sample to sample


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Write what nine models of each kind predict."""
    random = np.random.default_rng(0)
    for kind, shift in KINDS.items():
        margins = random.normal(size=(9, len(GONE))) + shift * np.arange(len(GONE))
        logits = {probe: torch.from_numpy(logits_of(margins)) for probe in PROBES}
        labels = {probe: torch.from_numpy(labels_of(len(GONE))) for probe in PROBES}
        says = {predictions.ROWS: {FORGOTTEN: torch.from_numpy(GONE)}, predictions.REPEATS: logits}
        predictions.save(tmp_path / kind, labels, says)
    return {kind: tmp_path / kind for kind in KINDS}


def edit(path: Path, **changed: Any) -> None:
    """Replace the logits of some probes."""
    labels, says = predictions.load(path, predictions.LABELS), predictions.load(path, predictions.REPEATS)
    predictions.save(path, labels, {predictions.REPEATS: {**says, **changed}})


def keep_three(path: Path) -> None:
    """Let all models but three diverge."""
    says = predictions.load(path, predictions.REPEATS)
    edit(path, **{probe: of.index_fill(0, torch.arange(3, 9), torch.nan) for probe, of in says.items()})


def models(files: dict[str, Path]) -> Models:
    loaded = [predictions.load(files["unlearned"], predictions.LABELS)]
    loaded += [predictions.load(file, predictions.REPEATS) for file in files.values()]
    return Models(*({probe: value.numpy() for probe, value in one.items()} for one in loaded))


def assessed(files: dict[str, Path], audit: str, *firsts: int) -> pd.DataFrame:
    out = files["unlearned"].with_name("out.csv")
    assess.main(assess.Spec(audit=audit, firsts=firsts), assess.Files(**files, audited=out), Options())
    return pd.read_csv(out).set_index("first")


def test_an_audit_is_of_the_first_repeats(files: dict[str, Path]) -> None:
    found = assessed(files, "ulira", 4, 9)
    for first in (4, 9):
        rows = found.loc[first].set_index("metric")["value"].to_dict()
        assert rows == {MODELS: first, **ulira.audit(models(files).first(first))}
    assert found["run"].isna().all()


def test_what_an_audit_says_of_each_run_is_of_all_repeats(files: dict[str, Path]) -> None:
    found = assessed(files, "line", 4, 9).reset_index()
    each = found[found["run"].notna()]
    assert [*found[found["run"].isna()].groupby("first").size()] == [3, 3]
    expected = [
        [9, f"line: {name}", run, pytest.approx(value)]
        for name, values in line.runs(models(files)).items()
        for run, value in enumerate(values)
    ]
    assert each[["first", "metric", "run", "value"]].to_numpy().tolist() == expected


def test_too_few_models_give_their_number_alone(files: dict[str, Path]) -> None:
    keep_three(files["retrained"])
    for audit in ("ulira", "line"):
        assert assessed(files, audit, 9).drop(columns="run").to_numpy().tolist() == [["repeats", 3]]


def test_a_repeat_with_infinite_logits_counts_as_diverged(files: dict[str, Path]) -> None:
    says = predictions.load(files["unlearned"], predictions.REPEATS)["retained_train"].clone()
    says[2, 0, 1] = torch.inf  # of the third of nine, on one probe
    of = models(files)
    edit(files["unlearned"], retained_train=says)
    found = assessed(files, "ulira", 9).set_index("metric")["value"].to_dict()
    kinds = (of.unlearned, of.retrained, of.original)  # the others keep their numbers
    kept = [{probe: np.delete(logits, 2, 0) for probe, logits in one.items()} for one in kinds]
    expected = ulira.audit(Models(of.labels, *kept))
    assert {name: found[name] for name in ("repeats", *expected)} == {"repeats": 8, **expected}


# ---- pictures --------------------------------------------------------------------------------------------------------


def pictured(files: dict[str, Path], folder: Path, attack: str | None = None) -> dict[str, Any]:
    root, out = make_results(folder / "results"), folder / "out.npz"
    held = {"data": root / "data/digits.npz", "partition": root / "toy/small/seed0/partition.npz"}
    spec = expose.Spec(dataset="digits", attack=attack, audit="exposed")
    expose.main(spec, expose.Files(**files, **held, exposed=out), Options())
    with np.load(out) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("attack", [None, "patch"])
def test_exposed_samples_come_from_the_archive_as_they_were_trained_on(
    files: dict[str, Path], tmp_path: Path, attack: str | None
) -> None:
    found, order = pictured(files, tmp_path, attack), exposed.indices(models(files))
    number = len(GONE) // 2
    assert found["sample"].tolist() == GONE[order].tolist()
    assert found["exposed"].tolist() == ["most"] * number + ["least"] * number
    assert found["place"].tolist() == [*range(1, len(GONE) + 1)]
    assert {*found["of"].tolist()} == {len(GONE)}
    marked = np.isin(GONE[order], PART.backdoored) & (attack is not None)
    shift = np.where(marked, CLASSES // 2, 0)
    assert found["label"].tolist() == ((LABELS[GONE[order]] + shift) % CLASSES).tolist()
    for sample, pixels, backdoored in zip(found["sample"], found["pixels"], marked, strict=True):
        changed = np.abs(pixels - IMAGES[sample] / 255).max(-1) > 1e-6
        assert changed.sum() == (3 if backdoored else 0)
        assert np.allclose(pixels[changed], MARK * 0.334 + 0.195)
    for kind, file in files.items():
        says = torch.log_softmax(predictions.load(file, predictions.REPEATS)[FORGOTTEN], -1)
        top = says[:, order[0], labels_of(len(GONE))[order[0]]]
        assert found[kind][0] == pytest.approx(float((top - torch.log1p(-top.exp())).mean()), rel=1e-4)


def test_the_least_exposed_are_the_last_of_all(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expose, "NUMBER", 1)
    assert len(GONE) > 3
    found, order = pictured(files, tmp_path), exposed.indices(models(files))
    assert found["sample"].tolist() == GONE[order[[0, -1]]].tolist()
    assert found["place"].tolist() == [1, len(GONE)]


def test_too_few_models_expose_nobody(files: dict[str, Path], tmp_path: Path) -> None:
    keep_three(files["retrained"])
    assert {name: len(values) for name, values in pictured(files, tmp_path).items()} == {"sample": 0}
