"""Every table and figure of the planned papers. `snakemake -n` shows what would be made."""

import atexit
import gc
import logging
import os
import signal
import sys
import threading
from functools import cache
from pathlib import Path

from snakemake.logging import logger
from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

from fu.errors import UserError
from fu.pipeline import digest, estimates
from fu.pipeline.commands import command_line
from fu.pipeline.engine import (
    cluster,
    fork_server,
    groups,
    preflight,
    runs,
    screen,
    snapshot,
)
from fu.pipeline.paths import OUTPUTS
from fu.pipeline.pending import Pending
from fu.pipeline.plan import Plan
from fu.pipeline.settings.papers import read_yaml

min_version("9.0")
gc.disable()  # building the DAG makes millions of objects and no garbage: saves an eighth of a dry run
fork_server.announce()
os.environ["PATH"] = (
    f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # `python` of the jobs
)


try:  # report mistakes in one sentence, before Snakemake does
    if Path(snapshot.file("config.yaml")).exists():
        read_yaml(Path(snapshot.file("config.yaml")))
except UserError as error:
    sys.exit(f"error: {error}")


configfile: snapshot.file("config.yaml")


envvars:
    "PATH",


try:
    snapshot.enter(config, workflow.is_main_process)
    plan = Plan(config)
    targets = plan.targets()
    gpu = plan.config.device == "cuda"
    submits = workflow.is_main_process and snapshot.INSIDE
    site = cluster.read() if submits else cluster.Cluster()
    limit = site.limit(gpu) if submits else float("inf")
except UserError as error:
    sys.exit(f"error: {error}")


# The plan decides what runs (fu/pipeline/pending.py), by contents, not by timestamps or Snakemake's records.
pending = Pending(plan)
if workflow.is_main_process:
    logging.raiseExceptions = False  # a full disk takes no line of a log
    if submits:
        atexit.register(snapshot.leave)
    atexit.register(pending.remember)
    shown = screen.take_over(logger, workflow.output_settings)
    logger.addFilter(screen.Sentences(plan, lambda: workflow.dag_settings.targets))
    atexit.register(shown.end)


if snapshot.INSIDE:
    workflow.register_resource("turn", 1)  # one job of a pack after the other


resource_scopes:
    turn="local",


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
    gc.enable()
    if not (workflow.local_exec or snapshot.INSIDE):
        sys.exit(
            "error: jobs wait in the queue of a cluster and must run the code that was planned; start with "
            "`make reproduce PROFILE=...`, or `python -m fu.pipeline.engine.snapshot` in place of `snakemake`."
        )
    conda = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
    planned = [
        plan.job(job.rule.name, job.wildcards_dict)
        for job in workflow.dag.needrun_jobs()
        if job.rule.name in OUTPUTS
    ]
    cores = workflow.nodes or workflow.cores
    try:
        preflight.check(plan, planned, here=workflow.local_exec and not conda)
        if submits:
            cluster.begin(Path.cwd(), packs())
        elif workflow.is_main_process:
            runs.begin()
    except UserError as error:
        sys.exit(f"error: {error}")
    if submits:
        snapshot.begin(config, by_hand(), workflow.dag_settings.targets)
        shown.give_up = give_up
        signal.signal(signal.SIGTERM, end_at_once)
        # Else Snakemake would remove what a failed job has kept, and others of its pack have made.
        workflow.execution_settings.keep_incomplete = True
        for rule in workflow.rules:
            longest = max(
                (job.minutes for job in planned if job.stage == rule.name),
                default=1,
            )
            rule.restart_times = cluster.retries(longest, limit)
    pending.set_clocks()
    print(plan.overview(planned, cores), file=sys.stderr)
    shown.begin(planned, cores)
    digest.remember()
    fork_server.start(workflow.snakemake_tmp_dir)


# Snakemake waits for the timers of its scheduler (see profiles/default), though nothing is left to schedule.
onsuccess:
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


onerror:
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


localrules:
    data,
    select,
    publish,


rule all:
    input:
        targets,


include: "workflow/rules/common.smk"
include: "workflow/rules/targets.smk"


for stage in OUTPUTS:

    include: f"workflow/rules/{stage}.smk"
