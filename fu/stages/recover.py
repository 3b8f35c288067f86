"""Post-training: the retained clients train on after unlearning; a projection may guard what was unlearned."""

from dataclasses import replace
from functools import partial

from fu import plugins
from fu.evaluation.measure import measure
from fu.federation import recovery, weights
from fu.federation.driver import drive
from fu.stages.common import arguments, run, whole
from fu.stages.compute import checkpoint_of, nothing_left, task_of, write_outcome


def main(argv: list[str] | None = None) -> None:
    """Spec: dataset, model, projection, local, client_weights, first_round, rounds, evaluate_every, seed."""
    args = arguments(__doc__, ["data", "partition", "original", "unlearned"], ["model", "trace", "cost"], argv)
    spec = args.spec
    task = task_of(args, spec["rounds"], "unlearning", "all")
    layout, device = task.federation.layout, task.federation.device
    original, _ = weights.load(args.original, layout)
    unlearned, diverged = weights.load(args.unlearned, layout)
    inputs = [args.data, args.partition, args.original, args.unlearned]
    checkpoint = checkpoint_of(task, args, "recover", inputs)
    if original is None or unlearned is None:
        outcome = nothing_left(task, diverged)
    else:
        task = replace(task, original=original.to(device))
        start = unlearned.to(device)
        project = None
        if spec["projection"]:
            name = spec["projection"]["name"]
            params = plugins.params("projections", name, spec["projection"]["params"], f"projection {name}")
            project = partial(plugins.load("projections", name).project, task, params)
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
