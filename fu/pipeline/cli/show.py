"""The reports of make's commands: list results, explain, estimate and verify them, bundle and compare runs, audit."""

import contextlib
import io
import json
import os
import platform
import re
import signal
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version as installed
from pathlib import Path, PurePosixPath

from fu import gpus
from fu.artefacts.provenance import edited, git
from fu.errors import UserError, nearest, worded
from fu.pipeline.bundle import check, write
from fu.pipeline.cli import audit, costs, explain
from fu.pipeline.cli import compare as comparison
from fu.pipeline.documents import decide, kept
from fu.pipeline.engine import runs
from fu.pipeline.page import write as page
from fu.pipeline.plan import commands
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance.digest import PACKAGES, ROOT
from fu.pipeline.settings.papers import MAKE_VARIABLES, config_file, files, read_yaml
from fu.pipeline.settings.records import Artefact

LARGER = {"smoke": "reduced", "reduced": "paper"}  # presets, in the order in which a person tries them


def results(plan: Plan, targets: Sequence[str]) -> Iterator[str]:
    """Yield the paths of what was made of the targets (none: all), a first look at a table of each, what is next."""
    yield f"\nTables and figures ({plan.root}/artefacts):"
    looks = []
    for target in targets or ["all"]:
        shown: dict[Path, Artefact] = {}
        for job in plan.asked([target]):
            made = [path for path in map(Path, job.outputs.values()) if path.exists()]
            if job.stage != "publish":
                yield from (f"  {path}" for path in made)
            elif (path := Path(job.outputs["md"])) in made:
                shown[path] = plan.artefacts[job.names["paper"], job.names["artefact"]]
                yield f"  {job.formats}   {shown[path].title}"
        tables = [path for path, entry in shown.items() if entry.kind in ("table", "gains")]
        if tables or (targets and shown):
            looks.append(first_look((tables or [*shown])[0]))
    yield from (f"\n{look}" for look in dict.fromkeys(looks))
    if sentence := page.update(plan):
        print(sentence, file=sys.stderr)
    else:
        yield f"\nAll results so far on one page: {plan.paths.page}"
    yield f"Next: {next_step(plan)}"


def next_step(plan: Plan) -> str:
    """Return what a person may want to do after a run, with its command."""
    some = f" PAPERS={','.join(plan.papers)}" if {*files("papers")} - {*plan.papers} else ""
    preset, larger = plan.config.preset, LARGER.get(plan.config.preset)
    if missing := sum(not Path(job.certificate).exists() for job in plan.asked(["all"])):
        return f"make reproduce PRESET={preset}{some}  (makes the remaining {missing})"
    if larger:
        return f"make plan PRESET={larger}{some}  (estimates the cost of the next preset)"
    return f"make verify PRESET={preset}{some}  (checks all files)"


def first_look(table: Path) -> str:
    """Return the heading and the first panel of a table."""
    head, *panels = table.read_text(encoding="utf-8", errors="replace").split("\n## ")
    more = f"\n\n(all {len(panels)} panels, and what the columns mean: {table})" if len(panels) > 1 else ""
    return f"{head.strip()}\n" + "".join(f"\n## {panel.strip()}{more}\n" for panel in panels[:1])


def cell(plan: Plan, name: str) -> Iterator[str]:
    """Yield the command of the job that a name identifies, or the results of a scenario, a run or an artefact."""
    jobs = {job.stem.removeprefix(f"{plan.root}/"): job for job in plan.jobs()}
    name = name.removeprefix(f"{plan.root}/").rstrip("/")
    targets = {
        stem: stem.removeprefix("artefacts/").replace("/", "_") for stem in jobs if stem.startswith("artefacts/")
    }
    free = {stem: re.sub(r"\+[^/]*(\.[^./]+)$", r"\1", stem) for stem in jobs}  # without the point of a grid
    above = {stem: _above(stem) | _above(free[stem]) for stem in jobs}
    exact = [stem for stem, job in jobs.items() if name == stem or f"{plan.root}/{name}" in job.outputs.values()]
    read = {path for stem, job in jobs.items() if targets.get(stem) == name for path in (*job.files, job.certificate)}
    below = [stem for stem, job in jobs.items() if not read.isdisjoint(job.outputs.values())]
    below += [stem for stem in jobs if name in above[stem]]
    match exact or [stem for stem in jobs if free[stem] == name] or below:
        case []:
            hint = nearest(name, {*jobs, *targets.values(), *free.values()}.union(*above.values()))
            raise UserError(
                f"CELL: there is no result {name!r}{hint.partition(' allowed')[0].rstrip(';')} (`make show` lists all)."
            )
        case [stem]:
            yield commands.complete(plan, jobs[stem], os.path.relpath(sys.executable))
        case several:
            chosen = _chosen(plan)
            for stem in several:
                names = jobs[stem].names
                mark = (names.get("run", "").rpartition("/")[0], names.get("trial", "")) in chosen
                yield f"{stem}{'  (chosen)' * mark}"


def _above(stem: str) -> set[str]:
    """Return the scenario, the run and the trial that contain a name."""
    return {*map(str, PurePosixPath(stem).parents), stem.rpartition(".")[0]} - {".", ""}


def _chosen(plan: Plan) -> set[tuple[str, str]]:
    """Return scenario and trial of every grid point chosen so far."""
    chosen = set()
    for scenario, method in {trial.selection for trial in plan.trials.values() if trial.points}:
        path = Path(plan.job("select", {"scenario": scenario, "method": method}).outputs["selection"])
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):  # absent or damaged: none is marked
            chosen.add((scenario, str(json.loads(path.read_text())["selected"])))
    return chosen


def oracles(plan: Plan, targets: Sequence[str]) -> Iterator[str]:
    """Raise `UserError` unless these are scenarios of which oracles can be made, one at least; yield nothing."""
    if not targets:
        raise UserError(
            f"TARGETS: name a scenario with repeats; allowed: {', '.join(sorted(plan.repeated)) or 'none'}."
        )
    for target in targets:
        if target not in plan.repeated:
            raise UserError(f"TARGETS: no scenario with repeats is called {target!r}{nearest(target, plan.repeated)}.")
    yield from ()


def everything(plan: Plan) -> Iterator[str]:
    """Yield the artefacts, scenarios and methods of the planned papers, each with its title or label."""
    for name, paper in plan.papers.items():
        artefacts = {f"{name}_{key}": entry.title for key, entry in paper.artefacts.items()}
        scenarios = {f"{name}/{key}": scenario.label for key, scenario in paper.scenarios.items()}
        for heading, entries in (
            (f"Tables and figures of {name}: make reproduce TARGETS={next(iter(artefacts), '...')}", artefacts),
            (f"Scenarios: make show CELL={next(iter(scenarios), '...')}", scenarios),
            ("Trainings", {key: training.label for key, training in paper.trainings.items()}),
            ("Methods", {key: method.label for key, method in paper.methods.items()}),
        ):
            if entries:
                width = max(map(len, entries))
                yield "\n".join([heading, *(f"  {key:{width}}  {text}" for key, text in entries.items()), ""])


def version() -> Iterator[str]:
    """Yield the version of fu, its commit and whether it was edited; of Python and torch; the GPUs and their driver."""
    path = ROOT / "pyproject.toml"
    try:
        number = tomllib.loads(path.read_text())["project"]["version"] if ROOT == PACKAGES else installed("fu")
    except (OSError, ValueError, LookupError, TypeError):
        raise UserError(
            f"{path}: the file is missing or damaged; restore it with `git checkout {path.name}`."
        ) from None
    commit = git("rev-parse", "--short", "HEAD")
    yield f"fu {number}" + ("" if commit is None else f", commit {commit}{', edited' * bool(edited())}")
    libraries = ", ".join(f"{name} {installed(name)}" for name in ("torch", "snakemake"))
    yield f"Python {platform.python_version()}, {libraries}"
    devices = [f"GPU: {gpu.kind}, {gpu.memory_mb / 1000:.0f} GB" for gpu in gpus.found()]
    yield from [*devices, f"GPU driver {gpus.driver()}"] if devices else ["no GPU"]


WITH_TARGETS: dict[str, Callable[[Plan, list[str]], Iterable[str]]] = {
    "results": results,
    "plan": lambda plan, targets: [costs.table(plan, targets)],
    "decide": lambda plan, targets: [decide.table(plan, targets)],
    "why": explain.why,
    "bundle": write.write,
    "oracles": oracles,
}


def lines_of(command: str, given: Mapping[str, str]) -> tuple[Iterable[str], bool]:
    """Return the lines of a command's report, and whether they name a problem; `given`: make's variables."""
    targets = given.get("TARGETS", "").split()
    if command in ("keep", "decide") and ROOT != PACKAGES:
        raise UserError(f"{command}: needs a clone, which has the kept runs.")
    match command:
        case "show":
            return (cell(_plan(given), given["CELL"]) if "CELL" in given else everything(_plan(given))), False
        case "keep":
            return kept.keep(_plan(given), targets, given.get("RUN", "")), False
        case "audit":
            if not {"ORACLES", "PREDICTIONS"} <= given.keys():
                raise UserError("audit: needs an archive and predictions: `make audit ORACLES=... PREDICTIONS=...`.")
            files = [Path(given[name]) for name in ("ORACLES", "PREDICTIONS", "CSV") if name in given]
            return audit.audit(*files), False
        case "verify" if "BUNDLE" in given:
            problems, summary = check.check(Path(given["BUNDLE"]))
            return problems or [summary], bool(problems)
        case "verify":
            plan = _plan(given)
            problems = [*explain.verify(plan, plan.asked(targets))]
            return problems or [explain.summary(plan, plan.asked(targets))], bool(problems)
        case "compare":
            if not {"A", "B"} <= given.keys():
                raise UserError(
                    "compare: two runs are needed, as in `make compare A=results/smoke B=theirs.crate.zip`."
                )
            lines, equal = comparison.compare(Path(given["A"]), Path(given["B"]), targets)
            return lines, not equal
        case "version":
            return version(), False
        case "unlock":
            if alive := runs.alive():
                raise UserError(
                    f"a run is active in this folder ({' and '.join(alive)}); wait until it ends, or kill it."
                )
            return [], False
    return WITH_TARGETS[command](_plan(given), targets), False


def _plan(given: Mapping[str, str]) -> Plan:
    """Return the plan of config.yaml, overridden by make's variables."""
    return Plan(
        {**read_yaml(config_file()), **{key: given[name] for name, key in MAKE_VARIABLES.items() if name in given}}
    )


def run(command: str, given: Mapping[str, str]) -> int:
    """Print a command's report, or one sentence after an error, and return the exit code."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the reader may have seen enough
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # where a terminal has no ±
    try:
        lines, wrong = lines_of(command, given)
        for line in lines:
            print(worded(line))
    except UserError as error:
        print(worded(f"error: {error}"), file=sys.stderr)
        return 2 if command == "compare" else 1
    return int(wrong)
