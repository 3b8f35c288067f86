"""Containers, read without building one: docs/container.md says how each was tried."""

import re
import tomllib

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from fu.pipeline.provenance.digest import ROOT


def pins(file: str) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==([^\s\\]+)", (ROOT / "envs" / file).read_text(), re.M)
    return {canonicalize_name(name): version for name, version in found}


@pytest.mark.parametrize("file", ["Dockerfile", "apptainer.def"])
def test_an_image_installs_the_lock_under_a_python_that_the_project_admits(file: str) -> None:
    text = (ROOT / file).read_text()
    (python,) = re.findall(r"python:(\d+\.\d+)-slim", text)
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert SpecifierSet(asked).contains(python)
    installed = re.findall(r"pip install .*?([^ ]+ [^ ]+)(?: \\)?$", text, re.M)
    assert installed == ["-r envs/hashes.txt", "-r envs/lock.txt", "--editable ."]
    assert "--no-deps --require-hashes -r envs/hashes.txt" in text


def test_apptainer_copies_what_is_there() -> None:
    copied = re.findall(r"^    (\S+) /fu/$", (ROOT / "apptainer.def").read_text(), re.M)
    assert {"Makefile", "Snakefile", "config.yaml", "envs", "fu", "profiles", "workflow"} <= {*copied}
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_all_pins_but_that_of_torch_have_hashes() -> None:
    assert pins("hashes.txt") == {name: version for name, version in pins("lock.txt").items() if name != "torch"}
    for block in re.split(r"\n(?=\S)", (ROOT / "envs/hashes.txt").read_text().strip()):
        assert re.fullmatch(r"\S+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+", block), block
