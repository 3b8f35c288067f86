"""Paper, preset, scenario, method and overrides are laid over each other, in this order."""

import json
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan.plan import Plan
from fu.pipeline.settings.papers import merge
from tests.pipeline.configs import toy
from tests.pipeline.plans import RUN, SETTINGS, made, plan, rate, spec, text


def test_mappings_are_laid_over_key_by_key_and_anything_else_is_replaced() -> None:
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 3}
    assert merge(base, {"a": {"c": [4]}, "e": 5}) == {"a": {"b": 1, "c": [4]}, "d": 3, "e": 5}
    assert merge(base, {"a": None}) == {"a": None, "d": 3}
    assert base == {"a": {"b": 1, "c": [1, 2]}, "d": 3}


def test_a_plugin_of_another_name_brings_its_own_parameters() -> None:
    cnn = {"model": {"name": "cnn", "params": {"channels": 8, "dropout": [0.2, 0.5]}}}
    assert merge(cnn, {"model": {"params": {"channels": 4}}})["model"]["params"] == {
        "channels": 4,
        "dropout": [0.2, 0.5],
    }
    assert merge(cnn, {"model": {"name": "cnn"}}) == cnn
    assert merge(cnn, {"model": {"name": "mlp"}}) == {"model": {"name": "mlp"}}
    assert merge(cnn, {"model": {"name": "mlp", "params": {"hidden": 4}}}) == {
        "model": {"name": "mlp", "params": {"hidden": 4}}
    }


def test_a_value_may_have_its_source_in_overrides_and_presets_too(own_toy: Path) -> None:
    sourced: dict[str, Any] = {"settings": {"training": {"rounds": {"value": 7, "source": "this test"}}}}
    assert spec(Plan(toy(**sourced)), "train", "toy/iid/seed0")["rounds"] == 7
    preset = {"description": "a test", "papers": {"toy": sourced}}
    (own_toy / "presets/mine.yaml").write_text(json.dumps(preset))
    assert spec(Plan({"preset": "mine", "papers": ["toy"]}), "train", "toy/iid/seed0")["rounds"] == 7


@pytest.mark.usefixtures("with_toy")
def test_a_method_may_differ_in_all_scenarios_or_in_one() -> None:
    own = {"fupga": {"settings": {"unlearning": {"lr": 0.002}, "grid": {"unlearning.lr": []}}}}
    planned = Plan(toy(methods=own, scenarios={"pat": {"methods": {"fupga": {"unlearning": {"lr": 0.003}}}}}))
    iid, pat = "toy/iid/seed0", "toy/pat/seed0"
    assert [rate(planned, run, "fupga") for run in (iid, pat)] == [0.002, 0.003]
    assert text(planned, "unlearn", iid, "fedosd+lr0.02") == text(Plan(toy()), "unlearn", iid, "fedosd+lr0.02")


def test_a_scenario_inherits_the_settings_and_the_methods_of_its_bases() -> None:
    five = {"unlearning": {"rounds": 5}, "grid": {"unlearning.lr": [0.1]}}
    extra: dict[str, Any] = {
        "a": {"base": "mnist-iid", "settings": {"data": {"clients": 20}, "training": {"rounds": 7}}},
        "b": {"base": "a", "settings": {"training": {"lr": 0.5}}},
        "c": {"base": "b", "settings": {"training": {"rounds": 9}}},
    }
    extra["a"]["methods"] = {"fedosd": five}
    extra["b"]["methods"] = {"fedosd": {"unlearning": {"rounds": 4}}, "mode": {"unlearning": {"rounds": 2}}}
    shown = {"kind": "table", "title": "T", "caption": "C", "scenarios": list(extra), "metrics": ["asr"]}
    scenarios = {name: {"label": name, **entry} for name, entry in extra.items()}
    planned = plan(scenarios=scenarios, artefacts={"mine": {**shown, "methods": ["fedosd", "mode"]}})
    trained = [planned.trials[f"fedosd/{name}", "original"].settings for name in extra]
    of_paper = SETTINGS["training"]["lr"]
    assert [settings.data.clients for settings in trained] == [20, 20, 20]
    assert [settings.training.rounds for settings in trained] == [7, 7, 9]
    assert [settings.training.lr for settings in trained] == [of_paper, 0.5, 0.5]
    assert [settings.model.name for settings in trained] == [SETTINGS["model"]["name"]] * 3
    unlearned = [spec(planned, "unlearn", f"fedosd/{name}/seed0", "fedosd+lr0.1")["rounds"] for name in extra]
    assert unlearned == [5, 4, 4]
    of_mode = [spec(planned, "unlearn", f"fedosd/{name}/seed0", "mode+lr0.005")["rounds"] for name in extra]
    assert of_mode == [SETTINGS["unlearning"]["rounds"], 2, 2]


PRESET = """
description: of a test
papers:
  fedosd:
    settings: {data: {samples: 5000}}
    scenarios:
      mnist-iid:
        settings: {data: {samples: null}, training: {rounds: 40}}
        methods: {mode: {unlearning: {rounds: 3}}}
      cifar10-iid: {settings: {data: {samples: 6000}, model: {params: {channels: 8}}}}
      cifar100-iid: {settings: {model: {params: {stem: 4}}}}
"""


def test_what_a_preset_changes_of_a_base_reaches_what_is_built_on_it(workflow: Path) -> None:
    (workflow / "presets/mine.yaml").write_text(PRESET)
    planned = plan("mine")
    found = {
        scope.rpartition("/")[2]: trial.settings
        for (scope, name), trial in planned.trials.items()
        if name == "original"
    }
    for name in ("mnist-iid", "mnist-pat20", "mnist-pat50"):
        assert (found[name].training.rounds, found[name].data.samples) == (40, None)
        assert spec(planned, "unlearn", f"fedosd/{name}/seed0", "mode+lr0.005")["rounds"] == 3
    for name in ("fmnist-iid", "fmnist-pat20", "fmnist-pat20-e5"):
        assert (found[name].training.rounds, found[name].data.samples) == (SETTINGS["training"]["rounds"], 5000)
    deep = found["cifar100-pat50-two-stage"]  # on cifar100-pat50, on cifar100-iid, on cifar10-iid
    assert (deep.data.samples, deep.data.train_share) == (6000, 5 / 6)
    assert (deep.model.name, deep.model.params) == ("nfresnet18", {"stem": 4, "widths": [128, 256]})
    assert found["cifar10-pat50-dropout"].model.params == {"channels": 8, "dropout": [0.2, 0.5]}


def test_a_base_that_changes_changes_what_is_built_on_it_and_nothing_else() -> None:
    before, after = made("smoke"), plan("smoke", scenarios={"fmnist-pat20": {"settings": {"training": {"lr": 0.3}}}})
    scopes = sorted({scope for scope, _ in before.trials})
    changed = [
        scope for scope in scopes if spec(before, "train", f"{scope}/seed0") != spec(after, "train", f"{scope}/seed0")
    ]
    assert changed == ["fedosd/fmnist-pat20", "fedosd/fmnist-pat20-e5"]


def test_overrides_are_laid_over_the_preset() -> None:
    assert spec(made("smoke"), "train", RUN)["rounds"] != 3
    planned = plan("smoke", scenarios={"mnist-iid": {"settings": {"training": {"rounds": 3}}}})
    assert spec(planned, "train", RUN)["rounds"] == 3


# ---- what a method says of the artefacts that show it --------------------------------------------------------------

METHOD = {"label": "Mine", "plugin": "retrain", "post_training": "own", "source": "this test"}


def test_a_method_is_appended_to_the_artefacts_that_it_says_it_is_shown_in() -> None:
    mine = {**METHOD, "shown_in": ["table1", "fig5", "table2"]}
    planned = plan("smoke", methods={"mine": mine, "retraining": {"shown_in": ["table1"]}})  # where it is already
    before, after = made("smoke").artefacts, planned.artefacts
    found = {key for _, key in after if after["fedosd", key].methods != before["fedosd", key].methods}
    assert found == {"table1", "fig5", "table2"}
    for key in found:
        assert after["fedosd", key].methods == [*before["fedosd", key].methods, "mine"]
    assert {scope for scope, name in planned.names if name == "mine"} == {
        f"fedosd/{scenario}" for key in found for scenario in after["fedosd", key].scenarios
    }
