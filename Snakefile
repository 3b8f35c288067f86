"""Every table and figure of the planned papers. `snakemake -n` shows what would be made."""

import sys

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

sys.path.insert(0, str(workflow.basedir))
from fu.errors import UserError
from fu.plan.plan import Plan

min_version("9.0")


configfile: "config.yaml"


try:
    plan = Plan(config)
    targets = {key: plan.targets(*key) for key in plan.artefacts}
except UserError as error:
    raise WorkflowError(str(error)) from None

ROOT = plan.root
PYTHON = sys.executable
COMPUTE = " --threads {threads} --device {plan.config.device} 2> {log}"


wildcard_constraints:
    run=r"[^/]+/[^/]+/seed\d+",
    seed=r"\d+",
    dataset=r"[a-z0-9_]+",
    model=r"[^/]+",
    method=r"[^/]+",
    paper=r"[^/]+",
    artefact=r"[^/]+",


onstart:
    print(plan.overview(), file=sys.stderr)


rule all:
    input:
        plan.all_targets(),


include: "workflow/rules/targets.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/partition.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/unlearn.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/publish.smk"
