"""Post-training: the retained clients train on after unlearning, with the method's projection if it has one."""

from dataclasses import replace
from functools import partial

from fu import plugins
from fu.evaluation.measure import measure
from fu.federation import recovery, weights
from fu.federation.driver import drive
from fu.stages.common import arguments, run, whole
from fu.stages.compute import checkpoint_of, nothing_left, task_of, write_outcome


def main(argv: list[str] | None = None) -> None:
    """Spec: dataset, model, method, local, client_weights, first_round, rounds, evaluate_every, seed."""
    args = arguments(__doc__, ["data", "partition", "original", "unlearned"], ["model", "trace", "cost"], argv)
    spec = args.spec
    task = task_of(args, spec["rounds"], "unlearning", "all")
    layout, device = task.federation.layout, task.federation.device
    original, _ = weights.load(args.original, layout)
    unlearned, diverged = weights.load(args.unlearned, layout)
    name = spec["method"]["name"]
    method = plugins.load("methods", name)
    params = plugins.params("methods", name, spec["method"]["params"], f"method {name}")
    inputs = [args.data, args.partition, args.original, args.unlearned]
    checkpoint = checkpoint_of(task, args, "recover", inputs)
    if original is None or unlearned is None:
        outcome = nothing_left(task, diverged)
    else:
        task = replace(task, original=original.to(device))
        start = unlearned.to(device)
        supplied = getattr(method, "project", None)
        project = partial(supplied, task, params) if supplied else None
        outcome = drive(
            task,
            lambda: {"theta": start},
            lambda state, round: recovery.step(task, state, round, spec["client_weights"], project),
            partial(measure, task),
            checkpoint,
            f"recover {args.model.parent}/{args.model.stem}",
            first_round=spec["first_round"],
            evaluate_every=spec["evaluate_every"],
        )
    with whole(args.model, args.trace, args.cost) as paths:
        write_outcome(task, outcome, args, checkpoint, paths)
    checkpoint.clear()


if __name__ == "__main__":
    run(main)
