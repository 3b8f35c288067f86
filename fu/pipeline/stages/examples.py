"""Pictures of a forgotten client's samples, without and with the attack's trigger."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from fu.pipeline.stages.common import Options, atomic_outputs, run
from fu.pipeline.stages.common import Spec as Base
from fu.plugins import Kind

if TYPE_CHECKING:
    from torch import Tensor

    from fu.data.dataset import Dataset

NUMBER = 4  # samples


class Spec(Base):
    """The data set and the attack."""

    stage: ClassVar[str] = "examples"
    dataset: Annotated[str, Kind("datasets")]
    attack: Annotated[str | None, Kind("attacks")]


@dataclass(frozen=True)
class Files:
    """From archive and partition to pictures."""

    data: Path
    partition: Path
    examples: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Write the first samples [n] of the first forgotten client, their labels, and pictures [n, h, w, c] in [0, 1]."""
    import torch

    from fu.data import clients
    from fu.data.dataset import about

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
        **{"clean": pixels(clean, facts), "marked": pixels(marked, facts)},
    }
    with atomic_outputs(options, files.examples) as (part,):
        write_arrays(part, arrays)


def pixels(x: "Tensor", facts: "Dataset") -> Any:
    """Return normalised images [n, h, w, c] as the archive has them, in [0, 1]."""
    import torch

    return (x * torch.tensor(facts.std) + torch.tensor(facts.mean)).clamp(0, 1).numpy()


def write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    """Write arrays as .npz, whatever the path ends with."""
    with path.open("wb") as file:
        np.savez(file, **arrays)


if __name__ == "__main__":
    run(Spec, Files, main)
