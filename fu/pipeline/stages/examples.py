"""Pictures of a forgotten client's samples, without and with the attack's trigger."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from fu.pipeline.stages.common import Options, atomic_outputs, run
from fu.pipeline.stages.common import Spec as Base
from fu.plugins import Kind

NUMBER = 4  # samples


class Spec(Base):
    """The data set and the attack."""

    stage: ClassVar[str] = "examples"
    dataset: Annotated[str, Kind("datasets")]
    attack: Annotated[str | None, Kind("attacks")]


@dataclass(frozen=True)
class Files:
    """Archive and partition, and the pictures."""

    data: Path
    partition: Path
    examples: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Write the first samples [n] of the first forgotten client, their labels, and pictures [n, h, w, c] in [0, 1]."""
    import torch

    from fu.data import clients
    from fu.data.dataset import about
    from fu.data.images import restored

    data = clients.load(files.data, files.partition, spec.dataset, spec.attack, torch.device("cpu"), "all")
    assert data.mark is not None
    client, facts = data.forgotten[0], about(spec.dataset)
    index = data.partition.train[client][:NUMBER]
    clean, labels = (of.index_select(0, torch.from_numpy(index)) for of in (data.inputs, data.y))
    marked, flipped = data.mark(clean, labels)
    changed = (clean != marked).any(-1).numpy()
    arrays: dict[str, Any] = {
        **{"client": np.full(len(index), client), "sample": index, "label": labels.numpy()},
        **{"label_with_trigger": flipped.numpy(), "changed_pixels": changed.sum((1, 2)), "changed": changed},
        **{"clean": restored(clean, facts), "marked": restored(marked, facts)},
    }
    with atomic_outputs(options, files.examples) as (part,):
        np.savez(part, allow_pickle=False, **arrays)


if __name__ == "__main__":
    run(Spec, Files, main)
