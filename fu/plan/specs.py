"""The specs: exactly the values that a stage reads, and nothing that cannot change its result.

No paper's name, caption, thread count, memory or device. The seed is added by the plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fu.plan.config import Method, Phase, Settings
from fu.plan.datasets import DATASETS
from fu.plan.digest import ROOT

# Part of every spec that computes: Snakemake's cache between workflows knows no versions.
TORCH = next(
    line.partition("==")[2].split()[0]
    for line in (ROOT / "envs" / "lock.txt").read_text().splitlines()
    if line.startswith("torch==")
)


@dataclass(frozen=True)
class Cell:
    """One method (None: the original training) at one point of its grid in one scenario, settings validated.

    `unlearned`: the point whose unlearned model it has, another method's where only post-training is its own.
    `coordinates`: the settings that the grid sets.
    """

    settings: Settings
    method: Method | None
    unlearned: str = ""
    coordinates: Mapping[str, float | int | str] = field(default_factory=dict)

    @property
    def recovers(self) -> bool:
        """Whether post-training follows: rounds are left after unlearning."""
        return self.method is not None and self.settings.total_rounds > self.settings.unlearning.rounds


def partition(cell: Cell) -> dict[str, Any]:
    """What the partition is drawn from."""
    data = cell.settings.data
    per_client = data.partition.classes_per_client(DATASETS[data.dataset].classes)
    return {**data.model_dump(), "partition": {"kind": data.partition.kind, "classes_per_client": per_client}}


def train(cell: Cell) -> dict[str, Any]:
    """What the original training reads."""
    training = cell.settings.training
    return {
        **_shared(cell),
        "training": training.method.model_dump(),
        "local": _local(training),
        "rounds": training.rounds,
        "evaluate_every": training.evaluate_every,
        "history": training.history,
    }


def unlearn(cell: Cell) -> dict[str, Any]:
    """What a method's unlearning reads."""
    phase = cell.settings.unlearning
    return {
        **_shared(cell),
        "method": _method(cell),
        "local": _local(phase),
        "rounds": phase.rounds,
        "evaluate_every": phase.evaluate_every,
        "conflicts": phase.conflicts,
    }


def recover(cell: Cell) -> dict[str, Any]:
    """What post-training reads, whatever method unlearned; its rounds count on from the unlearning rounds."""
    phase, before = cell.settings.recovery, cell.settings.unlearning
    late = {"late": [before.rounds, before.lr]} if phase.late else {}
    return {
        **_shared(cell),
        "projection": phase.projection.model_dump() if phase.projection else None,
        "local": {**_local(phase), **late},
        "first_round": before.rounds,
        "rounds": cell.settings.total_rounds - before.rounds,
        "client_weights": phase.client_weights,
        "evaluate_every": phase.evaluate_every,
    }


def evaluate(cell: Cell) -> dict[str, Any]:
    """What the evaluation reads."""
    return {**_shared(cell), "evaluators": cell.settings.evaluators}


def _shared(cell: Cell) -> dict[str, Any]:
    settings = cell.settings
    return {"dataset": settings.data.dataset, "model": settings.model.model_dump(), "torch": TORCH}


def _method(cell: Cell) -> dict[str, Any]:
    assert cell.method is not None
    return {"name": cell.method.plugin, "params": cell.method.params}


def _local(phase: Phase) -> dict[str, Any]:
    return phase.model_dump(include={"lr", "lr_decay", "batch_size", "local_epochs"})
