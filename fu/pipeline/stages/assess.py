"""Run one audit on the last models of a trial, one per seed, against retrained and original models (`fu.audits`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from fu import plugins
from fu.audits.models import Models, paired
from fu.pipeline.stages.common import Options, atomic_outputs, run, write_rows
from fu.pipeline.stages.common import Spec as Base
from fu.plugins import Kind

COLUMNS = ("first", "metric", "run", "value")
REPEATS = "repeats"  # metric: number of repeats without a diverged model


class Spec(Base):
    """The audit, and the numbers of first repeats on which it is run; the last number is that of all."""

    stage = "assess"
    audit: Annotated[str, Kind("audits")]
    firsts: tuple[int, ...]


@dataclass(frozen=True)
class Predicted:
    """Predictions on an audit's probes by models of the trial, of retraining and of the original training."""

    unlearned: Path
    retrained: Path
    original: Path

    def models(self) -> Models:
        """Return the logits of all repeats without a non-finite one."""
        from fu.evaluation import predictions

        kinds = (
            predictions.load(file, predictions.REPEATS) for file in (self.unlearned, self.retrained, self.original)
        )
        labels = predictions.load(self.unlearned, predictions.LABELS)
        arrays = [{name: value.numpy() for name, value in one.items()} for one in (labels, *kinds)]
        return paired(*arrays)


@dataclass(frozen=True)
class Files(Predicted):
    """The predictions and the audit's results."""

    audited: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Write a row for each number of repeats and metric, and for all repeats the audit's results for each run.

    Results are not corrected for the number of methods, so that a further method changes nothing for the others.
    """
    models, audit = files.models(), plugins.load("audits", spec.audit)
    rows = [row for first in spec.firsts for row in _rows(audit, first, models.first(first))]
    if hasattr(audit, "runs") and min(models.repeats.values()) >= audit.LEAST:
        rows += [
            {"first": spec.firsts[-1], "metric": f"{spec.audit}: {name}", "run": run, "value": value}
            for name, values in audit.runs(models).items()
            for run, value in enumerate(values)
        ]
    with atomic_outputs(options, files.audited) as (part,):
        write_rows(part, rows, COLUMNS)


def _rows(audit: ModuleType, first: int, models: Models) -> Iterator[dict[str, Any]]:
    """Yield the number of models and, if enough did not diverge, the metrics."""
    values = {REPEATS: models.repeats["unlearned"]}
    if min(models.repeats.values()) >= audit.LEAST:
        values |= audit.audit(models)
    yield from ({"first": first, "metric": metric, "value": value} for metric, value in values.items())


if __name__ == "__main__":
    run(Spec, Files, main)
