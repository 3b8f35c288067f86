"""What every stage shares: spec and command line, outputs written whole or not at all, one sentence for a mistake."""

import argparse
import csv
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError

from fu import plugins
from fu.errors import UserError, first_problem
from fu.pipeline import digest
from fu.plugins import Choice, Kind


class Record(BaseModel):
    """A frozen record with no unknown key."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Spec(Record):
    """Exactly the values that a stage reads; the plan builds it, the stage's main is given it."""

    stage: ClassVar[str]


class Local(Record):
    """How clients train; `exception`: a round and the rate that it has instead."""

    lr: float
    lr_decay: float
    batch_size: int
    local_epochs: int
    exception: tuple[int, float] | None = None


class ModelSpec(Spec):
    """What every stage reads that computes with models."""

    dataset: Annotated[str, Kind("datasets")]
    attack: Annotated[str | None, Kind("attacks")]
    model: Annotated[Choice, Kind("models")]
    torch: str  # its version: Snakemake's cache between workflows knows none
    seed: int


class TrainingSpec(ModelSpec):
    """What every stage reads that trains."""

    local: Local
    rounds: int
    evaluate_every: int


@dataclasses.dataclass(frozen=True)
class ModelFiles:
    """The files that every stage reads that computes with models."""

    data: Path
    partition: Path


@dataclasses.dataclass(frozen=True)
class TrainingFiles(ModelFiles):
    """The files that every stage writes, too, that trains."""

    model: Path
    trace: Path
    cost: Path


@dataclasses.dataclass(frozen=True)
class Options:
    """How a stage runs: nothing here is part of a result. `code`: the digest of the code that runs."""

    code: str = ""
    threads: int = 1
    device: str = "auto"
    checkpoint_seconds: float = 30.0


S = TypeVar("S", bound=Spec)
F = TypeVar("F")


def canonical(record: BaseModel) -> str:
    """Return JSON with sorted keys and no spaces."""
    return json.dumps(record.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


def run(
    spec_type: type[S], files_type: type[F], main: Callable[[S, F, Options], None], argv: list[str] | None = None
) -> None:
    """Run a stage's main with what the command line says; a `UserError` ends it with one sentence and status 1."""
    try:
        args = _parser(spec_type, files_type).parse_args(argv)
        try:
            spec = spec_type.model_validate_json(args.spec)
        except ValidationError as error:
            text = first_problem(error, spec_type, "--spec")
            raise UserError(f"{text.removesuffix('.')}; `make show CELL=...` prints a complete command.") from None
        if args.plugins:
            plugins.add_folder(Path(args.plugins))
        code = digest.digest(*digest.modules_of(spec.stage, spec))
        if args.code not in (None, code):
            raise UserError(f"{spec.stage}: the code was edited after this job was planned; run snakemake again.")
        files = files_type(**{field.name: getattr(args, field.name) for field in dataclasses.fields(files_type)})  # type: ignore[arg-type]
        main(spec, files, Options(code, args.threads, args.device, args.checkpoint_seconds))
    except UserError as error:
        sys.exit(f"error: {error}")


def _parser(spec_type: type[Spec], files_type: type[Any]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=spec_type.__doc__)
    parser.add_argument("--spec", required=True, help="JSON with the values that this stage reads")
    for name, kind in get_type_hints(files_type).items():
        several = {"nargs": "*", "default": []} if kind != Path else {"required": True}
        parser.add_argument(f"--{name.replace('_', '-')}", type=Path, **several)  # type: ignore[arg-type]
    parser.add_argument("--code", help="the planned digest of the code")
    parser.add_argument("--plugins", nargs="?", help="folder with plug-ins of one's own")
    parser.add_argument("--threads", type=int, default=Options.threads)
    parser.add_argument("--device", default=Options.device, choices=["auto", "cpu", "cuda"])
    parser.add_argument("--checkpoint-seconds", type=float, default=Options.checkpoint_seconds)
    return parser


@contextmanager
def atomic_outputs(*paths: Path) -> Iterator[list[Path]]:
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


def write_rows(path: Path, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """Write rows as CSV; a value that a row lacks stays empty."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
