"""Unlearn the requested clients or samples with one method, starting from the original model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fu.pipeline.stages.common import Options, TrainingFiles, TrainingSpec, run
from fu.plugins import Choice, Kind


class Spec(TrainingSpec):
    """What a method's unlearning reads.

    `training`: the one behind the original model, for a method that retrains, with `server`, how many of the server's
    samples it uses. `watch`: an evaluator that counts something in every round.
    """

    stage = "unlearn"
    method: Annotated[Choice, Kind("methods")]
    training: Annotated[Choice | None, Kind("training")]
    server: int | None
    watch: Annotated[str | None, Kind("evaluation")]


@dataclass(frozen=True)
class Files(TrainingFiles):
    """From the original model to the unlearned one; `history` where the method needs one."""

    original: Path
    history: list[Path]


def main(spec: Spec, files: Files, options: Options) -> None:
    """Unlearn, and write the model."""
    from dataclasses import replace
    from functools import partial

    from fu import plugins
    from fu.data.clients import Poison
    from fu.evaluation.values import measured
    from fu.federation import kept, model_files, plugged, unlearning
    from fu.pipeline.stages import compute

    method = plugins.load("methods", spec.method.name)
    is_control = hasattr(method, "LEFT") or hasattr(method, "CONTROL")
    poison: Poison = "share" if is_control else "all"  # a control trains them as the training did
    params = plugins.params("methods", spec.method, f"method {spec.method.name}")
    data = compute.data_of(spec, files, options, poison)
    tests = plugged.reads_tests(method, params)
    task = compute.task_of(spec, data, "unlearning", spec.seed, tests=tests)
    device = task.federation.device
    original, diverged = model_files.load(files.original, task.federation.layout)
    checkpoint = compute.checkpoint_of(task, spec, files, options, files.model)
    if original is None:
        outcome = compute.diverged_outcome(task, diverged)
    else:
        recorded = {
            kind: model_files.load_history(path, kind, device) for path in files.history for kind in method.needs
        }
        training = plugged.training_of(spec.training) if spec.training else None
        models = kept.KeptModels(files.history[0]) if hasattr(method, "CONTINUES") else None
        if models and task.requests > 1:
            models = compute.writable(checkpoint, partial(models.copied, key=checkpoint.key))
        task = replace(task, original=original.to(device), histories=recorded, training=training, server=spec.server)
        task = replace(task, kept=models)
        outcome = unlearning.unlearn(
            task,
            method,
            params,
            measured(task, data, spec.traced),
            checkpoint,
            str(files.model),
            evaluate_every=spec.evaluate_every,
            evaluate_last=spec.evaluate_last,
            watch=partial(plugins.load("evaluation", spec.watch).count, task) if spec.watch else None,
        )
    compute.write_outcome(task, outcome, spec, files, options, checkpoint)


if __name__ == "__main__":
    run(Spec, Files, main)
