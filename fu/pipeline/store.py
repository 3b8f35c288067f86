"""What training, unlearning and post-training have made, kept for other runs, presets and checkouts (`cache: FOLDER`).

An entry is a folder named by a key over all that decides the bytes in it. It holds a job's outputs and a certificate,
and has another name until it is whole.

Entries are copies, which share their blocks with the results where the file system can (XFS, Btrfs, ZFS). Hard links
would cost no space anywhere, but Snakemake refuses to replace an output that is read-only, and where linked results are
writable, an editor that saves in place changes them in every checkout at once.
"""

import contextlib
import errno
import hashlib
import json
import os
import platform
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fu.contents import checksum, require_file
from fu.errors import UserError
from fu.pipeline import certificate
from fu.pipeline.paths import CERTIFIED

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# What libraries read to choose other kernels, which round differently.
SWITCHES = ("ATEN_", "CUBLAS_", "CUDNN_", "DNNL_", "MKL_", "NVIDIA_TF32", "ONEDNN_", "TORCH_ALLOW_TF32")


class DamagedError(Exception):
    """A file cannot be read, or is not as it was made."""


def machine(device: str, threads: int) -> dict[str, Any]:
    """Return what decides a result's bytes beside its spec, code and inputs.

    How clients are trained (`Federation.strategy`) follows from these, and so is not listed.
    """
    import torch

    cuda = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    processor = torch.cpu.get_capabilities().items()
    return {
        "gpu": torch.cuda.get_device_name() if cuda and torch.cuda.is_available() else cuda,
        "processor": {name: value for name, value in processor if not name.startswith("num_")},
        "switches": {name: value for name, value in os.environ.items() if name.startswith(SWITCHES)},
        "threads": threads,
        "versions": [platform.python_version(), torch.__version__],
    }


class Entry:
    """Where the store has what one job makes, if it has it."""

    def __init__(self, store: Path, job: tuple[str, str], inputs: Mapping[str, Sequence[str]], about: object) -> None:
        """`job`: stage and key of its certificate; `inputs`: role -> contents; `about`: the machine."""
        self.stage, key = job
        self.inputs = {f"{role} {n}": content for role, all in inputs.items() for n, content in enumerate(all)}
        self.key = hashlib.sha256(json.dumps([key, self.inputs, about], sort_keys=True).encode()).hexdigest()
        self.certificate = store / self.key / f"{self.stage}{CERTIFIED}"

    def exists(self) -> bool:
        """Whether there is an entry, and note that it was of use."""
        with contextlib.suppress(OSError):  # another user's
            os.utime(self.certificate.parent)
        return self.certificate.parent.is_dir()

    def keep(self, own: Path) -> None:
        """Keep the outputs that this certificate names; where that fails, say so: the result is there all the same."""
        made, outputs = certificate.read(own), {}
        if made is None or self.exists():
            return
        try:
            with _folder(self.certificate.parent) as part:
                for name, (size, content) in made.outputs.items():
                    kept = self.stage + name.removeprefix(own.name.removesuffix(CERTIFIED))
                    copy(own.with_name(name), part / kept, content)
                    outputs[kept] = size, content
                about = replace(made, key=self.key, inputs=self.inputs, outputs=outputs)
                certificate.write(part / self.certificate.name, about)
        except (OSError, DamagedError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            print(f"{self.stage}: the result is there, but the cache does not hold it: {reason}.", file=sys.stderr)

    def drop(self) -> None:
        """Throw the entry away."""
        gone = _beside(self.certificate.parent)
        with contextlib.suppress(OSError):
            self.certificate.parent.rename(gone)
            shutil.rmtree(gone)


def copy(source: Path, target: Path, content: str) -> None:
    """Copy a file that has this digest; `DamagedError` where it cannot be read or has another one."""
    try:
        require_file(source)
        with source.open("rb") as read, target.open("xb") as write:
            try:
                while os.copy_file_range(read.fileno(), write.fileno(), 1 << 30):
                    pass
            except (AttributeError, OSError) as error:  # not on this system, or not between these file systems
                if getattr(error, "errno", None) in FULL:
                    raise
                shutil.copyfileobj(read, write)
        whole = checksum(target) == content
    except (UserError, OSError) as error:
        if getattr(error, "errno", None) in FULL:
            raise
        whole = False
    if not whole:
        raise DamagedError(f"{source} is not as it was made")


def check(store: Path) -> None:
    """Raise `UserError` where this cannot be a store, or where anybody may put something into it."""
    if store.exists() and not store.is_dir():
        raise UserError(f"config: cache: {store} must be a folder.")
    if store.exists() and store.stat().st_mode & stat.S_IWOTH:
        raise UserError(f"config: cache: {store} may be written by everybody, who could change results; chmod o-w it.")


def _beside(folder: Path) -> Path:
    return folder.with_name(f".part-{os.urandom(8).hex()}")


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[Path]:
    """Yield a new folder that gets this name at the end, with files that nobody can write."""
    before = os.umask(0o002)
    os.umask(before | 0o002)
    part = _beside(path)
    try:
        part.mkdir(parents=True)
        yield part
        for file in part.iterdir():
            file.chmod(file.stat().st_mode & 0o444)
        try:
            part.rename(path)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # by another process, which was first
                raise
    finally:
        os.umask(before)
        shutil.rmtree(part, ignore_errors=True)
