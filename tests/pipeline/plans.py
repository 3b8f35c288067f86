"""Plans for tests: the paper of this project with something laid over it, and what its jobs read."""

import json
from functools import cache
from typing import Any

from fu import sources
from fu.artefacts.entry import ORIGINAL
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance import catalogue
from fu.pipeline.settings.papers import read_paper

RUN = "fedosd/mnist-iid/seed0"
PAT50 = "fedosd/fmnist-pat50/seed0"  # of Table 5, which holds the variants of FedOSD
WRITTEN = read_paper("fedosd")
SETTINGS: dict[str, Any] = WRITTEN["settings"]
RATES: list[float] = SETTINGS["grid"]["unlearning.lr"]
MADE = {"train": "trained", "unlearn": "unlearned", "recover": "recovered"}
LOCAL = ("lr", "lr_decay", "batch_size", "local_epochs")
PAPERS = ("fedosd", "safari", "fats", "tradeoffs", "audit")
# No artefact shows what begins at the unlearned models of FedOSD or FUPGA, so that their grids are free to change.
ALONE = {"table5": {"methods": ["fedosd"]}, "recovery_rate": {"methods": ["fedrecovery.rates-free"]}}


def plan(preset: str = "paper", **fedosd: Any) -> Plan:
    """Plan the paper with something laid over its file."""
    return Plan({"preset": preset, "papers": ["fedosd"], "overrides": {"fedosd": fedosd}})


@cache
def made(preset: str = "paper", *papers: str) -> Plan:
    """A plan of papers (none: FedOSD) that no test changes."""
    return Plan({"preset": preset, "papers": list(papers) or ["fedosd"]})


def text(planned: Plan, stage: str, run: str, trial: str | None = None) -> str:
    """Return what a job of a run is given, as JSON; without a trial, the original training's."""
    trial = trial or (ORIGINAL if stage == "train" else None)
    return planned.job(stage, {"run": run} | ({"trial": trial} if trial else {})).json


def spec(planned: Plan, stage: str, run: str, trial: str | None = None) -> dict[str, Any]:
    """Return what a job of a run is given."""
    found: dict[str, Any] = json.loads(text(planned, stage, run, trial))
    return found


def rate(planned: Plan, run: str, trial: str) -> float:
    """Return the rate that a trial unlearns with."""
    return float(spec(planned, "unlearn", run, trial)["local"]["lr"])


def trials(planned: Plan, run: str, method: str) -> list[str]:
    """Return the names of a method's trials."""
    return planned.names[run.rpartition("/")[0], method]


def models(planned: Plan, run: str, trial: str) -> list[str]:
    """Return the names of a trial's models."""
    found = planned.models(run.rpartition("/")[0], trial).values()
    return [f"{job.place.partition('/')[2]}.{MADE[job.stage]}" for job in found]


def files(planned: Plan, *artefacts: str) -> list[str]:
    """Return all files behind artefacts (default: all) of the paper."""
    jobs = planned.jobs(*(("fedosd", name) for name in artefacts))
    return sorted(path for job in jobs for path in job.outputs.values())


def grid(method: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return what gives a method another grid."""
    return {method: {"settings": {"grid": values}}}


def forget_what_was_read() -> None:
    """Read the files of plug-ins again."""
    sources.READ.clear()
    catalogue.forget()
