"""docs/config.md: every record, the type of every key, and examples that work."""

import re
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from pydantic import BaseModel, Field, create_model

from fu.data.forget import Forget
from fu.pipeline.documents import reference
from fu.pipeline.plan.plan import Plan
from fu.pipeline.settings import records
from fu.pipeline.settings.types import GridKey, Names, Seeds
from fu.types import Count, Name, Rate, Share, Strict
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


def test_no_key_is_without_a_type() -> None:
    rows = [line.split(" | ") for line in reference.text().splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    assert {kind for _, kind, *_ in rows if kind in ("", "any", "see text")} == set()


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (Count, "integer > 0"),
        (Annotated[float, Field(gt=0, le=1)], "number > 0 and ≤ 1"),
        (Name, "name"),
        (Names, "list of names"),
        (Seeds | None, "list of integers ≥ 0 or null"),
        (dict[GridKey, list[float | int | str]], "mapping of names to list of numbers or text"),
        (tuple[float, Rate], "list: number, number > 0"),
        (Forget, "[Forget](#settingsdataforget)"),
    ],
)
def test_a_type_is_said_in_words(annotation: Any, kind: str) -> None:
    record: type[BaseModel] = create_model("Record", key=(annotation, ...))
    assert reference.kind(record.model_json_schema()["properties"]["key"]) == kind


@pytest.mark.parametrize("record", [records.Training, records.Unlearning, records.Recovery])
def test_what_the_phase_before_fills_in_may_be_null(record: type[BaseModel]) -> None:
    kinds = dict(re.findall(r"^\| `(lr|rounds)` \| (.*?) \|", reference.table(record), re.M))
    null = "" if record is records.Training else " or null"
    assert kinds.items() <= {"lr": f"number > 0{null}", "rounds": f"integer > 0{null}"}.items()
    assert "lr" in kinds


def test_a_table_has_defaults_by_the_name_that_a_person_writes() -> None:
    class Params(BaseModel):
        lambda_: float = Field(0.95, ge=0, alias="lambda", description="a|b")
        share: Share = Field(gt=0, lt=1, description="needed")

    assert reference.table(Params).splitlines()[2:] == [
        r"| `lambda` | number ≥ 0 | `0.95` | a\|b |",
        "| `share` | number > 0 and < 1 | required | needed |",
    ]


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
