"""What a user gives to `make` arrives as it is, and none of it is run."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.project import REPOSITORY

RECORD = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$FU_PLUGINS" "$@" END >> calls
"""
WILD = [
    "a b", "a ", "a  b", "a\tb", "it's", 'say "so"', "'a'", '"a"', '"', "'", "\\", "a\\", "\\\\n", "\\$x", "ü – ±",
    "🙂", "; touch ran", "`touch ran`", "$(touch ran)", "$(shell touch ran)", "$(error ran)", "| touch ran",
    "& touch ran", "' ; touch ran '", '" ; touch ran "', "'$(shell touch ran)'", "> ran", "\\' ; touch ran",
    "$PRESET", "${HOME}", "$(HOME)", "$$", "$", "$$(touch ran)", "$(", "${", ")", "$(1)", "$@", "12", "1.0", "1e400",
    "true", "null", "~", "2001-99-99", "{a}: [b", "a: b", "a # b", "#", "- a", "!!x y", "&a", "*a", "*", "?", "-n",
    "--help", "a,b", "a=b", "=", "%s", "%", "endef", "override",
]  # fmt: skip


class Make:
    """A folder with the Makefile, whose programs only record what they are called with."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "envs").mkdir()
        (root / "envs/lock.txt").touch()
        (root / "envs/peers.txt").touch()
        (root / "Makefile").write_bytes((REPOSITORY / "Makefile").read_bytes())
        self.program(root / ".venv/bin/python", RECORD)
        (root / ".venv/installed").touch()
        (root / ".venv-peers").mkdir()
        (root / ".venv-peers/installed").touch()

    def program(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def __call__(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        (self.root / "calls").unlink(missing_ok=True)
        done = subprocess.run(
            ["make", *words],
            cwd=self.root,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], **environment},
            check=False,
        )
        assert not (self.root / "ran").exists(), words
        return done

    def calls(self, *words: str, **environment: str) -> list[list[str]]:
        """Return what was called, and with what: the program, `FU_PLUGINS` and the arguments."""
        done = self(*words, **environment)
        assert done.returncode == 0, done.stderr
        calls = (self.root / "calls").read_text(encoding="utf-8").split("\0END\0")[:-1]
        return [call.split("\0") for call in calls]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return Make(tmp_path)


def test_words_reach_their_programs_as_they_are(make: Make) -> None:
    names = [
        "PRESET",
        "PAPERS",
        "DATA_DIR",
        "TARGETS",
        "CELL",
        "BUNDLE",
        "RUN",
        "A",
        "B",
        "ORACLES",
        "PREDICTIONS",
        "CSV",
    ]
    for k, value in enumerate(WILD):
        words, environment = [f"{name}={value}" for name in names], dict.fromkeys(names, value)
        given, other = (words, {}) if k % 2 else ([], environment)
        for name in ("show", "keep", "unlock"):
            assert make.calls(name, *given, **other) == [["python", "", "-m", "fu", name, *words]]
        for name in ("reproduce", "oracles"):
            called = ["python", "", "-m", "fu", name, *words, f"CORES={value}"]
            assert make.calls(name, *given, **other, CORES=value) == [called]
        [(program, folder, *called)] = make.calls("contract", f"PLUGINS={value}")
        assert [program, folder, *called[:2], called[-1]] == ["python", value, "-m", "pytest", "tests/contract"]
    for name in ("benchmark", "benchmark-peers"):
        assert make.calls(name, "DATA_DIR=a b")[0][-1] == "--data-dir=a b"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("TARGET=fedosd_table8", "'TARGET'; did you mean TARGETS?"),
        ("SEEDS=[1]", "'SEEDS';"),
        ("it's;touch${IFS}ran=1", "'it's;touchran';"),
    ],
)
def test_an_unknown_variable_is_refused_by_name(make: Make, word: str, hint: str) -> None:
    given = (
        "PYTHON CORES PROFILE PRESET PAPERS DATA_DIR TARGETS PLUGINS CELL PARTS BUNDLE RUN A B ORACLES PREDICTIONS CSV"
    )
    done = make("reproduce", "CORES=1", word)
    assert done.returncode == 2
    said = f" *** there is no variable {hint} allowed: {given}; all other settings are in config.yaml.  Stop.\n"
    assert done.stderr.endswith(said)
    assert not (make.root / "calls").exists()


def test_nothing_given_is_nothing_handed_over(make: Make) -> None:
    reproduce = ["python", "", "-m", "fu", "reproduce"]
    assert make.calls("reproduce", "PRESET=", "TARGETS= ") == [[*reproduce, "CORES=all"]]
    assert make.calls("reproduce", "CORES=") == [[*reproduce, "CORES="]]  # which is refused: 0 would wait for ever
    for name in ("show", "why", "plan", "decide", "verify", "bundle", "keep", "audit", "compare", "unlock", "version"):
        assert make.calls(name) == [["python", "", "-m", "fu", name]]


def test_a_profile_runs_with_what_a_cluster_needs(make: Make) -> None:
    (make.root / "envs/cluster.txt").touch()
    install, run = make.calls("reproduce", "PROFILE=slurm", "TARGETS=a b")
    assert install[2:5] == ["-m", "pip", "install"]
    assert run[3:] == ["fu", "reproduce", "TARGETS=a b", "PROFILE=slurm", "CORES=all"]


def test_a_python_is_one_program_of_a_version_that_fu_admits(make: Make) -> None:
    (make.root / ".venv/installed").unlink()
    make.program(make.root / "old", '#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.1"\nexit 1\n')
    for value in ("", "./old", *(set(WILD) - {"true"})):  # which is a program
        done = make("reproduce", f"PYTHON={value}")
        assert done.returncode != 0
        is_ = "Python 3.9.1; " if value == "./old" else ""
        assert done.stderr.startswith(f"fu needs Python 3.11, 3.12 or 3.13, but '{value}' is {is_}")
        assert (make.root / ".venv").exists()
    for value in ("my python", "it's; python"):
        make.program(make.root / value, RECORD)
        make("reproduce", f"PYTHON=./{value}")
        called = (make.root / "calls").read_text()
        assert f"{value}\0\0-m\0venv\0.venv\0" in called


def test_where_no_file_can_be_written_nothing_begins(make: Make) -> None:
    (make.root / ".snakemake").touch()
    done = make("reproduce")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "error: .snakemake: cannot write files; free disk space (df -h and df -i show space and inodes) or fix the "
        "permissions.\n"
    )
    assert not (make.root / "calls").exists()
    (make.root / ".snakemake").unlink()
    assert len(make.calls("reproduce")) == 1
    assert list((make.root / ".snakemake").iterdir()) == []
    (make.root / ".snakemake/room").mkdir()  # of another make
    assert len(make.calls("reproduce")) == 1
    assert [path.name for path in (make.root / ".snakemake").iterdir()] == ["room"]


def test_setting_up_says_first_how_much_it_installs(make: Make) -> None:
    (make.root / ".venv/installed").unlink()
    (make.root / "envs/lock.txt").write_text("torch==2.0\nsnakemake==9.0\nnumpy==2.0\n")
    make.program(make.root / "python", RECORD)
    said = make("reproduce", "PYTHON=./python").stdout.splitlines()
    assert said[0].startswith("Installing the 3 packages of envs/lock.txt into .venv, ")


def test_no_environment_is_replaced_under_a_run(make: Make) -> None:
    (make.root / ".venv/installed").unlink()
    make.program(make.root / "python", RECORD.replace("\n", f'\n[ "$1" = -c ] && exec {sys.executable} "$@"\n', 1))
    (make.root / ".snakemake/runs").mkdir(parents=True)
    with (make.root / ".snakemake/runs/mine").open("w") as run:
        fcntl.flock(run, fcntl.LOCK_EX)
        done = make("why", "PYTHON=./python")
    assert done.returncode == 2
    assert done.stderr.startswith("error: envs/lock.txt: was changed while a run is active in this folder; wait until ")
    assert (make.root / ".venv/bin/python").exists()
    make("why", "PYTHON=./python")  # a killed run leaves its file
    assert "-m\0venv\0.venv\0" in (make.root / "calls").read_text()


@pytest.mark.parametrize("name", ["PRESET", "TARGETS", "PYTHON"])
def test_a_line_break_is_refused(make: Make, name: str) -> None:
    for words, environment in (((f"{name}=a\ntouch ran",), {}), ((), {name: "a\ntouch ran"})):
        done = make("reproduce", *words, **environment)
        assert done.returncode != 0
        assert f"{name} must not contain a line break." in done.stderr
        assert not (make.root / "calls").exists()
