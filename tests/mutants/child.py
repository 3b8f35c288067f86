"""What the process of one mutant does. It is forked with the libraries loaded, and imports `fu` and its tests anew."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest


def run_pytest(place: Path, tests: Sequence[str]) -> None:
    """Become pytest in a copy, without bytecode: that of an old file of equal size and second would be the mutant's."""
    os.chdir(place)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("fu", "tests")]:
        del sys.modules[name]  # imported with this function, and not from the copy
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("PYTHONPYCACHEPREFIX", "FU_PLUGINS"):
        os.environ.pop(name, None)
    with log_of(place).open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    long = [] if any((place / test).is_dir() for test in tests) else ["-m", ""]  # of a file also the long tests
    sys.exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *long, *tests])))


def log_of(place: Path) -> Path:
    """Return where the tests of a copy print."""
    return place.with_name(f"{place.name}.log")
