"""`python -m fu`: make's commands and variables, without a Makefile."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from snakemake.cli import parse_config

from fu import __main__ as command_line
from fu.errors import UserError, worded
from fu.pipeline.settings.papers import MAKE_VARIABLES
from tests.mistakes import process
from tests.workflow.project import REPOSITORY
from tests.workflow.test_make import WILD


def test_snakemake_is_told_targets_and_settings_and_its_failure_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []

    def exit_code_of(command: list[str]) -> int:
        called.append(command)
        return 3

    monkeypatch.setattr(command_line, "exit_code_of", exit_code_of)
    assert command_line.main(["reproduce", "TARGETS=fedosd_table8", "PRESET=smoke", "CORES=1"]) == 3
    [[python, *words]] = called
    assert python == sys.executable
    assert words == [
        *("-m", "snakemake", "--snakefile", f"{REPOSITORY}/Snakefile"),
        *("--workflow-profile", f"{REPOSITORY}/profiles/default", "--cores", "1"),
        *("--config", 'preset= "smoke" ', "--", "fedosd_table8"),
    ]
    assert command_line.main(["unlock", "TARGETS=fedosd_table8"]) == 3
    usual = ["--workflow-profile", f"{REPOSITORY}/profiles/default", "--cores", "all"]
    assert called[1][-5:] == [*usual, "--unlock"]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    command_line.main(["reproduce", "PROFILE=slurm", "CORES=1"])  # all cores of a login node
    assert called[2][-2:] == ["--workflow-profile", f"{REPOSITORY}/profiles/slurm"]
    command_line.main(["reproduce", "PROFILE=", "PRESET=", "TARGETS="])  # as make takes them
    assert called[3][-4:] == usual
    for value in WILD:
        given = dict.fromkeys((*MAKE_VARIABLES, "TARGETS"), value)
        command_line.main(["reproduce", *(f"{name}={text}" for name, text in given.items())])
        words = called[-1][called[-1].index("--config") + 1 :]
        assert words[3:] == ["--", *value.split()] * bool(value.split())
        assert parse_config(words[:3]) == dict.fromkeys(MAKE_VARIABLES.values(), value)


CHILD = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1)  # as Snakemake, which ends its jobs
    print("ended", flush=True)
    sys.exit(1)
"""


@pytest.mark.parametrize(("group", "number", "code"), [(True, signal.SIGINT, 130), (False, signal.SIGTERM, 1)])
def test_an_interrupt_lets_snakemake_end(group: bool, number: signal.Signals, code: int) -> None:
    parent = (
        "import sys; from fu.__main__ import exit_code_of; sys.exit(exit_code_of([sys.executable, '-c', sys.argv[1]]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", parent, CHILD],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # also where `&` began it
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    (os.killpg if group else os.kill)(process.pid, number)
    assert process.communicate(timeout=60) == ("ended\n", "")
    assert process.returncode == code


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "usage: python -m fu COMMAND [VARIABLE=value ...], with COMMAND one of reproduce, "),
        (["plan", "TARGET=a"], "there is no variable 'TARGET'; did you mean 'TARGETS'?"),
        (
            ["reproduce", "fedosd_table8"],
            "expected VARIABLE=value, got 'fedosd_table8'; tables and figures ",
        ),
        *(
            (["reproduce", f"CORES={one}"], f"CORES: must be 'all' or a positive integer, got '{one}'.")
            for one in ("", "0", "2 3")
        ),
        (["reproduce", "PROFILE=slrm"], "PROFILE: there is no profile 'slrm'; allowed: default, slurm, "),
    ],
)
def test_a_misspelt_command_or_variable_gets_one_sentence(arguments: list[str], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        command_line.main(arguments)
    assert str(caught.value).startswith(sentence)


def test_a_profile_without_its_plug_in_gets_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "snakemake")
    with pytest.raises(UserError, match=r"^PROFILE: slurm needs Snakemake's plug-in for Slurm: in a clone of fu, "):
        command_line.main(["reproduce", "PROFILE=slurm"])


def test_nothing_is_unlocked_where_a_run_is_active(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_line, "report", lambda command, given: 7)
    monkeypatch.setattr(command_line, "exit_code_of", lambda command: pytest.fail("unlocked"))
    assert command_line.main(["unlock"]) == 7


def test_an_error_has_the_exit_code_that_make_gives_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["compare", "A=nowhere", "B=nowhere"]) == 2
    assert command_line.main(["verify", "BUNDLE=nowhere.zip"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "error: nowhere.zip: there is no such file."


def test_an_installed_fu_has_commands_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "run `make reproduce TARGETS=x`, as make does; `make test`"
    monkeypatch.chdir(REPOSITORY)
    assert worded(text) == text
    monkeypatch.chdir(tmp_path)  # also with a clone's environment: its Makefile is elsewhere
    assert worded(text) == "run `python -m fu reproduce TARGETS=x`, as make does; `make test`"


def test_it_works_in_an_empty_folder(tmp_path: Path) -> None:
    status, output = process(tmp_path, "fu", "plan", "TARGETS=fedosd_table8")
    assert status == 0, output
    assert "fedosd_table8" in output
