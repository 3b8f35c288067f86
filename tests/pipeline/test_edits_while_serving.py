"""What a job of the fork server runs is what lies there, whatever was edited, replaced or put back since it started."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fu.pipeline.engine import fork_server
from fu.pipeline.provenance.digest import ROOT
from tests.data.files import arrays_of
from tests.pipeline.test_fork_server import JOB, Place
from tests.workflow.project import until

pytestmark = pytest.mark.whole


@dataclass
class Edited(Place):
    """A copy of the repository in which somebody edits, and a server of its own."""

    name: str = ""

    def write(self, file: str, text: str) -> None:
        """Replace a file's contents, of equal size and time."""
        path = self.folder / file
        times = path.stat()
        path.write_text(text)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    @contextmanager
    def serving(self) -> "Iterator[subprocess.Popen[bytes]]":
        """Have a server run; it may still be importing."""
        command = [sys.executable, "-m", "fu.pipeline.engine.fork_server", "--serve", self.name]
        with subprocess.Popen(command, cwd=self.folder, env=self.environment, stdin=subprocess.PIPE) as server:
            yield server

    def parent(self) -> int:
        """Return the parent of a job that ran."""
        return int(json.loads(self.run("about")[1])["parent"])


@pytest.fixture
def edited(tmp_path: Path) -> Edited:
    shutil.copytree(ROOT / "fu", tmp_path / "fu", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    (tmp_path / "job.py").write_text(f"def value(): import fu.types as it; print(it.VALUE)\n{JOB}")
    with (tmp_path / "fu/types.py").open("a") as file:
        file.write("VALUE = 1\n")
    (tmp_path / "libraries/mine-1.0.dist-info").mkdir(parents=True)
    (tmp_path / "libraries/mine-1.0.dist-info/METADATA").write_text("Name: mine\nVersion: 1.0\n")
    np.savez(tmp_path / "digits.npz", allow_pickle=False, **arrays_of("digits"))
    name = f"fu-edited-{os.urandom(8).hex()}"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{tmp_path}:{tmp_path}/libraries"}
    return Edited(tmp_path, {**environment, fork_server.SOCKET: f"{name}:{sys.prefix}:"}, name)


def test_a_job_runs_by_itself_while_code_is_edited(edited: Edited) -> None:
    before = (edited.folder / "fu/types.py").read_text()
    (edited.folder / "fu/.#types.py").symlink_to("nobody@nowhere")  # Emacs's lock
    with edited.serving() as server:
        until(lambda: edited.parent() == server.pid)
        for value in ("1", "2", "1"):
            edited.write("fu/types.py", before.replace("VALUE = 1", f"VALUE = {value}"))
            assert edited.run("value") == (0, f"{value}\n", "")
            assert edited.parent() == (server.pid if value == "1" else os.getpid())
        (edited.folder / "fu/seeds.py").unlink()
        assert edited.parent() == os.getpid()


def test_a_job_runs_what_is_there_though_the_server_imported_an_edit_that_was_undone(edited: Edited) -> None:
    before = (edited.folder / "fu/types.py").read_text()
    with (edited.folder / "fu/errors.py").open("a") as file:  # which the server imports before fu/types.py
        file.write("import pathlib, time\npathlib.Path('importing').touch()\n")
        file.write("while not pathlib.Path('go').exists(): time.sleep(.01)\n")
    with edited.serving() as server:
        until((edited.folder / "importing").exists)
        edited.write("fu/types.py", before.replace("VALUE = 1", "VALUE = 2"))
        (edited.folder / "go").touch()
        until(lambda: edited.parent() == server.pid)
        edited.write("fu/types.py", before)
        assert edited.run("value") == (0, "1\n", "")


def test_a_data_set_that_was_kept_by_edited_facts_is_not_shared_once_these_are_put_back(edited: Edited) -> None:
    facts = edited.folder / "fu/datasets/digits.py"
    before = facts.read_text()
    own = Place(edited.folder, {"PYTHONPATH": str(edited.folder)}).run("load")[1].split()
    with edited.serving() as server:
        until(lambda: edited.parent() == server.pid)
        job = edited.start("load_and_wait")
        until((edited.folder / "read").exists)
        edited.write("fu/datasets/digits.py", before.replace("(0.195,)", "(0.395,)"))
        (edited.folder / "go").touch()
        assert job.communicate(timeout=300)[0].split() == own
        time.sleep(1)  # the server imports the facts and reads the archive
        edited.write("fu/datasets/digits.py", before)
        for _ in range(3):
            assert edited.run("load")[1].split()[1:] == own[1:]


def test_a_job_runs_by_itself_where_a_library_was_replaced_since_the_server_imported_it(edited: Edited) -> None:
    metadata = "libraries/mine-1.0.dist-info/METADATA"
    before = (edited.folder / metadata).read_text()
    with edited.serving() as server:
        until(lambda: edited.parent() == server.pid)
        for text in (before.replace("1.0", "2.0"), before):  # put back, too: what was imported meanwhile is not known
            edited.write(metadata, text)
            assert edited.parent() == os.getpid()
            assert edited.run("both") == (0, "one\n", "other\n")
