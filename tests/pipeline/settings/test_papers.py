"""Papers, presets and overrides laid over each other: what none of them can be is told in one sentence."""

import re
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan import Plan
from tests.mistakes import has, sentence
from tests.pipeline.configs import config

CONFIGS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a paper's override as a number": (
        config(overrides={"fedosd": 5}),
        ("config: overrides.fedosd: must be a mapping of keys to values, got int",),
    ),
    "override of an unknown paper": (
        config(overrides={"fedsod": {}}),
        ("config: overrides: there is no paper 'fedsod'", "did you mean 'fedosd'?", "allowed: fedosd"),
    ),
    "unknown paper": (
        config(papers=["fedsod"]),
        ("config: paper: there is no paper 'fedsod'", "did you mean 'fedosd'?", "allowed: fedosd"),
    ),
    "unknown preset": (
        config(preset="smok"),
        ("config: preset: there is no preset 'smok'", "did you mean 'smoke'?", "allowed: paper, reduced, smoke"),
    ),
}


@pytest.mark.parametrize(("values", "words"), CONFIGS.values(), ids=CONFIGS)
def test_what_cannot_be_laid_over_a_paper_is_told_in_one_sentence(
    values: dict[str, Any], words: tuple[str, ...]
) -> None:
    has(sentence(lambda: Plan(values)), *words)


def replaced(path: Path, pattern: str, new: str) -> None:
    text, number = re.subn(pattern, lambda _: new, path.read_text(), count=1, flags=re.M)
    assert number == 1, f"{pattern} is not in {path.name}"
    path.write_text(text)


PAPERS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "two scenarios of one name": (
        r"^  mnist-iid:$",
        "  mnist-pat20:",
        ("fedosd.yaml: line", "'mnist-pat20' is named twice; names must differ"),
    ),
    "a value without a source": (
        r"^    rounds: \{value: 2000, source: [^}]*\}$",
        "    rounds: 2000",
        ("fedosd.yaml: settings.training.rounds: has no source", "write {value: ..., source: ...}"),
    ),
    "a value whose source says nothing": (
        r"^    rounds: \{value: 2000, source: [^}]*\}$",
        '    rounds: {value: 2000, source: " "}',
        ("fedosd.yaml: settings.training.rounds: has no source", "write {value: ..., source: ...}"),
    ),
    "a method's value without a source": (
        r"^    params: \{direction: \{value: as-published-code, source: [^}]*\}\}$",
        "    params: {direction: {value: as-published-code}}",
        ("fedosd.yaml: methods.fedosd.as-published-code.params.direction", "has no source"),
    ),
    "a grid without a source": (
        r"^  grid: \{unlearning.lr: .*$",
        "  grid: {unlearning.lr: [0.005, 0.025]}",
        ("fedosd.yaml: settings.grid.unlearning.lr: has no source", "write {value: ..., source: ...}"),
    ),
    "a scenario's value without a source": (
        r"^      data: \{clients: \{value: 20, source: [^}]*\}\}$",
        "      data: {clients: 20}",
        ("fedosd.yaml: scenarios.cifar10-pat50-m20.settings.data.clients: has no source",),
    ),
    "a bracket left open": (
        r"^title: .*$",
        "title: [x",
        ("fedosd.yaml: line", "is no valid YAML"),
    ),
    "a Python object": (
        r"^title: .*$",
        "title: !!python/object:os.system {}",
        ("fedosd.yaml: line 2: 'python/object:os.system' is no kind of value here",),
    ),
    "scenarios as a list": (
        r"^scenarios:$",
        "scenarios: [a]\nlabels:",
        ("fedosd.yaml: scenarios: Input should be a valid dictionary, got ['a']",),
    ),
    "a number as key": (
        r"^title: .*$",
        "title: x\n5: y",
        ("fedosd.yaml: line 3: a key must be text; put 5 in quotes",),
    ),
}


@pytest.mark.parametrize(("pattern", "new", "words"), PAPERS.values(), ids=PAPERS)
def test_a_malformed_paper_is_told_in_one_sentence(
    workflow: Path, pattern: str, new: str, words: tuple[str, ...]
) -> None:
    replaced(workflow / "papers" / "fedosd.yaml", pattern, new)
    has(sentence(lambda: Plan(config(preset="paper"))), *words)  # nothing is laid over it


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ("fedosd.yaml: must be a mapping of keys to values",)),
        (b"[1]", ("fedosd.yaml: must be a mapping of keys to values",)),
        (b"title: \xff", ("fedosd.yaml: is no valid YAML (not UTF-8)",)),
    ],
    ids=["empty", "a list", "not UTF-8"],
)
def test_a_file_that_is_no_paper_is_told_in_one_sentence(
    workflow: Path, content: bytes, words: tuple[str, ...]
) -> None:
    (workflow / "papers" / "fedosd.yaml").write_bytes(content)
    has(sentence(lambda: Plan(config())), *words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1]", ("mine.yaml: must be a mapping of keys to values, got list",)),
        ("seeds: [0]", ("mine.yaml: description: is missing",)),
        ("descripton: x\ndescription: y", ("mine.yaml: descripton: unknown key", "did you mean 'description'?")),
        (
            "description: x\npapers: {fedods: {}}",
            ("mine.yaml: papers: there is no paper 'fedods'", "did you mean 'fedosd'?", "allowed: fedosd"),
        ),
        (
            "description: x\nreplace_datasets: {mnits: digits}",
            ("mine.yaml: replace_datasets: unknown data set 'mnits'", "did you mean 'mnist'?"),
        ),
        (
            "description: x\nreplace_datasets: {mnist: digit}",
            ("mine.yaml: replace_datasets: unknown data set 'digit'", "did you mean 'digits'?"),
        ),
    ],
    ids=["a list", "no description", "unknown key", "unknown paper", "unknown data set", "unknown replacement"],
)
def test_a_malformed_preset_is_told_in_one_sentence(workflow: Path, content: str, words: tuple[str, ...]) -> None:
    (workflow / "presets" / "mine.yaml").write_text(content)
    has(sentence(lambda: Plan(config(preset="mine"))), *words)
