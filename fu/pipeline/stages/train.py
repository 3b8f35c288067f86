"""Train the original model on all clients, and record the histories that methods need."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fu.pipeline.stages.common import Options, TrainingFiles, TrainingSpec, run
from fu.plugins import Choice, Kind


class Spec(TrainingSpec):
    """What the original training reads."""

    stage = "train"
    training: Annotated[Choice, Kind("training")]
    history: Annotated[tuple[str, ...], Kind("histories")]


@dataclass(frozen=True)
class Files(TrainingFiles):
    """From data and partition to the model."""

    history: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Train, and write the model and what was recorded."""
    from fu import plugins
    from fu.federation.driver import drive
    from fu.pipeline.stages.compute import checkpoint_of, measured, task_of, training_of, write_outcome

    task = task_of(spec, files, options, "training", "share")
    training = training_of(spec.training)
    checkpoint = checkpoint_of(task, spec, options, [files.data, files.partition], files.model)
    outcome = drive(
        task,
        lambda: training.start(task),
        lambda state, round: training.step(task, state, round),
        measured(task, spec.traced),
        checkpoint,
        str(files.model),
        evaluate_every=spec.evaluate_every,
        recorders={kind: plugins.load("histories", kind).record for kind in spec.history},
    )
    write_outcome(task, outcome, files, options, checkpoint, files.history)


if __name__ == "__main__":
    run(Spec, Files, main)
