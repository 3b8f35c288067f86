"""What GitHub runs is what there is: .ci/run on every Python that fu admits, and all other parts of `make test-all`."""

import tomllib

import yaml
from packaging.specifiers import SpecifierSet

from fu.pipeline.provenance.digest import ROOT
from tests.all.__main__ import PARTS

JOBS = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]


def test_ci_runs_on_every_python_that_is_admitted() -> None:
    admits = SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])
    versions = [f"3.{minor}" for minor in range(40)]
    assert JOBS["ci"]["strategy"]["matrix"]["python"] == [one for one in versions if admits.contains(f"{one}.9")]
    assert JOBS["ci"]["steps"][-1] == {"run": ".ci/run"}


def test_ci_and_the_weekly_jobs_run_every_part_of_test_all() -> None:
    in_ci = [line for line in (ROOT / ".ci/run").read_text().splitlines() if line.startswith("make ")]
    done = [part for part, command in PARTS.items() if " ".join(command) in in_ci]
    assert done == ["test", "smoke"]
    groups = dict.fromkeys(part.partition("/")[0] for part in PARTS)
    assert JOBS["everything"]["strategy"]["matrix"]["part"] == [part for part in groups if part not in done]


def test_forms_for_issues_have_fields_with_names_of_their_own() -> None:
    for form in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*")):  # but config.yml
        fields = [field["id"] for field in yaml.safe_load(form.read_text())["body"] if field["type"] != "markdown"]
        assert len({*fields}) == len(fields) > 2
