"""The plan lays paper, preset, scenario, method and overrides over each other, in this order, and expands grids."""

import csv
import json
import shutil
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fu.plan import inputs, papers
from fu.plan.digest import ROOT
from fu.plan.expansion import completed, inherited, point_name
from fu.plan.papers import merge, names
from fu.plan.plan import Plan
from fu.publishing.result import models_of
from fu.publishing.table import SPREAD

RUN = "fedosd/mnist-iid/seed0"
PAT50 = "fedosd/fmnist-pat50/seed0"  # of Table 5, which holds the variants of FedOSD
RATES = [0.005, 0.025, 0.001, 0.0005]


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "CACHE", tmp_path_factory.mktemp("plan") / "plan.json")
        yield


def plan(preset: str = "paper", **fedosd: Any) -> Plan:
    return Plan({"preset": preset, "papers": ["fedosd"], "overrides": {"fedosd": fedosd}})


@cache
def made(preset: str = "paper") -> Plan:
    """A plan that no test changes."""
    return plan(preset)


def spec(planned: Plan, stage: str, run: str, method: str = "original") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(planned.spec(stage, run, method))
    return found


def rate(planned: Plan, run: str, method: str) -> float:
    return float(spec(planned, "unlearn", run, method)["local"]["lr"])


def points(planned: Plan, run: str, method: str) -> list[str]:
    return planned.points[run.rpartition("/")[0], method]


def grid(method: str, values: dict[str, Any]) -> dict[str, Any]:
    return {method: {"settings": {"grid": values}}}


# No artefact shows what begins at the unlearned models of FedOSD or FUPGA, so that their grids are free to change.
ALONE = {"table5": {"methods": ["fedosd"]}, "recovery_rate": {"methods": ["fedrecovery.rates-free"]}}


def names_of(paths: list[str]) -> list[str]:
    return [path.rpartition("/")[2].removesuffix(".safetensors") for path in paths]


# ---- the presets ---------------------------------------------------------------------------------------------------


def test_the_paper_preset_is_the_paper() -> None:
    train = spec(made(), "train", RUN)
    assert (train["rounds"], train["local"]) == (
        2000,
        {"lr": 0.025, "lr_decay": 0.999, "batch_size": 200, "local_epochs": 1},
    )
    assert made().seeds("fedosd") == [0, 1, 2, 3, 4]
    assert made().seeds("fedosd") == made().papers["fedosd"].seeds
    unlearn = spec(made(), "unlearn", RUN, "fedosd+lr0.025")
    assert (unlearn["rounds"], unlearn["local"]) == (
        100,
        {"lr": 0.025, "lr_decay": 0.999, "batch_size": 200, "local_epochs": 1},
    )
    recover = spec(made(), "recover", RUN, "fedosd+lr0.025")
    assert (recover["first_round"], recover["rounds"], recover["client_weights"]) == (100, 100, "equal")
    part = spec(made(), "partition", RUN)
    assert (part["clients"], part["samples"], part["forget"]) == (10, None, {"clients": 1})
    assert part["validation_share"] == 0.1  # of the training data, to choose rates on
    assert part["backdoor"]["share"] == 0.8
    assert not made().cell(RUN, "retraining").recovers


def test_the_paper_preset_tries_the_four_rates_in_every_scenario() -> None:
    for method in ("fedrecovery", "mode", "ewcsga", "fupga", "fedosd"):
        assert points(made(), RUN, method) == [f"{method}+lr{value:g}" for value in RATES]
        assert [rate(made(), RUN, point) for point in points(made(), RUN, method)] == RATES
    scopes = {scope for scope, method in made().points if method == "fedosd"}
    assert {tuple(made().points[scope, "fedosd"]) for scope in scopes} == {tuple(points(made(), RUN, "fedosd"))}
    for method in ("retraining", "federaser", "fedosd.as-published-code"):
        assert points(made(), RUN, method) == [method]


@pytest.mark.parametrize("preset", names("presets"))
def test_every_preset_plans_every_paper_and_every_artefact(preset: str) -> None:
    planned = Plan({"preset": preset, "papers": names("papers")})
    assert planned.all_targets()
    for (paper, artefact), entry in planned.artefacts.items():
        assert entry.published == (ROOT / "workflow/published" / paper / f"{artefact}.csv").is_file()
    for scope, method in planned.cells:
        for seed in planned.seeds(scope.partition("/")[0]):
            assert planned.models(f"{scope}/seed{seed}", method)


def test_a_preset_replaces_data_sets_that_a_base_names() -> None:
    datasets = {
        name: made("smoke").cell(f"fedosd/{name}/seed0").settings.data.dataset
        for name in made().papers["fedosd"].scenarios
        if (f"fedosd/{name}", "original") in made("smoke").cells
    }
    assert {name: found for name, found in datasets.items() if found not in ("digits", "digits_rgb")} == {}
    assert {found for name, found in datasets.items() if name.startswith("cifar")} == {"digits_rgb"}
    assert made().cell("fedosd/cifar100-pat50-two-stage/seed0").settings.data.dataset == "cifar100"


# ---- layers --------------------------------------------------------------------------------------------------------


def test_a_method_may_differ_in_all_scenarios_or_in_one() -> None:
    scenarios = {"mnist-iid": {"methods": {"fupga": {"unlearning": {"lr": 0.003}}}}}
    fupga = {"unlearning": {"lr": 0.002}, "grid": {"unlearning.lr": []}}
    planned = plan(scenarios=scenarios, methods={"fupga": {"settings": fupga}}, artefacts=ALONE)
    assert rate(planned, RUN, "fupga") == 0.003
    assert rate(planned, "fedosd/mnist-pat20/seed0", "fupga") == 0.003  # its base is mnist-iid
    assert rate(planned, "fedosd/fmnist-pat50/seed0", "fupga") == 0.002
    assert planned.spec("unlearn", RUN, "ewcsga+lr0.005") == made().spec("unlearn", RUN, "ewcsga+lr0.005")


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
    trained = [planned.cell(f"fedosd/{name}/seed0").settings for name in extra]
    assert [settings.data.clients for settings in trained] == [20, 20, 20]
    assert [settings.training.rounds for settings in trained] == [7, 7, 9]
    assert [settings.training.lr for settings in trained] == [0.025, 0.5, 0.5]
    assert [settings.model.name for settings in trained] == ["lenet5"] * 3
    unlearned = [spec(planned, "unlearn", f"fedosd/{name}/seed0", "fedosd+lr0.1")["rounds"] for name in extra]
    assert unlearned == [5, 4, 4]
    of_mode = [spec(planned, "unlearn", f"fedosd/{name}/seed0", "mode+lr0.005")["rounds"] for name in extra]
    assert of_mode == [100, 2, 2]
    settings, methods = inherited("fedosd", planned.papers["fedosd"], "c")
    assert settings["training"]["rounds"] == 9
    assert methods == {
        "fedosd": {"unlearning": {"rounds": 4}, "grid": {"unlearning.lr": [0.1]}},
        "mode": {"unlearning": {"rounds": 2}},
    }


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


def test_what_a_preset_changes_of_a_base_reaches_what_is_built_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow")
    (tmp_path / "workflow/presets/mine.yaml").write_text(PRESET)
    monkeypatch.setattr(papers, "ROOT", tmp_path)
    planned = plan("mine")
    found = {
        scope.rpartition("/")[2]: cell.settings for (scope, name), cell in planned.cells.items() if name == "original"
    }
    for name in ("mnist-iid", "mnist-pat20", "mnist-pat50"):
        assert (found[name].training.rounds, found[name].data.samples) == (40, None)
        assert spec(planned, "unlearn", f"fedosd/{name}/seed0", "mode+lr0.005")["rounds"] == 3
    for name in ("fmnist-iid", "fmnist-pat20", "fmnist-pat20-e5"):
        assert (found[name].training.rounds, found[name].data.samples) == (2000, 5000)
    deep = found["cifar100-pat50-two-stage"]  # on cifar100-pat50, on cifar100-iid, on cifar10-iid
    assert (deep.data.samples, deep.data.train_share) == (6000, 5 / 6)
    assert (deep.model.name, deep.model.params) == ("nfresnet18", {"stem": 4, "widths": [128, 256]})
    assert found["cifar10-pat50-dropout"].model.params == {"channels": 8, "dropout": [0.2, 0.5]}


def test_a_base_that_changes_changes_what_is_built_on_it_and_nothing_else() -> None:
    before, after = made("smoke"), plan("smoke", scenarios={"fmnist-pat20": {"settings": {"training": {"lr": 0.3}}}})
    scopes = sorted({scope for scope, _ in before.cells})
    changed = [
        scope for scope in scopes if spec(before, "train", f"{scope}/seed0") != spec(after, "train", f"{scope}/seed0")
    ]
    assert changed == ["fedosd/fmnist-pat20", "fedosd/fmnist-pat20-e5"]


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


PHASE = {"lr": 0.1, "lr_decay": 0.9, "batch_size": 20, "local_epochs": 2, "evaluate_every": 1}
EMPTY: dict[str, Any] = {"lr": None, "lr_decay": None, "batch_size": None, "local_epochs": None}


def phases(**changes: Any) -> dict[str, Any]:
    return {
        "training": PHASE,
        "unlearning": {**EMPTY, "rounds": 3, **changes.pop("unlearning", {})},
        "recovery": {**EMPTY, **changes.pop("recovery", {})},
        "total_rounds": 8,
        **changes,
    }


def test_a_phase_takes_what_it_leaves_open_from_the_phase_before() -> None:
    common = {key: PHASE[key] for key in EMPTY}
    filled = completed(phases(), "after")
    assert filled["unlearning"] == {**common, "rounds": 3}
    assert filled["recovery"] == common
    filled = completed(phases(unlearning={"lr": 0.02, "batch_size": 5}), "after")
    assert filled["unlearning"] == {**common, "lr": 0.02, "batch_size": 5, "rounds": 3}
    assert filled["recovery"] == {**common, "lr": 0.02, "batch_size": 5}  # of the phase before, not of training
    filled = completed(phases(recovery={"lr": 0.5}), "after")
    assert (filled["unlearning"]["lr"], filled["recovery"]["lr"]) == (0.1, 0.5)
    assert filled["training"] == PHASE


def test_nothing_else_is_taken_from_the_phase_before() -> None:
    left = completed(phases(unlearning={"evaluate_every": None}, recovery={"client_weights": None}), "after")
    assert left["unlearning"]["evaluate_every"] is None
    assert left["recovery"]["client_weights"] is None


@pytest.mark.parametrize(
    ("post_training", "rounds"), [("after", (3, 8)), ("own", (8, 8)), ("none", (3, 3))], ids=["after", "own", "none"]
)
def test_the_rounds_follow_from_what_comes_after_unlearning(post_training: str, rounds: tuple[int, int]) -> None:
    given = phases()
    filled = completed(given, post_training)
    assert (filled["unlearning"]["rounds"], filled["total_rounds"]) == rounds
    assert given == phases()  # which stays as it is


def test_the_epochs_of_a_scenario_hold_for_all_phases() -> None:
    run = "fedosd/fmnist-pat20-e5/seed0"
    assert spec(made(), "train", run)["local"]["local_epochs"] == 5
    assert spec(made(), "unlearn", run, "fedosd+lr0.005")["local"]["local_epochs"] == 5
    assert spec(made(), "recover", run, "fedosd+lr0.005")["local"]["local_epochs"] == 5
    assert spec(made(), "unlearn", run, "retraining")["local"] == spec(made(), "train", run)["local"]


def test_retraining_and_federaser_keep_the_rate_of_the_original_training() -> None:
    for preset in names("presets"):
        for method in ("retraining", "federaser"):
            assert rate(made(preset), RUN, method) == spec(made(preset), "train", RUN)["local"]["lr"]


# ---- grids ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coordinates", "name"),
    [
        ({}, "fedosd"),
        ({"unlearning.lr": 0.005}, "fedosd+lr0.005"),
        ({"unlearning.lr": 0.00005}, "fedosd+lr5e-05"),
        ({"recovery.lr": 0.000001}, "fedosd+recovery-lr1e-06"),
        ({"unlearning.lr": 0.005, "recovery.lr": 0.000001}, "fedosd+lr0.005-recovery-lr1e-06"),
        ({"params.loss": "uce", "unlearning.rounds": 20}, "fedosd+lossuce-rounds20"),
    ],
)
def test_a_point_is_named_after_its_values(coordinates: dict[str, Any], name: str) -> None:
    assert point_name("fedosd", coordinates) == name


def test_a_grid_is_every_combination_in_the_order_of_its_values() -> None:
    values = {"unlearning.lr": [0.1, 0.02], "params.loss": ["uce", "ascent"], "unlearning.rounds": [2]}
    planned = plan(artefacts=ALONE, methods=grid("fedosd", values))
    found = points(planned, PAT50, "fedosd")
    assert found == [
        "fedosd+lr0.1-lossuce-rounds2",
        "fedosd+lr0.1-lossascent-rounds2",
        "fedosd+lr0.02-lossuce-rounds2",
        "fedosd+lr0.02-lossascent-rounds2",
    ]
    specs = [spec(planned, "unlearn", PAT50, point) for point in found]
    assert [(each["local"]["lr"], each["method"]["params"]["loss"], each["rounds"]) for each in specs] == [
        (0.1, "uce", 2),
        (0.1, "ascent", 2),
        (0.02, "uce", 2),
        (0.02, "ascent", 2),
    ]
    assert {spec(planned, "recover", PAT50, point)["rounds"] for point in found} == {198}  # up to the 200 of all


def test_an_empty_list_is_no_grid() -> None:
    planned = plan(methods=grid("mode", {"unlearning.lr": []}))
    assert points(planned, PAT50, "mode") == ["mode"]
    assert rate(planned, PAT50, "mode") == 0.005
    assert names_of(planned.models(PAT50, "mode")) == ["mode.unlearned", "mode.recovered"]
    assert [path for path in planned.targets("fedosd", "table6") if "/mode+" in path or "/mode.selected" in path] == []


def test_one_value_is_a_point_of_its_own_name_and_nothing_is_chosen() -> None:
    planned = plan(settings={"grid": {"unlearning.lr": [0.005]}})
    assert points(planned, RUN, "fedosd") == ["fedosd+lr0.005"]
    assert [path for path in planned.all_targets() if path.endswith(".selected.json")] == []


def test_a_point_is_chosen_over_all_seeds_where_there_are_several() -> None:
    scope = "fedosd/mnist-pat50"
    found = [
        path for path in made().artefact_inputs("fedosd", "table8") if path.endswith("mnist-pat50/fedosd.selected.json")
    ]
    assert found == ["results/paper/fedosd/mnist-pat50/fedosd.selected.json"]
    assert made().candidates(scope, "fedosd") == [
        f"results/paper/{scope}/seed{seed}/fedosd+lr{value:g}.evaluation.csv" for value in RATES for seed in range(5)
    ]
    assert json.loads(made().spec_select(scope, "fedosd")) == {"points": [f"fedosd+lr{value:g}" for value in RATES]}


def test_an_artefact_rests_on_every_point_of_its_methods_and_on_the_choice_among_them() -> None:
    needed = made().artefact_inputs("fedosd", "table8")
    here = [path.removeprefix("results/paper/fedosd/mnist-pat50/") for path in needed if "/mnist-pat50/" in path]
    several = ["fedrecovery", "mode", "ewcsga", "fupga", "fedosd"]
    shown = ["original", "retraining", "federaser", *(f"{name}+lr{value:g}" for name in several for value in RATES)]
    evaluations = [f"seed{seed}/{name}.evaluation.csv" for seed in range(5) for name in shown]
    assert set(here) == {
        *evaluations,
        *(f"seed{seed}/fedosd.as-published-code.evaluation.csv" for seed in range(5)),
        *(f"{name}.selected.json" for name in several),
    }
    assert set(needed) <= set(made().targets("fedosd", "table8"))


def test_a_sweep_shows_all_points_and_chooses_none() -> None:
    needed = made().artefact_inputs("fedosd", "recovery_rate")
    assert [path for path in needed if path.endswith(".selected.json")] == []
    of_one = [path for path in needed if "/mnist-pat50/seed0/fedosd.rates-free+lr0.005-recovery-lr" in path]
    assert len(of_one) == 7
    planned = dict(json.loads(made().spec_publish("fedosd", "recovery_rate"))["methods"])
    found = planned["fedosd.rates-free"]["points"]["mnist-pat50"]
    assert [about["coordinates"]["recovery.lr"] for _, about in found] == [1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 5e-3, 2.5e-2]
    assert {about["models"][0] for _, about in found} == {"fedosd+lr0.005.unlearned"}


def test_the_rate_of_post_training_is_that_of_unlearning_in_every_point_of_the_paper() -> None:
    scopes = sorted({scope for scope, method in made().cells if method == "fedosd+lr0.005"})
    assert len(scopes) >= 20
    for scope in scopes:
        for value in RATES:
            point = f"fedosd+lr{value:g}"
            local = spec(made(), "recover", f"{scope}/seed0", point)["local"]
            assert local == spec(made(), "unlearn", f"{scope}/seed0", point)["local"]
            assert local["lr"] == value


def test_the_points_of_one_method_differ_in_their_rate_alone() -> None:
    for stage in ("unlearn", "recover"):
        specs = [spec(made(), stage, RUN, point) for point in points(made(), RUN, "fedosd")]
        for one, other in pairwise(specs):
            assert {key for key in one if one[key] != other[key]} == {"local"}
            assert {key for key in one["local"] if one["local"][key] != other["local"][key]} == {"lr"}


# ---- methods that share or lack a phase ----------------------------------------------------------------------------


def test_m5_begins_at_the_unlearned_models_of_fedosd_and_unlearns_nothing_itself() -> None:
    assert points(made(), PAT50, "fedosd.m5") == [f"fedosd.m5+lr{value:g}" for value in RATES]
    for value in RATES:
        own, other = f"fedosd.m5+lr{value:g}", f"fedosd+lr{value:g}"
        assert names_of(made().models(PAT50, own)) == [f"{other}.unlearned", f"{own}.recovered"]
        assert made().models(PAT50, own)[0] == made().models(PAT50, other)[0]
        assert made().traces(PAT50, own)[0] == made().traces(PAT50, other)[0]
        here, there = spec(made(), "recover", PAT50, own), spec(made(), "recover", PAT50, other)
        assert {key for key in here if here[key] != there[key]} == {"projection"}
        assert (here["projection"], there["projection"]["name"]) == (None, "away_from_original")
    for planned in map(made, names("presets")):
        targets = planned.all_targets()
        assert [path for path in targets if "fedosd.m5" in path and ".unlearned" in path] == []
        assert [path for path in targets if ".rates-" in path and ".unlearned" in path] == []
        assert [path for path in targets if "/fmnist-pat50/" in path and "/fedosd.m5+" in path and ".recovered" in path]


def test_a_rate_that_only_a_method_built_on_the_unlearned_model_asks_for_is_unlearned_with_too() -> None:
    planned = plan(methods=grid("fedosd.m5", {"unlearning.lr": [0.3], "recovery.lr": [0.1, 0.2]}))
    assert points(planned, PAT50, "fedosd") == points(made(), PAT50, "fedosd")  # no table of FedOSD shows it
    found = points(planned, PAT50, "fedosd.m5")
    assert found == ["fedosd.m5+lr0.3-recovery-lr0.1", "fedosd.m5+lr0.3-recovery-lr0.2"]
    for point in found:
        assert names_of(planned.models(PAT50, point)) == ["fedosd+lr0.3.unlearned", f"{point}.recovered"]
    assert rate(planned, PAT50, "fedosd+lr0.3") == 0.3
    here = [path for path in planned.all_targets() if "/fmnist-pat50/seed0/fedosd+lr0.3" in path]
    assert names_of([path for path in here if path.endswith(".safetensors")]) == ["fedosd+lr0.3.unlearned"]


def test_what_is_unlearned_by_another_method_follows_its_settings() -> None:
    planned = plan(methods={"fedosd": {"settings": {"unlearning": {"rounds": 2}, "total_rounds": 7}}})
    m5 = spec(planned, "recover", PAT50, "fedosd.m5+lr0.005")
    assert (m5["first_round"], m5["rounds"]) == (2, 5)
    planned = plan(scenarios={"fmnist-pat50": {"methods": {"fedosd": {"unlearning": {"rounds": 1}}}}})
    assert spec(planned, "recover", PAT50, "fedosd.m5+lr0.005")["first_round"] == 1


def test_a_method_that_takes_all_rounds_itself_has_one_model() -> None:
    assert spec(made(), "unlearn", RUN, "retraining")["rounds"] == 200
    for planned in map(made, names("presets")):
        for method in ("retraining", "federaser"):
            assert spec(planned, "unlearn", RUN, method)["rounds"] == planned.cell(RUN).settings.total_rounds
            assert names_of(planned.models(RUN, method)) == [f"{method}.unlearned"]
            assert [path for path in planned.all_targets() if f"/{method}.recovered" in path] == []


def test_a_method_without_post_training_has_no_recovered_model() -> None:
    for method in ("fedosd.m1", "fedosd.m2", "fedosd.m3", "fedosd.m4", "fedosd.m6"):
        for value in RATES:
            point = f"{method}+lr{value:g}"
            assert spec(made(), "unlearn", PAT50, point)["rounds"] == 100
            assert names_of(made().models(PAT50, point)) == [f"{point}.unlearned"]
        assert [path for path in made().all_targets() if f"/{method}+" in path and ".recovered" in path] == []


def test_fedrecovery_unlearns_in_one_round_and_post_training_takes_the_others() -> None:
    point = "fedrecovery+lr0.005"
    assert spec(made(), "unlearn", RUN, point)["rounds"] == 1
    recover = spec(made(), "recover", RUN, point)
    assert (recover["first_round"], recover["rounds"]) == (1, 199)


def test_the_published_codes_post_training_rate_comes_one_round_late() -> None:
    late = spec(made(), "recover", RUN, "fedosd.as-published-code")
    assert (late["local"]["lr"], late["local"]["late"]) == (1e-6, [100, 0.0004])
    assert late["projection"] == {"name": "away_from_original", "params": {"where": "always"}}
    assert "late" not in spec(made(), "recover", RUN, "fedosd+lr0.005")["local"]


def test_post_training_knows_no_method() -> None:
    def recover(planned: Plan, method: str) -> str:
        return planned.spec("recover", RUN, f"{method}+lr0.005")

    assert recover(made(), "mode") == recover(made(), "fupga") != recover(made(), "fedosd")
    projection = {"recovery": {"projection": {"name": "away_from_original"}}}
    planned = plan(methods={"mode": {"settings": projection}})
    assert recover(planned, "mode") == recover(planned, "fedosd") == recover(made(), "fedosd")
    assert [name for name in inputs.available("methods") if f'"{name}"' in recover(planned, "mode")] == []


# ---- specs ---------------------------------------------------------------------------------------------------------


def test_specs_hold_nothing_that_cannot_change_a_result() -> None:
    for stage, method in (
        ("partition", "original"),
        ("train", "original"),
        ("unlearn", "fedosd+lr0.005"),
        ("recover", "fedosd+lr0.005"),
        ("recover", "fedosd.m5+lr0.005"),
        ("evaluate", "original"),
    ):
        text = made().spec(stage, PAT50, method)
        assert json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")) == text
        foreign = ["caption", "threads", "mem_mb", "device", "label", "title", "paper", "scenario", "grid", "source"]
        assert [word for word in [*foreign, "base", "post_training", "coordinates"] if f'"{word}"' in text] == []


def test_a_partition_knows_a_number_of_classes_and_not_how_it_was_stated() -> None:
    kinds = {name: spec(made(), "partition", f"fedosd/{name}/seed0")["partition"] for name in (
        "mnist-iid", "mnist-pat20", "mnist-pat50", "cifar10-pat10", "cifar100-pat10", "cifar100-pat50")}  # fmt: skip
    assert kinds == {
        "mnist-iid": {"kind": "iid", "classes_per_client": None},
        "mnist-pat20": {"kind": "pat", "classes_per_client": 2},
        "mnist-pat50": {"kind": "pat", "classes_per_client": 5},
        "cifar10-pat10": {"kind": "pat", "classes_per_client": 1},
        "cifar100-pat10": {"kind": "pat", "classes_per_client": 10},
        "cifar100-pat50": {"kind": "pat", "classes_per_client": 50},
    }
    written = plan("paper", scenarios={"mnist-pat20": {"settings": {"data": {"partition": {"class_share": "1/5"}}}}})
    run = "fedosd/mnist-pat20/seed0"
    assert written.spec("partition", run) == made().spec("partition", run)


# ---- what the tables show ------------------------------------------------------------------------------------------

PUBLISHED = sorted((ROOT / "workflow/published/fedosd").glob("*.csv"))
# What a kind of artefact shows besides its metrics; the standard deviation of a time is our own over seeds.
BESIDES = {"table": {"reverts"}, "runtime": {"seconds", "seconds_std"}}


def published(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("path", PUBLISHED, ids=[path.stem for path in PUBLISHED])
def test_every_published_number_stands_beside_one_of_ours(path: Path) -> None:
    entry, rows = made().artefacts["fedosd", path.stem], published(path)
    assert entry.published
    assert entry.in_paper
    assert list(dict.fromkeys(row["scenario"] for row in rows)) == entry.scenarios
    assert {row["method"] for row in rows} <= {"original", *entry.methods}
    metrics = {*entry.metrics, *(SPREAD[metric] for metric in entry.metrics if metric in SPREAD), *BESIDES[entry.kind]}
    assert {row["metric"] for row in rows} <= metrics
    shown = json.loads(made().spec_publish("fedosd", path.stem))
    shown = {**shown, "scenarios": dict(shown["scenarios"]), "methods": dict(shown["methods"])}
    ours = {
        (scenario, method, "total" if entry.kind == "runtime" else role)
        for scenario in entry.scenarios
        for method, role, _ in models_of(shown, scenario)
        if method == "original" or shown["methods"][method]["in_paper"]
    }
    theirs = {(row["scenario"], row["method"], row["stage"]) for row in rows}
    assert theirs <= ours
    without = {("table2", "original", "original"), ("table12", "original", "total")}  # the paper leaves the row out
    assert {(path.stem, *row[1:]) for row in ours - theirs} <= without


def test_the_twelve_tables_of_the_paper_are_planned_with_their_numbers() -> None:
    assert {path.stem for path in PUBLISHED} == {f"table{number}" for number in range(1, 13)}
    assert {key for (_, key), entry in made().artefacts.items() if entry.published} == {path.stem for path in PUBLISHED}
    figures = {key for (_, key), entry in made().artefacts.items() if entry.in_paper} - {
        path.stem for path in PUBLISHED
    }
    assert figures == {"fig3", "fig5", "fig6", "fig7", "fig8", "fig9"}


# ---- archives ------------------------------------------------------------------------------------------------------


def test_a_forgotten_data_dir_undoes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    archive, made = tmp_path / "mnist.npz", tmp_path / "results/paper/data/mnist.npz"
    archive.write_bytes(b"an archive")
    config = {"preset": "paper", "papers": ["fedosd"]}
    with_archive = Plan({**config, "data_dir": str(tmp_path)}).spec_data("mnist")
    assert json.loads(with_archive)["archive"] is not None
    elsewhere = Plan({**config, "data_dir": "elsewhere"})
    assert json.loads(elsewhere.spec_data("mnist"))["archive"] is None  # nothing made yet: download
    made.parent.mkdir(parents=True)
    made.write_bytes(b"made from it")
    made.with_suffix(".source.json").write_text(json.dumps({"archive": json.loads(with_archive)["archive"]}))
    assert elsewhere.spec_data("mnist") == with_archive
    archive.write_bytes(b"another archive")
    assert Plan({**config, "data_dir": str(tmp_path)}).spec_data("mnist") != with_archive
    assert elsewhere.spec_data("mnist") == with_archive  # planning with another archive made nothing from it
