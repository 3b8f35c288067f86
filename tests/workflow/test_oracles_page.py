"""docs/oracles.md, followed word by word."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from fu.pipeline.oracles import card
from tests.pages import page
from tests.workflow.project import from_repository

PAGE = page("oracles")
MAKING, AUDITING = re.findall(r"```sh\n(.*?)\n```", PAGE, re.S)
LOADING, PREDICTING = re.findall(r"```python\n.*?```", PAGE, re.S)
PRINTED = re.findall(r"```text\n(.*?)```", PAGE, re.S)


def code(block: str) -> str:
    return block.removeprefix("```python\n").removesuffix("```")


def test_the_page_says_what_the_data_card_says() -> None:
    path = "results/smoke/oracles/audit/mnist-backdoor.zip"
    assert card.LOADING.format(name=path).strip() == LOADING
    assert PREDICTING in card.AUDITING.format(name=path)
    assert all(f"| {name} | {content} |\n" in PAGE for name, content in card.FILES.items())


def test_the_card_has_the_terms_of_the_page_on_data() -> None:
    (table,) = re.findall(r"\| data \| terms \|\n\|[-|]+\|\n(.*?)\n\n", page("data"), re.S)
    terms = {row.split(" | ")[0].strip("| "): row.split(" | ")[1].strip(" |") for row in table.splitlines()}
    named = {name: text for names, text in terms.items() for name in re.findall(r"`(\w+)`", names)}
    digits = dict.fromkeys((name for name in card.TERMS if name.startswith("digits")), terms["scikit-learn's digits"])
    assert named | digits == card.TERMS


@pytest.mark.whole
def test_the_commands_of_the_page_print_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = from_repository(tmp_path / "project")
    monkeypatch.chdir(project.root)
    done = project.make(*shlex.split(MAKING)[1:])
    assert done.returncode == 0, done.stdout
    assert PRINTED[0].splitlines()[-1] in done.stdout.splitlines()
    names: dict[str, object] = {}
    exec(code(LOADING) + code(PREDICTING), names)
    done = project.make(*shlex.split(AUDITING)[1:])
    assert done.returncode == 0, done.stdout

    def found(text: str) -> set[tuple[str, ...]]:
        """Return audit, metric and what is found, without the number, which another processor may change."""
        rows = (line.split() for line in text.splitlines() if re.match(r"\w+ +\w+_\w+ ", line))
        return {(audit, metric, *decided) for audit, metric, _, *decided in rows}

    assert len(found(PRINTED[1])) == 7
    assert found(PRINTED[1]) <= found(done.stdout)
    assert PRINTED[1].splitlines()[-1] in done.stdout.splitlines()
    again = project.make(*shlex.split(MAKING)[1:])
    assert "Nothing to be done" in again.stdout
    with np.load("mine.npz") as mine:
        assert {len(mine[name]) for name in mine if name != "digest"} == {8}
