"""Keep the source of every module of `fu` as this process compiled it, so that a digest covers the code that runs.

Python forgets the text that it compiles, so a digest that reads a file later may see another one. Here each file is
read once, by the import or by the digest, whichever comes first, and both use that text. Bytecode is used only where
the hash of the source says so, never by time and size.
"""

import importlib.util
import marshal
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

FOLDERS: list[Path] = []  # users' own plug-in folders
READ: dict[str, bytes] = {}  # real path -> source
CHECKED = (3).to_bytes(4, "little")  # PEP 552: bytecode to be compared with the hash of its source


def text(path: str) -> bytes:
    """Return a source file's contents as this process first read them."""
    place = os.path.realpath(path)
    if place not in READ:
        READ[place] = contents(place)
    return READ[place]


def edited() -> bool:
    """Whether any file that was read has changed or gone since."""
    try:
        return any(contents(path) != source for path, source in READ.items())
    except OSError:
        return True


def contents(path: str) -> bytes:
    """Return a file's present contents."""
    with open(path, "rb") as file:  # noqa: PTH123 (pathlib takes twice as long)
        return file.read()


class Loader(SourceFileLoader):
    """Compiles the kept source, or loads bytecode that carries its hash."""

    def get_data(self, path: str) -> bytes:
        """Return a file's contents; for the source, the kept ones."""
        return text(path) if path == self.path else super().get_data(path)

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code; bytecode that is validated by time and size is replaced."""
        bytecode = importlib.util.cache_from_source(self.path)
        head = importlib.util.MAGIC_NUMBER + CHECKED
        try:
            hashed = self.get_data(bytecode).startswith(head)
        except OSError:
            hashed = False
        if hashed:
            return super().get_code(fullname)
        source = text(self.path)
        code: CodeType = self.source_to_code(source, self.path)
        if not sys.dont_write_bytecode:
            self.set_data(bytecode, head + importlib.util.source_hash(source) + marshal.dumps(code))
        return code


def keeping(spec: ModuleSpec | None) -> ModuleSpec | None:
    """Have a module's loader keep its source."""
    if spec and type(spec.loader) is SourceFileLoader:
        spec.loader = Loader(spec.loader.name, spec.loader.path)
    return spec


class Finder:
    """Finds the modules of `fu` as Python does, and `fu.<kind>.<name>` in users' folders, and keeps their sources."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module inside the package."""
        root, *below = fullname.split(".")
        if path is None or root != "fu":
            return None
        own = [str(folder / below[0]) for folder in FOLDERS] if len(below) == 2 else []
        return keeping(PathFinder.find_spec(fullname, [*path, *own], target))


def install(package: str, code: CodeType) -> None:
    """Keep the sources of all modules imported from now on; `package`: the file that Python compiled to `code`.

    Raises `ImportError` where that file was edited while Python read it.
    """
    sys.meta_path[:] = [Finder, *(one for one in sys.meta_path if getattr(one, "__module__", "") != __name__)]
    if code != compile(text(package), code.co_filename, "exec", dont_inherit=True):
        with suppress(OSError):
            os.unlink(importlib.util.cache_from_source(package))  # noqa: PTH108
        raise ImportError(f"{package}: was edited while it was imported; start again.")
