"""The commands behind make's targets: list results, explain, estimate and verify them, bundle and compare runs.

python -m fu.pipeline.show cell [fedosd/mnist-pat50/seed0/fedosd.unlearned] [key=value ...]
python -m fu.pipeline.show results|why|verify|plan [target ...] [key=value ...]
python -m fu.pipeline.show bundle [target ...] [key=value ...]
python -m fu.pipeline.show check BUNDLE
python -m fu.pipeline.show compare A B [TARGET ...]  (exit code 1: numbers differ, 2: error)
python -m fu.pipeline.show unlock  (refused while a run is active)
python -m fu.pipeline.show version
"""

import contextlib
import io
import json
import os
import platform
import re
import signal
import sys
import tomllib
from collections.abc import Sequence
from importlib.metadata import version as installed
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from fu import gpus
from fu.artefacts.provenance import git
from fu.artefacts.words import TOOK_HOLD
from fu.errors import UserError, nearest
from fu.pipeline import commands, costs, explain
from fu.pipeline import compare as comparison
from fu.pipeline.bundle import check, write
from fu.pipeline.digest import ROOT
from fu.pipeline.engine import runs
from fu.pipeline.page import write as page
from fu.pipeline.plan import Job, Plan
from fu.pipeline.settings.papers import config_file, files, read_yaml
from fu.pipeline.settings.records import Artefact

LARGER = {"smoke": "reduced", "reduced": "paper"}  # presets, in the order in which a person tries them


def results(plan: Plan, targets: Sequence[str]) -> None:
    """Print the paths of what was made of the targets (none: all), a first look at a table of each, what is next."""
    print(f"\nTables and figures ({plan.root}/artefacts):")
    looks = []
    for target in targets or ["all"]:
        shown: dict[Path, Artefact] = {}
        for job in plan.asked([target]):
            made = [path for path in map(Path, job.outputs.values()) if path.exists()]
            if job.stage != "publish":
                print("\n".join(f"  {path}" for path in made))
            elif (path := Path(job.outputs["md"])) in made:
                shown[path] = plan.artefacts[job.names["paper"], job.names["artefact"]]
                print(f"  {path.with_suffix('')}.{{md,csv,html,tex,pdf,svg,png}}   {shown[path].title}")
        tables = [path for path, entry in shown.items() if entry.kind in ("table", "gains")]
        if tables or (targets and shown):
            looks.append(first_look(tables or [*shown]))
    print("".join(f"\n{look}\n" for look in dict.fromkeys(looks)), end="")
    if sentence := page.update(plan):
        print(sentence, file=sys.stderr)
    else:
        print(f"\nAll results so far on one page: {plan.paths.page}")
    print(f"Next: {next_step(plan)}")


def next_step(plan: Plan) -> str:
    """Return what a person may want to do after a run, with its command."""
    some = f" PAPERS={','.join(plan.papers)}" if {*files("papers")} - {*plan.papers} else ""
    preset, larger = plan.config.preset, LARGER.get(plan.config.preset)
    if missing := sum(not Path(job.certificate).exists() for job in plan.asked(["all"])):
        return f"make reproduce PRESET={preset}{some}  (makes the remaining {missing})"
    if larger:
        return f"make plan PRESET={larger}{some}  (estimates the cost of the next preset)"
    return f"make verify PRESET={preset}{some}  (checks all files)"


def first_look(tables: list[Path]) -> str:
    """Return the heading and one panel of the first table: the one in which the backdoor took hold, if any did."""
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in tables}
    path = next((path for path, text in texts.items() if TOOK_HOLD in text), tables[0])
    head, *panels = texts[path].split("\n## ")
    shown = next((panel for panel in panels if TOOK_HOLD in panel), (panels or [""])[0])
    more = f"\n(all {len(panels)} panels, and what the columns mean: {path})" if len(panels) > 1 else ""
    return f"{head.strip()}\n" + (f"\n## {shown.strip()}\n{more}" if shown else "")


def cell(plan: Plan, name: str) -> None:
    """Print the command of the job that a name identifies, or list the results of a scenario, a run or an artefact."""
    jobs = {job.stem.removeprefix(f"{plan.root}/"): job for job in plan.jobs()}
    name = name.removeprefix(f"{plan.root}/").rstrip("/")
    exact = [stem for stem, job in jobs.items() if name == stem or f"{plan.root}/{name}" in job.outputs.values()]
    free = [stem for stem in jobs if name == _without_grid(stem)]
    read = {path for stem, job in jobs.items() if name == _target(stem) for path in (*job.files, job.certificate)}
    below = [stem for stem, job in jobs.items() if not read.isdisjoint(job.outputs.values())]
    below += [stem for stem in jobs if name in _above(stem) | _above(_without_grid(stem))]
    match exact or free or below:
        case []:
            known = {*jobs, *map(_target, jobs)}.union(*({_without_grid(stem), *_above(stem)} for stem in jobs))
            hint = nearest(name, known).partition(" allowed")[0].rstrip(";")
            raise UserError(f"CELL: there is no result {name!r}{hint} (`make show` lists all).")
        case [stem]:
            print(commands.complete(plan, jobs[stem], os.path.relpath(sys.executable)))
        case several:
            chosen = _chosen(plan)
            print("\n".join(f"{stem}{'  (chosen)' * (_trial_of(jobs[stem]) in chosen)}" for stem in several))


def _target(stem: str) -> str:
    """Return the name by which `make reproduce` knows an artefact."""
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
    chosen = set()
    for scenario, method in {trial.selection for trial in plan.trials.values() if trial.points}:
        path = Path(plan.job("select", {"scenario": scenario, "method": method}).outputs["selection"])
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):  # absent or damaged: none is marked
            chosen.add((scenario, str(json.loads(path.read_text())["selected"])))
    return chosen


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
    """Return the version of fu, its commit, and whether the code has uncommitted changes."""
    path = ROOT / "pyproject.toml"
    try:
        number = tomllib.loads(path.read_text())["project"]["version"]
    except (OSError, ValueError, LookupError, TypeError):
        raise UserError(
            f"{path}: the file is missing or damaged; restore it with `git checkout {path.name}`."
        ) from None
    commit, changed = (git(*words) for words in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "-uno")))
    return f"fu {number}" + ("" if commit is None else f", commit {commit}{', edited' if changed else ''}")


def devices() -> list[str]:
    """Return Python and torch, and the GPUs that jobs use, with the version of their driver."""
    libraries = ", ".join(f"{name} {installed(name)}" for name in ("torch", "snakemake"))
    found = [f"GPU: {gpu.kind}, {gpu.memory_mb / 1000:.0f} GB" for gpu in gpus.found()]
    driver = [f"GPU driver {gpus.driver()}" if found else "no GPU"]
    return [f"Python {platform.python_version()}, {libraries}", *found, *driver]


def main(arguments: list[str]) -> None:
    """Read config.yaml and the overriding key=value pairs, and show what was requested."""
    pairs = [word for word in arguments[1:] if "=" in word]
    targets = [word for word in arguments[1:] if "=" not in word]
    match arguments:
        case ["results", *_]:
            results(Plan(_config(pairs)), targets)
        case ["cell", "", *pairs]:
            everything(Plan(_config(pairs)))
        case ["cell", name, *pairs]:
            cell(Plan(_config(pairs)), name)
        case ["plan", *_]:
            print(costs.table(Plan(_config(pairs)), targets))
        case ["unlock"]:
            if alive := runs.alive():
                raise UserError(
                    f"a run is active in this folder ({' and '.join(alive)}); wait until it ends, or kill it."
                )
        case ["version"]:
            print("\n".join([version(), *devices()]))
        case ["why", *_]:
            print("\n".join(explain.why(Plan(_config(pairs)), targets)))
        case ["verify", *_]:
            plan = Plan(_config(pairs))
            problems = list(explain.verify(plan, plan.asked(targets)))
            print("\n".join(problems) or explain.summary(plan, plan.asked(targets)))
            sys.exit(bool(problems))
        case ["bundle", *_]:
            for sentence in write.write(Plan(_config(pairs)), targets):
                print(sentence)
        case ["check", bundle]:
            problems, summary = check.check(Path(bundle))
            print("\n".join(problems) or summary)
            sys.exit(bool(problems))
        case ["compare", first, second, *targets]:
            if not (first and second):
                raise UserError(
                    "compare: two runs are needed, as in `make compare A=results/smoke B=theirs.crate.zip`."
                )
            found = comparison.compare(Path(first), Path(second), targets)
            print("\n".join(found.lines))
            sys.exit(not found.equal)
        case _:
            raise UserError(
                "usage: python -m fu.pipeline.show "
                "results|cell|why|verify|plan|bundle|check|compare|unlock|version; "
                "`make help` lists all commands."
            )


def _config(pairs: list[str]) -> Any:
    config = read_yaml(config_file())
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise UserError(f"expected key=value, got {pair!r}.")
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
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2 if sys.argv[1:2] == ["compare"] else 1)
