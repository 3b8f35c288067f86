"""Parts that passed on a tree are skipped on it, and on no other; a failure stops nothing and is not forgotten."""

import signal
import sys
from pathlib import Path

import pytest

from tests.all.__main__ import FOLDER, chosen, ended_with, git, run, table, tree_of
from tests.mistakes import has, sentence

NOTE = "import sys; open('.test-all/ran', 'a').write(sys.argv[1]); sys.exit(int(sys.argv[2]))"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository of one commit."""
    (tmp_path / "code.py").write_text("a = 1\n")
    (tmp_path / ".gitignore").write_text(f"/{FOLDER}/\n")
    (tmp_path / FOLDER).mkdir()
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=b", "commit", "--quiet", "-m", "c")
    return tmp_path


def ran(root: Path, a: int = 0, b: int = 0, c: int = 0) -> tuple[str, dict[str, str]]:
    """Return which of three parts, of these statuses, were run, and what is said of each."""
    (root / FOLDER / "ran").unlink(missing_ok=True)
    parts = {
        name: (sys.executable, "-c", NOTE, name, str(status)) for name, status in zip("abc", (a, b, c), strict=True)
    }
    records = run(parts, root, lambda text: None)
    noted = root / FOLDER / "ran"
    return noted.read_text() if noted.exists() else "", {name: record["status"] for name, record in records.items()}


def test_only_what_has_not_passed_on_this_tree_runs(root: Path) -> None:
    assert ran(root, b=1) == ("abc", {"a": "passed", "b": "failed", "c": "passed"})
    assert ran(root, b=1) == ("b", {"a": "passed", "b": "failed", "c": "passed"})
    assert ran(root) == ("b", dict.fromkeys("abc", "passed"))
    assert ran(root) == ("", dict.fromkeys("abc", "passed"))
    (root / "code.py").write_text("a = 2\n")  # not committed
    assert ran(root)[0] == "abc"
    (root / "new.py").write_text("")  # not even added
    assert ran(root)[0] == "abc"
    (root / "new.py").unlink()
    assert ran(root)[0] == "abc"


def test_a_part_during_which_the_tree_changes_has_not_passed(root: Path) -> None:
    parts = {"a": (sys.executable, "-c", "open('code.py', 'a').write('b = 1')"), "b": (sys.executable, "-c", "")}
    records = run(parts, root, lambda text: None)
    assert [record["status"] for record in records.values()] == ["edited", "passed"]
    tree = tree_of(root)
    assert [line.split()[:2] for line in table(records, tree).splitlines()[1:3]] == [["a", "edited"], ["b", "passed"]]
    (root / "code.py").write_text("")
    assert [line.split()[1] for line in table(records, tree_of(root)).splitlines()[1:3]] == ["edited", "edited"]


def test_parts_are_chosen_by_name_or_all_of_a_group_in_order() -> None:
    known = ["test", "page", "mutants/b", "mutants/a"]
    assert chosen([], known) == known
    assert chosen(["mutants", "test"], known) == ["test", "mutants/b", "mutants/a"]
    assert chosen(["mutants/a"], known) == ["mutants/a"]
    has(sentence(lambda: chosen(["pages"], known)), "PARTS: there is no part 'pages'; did you mean 'page'?")


def test_a_part_heeds_what_its_runner_ignores(tmp_path: Path) -> None:
    asks = "import signal; raise SystemExit(signal.getsignal(signal.SIGHUP) != signal.SIG_DFL)"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under `nohup`
    try:
        with (tmp_path / "log").open("wb") as out:
            assert ended_with([sys.executable, "-c", asks], tmp_path, out) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
