"""Relearning: continue training the last models of a trial, one per seed, and measure after every round."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fu.pipeline.stages.common import ModelFiles, Options, RoundsSpec, atomic_outputs, run, write_rows
from fu.plugins import Kind

COLUMNS = ("seed", "attack", "round", "metric", "value")
ORIGINAL = "original"  # in place of an attack: the original model, as it is


class Spec(RoundsSpec):
    """On how many samples of each forgotten client they train, and which evaluators measure."""

    stage = "relearn"
    samples: int
    seeds: tuple[int, ...]
    traced: Annotated[tuple[str, ...], Kind("evaluation")]


@dataclass(frozen=True)
class Files(ModelFiles):
    """`models`: the last ones of the trial, `originals`: those that it starts from; one of each seed."""

    models: list[Path]
    originals: list[Path]
    relearned: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Write a row for each seed, attack, round and metric; round 0 is before the attack, and of the original model.

    A seed in which either model has diverged is left out; a run that diverges ends with the round before.
    """
    from dataclasses import replace

    from fu.evaluation.values import measured
    from fu.federation import model_files, relearning
    from fu.pipeline.stages.compute import data_of, task_of

    data = data_of(spec, files, options, "share")
    taught, others = relearning.shared_out(data, spec.samples)
    shared = task_of(spec, taught, "relearning", 0)
    rows: list[dict[str, Any]] = []
    for seed, *paths in zip(spec.seeds, files.originals, files.models, strict=True):
        original, theta = (model_files.load(path, shared.federation.layout)[0] for path in paths)
        if original is None or theta is None:
            continue
        original = original.to(data.device)
        task = replace(shared, federation=shared.federation.seeded(seed), seed=seed, original=original, memory={})
        measure = measured(task, others, spec.traced)
        rows += _rows(seed, ORIGINAL, measure, [original])
        for attack in relearning.ATTACKS:
            rows += _rows(seed, attack, measure, relearning.relearned(task, theta.to(data.device), attack))
    with atomic_outputs(options, files.relearned) as (part,):
        write_rows(part, rows, COLUMNS)


def _rows(seed: int, attack: str, measure: Callable[[Any], dict[str, float]], thetas: Iterable[Any]) -> Iterator[Any]:
    for round, theta in enumerate(thetas):
        for metric, value in measure(theta).items():
            yield {"seed": seed, "attack": attack, "round": round, "metric": metric, "value": value}


if __name__ == "__main__":
    run(Spec, Files, main)
