"""The command of a job: with Snakemake's placeholders for a rule, complete for a terminal."""

import shlex
from dataclasses import fields
from importlib import import_module

from fu.pipeline.paths import OUTPUTS
from fu.pipeline.plan import MAKES, Job, Plan
from fu.pipeline.stages.common import ModelSpec


def arguments(stage: str) -> list[str]:
    """Return the names of the file arguments on a stage's command line."""
    return [field.name for field in fields(import_module(f"fu.pipeline.stages.{stage}").Files)]


def command_line(stage: str) -> str:
    """Return a rule's shell command: the stage's, through the fork server, with its log."""
    module = f"fu.pipeline.stages.{stage}"
    words = [
        f"python -m fu.pipeline.engine.fork_server {module} --spec {{params.spec:q}} --code {{params.code}}",
        "--certificate {output.certificate:q} {params.unless_made}",
    ]
    for name in arguments(stage):
        place = "output" if name in OUTPUTS[stage] else "resources" if name in ("root", "data_dir") else "input"
        words.append(f"--{name.replace('_', '-')} {{{place}.{name}:q}}")
    if stage in MAKES:
        words.append("--chosen {input.chosen:q} --candidates {params.candidates:q}")
    if issubclass(import_module(module).Spec, ModelSpec):
        words.append("--threads {threads} --device {resources.device}")
    return " ".join([*words, "--plugins {resources.plugins:q} 2> {log:q}"])


def complete(plan: Plan, job: Job, python: str) -> str:
    """Return the command that makes a job's outputs, ready for a terminal."""
    words = [python, "-m", f"fu.pipeline.stages.{job.stage}", "--spec", job.json, "--certificate", job.certificate]
    settings = {"root": plan.root, "data_dir": plan.config.data_dir}
    for name in arguments(job.stage):
        value = job.inputs.get(name) or job.outputs.get(name) or settings.get(name) or []
        words += [f"--{name.replace('_', '-')}", *([value] if isinstance(value, str) else value)]
    if job.inputs.get("chosen"):
        words += ["--chosen", *job.listed["chosen"], "--candidates", *job.made]
    words += ["--threads", str(plan.config.threads), "--device", plan.config.device]
    words += ["--plugins", plan.config.plugins] if plan.config.plugins else []
    return shlex.join(words)
