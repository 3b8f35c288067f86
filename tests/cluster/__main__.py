"""Run a toy paper and an artefact of a real one on a Slurm on this machine, under faults: `make test-cluster`.

The toy paper's training takes two minutes in a job, and all that may happen to it happens: a failure of its own,
drained nodes, an edit while it waits, scancel, a node that dies, the submitting process killed, a time limit. At the
end every artefact, model and evaluation must have the bytes of a run on the desk, and nothing may be left.
"""

import contextlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import torch

from fu.pipeline.engine.submitted import EDITED
from tests.cluster.slurm import NODES, Slurm, slurm
from tests.faults.kills import comparable
from tests.workflow.project import REPOSITORY, Project, from_repository, until, with_toy

SECONDS = 300.0  # after which something is said to hang
PACK = "rule_toy-iid-seed0-"  # how the comment of the pack with the training begins
OF_TRAIN = "results/toy/logs/toy/iid/seed0/original.trained.log"
LOCK = "results/toy/toy/iid/seed0/.original.trained.made.json.lock"
CHECKPOINT = "results/toy/toy/iid/seed0/.original.trained.checkpoint"
SLOW = """{toy: {scenarios: {iid: {settings: {training: {method: {name: slow}, rounds: 130}}},
  pat: {settings: {training: {method: {name: fedavg}, rounds: 4}}}}}}"""
# Statuses are asked for often, because here jobs last seconds.
QUICK = (
    *("--slurm-init-seconds-before-status-checks", "1"),
    *("--seconds-between-status-checks", "1"),
    *("--latency-wait", "9"),
)
REAL = "fedosd_table2"
QUEUE = re.compile(r"`(squeue .*?)`")  # the command in docs/cluster.md that lists the queue
CODE = "fu/training/fedavg.py"


class Login:
    """A person at a login node, in a project's folder."""

    def __init__(self, project: Project, slurm: Slurm) -> None:
        self.project, self.slurm = project, slurm
        self.log = project.root / "last.log"
        self.environment = {**slurm.environment, "PYTHONPATH": ""}

    def start(self, *targets: str) -> "subprocess.Popen[bytes]":
        """Start `make reproduce PROFILE=slurm`."""
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "snakemake", "--workflow-profile", "slurm", *QUICK, *targets],
                cwd=self.project.root,
                stdout=log,
                stderr=log,
                env=self.environment,
            )

    def finish(self, process: "subprocess.Popen[bytes]", expected: int = 0) -> str:
        """Wait for a run and return what it showed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2 * SECONDS)
        shown = self.log.read_text(errors="replace")
        assert process.poll() == expected, f"{process.poll()} instead of {expected}:\n{shown}"
        return shown

    def jobs(self, state: str) -> list[str]:
        """Return the numbers of the training's jobs in a state."""
        rows = [row.split("|") for row in self.slurm.jobs()]
        return [row[0] for row in rows if row[1] == state and row[3].startswith(PACK)]

    def state(self, node: str) -> str:
        """Return the state of a node."""
        return self.slurm.ask("sinfo", "--noheader", f"--nodes={node}", "--format=%T")

    def running(self, process: "subprocess.Popen[bytes]", after: int = 2) -> str:
        """Wait until the training runs and has done some rounds; return its number."""
        log, since = self.project.root / OF_TRAIN, time.time()

        def is_there() -> bool:
            assert process.poll() is None, self.log.read_text(errors="replace")
            begun = log.exists() and log.stat().st_mtime > since and "round" in log.read_text()  # emptied at its start
            return begun and bool(self.jobs("RUNNING"))

        wait_until(is_there, "the training does not run")
        time.sleep(after)
        return self.jobs("RUNNING")[0]


def wait_until(happens: Callable[[], object], problem: str, seconds: float = SECONDS) -> None:
    """Wait for something to happen."""
    until(happens, seconds, problem, pause=0.2)


def real_failure(login: Login) -> str:
    """A job that would fail again is submitted once, and its sentence is on the screen."""
    plugin = login.project.root / "mine/training/slow.py"
    text = plugin.read_text()
    plugin.write_text(text.replace("time.sleep(1)", "raise ValueError('no such client')"))
    shown = login.finish(login.start("toy_bars"), expected=1)
    plugin.write_text(text)
    sentence = r"training/slow\.py: line \d+: ValueError: no such client \(full traceback: "
    assert re.search(sentence, shown), shown
    assert len(login.jobs("FAILED")) == 1, "a real failure was submitted again"
    return "a job that fails for a reason of its own: submitted once, its sentence shown"


def drained_and_edited(login: Login) -> str:
    """Jobs wait for drained nodes, which `squeue` says; meanwhile a person edits the code, and takes it back later."""
    login.slurm.ask("scontrol", "update", f"nodename={','.join(NODES)}", "state=drain", "reason=test")
    run = login.start()
    wait_until(lambda: login.jobs("PENDING"), "nothing waits for the drained nodes")
    (command,) = QUEUE.findall((REPOSITORY / "docs/cluster.md").read_text())
    listed = login.slurm.ask(*shlex.split(command))
    assert re.search(rf"PENDING +0:00 {PACK}\S+ +\(.+\)", listed), listed
    failed = len(login.jobs("FAILED"))
    login.project.edit(CODE, "theta + task.", "theta + 0 * task.")
    login.slurm.ask("scontrol", "update", f"nodename={','.join(NODES)}", "state=resume")
    shown = login.finish(run, expected=1)
    assert shown.splitlines()[-1] == f"error: {EDITED}", shown
    assert len(login.jobs("FAILED")) == failed + 1, "a job that was edited was submitted again"
    login.project.edit(CODE, "theta + 0 * task.", "theta + task.")
    return "drained nodes: the queue waits, and an edit meanwhile makes the job fail with one sentence"


def cancelled(login: Login, run: "subprocess.Popen[bytes]") -> str:
    """A job is cancelled by hand, and submitted again."""
    number = login.running(run)
    login.slurm.ask("scancel", number)
    wait_until(lambda: login.jobs("CANCELLED"), "scancel does nothing")
    assert number not in login.jobs("RUNNING")
    return "scancel of a running job: submitted again"


def node_dies(login: Login, run: "subprocess.Popen[bytes]") -> str:
    """A node's daemon is killed while its job goes on; the job is started elsewhere, and never runs twice."""
    number = login.running(run)
    node = login.slurm.ask("squeue", "--noheader", "--format=%N", f"--jobs={number}")
    holder = (login.project.root / LOCK).read_text()
    login.slurm.kill(node)
    wait_until(lambda: "down" in login.state(node), "no node is down")
    login.slurm.ask("scontrol", "update", f"jobid={number}", "starttime=now")  # Slurm would wait for two minutes
    wait_until(lambda: number in login.jobs("RUNNING"), "the job is not started elsewhere")
    time.sleep(20)
    assert (login.project.root / LOCK).read_text() == holder, "two jobs make the same outputs"
    assert number in login.jobs("RUNNING"), "the job does not wait for the one that lives on"
    login.slurm.start(node)  # ends that one
    wait_until(lambda: (login.project.root / LOCK).read_text() not in (holder, ""), "the job does not go on")
    wait_until(lambda: "down" not in login.state(node), "a node stays down")
    return "SIGKILL of slurmd, its job alive: started elsewhere, where it waited for the lock on its outputs"


def login_dies(login: Login, run: "subprocess.Popen[bytes]") -> str:
    """The submitting process is killed; its jobs stay in the queue until the next start takes their place."""
    login.running(run)
    wait_until((login.project.root / CHECKPOINT).exists, "there is no checkpoint")
    run.kill()
    run.wait()
    assert login.jobs("RUNNING"), "the job does not go on"
    subprocess.run(
        [sys.executable, "-m", "snakemake", "--unlock"],
        cwd=login.project.root,
        env=login.environment,
        capture_output=True,
        check=True,
    )
    return "SIGKILL of the submitting process: its jobs cancelled at the next start, gone on from their checkpoint"


def over_its_time(login: Login, run: "subprocess.Popen[bytes]") -> str:
    """A job reaches the time limit of its partition, and goes on from its checkpoint."""
    wait_until(lambda: login.jobs("TIMEOUT"), "no job reaches its limit")
    log = login.project.root / OF_TRAIN
    wait_until(lambda: login.jobs("RUNNING") and "resumed after round" in log.read_text(), "it does not resume")
    return f"a job over its time limit: {re.findall(r'resumed after round [0-9]+', log.read_text())[0]}"


def overlapping(login: Login) -> list[str]:
    """Return the jobs that ran twice at a time."""
    rows = [row.split("|")[3:] for row in login.slurm.jobs()]
    found = []
    for comment in {row[0] for row in rows}:
        times = sorted((begin, end) for name, begin, end in rows if name == comment and "N/A" not in (begin, end))
        found += [comment for (_, end), (begin, _) in pairwise(times) if begin < end]
    return found


def compare(login: Login, desk: Project, results: str) -> int:
    """Return how many files are equal to those of the desk; end with an error where one is not."""
    found, expected = comparable(login.project, results), comparable(desk, results)
    different = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
    assert not different, f"{len(different)} files differ from the run on the desk: {different[:5]}"
    return len(found)


@contextlib.contextmanager
def projects() -> Iterator[tuple[Path, Project, Project]]:
    """Yield a folder, the toy paper in it, and the paper whose artefact is made at smoke."""
    folder = Path(tempfile.mkdtemp(prefix="fu-cluster-")).resolve()
    try:
        toy, real = with_toy(folder / "toy"), from_repository(folder / "real")
        toy.override(SLOW)
        toy.edit("config.yaml", "plugins: null", "plugins: mine")
        (toy.root / "mine/training").mkdir(parents=True)
        shutil.copy2(Path(__file__).with_name("slow.py"), toy.root / "mine/training")
        yield folder, toy, real
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def timed(run: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    began = time.monotonic()
    run()
    return time.monotonic() - began


def gpu_requested(login: Login) -> str:
    """With `device: cuda` a job waits for a GPU; here it is no real one, so that the job says so."""
    login.project.edit("config.yaml", "device: auto", "device: cuda")
    (login.project.root / "cluster.yaml").write_text("gpu_partition: gpus\ngres: gpu:1\n")
    run = login.start("toy_bars")
    wait_until(lambda: "gres:gpu:1" in login.slurm.ask("squeue", "--noheader", "--format=%b"), "no GPU is requested")
    shown = login.finish(run, expected=0 if torch.cuda.is_available() else 1)
    assert torch.cuda.is_available() or "device: cuda is set, but torch finds no GPU" in shown, shown
    return "device: cuda: a GPU is requested, in its partition"


def main() -> None:
    """Inject the faults, compare, and say what it took."""
    began = time.monotonic()
    with projects() as (folder, toy, real):
        desks = [toy.copied(folder / "toy-desk"), real.copied(folder / "real-desk")]
        on_gpu = toy.copied(folder / "gpu")
        seconds = [timed(desks[0].snakemake), timed(lambda: desks[1].snakemake(REAL))]
        with slurm() as started:
            login = Login(toy, started)
            say(real_failure(login))
            say(drained_and_edited(login))
            run = login.start()
            for fault in (cancelled, node_dies, login_dies):
                say(fault(login, run))
            (toy.root / "cluster.yaml").write_text("partition: brief\n")
            run = login.start()
            say(over_its_time(login, run))
            login.finish(run)
            assert not overlapping(login), overlapping(login)
            equal = compare(login, desks[0], "results/toy")
            submitted, alone = len(started.jobs()), [row for row in started.jobs() if "|rule_partition_" in row]
            other = Login(real, started)
            wall = timed(lambda: other.finish(other.start(REAL)))
            equal += compare(other, desks[1], "results/smoke")
            packs = len(started.jobs()) - submitted
            say(gpu_requested(Login(on_gpu, started)))
            login.project.expect_run([])
            # A server that is still importing when its job fails ends after that.
            wait_until(lambda: not started.left("munged", "slurmctld", "slurmd"), "processes are left", seconds=60)
        assert not started.left(), f"processes are left: {started.left()}"
    print(f"The toy paper: {seconds[0]:.0f} s on the desk; under faults {submitted} submissions.")
    print(f"{REAL} at smoke: {seconds[1]:.0f} s on the desk, {wall:.0f} s in {packs} submissions.")
    print(f"A partition by itself in Slurm: {', '.join(row.split('|')[2] for row in alone)}.")
    print(f"{equal} files with the bytes of the desk; nothing is left. {time.monotonic() - began:.0f} s in all.")


def say(what: str) -> None:
    """Print what was survived."""
    print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)


if __name__ == "__main__":
    main()
