"""Draw the forget request: which clients or samples to forget."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from fu.data import partition, request
from fu.data.forget import Forget
from fu.pipeline.stages.common import Options, atomic_outputs, run
from fu.pipeline.stages.common import Spec as Base


class Spec(Forget, Base):
    """What the request is drawn from."""

    stage: ClassVar[str] = "request"
    seed: int


@dataclass(frozen=True)
class Files:
    """From the partition to the request."""

    partition: Path
    request: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Draw and write."""
    drawn = request.draw(partition.load(files.partition), spec.seed, spec.clients, spec.samples, spec.requests)
    with atomic_outputs(options, files.request) as (part,):
        np.savez(part, allow_pickle=False, **drawn.arrays())  # type: ignore[arg-type]


if __name__ == "__main__":
    run(Spec, Files, main)
