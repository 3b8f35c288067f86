"""Run Snakemake from a copy of the code, so that a person can go on editing while jobs wait in the queue of a cluster.

`python -m fu.pipeline.snapshot ARGUMENT ...` is `snakemake ARGUMENT ...`. Where these name the executor of a cluster, the
code is copied to `.snakemake/code` first; the plan and all jobs come from there. The run removes its copy when it ends;
the copy of a killed run is removed by a later one, as soon as Slurm has no job of this folder left.
"""

import contextlib
import fcntl
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from fu.pipeline.catalogue import KINDS
from fu.pipeline.digest import ROOT

COPIES = Path(".snakemake/code")
PARTS = ("Snakefile", "config.yaml", "workflow", "fu", "envs", "profiles")
INSIDE = ROOT.parts[-3:-1] == COPIES.parts  # whether this code is a copy
PLANNED = ROOT / "planned.yaml"  # the config of the run, command line included
WAITS_OR_RUNS = "PENDING,CONFIGURING,RUNNING,SUSPENDED,REQUEUED,REQUEUE_HOLD,STOPPED"  # not: completing


def main(arguments: list[str]) -> None:
    """Become Snakemake, from a copy of the code where it submits jobs."""
    if _submits(arguments):
        tidy()
        arguments = ["--snakefile", f"{_copied()}/Snakefile", *arguments]
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *arguments])


def file(name: str) -> str:
    """Return where a file of the repository is read: in the copy, else in the working directory."""
    return str(ROOT / name) if INSIDE else name


def enter(config: dict[str, Any], is_main_process: bool) -> None:
    """In a copy: import `fu` from there in all jobs, too, and make the config what it was when the run was planned."""
    if not INSIDE:
        return
    above = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", str(ROOT))]
    os.environ.update(PYTHONPATH=os.pathsep.join([str(ROOT), *above]), PYTHONSAFEPATH="1")
    if is_main_process:
        own = Path(str(config.get("plugins")))
        if config.get("plugins") and own.is_dir():
            for kind in (kind for kind in KINDS if (own / kind).is_dir()):
                _copy(own / kind, ROOT / "plugins" / kind)
            config["plugins"] = str(ROOT / "plugins")
        PLANNED.write_text(yaml.safe_dump(config))
    else:
        config.clear()
        config.update(yaml.safe_load(PLANNED.read_text()))


def tidy() -> None:
    """Remove this copy, if it is one, and those of killed runs, unless Slurm has jobs that may need them."""
    if INSIDE:
        shutil.rmtree(ROOT, ignore_errors=True)
    left = [folder for folder in COPIES.glob("*") if not _held(folder)]
    if left and not _queued():
        for folder in left:
            shutil.rmtree(folder, ignore_errors=True)


def _submits(arguments: list[str]) -> bool:
    """Whether Snakemake would submit jobs, as its arguments and profiles say."""
    from snakemake.cli import parse_args
    from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

    with contextlib.redirect_stderr(io.StringIO()):  # Snakemake says it again
        try:
            _, args = parse_args(arguments)
        except SystemExit:  # a mistake, or --help
            return False
    known = ExecutorPluginRegistry()
    submits = known.is_installed(args.executor) and known.get_plugin(args.executor).common_settings.non_local_exec
    return submits and not args.dryrun


def _copied() -> Path:
    """Return a new copy of the code, held by this process as long as it lives, also as Snakemake."""
    COPIES.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=time.strftime("%Y-%m-%d-%H%M%S-"), dir=COPIES)).resolve()
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(lock, True)
    fcntl.flock(lock, fcntl.LOCK_EX)
    for name in PARTS:
        _copy(ROOT / name, folder / name)
    return folder


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy2(source, target)


def _held(folder: Path) -> bool:
    """Whether the run that made a copy is alive."""
    with contextlib.suppress(FileNotFoundError), (folder / "lock").open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _queued() -> bool:
    """Whether Slurm has jobs of this folder that wait or run, or does not answer."""
    if shutil.which("squeue") is None:
        return False
    asked = ["squeue", "--noheader", "--format=%Z", f"--user={os.getuid()}", f"--states={WAITS_OR_RUNS}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.returncode != 0 or str(Path.cwd()) in done.stdout.splitlines()


if __name__ == "__main__":
    main(sys.argv[1:])
