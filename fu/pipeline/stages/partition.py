"""Draw the partition of a data set: everything random that later stages share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fu import plugins
from fu.data import archives
from fu.data.dataset import about
from fu.data.partition import Indices, draw, draw_official
from fu.data.sharing import Sharing
from fu.pipeline.stages.common import Options, atomic_outputs, run
from fu.pipeline.stages.common import Spec as Base
from fu.plugins import Choice, Kind


class Spec(Sharing, Base):
    """What the partition is drawn from; `attacked`: how many clients the attack marks, or which."""

    stage: ClassVar[str] = "partition"
    seed: int
    attacked: int | tuple[int, ...]
    attack: Annotated[Choice | None, Kind("attacks")]


@dataclass(frozen=True)
class Files:
    """From the archive to the partition."""

    data: Path
    partition: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Draw and write."""
    arrays = archives.read(files.data, spec.dataset, mapped=True)
    facts, plugin = about(spec.dataset), plugins.load("partitions", spec.partition.name)
    labels, groups, classes = np.concatenate([arrays["y_train"], arrays["y_test"]]), facts.classes, facts.classes
    if getattr(plugin, "NATURAL", False):
        labels, groups = np.concatenate([arrays[key] for key in archives.OWNERS]), facts.owners or 0
    params = plugins.params("partitions", spec.partition, "partition")

    def dealt(labels: NDArray[Any], random: np.random.Generator) -> list[Indices]:
        return plugin.deal(labels, classes=groups, clients=spec.clients, p=params, rng=random)

    marks = None
    if spec.attack:
        attack, given = plugins.load("attacks", spec.attack.name), plugins.params("attacks", spec.attack, "attack")
        marks = lambda train, random: attack.draw(train, classes=classes, p=given, rng=random)  # noqa: E731
    if spec.split == "merged":
        assert spec.train_share is not None
        shares = spec.train_share, spec.validation_share
        drawn = draw(labels, spec.seed, spec.samples, dealt, *shares, spec.attacked, marks)
    else:
        drawn = draw_official(
            labels,
            len(arrays["y_train"]),
            spec.seed,
            spec.samples,
            dealt,
            spec.validation_share,
            spec.test,
            spec.server,
            spec.held_out,
            spec.absent,
            spec.attacked,
            marks,
        )
    with atomic_outputs(options, files.partition) as (part,):
        np.savez(part, allow_pickle=False, **drawn.arrays())  # type: ignore[arg-type]


if __name__ == "__main__":
    run(Spec, Files, main)
