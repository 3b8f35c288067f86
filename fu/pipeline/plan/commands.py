"""The command line of a job."""

import shlex
from dataclasses import fields
from importlib import import_module
from pathlib import Path

from fu.pipeline.plan.plan import Job, Plan
from fu.pipeline.provenance.digest import ROOT


def file(name: str) -> str:
    """Return the path of a file of the repository; absolute if the working directory is another folder."""
    return name if Path.cwd() == ROOT else str(ROOT / name)


def words(plan: Plan, job: Job, threads: int) -> list[str]:
    """Return the module that makes a job's outputs, and its arguments."""
    module = import_module(f"fu.pipeline.stages.{job.stage}")
    given = {"root": plan.root, "data_dir": plan.config.data_dir, **job.outputs, **job.inputs}
    command = [module.__name__, "--spec", job.json, "--certificate", job.certificate]
    for name in [field.name for field in fields(module.Files)]:
        value = given.get(name, [])  # a table has no pictures
        paths = [value] if isinstance(value, str) else value
        command += [f"--{name.replace('_', '-')}", *(map(file, paths) if name == "published" else paths)]
    if job.inputs.get("chosen"):
        command += ["--chosen", *job.listed["chosen"], "--points", *job.listed["points"]]
    command += ["--threads", str(threads), "--device", plan.config.device]
    return [*command, "--plugins", plan.config.plugins] if plan.config.plugins else command


def complete(plan: Plan, job: Job, python: str) -> str:
    """Return the command that makes a job's outputs, ready for a terminal."""
    return shlex.join([python, "-m", *words(plan, job, plan.config.threads)])
