"""What can be known before the first job: libraries, the device, archives. A job would say the same, only later."""

import os
from collections.abc import Iterable
from pathlib import Path

from fu.data import archives
from fu.data.dataset import about
from fu.errors import UserError
from fu.pipeline import digest
from fu.pipeline.plan import Job, Plan
from fu.pipeline.stages.common import ModelSpec


def check(plan: Plan, jobs: Iterable[Job], here: bool) -> None:
    """Raise `UserError` where jobs are certain to fail; `here`: they run on this machine, in this environment."""
    planned = list(jobs)
    missing = []
    for dataset in (job.names["dataset"] for job in planned if job.stage == "data"):
        if about(dataset).embedded:
            continue
        path = Path(plan.config.data_dir) / f"{dataset}.npz"
        if os.path.lexists(path):
            _large_enough(plan, dataset, path, archives.check(path, dataset))
        elif not about(dataset).torchvision:
            missing.append(str(path))
    if missing:
        raise UserError(f"put {' and '.join(missing)} in place: these archives cannot be downloaded (docs/data.md).")
    if here:
        for modules in {digest.modules_of(job.stage, job.spec) for job in planned}:
            digest.check_installed(*modules)
        if plan.config.device == "cuda" and any(isinstance(job.spec, ModelSpec) for job in planned):
            from fu.pipeline.stages.compute import check_device

            check_device("cuda")


def _large_enough(plan: Plan, dataset: str, path: Path, samples: int) -> None:
    for (scenario, _), trial in plan.trials.items():
        wanted = trial.settings.data
        if wanted.dataset == dataset and wanted.samples is not None and wanted.samples > samples:
            raise UserError(
                f"{path}: holds {samples} samples, but {scenario} uses {wanted.samples} (data.samples); use fewer, or "
                "another archive."
            )
