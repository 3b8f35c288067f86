"""Choose the trial of a method's grid that artefacts show."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fu.errors import UserError
from fu.evaluation.selection import Evaluation, choose, score
from fu.pipeline.stages.common import Options, atomic_outputs, run
from fu.pipeline.stages.common import Spec as Base


class Spec(Base):
    """The trials, in order; by which metrics, each with 1, or -1 where lower is better; the roles that are compared.

    `terms` are pairs, as canonical JSON would sort a mapping, and the first metric is the one that must be there.
    """

    stage = "select"
    trials: tuple[str, ...]
    terms: tuple[tuple[str, Literal[1, -1]], ...]
    roles: tuple[str, ...]
    rule: str


@dataclass(frozen=True)
class Files:
    """`evaluations`: trial after trial, one per seed."""

    evaluations: list[Path]
    selection: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Choose, and write what was chosen, by which rule, with all scores."""
    seeds = len(files.evaluations) // len(spec.trials)
    terms = dict(spec.terms)
    measured = [read(path, next(iter(terms))) for path in files.evaluations]
    trials = {trial: measured[k * seeds : (k + 1) * seeds] for k, trial in enumerate(spec.trials)}
    compared = {  # another artefact may need models beyond those compared
        trial: [{role: metrics for role, metrics in one.items() if role in spec.roles} for one in evaluations]
        for trial, evaluations in trials.items()
    }
    scores = {
        trial: {role: score(evaluations, role, terms) for role in spec.roles} for trial, evaluations in compared.items()
    }
    with atomic_outputs(options, files.selection) as (part,):
        chosen = {"selected": choose(compared, terms, spec.roles), "rule": spec.rule, "scores": scores}
        part.write_text(json.dumps(chosen, indent=2) + "\n")


def read(path: Path, first: str) -> Evaluation:
    """Return an evaluation file as role -> metric -> value; each model must have the metric `first`, or diverged."""
    values: dict[str, dict[str, float]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if not row["client"]:
                values.setdefault(row["role"], {})[row["metric"]] = float(row["value"])
    for role, metrics in values.items():
        if "diverged_round" not in metrics and first not in metrics:
            raise UserError(
                f"{path}: the {role} model has no {first!r}, which chooses the best point; every retained client "
                "needs a validation sample (data.validation_share), and the evaluators must measure it."
            )
    return values


if __name__ == "__main__":
    run(Spec, Files, main)
