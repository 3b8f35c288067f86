"""Count the training samples of each client, in all and by class."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from fu.data import archives
from fu.data import partition as partitions
from fu.pipeline.stages.common import Options, atomic_outputs, run, write_rows
from fu.pipeline.stages.common import Spec as Base
from fu.plugins import Kind

COLUMNS = ("client", "label", "metric", "value")
METRIC = "training_samples"


class Spec(Base):
    """The data set."""

    stage: ClassVar[str] = "holdings"
    dataset: Annotated[str, Kind("datasets")]


@dataclass(frozen=True)
class Files:
    """Archive and partition, and the counts."""

    data: Path
    partition: Path
    holdings: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Write a row for each client that is present, without a label, and for each class that it holds."""
    arrays = archives.read(files.data, spec.dataset, mapped=True)
    labels, held = np.concatenate([arrays["y_train"], arrays["y_test"]]), partitions.load(files.partition)
    rows: list[dict[str, object]] = []
    for client in held.present:
        own = labels[held.train[client]]
        counts = [("", len(own)), *zip(*(part.tolist() for part in np.unique(own, return_counts=True)), strict=True)]
        rows += [{"client": client, "label": label, "metric": METRIC, "value": count} for label, count in counts]
    with atomic_outputs(options, files.holdings) as (part,):
        write_rows(part, rows, COLUMNS)


if __name__ == "__main__":
    run(Spec, Files, main)
