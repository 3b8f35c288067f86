"""Every table and figure of the planned papers. `snakemake -n` shows what would be made."""

import os
import sys
from pathlib import Path

from snakemake.utils import min_version

sys.path.insert(0, str(workflow.basedir))
os.environ["PATH"] = (
    f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # `python` of the jobs
)
from fu import warm
from fu.errors import UserError
from fu.plan.plan import Plan

min_version("9.0")


configfile: "config.yaml"


envvars:
    "PATH",


try:
    plan = Plan(config)
    targets = {key: plan.targets(*key) for key in plan.artefacts}
except UserError as error:
    sys.exit(f"error: {error}")

ROOT = plan.root


wildcard_constraints:
    run=r"[^/]+/[^/]+/seed\d+",
    seed=r"\d+",
    dataset=r"[a-z0-9_]+",
    model=r"[^/]+",
    method=r"[^/]+",
    scope=r"[^/]+/[^/]+",
    paper=r"[^/]+",
    artefact=r"[^/]+",


onstart:
    print(plan.overview(), file=sys.stderr)
    warm.start()


rule all:
    input:
        plan.all_targets(),


include: "workflow/rules/targets.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/partition.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/unlearn.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/select.smk"
include: "workflow/rules/publish.smk"
