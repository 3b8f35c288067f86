"""What `make status` says of a run, from Slurm's queue, certificates and logs."""

import json
import os
import time
from pathlib import Path

import pytest

from fu.pipeline import certificate, show
from fu.pipeline.digest import ROOT
from fu.pipeline.engine import cluster, runs, snapshot
from fu.pipeline.engine.screen import SLURM_LOGS
from fu.pipeline.engine.status import planned, status
from fu.pipeline.pending import Pending
from fu.pipeline.plan import Job
from tests.mistakes import has, sentence
from tests.pipeline.plans import made
from tests.pipeline.slurm import FakeSlurm

PLAN = made("smoke")
WANTED = list(PLAN.wanted("fedosd_table2"))
ALL = list(PLAN.behind(WANTED))
JOBS = {job.stage: job for job in ALL}
CANCELLED = "slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT DAWN DUE TO TIME LIMIT ***\n"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """Slurm's commands, an empty folder of results, and a run that submits from it."""
    monkeypatch.setattr(snapshot, "INSIDE", True)
    return FakeSlurm(tmp_path, monkeypatch)


def told(*heading: str) -> list[str]:
    """Return all lines, or those below a heading."""
    lines = "\n".join(status(PLAN, WANTED)).splitlines()
    if not heading:
        return lines
    start = lines.index(f"{heading[0]}:") + 1
    return [line.strip() for line in lines[start:] if line.startswith("  ")]


def comment(job: Job, *names: str) -> str:
    return f"rule_{job.stage}_wildcards_{'_'.join(job.names[name] for name in names).replace('/', '_')}"


def log(job: Job, text: str) -> Path:
    path = Path(PLAN.paths.log(job.stage).format(**job.names))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def slurm_log(folder: str, text: str) -> Path:
    path = Path(SLURM_LOGS, folder, "12.log")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


TRAIN, EVALUATE = JOBS["train"], JOBS["evaluate"]
OF_TRAIN = comment(TRAIN, "run", "trial")
NAME = TRAIN.certificate.removesuffix(".made.json")


def test_what_was_never_submitted_is_counted(slurm: FakeSlurm) -> None:
    assert told() == [
        f"0 of {len(ALL)} jobs done, 0 running, 0 waiting, 0 failed, {len(ALL)} not started",
        "No run is active in this folder; start the same command again to continue.",
    ]


def test_a_running_job_is_told_with_its_time_node_and_progress(slurm: FakeSlurm) -> None:
    slurm.queued("7", OF_TRAIN, "RUNNING", "node1")
    log(TRAIN, "10:00:00 x: round 1/9\n10:01:00 x: round 4/9\nUserWarning: w\n")
    assert told("Running") == [f"{NAME}: 0:10 of 1:00:00 on node1 (job 7)", "10:01:00 x: round 4/9"]
    assert "1 running, 0 waiting" in told()[0]


def test_a_waiting_job_is_told_with_slurms_reason(slurm: FakeSlurm) -> None:
    evaluation = comment(EVALUATE, "run", "trial", "evaluation")
    slurm.queued("8", evaluation, where="(QOSMaxJobsPerUserLimit)")
    assert told("Waiting") == [f"{EVALUATE.certificate.removesuffix('.made.json')}: QOSMaxJobsPerUserLimit (job 8)"]
    assert "0 running, 1 waiting, 0 failed" in told()[0]


def test_a_pack_is_one_line_with_all_its_jobs(slurm: FakeSlurm) -> None:
    cluster.begin(Path.cwd(), {TRAIN.certificate: "fedosd-x-0", EVALUATE.certificate: "fedosd-x-0"})
    slurm.queued("9", "rule_fedosd-x-0_evaluate_train", "RUNNING", "node2")
    assert told("Running") == [f"{NAME} and 1 more: 0:10 of 1:00:00 on node2 (job 9)"]
    assert "2 run" in told()[0]
    assert told()[-1] == f"Running in this folder: process {os.getpid()} on {os.uname().nodename}."


@pytest.mark.parametrize(
    ("own", "slurms", "why"),
    [
        ("error: no such file.\n", "", "error: no such file."),
        ("10:00:00 x: round 1/9\n", CANCELLED, "Slurm: JOB 12 ON node1 CANCELLED AT DAWN DUE TO TIME LIMIT"),
        ("UserWarning: w\n", CANCELLED, "Slurm: JOB 12 ON node1 CANCELLED AT DAWN DUE TO TIME LIMIT"),
        ("", "Building DAG of jobs...\n", "the job ended without an error message, probably killed"),
    ],
)
def test_a_failed_job_is_told_with_its_reason(slurm: FakeSlurm, own: str, slurms: str, why: str) -> None:
    ours, theirs = log(TRAIN, own), slurm_log(OF_TRAIN.replace("_wildcards_", "/"), slurms)
    logs = "" if why.startswith("error: ") else f"error: {NAME}: {why} (log: {ours}, {theirs})."
    assert told("Failed") == [logs or why]
    assert "1 failed" in told()[0]


def test_a_job_that_failed_on_the_login_node_is_told_and_one_that_only_warned_is_not(slurm: FakeSlurm) -> None:
    log(JOBS["publish"], "error: no disk.\n")
    log(TRAIN, "UserWarning: w\n")
    assert told("Failed") == ["error: no disk."]


def test_a_job_that_is_submitted_again_has_not_failed(slurm: FakeSlurm) -> None:
    log(TRAIN, "error: no such file.\n")
    slurm.queued("7", OF_TRAIN)
    assert "0 running, 1 waiting, 0 failed" in told()[0]


def test_of_a_pack_that_failed_a_job_that_never_began_has_not(slurm: FakeSlurm) -> None:
    cluster.begin(Path.cwd(), {TRAIN.certificate: "fedosd-x-0", EVALUATE.certificate: "fedosd-x-0"})
    log(TRAIN, "error: no such file.\n")
    slurm_log("group_fedosd-x-0_evaluate_train", "")
    assert told("Failed") == ["error: no such file."]


def test_a_log_from_before_a_job_was_made_is_no_failure(slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    path = log(TRAIN, "error: no such file.\n")
    Path(TRAIN.certificate).parent.mkdir(parents=True)
    Path(TRAIN.certificate).touch()
    assert "0 failed" in told()[0]
    os.utime(path, (time.time() + 9,) * 2)
    assert "1 failed" in told()[0]


def test_when_all_is_made_nobody_has_to_submit(slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pending, "to_make", lambda *_: iter(()))
    assert told() == [f"{len(ALL)} of {len(ALL)} jobs done, 0 running, 0 waiting, 0 failed, 0 not started"]


def test_a_local_run_is_told_with_its_jobs_and_no_slurm_is_asked(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "INSIDE", False)
    slurm.fails("squeue", "Unable to contact slurm controller (connect failure)")
    log(TRAIN, "10:01:00 x: round 4/9\n")
    log(EVALUATE, "error: of another try.\n")
    process = f"process {os.getpid()} on {os.uname().nodename}"
    runs.begin()
    with certificate.locked(Path(TRAIN.certificate)), certificate.locked(Path(EVALUATE.certificate)):
        assert told() == [
            f"0 of {len(ALL)} jobs done, 2 running, 0 waiting, 0 failed, {len(ALL) - 2} not started",
            "Running:",
            f"  {NAME}: {process}",
            "      10:01:00 x: round 4/9",
            f"  {EVALUATE.certificate.removesuffix('.made.json')}: {process}",
            f"Running in this folder: {process}.",
        ]


def test_what_runs_and_what_has_failed_are_both_begun(slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "INSIDE", False)
    log(JOBS["publish"], "error: no disk.\n")
    with certificate.locked(Path(TRAIN.certificate)), certificate.locked(Path(EVALUATE.certificate)):
        assert told()[0] == f"0 of {len(ALL)} jobs done, 2 running, 0 waiting, 1 failed, {len(ALL) - 3} not started"


def test_while_slurm_does_not_answer_what_is_made_is_told_and_nothing_said_of_the_rest(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.fails("squeue", "Unable to contact slurm controller (connect failure)")
    log(TRAIN, "error: no such file.\n")
    monkeypatch.setattr(Pending, "to_make", lambda *_: iter([(TRAIN, None), (EVALUATE, None)]))
    assert told() == [
        f"{len(ALL) - 2} of {len(ALL)} jobs done, 2 left; cannot tell which are running, waiting or failed: "
        "Unable to contact slurm controller (connect failure).",
        "No run is active in this folder; start the same command again to continue.",
    ]


@pytest.mark.parametrize("text", ["", '{"results/smoke/fedosd/mnist-pat50/se'])
def test_a_torn_list_of_packs_is_one_sentence(slurm: FakeSlurm, text: str) -> None:
    cluster.PACKS.parent.mkdir()
    cluster.PACKS.write_text(text)
    assert told()[0].endswith("failed: .snakemake/packs.json: the file is damaged; the next `make reproduce "
        "PROFILE=...` rewrites it.")  # fmt: skip


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is planned of a run that submits, in whose copy of the code this is."""
    found = tmp_path / "planned.json"
    found.write_text(
        json.dumps({"config": {"preset": "smoke", "papers": ["fedosd"]}, "targets": ["fedosd_fig7"], "forced": False})
    )
    monkeypatch.setattr(snapshot, "INSIDE", True)
    monkeypatch.setattr(snapshot, "PLANNED", found)
    return found


@pytest.mark.parametrize(("asked", "wanted"), [([], ["fedosd_fig7"]), (["fedosd_table2"], ["fedosd_table2"])])
def test_after_an_edit_the_config_that_was_planned_counts(copy: Path, asked: list[str], wanted: list[str]) -> None:
    plan, targets = planned(asked, _today)
    assert (plan.config.preset, plan.config.papers, targets) == ("smoke", ["fedosd"], wanted)


def test_a_torn_plan_is_one_sentence(copy: Path) -> None:
    copy.write_bytes(copy.read_bytes()[:-5])
    has(
        sentence(lambda: planned([], _today)),
        f"{copy}: the file is damaged; kill the run that submits jobs, and start it again.",
    )


def _today() -> dict[str, object]:
    raise AssertionError("the config of today was read")


def test_it_is_asked_for_by_target_and_without_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text((ROOT / "config.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    show.main(["status", "fedosd_table2", "papers=[fedosd]"])
    assert capsys.readouterr().out.startswith(f"0 of {len(ALL)} jobs done, 0 running")
