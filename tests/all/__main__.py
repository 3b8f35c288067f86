"""Run every test there is, part by part, and resume where it ended: `make test-all PARTS="faults mutants"`.

A part that has passed on this very tree is skipped, and one that fails keeps no other from running. What became of
each is in `.test-all/parts.json`, what it printed in `.test-all/<part>.log`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, TypedDict

from fu.errors import UserError, nearest
from tests.mutants import parts as lists

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(".test-all")
WHOLE = (sys.executable, "-m", "pytest", "-n", "logical", "--maxprocesses", "8", "--dist", "worksteal", "-m", "whole")
PARTS: dict[str, tuple[str, ...]] = {
    **{name: ("make", f"test-{name}" if name != "test" else name) for name in ("test", "smoke")},
    "whole": (*WHOLE, "tests"),
    **{name: ("make", f"test-{name}") for name in ("page", "faults", "cluster", "engines")},
    "peers": ("make", "test-peers"),  # of which nothing may be missing
    "release": ("make", "release"),
    **{f"mutants/{name}": (sys.executable, "-m", "tests.mutants", name) for name in lists()},
}


class Record(TypedDict):
    """What became of a part."""

    commit: str
    tree: str
    status: str  # passed, failed, edited
    minutes: float


def chosen(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the parts of these names (none: all), in order; `mutants` is all of its lists."""
    for name in names:
        if not any(name in (part, part.partition("/")[0]) for part in known):
            raise UserError(f"PARTS: there is no part {name!r}{nearest(name, known)}.")
    return [part for part in known if not names or {part, part.partition("/")[0]} & {*names}]


def git(root: Path, *words: str, **environment: str) -> str:
    """Return what git answers."""
    command = ["git", "-C", str(root), *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **environment}
    ).stdout.strip()


def tree_of(root: Path) -> str:
    """Return git's digest of all files that it does not ignore, as they are on the disk."""
    index = {"GIT_INDEX_FILE": str((root / FOLDER / "index").resolve())}
    git(root, "add", "--all", **index)
    return git(root, "write-tree", **index)


def ended_with(command: Sequence[str], root: Path, out: BinaryIO) -> int:
    """Run a command and return its status; it heeds signals, though `nohup` and `&` have theirs ignored."""

    def heed() -> None:
        for which in (signal.SIGHUP, signal.SIGINT):
            signal.signal(which, signal.SIG_DFL)

    process = subprocess.Popen(command, cwd=root, stdout=out, stderr=out, start_new_session=True, preexec_fn=heed)
    try:
        return process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        raise


def run(parts: Mapping[str, Sequence[str]], root: Path, say: Callable[[str], None]) -> dict[str, Record]:
    """Run the parts that have not passed on this tree; return what is known of each."""
    folder = root / FOLDER
    folder.mkdir(exist_ok=True)
    file = folder / "parts.json"
    records: dict[str, Record] = json.loads(file.read_text()) if file.exists() else {}
    for part, command in parts.items():
        tree, began = tree_of(root), time.monotonic()
        known = records.get(part)
        if known and (known["tree"], known["status"]) == (tree, "passed"):
            continue
        say(f"{time.strftime('%H:%M:%S')} {part}")
        log = folder / f"{part.replace('/', '-')}.log"
        with log.open("wb") as out:
            status = ended_with(command, root, out)
        ended = "failed" if status else "passed" if tree_of(root) == tree else "edited"
        minutes = round((time.monotonic() - began) / 60, 1)
        records[part] = Record(commit=git(root, "rev-parse", "HEAD"), tree=tree, status=ended, minutes=minutes)
        part_file = file.with_suffix(".part")
        part_file.write_text(json.dumps(records, indent=1))
        part_file.replace(file)
        if ended != "passed":
            say(f"  {ended}: {log.relative_to(root)}")
    return {part: records[part] for part in parts}


def table(records: Mapping[str, Record], tree: str) -> str:
    """Return a line for each part; one that passed on another tree has not passed."""
    lines = [f"{'part':<24}{'status':<10}{'minutes':>8}  commit"]
    for part, record in records.items():
        status = record["status"] if record["tree"] == tree else "edited"
        lines.append(f"{part:<24}{status:<10}{record['minutes']:>8.1f}  {record['commit'][:7]}")
    return "\n".join([*lines, f"{'all':<34}{sum(record['minutes'] for record in records.values()):>8.1f}"])


def main(names: Sequence[str]) -> int:
    """Run the parts and return 0 if all of them have passed on this tree."""
    records = run(
        {part: PARTS[part] for part in chosen(names, list(PARTS))}, ROOT, lambda text: print(text, flush=True)
    )
    tree = tree_of(ROOT)
    print(table(records, tree))
    return int(any((record["status"], record["tree"]) != ("passed", tree) for record in records.values()))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UserError as error:
        sys.exit(f"error: {error}")
