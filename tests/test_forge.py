"""What GitHub runs is what there is: .ci/run on every Python that fu admits, and all other parts of `make test-all`."""

import tomllib
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from fu.pipeline.provenance.digest import ROOT
from tests.all.__main__ import PARTS

FORGE = ROOT / ".github"
FORMS = sorted(path for path in (FORGE / "ISSUE_TEMPLATE").iterdir() if path.stem != "config")


@pytest.fixture
def jobs() -> dict[str, Any]:
    return dict(yaml.safe_load((FORGE / "workflows/ci.yml").read_text())["jobs"])


def test_ci_runs_on_every_python_that_is_admitted(jobs: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    admitted = [
        f"3.{minor}" for minor in range(40) if SpecifierSet(project["requires-python"]).contains(f"3.{minor}.9")
    ]
    assert jobs["ci"]["strategy"]["matrix"]["python"] == admitted
    assert jobs["ci"]["steps"][-1] == {"run": ".ci/run"}


def test_ci_and_the_weekly_jobs_run_every_part_of_test_all(jobs: dict[str, Any]) -> None:
    in_ci = [line for line in (ROOT / ".ci/run").read_text().splitlines() if line.startswith("make ")]
    done = [part for part, command in PARTS.items() if " ".join(command) in in_ci]
    assert done == ["test", "smoke"]
    groups = dict.fromkeys(part.partition("/")[0] for part in PARTS)
    assert jobs["everything"]["strategy"]["matrix"]["part"] == [part for part in groups if part not in done]


def test_issues_are_of_four_kinds_whose_fields_have_names_of_their_own() -> None:
    forms = [yaml.safe_load(path.read_text()) for path in FORMS]
    assert [form["name"] for form in forms] == ["Bug", "A method", "A number that does not come back", "A paper"]
    for form in forms:
        fields = [field["id"] for field in form["body"] if field["type"] != "markdown"]
        assert len({*fields}) == len(fields) > 2
