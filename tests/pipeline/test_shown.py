"""What the plan tells an artefact: on which data, who retrains, what stands in parentheses."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fu.artefacts.entry import Entry
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.stages import publish
from tests.pipeline.configs import toy
from tests.pipeline.plans import PAPERS, made, plan


def entry(planned: Plan, artefact: str, paper: str = "fedosd") -> Entry:
    found = planned.job("publish", {"paper": paper, "artefact": artefact}).spec
    assert isinstance(found, publish.Spec)
    return found


def test_scenarios_name_the_data_that_stand_for_the_papers() -> None:
    shown = [entry(made("smoke"), "fig7").scenarios[k] for k in (0, 3)]
    assert [(scenario.label, scenario.replaces, scenario.data) for scenario in shown] == [
        ("MNIST, Pat-50 [on digits]", "MNIST", "digits"),
        ("CIFAR-100, Pat-50 [on digits in 20 classes]", "CIFAR-100", "digits in 20 classes"),
    ]
    assert not entry(made("smoke"), "table1").compares
    first = entry(made("paper", *PAPERS), "fig7").scenarios[0]
    assert (first.label, first.replaces, first.data) == ("MNIST, Pat-50", None, "MNIST")
    assert entry(made("paper", *PAPERS), "table1").compares
    own = plan("smoke", scenarios={"mnist-iid": {"settings": {"data": {"dataset": "digits"}}}})
    assert [scenario.replaces for scenario in entry(own, "table8").scenarios] == [None, None, None]  # on one base


@cache
def entries(preset: str) -> list[Entry]:
    """Return the entries of all papers' artefacts."""
    planned = made(preset, *PAPERS)
    return [entry(planned, artefact, paper) for paper, artefact in planned.artefacts]


@pytest.mark.parametrize("preset", ["smoke", "paper"])
def test_a_caption_names_no_value_of_a_coordinate_that_its_scenarios_lack(preset: str) -> None:
    named = 0
    for shown in entries(preset):
        for name in shown.names:
            values = {str(scenario.at.get(name)) for scenario in shown.scenarios}
            for told in re.findall(rf"\b{name} (?:=|from) (\d+(?: to \d+)?)", shown.caption):
                assert set(told.split(" to ")) <= values, (shown.artefact, shown.caption)
                named += 1
    assert named


def test_a_metric_that_a_paper_of_ours_defines_cites_the_one_in_which_it_is_shown() -> None:
    papers = {"fedosd": "FedOSD", "safari": "SAFARI", "fats": "FATS"}
    for shown in entries("smoke"):
        for metric in shown.metrics:
            cited = {paper for paper, name in papers.items() if name in metric.source}
            assert not cited or shown.paper in {*cited, "audit"}, (shown.artefact, metric.source)  # which borrows
        assert shown.kind != "membership" or "0.5" not in shown.definitions  # its numbers are percent


@pytest.mark.parametrize("preset", ["smoke", "paper"])
def test_no_two_rows_of_an_artefact_have_one_name(preset: str) -> None:
    for shown in entries(preset):
        for trains in (True, False):
            labels = [method.label for method in shown.methods if method.trains is trains]
            assert len({*labels}) == len(labels), (shown.artefact, labels)


def test_a_table_knows_who_retrains_what_stands_in_parentheses_and_its_note() -> None:
    shown = entry(made("paper", *PAPERS), "table8")
    assert [method.name for method in shown.methods if method.retrains] == ["retraining"]
    assert [metric.name for metric in shown.spreads] == ["r_acc_std"]
    assert shown.note.startswith("The paper contradicts itself: on MNIST")
    assert entry(made("paper", *PAPERS), "table6").note == ""


def test_a_scenario_knows_how_many_requests_come_in_a_row() -> None:
    asked = {
        "data": {"attack": None, "forget": {"clients": 1, "requests": 2}},
        "unlearning": {"rounds": 4, "lr_decay": 1},
    }
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


@pytest.mark.usefixtures("with_toy")
def test_a_matrix_knows_its_repeats_and_controls_and_what_it_reads_beyond_its_metrics(mine: Path) -> None:
    (mine / "methods").mkdir()
    (mine / "methods/nothing.py").write_text((ROOT / "fu/methods/fedosd.py").read_text() + "\nCONTROL = True\n")
    repeats = ["again.1", "again.2", "again.3"]
    methods: dict[str, Any] = {
        name: {"label": name, "source": "a test", "plugin": "retrain", "params": {"repeat": k}}
        for k, name in enumerate(repeats, 1)
    }
    methods["nothing"] = {"label": "Doing nothing", "source": "a test", "plugin": "nothing"}
    laid = {"kind": "matrix", "methods": ["fupga", "nothing"], "against": repeats}
    own: dict[str, Any] = {"settings": {"grid": {"unlearning.lr": []}}}
    config = toy(methods={name: {**about, **own} for name, about in methods.items()}, artefacts={"utility": laid})
    shown = entry(Plan({**config, "plugins": str(mine)}), "utility", "toy")
    assert [method.name for method in shown.methods] == ["fupga", "nothing", *repeats]
    assert [method.name for method in shown.methods if method.retrains] == repeats
    assert [method.name for method in shown.methods if method.control] == ["nothing"]
    assert shown.also == ("client_accuracy", "client_samples", "client_forgotten", "seconds")
