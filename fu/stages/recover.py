"""Post-training: the retained clients train on after unlearning, with the method's projection if it has one."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from fu import plugins
from fu.errors import UserError
from fu.federation import recovery, weights
from fu.federation.driver import Outcome, drive
from fu.federation.task import State
from fu.stages.common import arguments, run, whole
from fu.stages.compute import checkpoint_of, task_of, write_outcome


def main(argv: list[str] | None = None) -> None:
    """Spec: dataset, model, method, local, client_weights, first_round, rounds, evaluate_every, seed."""
    args = arguments(__doc__, ["data", "partition", "original", "unlearned"], ["model", "trace", "cost"], argv)
    spec = args.spec
    task = task_of(args, spec["rounds"], "unlearning", "all")
    layout, device = task.federation.layout, task.federation.device
    original, _ = weights.load(args.original, layout)
    if original is None:
        raise UserError(f"{args.original}: the original model diverged; lower training.lr.")
    unlearned, diverged = weights.load(args.unlearned, layout)
    task = replace(task, original=original.to(device))
    name = spec["method"]["name"]
    method = plugins.load("methods", name)
    params = plugins.params("methods", name, spec["method"]["params"], f"method {name}")
    inputs = [args.data, args.partition, args.original, args.unlearned]
    checkpoint = checkpoint_of(args, "recover", {"methods": name, "models": spec["model"]["name"]}, inputs)
    supplied: Callable[..., torch.Tensor] | None = getattr(method, "project", None)
    project = partial(supplied, task, params) if supplied else None

    def step(state: State, round: int) -> State:
        return recovery.step(task, state, round, spec["client_weights"], project)

    if unlearned is None:  # nothing to train on: the divergence stays the result
        outcome = Outcome({"theta": task.original_model}, {}, [], 0.0, diverged)
    else:
        start = unlearned.to(device)
        outcome = drive(
            task,
            lambda: {"theta": start},
            step,
            checkpoint,
            f"recover {args.model.parent}/{args.model.stem}",
            first_round=spec["first_round"],
            evaluate_every=spec["evaluate_every"],
        )
    with whole(args.model, args.trace, args.cost) as paths:
        write_outcome(task, outcome, args, paths)
    checkpoint.clear()


if __name__ == "__main__":
    run(main)
