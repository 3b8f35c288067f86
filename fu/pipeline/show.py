"""Show where results lie, the command that makes one, what would be made, or what is damaged.

python -m fu.pipeline.show results [key=value ...]
python -m fu.pipeline.show cell fedosd/mnist-pat50/seed0/fedosd.unlearned [key=value ...]
python -m fu.pipeline.show why|verify [target ...] [key=value ...]
"""

import io
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import yaml

from fu.errors import UserError, nearest
from fu.pipeline import commands, explain
from fu.pipeline.plan import Job, Plan
from fu.pipeline.settings.papers import read_yaml


def results(plan: Plan) -> None:
    """Print the path of every artefact that was made, and the first table itself."""
    tables = []
    print(f"\nTables and figures ({plan.root}/artefacts):")
    for (paper, artefact), entry in plan.artefacts.items():
        path = Path(plan.paths("publish", "md", paper=paper, artefact=artefact))
        if path.exists():
            print(f"  {path.with_suffix('')}.{{md,csv,html,tex,pdf,png}}   {entry.title}")
            tables += [path] if entry.kind == "table" else []
    if tables:
        print(f"\n{tables[0].read_text(encoding='utf-8', errors='replace')}")


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
    match arguments:
        case ["results", *pairs]:
            results(Plan(_config(pairs)))
        case ["cell", name, *pairs] if name:
            cell(Plan(_config(pairs)), name)
        case ["why" | "verify" as asked, *words]:
            plan = Plan(_config([word for word in words if "=" in word]))
            wanted = _wanted(plan, [word for word in words if "=" not in word])
            found = list(explain.why(plan, wanted) if asked == "why" else explain.verify(plan, wanted))
            print("\n".join(found) or explain.summary(plan, wanted))
            sys.exit(bool(found) and asked == "verify")
        case _:
            raise UserError("usage: make show CELL=fedosd/mnist-pat50/seed0/fedosd.unlearned")


def _wanted(plan: Plan, targets: list[str]) -> list[Job]:
    """Return the jobs that targets name (none: all)."""
    wanted = {target: list(plan.wanted(target)) for target in targets or ["all"]}
    for target in (target for target, jobs in wanted.items() if not jobs):
        known = ["all", *plan.papers, *("_".join(key) for key in plan.artefacts)]
        raise UserError(f"there is no target {target!r}{nearest(target, known)}.")
    return [job for jobs in wanted.values() for job in jobs]


def _config(pairs: list[str]) -> Any:
    config = read_yaml(Path("config.yaml"))
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise UserError(f"{pair!r} is no key=value.")
        try:
            config[key] = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError):
            raise UserError(f"config: {key}: {text!r} is no valid YAML.") from None
    return config


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the reader may have seen enough
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # where a terminal has no ±
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.exit(f"error: {error}")
