"""A copy of the repository in which tests edit and run, the graph of its jobs, and which of them are due."""

import contextlib
import io
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import fu.pipeline.cli.show  # noqa: F401 (so that forks have its libraries)

REPOSITORY = Path(__file__).resolve().parents[2]
TRACKED = (
    *("fu", "workflow", "profiles", "envs", "Snakefile", "config.yaml", "cluster.yaml", "Makefile"),
    *("CITATION.cff", "LICENSE"),
)
T = TypeVar("T")


@dataclass(frozen=True)
class Job:
    """A job of the plan."""

    stage: str
    names: dict[str, str]
    spec: dict[str, Any]
    inputs: set[str]
    outputs: set[str]
    due: str  # why it has to run; "" if it is current

    @property
    def key(self) -> str:
        """What a dry run calls it."""
        return " ".join([self.stage, *(f"{name}={value}" for name, value in sorted(self.names.items()))])

    @property
    def specs(self) -> list[dict[str, Any]]:
        """The spec, or those of all points of which the chosen one is run."""
        return list(self.spec["points"].values()) if "points" in self.spec else [self.spec]

    def has(self, **names: str) -> bool:
        """Whether it has these names."""
        return all(self.names.get(name) == value for name, value in names.items())


def until(
    true: Callable[[], object], seconds: float = 120, problem: str = "nothing happened", pause: float = 0.02
) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, problem
        time.sleep(pause)


class Graph:
    """All jobs of a plan."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs

    @property
    def due(self) -> set[str]:
        """The keys of the jobs that have to run."""
        return self.where(lambda job: bool(job.due))

    def where(self, matches: Callable[[Job], bool]) -> set[str]:
        """Return the keys of the jobs that match."""
        return {job.key for job in self.jobs if matches(job)}

    def behind(self, keys: set[str]) -> set[str]:
        """Return these jobs and all that they are made from."""
        found, read = set(keys), set[str]()
        for job in reversed(self.jobs):  # those that others wait for come first
            if job.key in found or not read.isdisjoint(job.outputs):
                found.add(job.key)
                read |= job.inputs
        return found

    def with_downstream(self, keys: set[str]) -> set[str]:
        """Return these jobs and all that follow from their outputs; costs alone make nothing follow."""
        found = set(keys)
        changed = {path for job in self.jobs if job.key in found for path in job.outputs if ".cost." not in path}
        for job in self.jobs:  # those that others wait for come first
            if job.key in found or job.inputs & changed:
                found.add(job.key)
                changed |= {path for path in job.outputs if ".cost." not in path}
        return found


def own_code(root: Path) -> None:
    """Forget the package and import that of a copy from now on."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "fu"]:
        del sys.modules[name]
    sys.path.insert(0, str(root))
    sys.dont_write_bytecode = True  # two edits may be of one second and size
    os.chdir(root)


def planned(root: Path, targets: tuple[str, ...], config: dict[str, Any]) -> list[Job]:
    """Return all jobs of a copy's plan, and which of them are due for the targets."""
    own_code(root)
    from fu.pipeline.plan.pending import Pending
    from fu.pipeline.plan.plan import Plan
    from fu.pipeline.provenance import digest
    from fu.pipeline.settings.papers import read_yaml

    plan = Plan({**read_yaml(root / "config.yaml"), **config})
    pending = Pending(plan)
    due = {job.certificate: str(reason.text) for job, reason in pending.to_make(plan.asked(targets))}
    pending.remember()
    digest.remember()
    return [
        Job(
            *(job.stage, dict(job.names), json.loads(job.json), set(job.files), set(job.outputs.values())),
            due.get(job.certificate, ""),
        )
        for job in plan.jobs()
    ]


def printed(root: Path, command: str, given: dict[str, str]) -> str:
    """Return what a command prints in a copy, after `status 1` where that is its exit code."""
    own_code(root)
    from fu.pipeline.cli import show

    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        status = show.run(command, given)
    return f"status {status}\n" * bool(status) + out.getvalue()


def apart(task: Callable[..., T], *given: Any) -> T:
    """Return what a function returns in a fork, which has imported the libraries."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        return pool.submit(task, *given).result()


class Project:
    """A copy of the repository."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, *command: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the copy."""
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.root,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": "", **environment},
            check=False,
        )
        if check:
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done

    def snakemake(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run Snakemake as a user would."""
        return self.run("-m", "snakemake", "--cores", "2", *arguments, check=check)

    def install(self) -> None:
        """Have make find the programs of this environment, as after installation."""
        programs = self.root / ".venv/bin"
        programs.mkdir(parents=True, exist_ok=True)
        for name, called in (("python", ""), ("snakemake", " -m snakemake")):
            (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable}{called} "$@"\n')
            (programs / name).chmod(0o755)
        (self.root / ".venv/installed").touch()

    def make(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run make; return its exit code and output."""
        self.install()
        return subprocess.run(
            ["make", *words],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": "", "MAKEFLAGS": "", "MAKELEVEL": "0", **environment},
        )

    def show(self, command: str, **given: str) -> str:
        """Return what `make show`, `make why` and the like print."""
        return apart(printed, self.root, command, given)

    def graph(self, *targets: str, **config: Any) -> Graph:
        """Return the jobs of the plan as it is now, and which of them are due (for all targets)."""
        return Graph(apart(planned, self.root, targets, config))

    def scheduled(self, *arguments: str) -> Counter[str]:
        """Return what a dry run of Snakemake schedules, by key."""
        done = self.snakemake("-n", *arguments)
        text = done.stdout + done.stderr
        jobs: Counter[str] = Counter()
        for name, body in re.findall(r"^(?:local)?rule (\w+):\n(.*?)(?=^\[|^\S*rule |\Z)", text, re.M | re.S):
            found = re.search(r"^    wildcards: (.*)$", body, re.M)
            if found:
                jobs[" ".join([{"tabulate": "publish"}.get(name, name), *sorted(found[1].split(", "))])] += 1
        return jobs

    def expect(self, keys: Iterable[str], *targets: str) -> None:
        """Assert that exactly these jobs are due."""
        assert self.graph(*targets).due == set(keys)

    def expect_run(self, keys: Iterable[str], *arguments: str) -> None:
        """Assert that a dry run of Snakemake schedules exactly these jobs, each once."""
        found, expected = self.scheduled(*arguments), Counter(keys)
        assert found == expected, f"too many: {found - expected}; too few: {expected - found}"

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that stands exactly once in a file."""
        file = self.root / path
        text = file.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
        file.write_text(text.replace(old, new))

    def override(self, text: str) -> None:
        """Set the overrides of config.yaml."""
        self.edit("config.yaml", "overrides: {}", f"overrides: {text}")

    def copied(self, target: Path) -> "Project":
        """Copy it with modification times, so that nothing looks newer than it is."""
        unfinished = shutil.ignore_patterns("*.pyc.*")  # of a process that imports its code meanwhile
        shutil.copytree(self.root, target, symlinks=True, ignore=unfinished)
        return Project(target)


def from_repository(root: Path) -> Project:
    """Copy what is tracked."""
    root.mkdir()
    for name in TRACKED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, root / name)
    return Project(root)


def with_toy(root: Path) -> Project:
    """Copy what is tracked, with the toy paper in place of the real ones."""
    project = with_paper(root, "toy")
    (root / "workflow/published/toy").mkdir()
    shutil.copy2(Path(__file__).parent / "toy_numbers.csv", root / "workflow/published/toy/numbers.csv")
    return project


def with_paper(root: Path, name: str) -> Project:
    """Copy what is tracked, with a small paper of this folder in place of the real ones."""
    project = from_repository(root)
    shutil.copy2(Path(__file__).parent / f"{name}.yaml", root / "workflow/papers")
    (root / "workflow/presets/toy.yaml").write_text("description: a test\n")
    project.edit("config.yaml", "preset: smoke", "preset: toy")
    project.edit("config.yaml", "papers: [fedosd, safari, fats, tradeoffs, audit]", f"papers: [{name}]")
    return project
