"""What all stages share: spec, command line, atomic outputs, error messages."""

import argparse
import csv
import dataclasses
import errno
import gc
import json
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_type_hints

from pydantic import BaseModel, ValidationError

from fu import gpus, plugins
from fu.contents import checksum, require_place
from fu.errors import UserError, first_problem, worded
from fu.federation.sgd import LocalTraining
from fu.pipeline.provenance import certificate, digest
from fu.pipeline.provenance.certificate import Certificate
from fu.pipeline.provenance.paths import OUTPUTS
from fu.plugins import Choice, Kind
from fu.types import Frozen

# Errors of a disk, its permissions or missing locks: reported in one sentence, as the code is not at fault.
OUTSIDE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOLCK, errno.ENOTSUP}
EDITED = "the code was edited after this job was planned; start the run again."


class Spec(Frozen):
    """Exactly the values that a stage reads; built by the plan, passed to the stage's main."""

    stage: ClassVar[str]


class Points(Spec):
    """The specs of one stage at the points of a grid, by the name of the trial; a job runs that of the selected one."""

    points: dict[str, Any]


class NetworkSpec(Spec):
    """What every stage that computes with models reads, of whichever seeds."""

    dataset: Annotated[str, Kind("datasets")]
    attack: Annotated[str | None, Kind("attacks")]
    model: Annotated[Choice, Kind("models")]


class ModelSpec(NetworkSpec):
    """What a stage reads that computes with models of one seed."""

    seed: int


class RoundsSpec(NetworkSpec):
    """How clients train in rounds; `clients_per_round`: how many are drawn for a round (None: all take part)."""

    local: LocalTraining
    rounds: int
    clients_per_round: int | None
    with_replacement: bool


class TrainingSpec(ModelSpec, RoundsSpec):
    """What every stage that trains a model of a run reads.

    `traced`: evaluators that measure in
    every `evaluate_every`-th round and in each of the last `evaluate_last`. `counted`: further columns of the trace, of
    what an evaluator counts between rounds; empty where it is not watched, so that its file is none of this job's.
    """

    evaluate_every: int
    evaluate_last: int
    traced: Annotated[tuple[str, ...], Kind("evaluation")]
    counted: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class ModelFiles:
    """The files that every stage that computes with models reads.

    `request`: one file; none while training, or where those are forgotten whom the attack marks.
    """

    data: Path
    partition: Path
    request: list[Path]


@dataclasses.dataclass(frozen=True)
class TrainingFiles(ModelFiles):
    """The files that every stage that trains also writes."""

    model: Path
    trace: Path
    cost: Path


@dataclasses.dataclass(frozen=True)
class Signature:
    """Where the certificate of a job goes, and its content except for the outputs."""

    path: Path
    draft: Certificate
    modules: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Options:
    """How a stage runs: nothing here is part of a result. `code`: the digest of the code that runs.

    Without a `signature` (a main called by hand), outputs get no certificate, and the plan makes them again.
    """

    code: str = ""
    threads: int = 1
    device: str = "auto"
    checkpoint_seconds: float = 30.0
    signature: Signature | None = None

    def contents(self, files: Iterable[Path]) -> list[str]:
        """Return the digests of the contents of input files."""
        read = self.signature.draft.inputs.values() if self.signature else ()
        known = {path: content for several in read for path, content in several}
        return [known.get(str(file)) or checksum(file) for file in files]


S = TypeVar("S", bound=Spec)
F = TypeVar("F")


def canonical(record: BaseModel) -> str:
    """Return JSON with sorted keys and no spaces."""
    return json.dumps(record.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


def run(
    spec_type: type[S],
    files_type: type[F],
    main: Callable[[S, F, Options], None],
    argv: list[str] | None = None,
    reads: Callable[[S, F], dict[str, list[Path]]] | None = None,
) -> None:
    """Run a stage's main from the command line.

    `reads`: the outputs of other jobs that the main reads, by role, where the command line does not name them.
    """
    with _told(spec_type.stage):
        args = _parser(spec_type, files_type).parse_args(argv)
        given, spec, selected = _specs(spec_type, args)
        modules, code = _code(spec_type.stage, given, args)
        files = files_type(**{field.name: getattr(args, field.name) for field in dataclasses.fields(files_type)})  # type: ignore[arg-type]
        options = Options(code, args.threads, args.device, args.checkpoint_seconds)
        point = _outputs(given, selected, args.points)
        if args.certificate is None:
            _make(main, spec, files, options, point)
            return
        with certificate.locked(args.certificate):
            named = reads(spec, files) if reads else inputs_of(spec_type.stage, files)
            inputs = certificate.check({**named, "chosen": args.chosen, "points": args.points})
            key = certificate.key_of(spec_type.stage, canonical(spec), code)
            if args.unless_made and certificate.still_made(args.certificate, key, inputs):
                print(f"{spec_type.stage}: already made from the same inputs; nothing to do.", file=sys.stderr)
                return
            values = spec.model_dump(mode="json")
            draft = Certificate(key, spec_type.stage, values, code, digest.parts(*modules), inputs)
            options = dataclasses.replace(options, signature=Signature(args.certificate, draft, modules))
            _make(main, spec, files, options, point)


@contextmanager
def _told(stage: str) -> Iterator[None]:
    """End on a `UserError` with one sentence and status 1, and so on an error in a plug-in, after its traceback."""
    try:
        yield
    except UserError as error:
        sys.exit(worded(f"error: {error}"))
    except Exception as error:
        said = re.search(r"\(os error (\d+)\)", str(error))  # as safetensors tells it, in an error of its own
        number = error.errno if isinstance(error, OSError) else int(said[1]) if said else None
        if number in OUTSIDE:
            where = getattr(error, "filename", None) or stage
            sys.exit(f"error: {where}: {os.strerror(number or 0)}; existing outputs are kept.")
        if not (sentence := plugins.told(error)):
            raise
        traceback.print_exc()
        sys.exit(f"error: {sentence}")


def _specs(spec_type: type[S], args: argparse.Namespace) -> tuple[Spec, S, str]:
    """Return the spec of the command line and the one to run: of several points that of the selected one, named."""
    try:
        if not args.chosen:
            spec = spec_type.model_validate_json(args.spec)
            return spec, spec, ""
        points = Points.model_validate_json(args.spec).points
        given = {name: spec_type.model_validate(spec) for name, spec in points.items()}
    except ValidationError as error:
        text = first_problem(error, spec_type, "--spec")
        raise UserError(f"{text.removesuffix('.')}; `make show CELL=...` prints a complete command.") from None
    try:
        selected = json.loads(args.chosen[0].read_text())["selected"]
    except (OSError, ValueError, LookupError, TypeError):
        selected = None
    if selected not in given:
        raise UserError(f"{args.chosen[0]}: selects none of {', '.join(given)}; delete it and start the run again.")
    return Points(points=given), given[selected], selected


def _code(stage: str, given: Spec, args: argparse.Namespace) -> tuple[tuple[str, ...], str]:
    """Return the modules of a job and the digest of their code, which must be the planned one."""
    if args.plugins:
        plugins.add_folder(Path(args.plugins))
    modules = digest.modules_of(stage, given)
    digest.check_installed(*modules)
    code = digest.digest(*modules)
    if args.code not in (None, code):
        raise UserError(f"{stage}: {EDITED}")
    return modules, code


def inputs_of(stage: str, files: Any) -> dict[str, list[Path]]:
    """Return the input files of a stage, by role."""
    names = [field.name for field in dataclasses.fields(files) if field.name not in OUTPUTS[stage]]
    return {name: [value] if isinstance(value := getattr(files, name), Path) else value for name in names}


def outputs_of(stage: str, files: Any) -> list[Path]:
    """Return the output files of a stage."""
    return [getattr(files, name) for name in OUTPUTS[stage] if hasattr(files, name)]


def _outputs(given: Spec, selected: str, outputs: list[Path]) -> list[Path]:
    """Return those of the outputs of all points, in the order of their names, that belong to the selected one.

    Its name says which: points that differ in what was made before may have equal specs here.
    """
    names = sorted(given.points) if isinstance(given, Points) else [selected]
    number, place = len(outputs) // len(names), names.index(selected)
    return outputs[number * place : number * (place + 1)]


def _make(main: Callable[[S, F, Options], None], spec: S, files: F, options: Options, point: list[Path]) -> None:
    """Make the outputs: by the main, or where the selected point's own job has made them, as copies."""
    if not point:
        while not _fits(main, spec, files, options):
            if not gpus.alone():
                raise UserError(
                    f"{spec.stage}: this job does not fit into the GPU's memory; let fewer jobs share it "
                    "(jobs_per_gpu) or use a smaller batch_size, a GPU with more memory, or device: cpu."
                )
            print(f"{spec.stage}: the GPU's memory is full; retrying alone on it.", file=sys.stderr)
        return
    with atomic_outputs(options, *outputs_of(spec.stage, files)) as parts:
        for source, part in zip(point, parts, strict=True):
            shutil.copyfile(source, part)
    print(f"{spec.stage}: copied from {point[0]}; nothing is computed.", file=sys.stderr)


def _fits(main: Callable[[S, F, Options], None], spec: S, files: F, options: Options) -> bool:
    """Run the main; return False, with all that it held released, where a GPU's memory is too small."""
    try:
        main(spec, files, options)
    except Exception as error:
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(error, torch.OutOfMemoryError):
            raise
    else:
        return True
    gc.collect()
    torch.cuda.empty_cache()
    return False


def _parser(spec_type: type[Spec], files_type: type[Any]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=f"Run the stage {spec_type.stage!r}.")
    parser.add_argument("--spec", required=True, help="JSON with the values that this stage reads")
    for name, kind in get_type_hints(files_type).items():
        several = {"nargs": "*", "default": []} if kind != Path else {"required": True}
        parser.add_argument(f"--{name.replace('_', '-')}", type=Path, **several)  # type: ignore[arg-type]
    parser.add_argument("--chosen", nargs="*", type=Path, default=[], help="the selection: --spec has all points")
    parser.add_argument("--points", nargs="*", type=Path, default=[], help="what the points' own jobs have made")
    parser.add_argument("--certificate", type=Path, help="where to write the certificate of the outputs")
    parser.add_argument("--unless-made", action="store_true", help="do nothing if the certificate is valid")
    parser.add_argument("--code", help="the planned digest of the code")
    parser.add_argument("--plugins", nargs="?", help="folder with your own plug-ins")
    parser.add_argument("--threads", type=int, default=Options.threads)
    parser.add_argument("--device", default=Options.device, choices=["auto", "cpu", "cuda"])
    parser.add_argument("--checkpoint-seconds", type=float, default=Options.checkpoint_seconds)
    return parser


@contextmanager
def atomic_outputs(options: Options, *paths: Path) -> Iterator[list[Path]]:
    """Yield temporary names next to `paths`; rename and certify them all at the end, or remove them after an error."""
    parts = [path.with_name(f".part-{os.getpid()}-{path.name}") for path in paths]
    signature = options.signature
    try:
        for path in (*paths, *([signature.path] if signature else [])):
            require_place(path)
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            for left in path.parent.glob(".part-*"):  # of a killed job: only one job makes each file
                if re.fullmatch(rf"\.part-\d+-{re.escape(path.name)}", left.name):
                    left.unlink(missing_ok=True)
        yield parts
        if signature:
            if replaced := digest.replaced(*signature.modules):
                raise UserError(f"{signature.draft.stage}: {replaced} changed while this job ran; start the run again.")
            contents = [(part.stat().st_size, checksum(part)) for part in parts]
            outputs = dict(zip((path.name for path in paths), contents, strict=True))
            signature.path.unlink(missing_ok=True)  # from here on, no certificate covers the outputs
        for part, path in zip(parts, paths, strict=True):
            part.chmod(0o666 & ~_umask())  # safetensors makes files that others cannot read
            part.replace(path)
        if signature:
            certificate.write(signature.path, dataclasses.replace(signature.draft, outputs=outputs))
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_rows(path: Path, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """Write rows as CSV; missing values stay empty."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
