"""Draw the partition of a data set: everything random that later stages share."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from fu import plugins
from fu.data import archives
from fu.data.dataset import about
from fu.data.partition import draw
from fu.pipeline.stages.common import Options, atomic_outputs, run
from fu.pipeline.stages.common import Spec as Base
from fu.plugins import Choice, Kind


class Spec(Base):
    """What the partition is drawn from; `forget`: how many clients, or which."""

    stage = "partition"
    dataset: Annotated[str, Kind("datasets")]
    seed: int
    samples: int | None
    clients: int
    partition: Annotated[Choice, Kind("partitions")]
    train_share: float
    validation_share: float
    forget: int | tuple[int, ...]
    attack: Annotated[Choice | None, Kind("attacks")]


@dataclass(frozen=True)
class Files:
    """From the archive to the partition."""

    data: Path
    partition: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Draw and write."""
    arrays = archives.read(files.data, spec.dataset)
    labels, classes = np.concatenate([arrays["y_train"], arrays["y_test"]]), about(spec.dataset).classes
    params = plugins.params("partitions", spec.partition, "partition")
    deal = partial(
        plugins.load("partitions", spec.partition.name).deal, classes=classes, clients=spec.clients, p=params
    )
    attack = None
    if spec.attack:
        given = plugins.params("attacks", spec.attack, "attack")
        attack = partial(plugins.load("attacks", spec.attack.name).draw, classes=classes, p=given)
    drawn = draw(
        labels,
        spec.seed,
        spec.samples,
        lambda labels, random: deal(labels, rng=random),
        spec.train_share,
        spec.validation_share,
        spec.forget,
        (lambda train, random: attack(train, rng=random)) if attack else None,
    )
    with atomic_outputs(options, files.partition) as (part,):
        np.savez(part, allow_pickle=False, **drawn.arrays())  # type: ignore[arg-type]


if __name__ == "__main__":
    run(Spec, Files, main)
