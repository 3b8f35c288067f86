"""Unlearn the forgotten clients with one method, from the original model."""

import argparse
from dataclasses import replace
from pathlib import Path

from fu import plugins
from fu.errors import UserError
from fu.federation import weights
from fu.federation.driver import drive
from fu.federation.task import State
from fu.stages.common import arguments, run, whole
from fu.stages.compute import checkpoint_of, task_of, write_outcome


def main(argv: list[str] | None = None) -> None:
    """Spec: dataset, model, method, local, rounds, evaluate_every, conflicts, seed."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--histories", type=Path, nargs="*", default=[], help="history.{kind}.safetensors files")
    own, rest = parser.parse_known_args(argv)
    args = arguments(__doc__, ["data", "partition", "original"], ["model", "trace", "cost"], rest)
    spec = args.spec
    task = task_of(args, spec["rounds"], "unlearning", "all")
    original, diverged = weights.load(args.original, task.federation.layout)
    if original is None:
        raise UserError(f"{args.original}: the original model diverged in round {diverged}; lower training.lr.")
    device = task.federation.device
    histories = {
        path.stem.removeprefix("history."): {name: value.to(device) for name, value in weights.read(path)[0].items()}
        for path in own.histories
    }
    task = replace(task, original=original.to(device), histories=histories)
    name = spec["method"]["name"]
    method = plugins.load("methods", name)
    params = plugins.params("methods", name, spec["method"]["params"], f"method {name}")
    inputs = [args.data, args.partition, args.original, *own.histories]
    checkpoint = checkpoint_of(args, "unlearn", {"methods": name, "models": spec["model"]["name"]}, inputs)

    def step(state: State, round: int) -> State:
        return method.step(task, params, state, round)

    outcome = drive(
        task,
        lambda: method.start(task, params),
        step,
        checkpoint,
        f"unlearn {args.model.parent}/{args.model.stem}",
        evaluate_every=spec["evaluate_every"],
        count_conflicts=spec["conflicts"],
    )
    with whole(args.model, args.trace, args.cost) as paths:
        write_outcome(task, outcome, args, paths)
    checkpoint.clear()


if __name__ == "__main__":
    run(main)
