"""Run Snakemake from a copy of the code, so that the code can be edited while jobs wait in a cluster's queue.

`python -m fu.pipeline.engine.snapshot ARGUMENT ...` is `snakemake ARGUMENT ...`. If the arguments select a cluster
executor, the code is copied to `.snakemake/code` first, and the plan and all jobs use the copy. A run removes its copy
when it ends, and copies left by killed runs before it submits.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fu.artefacts import provenance
from fu.errors import UserError
from fu.pipeline.catalogue import BESIDE, KINDS
from fu.pipeline.digest import ROOT
from fu.pipeline.settings.papers import config_file

COPIES = Path(".snakemake/code")
PARTS = ("Snakefile", "workflow", "fu", "envs")
INSIDE = ROOT.parts[-3:-1] == COPIES.parts  # whether this code is a copy
PLANNED = ROOT / "planned.json"  # of the run: its config with the command line's, its targets, whether jobs are forced


def main(arguments: list[str]) -> None:
    """Become Snakemake, from a copy of the code where it submits jobs."""
    from fu.pipeline.engine.snakemake import submits  # slow

    if submits(arguments):
        place = arguments.index("--") if "--" in arguments else len(arguments)
        _note_commit()
        arguments[place:place] = ["--snakefile", f"{_copied()}/Snakefile"]
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *arguments])


def file(name: str) -> str:
    """Return where a file of the repository is read, from the working directory: this may be another folder."""
    return name if Path.cwd() == ROOT else str(ROOT / name)


def enter(config: dict[str, Any], is_main_process: bool) -> None:
    """Have all jobs import `fu` from here; in a copy, take its plug-ins and, in a submitted job, its config."""
    if Path.cwd() == ROOT:
        return
    above = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", str(ROOT))]
    os.environ.update(PYTHONPATH=os.pathsep.join([str(ROOT), *above]), PYTHONSAFEPATH="1")
    _note_commit()
    if not INSIDE:
        return
    if not is_main_process:
        config.clear()
        config.update(planned()["config"])
    elif isinstance(folder := config.get("plugins"), str) and Path(folder).is_dir():
        for kind in (*KINDS, *BESIDE):
            if (Path(folder) / kind).is_dir():
                _copy(Path(folder) / kind, ROOT / "plugins" / kind)
        config["plugins"] = str(ROOT / "plugins")


def begin(config: dict[str, Any], forced: bool, targets: Iterable[str]) -> None:
    """Say what is planned to the jobs that will be submitted, and remove other copies: no other run is left."""
    PLANNED.write_text(json.dumps({"config": config, "forced": forced, "targets": sorted(targets)}))
    for folder in ROOT.parent.iterdir():
        if folder != ROOT:
            shutil.rmtree(folder, ignore_errors=True)


def planned() -> dict[str, Any]:
    """Return what `begin` has said."""
    try:
        found: dict[str, Any] = json.loads(PLANNED.read_text())
    except ValueError:
        raise UserError(
            f"{PLANNED}: the file is damaged; kill the run that submits jobs, and start it again."
        ) from None
    return found


def leave() -> None:
    """Remove this copy."""
    shutil.rmtree(ROOT, ignore_errors=True)


def _note_commit() -> None:
    """Tell all jobs the commit of the code: they run in another folder."""
    with contextlib.chdir(ROOT):
        os.environ[provenance.COMMIT] = json.dumps(provenance.commit())


def _copied() -> Path:
    """Return a new copy of the code."""
    COPIES.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=time.strftime("%Y-%m-%d-%H%M%S-"), dir=COPIES)).resolve()
    for name in PARTS:
        _copy(ROOT / name, folder / name)
    _copy(config_file(), folder / "config.yaml")
    return folder


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, target, ignore=ignored, ignore_dangling_symlinks=True)  # locks of an editor
    else:
        shutil.copy2(source, target)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.exit(f"error: {COPIES}: cannot copy the code ({error.strerror or error}).")
