"""What a run shows, and what of Snakemake's own it does not."""

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

from fu.pipeline import certificate
from fu.pipeline.certificate import Certificate
from fu.pipeline.engine import runs, snakemake
from fu.pipeline.engine.rules import explain
from fu.pipeline.engine.screen import Running, Screen, problem
from fu.pipeline.engine.snakemake import Account
from fu.pipeline.plan import Job
from tests.pipeline.plans import made

PUBLISH = {"paper": "fedosd", "artefact": "table8"}
TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\nValueError: boom\n'


def record(text: str | None, level: int = logging.INFO, **about: Any) -> logging.LogRecord:
    found = logging.LogRecord("snakemake.logging", level, "", 0, text, None, None)
    found.__dict__.update(about)
    return found


def snakemake_s(monkeypatch: pytest.MonkeyPatch, stream: Any) -> logging.Logger:
    """Replace Snakemake's logger by one with a handler like its own."""
    logger, usual = logging.Logger("snakemake"), logging.StreamHandler(stream)
    usual.name = "DefaultStreamHandler"
    logger.addHandler(usual)
    monkeypatch.setattr(snakemake, "logger", logger)
    return logger


def asking_for(asked: str | None = None) -> SimpleNamespace:
    """Return a workflow with the options for Snakemake's own lines."""
    names = ("dryrun", "verbose", "printshellcmds", "debug_dag", "stdout")
    return SimpleNamespace(output_settings=SimpleNamespace(**{name: name == asked for name in names}))


class Told:
    """A screen of which a test sees what it shows, with its own clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, terminal: bool = False) -> None:
        self.stream, self.now = io.StringIO(), 100.0
        self.stream.isatty = lambda: terminal  # type: ignore[method-assign]
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "strftime", lambda form: "12:00:00")
        monkeypatch.setattr(threading.Thread, "start", lambda thread: None)
        self.logger, self.screen = snakemake_s(monkeypatch, self.stream), Screen(self.stream)
        Account(asking_for(), self.screen, lambda *error: None)

    def __call__(self, *args: Any, **about: Any) -> None:
        self.logger.handle(record(*args, **about))

    def start(self, number: int, job: Job, *logs: Path) -> None:
        log = [str(path) for path in logs]
        self("", event="job_info", jobid=number, rule_name=job.stage, wildcards=dict(job.names), log=log)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Told]:
    monkeypatch.chdir(tmp_path)  # where no results lie
    found = Told(monkeypatch)
    yield found
    found.screen.end()


def job(stage: str, **names: str) -> Job:
    return made("smoke").job(stage, names)


def evaluation(trial: str) -> Job:
    return job("evaluate", run="fedosd/mnist-iid/seed0", trial=trial, evaluation="evaluation")


JOBS = [evaluation(name) for name in ("original", "retraining", "federaser")]


# ---- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("10:00 round 1\nerror: mnist.npz: no archive.\n", "error: mnist.npz: no archive."),
        (TRACEBACK, "error: x.unlearned: ValueError: boom (full traceback: {log})."),
        (f"error: of before.\n{TRACEBACK}", "error: x.unlearned: ValueError: boom (full traceback: {log})."),
        (f"{TRACEBACK}error: mine.py: line 3: boom.\n", "error: mine.py: line 3: boom (full traceback: {log})."),
        ("bash: python: not found.\n", "error: x.unlearned: bash: python: not found (log: {log})."),
        ("", "error: x.unlearned: the job ended without an error message, probably killed (log: {log})."),
        ("07:51:16 x: round 1/3 (33%), asr 0.438, 9.04 s per round, 18 s left\n",
         "error: x.unlearned: the job ended without an error message, probably killed (log: {log})."),
        ("y" * 200_000 + "\nerror: the end.\n", "error: the end."),
    ],
    ids=lambda text: text[-40:],
)  # fmt: skip
def test_a_failed_job_is_told_in_one_sentence(tmp_path: Path, text: str, told: str) -> None:
    log = tmp_path / "x.log"
    log.write_text(text)
    assert problem("x.unlearned", [str(log)]) == told.format(log=log)


def test_a_shell_that_could_not_begin_its_log_is_no_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "")

    log = tmp_path / "x.log"
    assert (
        problem("x", [str(log)]) == f"error: x: the job ended without an error message, probably killed (log: {log})."
    )
    assert not log.exists()
    monkeypatch.setattr(Path, "touch", full)
    assert problem("x", [str(log)]) == (
        f"error: {log}: No space left on device; free disk space (`df -h` and `df -i` show space and inodes), "
        "then start again: no finished result is lost."
    )
    log.write_text("")
    assert "probably killed" in problem("x", [str(log)])


SLURM = ".snakemake/slurm_logs/rule_train/x/12.log"
LIMIT = "slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT DAWN DUE TO TIME LIMIT ***\n"


@pytest.mark.parametrize(
    ("own", "slurm", "said", "told"),
    [
        ("", LIMIT, "", "x: Slurm: JOB 12 ON node1 CANCELLED AT DAWN DUE TO TIME LIMIT (log: own.log, {slurm})."),
        ("Warning: w\n", LIMIT, "", "x: Slurm: JOB 12 ON node1 CANCELLED AT DAWN DUE TO TIME LIMIT (log: own.log,"),
        ("error: no.\n", LIMIT, "", "error: no."),
        (TRACEBACK, LIMIT, "", "x: ValueError: boom (full traceback: own.log, {slurm})."),
        ("", "", "SLURM-job '12' failed, SLURM status is: 'NODE_FAIL'. More.", "x: Slurm: NODE_FAIL (log:"),
        ("", "", "SLURM sbatch failed. The error message was 'sbatch: error: Invalid account.\n sorry'.\n",
         "x: Slurm: sbatch: error: Invalid account. sorry (log:"),
        ("", "Building DAG of jobs...\n", "",
         "x: the job ended without an error message, probably killed (log: own.log,"),
    ],
    ids=["limit", "limit after a warning", "a sentence", "a traceback", "a node", "refused", "nothing"],
)  # fmt: skip
def test_where_a_job_could_not_say_why_slurm_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, slurm: str, said: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.log").write_text(own)
    Path(SLURM).parent.mkdir(parents=True)
    Path(SLURM).write_text(slurm)
    assert told.format(slurm=SLURM) in problem("x", ["own.log", SLURM], said)


def failed(told: Told, tmp_path: Path, *texts: str | None, event: str = "job_error") -> list[set[int]]:
    """Have jobs fail, together as a pack or each alone, and return which the scheduler is to give up."""
    given_up: list[set[int]] = []
    told.screen.give_up = given_up.append
    told.screen.begin(JOBS, cores=1)
    logs = [tmp_path / f"{number}.log" for number in range(len(texts))]
    for number, log in enumerate(logs):
        log.write_text("error: of an earlier run.\n")
        os.utime(log, (1, 1))
        told.start(number, JOBS[number], log)
    for log, text in zip(logs, texts, strict=True):
        if text is not None:
            log.write_text(text)
    if event == "group_error":
        told("", logging.ERROR, event=event, job_error_info=[{"jobid": n} for n in range(len(texts))], aux_logs=[SLURM])
    for number, log in enumerate(logs):
        told("", logging.ERROR, event="job_error", jobid=number, log=[str(log)], rule_msg=None)
    told.screen.end()
    return given_up


@pytest.mark.parametrize(
    ("text", "given_up"),
    [
        ("error: no archive.\n", [{0}]),
        (TRACEBACK, [{0}]),
        ("10:00:00 x: round 1/3\n", []),
        ("UserWarning: w\n", []),
        (None, []),
        ("error: x: the job's process was killed; if memory ran out, use fewer CORES.\n", []),
        ("error: x: process 1 on y is making the same outputs; wait.\n", []),
    ],
)
def test_only_a_job_that_would_fail_again_is_given_up(
    told: Told, tmp_path: Path, text: str | None, given_up: list[set[int]]
) -> None:
    assert failed(told, tmp_path, text) == given_up


def test_of_a_pack_those_are_told_that_know_why_and_all_are_given_up(told: Told, tmp_path: Path) -> None:
    assert failed(told, tmp_path, "", "error: b.\n", None, event="group_error") == [{0, 1, 2}]
    assert [line for line in told.lines if line.startswith("error: ")] == ["error: b."]


def test_of_a_pack_that_was_killed_the_job_that_had_begun_is_told(told: Told, tmp_path: Path) -> None:
    assert failed(told, tmp_path, None, "10:00:00 x: round 1/3\n", None, event="group_error") == []
    name = JOBS[1].certificate.removesuffix(".made.json")
    assert [line for line in told.lines if line.endswith(": failed")] == [f"12:00:00 {name}: failed"]
    assert sum(SLURM in line for line in told.lines) == 1


def test_of_a_pack_a_job_that_was_made_has_not_failed(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Running, "is_made", lambda found: found.job is JOBS[0])
    failed(told, tmp_path, "", "", None, event="group_error")
    assert told.lines[0].endswith(f"{JOBS[1].certificate.removesuffix('.made.json')}: failed")


def test_a_job_is_made_when_its_certificate_has_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    running = Running.now(JOBS[0], [])
    assert not running.is_made()
    Path(JOBS[0].certificate).parent.mkdir(parents=True)
    for key, is_made in ((JOBS[0].keys[0], True), ("another", False)):
        certificate.write(Path(JOBS[0].certificate), Certificate(key, "evaluate", {}, "", {}, {}))
        assert running.is_made() is is_made


def test_every_reason_stands_once_and_last(told: Told, tmp_path: Path) -> None:
    told.screen.begin(JOBS, cores=1)
    log = tmp_path / "log"
    for number, (each, text) in enumerate(zip(JOBS, ("error: a.", "error: b.", "error: a."), strict=True)):
        log.write_text(f"{text}\n")
        told.start(number, each, log)
        told("CalledProcessError in file x", logging.ERROR, event="error", exception="RuleException")
        told("", logging.ERROR, event="job_error", jobid=number)
        told("Cannot restore x: no backup found.", logging.WARNING)
    told("Exiting because a job execution failed. Look above for error messages", logging.ERROR)
    told("WorkflowError:\nAt least one job did not complete successfully.", logging.ERROR, event="error")
    told.screen.end()
    names = [each.certificate.removesuffix(".made.json") for each in JOBS]
    assert told.lines == [
        *(f"12:00:00 {name}: failed" for name in names),
        "12:00:00 0 of 3 jobs done in 0 s",
        "error: a.",
        "error: b.",
    ]


def test_a_job_that_worked_when_tried_again_did_not_fail(told: Told, tmp_path: Path) -> None:
    told.screen.begin(JOBS, cores=1)
    for event in ("job_error", "job_finished"):
        told.start(1, JOBS[0], tmp_path / "log")
        told("", event=event, jobid=1, job_id=1)
    told.screen.end()
    assert told.lines[-1] == "12:00:00 1 of 3 jobs done in 0 s"


# ---- progress --------------------------------------------------------------------------------------------------------


def test_an_artefact_is_named_with_its_seconds(told: Told) -> None:
    table = job("publish", **PUBLISH)
    told.screen.begin([*JOBS, table], cores=1)
    told.start(1, table)
    told.now += 2.5
    told("", event="job_finished", job_id=1)
    suffixes = sorted({Path(path).suffix[1:] for path in table.outputs.values()} - {"json"})
    assert told.lines == [f"12:00:00 results/smoke/artefacts/fedosd/table8.{{{','.join(suffixes)}}} (2.5 s)"]


def test_a_log_file_has_few_lines(told: Told) -> None:
    told.screen.begin(JOBS, cores=1)
    each = JOBS[0].seconds
    assert [job.seconds for job in JOBS[1:]] == pytest.approx([2 * each] * 2, rel=0.5)
    for number, found in enumerate(JOBS):
        told.start(number, found)
        told.now += 9
        told("", event="job_finished", job_id=number)
    assert len(told.lines) == 1  # at 18 s: ten seconds after the start, and again ten after that
    share = sum(job.seconds for job in JOBS[:2]) / sum(job.seconds for job in JOBS)
    assert told.lines[0] == f"12:00:00 {share:.0%}: 2 of 3 jobs done, about {18 / share - 18:.0f} s left"


def test_a_job_that_runs_counts_as_far_as_it_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Told(monkeypatch, terminal=True)
    found.screen.begin(JOBS[:1] * 1, cores=1)
    found.start(1, JOBS[0])
    found.now += JOBS[0].seconds / 2
    found.screen._show()
    assert " 50% |" in found.stream.getvalue()
    assert "| 0 of 1 job done, about 0 s left" in found.stream.getvalue()
    found.now += 100
    found.screen._show()
    assert found.screen._bar.n == pytest.approx(0.99 * JOBS[0].seconds)  # as long as it is not done
    found.screen.end()


# ---- what is Snakemake's own -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "level", "about", "before", "after"),
    [
        ("Building DAG of jobs...", logging.INFO, {}, True, False),
        ("Report created.", logging.INFO, {}, True, False),
        ("Nothing to be done (all requested files are present and up to date).", logging.INFO, {}, True, True),
        ("Will exit after finishing currently running jobs (scheduler).", logging.INFO, {}, True, True),
        ("Job stats:", logging.INFO, {"event": "run_info"}, False, False),
        ("1 of 2 steps", logging.INFO, {"event": "progress"}, False, False),
        ("The lock", logging.ERROR, {"event": "error", "exception": "LockException"}, True, True),
        ("Terminating processes on user request", logging.WARNING, {}, True, True),
        ("Cannot restore x: no backup found.", logging.WARNING, {}, False, False),
    ],
)
def test_of_snakemake_s_own_lines_only_those_that_matter_are_shown(
    told: Told, text: str, level: int, about: dict[str, Any], before: bool, after: bool
) -> None:
    told(text, level, **about)
    assert (text in told.lines) == before
    told("SNAKEMAKE", event="workflow_started")
    shown = len(told.lines)
    told(text, level, **about)
    assert (len(told.lines) > shown) == after
    assert "SNAKEMAKE" not in told.lines


@pytest.mark.parametrize("asked", ["dryrun", "verbose", "printshellcmds", "debug_dag", "stdout", None])
def test_who_asks_for_snakemake_s_own_lines_gets_them(asked: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    logger, screen = snakemake_s(monkeypatch, io.StringIO()), Screen()
    (usual,) = logger.handlers
    found = Account(asking_for(asked), screen, lambda *error: None)
    assert (usual in logger.handlers) == (asked is not None)
    assert found in logger.handlers
    assert found.usual is (None if asked else usual)
    assert screen.shows == (asked is None)


# ---- targets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("fedosd_tabel8", "there is no target 'fedosd_tabel8'; did you mean 'fedosd_table8'? allowed: all"),
        ("results/smoke/artefacts/fedosd/tabel8.png",
         "there is no target 'results/smoke/artefacts/fedosd/tabel8.png'; did you mean "
         "'results/smoke/artefacts/fedosd/table8.png'? (`snakemake -n` lists all files)."),
    ],
)  # fmt: skip
def test_a_misspelt_target_gets_the_nearest(target: str, words: str) -> None:
    found = explain(made("smoke"), ["fedosd_table8", target], "MissingRuleException", "No rule to produce")
    assert str(found).startswith(words)


ROOM = "free disk space (`df -h` and `df -i` show space and inodes), then start again: no finished result is lost."
METADATA = (
    "Error recording metadata for finished job ([Errno 28] No space left on device: '/a/.snakemake/metadata/x'). See"
)
COPIED = (
    "FileNotFoundError: [Errno 2] No such file or directory: 'x'\n"
    "OSError: [Errno 28] No space left on device: 'results/toy/x' -> '/a/.snakemake/backups/x'"
)
LISTED = "Failed to create output directory x.\nOSError: [Errno 122] Disk quota exceeded: 'results/toy/data'"


@pytest.mark.parametrize(
    ("exception", "text", "sentence"),
    [
        ("WorkflowError", METADATA, f".snakemake: No space left on device; {ROOM}"),
        ("OSError", COPIED, f".snakemake: No space left on device; {ROOM}"),
        ("WorkflowError", LISTED, f"results/toy/data: Disk quota exceeded; {ROOM}"),
        ("OSError", f"{TRACEBACK}OSError: [Errno 28] No space left on device\n",
         f".snakemake: No space left on device; {ROOM}"),
        ("PermissionError", f"{TRACEBACK}[Errno 13] Permission denied: '/a/b c'",
         "/a/b c: Permission denied; start again: no finished result is lost."),
    ],
)  # fmt: skip
def test_what_the_disk_lacks_is_one_sentence(exception: str, text: str, sentence: str) -> None:
    assert explain(made("smoke"), [], exception, text) == sentence


def test_a_sentence_stands_in_place_of_an_error_of_snakemake_s(monkeypatch: pytest.MonkeyPatch) -> None:
    logger, written = snakemake_s(monkeypatch, io.StringIO()), io.StringIO()
    logger.addHandler(logging.StreamHandler(written))  # as for its log file
    Account(asking_for(), Screen(), lambda exception, text: f"{text} is {exception}." if text == "it" else None)
    for text, about in (("it", {"exception": "AnError"}), ("other", {"exception": "AnError"}), ("it", {})):
        logger.handle(record(text, logging.ERROR, **about))
    assert written.getvalue().splitlines() == ["error: it is AnError.", "other", "it"]


def test_what_snakemake_lacks_stands_once_and_last(told: Told) -> None:
    told.screen.begin([JOBS[0]], 1)
    for _ in range(2):
        told("error: .snakemake: No space left on device.", logging.ERROR)
    told("Ignore corrupted or currently written metadata record x.", logging.WARNING)
    assert told.lines == []
    told.screen.end()
    assert [line.partition(" ")[2] for line in told.lines] == [
        "0 of 1 job done in 0 s",
        ".snakemake: No space left on device.",
    ]


def test_other_problems_are_left_as_they_are() -> None:
    for exception in ("MissingRuleException", "FileNotFoundError"):
        assert explain(made("smoke"), ["fedosd"], exception, "[Errno 2] No such file: 'x'") is None


def test_a_locked_folder_is_said_with_who_has_locked_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def said() -> str | None:
        return explain(made("smoke"), [], "LockException", "LockException:\nError: ...")

    killed = "a killed run has left this folder locked; remove the lock with `make unlock`, and start again."
    assert said() == killed
    runs.begin()
    process = f"process {os.getpid()} on {os.uname().nodename}"
    assert said() == f"{process}: already writing these results; wait until it ends, or kill it."
