"""No command of a job is too long for a shell: where it would be, the arguments stand in a file."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fu.pipeline.plan import commands
from fu.pipeline.plan.commands import LONGEST
from fu.pipeline.provenance.digest import ROOT
from tests.mistakes import contents, has, process, sentence
from tests.pipeline.plans import made


def run(folder: Path, command: str) -> str:
    """Run a command in a folder, in a shell, as a person or a rule does; return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    shell = ["bash", "-c", command]
    return subprocess.check_output(shell, cwd=folder, env=environment, stderr=subprocess.STDOUT, text=True)


@pytest.mark.whole
@pytest.mark.parametrize("preset", ["reduced", "paper"])
def test_no_command_of_a_large_plan_is_too_long_for_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, preset: str
) -> None:
    monkeypatch.chdir(tmp_path)
    planned, inside = made(preset), set[str]()
    for paper, artefact in planned.artefacts:  # theirs are the longest
        job = planned.job("publish", {"paper": paper, "artefact": artefact})
        words = commands.words(planned, job, 1)
        for command in (commands.complete(planned, job, "python"), commands.served("python", [*words, "--code", "0"])):
            assert len(command.encode()) <= 100_000
            *before, last = shlex.split(command)
            if last.startswith("@"):
                assert before == ["python", "-m", commands.SERVER, words[0]]
                assert Path(last[1:]).read_text().split("\0")[: len(words) - 1] == words[1:]
                inside.add(artefact)
    assert "overall" in inside  # else this shows nothing


def test_a_job_whose_arguments_stand_in_a_file_makes_what_it_makes_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = made("smoke")
    job, (short, long) = planned.job("data", {"dataset": "digits"}), (tmp_path / name for name in ("short", "long"))
    for folder, longest in ((short, LONGEST), (long, 0)):
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setattr(commands, "LONGEST", longest)
        command = commands.complete(planned, job, sys.executable)
        assert (" @.snakemake/commands/" in command) == (folder == long)
        run(folder, command)
    assert contents(long) == contents(short)
    assert Path(job.certificate).exists()
    served = commands.served(sys.executable, [*commands.words(planned, job, 1), "--unless-made"])
    assert run(long, served) == "data: already made from the same inputs; nothing to do.\n"


def test_lost_or_unwritable_arguments_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, told = process(tmp_path, commands.SERVER, "fu.pipeline.stages.data", "@.snakemake/commands/0")
    words = "error: .snakemake/commands/0: the job's arguments cannot be read: No such file or directory; "
    assert (status, told) == (1, f"{words}start the run again.\n")
    (tmp_path / ".snakemake").touch()
    monkeypatch.chdir(tmp_path)
    told = sentence(lambda: commands.served("python", ["module", "x" * LONGEST]))
    has(told, ".snakemake/commands/", ": the arguments of a job cannot be written: ")
