"""Every table and figure of the planned papers. `snakemake -n` shows what would be made."""

import os
import sys
import threading
from pathlib import Path

from snakemake.utils import min_version

from fu.errors import UserError
from fu.pipeline import digest, fork_server
from fu.pipeline.commands import command_line
from fu.pipeline.paths import OUTPUTS
from fu.pipeline.plan import Plan

min_version("9.0")
fork_server.announce()
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


onstart:
    print(plan.overview(), file=sys.stderr)
    digest.remember()
    fork_server.start()


# Snakemake waits for the timers of its scheduler (see profiles/default), though nothing is left to schedule.
onsuccess:
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


onerror:
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


rule all:
    input:
        targets,


include: "workflow/rules/targets.smk"


for stage in OUTPUTS:

    include: f"workflow/rules/{stage}.smk"
