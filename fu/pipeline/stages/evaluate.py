"""Evaluate the models of one trial with every evaluator in the spec, and store their predictions."""

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from fu.pipeline.stages.common import ModelFiles, ModelSpec, Options, atomic_outputs, run, write_rows
from fu.plugins import Kind


class Spec(ModelSpec):
    """The evaluators, and the role of each model: original, unlearned or recovered."""

    stage = "evaluate"
    roles: tuple[str, ...]
    evaluators: Annotated[tuple[str, ...], Kind("evaluation")]


@dataclass(frozen=True)
class Files(ModelFiles):
    """`models` and their `traces` in the order of the roles; `shadows`: one file where an evaluator needs it."""

    original: Path
    models: list[Path]
    traces: list[Path]
    evaluation: Path
    predictions: Path
    shadows: list[Path] = field(default_factory=list)


def main(spec: Spec, files: Files, options: Options) -> None:
    """Evaluate every model; write role, metric, client (of a metric that each has), value, and its logits on probes."""
    import torch

    from fu import plugins
    from fu.data import membership
    from fu.evaluation import predictions
    from fu.evaluation.context import Context
    from fu.evaluation.values import values_of
    from fu.federation import model_files
    from fu.federation.network import Network
    from fu.pipeline.stages.compute import builder_of, data_of

    data = data_of(spec, files, options, "all")
    shadows = membership.load(files.shadows[0]) if files.shadows else None
    network = Network(builder_of(spec, data)(), data.device)
    original, _ = model_files.load(files.original, network.layout)
    reference = None if original is None else original.to(data.device)
    rows: list[dict[str, object]] = []
    probes, logits = predictions.probes(data), dict[str, dict[str, torch.Tensor]]()
    for role, model, trace in zip(spec.roles, files.models, files.traces, strict=True):
        theta, diverged = model_files.load(model, network.layout)
        if theta is None:
            rows.append({"role": role, "metric": "diverged_round", "value": diverged})
            continue
        theta = theta.to(data.device)
        logits[role] = {name: network.logits(theta, x) for name, (x, _) in probes.items()}
        with trace.open(newline="") as file:
            rounds = list(csv.DictReader(file))
        context = Context(network, data, theta, reference, role, rounds, shadows)
        for name in spec.evaluators:
            with torch.no_grad():
                rows += [{"role": role, **row} for row in values_of(plugins.load("evaluation", name), context)]
    with atomic_outputs(options, files.evaluation, files.predictions) as parts:
        write_rows(parts[0], rows, ("role", "metric", "client", "value"))
        predictions.save(parts[1], {name: labels for name, (_, labels) in probes.items()}, logits)


if __name__ == "__main__":
    run(Spec, Files, main)
