"""Evaluate the models of one run with every evaluator that the spec names."""

import csv
from dataclasses import replace

import torch

from fu import plugins
from fu.evaluation.context import Context
from fu.federation import weights
from fu.stages.common import arguments, run, whole, write_rows
from fu.stages.compute import task_of


@torch.no_grad()
def main(argv: list[str] | None = None) -> None:
    """Spec: dataset, model, evaluators, seed. The role of `x.unlearned.safetensors` is `unlearned`."""
    lists = {"models": "models of the run", "traces": "their traces, in the same order"}
    args = arguments(__doc__, ["data", "partition", "original"], ["output"], argv, lists=lists)
    task = task_of(args, 0, "evaluation", "all")
    layout, device = task.federation.layout, task.federation.device
    original, _ = weights.load(args.original, layout)
    if original is not None:
        task = replace(task, original=original.to(device))
    rows: list[dict[str, object]] = []
    for model, trace in zip(args.models, args.traces, strict=True):
        role = model.stem.rpartition(".")[2]
        theta, diverged = weights.load(model, layout)
        if theta is None:
            rows.append({"role": role, "metric": "diverged_round", "value": diverged})
            continue
        with trace.open(newline="") as file:
            context = Context(task, role, theta.to(device), list(csv.DictReader(file)))
        for name in args.spec["evaluators"]:
            found = plugins.load("evaluation", name).evaluate(context)
            rows += [{"role": role, "metric": metric, "value": value} for metric, value in found.items()]
    with whole(args.output) as (part,):
        write_rows(part, rows, ["role", "metric", "value"])


if __name__ == "__main__":
    run(main)
