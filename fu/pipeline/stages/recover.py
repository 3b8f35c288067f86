"""Post-training: the retained clients continue training after unlearning; a projection may protect the unlearning."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from fu.pipeline.stages.common import Options, TrainingFiles, TrainingSpec, run
from fu.plugins import Choice, Kind


class Spec(TrainingSpec):
    """What post-training reads, whatever method unlearned; its rounds continue the numbering of unlearning."""

    stage = "recover"
    projection: Annotated[Choice | None, Kind("projections")]
    client_weights: Literal["samples", "equal"]
    first_round: int


@dataclass(frozen=True)
class Files(TrainingFiles):
    """From the unlearned model to the recovered one."""

    original: Path
    unlearned: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Continue training, and write the model."""
    from dataclasses import replace
    from functools import partial

    from fu import plugins
    from fu.evaluation.values import measured
    from fu.federation import model_files, recovery
    from fu.federation.driver import drive
    from fu.federation.task import State
    from fu.pipeline.stages.compute import checkpoint_of, data_of, diverged_outcome, task_of, write_outcome

    data = data_of(spec, files, options, "all")
    task = task_of(spec, data, "unlearning", spec.seed)
    layout, device = task.federation.layout, task.federation.device
    original, _ = model_files.load(files.original, layout)
    unlearned, diverged = model_files.load(files.unlearned, layout)
    checkpoint = checkpoint_of(task, spec, files, options, files.model)
    if original is None or unlearned is None:
        outcome = diverged_outcome(task, diverged)
    else:
        task = replace(task, original=original.to(device))
        start, project = unlearned.to(device), None
        if spec.projection:
            params = plugins.params("projections", spec.projection, f"projection {spec.projection.name}")
            project = partial(plugins.load("projections", spec.projection.name).project, task, params)
        outcome = drive(
            task,
            lambda: State(start),
            lambda state, round: recovery.step(task, state, round, spec.client_weights, project),
            measured(task, data, spec.traced),
            checkpoint,
            str(files.model),
            first_round=spec.first_round,
            evaluate_every=spec.evaluate_every,
            evaluate_last=spec.evaluate_last,
        )
    write_outcome(task, outcome, spec, files, options, checkpoint)


if __name__ == "__main__":
    run(Spec, Files, main)
