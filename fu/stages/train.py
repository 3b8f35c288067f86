"""Train the original model on all clients, and record the histories that methods need."""

from functools import partial

from safetensors.torch import save_file

from fu import plugins
from fu.evaluation.measure import measure
from fu.federation.driver import drive
from fu.stages.common import arguments, run, whole
from fu.stages.compute import checkpoint_of, task_of, write_outcome


def main(argv: list[str] | None = None) -> None:
    """Spec: dataset, model, training, local, rounds, evaluate_every, history, seed."""
    lists = {"histories": "one output per recorded kind"}
    args = arguments(__doc__, ["data", "partition"], ["model", "trace", "cost"], argv, lists=lists)
    spec = args.spec
    task = task_of(args, spec["rounds"], "training", "share")
    name, kinds = spec["training"]["name"], tuple(spec["history"])
    way = plugins.load("training", name)
    params = plugins.params("training", name, spec["training"]["params"], f"training {name}")
    checkpoint = checkpoint_of(task, args, "train", [args.data, args.partition])
    outcome = drive(
        task,
        lambda: way.start(task, params),
        lambda state, round: way.step(task, params, state, round),
        partial(measure, task),
        checkpoint,
        f"train {args.model.parent}",
        evaluate_every=spec["evaluate_every"],
        recorders={kind: plugins.load("histories", kind).record for kind in kinds},
    )
    with whole(args.model, args.trace, args.cost, *args.histories) as paths:
        write_outcome(task, outcome, args, checkpoint, paths[:3])
        for kind, path in zip(kinds, paths[3:], strict=True):
            save_file({key: value.cpu().contiguous() for key, value in outcome.histories[kind].items()}, path)
    checkpoint.clear()


if __name__ == "__main__":
    run(main)
