"""Scenarios that vary: their names, labels, coordinates and bases; patterns that name them; axes, lines and panels."""

from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan.plan import Plan
from fu.pipeline.stages import publish
from tests.mistakes import has, sentence
from tests.pipeline.configs import at, helped, toy


def entry(planned: Plan, artefact: str) -> publish.Spec:
    """Return what an artefact is given."""
    found = planned.job("publish", {"paper": "helped", "artefact": artefact}).spec
    assert isinstance(found, publish.Spec)
    return found


def test_a_scenario_that_varies_is_one_for_every_combination(with_toy: Path) -> None:
    scenarios = Plan(helped()).papers["helped"].scenarios
    assert {name: (about.label, about.base, dict(about.at)) for name, about in scenarios.items()} == {
        "few-s0": ("Few, s = 0", None, {"s": 0}),
        "few-s1": ("Few, s = 1", None, {"s": 1}),
        "few-server-s0-n5": ("Few, s = 0, n = 5", "few-s0", {"s": 0, "n": 5, "level": 2}),
        "few-server-s0-n20": ("Few, s = 0, n = 20", "few-s0", {"s": 0, "n": 20, "level": 2}),
        "few-server-s1-n5": ("Few, s = 1, n = 5", "few-s1", {"s": 1, "n": 5, "level": 2}),
        "few-server-s1-n20": ("Few, s = 1, n = 20", "few-s1", {"s": 1, "n": 20, "level": 2}),
    }


def test_each_has_the_values_of_its_coordinates(with_toy: Path) -> None:
    planned = Plan(helped())
    data = {
        scope: trial.settings.data
        for (scope, name), trial in planned.trials.items()
        if name == "fedavg" and "-n" in scope
    }
    assert {scope.partition("/few-server-")[2]: (found.absent, found.server_used) for scope, found in data.items()} == {
        "s0-n5": (0, 5),
        "s0-n20": (0, 20),
        "s1-n5": (1, 5),
        "s1-n20": (1, 20),
    }


def test_a_fraction_and_a_word_are_parts_of_a_name(with_toy: Path) -> None:
    vary = {"lr": {"setting": "training.lr", "values": [0.5, 0.025]}, "k": {"setting": "model.name", "values": ["mlp"]}}
    laid = {"mixed": {"label": "Mixed", "vary": vary}}
    found = Plan(helped(scenarios=laid)).papers["helped"].scenarios
    assert [name for name in found if name.startswith("mixed")] == ["mixed-lr0.5-kmlp", "mixed-lr0.025-kmlp"]
    assert found["mixed-lr0.025-kmlp"].settings == {"training": {"lr": 0.025}, "model": {"name": "mlp"}}


def test_a_list_of_clients_is_a_coordinate_by_their_numbers(with_toy: Path) -> None:
    vary = {"client": {"setting": "data.forget.clients", "values": [[0], [2], [1, 3]]}}
    plain = {"data": {"attack": None}}
    shown = {"kind": "table", "title": "T", "caption": "C", "metrics": ["r_acc"], "scenarios": ["each"]}
    planned = Plan(
        toy(
            scenarios={"each": {"label": "Each", "base": "iid", "settings": plain, "vary": vary}},
            artefacts={"mine": {**shown, "in_paper": False, "methods": ["retraining"]}},
        )
    )
    scenarios = planned.papers["toy"].scenarios
    assert {name: about.at for name, about in scenarios.items() if name.startswith("each")} == {
        "each-client0": {"client": 0},
        "each-client2": {"client": 2},
        "each-client1.3": {"client": "1.3"},
    }
    asked = [scenarios[name].settings["data"]["forget"]["clients"] for name in scenarios if name.startswith("each")]
    assert asked == [[0], [2], [1, 3]]
    stages = [job.stage for job in planned.jobs(("toy", "mine"))]
    assert {stage: stages.count(stage) for stage in ("partition", "train", "request", "unlearn")} == {
        **{"partition": 1, "train": 1},  # without an attack all requests share the model
        **{"request": 3, "unlearn": 3},
    }


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["few"], ["few-s0", "few-s1"]),
        (["few-server"], ["few-server-s0-n5", "few-server-s0-n20", "few-server-s1-n5", "few-server-s1-n20"]),
        (["few-*-n5"], ["few-server-s0-n5", "few-server-s1-n5"]),
        (["few-server-s1-*", "few-*-n5"], ["few-server-s1-n5", "few-server-s1-n20", "few-server-s0-n5"]),
    ],
)
def test_an_artefact_names_all_one_or_those_that_match(with_toy: Path, wanted: list[str], found: list[str]) -> None:
    planned = Plan(helped(artefacts={"numbers": {"scenarios": wanted}}))
    assert planned.artefacts["helped", "numbers"].scenarios == found


def test_an_artefact_is_told_coordinates_and_what_they_are_called(with_toy: Path) -> None:
    shown = entry(Plan(helped(artefacts={"numbers": {"lines": ["s"], "panels": ["n"], "x": "params.q"}})), "numbers")
    assert {scenario.name: scenario.at for scenario in shown.scenarios} == {
        f"few-server-s{s}-n{n}": {"s": s, "n": n, "level": 2} for s in (0, 1) for n in (5, 20)
    }
    assert shown.names == {"s": "absent clients, s", "n": "n"}
    assert (shown.x, shown.lines, shown.panels) == ("params.q", ["s"], ["n"])
    (_, safari) = shown.methods
    point = safari.trials["few-server-s1-n5"][1]
    values = [shown.at(name, "few-server-s1-n5", point) for name in ("s", "n", "level", "params.q", "m")]
    assert values == [1, 5, 2, 0.6, None]


def test_rows_are_the_trainings_and_say_where_their_models_lie(with_toy: Path) -> None:
    shown = entry(Plan(helped()), "numbers")
    assert [(method.name, method.trains, method.retrains) for method in shown.methods] == [
        ("fedavg", True, False),
        ("safari", True, False),
    ]
    assert shown.scenarios[0].original is None
    trials = {
        (scenario, trial.name): trial.trained
        for method in shown.methods
        for scenario in ("few-server-s1-n5", "few-server-s1-n20")
        for trial in method.trials[scenario][:1]
    }
    fedavg, alone, all_20 = "few-s1/fedavg", "few-server-s1-n5/safari+q0.2", "few-s1/safari+q0.2"
    assert trials == {
        ("few-server-s1-n5", "fedavg"): fedavg,
        ("few-server-s1-n20", "fedavg"): fedavg,
        ("few-server-s1-n5", "safari+q0.2"): alone,
        ("few-server-s1-n20", "safari+q0.2"): all_20,
    }
    sources: Any = getattr(shown, "sources")  # noqa: B009
    read = {one[2:5]: one.path for one in sources if one.kind == "evaluations" and one.scenario == "few-server-s1-n20"}
    assert read == {
        ("few-server-s1-n20", "fedavg", "fedavg"): "helped/few-s1/seed{}/fedavg.accuracy.csv",
        ("few-server-s1-n20", "safari", "safari+chosen"): "helped/few-server-s1-n20/seed{}/safari+chosen.accuracy.csv",
    }


WRONG: list[tuple[Any, ...]] = [
    ("artefacts/numbers/scenarios", ["few-*-n6"], "artefacts.numbers: there is no scenario 'few-*-n6'; did you mean"),
    ("artefacts/numbers/scenarios", ["few-[01]"], "artefacts.numbers.scenarios.0: "),
    ("artefacts/numbers/x", "m", "numbers: x: 'm' is neither a coordinate of 'few-server-s0-n5' nor in a grid"),
    ("scenarios/few/vary/s/setting", "data.absnt", "scenario few-server-s0-n5"),
    ("scenarios/few-s1/label", "Another", "scenarios: 'few-s1' is used twice; rename one of them"),
    ("", {"settings": {"data": {"server": 0}}, "artefacts": {"numbers": {"scenarios": ["few"]}}},
     "training safari: safari trains on the server's data; set data.server"),
    ("methods/safari", {"label": "S", "plugin": "fedosd", "source": "a test"},
     "methods: 'safari' is already the name of a training; choose another name"),
    ("artefacts/numbers/trainings", ["safary"], "there is no training 'safary'; did you mean 'safari'?"),
    ("artefacts/numbers/against", ["fedagv"], "there is no training or method 'fedagv'; did you mean 'fedavg'?"),
    ("trainings/safari/settings/data/absent", 1, "trainings.safari", "'data'"),
    ("trainings/safari/grid/recovery.lr", [0.1, 0.2],
     "trainings.safari: grid: 'recovery.lr' is no training setting; allowed: training.x, params.x"),
    ("settings/chosen_by", ["accuracy_heldout"],
     "chosen_by: there is no metric 'accuracy_heldout'; did you mean 'accuracy_held_out'?"),
    ("settings/chosen_by", ["client_accuracy"], "chosen_by: 'client_accuracy' has a value per client; choose by one"),
    ("scenarios/few/at", {"s": 9}, "scenarios.few.at: 's' varies; remove it."),
    ("scenarios/few-server/vary/t", {"setting": "data.absent", "values": [1]},
     "scenarios.few-server: data.absent is varied by two coordinates; remove one of them."),
    ("scenarios/few-server/settings", {"data": {"absent": 1}},
     "scenarios.few-server.settings: data.absent varies in its base; remove it."),
    ("settings/chosen_by", ["share_present"], "chosen_by: 'share_present' has no better direction, higher or lower"),
    ("methods/mine", {"label": "M", "plugin": "fedosd", "source": "a test", "shown_in": ["numbers"]},
     "scenario few-server-s0-n5, method mine: settings.unlearning is missing; a method needs it"),
    ("methods/mine", {"label": "M", "plugin": "fedosd", "source": "a test", "trained_by": "safary"},
     "methods.mine.trained_by: there is no training 'safary'; did you mean 'safari'?"),
]  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=[case[0] for case in WRONG])
@pytest.mark.usefixtures("with_toy")
def test_what_does_not_fit_is_told_in_one_sentence(case: tuple[Any, ...]) -> None:
    path, value, *words = case
    has(sentence(lambda: Plan(at(path, value, "helped"))), *words)
