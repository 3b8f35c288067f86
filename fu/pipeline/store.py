"""What training, unlearning and post-training have made, kept for other settings, presets and checkouts (`cache:`).

An entry is a folder named by a key over all that decides the bytes in it: a job's outputs and a certificate. Entries
are copies, which share their blocks with the results where the file system can (XFS, Btrfs, ZFS). Hard links would
cost no space anywhere, but Snakemake replaces no output that is read-only, and where a linked output is writable, an
editor that saves in place changes it in every checkout at once.
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

# What makes libraries choose other kernels, which round differently.
SWITCHES = ("ATEN_", "CUBLAS_", "CUDNN_", "DNNL_", "MKL_", "NVIDIA_TF32", "ONEDNN_", "TORCH_ALLOW_TF32")
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class DamagedError(Exception):
    """A file cannot be read, or is not as it was made."""


def machine(device: str, threads: int) -> dict[str, Any]:
    """Return what decides a result's bytes beside its spec, code and inputs.

    The way in which clients are trained, `Federation.strategy`, follows from all these.
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
    """The place in a store for what one job makes."""

    def __init__(self, store: Path, job: tuple[str, str], inputs: Mapping[str, Sequence[str]], about: object) -> None:
        """`job`: stage and key of its certificate; `inputs`: role -> contents; `about`: the machine."""
        self.stage, key = job
        self.key = hashlib.sha256(json.dumps([key, inputs, about], sort_keys=True).encode()).hexdigest()
        self.folder = store / self.key
        self.certificate = self.folder / f"{self.stage}{CERTIFIED}"

    def used(self) -> bool:
        """Whether there is an entry; its folder then has the time of this use."""
        with contextlib.suppress(OSError):  # absent, or another user's
            os.utime(self.folder)
        return self.folder.is_dir()

    def keep(self, own: Path) -> None:
        """Keep the outputs of this certificate unless they are there; a failure is said, and fails no job."""
        made = certificate.read(own)
        if made is None or self.folder.is_dir():
            return
        stem, outputs = own.name.removesuffix(CERTIFIED), {}
        try:
            with _new(self.folder) as part:
                for name, (size, content) in made.outputs.items():
                    kept = f"{self.stage}{name.removeprefix(stem)}"
                    copy(own.with_name(name), part / kept, content)
                    outputs[kept] = size, content
                entry = replace(made, key=self.key, outputs=outputs)
                certificate.write(part / self.certificate.name, entry)
        except (OSError, DamagedError) as error:
            reason = getattr(error, "strerror", None) or error
            print(f"{self.stage}: made, but not kept in the cache {self.folder.parent}: {reason}.", file=sys.stderr)

    def drop(self) -> None:
        """Throw the entry away: it is damaged."""
        told = "it is thrown away and computed again"
        try:
            shutil.rmtree(self.folder.rename(_beside(self.folder)))
        except OSError as error:
            told = f"it cannot be removed ({error.strerror}) and is computed again"
        print(f"{self.stage}: {self.folder} is damaged: {told}.", file=sys.stderr)


def copy(source: Path, target: Path, content: str) -> None:
    """Copy a file that has this digest; `DamagedError` where it cannot be read or has another one."""
    whole = False
    try:
        require_file(source)
        with source.open("rb") as read, target.open("xb") as write:
            with contextlib.suppress(AttributeError, OSError):  # not on this system or between these file systems
                while os.copy_file_range(read.fileno(), write.fileno(), 1 << 30):
                    pass
            shutil.copyfileobj(read, write)  # what is left
        whole = checksum(target) == content
    except (UserError, OSError) as error:
        if getattr(error, "errno", None) in FULL:
            raise
    if not whole:
        raise DamagedError(f"{source} is not as it was made")


def check(store: Path) -> None:
    """Raise `UserError` where this is no folder, or one into which anybody may put something."""
    if store.exists() and not store.is_dir():
        raise UserError(f"config: cache: must be a folder, got {str(store)!r}.")
    if store.exists() and store.stat().st_mode & stat.S_IWOTH:
        raise UserError(f"config: cache: everybody can write into {str(store)!r}; `chmod o-w` it, or name another.")


def _beside(folder: Path) -> Path:
    return folder.with_name(f".part-{os.urandom(8).hex()}")


@contextlib.contextmanager
def _new(folder: Path) -> Iterator[Path]:
    """Yield a folder that gets this name at the end, unless another process was first; its files are read-only."""
    before = os.umask(0o002)
    os.umask(before | 0o002)
    part = _beside(folder)
    try:
        part.mkdir(parents=True)
        yield part
        for file in part.iterdir():
            file.chmod(file.stat().st_mode & 0o444)
        try:
            part.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was first
                raise
    finally:
        os.umask(before)
        shutil.rmtree(part, ignore_errors=True)
