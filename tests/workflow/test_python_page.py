"""docs/python.md, run word by word."""

import inspect
import re
import subprocess
import sys

import pytest

from fu import results
from tests.workflow.project import REPOSITORY, Project

pytestmark = pytest.mark.whole

PAGE = (REPOSITORY / "docs/python.md").read_text()
READING, MODEL, FEDERATION = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def test_the_code_of_the_page_prints_what_it_says(
    some: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(some.root)
    names: dict[str, object] = {}
    exec(READING, names)
    printed = capsys.readouterr().out
    assert re.search(r"fmnist-pat50 +ascent +NaN +0\.\d+ +0\.\d+\n +finetuning +NaN +NaN +0\.\d+\n", printed)
    assert re.search(r"\n +original +0\.\d+ +NaN +NaN\n +sfu +NaN +0\.\d+ +0\.\d+", printed)
    assert re.search(r"fmnist-pat20 +original +original +asr +0\.\d+", printed)
    assert re.search(r"^0 +NaN +0\.\d+ ", printed, re.M)
    exec(MODEL, names)
    accuracy = re.fullmatch(r"tensor\((.*)\)\n", capsys.readouterr().out)
    assert accuracy
    assert 0.5 < float(accuracy[1]) <= 1


def test_the_federation_of_the_page_prints_what_it_says_without_a_pipeline() -> None:
    assert len([line for line in FEDERATION.splitlines() if line]) <= 30
    guard = "\nimport sys\nassert not [name for name in sys.modules if name.startswith(('fu.pipeline', 'snakemake'))]\n"
    command = [sys.executable, "-c", FEDERATION + guard]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    roles = {
        role: [float(word) for word in words.split()]
        for role, words in re.findall(r"^(\w+)((?: \d\.\d+)+)$", done.stdout, re.M)
    }
    assert [*roles] == ["original", "unlearned", "recovered"]
    (known, *before), (forgotten, *_), (still, *after) = roles.values()
    assert known > 0.7
    assert forgotten == still == 0
    assert all(now > then - 0.05 for then, now in zip(before, after, strict=True))
    (position, found) = re.findall(r"line_position +(\S+) +(\w+) +True", done.stdout)[0]
    assert 0 < float(position) < 1
    assert found == "True"


def test_the_page_names_the_functions_with_their_arguments_and_all_columns(some: Project) -> None:
    called = dict(re.findall(r"^\| `(\w+)\((.*?)\)` \|", PAGE, re.M))
    assert sorted(called) == sorted(results.__all__)
    for function, given in called.items():
        words = re.findall(r"\w+", given.replace("name", "artefact"))
        assert {*words, "root"} == {*inspect.signature(getattr(results, function)).parameters}
    (table,) = re.findall(r"\| column \| \|\n(.*?)\n\n", PAGE, re.S)
    named = {word for row in table.splitlines() for word in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert {*results.evaluations("smoke", paper="safari", root=some.root / "results")} <= named
