"""The stage that draws partitions: what it saves is what is drawn."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fu.data import partition
from fu.pipeline.stages import common
from fu.pipeline.stages import partition as stage
from tests.data.draws import BACKDOOR, IID, LABELS, TESTS, Kind, draw, draw_official, equal, pat
from tests.pipeline.stages.scene import DEALT


def drawn_by_the_stage(folder: Path, tests: int | None = None, **changes: Any) -> Path:
    """Run the stage's command on an archive whose last samples are test samples."""
    labels = LABELS.astype(np.uint8)
    x, archive = np.zeros((len(labels), 20, 20), np.uint8), folder / "digits.npz"
    first = len(labels) - tests if tests else 500
    np.savez(archive, x_train=x[:first], y_train=labels[:first], x_test=x[first:], y_test=labels[first:])
    values = {**DEALT, "clients": 10, "train_share": 6 / 7, "validation_share": 0.1}
    values |= {"dataset": "digits", "attack": {"name": "patch", "params": BACKDOOR.model_dump()}}
    spec, output = common.canonical(stage.Spec(**{**values, **changes})), folder / "made" / "partition.npz"
    argv = ["--spec", spec, "--data", str(archive), "--partition", str(output)]
    common.run(stage.Spec, stage.Files, stage.main, argv)
    return output


@pytest.mark.parametrize("kind", [IID, pat(0.2)], ids=["iid", "pat"])
@pytest.mark.parametrize(
    "changes",
    [{}, {"seed": 3}, {"samples": 300}, {"attacked": (7, 2)}, {"train_share": 0.5, "validation_share": 0.0}],
    ids=["default", "seed", "samples", "attacked", "shares"],
)
def test_the_stage_saves_what_is_drawn_from_train_and_test_samples_merged(
    tmp_path: Path, kind: Kind, changes: dict[str, Any]
) -> None:
    output = drawn_by_the_stage(tmp_path, partition={"name": kind[0], "params": kind[1]}, **changes)
    expected = draw(kind=kind, **changes)
    assert equal(partition.load(output), expected)
    np.savez(tmp_path / "again.npz", allow_pickle=False, **expected.arrays())  # type: ignore[arg-type]
    assert output.read_bytes() == (tmp_path / "again.npz").read_bytes()
    assert [path.name for path in output.parent.iterdir()] == ["partition.npz"]


@pytest.mark.parametrize(
    "changes",
    [{}, {"server": 30}, {"held_out": 20}, {"absent": 3}, {"test": "clients"}, {"samples": 300}, {"seed": 3}],
    ids=["default", "server", "held out", "absent", "test", "samples", "seed"],
)
def test_the_stage_saves_what_is_drawn_from_the_training_samples_alone(tmp_path: Path, changes: dict[str, Any]) -> None:
    values = {"split": "official", "train_share": None, "test": "global", "validation_share": 0.0, **changes}
    output = drawn_by_the_stage(tmp_path, tests=TESTS, **values)
    given = {key: value for key, value in values.items() if key not in ("split", "train_share")}
    expected = draw_official(backdoor=BACKDOOR, **given)
    assert equal(partition.load(output), expected)
    usual = draw_official(backdoor=BACKDOOR, validation_share=0.0)
    assert equal(expected, usual) == (not changes)  # so that each of these changes something


def test_the_stage_draws_no_attack_where_the_spec_has_none(tmp_path: Path) -> None:
    assert equal(partition.load(drawn_by_the_stage(tmp_path, attack=None)), draw(backdoor=None))
