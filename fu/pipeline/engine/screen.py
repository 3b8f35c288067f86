"""What a run prints: a progress bar or lines in a log file, each finished table or figure, and finally the errors."""

import contextlib
import errno
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fu.pipeline.plan.estimates import counted, lasting
from fu.pipeline.plan.plan import Job
from fu.pipeline.provenance import certificate

EVERY_SHARE, EVERY_SECONDS = 0.05, 10.0  # between two lines in a log file
MOST = 0.99  # shown as done until the last job has ended
PROGRESS = re.compile(r"\d\d:\d\d:\d\d ")  # a line of fu/federation/progress.py
TRACEBACK = "Traceback (most recent call last):"
KILLED = "the job ended without an error message, probably killed"
LOG_BYTES = 100_000  # read from the end of a log
SLURM_LOGS = ".snakemake/slurm_logs"  # as profiles/slurm says
# Why a job ended: in Slurm's log of it, and in what the plug-in reports.
FROM_SLURM = re.compile(r"(?:slurmstepd|srun|sbatch)[^:]*: error: (?:\*\*\* )?(.+?)(?: \*\*\*)?$")
FROM_PLUGIN = re.compile(r"status is: '(\w+)'|error message was '(.+?)'", re.DOTALL)
PASSES = re.compile("process was killed|is making the same outputs|interrupted")  # what a second try may not meet


class Running:
    """A running job: its logs, its start time, and when each log was last written before that."""

    def __init__(self, job: Job, logs: list[str]) -> None:
        """Record that a job has started."""
        self.job, self.logs, self.began = job, logs, time.monotonic()
        self.before = {log: _written(log) for log in logs}

    def written(self) -> list[str]:
        """Return those of its logs that it has written."""
        return [log for log in self.logs if _written(log) != self.before[log]]

    def is_made(self) -> bool:
        """Whether it has ended well, in a group of which another job failed."""
        made = certificate.read(Path(self.job.certificate))
        return made is not None and made.key in self.job.keys


class Screen:
    """The account of a run; `shows`: whether on the screen, else it only collects failures, which stand there last."""

    def __init__(self, stream: Any = None) -> None:
        """Show nothing before `begin`."""
        self.shows, self.stream = True, stream or sys.stderr
        self.running: dict[int, Running] = {}
        self.failures: dict[int, str] = {}
        self.jobs: dict[tuple[str, frozenset[tuple[str, str]]], Job] = {}  # by stage and names
        self.made, self.spent = 0, 0.0  # jobs, and their estimated seconds
        self._bar: Any = None
        self._shown, self._share_shown = 0.0, 0.0
        self._ended, self.lock = threading.Event(), threading.RLock()  # the bar moves in a thread of its own
        self.give_up: Callable[[set[int]], None] = lambda numbers: None

    def begin(self, jobs: Iterable[Job], cores: int) -> None:
        """Show the progress of these jobs from now on."""
        self.jobs = {(job.stage, frozenset(job.names.items())): job for job in jobs}
        self.total, self.cores = sum(job.seconds for job in self.jobs.values()), cores
        self.began = self._shown = time.monotonic()
        if not self.shows or not self.jobs:
            return
        if self.stream.isatty():
            form = "{percentage:3.0f}% |{bar}| {desc}"
            self._bar = tqdm(total=self.total, bar_format=form, file=self.stream, dynamic_ncols=True, leave=False)
        threading.Thread(target=self._watch, daemon=True).start()

    def started(self, number: int, stage: str, names: Mapping[str, str], logs: Iterable[object]) -> None:
        """Show that a job runs."""
        if job := self.jobs.get((stage, frozenset(names.items()))):
            self.running[number] = Running(job, [*map(str, logs)])

    def finished(self, number: int) -> None:
        """Show that a job has ended well, if only when it was tried again."""
        self.failures.pop(number, None)
        if running := self.running.pop(number, None):
            self.made += 1
            self.spent += running.job.seconds
            if running.job.stage == "publish":
                took = time.monotonic() - running.began
                self._say(f"{running.job.formats} ({took:.1f} s)")
            self._show()

    def wrong(self, sentence: str) -> None:
        """Show finally what is wrong with the run itself."""
        self.failures[-1 - len(self.failures)] = sentence

    def failed(self, numbers: list[int], logs: Iterable[object] = (), message: str = "") -> None:
        """Tell why jobs failed, of a pack those that know; have the scheduler give up those that would fail again."""
        ended = {number: self.running.pop(number) for number in numbers if number in self.running}
        begun = sorted(ended.items(), key=lambda item: not item[1].written())  # those that began first
        unmade = {number: running for number, running in begun if not running.is_made()} or ended
        known = {number: running for number, running in unmade.items() if tells(running.written())}
        others = [log for log in map(str, logs) if SLURM_LOGS in log]
        shown = known or dict(list(unmade.items())[:1])
        for number, running in shown.items():
            self.failures[number] = problem(running.job.stem, [*running.written(), *others] or running.logs, message)
            self._say(f"{running.job.stem}: failed")
        if any(not PASSES.search(self.failures[number]) for number in shown if known or tells(others)):
            self.give_up(set(ended))

    def _watch(self) -> None:
        while not self._ended.wait(1):
            with self.lock:
                self._show()

    def _show(self) -> None:
        """Update the bar, or the lines of a log file; running jobs count with their elapsed time."""
        if not self.shows or not self.jobs:
            return
        now = time.monotonic()
        begun = sum(min(now - running.began, running.job.seconds) for running in self.running.values())
        share = min((self.spent + begun) / self.total, 1 if self.made == len(self.jobs) else MOST)
        elapsed = now - self.began
        left = max(elapsed * (1 / share - 1) if share > 0.02 else self.total / self.cores - elapsed, 0)
        text = f"{self.made} of {counted(len(self.jobs), 'job')} done, about {lasting(left)} left"
        if self._bar is not None:
            self._bar.n = share * self.total
            self._bar.set_description_str(text)
        elif share - self._share_shown >= EVERY_SHARE and now - self._shown >= EVERY_SECONDS:
            self._shown, self._share_shown = now, share
            self._say(f"{share:.0%}: {text}")

    def _say(self, text: str) -> None:
        if self.shows:
            self.aside(lambda: print(f"{time.strftime('%H:%M:%S')} {text}", file=self.stream, flush=True))

    def aside(self, write: Callable[[], object]) -> None:
        """Write something beside the bar."""
        with contextlib.nullcontext() if self._bar is None else tqdm.external_write_mode(file=self.stream):
            write()

    def end(self) -> None:
        """Finally, say how much was made and why jobs failed: every reason once."""
        self._ended.set()
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if self.jobs:
            self._say(
                f"{self.made} of {counted(len(self.jobs), 'job')} done in {lasting(time.monotonic() - self.began)}"
            )
        for text in dict.fromkeys(self.failures.values()):
            print(text, file=self.stream, flush=True)


def problem(name: str, logs: list[str], message: str = "") -> str:
    """Return in one sentence why a job failed, as its log or Slurm says, and where the rest is.

    `message`: what the Slurm plug-in reports, where Slurm refused the job or ended it.
    """
    lines = _own(logs)
    if not lines and (why := next(filter(None, map(_closed, logs)), "")):
        return f"error: {why}"
    others = [line for log in logs if SLURM_LOGS in log for line in lines_of(log)]
    slurm = [match[1] for line in others if (match := FROM_SLURM.match(line))]
    slurm += [" ".join(word.split()) for match in FROM_PLUGIN.finditer(message) for word in match.groups() if word]
    last = f"Slurm: {slurm[0]}" if slurm and not tells(logs) else lines[-1] if lines else KILLED
    sentence = last.removeprefix("error: ")
    if sentence != last and TRACEBACK not in lines:
        return last
    what = "full traceback" if TRACEBACK in lines else "log"
    where = f"{name}: " if sentence == last else ""  # else it names file and line of a plug-in
    return f"error: {where}{sentence.rstrip('.')} ({what}: {', '.join(logs)})."


def refused(number: int, where: str) -> str:
    """Return one sentence on a write that the system refused, and what to do."""
    full = number in (errno.ENOSPC, errno.EDQUOT)
    room = "free disk space (`df -h` and `df -i` show space and inodes), then " if full else ""
    return f"{where}: {os.strerror(number)}; {room}start again: no finished result is lost."


def _closed(log: str) -> str:
    """Return why a job's shell could not create its log; "" if it could."""
    path = Path(log)
    if path.exists():
        return ""
    try:
        path.touch()
        path.unlink()
    except OSError as error:
        return refused(error.errno or 0, log) if error.errno != errno.ENOENT else ""
    return ""


def tells(logs: list[str]) -> bool:
    """Whether a job says itself why it failed: with a sentence or a traceback."""
    lines = _own(logs)
    return bool(lines) and (lines[-1].startswith("error: ") or TRACEBACK in lines)


def _own(logs: list[str]) -> list[str]:
    """Return the lines of a job's logs other than progress; of Slurm's log, errors before the job started."""
    lines = [line for log in logs for line in lines_of(log) if SLURM_LOGS not in log or line.startswith("error: ")]
    return [line for line in lines if line and not PROGRESS.match(line)]


def _written(log: str) -> float | None:
    return Path(log).stat().st_mtime if Path(log).exists() else None


def lines_of(path: str) -> list[str]:
    """Return the last lines of a log; none where there is no such file."""
    log = Path(path)
    if not log.is_file():
        return []
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_BYTES))
        return [line.strip() for line in file.read().decode(errors="replace").splitlines()]
