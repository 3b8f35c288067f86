"""Show where results lie, or the command that makes one of them. Used by `make reproduce` and `make show`.

python -m fu.pipeline.show results [key=value ...]
python -m fu.pipeline.show cell fedosd/mnist-pat50/seed0/fedosd.unlearned [key=value ...]
"""

import os
import re
import sys
from pathlib import Path

import yaml

from fu.errors import UserError, nearest
from fu.pipeline import commands
from fu.pipeline.plan import Plan
from fu.pipeline.settings.papers import read_yaml


def results(plan: Plan) -> None:
    """Print the path of every artefact that was made, and the first table itself."""
    tables = []
    print(f"\nTables and figures ({plan.root}/artefacts):")
    for (paper, artefact), entry in plan.artefacts.items():
        path = Path(plan.paths("publish", "md", paper=paper, artefact=artefact))
        if path.exists():
            print(f"  {path.with_suffix('')}.{{md,csv,pdf,png}}   {entry.title}")
            tables += [path] if entry.kind == "table" else []
    if tables:
        print(f"\n{tables[0].read_text(encoding='utf-8')}")


def cell(plan: Plan, name: str) -> None:
    """Print the command of the job that makes a result."""
    path = name if name.startswith("results/") else f"{plan.root}/{name}"
    found = [job for job in plan.jobs() if any(f == path or f.startswith(f"{path}.") for f in job.outputs.values())]
    if not found:
        known = (file for job in plan.jobs() for file in job.outputs.values())
        short = {re.sub(r"\.[a-z]+$", "", file.removeprefix(f"{plan.root}/")) for file in known}
        hint = nearest(name, short).partition(" allowed")[0].rstrip(";")
        raise UserError(f"CELL: the plan makes no {name!r}{hint} (`snakemake -n` lists all).")
    print(commands.complete(plan, found[0], os.path.relpath(sys.executable)))


def main(arguments: list[str]) -> None:
    """Read config.yaml and the overriding key=value pairs, and show what was asked for."""
    pairs = [argument.partition("=") for argument in arguments if "=" in argument]
    words = [argument for argument in arguments if "=" not in argument]
    config = read_yaml(Path("config.yaml"))
    config.update({key: yaml.safe_load(value) for key, _, value in pairs})
    plan = Plan(config)
    if words == ["results"]:
        results(plan)
    elif len(words) == 2 and words[0] == "cell":
        cell(plan, words[1])
    else:
        raise UserError("usage: make show CELL=fedosd/mnist-pat50/seed0/fedosd.unlearned")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.exit(f"error: {error}")
