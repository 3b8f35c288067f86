"""The adapter to Snakemake: the only file that uses its undocumented objects, with the reason for each.

Rules have functions (`rules.py`), profiles say how Snakemake runs, and the plan says what (`pending.py`).
"""

import contextlib
import io
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from snakemake.cli import parse_args
from snakemake.io import ancient, unpack
from snakemake.ioflags import update
from snakemake.logging import logger
from snakemake.settings.types import RerunTrigger
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

from fu.pipeline.engine.screen import Screen

__all__ = ["Account", "Asked", "Snakemake", "ancient", "unpack", "update"]

Asked = tuple[str, dict[str, str]]  # a stage, and the wildcards of a job
STAGES = {"tabulate": "publish"}  # of rules that have another name than their stage

# What its log says and a person need not read: an account of jobs, which the screen gives, ...
ACCOUNT = {"run_info", "workflow_started", "shellcmd", "job_started", "resources_info", "progress", "rulegraph"}
MATTERS = re.compile("Nothing to be done|Will exit after")  # alone of all that is said after the start
REPEATS = re.compile(  # ... that a job has failed, and what the plan decides or cluster.yaml says
    "(?s).*CalledProcessError|Cannot restore|Restored previous version|Exiting because a job execution failed|"
    "WorkflowError:\nAt least one job did not complete|--keep-incomplete mode is set|"
    "Ignore corrupted or currently written metadata record|"
    "No SLURM account given|No account was given|Unable to guess SLURM account"
)
# In a message or traceback: number, text, and of a copy the second file.
SYSTEM_ERROR = re.compile(r"\[Errno (\d+)\] ([^:()'\n]+)(?:: (?:'[^'\n]*' -> )?'([^'\n]+)')?")


class Snakemake:
    """One process of Snakemake: a run, or what a cluster was given of one.

    Its settings are those of the command line from when it asks for the inputs of jobs, not while it reads the rules.
    """

    def __init__(self, workflow: Any) -> None:
        """`workflow`: as the Snakefile knows it."""
        self._workflow, self._rename = workflow, workflow.modifier.modify_rulename
        self.is_module = not workflow.modifier.is_main_snakefile()
        self.is_run: bool = workflow.is_main_process  # what is submitted plans its own jobs alone, and shows nothing
        # On one machine Snakemake starts itself only for rules that are no shell commands: a module has such rules.
        self.is_submitted = not self.is_run and not self.is_module

    @property
    def submits(self) -> bool:
        """Whether this run submits jobs; the workflow does not know its executor while its rules are parsed."""
        if self.is_module or not self.is_run:
            return False
        with contextlib.redirect_stderr(io.StringIO()):  # it says it again
            try:
                _, args = parse_args(sys.argv[1:])
            except SystemExit:  # a mistake, or --help
                return False
        executor = ExecutorPluginRegistry().get_plugin(args.executor or "local")
        return executor.common_settings.non_local_exec and not args.dryrun

    @property
    def targets(self) -> list[str]:
        """What the command line names: the plan knows which jobs have to run for it.

        Where this is a module, it names what the plan does not know: then all may have to run.
        """
        if self.is_module or not self._workflow.dag_settings:
            return []
        named = self._workflow.dag_settings.targets
        return [os.path.relpath(name) if os.sep in name else name for name in named]

    @property
    def forced(self) -> bool:
        """Whether a person forces jobs (-F, -f, -R), which then compute even if nothing has changed."""
        asked = self._workflow.dag_settings
        return bool(asked.forceall or asked.forcetargets or asked.forcerun)

    @property
    def refused(self) -> list[str]:
        """The options in use that jobs do not support: Snakemake's cache, its environments, a path prefix."""
        asked = {
            "cache": self._workflow.workflow_settings.cache is not None,
            "sdm": bool(self._workflow.deployment_settings.deployment_method),
            "prefix": self._workflow.modifier.modify_path("results") != "results",
        }
        return [option for option, is_asked in asked.items() if is_asked]

    @property
    def assigned(self) -> list[Asked]:
        """The jobs assigned to a submitted process; Snakemake may ask its rules about others, too."""
        jobs = self._workflow.dag_settings.target_jobs
        return [(STAGES.get(job.rulename, job.rulename), job.wildcards_dict) for job in jobs]

    @property
    def runs_here(self) -> bool:
        """Whether jobs run on this machine."""
        return bool(self._workflow.local_exec)

    @property
    def is_dry(self) -> bool:
        """Whether this is a dry run (-n)."""
        return bool(self._workflow.output_settings.dryrun)

    @property
    def uses_records(self) -> bool:
        """Whether Snakemake's own records can rerun jobs, too (no --rerun-triggers mtime)."""
        return bool(self._workflow.dag_settings.rerun_triggers != {RerunTrigger.MTIME})

    @property
    def cores(self) -> int:
        """How many jobs run at a time, for an estimate."""
        return int(self._workflow.nodes or self._workflow.cores)

    @property
    def scratch(self) -> Path:
        """Its temporary folder, which it leaves behind where it is killed."""
        return Path(self._workflow.snakemake_tmp_dir)

    def around(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """Call these before the first and after the last job, as `onstart` does in a Snakefile that is no module."""
        self._workflow._onstart = lambda log: begin()
        self._workflow._onsuccess = self._workflow._onerror = lambda log: end()

    def to_run(self, stages: Iterable[str]) -> list[Asked]:
        """Return what it is about to run of these rules: also what a person forces, which the plan does not know."""
        ours = {self._rename(rule): STAGES.get(rule, rule) for rule in (*stages, *STAGES)}
        jobs = self._workflow.dag.needrun_jobs()
        return [(ours[job.rule.name], job.wildcards_dict) for job in jobs if job.rule.name in ours]

    def prepare(self, packs: Iterable[str] = (), keep_going: bool = False) -> None:
        """Change settings that no profile can: it reaches no submitted process, and packs have no names beforehand."""
        # At this default, which no value switches off, it looks at all ready jobs again a second after every job, again
        # and again: half the cost of a small job.
        settings = self._workflow.scheduling_settings
        rate = settings and settings.max_jobs_per_timespan
        if rate and (rate.max_jobs, rate.timespan) == (100, 1):
            settings.max_jobs_per_timespan = None
        if keep_going:
            self._workflow.execution_settings.keep_going = True
        # Jobs replace outputs whole or not at all; `update` alone would first copy the old ones, of gigabytes.
        if not self.is_module:
            persistence = self._workflow.persistence
            persistence.backup_output = persistence.cleanup_backup = lambda path: None
            persistence.restore_output = Path.exists
        # Jobs of one group are submitted as one only where they depend on each other, or up to so many together.
        if packs:
            self._workflow.group_settings.group_components = dict.fromkeys(packs, sys.maxsize)

    def run_locally(self, *stages: str) -> None:
        """Never submit these rules: `localrules`, by the names that a module statement gives them."""
        self._workflow.localrules(*map(self._rename, stages))

    def limit(self, resource: str, most: int) -> None:
        """Limit a resource, also in submitted processes, which get no --resources."""
        self._workflow.register_resource(resource, most)

    def give_up(self, numbers: set[int]) -> None:
        """Have it not submit jobs again that would fail again: `retries` knows no reasons."""
        for job in list(self._workflow.scheduler.running):
            if numbers & {one.jobid for one in (job.jobs if job.is_group() else [job])}:
                job.attempt = job.restart_times + 1

    def unlock(self) -> None:
        """Unlock the folder before this process ends without it, which would wait for all jobs in the queue."""
        self._workflow.persistence.unlock()


class Account(logging.Handler):
    """Tells the screen what Snakemake logs, in place of its own handler where nobody asked for that one's output.

    A logger plug-in could not: it is called in another thread, when a failed job may have been submitted again already,
    and is found only as an installed package.
    """

    def __init__(
        self, workflow: Any, screen: Screen, explain: Callable[[str, str], str | None], usual: bool = False
    ) -> None:
        """Take over, unless Snakemake's usual output is wanted.

        `explain`: what to say in place of an error, from the name of its exception and its text.
        """
        super().__init__()
        asked = workflow.output_settings
        wanted = usual or asked.dryrun or asked.verbose or asked.printshellcmds or asked.debug_dag or asked.stdout
        self.usual = next(
            (each for each in logger.handlers if each.name == "DefaultStreamHandler" and not wanted), None
        )
        self.screen, self.explain, self._began = screen, explain, False
        screen.shows = self.usual is not None
        if self.usual:
            logger.removeHandler(self.usual)
        logger.addHandler(self)
        logger.addFilter(self.in_one_sentence)

    def in_one_sentence(self, record: logging.LogRecord) -> bool:
        """Change an error in place, for the log file, too; every record passes."""
        exception = getattr(record, "exception", None)
        if exception and (sentence := self.explain(exception, str(record.msg))):
            record.msg = f"error: {sentence}"
        return True

    def emit(self, record: logging.LogRecord) -> None:
        """Tell the screen what a record says of a job; show what else matters."""
        field: Any = record.__dict__.get
        text = str(record.msg or "")
        with self.screen.lock:
            match event := str(field("event") or ""):
                case "job_info":
                    stage = STAGES.get(field("rule_name"), field("rule_name"))
                    self.screen.started(field("jobid"), stage, field("wildcards") or {}, field("log"))
                case "job_finished":
                    self.screen.finished(field("job_id"))
                case "group_error":
                    self.screen.failed([job["jobid"] for job in field("job_error_info")], field("aux_logs"))
                case "job_error":
                    self.screen.failed([field("jobid")], field("log") or [], field("rule_msg") or "")
                case _ if (usual := self.usual) and self._matters(event, text, record.levelno):
                    if self.screen.jobs and text.startswith("error: "):
                        self.screen.wrong(text)
                    else:
                        self.screen.aside(lambda: usual.handle(record))
            self._began |= event == "workflow_started"

    def _matters(self, event: str, text: str, level: int) -> bool:
        if event in ACCOUNT or REPEATS.match(text):
            return False
        return level >= logging.WARNING or not self._began or MATTERS.match(text) is not None
