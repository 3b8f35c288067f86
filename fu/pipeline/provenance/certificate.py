"""Certificates, `*.made.json`: what a job's outputs were made from. Contents decide, not timestamps.

A certificate has the key of its job (stage, spec, code with library versions) and the digests of all files that the
job read and wrote. The plan follows certificates from job to job; a stage checks its inputs against them.
"""

import fcntl
import hashlib
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from fu.contents import checksum, require_file
from fu.errors import UserError
from fu.pipeline.provenance.paths import certificate_of

FORMAT = 4
SEAL = b',\n "seal": "'  # before the digest of everything above it: a damaged certificate is invalid
CHOICE = ("chosen", "points")  # the roles of a selection and of what there is to select
PATIENCE_S = 10.0  # a job whose run was killed ends within seconds
ON_CLUSTER_S = 3600.0  # one on a node that Slurm has lost and replaced may live on until the node is found again


Inputs = Mapping[str, list[list[str]]]


@dataclass(frozen=True)
class Certificate:
    """What a job's outputs were made from.

    `parts`: the modules and libraries behind the code digest; `inputs`: role -> path and SHA-256 of each file, in
    order; `outputs`: file name -> size in bytes, SHA-256. Of several points, key and spec are the selected one's.
    """

    key: str
    stage: str
    spec: Mapping[str, Any]
    code: str
    parts: Mapping[str, str]
    inputs: Inputs
    outputs: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    seal: str = ""


def key_of(stage: str, spec: str, code: str) -> str:
    """Return the key of a job from its stage, canonical spec and code digest."""
    return hashlib.sha256(f"{FORMAT}\n{stage}\n{code}\n{spec}".encode()).hexdigest()


def read(path: Path) -> Certificate | None:
    """Return a certificate; None where it is missing, damaged, of another format or of another path."""
    try:
        require_file(path)
        head, _, seal = path.read_bytes().rpartition(SEAL)
    except (OSError, UserError):
        return None
    if seal != _seal(head):
        return None
    content = json.loads(head + b"}")
    if content.pop("format") != FORMAT:
        return None
    beside = all(certificate_of(Path(name)).name == path.name for name in content["outputs"])
    return Certificate(**content, seal=seal[:64].decode()) if beside else None


def _seal(head: bytes) -> bytes:
    return hashlib.sha256(head).hexdigest().encode() + b'"\n}\n'


def write(path: Path, certificate: Certificate) -> None:
    """Write a certificate atomically."""
    content = {"format": FORMAT, **asdict(certificate)}
    del content["seal"]
    head = json.dumps(content, indent=1).removesuffix("\n}").encode()
    part = path.with_name(f".part-{os.getpid()}-{path.name}")
    try:
        part.write_bytes(head + SEAL + _seal(head))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def check(files: Mapping[str, Sequence[Path]]) -> dict[str, list[list[str]]]:
    """Return path and digest of each file, by role; `UserError` where one is not as its job wrote it."""
    paths = {certificate_of(file) for several in files.values() for file in several}
    made = {path: read(path) for path in paths}
    return {
        role: [[str(file), verified(file, made[certificate_of(file)])] for file in several]
        for role, several in files.items()
        if several
    }


def verified(file: Path, made: Certificate | None) -> str:
    """Return the digest of a file; `UserError` where it is not as the job that wrote this certificate left it."""
    name = certificate_of(file).name
    if not file.is_file():
        raise UserError(f"{file}: there is no such file; make it first.")
    if made is None:
        raise UserError(f"{file}: its certificate {name} is missing or damaged; start the run again.")
    content = checksum(file)
    if made.outputs.get(file.name, (0, ""))[1] != content:
        raise UserError(f"{file}: the content does not match {name}; delete the file and start the run again.")
    return content


def still_made(path: Path, key: str, inputs: Inputs) -> bool:
    """Return whether nothing has to be computed: a certificate has this key and these inputs, and the outputs match it.

    A selection only says which spec is run, which is in the key: where it alone is another one, the certificate is
    written anew with it.
    """
    made = read(path)
    if made is None or made.key != key or _computed_from(made.inputs) != _computed_from(inputs):
        return False
    files = [(path.with_name(name), content) for name, (_, content) in made.outputs.items()]
    if not all(file.is_file() and checksum(file) == content for file, content in files):
        return False
    if made.inputs != inputs:
        write(path, replace(made, inputs=inputs))
    return True


def _computed_from(inputs: Inputs) -> Inputs:
    return {role: files for role, files in inputs.items() if role not in CHOICE}


@contextmanager
def locked(certificate: Path) -> Iterator[None]:
    """Hold the lock on a job's outputs; `UserError` where another process holds it."""
    path = lock_of(certificate)
    path.parent.mkdir(parents=True, exist_ok=True)
    patience = ON_CLUSTER_S if "SLURM_JOB_ID" in os.environ else PATIENCE_S
    with _acquired(path, time.monotonic() + patience) as file:
        sign(file)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def lock_of(certificate: Path) -> Path:
    """Return the lock on a job's outputs."""
    return certificate.with_name(f".{certificate.name}.lock")


def _acquired(path: Path, until: float) -> TextIO:
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_ino == path.stat().st_ino:  # else the previous holder has removed it
                return file
        except FileNotFoundError:
            pass
        except BlockingIOError:
            if time.monotonic() > until:
                file.seek(0)
                holder = file.read() or "another process"
                raise UserError(
                    f"{path.parent / path.name[1:].removesuffix('.lock')}: {holder} is making the same outputs; wait "
                    "until it ends or kill it, then start the run again."
                ) from None
            time.sleep(0.1)
        file.close()


def holder(lock: Path) -> str:
    """Return the process that holds a lock; "" if none does."""
    with suppress(FileNotFoundError), lock.open(encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read() or "another process"
    return ""


def sign(lock: TextIO) -> None:
    """Write this process into a lock that it holds."""
    lock.truncate(0)
    lock.write(f"process {os.getpid()} on {socket.gethostname()}")
    lock.flush()
