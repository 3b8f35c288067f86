"""What every stage shares: its command line, outputs written whole or not at all, one sentence for a mistake."""

import argparse
import csv
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fu.errors import UserError


class Spec(dict[str, Any]):
    """The values that a stage reads; a missing one is a sentence."""

    def __missing__(self, key: str) -> Any:
        raise UserError(f"--spec: {key!r} is missing; `make show CELL=...` prints a complete command.")


def arguments(
    description: str | None,
    inputs: list[str],
    outputs: list[str],
    argv: list[str] | None,
    *,
    lists: Mapping[str, str] | None = None,
    compute: bool = True,
) -> argparse.Namespace:
    """Parse --spec (JSON), the named paths and the lists of paths (name -> help).

    `compute` adds --threads, --device and --checkpoint-seconds.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True, help="JSON with the values that this stage reads")
    for name in inputs:
        parser.add_argument(f"--{name}", type=Path, required=True, help="input file")
    for name in outputs:
        parser.add_argument(f"--{name}", type=Path, required=True, help="output file")
    for name, text in (lists or {}).items():
        parser.add_argument(f"--{name}", type=Path, nargs="*", default=[], help=text)
    if compute:
        parser.add_argument("--threads", type=int, default=1)
        parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
        parser.add_argument("--checkpoint-seconds", type=float, default=30.0, help="least time between checkpoints")
    args = parser.parse_args(argv)
    try:
        args.spec = Spec(json.loads(args.spec))
    except (json.JSONDecodeError, TypeError, ValueError):
        raise UserError("--spec is no JSON object; `make show CELL=...` prints a complete command.") from None
    return args


@contextmanager
def whole(*paths: Path) -> Iterator[list[Path]]:
    """Yield temporary names beside `paths`; rename them all at the end, or remove them after an error."""
    parts = [path.with_name(f".part-{os.getpid()}-{path.name}") for path in paths]
    try:
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            for left in path.parent.glob(f".part-*-{path.name}"):  # of a killed job: one job makes one file
                left.unlink()
        yield parts
        for part, path in zip(parts, paths, strict=True):
            part.chmod(0o666 & ~_umask())  # safetensors would keep a model from everybody else
            part.replace(path)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_rows(path: Path, rows: list[dict[str, Any]], columns: list[str]) -> None:
    """Write rows as CSV; a value that a row lacks stays empty."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def run(main: Callable[[], None]) -> None:
    """Run a stage's main; a `UserError` ends it with one sentence and exit status 1."""
    try:
        main()
    except UserError as error:
        sys.exit(f"error: {error}")
