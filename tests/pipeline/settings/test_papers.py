"""Papers, presets and overrides laid over each other: what none of them can be is told in one sentence."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.settings.papers import configured, read_yaml
from tests.mistakes import contents, has, process, sentence
from tests.pipeline.configs import config, toy

LAID: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
    (config(overrides={"toy": 5}), "", ("config.yaml: overrides.toy: must be a mapping (key: value), got int",)),
    (config(overrides={"fedsod": {}}), "",
     ("config.yaml: overrides: there is no paper 'fedsod'", "did you mean 'fedosd'?", "allowed: audit, fats, fedosd")),
    (config(papers=["fedsod"]), "", ("config: paper: there is no paper 'fedsod'", "did you mean 'fedosd'?")),
    (config(preset="smok"), "", ("config: preset: there is no preset 'smok'", "did you mean 'smoke'?")),
    (config(preset="mine"), "seeds: [0]", ("mine.yaml: description: is missing",)),
    (config(preset="mine"), "description: x\npapers: {tooy: {}}",
     ("mine.yaml: papers: there is no paper 'tooy'", "did you mean 'toy'?")),
    (config(preset="mine"), "description: x\nreplace_datasets: {mnist: digit}",
     ("mine.yaml: replace_datasets: unknown data set 'digit'", "did you mean 'digits'?")),
]  # fmt: skip


@pytest.mark.parametrize(("values", "preset", "words"), LAID)
def test_what_cannot_be_laid_over_a_paper_is_told_in_one_sentence(
    own_toy: Path, values: dict[str, Any], preset: str, words: tuple[str, ...]
) -> None:
    (own_toy / "presets" / "mine.yaml").write_text(preset)
    has(sentence(lambda: Plan(values)), *words)


# ---- YAML that is no mapping of plain values ---------------------------------------------------------------------

YAMLS: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("# only a comment", "must be a mapping (key: value), got nothing."),
    "a key twice": ("a: [{b: 1,\n  b: 2}]", "line 2: duplicate key 'b'."),
    "a number as key": ("a:\n  5: 1", "line 2: keys must be text; put 5 in quotes."),
    "a list as key": ("? [1]\n: 2", "line 1: keys must be text."),
    "a word that says it is a number": (
        "a: !!int x",
        "is not valid YAML (invalid literal for int() with base 10: 'x').",
    ),
    "a Python object": (
        "a: !!python/object:os.system {}",
        "line 1: is not valid YAML (could not determine a constructor for",
    ),
    "not UTF-8": (b"a: \xff", "is not valid YAML (not UTF-8)."),
}


@pytest.mark.parametrize(("content", "words"), YAMLS.values(), ids=YAMLS)
def test_yaml_that_is_no_mapping_of_names_is_told_in_one_sentence(
    tmp_path: Path, content: str | bytes, words: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    has(sentence(lambda: read_yaml(path)), "mine.yaml: ", words)


def test_a_file_that_cannot_be_read_is_told_in_one_sentence(tmp_path: Path) -> None:
    has(sentence(lambda: read_yaml(tmp_path / "mine.yaml")), "mine.yaml: cannot be read (No such file or directory).")
    has(sentence(lambda: read_yaml(tmp_path)), f"{tmp_path.name}: cannot be read (Is a directory).")


def test_aliases_and_merges_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("x: &x {a: 1, b: [&y c, 1.0e-3]}\nz: {<<: *x, a: *y}")
    assert read_yaml(path) == {"x": {"a": 1, "b": ["c", 0.001]}, "z": {"a": "c", "b": ["c", 0.001]}}


def test_snakemake_ends_with_one_sentence_on_a_malformed_config(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("papers: [toy]\npapers: [mine]")
    before = contents(tmp_path)
    status, output = process(tmp_path, "snakemake", "-n", "--quiet", "all", "--snakefile", str(ROOT / "Snakefile"))
    assert status == 1
    assert "Traceback" not in output
    assert "error: config.yaml: line 2: duplicate key 'papers'." in output.splitlines()
    assert contents(tmp_path) == before


# ---- names of targets --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "extra", "words"),
    [
        ("all", {}, "all.yaml: 'all' is already the name of a rule; choose another name."),
        ("logs", {}, "logs.yaml: 'logs' is already the name of a folder of results"),
        ("toy_numbers", {}, "toy_numbers.yaml: 'toy_numbers' is already the name of toy.yaml: artefacts.numbers"),
        ("toy_a", {"a_bars": {"kind": "losses", "title": "x", "caption": "y"}},
         "toy_a.yaml: artefacts.bars: 'toy_a_bars' is already the name of config.yaml: overrides.toy: artefacts"),
    ],
)  # fmt: skip
def test_two_targets_of_one_name_are_told_in_one_sentence(
    own_toy: Path, name: str, extra: dict[str, Any], words: str
) -> None:
    shutil.copy(own_toy / "papers" / "toy.yaml", own_toy / "papers" / f"{name}.yaml")
    shutil.copytree(own_toy / "published" / "toy", own_toy / "published" / name)
    has(sentence(lambda: Plan({**toy(artefacts=extra), "papers": ["toy", name]})), words)


# ---- who is wrong ------------------------------------------------------------------------------------------------


LOS = "{methods: {fedosd: {params: {los: 1}}}}"


@pytest.mark.parametrize(
    ("preset", "overrides", "words"),
    [
        ("{titel: x}", {}, "mine.yaml: papers.toy: titel: unknown key"),
        ("5", {}, "mine.yaml: papers"),
        (LOS, {}, "mine.yaml: papers.toy: method fedosd: params.los: unknown key; did you mean 'loss'?"),
        ("{title: x}", {"methods": {"fedosd": {"params": {"los": 1}}}}, "config.yaml: overrides.toy: method fedosd: "),
        ("{}", {"methods": {"fedsod": {"settings": {}}}},
         "config.yaml: overrides.toy: methods.fedsod: a new method needs label (did you mean 'fedosd'?)."),
        ("{}", {"scenarios": {"xyz": {"base": "iid"}}},
         "config.yaml: overrides.toy: scenarios.xyz: a new scenario needs label."),
    ],
)  # fmt: skip
def test_the_layer_that_is_wrong_is_named(own_toy: Path, preset: str, overrides: dict[str, Any], words: str) -> None:
    (own_toy / "presets" / "mine.yaml").write_text(f"description: x\npapers: {{toy: {preset}}}")
    has(sentence(lambda: Plan({**toy(**overrides), "preset": "mine"})), words)


def test_the_paper_is_named_where_it_is_wrong_itself(own_toy: Path) -> None:
    paper = own_toy / "papers" / "toy.yaml"
    text = paper.read_text()
    assert text.count("plugin: fupga\n") == 1
    paper.write_text(text.replace("plugin: fupga\n", "plugin: fupga\n    params: {los: {value: 1, source: Table 1}}\n"))
    (own_toy / "presets" / "mine.yaml").write_text("description: x\npapers: {toy: {title: other}}")
    told = sentence(lambda: Plan({**toy(title="another"), "preset": "mine"}))
    assert told.startswith("toy.yaml: method fupga: params.los: unknown key")


def test_a_value_that_is_right_for_the_replaced_data_set_alone_is_the_override_s(own_toy: Path) -> None:
    (own_toy / "presets" / "mine.yaml").write_text("description: x\nreplace_datasets: {mnist: digits}")
    given = {**toy(settings={"data": {"dataset": "mnist", "samples": 1800}}), "preset": "mine"}
    has(
        sentence(lambda: Plan(given)),
        "config.yaml: overrides.toy: scenario ",
        "1800 exceeds the 1797 samples of digits",
    )


@pytest.mark.parametrize("text", ["fats,safari", "fats, safari", "fats safari", " fats  safari "])
def test_names_on_the_command_line_may_have_commas_or_spaces_between_them(text: str) -> None:
    assert configured({"preset": "smoke", "papers": text}).papers == ["fats", "safari"]
