"""Files that the stages read, and the same task made by hand: what a stage must hand over, spelled out.

Three clients of unequal size share random images; client 1, which is to be forgotten, has a trigger on ten of its
twelve training samples; the server holds four samples of its own. The rate halves from round to round, so that a
round's number matters.
"""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.attacks import patch
from fu.data.clients import ClientData, Poison
from fu.data.partition import Partition
from fu.data.request import Request
from fu.federation import model_files
from fu.federation.flat import Layout
from fu.federation.local import Federation, LocalTraining, Updates
from fu.federation.task import State, Task, initial_parameters
from fu.pipeline.stages import common, evaluate, partition, recover, train, unlearn
from fu.pipeline.stages.common import Options
from tests.factories import CLASSES, DIGITS, builder, make_partition
from tests.mistakes import contents, write_archive

SEED, ROUNDS, HIDDEN = 11, 3, 4
PART = make_partition((7, 12, 9), server=4, held_out=2)
LOCAL: dict[str, Any] = {"lr": 0.1, "lr_decay": 0.5, "batch_size": 5, "local_epochs": 2, "local_steps": None}
LOCAL |= {"momentum": 0.5, "weight_decay": 0.25}
TRACED = ("backdoor", "utility", "distance", "conflicts")
MODEL: dict[str, Any] = {"dataset": "digits", "attack": "patch", "seed": SEED}
MODEL["model"] = {"name": "mlp", "params": {"hidden": HIDDEN}}
PHASE: dict[str, Any] = {**MODEL, "local": LOCAL, "rounds": ROUNDS, "evaluate_every": 3, "evaluate_last": 2}
PHASE |= {"clients_per_round": None, "with_replacement": False, "traced": TRACED}
DEALT: dict[str, Any] = {  # of a partition: what all share
    **{"seed": 0, "samples": None, "split": "merged", "test": "clients", "clients": 2, "partition": {"name": "iid"}},
    **{"train_share": 0.75, "validation_share": 0.0, "server": 0, "held_out": 0, "absent": 0},
    **{"attacked": 1, "attack": None},
}
OPTIONS = Options(code="the code", device="cpu")
PIXELS = np.random.default_rng(0).integers(0, 256, (49, *DIGITS), dtype=np.uint8)
NORMALISED = (torch.from_numpy(PIXELS) / 255 - 0.195) / 0.334  # digits' mean and deviation
LABELS = np.random.default_rng(1).integers(0, CLASSES, 49, dtype=np.uint8)
BUILD = builder(shape=DIGITS, hidden=HIDDEN)
LAYOUT = Layout(BUILD())


@dataclass(frozen=True)
class Scene:
    """A folder with an archive, a partition, and the names of what stages make."""

    folder: Path
    dataset: str = "digits"

    def __call__(self, name: str) -> Path:
        return self.folder / name

    @property
    def shared(self) -> dict[str, Path]:
        """What every stage reads that computes with models, beside a request."""
        return {"data": self(f"{self.dataset}.npz"), "partition": self("partition.npz")}

    @property
    def given(self) -> dict[str, Any]:
        """The same as the fields of a stage's files: those are forgotten whom the attack marks."""
        return {**self.shared, "request": []}

    @property
    def asked(self) -> dict[str, Any]:
        """The same with the request, if there is one."""
        return {**self.shared, "request": [*self.folder.glob("request.npz")]}

    def outputs(self, model: str) -> dict[str, Any]:
        """What every stage writes that trains."""
        return {"model": self(f"{model}.safetensors"), "trace": self(f"{model}.csv"), "cost": self(f"{model}.json")}

    def rows(self, name: str) -> list[dict[str, str]]:
        """Return the rows of a table file."""
        with self(name).open(newline="") as file:
            return list(csv.DictReader(file))

    def cost(self, model: str) -> dict[str, Any]:
        """Return the cost file of a model."""
        found: dict[str, Any] = json.loads(self(f"{model}.json").read_text())
        return found

    def save(self, model: str, theta: Tensor, diverged: int | None = None) -> Path:
        """Write a model file."""
        model_files.save(self(f"{model}.safetensors"), LAYOUT, theta, diverged)
        return self(f"{model}.safetensors")

    def theta(self, model: str) -> Tensor:
        """Read a model file."""
        found, _ = model_files.load(self(f"{model}.safetensors"), LAYOUT)
        assert found is not None
        return found

    def deal(self, **changes: Any) -> Path:
        """Draw the partition, and return its file."""
        files = partition.Files(self(f"{self.dataset}.npz"), self("partition.npz"))
        partition.main(partition.Spec(**{**DEALT, "dataset": self.dataset, **changes}), files, OPTIONS)
        return files.partition

    def train(self, spec: train.Spec, options: Options = OPTIONS) -> None:
        """Train the original model."""
        files = train.Files(**self.given, **self.outputs("original"), history=self("history.safetensors"))
        train.main(spec, files, options)

    def unlearn(self, spec: unlearn.Spec, options: Options = OPTIONS, *, history: bool = False) -> None:
        """Unlearn from the original model, and from what its training has recorded."""
        files = unlearn.Files(
            **self.asked,
            **self.outputs("unlearned"),
            original=self("original.safetensors"),
            history=[self("history.safetensors")] if history else [],
        )
        unlearn.main(spec, files, options)

    def recover(self, spec: recover.Spec) -> None:
        """Post-train the unlearned model."""
        models: dict[str, Any] = {role: self(f"{role}.safetensors") for role in ("original", "unlearned")}
        recover.main(spec, recover.Files(**self.asked, **self.outputs("recovered"), **models), OPTIONS)

    def evaluate(self, spec: evaluate.Spec) -> list[dict[str, str]]:
        """Evaluate the models of the roles, and return the rows."""
        files = evaluate.Files(
            **self.asked,
            original=self("original.safetensors"),
            models=[self(f"{role}.safetensors") for role in spec.roles],
            traces=[self(f"{role}.csv") for role in spec.roles],
            evaluation=self("evaluation.csv"),
            predictions=self("predictions.safetensors"),
            shadows=[*self.folder.glob("shadows.npz")],
        )
        evaluate.main(spec, files, OPTIONS)
        return self.rows("evaluation.csv")


def make_scene(folder: Path, part: Partition = PART) -> Scene:
    """Write the archive and the partition: the last twelve samples of the archive are test samples."""
    split = {"x_train": PIXELS[:37], "y_train": LABELS[:37], "x_test": PIXELS[37:], "y_test": LABELS[37:]}
    write_archive(folder / "digits.npz", **split)
    np.savez(folder / "partition.npz", allow_pickle=False, **part.arrays())  # type: ignore[arg-type]
    return Scene(folder)


def make_data(poison: Poison = "all", part: Partition = PART, request: Request | None = None) -> ClientData:
    """Return the clients' data: what the files hold."""
    x, y = NORMALISED, torch.from_numpy(LABELS).long()
    mark = partial(patch.mark, part.attack, classes=CLASSES) if part.attack else None
    return ClientData(x, y, part, CLASSES, poison, mark, request)


def make_task(stream: str, poison: Poison, exception: tuple[int, float] | None = None, **more: Any) -> Task:
    """Return the task of a stage, from nothing but the values above."""
    training = LocalTraining(**LOCAL, exception=exception)
    federation = Federation(BUILD(), make_data(poison), training, stream, SEED)
    return Task(federation, BUILD, [1], [0, 2], ROUNDS, SEED, **more)


def model(number: int) -> Tensor:
    """Return a model of its own for each number."""
    return initial_parameters(BUILD, "scene", number)


def noted_tests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets, whenever clients train, how many test and held-out samples their data name."""
    found, train = list[int](), Federation.local_updates

    def noted(self: Federation, *given: Any, **more: Any) -> Updates:
        part = self.data.partition
        found.append(sum(map(len, [*part.test, part.held_out, part.global_test])))
        return train(self, *given, **more)

    monkeypatch.setattr(Federation, "local_updates", noted)
    return found


def loop(state: State, step: Callable[[Any, int], State], rounds: range) -> list[Tensor]:
    """Return the models before the first round and after every round."""
    found = [state.theta]
    for round in rounds:
        state = step(state, round)
        found.append(state.theta)
    return found


def refused(folder: Path, stage: Any, *words: str) -> str:
    """Run a stage from its command line; return the sentence with which it ends, having left the folder as it is."""
    before = contents(folder)
    with pytest.raises(SystemExit) as caught:
        common.run(stage.Spec, stage.Files, stage.main, list(words))
    text = str(caught.value.code)
    assert text.startswith("error: ")
    assert text.endswith(".")
    assert "\n" not in text
    assert contents(folder) == before
    return text.removeprefix("error: ")
