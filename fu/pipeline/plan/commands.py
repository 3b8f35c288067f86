"""The command line of a job."""

import hashlib
import os
import shlex
from collections.abc import Sequence
from dataclasses import fields
from importlib import import_module
from pathlib import Path

from fu.errors import UserError
from fu.pipeline.plan.plan import Job, Plan
from fu.pipeline.provenance.digest import ROOT

SERVER = "fu.pipeline.engine.fork_server"  # runs a module, and can read its arguments from a file
LONGEST = 100_000  # bytes of a command: a shell takes it as one argument, of which Linux allows 131,071
LONG = Path(".snakemake/commands")  # arguments of longer commands, in files named by their content


def file(name: str) -> str:
    """Return the path of a repository file, absolute unless the repository is the working directory."""
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
    module, *arguments = words(plan, job, plan.config.threads)
    command = shlex.join([python, "-m", module, *arguments])
    return command if _fits(command) else served(python, [module, *arguments])


def served(python: str, words: Sequence[str]) -> str:
    """Return the command that runs a module through the fork server; arguments that are too long go into a file."""
    command = shlex.join([python, "-m", SERVER, *words])
    if _fits(command):
        return command
    module, *arguments = words
    content = os.fsencode("\0".join(arguments))
    path = LONG / hashlib.sha256(content).hexdigest()[:16]
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        raise UserError(f"{path}: the arguments of a job cannot be written: {error.strerror}.") from None
    return shlex.join([python, "-m", SERVER, module, f"@{path}"])


def _fits(command: str) -> bool:
    return len(os.fsencode(command)) <= LONGEST
