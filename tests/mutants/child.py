"""What the process of one mutant does. It is forked with the libraries loaded, and imports `fu` and its tests anew."""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest


class Quickest:
    """A plug-in of pytest that runs the tests of each file from the quickest to the slowest, and quick files first.

    Most mutants fail a quick test. What a test takes is measured when it first runs in any copy, before anything is
    broken.
    """

    def __init__(self, place: Path) -> None:
        self.file = place.with_name(f"{place.name}.seconds")
        self.known: dict[str, float] = {}
        for file in self.file.parent.glob("*.seconds"):
            self.known |= json.loads(file.read_text())
        self.measured: dict[str, float] = defaultdict(float)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort the tests; those of a file stay together, for the sake of its fixtures."""
        files: dict[Path, float] = defaultdict(float)
        for item in items:
            files[item.path] += self.known.get(item.nodeid, 0)
        items.sort(key=lambda item: (files[item.path], item.path, self.known.get(item.nodeid, 0)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the seconds of a setup, call or teardown."""
        self.measured[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Keep what was not known."""
        part = self.file.with_suffix(".part")  # as other copies read while this one writes
        part.write_text(json.dumps(self.measured | self.known))
        part.replace(self.file)


def run_pytest(place: Path, tests: Sequence[str]) -> None:
    """Become pytest in a copy and write no bytecode, which could be a mutant's of the same size and second."""
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
    sys.exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *long, *tests], [Quickest(place)])))


def log_of(place: Path) -> Path:
    """Return where the tests of a copy print."""
    return place.with_name(f"{place.name}.log")
