"""GPUs that are not there: who gets which, how many at a time, and when they are free again."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from fu import gpus
from fu.gpus import Gpu
from fu.pipeline.engine import rules
from fu.pipeline.engine.rules import Engine
from fu.pipeline.stages import compute
from fu.pipeline.stages.common import Options
from tests.workflow.project import until

LISTED = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaa1)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-bbb2)
  MIG 3g.20gb     Device  0: (UUID: MIG-c3)
  MIG 1g.5gb      Device  1: (UUID: MIG-d4)
GPU 2: NVIDIA L4 (UUID: GPU-eee5)
"""
A100, L4 = Gpu("GPU-aaa1", "NVIDIA A100-SXM4-40GB", 40960, 0), Gpu("GPU-eee5", "NVIDIA L4", 23034, 2)
LARGE, SMALL = (Gpu(name, "NVIDIA A100-SXM4-40GB (MIG)", mb, 1) for name, mb in (("MIG-c3", 20_000), ("MIG-d4", 5000)))
JOB = """
import sys, time
from pathlib import Path
from fu import gpus
gpus.take()
import os
place = Path(sys.argv[1])
begun = time.monotonic()
(place / f"{os.getpid()}.taken").write_text(os.environ["CUDA_VISIBLE_DEVICES"])
time.sleep(float(sys.argv[2]))
(place / f"{os.getpid()}.done").write_text(f"{os.environ['CUDA_VISIBLE_DEVICES']} {begun} {time.monotonic()}")
"""


def put_tool(folder: Path, listed: str = LISTED, memory: str = "40960\n40960\n23034\n") -> None:
    """Put what stands for nvidia-smi into a folder."""
    tool = folder / "nvidia-smi"
    tool.write_text(
        f"#!/bin/sh\ncase $1 in\n-L) cat <<'E'\n{listed}E\n;;\n*memory*) printf '%s' '{memory}';;\n"
        "*driver*) echo 550.54;;\nesac\n"
    )
    tool.chmod(0o755)


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_tool(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv(gpus.VISIBLE, raising=False)


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, [A100, LARGE, SMALL, L4]),
        ("2,0", [L4, A100]),
        ("GPU-e, MIG-d4", [L4, SMALL]),
        ("0,7,2", [A100]),
        ("", []),
        ("-1", []),
    ],
)
@pytest.mark.usefixtures("tool")
def test_the_gpus_are_those_that_cuda_would_see(
    visible: str | None, expected: list[Gpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    if visible is not None:
        monkeypatch.setenv(gpus.VISIBLE, visible)
    assert gpus.found() == expected


def test_a_machine_without_the_tool_has_no_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus.found() == []
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho no driver\nexit 9\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    assert gpus.found() == []


# ---- slots -----------------------------------------------------------------------------------------------------------


def started(folder: Path, number: int, seconds: float, shared: str) -> list[subprocess.Popen[bytes]]:
    """Start jobs that take a slot, and hold it for some seconds."""
    environment = {**os.environ, gpus.SHARED: shared, "TMPDIR": str(folder)}
    command = [sys.executable, "-c", JOB, str(folder), str(seconds)]
    return [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(number)]


def test_no_gpu_has_more_jobs_than_may_share_it_and_none_is_idle_while_jobs_wait(tmp_path: Path) -> None:
    jobs = started(tmp_path, 12, 1.0, "2 a b c d")
    assert [job.wait() for job in jobs] == [0] * 12
    spans = [path.read_text().split() for path in tmp_path.glob("*.done")]
    held = [(name, float(begun), float(ended)) for name, begun, ended in spans]
    for moment in (begun for _, begun, _ in held):
        assert max(Counter(name for name, begun, ended in held if begun <= moment < ended).values()) <= 2
    first = sorted(held, key=lambda one: one[1])[:8]
    assert Counter(name for name, _, _ in first) == dict.fromkeys("abcd", 2)
    assert sum(b"waiting for a free one" in job.stderr.read() for job in jobs if job.stderr) == 4


def test_each_gpu_gets_a_job_before_one_gets_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv(gpus.SHARED, "2 a b c d")
    monkeypatch.setenv(gpus.VISIBLE, "")
    taken, jobs = [], list[object]()
    for _ in range(8):
        held: list[object] = []
        monkeypatch.setattr(gpus, "_held", held)
        gpus.take()
        taken.append(os.environ[gpus.VISIBLE])
        jobs.append(held)
    assert taken == [*"abcdabcd"]


def test_a_killed_job_leaves_its_slot(tmp_path: Path) -> None:
    [first] = started(tmp_path, 1, 60, "1 a")
    until(lambda: [*tmp_path.glob("*.taken")])
    [second] = started(tmp_path, 1, 0, "1 a")
    time.sleep(0.5)
    assert second.poll() is None
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert second.wait() == 0


def test_a_job_whose_memory_did_not_suffice_waits_until_it_is_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus, "_held", [])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in (gpus.VISIBLE, gpus.SHARED):  # so that what is set here is not left behind
        monkeypatch.setenv(name, "0")
    assert not gpus.alone()
    gpus.share([A100], 2)
    gpus.take()
    gpus.take()
    assert (len(gpus._held), os.environ[gpus.VISIBLE]) == (1, "GPU-aaa1")
    [other] = started(tmp_path, 1, 1.5, "2 GPU-aaa1")
    until(lambda: [*tmp_path.glob("*.taken")])
    assert gpus.alone()
    assert other.wait() == 0
    assert (tmp_path / f"{other.pid}.done").exists()
    assert len(gpus._held) == 2
    assert not gpus.alone()
    for file in gpus._held:
        file.close()


@pytest.mark.parametrize(
    ("device", "asks"), [("auto", ["slot", "CUDA"]), ("cuda", ["slot", "CUDA"]), ("cpu", ["CUDA"])]
)
def test_a_job_takes_its_gpu_before_it_asks_cuda(device: str, asks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def available() -> bool:
        asked.append("CUDA")
        return device == "cuda"

    monkeypatch.setattr(gpus, "take", lambda: asked.append("slot"))
    monkeypatch.setattr(torch.cuda, "is_available", available)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    assert compute.device_of(Options(device=device)).type == ("cuda" if device == "cuda" else "cpu")
    assert asked[:2] == asks


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_as_many_jobs_share_every_gpu_as_the_smallest_holds_of_the_largest(
    order: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [Gpu("GPU-a", "A100", 24_000, 0), Gpu("GPU-b", "T4", 8_000, 1)]
    monkeypatch.setenv(gpus.SHARED, "")
    monkeypatch.setattr(gpus, "found", lambda: [both[place] for place in order])
    monkeypatch.setattr(rules, "version", lambda name: "2.0+cu121")
    limits = dict[str, int]()
    jobs = [SimpleNamespace(gpu_mem_mb=mb) for mb in (1_000, 3_000, 2_000)]
    config = SimpleNamespace(jobs_per_gpu=None)
    engine = SimpleNamespace(
        plan=SimpleNamespace(jobs=lambda: iter(jobs), config=config),
        snakemake=SimpleNamespace(limit=limits.__setitem__),
    )
    Engine._share_gpus(engine)  # type: ignore[arg-type]
    assert limits == {rules.SLOT: 4}  # 8,000 // 3,000 on each of two
    assert os.environ[gpus.SHARED].split()[0] == "2"
    config.jobs_per_gpu = 5
    Engine._share_gpus(engine)  # type: ignore[arg-type]
    assert limits == {rules.SLOT: 10}
