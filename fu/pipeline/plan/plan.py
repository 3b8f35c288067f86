"""The plan: every job behind the tables and figures of the planned papers. Imports no torch."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from fu.errors import UserError, nearest
from fu.pipeline.plan import entries, estimates, published
from fu.pipeline.plan.estimates import counted, lasting, working
from fu.pipeline.plan.grid import Grid
from fu.pipeline.plan.jobs import Files, Job, Jobs, Made
from fu.pipeline.provenance import cached, catalogue, digest
from fu.pipeline.provenance.paths import PICTURES, at
from fu.pipeline.settings.papers import Resolved, blamed, configured, files
from fu.pipeline.settings.records import Artefact
from fu.pipeline.stages import frames

__all__ = ["Job", "Plan"]


class Plan(Jobs):
    """Everything that the rules ask for: `plan.job("train", {"run": run, "trial": trial})`."""

    def __init__(self, values: dict[str, Any]) -> None:
        """Validate the config (a plain mapping) and expand it; raises `UserError` with one sentence."""
        config = configured(values)
        if config.plugins:
            catalogue.add_folder(Path(config.plugins).resolve())
        grid, checked = blamed(self._expand, config)
        cached.remember("params", checked)
        self.trials, self.names = grid.trials, grid.names
        for trial in self.trials.values():
            estimates.size(trial.settings)  # refuses a model that cannot be trained
        self.root = f"results/{config.preset}"
        super().__init__(config, self.papers, grid)

    def _expand(self, resolved: Resolved) -> tuple[Grid, dict[str, bool]]:
        """Return the trials, and which hyper-parameters were found valid."""
        self.preset, self.papers, self.where, stated = resolved.preset, resolved.papers, resolved.where, resolved.stated
        grid = Grid(resolved)
        checked = cached.check_params(grid.planned_params())
        self.artefacts: dict[tuple[str, str], Artefact] = {
            (name, key): entry for name, paper in self.papers.items() for key, entry in paper.artefacts.items()
        }
        for (name, key), entry in self.artefacts.items():
            for path in self.published(name, key):
                published.check(digest.ROOT / path, self.papers[name], entry.kind, stated[name])
        return grid, checked

    @property
    def evaluations(self) -> list[str]:
        """The names of all evaluations."""
        return sorted({name for trial in self.trials.values() for name in trial.settings.evaluations})

    def _publish(self, paper: str, artefact: str) -> Made:
        numbers = self.published(paper, artefact)
        spec = entries.spec_of(self, self.preset, paper, artefact, numbers)
        behind = frames.behind(spec.sources, spec.seeds, Path(self.root))
        inputs: Files = {role: [*map(str, paths)] for role, paths in behind.items()}
        inputs["published"] = numbers
        needs: dict[str, Any] = {
            "minutes": 10,
            "estimate": estimates.JOB_S + estimates.DRAWING_S,
            "disk_mb": estimates.DRAWN_MB,
        }
        if (paper, artefact) in self.tables:
            outputs = self.paths.outputs("publish", {"paper": paper, "artefact": artefact})
            needs["outputs"] = {name: path for name, path in outputs.items() if name not in PICTURES}
        return spec, inputs, needs

    @cached_property
    def tables(self) -> list[tuple[str, str]]:
        """The artefacts without a figure."""
        return [key for key, entry in self.artefacts.items() if not catalogue.drawn(entry.kind, entry.marks)]

    def published(self, paper: str, artefact: str) -> list[str]:
        """The file with the paper's own numbers, if the artefact has one."""
        if not self.artefacts[paper, artefact].published:
            return []
        path = f"workflow/published/{paper}/{artefact}.csv"
        folder = files("papers")[paper].parent.parent
        if folder != digest.ROOT / "workflow":
            path = f"{folder}/published/{paper}/{artefact}.csv"  # of a paper of one's own
        if not (digest.ROOT / path).is_file():
            raise UserError(f"{self.where[paper]}: artefacts.{artefact}: published is true, but {path} does not exist.")
        return [path]

    def folder(self, tables: bool) -> str:
        """Return the pattern of a paper's folder before the files of a table, or of a figure."""
        names = "|".join("/".join(key) for key in self.tables)
        return rf"(?{'=' if tables else '!'}(?:{names})\.)[^/]+"

    # ---- the graph -------------------------------------------------------------------------------------------

    @cached_property
    def producers(self) -> dict[str, tuple[str, Mapping[str, str]]]:
        """Output -> stage and names of the job that makes it, for all possible jobs."""
        for paper, artefact in self.artefacts:
            self.first("publish", paper=paper, artefact=artefact)
        for scenario in self.repeated:
            self.first("oracles", scenario=scenario)
        producers: dict[str, tuple[str, Mapping[str, str]]] = {}
        for job in self._equal.values():
            for seed in self.seeds(job.paper) if job.names.get("run") else [0]:
                names = {name: at(value, seed) for name, value in job.names.items()}
                producers.update((at(path, seed), (job.stage, names)) for path in job.outputs.values())
        return producers

    def job(self, stage: str, names: Mapping[str, str]) -> Job:
        """Return the job with these names; equal ones are the first of the whole plan, whatever is asked for first."""
        _ = self.producers  # which goes through the whole plan, in its order
        return super().job(stage, names)

    def jobs(self, *artefacts: tuple[str, str]) -> Iterator[Job]:
        """Yield every job behind the artefacts (default: all), dependencies first."""
        return self.behind(self.job("publish", {"paper": p, "artefact": a}) for p, a in artefacts or self.artefacts)

    def behind(self, wanted: Iterable[Job]) -> Iterator[Job]:
        """Yield these jobs and all their dependencies, each once, dependencies first."""
        seen: set[str] = set()

        def walk(job: Job) -> Iterator[Job]:
            if job.certificate not in seen:
                seen.add(job.certificate)
                for file in job.files:
                    if file in self.producers:
                        yield from walk(self.job(*self.producers[file]))
                yield job

        for job in wanted:
            yield from walk(job)

    def wanted(self, target: str) -> Iterator[Job]:
        """Yield the jobs that a target names: a paper, an artefact (paper_artefact), oracles (paper/scenario), a file.

        all: every artefact.
        """
        for paper, artefact in self.artefacts:
            if target in ("all", paper, f"{paper}_{artefact}"):
                yield self.job("publish", {"paper": paper, "artefact": artefact})
        if target in self.repeated:
            yield self.job("oracles", {"scenario": target})
        if target in self.producers:
            yield self.job(*self.producers[target])

    def asked(self, targets: Iterable[str]) -> list[Job]:
        """Return the jobs that targets name (none: all); `UserError` suggests the nearest name for an unknown one."""
        wanted = {target: list(self.wanted(target)) for target in targets or ["all"]}
        for target in (target for target, jobs in wanted.items() if not jobs):
            if target.startswith(f"{self.root}/"):
                hint = nearest(target, self.producers).partition(" allowed")[0].rstrip(";")
                raise UserError(f"there is no target {target!r}{hint} (`snakemake -n` lists all files).")
            known = ["all", *self.papers, *("_".join(key) for key in self.artefacts), *self.repeated]
            raise UserError(f"there is no target {target!r}{nearest(target, known)}.")
        return [job for jobs in wanted.values() for job in jobs]

    def targets(self, *artefacts: tuple[str, str]) -> list[str]:
        """Return the files of artefacts (default: all); their dependencies are made as needed."""
        named = ({"paper": paper, "artefact": artefact} for paper, artefact in artefacts or self.artefacts)
        return sorted(path for names in named for path in self.job("publish", names).outputs.values())

    def overview(self, jobs: Iterable[Job], cores: int) -> str:
        """Return one line on the jobs to run: how many, and about how much time and disk space they take.

        Of several papers a second line says how many jobs and hours each takes.
        """
        planned = {job.certificate: job for job in jobs}
        ready: dict[str, float] = {}  # file -> seconds from the start, with a core for every job
        for job in (job for job in self.behind(planned.values()) if job.certificate in planned):
            begun = max((ready.get(path, 0.0) for path in job.files), default=0.0)
            ready.update(dict.fromkeys(job.outputs.values(), begun + job.seconds))
        seconds, disk_mb = (sum(getattr(job, of) for job in planned.values()) for of in ("seconds", "disk_mb"))
        artefacts = sum(job.stage == "publish" for job in planned.values())
        return (
            f"To make at preset {self.config.preset!r}: "
            f"{counted(artefacts, 'table or figure', 'tables and figures')} in {counted(len(planned), 'job')}, "
            f"about {lasting(max([seconds / cores, *ready.values()]))} on "
            f"{counted(cores, 'core')} ({working(seconds)}) and {max(1, round(disk_mb))} MB of disk."
            + self._each(planned.values())
        )

    def _each(self, planned: Iterable[Job]) -> str:
        """Return a line with the jobs and core hours of each paper, if there are several."""
        seconds: dict[str, list[float]] = {}
        for job in planned:
            seconds.setdefault(job.paper or "data sets", []).append(job.seconds)
        if len(seconds.keys() & self.papers.keys()) < 2:
            return ""
        sentences = (f"{name}: {counted(len(each), 'job')}, {working(sum(each))}" for name, each in seconds.items())
        return f"\n{'; '.join(sentences)}."
