"""What a run shows: progress, why jobs failed, and what of Snakemake's own lines matters."""

import errno
import io
import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fu.pipeline.engine import runs, snakemake
from fu.pipeline.engine.rules import explain
from fu.pipeline.engine.screen import Screen, problem
from fu.pipeline.engine.snakemake import Account
from fu.pipeline.plan.plan import Job
from fu.pipeline.provenance import certificate
from fu.pipeline.provenance.certificate import Certificate
from tests.pipeline.plans import made

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\nValueError: boom\n'
SLURM = ".snakemake/slurm_logs/rule_train/x/12.log"
LIMIT = "slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT DAWN DUE TO TIME LIMIT ***\n"
JOBS = [
    made("smoke").job("evaluate", {"run": "fedosd/mnist-iid/seed0", "trial": name, "evaluation": "evaluation"})
    for name in ("original", "retraining", "federaser")
]


class Shown:
    """A screen with its own clock, and what it shows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, terminal: bool = False, asked: str = "") -> None:
        self.stream, self.now = io.StringIO(), 100.0
        self.stream.isatty = lambda: terminal  # type: ignore[method-assign]
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "strftime", lambda form: "12:00:00")
        monkeypatch.setattr(threading.Thread, "start", lambda thread: None)
        self.logger, usual = logging.Logger("snakemake"), logging.StreamHandler(self.stream)
        usual.name = "DefaultStreamHandler"
        self.logger.addHandler(usual)
        monkeypatch.setattr(snakemake, "logger", self.logger)
        names = ("dryrun", "verbose", "printshellcmds", "debug_dag", "stdout")
        workflow = SimpleNamespace(output_settings=SimpleNamespace(**{name: name == asked for name in names}))
        self.screen = Screen(self.stream)
        Account(workflow, self.screen, lambda name, text: "it is full." if name == "OSError" else None)

    def log(self, text: str, level: int = logging.INFO, **about: Any) -> None:
        record = logging.LogRecord("snakemake.logging", level, "", 0, text, None, None)
        record.__dict__.update(about)
        self.logger.handle(record)

    def start(self, number: int, job: Job, *logs: Path) -> None:
        is_table = job.stage == "publish" and "png" not in job.outputs
        about = {
            "rule_name": "tabulate" if is_table else job.stage,
            "wildcards": dict(job.names),
            "log": [*map(str, logs)],
        }
        self.log("", logging.INFO, event="job_info", jobid=number, **about)

    def fail(self, tmp_path: Path, *texts: str | None, group: bool = False) -> list[set[int]]:
        """Have jobs fail with what they log, each alone or as a pack; return which are not to be tried again."""
        given_up: list[set[int]] = []
        self.screen.give_up = given_up.append
        self.screen.begin(JOBS, cores=1)
        logs = [tmp_path / f"{number}.log" for number in range(len(texts))]
        for number, log in enumerate(logs):
            log.write_text("error: of an earlier run.\n")
            os.utime(log, (1, 1))
            self.start(number, JOBS[number], log)
        for log, text in zip(logs, texts, strict=True):
            if text is not None:
                log.write_text(text)
        errors = [{"jobid": number} for number in range(len(texts))]
        if group:
            self.log("", logging.ERROR, event="group_error", job_error_info=errors, aux_logs=[SLURM])
        for error, log in zip(errors, logs, strict=True):
            self.log("", logging.ERROR, event="job_error", log=[str(log)], rule_msg=None, **error)
        self.screen.end()
        return given_up

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Shown]:
    monkeypatch.chdir(tmp_path)  # where no results lie
    found = Shown(monkeypatch)
    yield found
    found.screen.end()


@pytest.mark.parametrize(
    ("own", "slurm", "reported", "sentence"),
    [
        ("10:00 round 1\nerror: no archive.\n", LIMIT, "", "error: no archive."),
        (f"error: of before.\n{TRACEBACK}", LIMIT, "", "error: x: ValueError: boom (full traceback: {logs})."),
        (f"{TRACEBACK}error: my.py: line 3: boom.\n", "", "", "error: my.py: line 3: boom (full traceback: {logs})."),
        ("bash: python: not found.\n", "", "", "error: x: bash: python: not found (log: {logs})."),
        ("07:51:16 x: round 1/3 (33%)\n", "Building DAG of jobs...\n", "",
         "error: x: the job ended without an error message, probably killed (log: {logs})."),
        ("y" * 200_000 + "\nerror: the end.\n", "", "", "error: the end."),
        ("Warning: w\n", LIMIT, "",
         "error: x: Slurm: JOB 12 ON node1 CANCELLED AT DAWN DUE TO TIME LIMIT (log: {logs})."),
        ("", "", "SLURM-job '12' failed, SLURM status is: 'NODE_FAIL'.", "error: x: Slurm: NODE_FAIL (log: {logs})."),
        ("", "", "The error message was 'sbatch: error: Invalid.\n sorry'.\n",
         "error: x: Slurm: sbatch: error: Invalid. sorry (log: {logs})."),
        ("", "Building DAG\nerror: edited.\n", "SLURM status is: 'FAILED'", "error: edited."),  # before it began
    ],
)  # fmt: skip
def test_a_failed_job_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, slurm: str, reported: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(SLURM).parent.mkdir(parents=True)
    Path("x.log").write_text(own)
    Path(SLURM).write_text(slurm)
    assert problem("x", ["x.log", SLURM], reported) == sentence.format(logs=f"x.log, {SLURM}")


def test_a_shell_that_could_not_begin_its_log_was_not_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "")

    log = tmp_path / "x.log"
    assert "probably killed" in problem("x", [str(log)])
    assert not log.exists()
    monkeypatch.setattr(Path, "touch", full)
    assert problem("x", [str(log)]).startswith(f"error: {log}: No space left on device; free disk space (`df -h` ")


@pytest.mark.parametrize(
    ("text", "fails_again"),
    [
        ("error: no archive.\n", True),
        (TRACEBACK, True),
        ("10:00:00 x: round 1/3\n", False),
        (None, False),
        ("error: x: the job's process was killed; if memory ran out, use fewer CORES.\n", False),
        ("error: x: process 1 on y is making the same outputs; wait.\n", False),
    ],
)
def test_only_a_job_that_would_fail_again_is_given_up(
    shown: Shown, tmp_path: Path, text: str | None, fails_again: bool
) -> None:
    assert shown.fail(tmp_path, text) == [{0}] * fails_again


def test_of_a_pack_the_jobs_that_say_why_are_shown_and_all_are_given_up(shown: Shown, tmp_path: Path) -> None:
    assert shown.fail(tmp_path, "", "error: b.\n", None, group=True) == [{0, 1, 2}]
    assert [line for line in shown.lines if line.startswith("error: ")] == ["error: b."]


def test_of_a_pack_that_ended_before_it_began_slurms_log_says_why(shown: Shown, tmp_path: Path) -> None:
    Path(SLURM).parent.mkdir(parents=True)
    Path(SLURM).write_text("error: edited.\n")
    assert shown.fail(tmp_path, None, None, None, group=True) == [{0, 1, 2}]
    assert shown.lines[-1] == "error: edited."


def test_of_a_pack_that_was_killed_the_job_that_had_begun_is_shown(shown: Shown, tmp_path: Path) -> None:
    path = Path(JOBS[0].certificate)
    path.parent.mkdir(parents=True)
    certificate.write(path, Certificate(JOBS[0].keys[0], "evaluate", {}, "", {}, {}))  # made before the pack was killed
    assert shown.fail(tmp_path, "", "10:00:00 x: round 1/3\n", None, group=True) == []
    assert [line for line in shown.lines if line.endswith(": failed")] == [f"12:00:00 {JOBS[1].stem}: failed"]


def test_every_reason_stands_once_and_last_and_none_of_what_worked_when_tried_again(
    shown: Shown, tmp_path: Path
) -> None:
    shown.start(0, JOBS[0], tmp_path / "log")
    shown.fail(tmp_path, "error: a.", "error: b.", "error: a.")
    for text in ("CalledProcessError in file x", "Exiting because a job execution failed. Look above"):
        shown.log(text, logging.ERROR)
    shown.start(1, JOBS[1])
    shown.log("", event="job_finished", job_id=1)
    shown.screen.end()
    summary = "12:00:00 {} of 3 jobs done in 0 s"
    assert shown.lines[3:] == [summary.format(0), "error: a.", "error: b.", summary.format(1), "error: a."]


def test_an_artefact_is_named_when_it_is_made(shown: Shown) -> None:
    table, figure = (made("smoke").job("publish", {"paper": "fedosd", "artefact": name}) for name in ("table8", "fig5"))
    shown.screen.begin([*JOBS, table, figure], cores=1)
    for job in (table, figure):
        shown.start(1, job)
        shown.now += 2.5
        shown.log("", event="job_finished", job_id=1)
    assert shown.lines == [
        f"12:00:00 {table.stem}.{{md,csv,html,tex}} (2.5 s)",
        f"12:00:00 {figure.stem}.{{md,csv,html,tex,pdf,svg,png}} (2.5 s)",
    ]


def test_a_log_file_has_few_lines(shown: Shown) -> None:
    shown.screen.begin(JOBS, cores=1)
    for number, found in enumerate(JOBS):
        shown.start(number, found)
        shown.now += 9
        shown.log("", event="job_finished", job_id=number)
    share = sum(job.seconds for job in JOBS[:2]) / sum(job.seconds for job in JOBS)
    assert shown.lines == [f"12:00:00 {share:.0%}: 2 of 3 jobs done, about {18 / share - 18:.0f} s left"]


def test_a_job_that_runs_counts_as_far_as_it_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Shown(monkeypatch, terminal=True)
    found.screen.begin(JOBS[:1], cores=1)
    found.start(1, JOBS[0])
    for seconds, share in ((JOBS[0].seconds / 2, 0.5), (100, 0.99)):  # as long as it is not done
        found.now += seconds
        found.screen._show()
        assert found.screen._bar.n == pytest.approx(share * JOBS[0].seconds)
    found.screen.end()


@pytest.mark.parametrize(
    ("text", "about", "before", "after"),
    [
        ("Building DAG of jobs...", {}, True, False),
        ("Nothing to be done (all requested files are present and up to date).", {}, True, True),
        ("Job stats:", {"event": "run_info"}, False, False),
        ("The lock", {"level": logging.ERROR, "event": "error", "exception": "LockException"}, True, True),
        ("Cannot restore x: no backup found.", {"level": logging.WARNING}, False, False),
    ],
)
def test_of_snakemakes_own_lines_only_those_that_matter_are_shown(
    shown: Shown, text: str, about: dict[str, Any], before: bool, after: bool
) -> None:
    shown.log(text, **about)
    shown.log("SNAKEMAKE", event="workflow_started")
    assert shown.lines == [text] * before
    shown.log(text, **about)
    assert shown.lines == [text] * (before + after)


@pytest.mark.parametrize("asked", ["dryrun", "verbose", "printshellcmds", "debug_dag", "stdout", ""])
def test_who_asks_for_snakemakes_own_lines_gets_them(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Shown(monkeypatch, asked=asked)
    found.log("Job stats:", event="run_info")
    assert (found.lines, found.screen.shows) == (["Job stats:"] * bool(asked), not asked)


def test_an_error_of_snakemakes_is_one_sentence_in_its_log_too_and_stands_last(shown: Shown) -> None:
    written = io.StringIO()
    shown.logger.addHandler(logging.StreamHandler(written))
    shown.screen.begin(JOBS[:1], 1)
    for _ in range(2):
        shown.log("Traceback ...", logging.ERROR, exception="OSError")
    shown.screen.end()
    assert shown.lines == ["12:00:00 0 of 1 job done in 0 s", "error: it is full."]
    assert written.getvalue() == "error: it is full.\n" * 2


@pytest.mark.parametrize(
    ("target", "exception", "text", "sentence"),
    [
        ("fedosd_tabel8", "MissingRuleException", "", "there is no target 'fedosd_tabel8'; did you mean"),
        ("results/smoke/artefacts/fedosd/tabel8.png", "MissingRuleException", "",
         "there is no target 'results/smoke/artefacts/fedosd/tabel8.png'; did you mean 'results/smoke/"),
        ("fedosd", "WorkflowError", "([Errno 28] No space left on device: '/a/.snakemake/metadata/x'). See",
         ".snakemake: No space left on device; free disk space"),
        ("fedosd", "OSError", "[Errno 2] No: 'x'\n[Errno 28] No space left on device: 'a/x' -> '/a/.snakemake/x'",
         ".snakemake: No space left on device; free disk space"),
        ("fedosd", "WorkflowError", "Failed.\nOSError: [Errno 122] Disk quota exceeded: 'results/toy/data'",
         "results/toy/data: Disk quota exceeded; free disk space"),
        ("fedosd", "PermissionError", "[Errno 13] Permission denied: '/a/b c'", "/a/b c: Permission denied; start"),
        ("fedosd", "FileNotFoundError", "[Errno 2] No such file: 'x'", "None"),
    ],
)  # fmt: skip
def test_errors_of_snakemakes_are_explained(target: str, exception: str, text: str, sentence: str) -> None:
    assert str(explain(made("smoke"), [target], exception, text)).startswith(sentence)


def test_a_locked_folder_is_explained_by_who_has_locked_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    killed = "a killed run has left this folder locked; remove the lock with `python -m fu unlock`, and start again."
    assert explain(made("smoke"), [], "LockException", "") == killed
    runs.begin()
    process = f"process {os.getpid()} on {os.uname().nodename}"
    words = f"{process}: already writing these results; wait until it ends, or kill it."
    assert explain(made("smoke"), [], "LockException", "") == words
