"""Compare the predictions of a trial's models with those of repeats of retraining in the same run."""

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from fu.pipeline.stages.common import Options, atomic_outputs, run, write_rows
from fu.pipeline.stages.common import Spec as Base

COLUMNS = ("role", "metric", "value")
PROBES = ("forgotten", "retained")


class Spec(Base):
    """The roles of the trial's models, and that of each repeat's last model."""

    stage: ClassVar[str] = "agree"
    roles: tuple[str, ...]
    repeats: tuple[str, ...]


@dataclass(frozen=True)
class Files:
    """Predictions, as evaluations write them: of the trial, and of each repeat."""

    own: Path
    others: list[Path]
    agreement: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Write a row for each role and metric: means over the repeats.

    A model that diverged predicts nothing: it has no rows and enters no mean.
    """
    from fu.evaluation import predictions
    from fu.evaluation.agreement import disagreement, total_variation

    repeats = [predictions.load(file, role) for file, role in zip(files.others, spec.repeats, strict=True)]
    rows: list[dict[str, object]] = []
    for role in spec.roles:
        own = predictions.load(files.own, role)
        for name, compare in (("disagreement", disagreement), ("variation", total_variation)):
            for probe in PROBES:
                values = [compare(own[probe], one[probe]) for one in repeats if probe in own and probe in one]
                rows += [{"role": role, "metric": f"{name}_{probe}", "value": fmean(values)}] if values else []
    with atomic_outputs(options, files.agreement) as (part,):
        write_rows(part, rows, COLUMNS)


if __name__ == "__main__":
    run(Spec, Files, main)
