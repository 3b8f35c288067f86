"""`python -m fu`: make's commands and variables, without a Makefile."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fu import __main__ as command_line
from fu.errors import UserError
from tests.workflow.project import REPOSITORY


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "TARGETS=a b", "PRESET=reduced"], ["plan", "a", "b", 'preset= "reduced" ']),
        (["why", 'DATA_DIR=a "b"'], ["why", 'data_dir= "a \\"b\\"" ']),
        (["verify"], ["verify"]),
        (["verify", "BUNDLE=x.zip"], ["check", "x.zip"]),
        (["show"], ["cell", ""]),
        (["show", "CELL=fedosd/a", "PAPERS=fedosd"], ["cell", "fedosd/a", 'papers= "fedosd" ']),
        (["compare", "A=one", "B=two", "TARGETS=t"], ["compare", "one", "two", "t"]),
        (["compare", "A=one", "TARGETS=t"], ["compare", "one", "", "t"]),
        (["audit", "ORACLES=o", "PREDICTIONS=p", "CSV=c"], ["audit", "o", "p", "c"]),
        (["audit", "ORACLES=o", "CSV=c"], ["audit", "o", "", "c"]),
        (["why", "DATA_DIR=🙂"], ["why", 'data_dir= "🙂" ']),
        (["version"], ["version"]),
    ],
)
def test_make_s_variables_are_the_words_of_a_command(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: list[str]
) -> None:
    from fu.pipeline.cli import show

    called: list[list[str]] = []
    monkeypatch.setattr(show, "main", called.append)
    assert command_line.main(arguments) == 0
    assert called == [words]


def test_snakemake_is_told_targets_and_settings_and_its_failure_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []

    def call(command: list[str]) -> int:
        called.append(command)
        return 3

    monkeypatch.setattr(subprocess, "call", call)
    assert command_line.main(["reproduce", "TARGETS=fedosd_table8", "PRESET=smoke", "CORES=1"]) == 3
    [[python, *words]] = called
    assert python == sys.executable
    assert words == [
        *("-m", "snakemake", "--snakefile", f"{REPOSITORY}/Snakefile", "--cores", "1"),
        *("--workflow-profile", f"{REPOSITORY}/profiles/default"),
        *("--config", 'preset= "smoke" ', "--", "fedosd_table8"),
    ]
    assert command_line.main(["unlock", "TARGETS=fedosd_table8"]) == 3
    assert called[1][-3:] == ["--workflow-profile", f"{REPOSITORY}/profiles/default", "--unlock"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "usage: python -m fu COMMAND [VARIABLE=value ...], with COMMAND one of reproduce, "),
        (["make"], "usage: python -m fu COMMAND"),
        (["plan", "TARGET=a"], "there is no variable 'TARGET'; did you mean 'TARGETS'?"),
        (
            ["reproduce", "fedosd_table8"],
            "expected VARIABLE=value, got 'fedosd_table8'; tables and figures ",
        ),
        (["reproduce", "CORES=0"], "CORES: must be 'all' or a positive integer, got '0'."),
        (["reproduce", "PROFILE=slrm"], "PROFILE: there is no profile 'slrm'; allowed: default, slurm, "),
    ],
)
def test_a_misspelt_command_or_variable_gets_one_sentence(arguments: list[str], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        command_line.main(arguments)
    assert str(caught.value).startswith(sentence)


def test_an_error_has_the_exit_code_that_make_gives_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["compare", "A=nowhere", "B=nowhere"]) == 2
    assert command_line.main(["verify", "BUNDLE=nowhere.zip"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "error: nowhere.zip: there is no such file."


def test_an_installed_fu_has_commands_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from fu.pipeline.cli import show

    text = "run `make reproduce TARGETS=x`, as make does; `make test`"
    assert show.worded(text) == text
    monkeypatch.setattr(show, "ROOT", tmp_path)
    assert show.worded(text) == "run `python -m fu reproduce TARGETS=x`, as make does; `make test`"


def test_it_works_in_an_empty_folder(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "fu", "plan", "TARGETS=fedosd_table8"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "fedosd_table8" in done.stdout
