"""The functions that the rules call: a job's input and output files, its command, its resources and its pack."""

import atexit
import gc
import logging
import math
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fu import gpus
from fu.errors import UserError, worded
from fu.pipeline.engine import cluster, fork_server, groups, preflight, runs, submitted
from fu.pipeline.engine.screen import Screen, refused
from fu.pipeline.engine.snakemake import SYSTEM_ERROR, Account, Snakemake, ancient, unpack, update
from fu.pipeline.plan import commands, estimates
from fu.pipeline.plan.pending import Pending
from fu.pipeline.plan.plan import Job, Plan
from fu.pipeline.provenance import digest
from fu.pipeline.provenance.digest import PACKAGES, ROOT
from fu.pipeline.provenance.paths import OUTPUTS, PICTURES
from fu.pipeline.settings import papers
from fu.pipeline.stages.common import OUTSIDE

PACK = "pack"  # the name of a pack in the process that runs it
SLOT = "gpu_slot"  # the resource of which there is one for each job that a GPU of this machine may have
REFUSED = {
    "cache": "--cache (`cache:` in a profile): Snakemake's cache would return outputs without the certificates that "
    "say what they were made from; leave it out, and copy results with their *.made.json where others need them.",
    "sdm": "--sdm (`software-deployment-method:` in a profile): jobs run in Snakemake's own environment, whose "
    "libraries the plan reads; leave it out, and make that environment in a clone, with `make -C fu version` or `conda "
    "env create -f envs/environment.yaml`.",
    "prefix": "prefix (in the module statement): results always go to results/ in the working directory; leave it out.",
}


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """End with a user's mistake in one sentence, before Snakemake reports it."""
    try:
        yield
    except UserError as error:
        sys.exit(f"error: {error}")


@in_one_sentence()
def config_file(workflow: Any) -> str:
    """Return the path of the config after checking that it can be read; in a submitted job, the config of its run."""
    if Snakemake(workflow).is_submitted:
        return str(submitted.CONFIG)
    file = papers.config_file()
    if file.exists():
        papers.read_yaml(file)
    return str(file)


def _named(stage: str, what: str, named: set[str], planned: Iterable[str]) -> None:
    if differ := named ^ {*planned}:
        raise UserError(f"workflow/rules/stages.smk: rule {stage} and the plan differ in the {what} {differ}.")


class Engine:
    """One process of Snakemake: a run, or what a cluster was given of one."""

    @in_one_sentence()
    def __init__(self, workflow: Any, config: dict[str, Any]) -> None:
        """Plan; a run takes the screen over."""
        gc.disable()  # building the graph makes millions of objects and no garbage: saves an eighth of a dry run
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # `python` of the jobs
        fork_server.announce()
        self.snakemake, self.config, self.screen = Snakemake(workflow), config, Screen()
        for option in self.snakemake.refused:
            raise UserError(REFUSED[option])
        self.submits, self.submitted = self.snakemake.submits, None
        if self.snakemake.is_submitted:
            self.submitted = submitted.read()
            config.clear()
            config.update(self.submitted.config)
        if Path.cwd() != ROOT:  # jobs import `fu` from here
            given, fu = os.environ.get("PYTHONPATH", "").split(os.pathsep), str(PACKAGES)
            above = [path for path in given if path not in ("", fu)]
            os.environ.update(PYTHONPATH=os.pathsep.join([fu, *above]), PYTHONSAFEPATH="1")
        self.plan = Plan(config)
        if self.plan.config.cpu == "portable":
            fork_server.be_portable()
        self.pending = Pending(self.plan)
        self.gpu, self.shares = self.plan.config.device == "cuda", False
        self.site = cluster.read() if self.submits else cluster.Cluster()
        self.limit = self.site.limit(self.gpu) if self.submits else math.inf
        if self.submits or self.submitted:
            self.snakemake.limit("turn", 1)  # of the jobs of a pack
        elif self.snakemake.is_run and self.plan.config.device != "cpu":
            self._share_gpus()
        if self.snakemake.is_run:
            logging.raiseExceptions = False  # a full disk takes no line of a log
            atexit.register(self.pending.remember_made)
            atexit.register(self.screen.end)
            usual = self.snakemake.is_module  # the screen knows nothing of the other workflow's jobs
            Account(workflow, self.screen, lambda *error: explain(self.plan, self.snakemake.targets, *error), usual)
            self.snakemake.around(self.begin, self.page)

    def _share_gpus(self) -> None:
        """Have jobs share the GPUs of this machine, and no job start that would wait for one."""
        found = gpus.found()
        if found and not version("torch").endswith("+cpu"):
            most = max((job.gpu_mem_mb for job in self.plan.jobs()), default=0)
            each = self.plan.config.jobs_per_gpu or max(1, min(gpu.memory_mb for gpu in found) // max(1, most))
            gpus.share(found, each)
            self.snakemake.limit(SLOT, each * len(found))
            self.shares = True

    # ---- what runs -----------------------------------------------------------------------------------------------

    @cached_property
    def due(self) -> dict[str, Job]:
        """The jobs that have to run for the targets, by certificate, dependencies first: `stamp` drives them."""
        self.snakemake.prepare()
        if self.snakemake.is_module and self.snakemake.uses_records:
            print(
                "warning: Snakemake's own records can rerun jobs that are up to date; use --rerun-triggers mtime, or "
                "--workflow-profile with fu's profiles/default.",
                file=sys.stderr,
            )
        jobs = [job for job, _ in self.pending.to_make(self.plan.asked(self.snakemake.targets))]
        if self.snakemake.is_dry:
            try:
                preflight.check_archives(self.plan, jobs, here=True)
            except UserError as error:
                print(f"warning: {error}", file=sys.stderr)
        return {job.certificate: job for job in jobs}

    @cached_property
    def stamp(self) -> str:
        """A file that due jobs read: newer than all that they made, with contents that were never read before."""
        Path(".snakemake").mkdir(exist_ok=True)
        stamp = tempfile.NamedTemporaryFile("w", prefix="due-", dir=".snakemake")  # noqa: SIM115 (until the end)
        atexit.register(stamp.close)
        stamp.write(stamp.name)
        stamp.flush()
        written = Path(stamp.name).stat().st_mtime
        for path in {path for job in self.due.values() for path in (*job.files, *job.outputs.values())}:
            with suppress(FileNotFoundError):
                if os.stat(path).st_mtime >= written:  # noqa: PTH116 (there are many); in the future, by another clock
                    os.utime(path, (written - 1, written - 1))
        return os.path.relpath(stamp.name)

    @cached_property
    def assigned(self) -> set[str]:
        """The certificates of the jobs assigned to this submitted process.

        If it runs them itself, Snakemake is prepared for several.
        """
        made = {self.plan.paths.certificate(stage, **names) for stage, names in self.snakemake.assigned}
        if self.submitted and not self.plan.producers.keys() >= made:  # an edit has removed one
            sys.exit(f"error: {submitted.EDITED}")
        here = self.snakemake.runs_here
        self.snakemake.prepare([PACK], keep_going=here)
        if here:
            gc.enable()
        if here and len(made) > 1:
            fork_server.start()
        return made

    @cached_property
    def places(self) -> dict[str, groups.Place]:
        """Where in packs the jobs of this run are submitted, by certificate."""
        behind = self.plan.behind(self.plan.asked(self.snakemake.targets))
        jobs = behind if self.snakemake.forced else self.due.values()
        places = groups.places(self.plan, jobs, 60 * self.site.pack_minutes)
        self.snakemake.prepare({place.pack for place in places.values()})
        return places

    # ---- rules ---------------------------------------------------------------------------------------------------

    def inputs(self, stage: str, *names: str) -> Any:
        """Return the input function of a stage, whose inputs have these names.

        Only the stamp's time counts, so that Snakemake runs exactly the jobs that are due. A job that is not due needs
        none of its inputs that are absent.
        """

        def inputs(wildcards: Any) -> dict[str, Any]:
            job = self.plan.job(stage, dict(wildcards))
            _named(stage, "inputs", {*names}, job.listed)
            files = {
                name: [commands.file(path) for path in paths] if name == "published" else paths
                for name, paths in job.listed.items()
            }
            if not self.snakemake.is_run:
                return files if job.certificate in self.assigned else {}
            if job.certificate in self.due:
                return {**files, "due": self.stamp}
            needed = self.snakemake.forced
            return {
                name: [ancient(path) for path in paths if needed or Path(path).exists()]
                for name, paths in files.items()
            }

        return unpack(inputs)

    def outputs(self, stage: str, *names: str, **flags: Callable[[Any], Any]) -> dict[str, Any]:
        """Return the outputs of a stage, which survive if the job that would replace them fails; some with a flag.

        Tables have no pictures.
        """
        named, pictures = {*names, *flags}, {*PICTURES}
        _named(stage, "outputs", named, OUTPUTS[stage].keys() - (pictures if named.isdisjoint(pictures) else {}))
        paths = self.plan.paths.outputs(stage)
        files = {name: update(paths[name]) for name in [*names, *flags, "certificate"]}
        return {name: flags[name](path) if name in flags else path for name, path in files.items()}

    def command(self, made: Any, threads: int) -> str:
        """Return the command that makes a certificate with all other outputs."""
        job = self.plan.job(*self.plan.producers[str(made)])
        if self.submitted and self.submitted.commands.get(job.certificate) != self._digest(job):
            return shlex.join(["python", "-c", f"raise SystemExit({f'error: {submitted.EDITED}'!r})"])
        words = commands.words(self.plan, job, threads)
        forced = self.submitted.forced if self.submitted else self.snakemake.forced
        return commands.served("python", [*words, "--code", job.code, *([] if forced else ["--unless-made"])])

    def _digest(self, job: Job) -> str:
        """Return the digest of a job's command, whatever its number of threads."""
        return submitted.digest([*commands.words(self.plan, job, threads=0), job.code])

    def pack(self, stage: str) -> Callable[[Any], str | None] | None:
        """Return the function that names the pack in which a job is submitted; None where all jobs run on their own."""
        if not (self.submits or self.submitted):
            return None

        def name(wildcards: Any) -> str | None:
            if not self.snakemake.is_run:
                return PACK if len(self.assigned) > 1 else None
            place = self.places.get(self.plan.job(stage, dict(wildcards)).certificate)
            return place and place.pack

        return name

    def resources(self, stage: str) -> dict[str, Any]:
        """Return what a job asks of a machine or cluster."""

        def minutes(wildcards: Any, attempt: int) -> int:
            job = self.plan.job(stage, dict(wildcards))
            place = self.places.get(job.certificate) if self.submits and not here else None
            if place is None:
                return cluster.minutes(job.minutes, attempt, self.limit)
            return place.minutes(job, cluster.minutes(estimates.minutes(place.seconds), attempt, self.limit))

        here = not (self.submits or self.submitted) or stage in groups.HERE
        asked = {} if here else {"turn": 1, **self.site.resources(self.gpu and groups.computes(stage))}
        if self.shares and groups.computes(stage):
            asked[SLOT] = 1
        return {"mem_mb": lambda wildcards: self.plan.job(stage, dict(wildcards)).mem_mb, "runtime": minutes, **asked}

    @cached_property
    def retries(self) -> int | None:
        """How often a job is submitted again; on a desk as --retries says."""
        if not self.submits:
            return None
        return cluster.retries(max(job.minutes for job in self.plan.jobs()), self.limit)

    # ---- a run ---------------------------------------------------------------------------------------------------

    @in_one_sentence()
    def begin(self) -> None:
        """Check and announce what is about to run."""
        gc.enable()
        here = self.snakemake.runs_here
        if not (here or self.submits):
            raise UserError(
                "a workflow with rules of its own cannot be submitted to a cluster; make what it needs of fu with "
                f"`snakemake --snakefile {ROOT}/Snakefile --workflow-profile {ROOT}/profiles/slurm`."
            )
        jobs = [self.plan.job(stage, names) for stage, names in self.snakemake.to_run(OUTPUTS)]
        preflight.check(self.plan, jobs, here=here)
        if self.submits:
            cluster.begin(Path.cwd())
            commands = {job.certificate: self._digest(job) for job in jobs if job.stage not in groups.HERE}
            submitted.write(self.config, self.snakemake.forced, commands)
            self.screen.give_up = self.snakemake.give_up
            signal.signal(signal.SIGTERM, self._end_at_once)
        else:
            runs.begin()
        print(self.plan.overview(jobs, self.snakemake.cores), file=sys.stderr)
        self.screen.begin(jobs, self.snakemake.cores)
        digest.remember()
        fork_server.start(self.snakemake.scratch)

    def page(self) -> None:
        """Write the page of all artefacts, those of failed runs, too; say what is wrong with it."""
        from fu.pipeline.page import write  # slow

        if sentence := write.update(self.plan):
            self.screen.aside(lambda: print(sentence, file=sys.stderr))

    def _end_at_once(self, *_: Any) -> None:
        """End on SIGTERM, as when a login node restarts: Snakemake would wait for all jobs in the queue."""
        self.snakemake.unlock()
        self.screen.end()
        print(
            "error: ended by SIGTERM; queued jobs continue, and the same command resumes from their results.",
            file=sys.stderr,
            flush=True,
        )
        os._exit(128 + signal.SIGTERM)


def explain(plan: Plan, targets: list[str], exception: str, text: str) -> str | None:
    """Return in one sentence an error of Snakemake's: an unknown target, who has locked the folder, a full disk."""
    try:
        plan.asked(targets)
    except UserError as error:
        return str(error)
    if exception == "LockException":
        if alive := runs.alive():
            return f"{' and '.join(alive)}: already writing these results; wait until it ends, or kill it."
        return worded("a killed run has left this folder locked; remove the lock with `make unlock`, and start again.")
    for number, _, path in SYSTEM_ERROR.findall(text):
        if int(number) in OUTSIDE:
            where = path if path and ".snakemake" not in Path(path).parts else ".snakemake"
            return refused(int(number), where)
    return None
