"""Pictures of the forgotten samples that original models expose most and least, with their margins."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from fu import plugins
from fu.audits.models import FORGOTTEN, Models, margins
from fu.pipeline.stages.assess import Predicted
from fu.pipeline.stages.common import Options, atomic_outputs, run
from fu.pipeline.stages.common import Spec as Base
from fu.plugins import Kind

NUMBER = 7  # samples that are exposed most, and as many that are exposed least


class Spec(Base):
    """The data set and the attack, and the audit that ranks the samples."""

    stage: ClassVar[str] = "expose"
    dataset: Annotated[str, Kind("datasets")]
    attack: Annotated[str | None, Kind("attacks")]
    audit: Annotated[str, Kind("audits")]


@dataclass(frozen=True)
class Files(Predicted):
    """Predictions, archive and partition, and the pictures."""

    data: Path
    partition: Path
    exposed: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Write an entry for each sample, most exposed first; none if too many models have diverged.

    `exposed`: most or least; `place` among `of` samples (1: most); `sample`: its row in the data set; `label` and
    `pixels` [n, h, w, c] in [0, 1] as it was trained on; its mean margin under original, retrained, unlearned models.
    """
    models, audit = files.models(), plugins.load("audits", spec.audit)
    enough = min(models.repeats.values()) >= audit.LEAST
    arrays = _exposed(spec, files, models) if enough else {"sample": np.zeros(0, int)}
    with atomic_outputs(options, files.exposed) as (part,):
        np.savez(part, allow_pickle=False, **arrays)


def _exposed(spec: Spec, files: Files, models: Models) -> dict[str, Any]:
    import torch

    from fu.data import clients
    from fu.data.dataset import about
    from fu.data.images import restored
    from fu.evaluation import predictions

    order = plugins.load("audits", spec.audit).indices(models)
    number = min(NUMBER, len(order) // 2)
    places = np.array([*range(number), *range(len(order) - number, len(order))], int)
    chosen = order[places]
    rows = predictions.load(files.unlearned, predictions.ROWS)[FORGOTTEN].numpy()[chosen]
    data = clients.load(files.data, files.partition, spec.dataset, spec.attack, torch.device("cpu"), "share")
    x, y = data.trained_on(rows)
    kinds = {"original": models.original, "retrained": models.retrained, "unlearned": models.unlearned}
    return {
        **{"exposed": np.repeat(["most", "least"], number), "place": places + 1, "of": np.full(len(rows), len(order))},
        **{"sample": rows, "label": y.numpy()},
        **{kind: margins(of[FORGOTTEN], models.labels[FORGOTTEN]).mean(0)[chosen] for kind, of in kinds.items()},
        "pixels": restored(x.permute(0, 2, 3, 1), about(spec.dataset)),
    }


if __name__ == "__main__":
    run(Spec, Files, main)
