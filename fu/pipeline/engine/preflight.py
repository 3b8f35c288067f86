"""Checks before the first job: libraries, device, archives. A job would report the same errors, only later."""

import os
from collections.abc import Iterable
from pathlib import Path

from fu.contents import require_place
from fu.data import archives, leaf
from fu.data.dataset import about
from fu.errors import UserError
from fu.pipeline.plan.plan import Job, Plan
from fu.pipeline.provenance import catalogue, digest
from fu.pipeline.stages import data
from fu.pipeline.stages.common import ModelSpec


def check(plan: Plan, jobs: Iterable[Job], here: bool) -> None:
    """Raise `UserError` where jobs are certain to fail; `here`: they run on this machine, in this environment."""
    planned = list(jobs)
    check_archives(plan, planned, here)
    for output in {path for job in planned for path in job.outputs.values()}:
        require_place(Path(output))
    if here:
        models = {(spec.model.name, str(spec.model.params.get("weights"))) for spec in _specs(planned)}
        for name, weights in sorted(models):
            file = catalogue.declared("models", name).get("PRETRAINED")
            if file and weights != "random":
                from fu.data.torchvision_import import check_pretrained

                check_pretrained(file)
        for modules in {digest.modules_of(job.stage, job.spec) for job in planned}:
            digest.check_installed(*modules)
        if plan.config.device == "cuda" and _specs(planned):
            from fu.pipeline.stages.compute import check_device

            check_device("cuda")


def check_archives(plan: Plan, jobs: Iterable[Job], here: bool) -> None:
    """Raise `UserError` where an archive is damaged or too small, or missing and cannot be downloaded."""
    missing: set[str] = set()
    for job in jobs:
        if not isinstance(job.spec, data.Spec) or about(dataset := job.spec.dataset).embedded:
            continue
        path = Path(plan.config.data_dir) / f"{dataset}.npz"
        if os.path.lexists(path):
            _large_enough(plan, dataset, path, archives.check(path, dataset))
        elif job.spec.archive:
            raise UserError(
                f"{path}: results were made from this archive, which is not there; set its folder (DATA_DIR=..., or "
                f"data_dir in config.yaml), or delete {job.certificate} to start from another one."
            )
        elif about(dataset).owners and leaf.exists(path.with_suffix("")):
            continue
        elif not (name := about(dataset).torchvision) or (here and not _available(name, path.parent)):
            missing.add(str(path))
    if missing:
        raise UserError(
            f"missing archives that cannot be downloaded here: {', '.join(sorted(missing))}; put them in "
            "place (docs/data.md) or set their folder (DATA_DIR=..., or data_dir in config.yaml)."
        )


def _specs(planned: Iterable[Job]) -> list[ModelSpec]:
    return [spec for job in planned for spec in job.specs if isinstance(spec, ModelSpec)]


def _available(name: str, data_dir: Path) -> bool:
    from fu.data.torchvision_import import available

    return available(name, data_dir / "torchvision")


def _large_enough(plan: Plan, dataset: str, path: Path, samples: int) -> None:
    for (scenario, _), trial in plan.trials.items():
        wanted = trial.settings.data
        if wanted.dataset == dataset and wanted.samples is not None and wanted.samples > samples:
            raise UserError(
                f"{path}: the archive has {samples} samples, but {scenario} uses {wanted.samples} (data.samples); "
                "use fewer or provide a larger archive."
            )
