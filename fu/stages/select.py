"""Choose the point of a method's grid that artefacts show."""

import csv
import json
from pathlib import Path

from fu.errors import UserError
from fu.evaluation.selection import RULE, Evaluation, choose, score
from fu.stages.common import arguments, run, whole


def main(argv: list[str] | None = None) -> None:
    """Spec: points, the names in order. The evaluations are files {point}.evaluation.csv, one per seed."""
    lists = {"evaluations": "the evaluations of every point and seed"}
    args = arguments(__doc__, [], ["output"], argv, lists=lists, compute=False)
    points: dict[str, list[Evaluation]] = {point: [] for point in args.spec["points"]}
    for path in args.evaluations:
        evaluation = read(path)
        for role, metrics in evaluation.items():
            if "diverged_round" not in metrics and "r_acc_validation" not in metrics:
                raise UserError(
                    f"{path}: the {role} model has no R-Acc on validation data to choose by; every retained client "
                    "needs a validation sample (data.validation_share), and the evaluators must include utility."
                )
        points[path.name.removesuffix(".evaluation.csv")].append(evaluation)
    found = {
        point: {role: score(seeds, role) for role in ("unlearned", "recovered")} for point, seeds in points.items()
    }
    with whole(args.output) as (part,):
        part.write_text(json.dumps({"selected": choose(points), "rule": RULE, "scores": found}, indent=2) + "\n")


def read(path: Path) -> Evaluation:
    """Return an evaluation file as role -> metric -> value."""
    values: dict[str, dict[str, float]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            values.setdefault(row["role"], {})[row["metric"]] = float(row["value"])
    return values


if __name__ == "__main__":
    run(main)
