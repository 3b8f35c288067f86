"""Show where results are, what exists, the command that makes one result, what would be made, or what is damaged.

Also what it would cost, and how fast this machine is.

python -m fu.pipeline.show results [key=value ...]
python -m fu.pipeline.show cell [fedosd/mnist-pat50/seed0/fedosd.unlearned] [key=value ...]
python -m fu.pipeline.show why|verify|plan|status [target ...] [key=value ...]
python -m fu.pipeline.show calibrate [key=value ...]
python -m fu.pipeline.show unlock  (refuses while a run lives)
python -m fu.pipeline.show version
"""

import contextlib
import io
import json
import os
import re
import signal
import sys
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from fu.artefacts.provenance import git
from fu.artefacts.words import TOOK_HOLD
from fu.errors import UserError, nearest
from fu.pipeline import calibrate, commands, costs, explain, runs
from fu.pipeline.digest import ROOT
from fu.pipeline.paths import CERTIFIED
from fu.pipeline.plan import Job, Plan
from fu.pipeline.settings.papers import read_yaml
from fu.pipeline.status import planned, status


def results(plan: Plan) -> None:
    """Print the path of every artefact that was made, and a first look at a table."""
    tables = []
    print(f"\nTables and figures ({plan.root}/artefacts):")
    for (paper, artefact), entry in plan.artefacts.items():
        path = Path(plan.paths("publish", "md", paper=paper, artefact=artefact))
        if path.exists():
            print(f"  {path.with_suffix('')}.{{md,csv,html,tex,pdf,png}}   {entry.title}")
            tables += [path] if entry.kind in ("table", "gains") else []
    if tables:
        print(f"\n{first_look(tables)}")


def first_look(tables: list[Path]) -> str:
    """Return the heading and one panel of the first table: the one in which the backdoor took hold, if any did."""
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in tables}
    path = next((path for path, text in texts.items() if TOOK_HOLD in text), tables[0])
    head, *panels = texts[path].split("\n## ")
    shown = next((panel for panel in panels if TOOK_HOLD in panel), panels[0] if panels else "")
    more = f"\n({len(panels)} panels and what the columns mean: {path})" if len(panels) > 1 else ""
    return f"{head.strip()}\n\n## {shown.strip()}\n{more}"


def cell(plan: Plan, name: str) -> None:
    """Print the command of the job that a name identifies, or list the jobs that it may mean."""
    jobs = {job.certificate.removeprefix(f"{plan.root}/").removesuffix(CERTIFIED): job for job in plan.jobs()}
    name = name.removeprefix(f"{plan.root}/").rstrip("/")
    exact = [
        stem
        for stem, job in jobs.items()
        if name in (stem, _target(stem)) or f"{plan.root}/{name}" in job.outputs.values()
    ]
    free = [stem for stem in jobs if name == _without_grid(stem)]
    below = [stem for stem in jobs if name in _above(stem) | _above(_without_grid(stem))]
    match exact or free or below:
        case []:
            known = {*jobs, *map(_target, jobs)}.union(*({_without_grid(stem), *_above(stem)} for stem in jobs))
            hint = nearest(name, known).partition(" allowed")[0].rstrip(";")
            raise UserError(f"CELL: the plan does not make {name!r}{hint} (`make show` lists what exists).")
        case [stem]:
            print(commands.complete(plan, jobs[stem], os.path.relpath(sys.executable)))
        case several:
            chosen = _chosen(plan)
            print("\n".join(f"{stem}{'  (chosen)' * (_trial_of(jobs[stem]) in chosen)}" for stem in several))


def _target(stem: str) -> str:
    return stem.removeprefix("artefacts/").replace("/", "_") if stem.startswith("artefacts/") else stem


def _without_grid(stem: str) -> str:
    return re.sub(r"\+[^/]*(\.[^./]+)$", r"\1", stem)


def _above(stem: str) -> set[str]:
    """Return the scenario, the run and the trial that contain a name."""
    folders = {str(folder) for folder in PurePosixPath(stem).parents}
    return (folders | {stem.rpartition(".")[0]}) - {".", ""}


def _trial_of(job: Job) -> tuple[str, str]:
    return job.names.get("run", "").rpartition("/")[0], job.names.get("trial", "")


def _chosen(plan: Plan) -> set[tuple[str, str]]:
    """Return scenario and trial of every grid point chosen so far."""
    found = set()
    for scenario, method in plan.names:
        path = Path(plan.paths("select", "selection", scenario=scenario, method=method))
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):  # absent or damaged: none is marked
            found.add((scenario, str(json.loads(path.read_text())["selected"])))
    return found


def everything(plan: Plan) -> None:
    """Print the artefacts, scenarios and methods of the planned papers, each with its title or label."""
    for name, paper in plan.papers.items():
        artefacts = {f"{name}_{key}": entry.title for key, entry in paper.artefacts.items()}
        scenarios = {f"{name}/{key}": scenario.label for key, scenario in paper.scenarios.items()}
        trainings = {key: training.label for key, training in paper.trainings.items()}
        methods = {key: method.label for key, method in paper.methods.items()}
        for heading, entries in (
            (f"Tables and figures of {name}: make reproduce TARGETS={next(iter(artefacts), '...')}", artefacts),
            (f"Scenarios: make show CELL={next(iter(scenarios), '...')}", scenarios),
            ("Trainings", trainings),
            ("Methods", methods),
        ):
            if not entries:
                continue
            width = max(map(len, entries), default=0)
            print(heading, *(f"  {key:{width}}  {text}" for key, text in entries.items()), "", sep="\n")


def version() -> str:
    """Return the version of fu, its commit, and whether the code was edited since."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        number = tomllib.load(file)["project"]["version"]
    commit, changed = (git(*words) for words in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "-uno")))
    return f"fu {number}" + ("" if commit is None else f", commit {commit}{', edited' if changed else ''}")


def main(arguments: list[str]) -> None:
    """Read config.yaml and the overriding key=value pairs, and show what was requested."""
    match arguments:
        case ["results", *pairs]:
            results(Plan(_config(pairs)))
        case ["cell", "", *pairs]:
            everything(Plan(_config(pairs)))
        case ["cell", name, *pairs]:
            cell(Plan(_config(pairs)), name)
        case ["plan", *words]:
            plan = Plan(_config([word for word in words if "=" in word]))
            print(costs.table(plan, [word for word in words if "=" not in word]))
        case ["calibrate", *pairs]:
            calibrate.calibrate(_config(pairs))
        case ["unlock"]:
            if alive := runs.alive():
                raise UserError(f"{' and '.join(alive)}: at work in this folder; wait until it ends, or kill it.")
        case ["version"]:
            print(version())
        case ["status", *words]:
            plan, targets = planned(words, lambda: _config([word for word in words if "=" in word]))
            print("\n".join(status(plan, _wanted(plan, targets))))
        case ["why" | "verify" as asked, *words]:
            plan = Plan(_config([word for word in words if "=" in word]))
            wanted = _wanted(plan, [word for word in words if "=" not in word])
            found = list(explain.why(plan, wanted) if asked == "why" else explain.verify(plan, wanted))
            print("\n".join(found) or explain.summary(plan, wanted))
            sys.exit(bool(found) and asked == "verify")
        case _:
            raise UserError(
                "usage: python -m fu.pipeline.show results|cell|why|verify|plan|status|calibrate|unlock|version; "
                "`make help` lists what make does."
            )


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
            raise UserError(f"{pair!r} is not key=value.")
        try:
            config[key] = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError):
            raise UserError(f"config: {key}: {text!r} is not valid YAML.") from None
    return config


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the reader may have seen enough
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # where a terminal has no ±
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.exit(f"error: {error}")
