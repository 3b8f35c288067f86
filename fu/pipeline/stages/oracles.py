"""Put the original and the retrained models of a scenario into one archive, with what they answer on audits' probes.

Others audit their methods from it without training (`fu.pipeline.cli.audit`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from fu.pipeline.stages.common import ModelFiles, Options, atomic_outputs, run
from fu.pipeline.stages.common import Spec as Base
from fu.plugins import Kind


class Spec(Base):
    """The data set and the attack, and what the data card states.

    `settings`: those of the scenario, and under `retraining` those of retraining; `sources`: of a setting, by its name.
    """

    stage: ClassVar[str] = "oracles"
    dataset: Annotated[str, Kind("datasets")]
    attack: Annotated[str | None, Kind("attacks")]
    preset: str
    paper: str
    scenario: str
    label: str
    seeds: tuple[int, ...]
    settings: dict[str, Any]
    sources: dict[str, str]


@dataclass(frozen=True)
class Files(ModelFiles):
    """`original`, `retrained`: a model of each seed; `predicted`: what those of each kind predict; `costs`: of all."""

    original: list[Path]
    retrained: list[Path]
    predicted: list[Path]
    costs: list[Path]
    archive: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Write the archive, whole or not at all."""
    import shutil

    import numpy as np
    import torch
    from safetensors.torch import save_file

    from fu.data import clients
    from fu.data.archives import Arrays
    from fu.evaluation import predictions
    from fu.pipeline.oracles import archive, card, repeats

    request = files.request[0] if files.request else None
    data = clients.load(files.data, files.partition, spec.dataset, spec.attack, torch.device("cpu"), "share", request)
    audited = predictions.audited(data)
    labels = {probe: y.numpy() for probe, (_, y) in audited.items()}
    probes: Arrays = {f"x.{probe}": x.contiguous().numpy() for probe, (x, _) in audited.items()}
    probes |= {f"y.{probe}": y for probe, y in labels.items()}
    digest, arrays = archive.digest_of(spec.settings, probes), {"logits": Arrays(), "margins": Arrays()}
    models: dict[str, Any] = {}
    with atomic_outputs(options, files.archive) as (part,), archive.folder_of(files.archive) as folder:
        for kind, of_seeds, predicted in zip(
            archive.KINDS, (files.original, files.retrained), files.predicted, strict=True
        ):
            found = repeats.load(spec.seeds, of_seeds, predicted)
            save_file(found.weights, folder / f"{kind}.safetensors")
            arrays["logits"] |= {f"{kind}.{probe}": of for probe, of in found.logits.items()}
            arrays["margins"] |= {f"{kind}.{probe}": of for probe, of in found.margins(labels).items()}
            models[kind] = found.about(labels)
        arrays["probes"] = {**probes, archive.DIGEST: np.array(digest)}
        for name, several in arrays.items():
            np.savez(folder / f"{name}.npz", allow_pickle=False, **several)
        shutil.copyfile(files.partition, folder / "partition.npz")
        for file in files.request:
            shutil.copyfile(file, folder / "request.npz")
        stated = spec.model_dump(mode="json", exclude={"dataset", "seeds"}) | {
            **{"format": archive.FORMAT, archive.DIGEST: digest, "models": models, "made": card.made_by(files.costs)},
            "data": card.data_of(files.data, spec.dataset),
            "forgotten": data.forgotten,
            "forgotten_samples": len(data.forgotten_samples),
            "probes": {probe: len(y) for probe, y in labels.items()},
        }
        card.write(stated, folder, files.archive.name)
        archive.write(part, folder)


if __name__ == "__main__":
    run(Spec, Files, main)
