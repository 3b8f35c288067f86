"""Unlearn the forgotten clients with one method, from the original model."""

from dataclasses import replace
from functools import partial

from fu import plugins
from fu.evaluation.measure import measure
from fu.evaluation.watch import conflicts
from fu.federation import weights
from fu.federation.driver import drive
from fu.stages.common import arguments, run, whole
from fu.stages.compute import checkpoint_of, nothing_left, task_of, write_outcome


def main(argv: list[str] | None = None) -> None:
    """Spec: dataset, model, method, local, rounds, evaluate_every, conflicts, seed."""
    lists = {"histories": "the history.KIND.safetensors files that the method needs"}
    args = arguments(__doc__, ["data", "partition", "original"], ["model", "trace", "cost"], argv, lists=lists)
    spec = args.spec
    task = task_of(args, spec["rounds"], "unlearning", "all")
    original, diverged = weights.load(args.original, task.federation.layout)
    device = task.federation.device
    histories = {
        path.stem.removeprefix("history."): {name: value.to(device) for name, value in weights.read(path)[0].items()}
        for path in args.histories
    }
    name = spec["method"]["name"]
    method = plugins.load("methods", name)
    params = plugins.params("methods", name, spec["method"]["params"], f"method {name}")
    inputs = [args.data, args.partition, args.original, *args.histories]
    checkpoint = checkpoint_of(task, args, "unlearn", inputs)

    if original is None:
        outcome = nothing_left(task, diverged)
    else:
        task = replace(task, original=original.to(device), histories=histories)
        outcome = drive(
            task,
            lambda: method.start(task, params),
            lambda state, round: method.step(task, params, state, round),
            partial(measure, task),
            checkpoint,
            f"unlearn {args.model.parent}/{args.model.stem}",
            evaluate_every=spec["evaluate_every"],
            watch=partial(conflicts, task) if spec["conflicts"] else None,
        )
    with whole(args.model, args.trace, args.cost) as paths:
        write_outcome(task, outcome, args, checkpoint, paths)
    checkpoint.clear()


if __name__ == "__main__":
    run(main)
