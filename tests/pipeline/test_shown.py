"""What the plan tells an artefact: on which data, who retrains, what stands in parentheses."""

import pytest

from fu.artefacts.entry import Entry
from fu.pipeline.plan import Plan
from fu.pipeline.stages import publish
from tests.pipeline.plans import made, plan


def entry(planned: Plan, artefact: str) -> Entry:
    found = planned.job("publish", {"paper": "fedosd", "artefact": artefact}).spec
    assert isinstance(found, publish.Spec)
    return found


@pytest.mark.parametrize(
    ("preset", "labels"),
    [
        ("smoke", ["MNIST, Pat-50 [on digits]", "CIFAR-100, Pat-50 [on digits rgb]"]),
        ("reduced", ["MNIST, Pat-50", "CIFAR-100, Pat-50"]),
    ],
)
def test_scenarios_name_the_data_that_stand_for_the_papers(preset: str, labels: list[str]) -> None:
    shown = [entry(made(preset), "fig7").scenarios[k] for k in (0, 3)]
    assert [scenario.label for scenario in shown] == labels
    replaced = preset == "smoke"
    assert [scenario.replaces for scenario in shown] == (["MNIST", "CIFAR100"] if replaced else [None, None])
    assert [scenario.data for scenario in shown] == (["digits", "digits rgb"] if replaced else ["MNIST", "CIFAR100"])
    assert entry(made(preset), "table1").compares is not replaced


def test_a_scenario_whose_data_are_not_replaced_keeps_its_name() -> None:
    planned = plan("smoke", scenarios={"mnist-iid": {"settings": {"data": {"dataset": "digits"}}}})
    assert [scenario.replaces for scenario in entry(planned, "table8").scenarios] == [None, None, None]
    assert [scenario.replaces for scenario in entry(planned, "table1").scenarios].count(None) == 0


def test_a_table_knows_who_retrains_what_stands_in_parentheses_and_its_note() -> None:
    shown = entry(made("reduced"), "table8")
    assert [method.name for method in shown.methods if method.retrains] == ["retraining"]
    assert [metric.name for metric in shown.spreads] == ["r_acc_std"]
    assert shown.note.startswith("The paper contradicts itself: FUPGA")
    assert entry(made("reduced"), "table6").note == ""


def test_a_scenario_knows_how_many_requests_come_in_a_row() -> None:
    asked = {"data": {"attack": None, "forget": {"clients": 1, "requests": 2}}, "unlearning": {"rounds": 4}}
    planned = plan(
        "smoke",
        scenarios={"stream": {"label": "Stream", "base": "mnist-iid", "settings": asked}},
        artefacts={
            "fig5": {"scenarios": ["stream"], "methods": ["retraining"], "metrics": ["r_acc"], "from_training": True}
        },
    )
    [shown] = entry(planned, "fig5").scenarios
    trained, after = shown.rounds
    assert after
    assert (shown.requests, shown.request_rounds) == (2, [trained, trained + after // 2])
    assert entry(made("smoke"), "fig5").scenarios[0].requests == 1
