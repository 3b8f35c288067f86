"""docs/config.md: every record and key is in it, and its examples work; `tests/test_docs.py` has the whole page."""

import re
from pathlib import Path

import pytest
import yaml

from fu.pipeline.documents import reference
from fu.pipeline.plan.plan import Plan
from fu.pipeline.settings import records
from fu.types import Strict
from tests.pipeline.plans import made

EXAMPLES = dict(re.findall(r"^## (.*)\n(?:(?!## ).*\n)*?```yaml\n((?:.*\n)*?)```", reference.text(), re.M))
(PRESET,) = [title for title in EXAMPLES if title.startswith("A preset")]


def test_every_record_has_a_section_and_every_key_a_description() -> None:
    found = {name for name, record in vars(records).items() if isinstance(record, type) and issubclass(record, Strict)}
    shown = {*reference.SECTIONS.values()}
    assert re.findall("^## (.*)", reference.text(), re.M) == [*reference.SECTIONS]
    assert found - {record.__name__ for record in shown} == {"Strict", "Phase", "Algorithm"}
    for record in shown:
        assert [name for name, field in record.model_fields.items() if not field.description] == []


def planned(example: str) -> Plan:
    given = yaml.safe_load(example)
    plan = Plan({"preset": "smoke", "papers": [*given.get("overrides", {"fedosd": None})], **given})
    assert list(plan.jobs())
    return plan


@pytest.mark.parametrize("title", [title for title in EXAMPLES if title != PRESET])
def test_an_example_is_planned_and_sets_something(title: str) -> None:
    plan = planned(EXAMPLES[title])
    usual = made("smoke", *plan.config.papers)
    assert {job.json for job in plan.jobs()} != {job.json for job in usual.jobs()}


def test_the_example_of_a_preset_is_planned(workflow: Path) -> None:
    (workflow / "presets/mine.yaml").write_text(EXAMPLES[PRESET])
    plan = planned("preset: mine")
    assert plan.seeds("fedosd") == [0, 1]
    assert plan.trials["fedosd/mnist-pat50", "original"].settings.training.rounds == 10
