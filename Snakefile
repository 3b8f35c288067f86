"""Every table and figure of the planned papers. `snakemake -n` shows what would be made."""

import os
import sys
import threading
from pathlib import Path

from snakemake.utils import min_version

import fu
from fu.errors import UserError
from fu.pipeline import digest, fork_server
from fu.pipeline.plan import Plan, command_line

min_version("9.0")
if Path(fu.__file__).resolve().parents[1] != Path(workflow.basedir).resolve():
    sys.exit(
        f"error: {Path(sys.executable).parent} runs the code of {Path(fu.__file__).parents[1]}, not of this folder; "
        "run `make` here, or the snakemake of this folder's .venv."
    )
os.environ["PATH"] = (
    f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # `python` of the jobs
)


configfile: "config.yaml"


envvars:
    "PATH",


try:
    plan = Plan(config)
    targets = plan.targets()
except UserError as error:
    sys.exit(f"error: {error}")


wildcard_constraints:
    run=r"[^/]+/[^/]+/seed\d+",
    scenario=r"[^/]+/[^/]+",
    trial=r"[^/]+",
    evaluation="|".join(plan.evaluations),
    dataset=r"[a-z0-9_]+",
    method=r"[^/]+",
    paper=r"[^/]+",
    artefact=r"[^/]+",


def release():
    """End the scheduler's timers, for which Snakemake would wait (see profiles/default)."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


onstart:
    print(plan.overview(), file=sys.stderr)
    digest.remember()
    fork_server.start()


onsuccess:
    release()


onerror:
    release()


rule all:
    input:
        targets,


include: "workflow/rules/targets.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/partition.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/unlearn.smk"
include: "workflow/rules/recover.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/select.smk"
include: "workflow/rules/publish.smk"
