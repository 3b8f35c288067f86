"""Run a toy paper under faults, and compare what comes out with an undisturbed run: `make test-faults`.

SIGKILL of jobs, their clients, shells, the fork server and Snakemake in every stage; full disks; folders that cannot be
written; two runs in one folder; edits of the code while the fork server imports it or reads a data set, put back while
it is idle or imports. At the end every artefact, model and evaluation must have the bytes of the undisturbed
run, and no process, temporary file or folder may be left.
"""

import argparse
import contextlib
import ctypes
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from tests.mistakes import contents
from tests.workflow.project import Project, with_toy

STAGES = ("partition", "train", "unlearn", "recover", "evaluate", "publish")
VICTIMS = ("job", "client", "shell", "server", "snakemake")
# Long enough to be hit.
SLOWER = "training: {rounds: 60}, unlearning: {rounds: 40}, total_rounds: 80"
RESULTS = "results/toy"
PAGE = "index.html"
MEASURED = (  # what the page holds of a run's times
    r'(?s)<article id="toy/times".*?</article>',
    r"(?<=<dt>Computation</dt><dd>)[^<]*?(?=<| on )",
    r'(?<=json</a> <span class="faint">)[^<]*',
    r'(?<="cost": ")[^"]*(?= in )',
    r"(?<=· )[^·]{1,40}(?= of computation)",
)
FILE_LIMIT = 20_000  # bytes: less than a model
# Lines that most jobs run, and a slip in each that changes their numbers.
EDITS = (
    ("fu/seeds.py", '"\\x1f".join', '"\\x1e".join'),
    ("fu/evaluation/measure.py", "right = predicted == torch.cat", "right = predicted != torch.cat"),
    ("fu/artefacts/statistics.py", 'agg(mean="mean"', 'agg(mean="max"'),
    ("fu/datasets/digits.py", "(0.334,)", "(0.934,)"),
)
# Between which points of a server's life an edit lasts.
LASTS = (("starts", "listens"), ("maps", "listens"), ("listens", "reads"), ("reads", "reads"))
SECONDS = 300  # after which a run counts as hanging


class Faults:
    """A project in which faults are injected, one after the other."""

    def __init__(self, project: Project, seed: int) -> None:
        self.project, self.random = project, random.Random(seed)
        self.injected: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.temporary = project.root / "tmp"

    def start(self, *arguments: str, before: Callable[[], None] | None = None) -> "subprocess.Popen[bytes]":
        """Start Snakemake in the project."""
        self.temporary.mkdir(exist_ok=True)
        with (self.project.root / "last.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
                cwd=self.project.root,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": "", "TMPDIR": str(self.temporary)},
                preexec_fn=before,
            )

    def finish(self, process: "subprocess.Popen[bytes]") -> int:
        """Wait for a run, and for all of its processes; return its status."""
        try:
            status = process.wait(SECONDS)
            deadline = time.monotonic() + 10
            while self.left() and time.monotonic() < deadline:
                time.sleep(0.1)
        except subprocess.TimeoutExpired:
            self.fail("a run hangs")
        if self.left():
            self.fail(f"processes are left: {[' '.join(found.cmdline())[:100] for found in self.left()]}")
        left = [path.name for path in self.temporary.iterdir() if not path.name.startswith("torchinductor")]  # torch's
        if left:
            self.fail(f"temporary files are left: {sorted(left)}")
        return status

    def left(self) -> list[psutil.Process]:
        """Return the processes that run in the project."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE and process.cwd() == str(self.project.root):
                    found.append(process)
        return found

    def fail(self, text: str) -> None:
        """End with what went wrong."""
        log = (self.project.root / "last.log").read_text(errors="replace")
        for process in self.left():
            with contextlib.suppress(psutil.Error):
                process.kill()
        sys.exit(f"{log[-1500:]}\nFAILED: {text} (after {sum(self.injected.values())} faults: {dict(self.injected)})")

    def work(self, stage: str) -> None:
        """Make some jobs of a stage pending: take their certificates away."""
        names = {"partition": "partition", "train": "*.trained", "publish": "*", "evaluate": "*.evaluation"}
        pattern = names.get(stage, f"*.{ {'unlearn': 'unlearned', 'recover': 'recovered'}.get(stage) }")
        folder = self.project.root / RESULTS / ("artefacts" if stage == "publish" else "toy")
        found = sorted(folder.rglob(f"{pattern}.made.json"))
        for path in self.random.sample(found, min(4, len(found))):
            path.unlink()

    def kill(self, stage: str, victim: str) -> None:
        """Kill a process of a run while it is in a stage, and look at what is left."""
        self.work(stage)
        run = self.start()
        snakemake = psutil.Process(run.pid)
        deadline = time.monotonic() + SECONDS
        target = None
        while run.poll() is None and time.monotonic() < deadline and target is None:
            target = next(self.processes(snakemake, stage, victim), None)
            time.sleep(0.005)
        if target is not None:
            time.sleep(self.random.uniform(0, 0.3 if stage in ("train", "unlearn", "recover", "publish") else 0.05))
            with contextlib.suppress(psutil.Error):
                target.kill()
                self.injected[f"{victim} in {stage}"] += 1
        else:
            self.missed[f"{victim} in {stage}"] += 1
        self.finish(run)
        if victim == "snakemake":
            self.project.snakemake("--unlock")

    def processes(self, snakemake: psutil.Process, stage: str, victim: str) -> Iterator[psutil.Process]:
        """Yield the processes of a kind that belong to a job of a stage."""
        with contextlib.suppress(psutil.Error):
            below = snakemake.children(recursive=True)
            told = [(process, process.cmdline()) for process in below]
            clients = [p for p, words in told if f"fu.pipeline.stages.{stage}" in words and "-m" in words]
            servers = [p for p, words in told if "--serve" in words and p.ppid() == snakemake.pid]
            if not clients:
                return
            if victim == "job":
                yield from (child for server in servers for child in server.children())
            elif victim == "shell":
                yield from (p for p in clients[0].parents() if p.ppid() == snakemake.pid)
            else:
                yield {"client": clients, "server": servers, "snakemake": [snakemake]}[victim][0]

    def full_disk(self, stage: str) -> None:
        """Run where no file may be larger than a limit, as on a full disk."""
        self.work(stage)
        limits = (FILE_LIMIT, FILE_LIMIT)
        before = self.models()
        status = self.finish(self.start(before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits)))
        self.expect_failure(status, "a full disk")
        if self.models() != before:
            self.fail("a full disk replaced or removed a model")

    def read_only(self, folder: str, stage: str) -> None:
        """Run where a folder cannot be written (for root: without the right to write everywhere)."""
        self.work(stage)
        path = self.project.root / folder
        mode = path.stat().st_mode
        path.chmod(0o555)
        try:
            self.expect_failure(self.finish(self.start(before=_drop_rights)), "a read-only folder")
        finally:
            path.chmod(mode)

    def expect_failure(self, status: int, what: str) -> None:
        """Count a fault that must end a run with an error."""
        if status == 0:
            self.fail(f"{what} was not noticed")
        self.injected[what] += 1

    def two_runs(self, *arguments: str) -> None:
        """Start two runs at once, and wait for both."""
        self.work("train")
        runs = [self.start(*arguments), self.start(*arguments)]
        for run in runs:
            run.wait(SECONDS)
        self.finish(runs[0])
        self.injected[f"two runs {' '.join(arguments)}".strip()] += 1

    def edit(self, change: tuple[str, str, str], made: str, undone: str) -> None:
        """Edit a line when a server is at one point and put it back when it is at a later one; jobs may refuse."""
        for stage in STAGES:
            self.work(stage)
        run = self.start("--keep-going")
        file, old, new = change
        if self.reached(run, made):
            self.project.edit(file, old, new)
            self.reached(run, undone)
            self.project.edit(file, new, old)
            self.injected[f"edit of {file} when the server {made}, undone when it {undone}"] += 1
        self.finish(run)

    def reached(self, run: "subprocess.Popen[bytes]", window: str) -> bool:
        """Wait until a run's server has reached a point; return whether it did before the run ended."""
        deadline = time.monotonic() + SECONDS
        while run.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(psutil.Error, OSError):
                below = psutil.Process(run.pid).children()
                for server in (process for process in below if "--serve" in process.cmdline()):
                    maps = Path(f"/proc/{server.pid}/maps").read_text()
                    read = any(self.project.root.glob(f"{RESULTS}/toy/*/seed*/.part-*trained*"))
                    if {
                        "starts": True,
                        "maps": "libtorch_cpu" in maps,
                        "listens": bool(server.children()),
                        "reads": bool(server.children()) and (read or self.random.random() < 0.02),
                    }[window]:
                        return True
            time.sleep(0.002)
        return False

    def models(self) -> dict[str, bytes | None]:
        """Return all models."""
        found = contents(self.project.root / RESULTS)
        return {name: content for name, content in found.items() if name.endswith(".safetensors")}


def _drop_rights() -> None:
    """Take from root what lets it write where nobody may."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP: lost with the next program that is started


def without_times(page: str) -> str:
    """Return the page without what differs between two runs of equal results."""
    for pattern in MEASURED:
        page = re.sub(pattern, "", page)
    return page


def comparable(project: Project, results: str = RESULTS) -> dict[str, bytes | None]:
    """Return what must be equal: all but times and what names them."""
    found = contents(project.root / results)
    found[PAGE] = without_times((project.root / results / PAGE).read_text()).encode()
    varying = (".cost.json", ".made.json", ".log")
    return {
        name: content
        for name, content in found.items()
        if content is not None
        and not name.endswith(varying)
        and not (name.startswith("artefacts/") and (name.endswith(".json") or "/times." in name))
    }


def main() -> None:
    """Inject the faults, then compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1, help="how often every process is killed in every stage")
    args = parser.parse_args()
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    try:
        project = with_toy(folder / "disturbed")
        project.override(f"{{toy: {{settings: {{{SLOWER}}}}}}}")
        undisturbed = project.copied(folder / "undisturbed")
        undisturbed.snakemake()
        faults = Faults(project, args.seed)
        order = [(stage, victim) for stage in STAGES for victim in VICTIMS] * args.rounds
        faults.random.shuffle(order)
        for k, (stage, victim) in enumerate(order, start=1):
            faults.kill(stage, victim)
            print(f"{k} of {len(order)}: {victim} in {stage}", flush=True)
        faults.finish(faults.start())  # whole, for what comes now
        for stage in ("train", "recover"):
            faults.full_disk(stage)
        for name, stage in ((f"{RESULTS}/toy/iid/seed0", "unlearn"), (f"{RESULTS}/artefacts/toy", "publish")):
            faults.read_only(name, stage)
        for change in EDITS:
            for made, undone in LASTS:
                faults.edit(change, made, undone)
                print(f"{change[0]}: {made} to {undone}", flush=True)
        faults.two_runs()
        faults.two_runs("--nolock")
        if faults.finish(faults.start()) != 0:
            faults.fail("the last, undisturbed run failed")
        compare(faults, undisturbed)
        number = sum(faults.injected.values())
        print("\n".join(f"  {times} x {what}" for what, times in sorted(faults.injected.items())))
        if faults.missed:
            print(f"not hit, because the stage had ended, or not permitted: {dict(faults.missed)}")
        print(f"{number} faults injected, {number} survived, in {time.monotonic() - began:.0f} s.")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(faults: Faults, undisturbed: Project) -> None:
    """End with an error where something differs from the undisturbed run, or is left."""
    found, expected = comparable(faults.project), comparable(undisturbed)
    different = sorted({name for name in {*found, *expected} if found.get(name) != expected.get(name)})
    if different:
        faults.fail(f"{len(different)} files differ from the undisturbed run: {different[:5]}")
    faults.project.expect_run([])


if __name__ == "__main__":
    main()
