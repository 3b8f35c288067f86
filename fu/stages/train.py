"""Train the original model on all clients, and record the histories that methods need."""

import argparse
from pathlib import Path

from safetensors.torch import save_file

from fu import plugins
from fu.federation.driver import drive
from fu.federation.task import State
from fu.stages.common import arguments, run, whole
from fu.stages.compute import checkpoint_of, task_of, write_outcome


def main(argv: list[str] | None = None) -> None:
    """Spec: dataset, model, training, local, rounds, evaluate_every, history, seed."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--histories", type=Path, nargs="*", default=[], help="one output per recorded kind")
    own, rest = parser.parse_known_args(argv)
    args = arguments(__doc__, ["data", "partition"], ["model", "trace", "cost"], rest)
    spec = args.spec
    task = task_of(args, spec["rounds"], "training", "share")
    name, kinds = spec["training"]["name"], tuple(spec["history"])
    way = plugins.load("training", name)
    params = plugins.params("training", name, spec["training"]["params"], f"training {name}")
    checkpoint = checkpoint_of(
        args, "train", {"training": name, "models": spec["model"]["name"]}, [args.data, args.partition]
    )

    def step(state: State, round: int) -> State:
        return way.step(task, params, state, round)

    outcome = drive(
        task,
        lambda: way.start(task, params),
        step,
        checkpoint,
        f"train {args.model.parent}",
        evaluate_every=spec["evaluate_every"],
        kinds=kinds,
    )
    with whole(args.model, args.trace, args.cost, *own.histories) as paths:
        write_outcome(task, outcome, args, paths[:3])
        for kind, path in zip(kinds, paths[3:], strict=True):
            save_file({key: value.cpu().contiguous() for key, value in outcome.histories[kind].items()}, path)
    checkpoint.clear()


if __name__ == "__main__":
    run(main)
