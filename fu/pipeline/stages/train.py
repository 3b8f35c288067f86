"""Train a model on the clients that take part, and record the histories that methods need."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fu.pipeline.stages.common import Options, TrainingFiles, TrainingSpec, run
from fu.plugins import Choice, Kind


class Spec(TrainingSpec):
    """What a training reads; `server`: how many of the server's samples it uses (None: it uses none)."""

    stage = "train"
    training: Annotated[Choice, Kind("training")]
    history: Annotated[tuple[str, ...], Kind("histories")]
    server: int | None


@dataclass(frozen=True)
class Files(TrainingFiles):
    """From data and partition to the model."""

    history: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Train, and write the model and what was recorded."""
    from dataclasses import replace

    from fu import plugins
    from fu.evaluation.values import measured
    from fu.federation import plugged
    from fu.pipeline.stages.compute import checkpoint_of, data_of, kept_models, task_of, write_outcome

    data = data_of(spec, files, options, "share")
    task = replace(task_of(spec, data, "training", spec.seed), server=spec.server)
    training = plugged.training_of(spec.training)
    checkpoint = checkpoint_of(task, spec, files, options, files.model)
    task = replace(task, kept=kept_models(task, spec.training, checkpoint))
    outcome = plugged.train(
        task,
        training,
        measured(task, data, spec.traced),
        checkpoint,
        str(files.model),
        evaluate_every=spec.evaluate_every,
        evaluate_last=spec.evaluate_last,
        recorders={kind: plugins.load("histories", kind).record for kind in spec.history},
    )
    write_outcome(task, outcome, spec, files, options, checkpoint)


if __name__ == "__main__":
    run(Spec, Files, main)
