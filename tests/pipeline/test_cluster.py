"""What a person says of a cluster, what Slurm says, and what a killed run left there. Slurm is a few scripts here."""

import math
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from fu.pipeline.engine import cluster
from fu.pipeline.engine.cluster import Cluster, minutes, read, retries
from fu.pipeline.engine.screen import SLURM_LOGS
from fu.pipeline.provenance.digest import ROOT
from tests.mistakes import has, sentence
from tests.pipeline.slurm import FakeSlurm


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """Slurm's commands, and the folder from which jobs are submitted."""
    return FakeSlurm(tmp_path, monkeypatch)


def test_the_file_that_comes_with_fu_has_every_key_and_asks_for_nothing(tmp_path: Path) -> None:
    assert set(yaml.safe_load((ROOT / "cluster.yaml").read_text())) == set(Cluster.model_fields)
    assert read(ROOT / "cluster.yaml") == read(tmp_path / "absent.yaml") == Cluster()
    assert Cluster().resources(gpu=False) == {}
    assert Cluster().resources(gpu=True) == {"gpu": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("acount: me", "cluster.yaml: acount: unknown key; did you mean 'account'?"),
        ("partition: a b", "cluster.yaml: partition: must be a single word or null, got 'a b'."),
        ("gres: a100:1", "cluster.yaml: gres: must look like gpu, gpu:2, gpu:a100 or gpu:a100:2, or be null, got 'a10"),
    ],
)
def test_a_mistake_in_it_is_told_in_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "cluster.yaml").write_text(text)
    has(sentence(lambda: read(tmp_path / "cluster.yaml")), words)


def test_a_job_asks_for_what_the_file_says_and_on_a_gpu_for_more() -> None:
    site = Cluster(account="a", partition="p", constraint="c", gpu_partition="g", gres="gpu:a100:2")
    usual = {"slurm_account": "a", "slurm_partition": "p", "constraint": "c"}
    assert site.resources(gpu=False) == usual
    assert site.resources(gpu=True) == {**usual, "slurm_partition": "g", "gres": "gpu:a100:2"}


def test_time_grows_with_every_attempt_up_to_the_limit() -> None:
    assert [minutes(20, attempt, 50) for attempt in (1, 2, 3, 4)] == [20, 40, 50, 50]
    assert minutes(20, 9, math.inf) == 180


def test_a_job_that_the_limit_cuts_is_submitted_as_often_as_it_takes() -> None:
    assert retries(30, 60) == 3
    assert retries(600, 60) == 12
    assert retries(600, math.inf) == 2


@pytest.mark.parametrize(
    ("site", "gpu", "limit"),
    [
        (Cluster(), False, 1440),
        (Cluster(partition="long"), False, 14 * 24 * 60),
        (Cluster(partition="short"), False, 30),
        (Cluster(partition="free"), True, math.inf),
        (Cluster(partition="short", gpu_partition="a100"), True, 90.5),
        (Cluster(partition="short", gpu_partition="a100"), False, 30),
    ],
)
def test_the_limit_is_that_of_the_partition(slurm: FakeSlurm, site: Cluster, gpu: bool, limit: float) -> None:
    assert site.limit(gpu) == limit


def test_a_partition_that_is_not_there_is_refused(slurm: FakeSlurm) -> None:
    told = sentence(lambda: Cluster(partition="shrot").limit(gpu=False))
    has(told, "cluster.yaml: partition: there is no partition 'shrot'; did you mean 'short'?", "allowed: a100, free")
    has(sentence(lambda: Cluster(gpu_partition="v100").limit(gpu=True)), "cluster.yaml: gpu_partition: ")


def test_where_slurm_is_missing_or_does_not_answer_that_is_told(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.fails("sinfo", "slurm_load_partitions: Unable to contact slurm controller (connect failure)")
    assert sentence(lambda: Cluster().limit(gpu=False)).startswith("slurm_load_partitions: Unable to contact")
    monkeypatch.setenv("PATH", "/nowhere")
    has(sentence(lambda: Cluster().limit(gpu=False)), "sinfo: ", "run this on a login node of a Slurm cluster.")


def test_a_run_cancels_what_a_killed_one_left_and_waits_until_it_has_ended(slurm: FakeSlurm) -> None:
    slurm.queued("7")
    slurm.queued("8", folder="/elsewhere")
    slurm.queued("9")
    slurm.queued("10", name="something")
    cluster.begin(slurm.root)
    assert slurm.cancelled() == ["7", "9"]


def test_where_slurm_does_not_end_them_the_run_does_not_begin(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.queued("7")
    slurm.stubborn()
    monkeypatch.setattr(cluster, "ENDING_S", 0.0)
    has(sentence(lambda: cluster.begin(slurm.root)), "Slurm is still cancelling 7, left over from a killed run")


def test_one_process_at_a_time_submits(slurm: FakeSlurm) -> None:
    code = "import pathlib; from fu.pipeline.engine.cluster import begin; begin(pathlib.Path.cwd()); print(); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        told = sentence(lambda: cluster.begin(slurm.root))
        has(told, f"process {other.pid} on ", "already submits jobs from this folder")
        other.kill()
    cluster.begin(slurm.root)


def test_the_profile_is_the_usual_one_but_for_where_jobs_run() -> None:
    usual, ours = (yaml.safe_load((ROOT / f"profiles/{name}/config.yaml").read_text()) for name in ("default", "slurm"))
    only_here = {"cores", "scheduler-subsample"}
    assert {key: ours[key] for key in usual.keys() - only_here} == {key: usual[key] for key in usual.keys() - only_here}
    assert "cores" not in ours, "every job would be told how many the login node has"
    assert f"{ours['slurm-jobname-prefix']}_" == cluster.PREFIX
    assert ours["slurm-logdir"] == SLURM_LOGS


def test_what_only_a_cluster_needs_is_pinned_apart_from_the_lock() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = dict(line.split("==") for line in (ROOT / "envs/cluster.txt").read_text().splitlines())
    assert set(project["optional-dependencies"]["cluster"]) <= set(pins)
    assert not [name for name in pins if name in (ROOT / "envs/lock.txt").read_text()]
