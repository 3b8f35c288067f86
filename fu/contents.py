"""The digest of a file's content. No result depends on how it is computed."""

import hashlib
import os
import stat
from pathlib import Path

from fu.errors import UserError


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    require_file(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verified(path: Path, sha256: str) -> Path:
    """Return the path of a file whose content has this checksum ("": any); `UserError` where it has another."""
    if sha256 and checksum(path) != sha256:
        raise UserError(f"{path}: the file has changed since the plan was made; start the run again.")
    require_file(path)
    return path


def require_file(path: Path) -> None:
    """Raise `UserError` unless this is a readable regular file: reading a pipe would block for ever."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise UserError(f"{path}: the file cannot be read: {error.strerror}.") from None
    if not stat.S_ISREG(mode):
        raise UserError(f"{path}: must be a regular file, not a folder, a pipe or a device.")
    if not os.access(path, os.R_OK):
        raise UserError(f"{path}: the file is not readable; change its permissions.")


def require_place(path: Path) -> None:
    """Raise `UserError` where a path is taken by something other than a file or a link."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise UserError(f"{path}: a folder, pipe or device is in the place of an output file; move or delete it.")
