"""What `make contract` says of plug-ins of one's own, line by line; where its rules stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fu.pipeline.provenance.catalogue import KINDS
from fu.pipeline.provenance.digest import ROOT
from tests.contract import rules, test_documentation, test_evaluation

GOOD = '''"""Turned: the updates the other way round. A test."""

from pydantic import BaseModel


class Params(BaseModel, extra="forbid"):
    """None."""


def project(task, p, theta, delta):
    """Return them."""
    return -delta
'''
BAD = GOOD.replace("return -delta", "return delta.neg_()")
METHOD = '''"""Mine: a step of its own, stores nothing and communicates nothing. A test."""

from pydantic import BaseModel

from fu.federation.task import State

needs = set()


class Params(BaseModel, extra="forbid"):
    """None."""


def start(task, p):
    """Begin at the original model."""
    return State(task.original)


def step(task, p, state, round):
    """Take one step."""
    data = task.federation.data
    return {returned}
'''


def contract(folder: Path) -> tuple[int, list[str]]:
    """Return the status and the lines of the command behind `make contract`."""
    (options,) = re.findall(r"-m pytest (-qq.*?tests/contract)\n", (ROOT / "Makefile").read_text(), re.S)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options.replace("\\\n", " ").split()],
        cwd=ROOT,
        env={"PATH": "", "FU_PLUGINS": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


def put(folder: Path, **files: str) -> Path:
    """Write projections into a folder."""
    for name, text in files.items():
        (folder / "projections").mkdir(exist_ok=True)
        (folder / f"projections/{name}.py").write_text(text)
    return folder


@pytest.mark.whole
def test_every_plugin_has_a_line_with_what_it_is_and_the_rules_that_it_breaks(tmp_path: Path) -> None:
    unreadable, half = "x = (\n", '"""Half."""\n\nclass Params:\n    pass\n'
    crash = GOOD.replace("return -delta", "return delta / (1 // 0)")
    helper = '"""Help."""\nx = 1\n'
    folder = put(tmp_path, good=GOOD, bad=BAD, unreadable=unreadable, half=half, helper=helper, crash=crash)
    (folder / "methods").mkdir()
    for name, returned in {
        "stays": "state.theta",
        "reads": "State(state.theta + 0.1 * data.clean(data.partition.train[0])[0].mean())",
        "cheats": "State(state.theta + 0.1 * data.x.mean())",
        "asks": 'State(state.theta + 0.1 * data.held_out(0, "test")[0].mean())',
    }.items():
        (folder / f"methods/{name}.py").write_text(METHOD.replace("{returned}", returned))
    status, lines = contract(folder)
    end = lines.index("2 of 9 plug-ins passed; the rules: docs/contract.md")
    about = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[:end] if line.startswith("projections/")}
    assert about == {
        "projections/helper.py": "Help no plug-in: defines none of project, Params",
        "projections/good.py": "Turned: the updates the other way round passed",
        "projections/bad.py": "Turned: the updates the other way round breaks 1 rule",
        "projections/unreadable.py": "breaks 1 rule",
        "projections/half.py": "Half breaks 1 rule",
        "projections/crash.py": "Turned: the updates the other way round breaks 1 rule",
    }
    (bad,) = rules.rules()["projections"][-1:]
    broken = sorted(lines[end + 1 : -1])
    assert [line for line in broken if line.startswith("projections/")] == [
        f"projections/bad.py breaks: {bad}",
        "projections/crash.py breaks: line 12 raises ZeroDivisionError: integer division or modulo by zero",
        f"projections/half.py breaks: {folder}/projections/half.py: lacks project; a plug-in of projections defines "
        "project, Params",
        f"projections/unreadable.py breaks: {folder}/projections/unreadable.py: line 1: '(' was never closed",
    ]
    returns, *_ = (line for line in broken if line.startswith("methods/stays.py"))
    assert f"{folder}/methods/stays.py: line 19: step must return a State, whose 'theta' is the model " in returns
    asks, cheats = (
        line for line in broken if line.startswith(("methods/reads.py", "methods/cheats.py", "methods/asks.py"))
    )
    assert asks.startswith("methods/asks.py breaks: ClientData: methods and trainings get no test or held-out samples")
    (unread,) = (rule for rule in rules.rules()["methods"] if "no test or held-out sample" in rule)
    assert cheats == f"methods/cheats.py breaks: {unread[0].lower()}{unread[1:]}"
    assert status == 1
    assert lines[-1] == "Tracebacks: .pytest_cache/contract.txt"
    text = (ROOT / ".pytest_cache/contract.txt").read_text()
    assert "projections/bad.py" in (tracebacks := re.findall(r"^(\S+) breaks: ", text, re.M))
    assert not {"projections/half.py", "projections/unreadable.py"} & {*tracebacks}
    assert re.search(r"tests/contract/test_projections.py:\d+: in test_a_projection", text)
    assert not re.search(r"^(_+ test_|=+ FAILURES)", "\n".join(lines), re.M)


def test_a_folder_that_is_not_there_is_refused_in_one_sentence(tmp_path: Path) -> None:
    status, lines = contract(tmp_path / "nowhere")
    assert status == pytest.ExitCode.USAGE_ERROR
    assert [*filter(None, lines)] == [f"ERROR: PLUGINS: there is no folder '{tmp_path}/nowhere'."]


def test_the_page_of_the_rules_is_current() -> None:
    """`make docs` renews it."""
    assert rules.PAGE.read_text() == rules.page()


def test_a_rule_is_the_docstring_of_a_test_and_stands_under_its_kinds() -> None:
    used, documented = test_documentation.test_a_plugin_can_be_used, test_evaluation.test_an_evaluator_knows_no_method
    assert rules.words(documented) == "The code names no method: an evaluator judges models, whichever method made them"
    assert rules.kinds_of(used) == list(KINDS)
    assert rules.kinds_of(documented) == ["evaluation"]
    assert rules.kinds_of(test_evaluation.test_some_evaluator_tells_each_bad_model) == []
    of = rules.rules()
    assert all(rules.words(used) in of[kind] for kind in KINDS)
    assert [kind for kind in KINDS if rules.words(documented) in of[kind]] == ["evaluation"]
