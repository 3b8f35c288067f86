"""Every table and figure of the planned papers. `snakemake -n` shows what would be made.

What runs is decided by the plan (fu/pipeline/pending.py), by contents, not by timestamps or Snakemake's records.
"""

from snakemake.utils import min_version

from fu.pipeline.engine.rules import Engine, config_file

min_version("9.23")  # before, a failed job lost what it was to replace


configfile: config_file()


envvars:
    "PATH",


engine = Engine(workflow, config)
plan = engine.plan
targets = plan.targets()


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
    artefact=r"[^/]+(?<!\.rows)",


onstart:
    engine.begin()


onsuccess:
    engine.page()


onerror:
    engine.page()


localrules:
    data,
    select,
    publish,


rule all:
    input:
        targets,


include: "workflow/rules/targets.smk"
include: "workflow/rules/stages.smk"
