"""Specs hold the values that a stage reads, as canonical JSON, and nothing that cannot change a result."""

import json
from fractions import Fraction
from typing import Any

import pytest

from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance.catalogue import available
from fu.pipeline.provenance.paths import OUTPUTS
from fu.pipeline.stages.common import canonical
from tests.pipeline.configs import toy
from tests.pipeline.plans import LOCAL, PAT50, RUN, SETTINGS, WRITTEN, made, plan, spec, text, trials

TOY = "toy/iid/seed0"


def local_of(phase: str, **changes: Any) -> dict[str, Any]:
    """The local training that the file states for a phase, what it leaves open taken from the training."""
    stated = {key: SETTINGS[phase][key] for key in LOCAL}
    filled = {key: SETTINGS["training"][key] if value is None else value for key, value in stated.items()}
    return {**filled, "local_steps": None, "momentum": 0.0, "weight_decay": 0.0, "exception": None, **changes}


def test_every_spec_is_canonical_json_and_round_trips() -> None:
    stages = set()
    for job in made("smoke").jobs():
        assert all(type(spec).model_validate_json(canonical(spec)) == spec for spec in job.specs)
        assert json.dumps(json.loads(job.json), sort_keys=True, separators=(",", ":")) == job.json
        assert all(spec.stage == job.stage for spec in job.specs)
        stages.add(job.stage)
    assert {"data", "partition", "train", "unlearn", "recover", "evaluate", "publish"} <= stages


@pytest.mark.parametrize(
    ("stage", "names"),
    [
        ("data", {"dataset": "mnist"}),
        ("partition", {"run": PAT50}),
        ("train", {"run": PAT50, "trial": "original"}),
        ("unlearn", {"run": PAT50, "trial": "fedosd+lr0.005"}),
        ("recover", {"run": PAT50, "trial": "fedosd+lr0.005"}),
        ("recover", {"run": PAT50, "trial": "fedosd.m5+lr0.005"}),
        ("evaluate", {"run": PAT50, "trial": "original", "evaluation": "evaluation"}),
        ("select", {"scenario": "fedosd/fmnist-pat50", "method": "fedosd"}),
    ],
)
def test_specs_hold_nothing_that_cannot_change_a_result(stage: str, names: dict[str, str]) -> None:
    found = made().job(stage, names).json
    foreign = ["caption", "threads", "mem_mb", "device", "label", "title", "paper", "scenario", "grid", "source"]
    later = ["base", "post_training", "values", "preset", "shown_in", "evaluations"]
    assert [word for word in [*foreign, *later] if f'"{word}"' in found] == []


def test_the_paper_preset_computes_with_what_the_file_of_the_paper_says() -> None:
    train, part = spec(made(), "train", RUN), spec(made(), "partition", RUN)
    assert train["rounds"] == SETTINGS["training"]["rounds"]
    assert train["local"] == local_of("training")
    assert train["history"] == SETTINGS["training"]["history"]
    trial = trials(made(), RUN, "fedosd")[1]
    lr = float(trial.removeprefix("fedosd+lr"))
    unlearn, recover = spec(made(), "unlearn", RUN, trial), spec(made(), "recover", RUN, trial)
    assert (unlearn["rounds"], unlearn["local"]) == (SETTINGS["unlearning"]["rounds"], local_of("unlearning", lr=lr))
    first, total = SETTINGS["unlearning"]["rounds"], SETTINGS["total_rounds"]
    assert (recover["first_round"], recover["rounds"]) == (first, total - first)
    assert recover["client_weights"] == SETTINGS["recovery"]["client_weights"]
    data = SETTINGS["data"]
    assert (part["clients"], part["samples"], part["attacked"]) == (data["clients"], None, data["forget"]["clients"])
    assert part["validation_share"] == data["validation_share"] > 0  # of the training data, to choose rates on
    assert part["train_share"] == float(Fraction(data["train_share"]))
    assert part["attack"] == data["attack"]


def test_a_partition_is_told_its_plug_in_as_the_file_states_it() -> None:
    for name in ("mnist-pat20", "mnist-pat50", "cifar10-pat10", "cifar100-pat10"):
        stated = WRITTEN["scenarios"][name]["settings"]["data"]["partition"]
        assert spec(made(), "partition", f"fedosd/{name}/seed0")["partition"] == stated
    assert spec(made(), "partition", RUN)["partition"] == {"name": "iid", "params": {}}


@pytest.mark.usefixtures("with_toy")
def test_which_clients_are_forgotten_may_be_said() -> None:
    assert spec(Plan(toy(settings={"data": {"forget": {"clients": [3, 1]}}})), "partition", TOY)["attacked"] == [3, 1]


def test_a_scenario_without_an_attack_says_so_to_every_stage() -> None:
    planned = plan("smoke", scenarios={"fmnist-pat50-e5": {"settings": {"data": {"attack": None}}}})
    run = "fedosd/fmnist-pat50-e5/seed0"
    assert [spec(planned, stage, run)["attack"] for stage in ("partition", "train")] == [None, None]
    assert spec(made("smoke"), "train", PAT50)["attack"] == SETTINGS["data"]["attack"]["name"]


@pytest.mark.usefixtures("with_toy")
def test_who_is_forgotten_is_drawn_with_the_attack_or_apart_from_who_holds_what() -> None:
    asked = {"data": {"attack": None, "forget": {"clients": [3, 1]}}}
    planned = Plan(toy(scenarios={"pat": {"settings": asked}}, artefacts={"rounds": {"metrics": ["r_acc"]}}))
    run = "toy/pat/seed0"
    assert spec(planned, "partition", run)["attacked"] == []
    assert spec(planned, "request", run) == {"clients": [3, 1], "samples": None, "requests": 1, "seed": 0}
    assert planned.job("train", {"run": run, "trial": "original"}).inputs["request"] == []
    file = planned.paths("request", "request", run=run)
    for trial in ("retraining", "fedosd+lr0.005"):
        assert planned.job("unlearn", {"run": run, "trial": trial}).inputs["request"] == [file]
    assert planned.job("recover", {"run": run, "trial": "fedosd+lr0.005"}).inputs["request"] == [file]
    names = {"run": run, "trial": "original", "evaluation": "evaluation"}
    assert planned.job("evaluate", names).inputs["request"] == [file]
    assert {job.stage for job in made().jobs()} == {*OUTPUTS} - {
        "request",
        "predict",
        "relearn",
        "assess",
        "expose",
        "holdings",
        "oracles",
    }


@pytest.mark.usefixtures("with_toy")
def test_retraining_is_told_how_the_scenario_trains_and_no_other_method_is() -> None:
    planned = Plan(toy(settings={"training": {"method": {"params": {"client_weights": "equal"}}}}))
    trained = spec(planned, "train", TOY)["training"]
    assert trained == {"name": "fedavg", "params": {"client_weights": "equal"}}
    told = {
        trial: (spec(planned, "unlearn", TOY, trial)["training"], spec(planned, "unlearn", TOY, trial)["server"])
        for trial in ("retraining", "fupga+lr0.02", "fedosd+lr0.02")
    }
    assert told == {"retraining": (trained, None), "fupga+lr0.02": (None, None), "fedosd+lr0.02": (None, None)}


def test_the_epochs_of_a_scenario_hold_for_all_phases() -> None:
    run = "fedosd/fmnist-pat20-e5/seed0"
    epochs = WRITTEN["scenarios"]["fmnist-pat20-e5"]["settings"]["training"]["local_epochs"]
    assert epochs != SETTINGS["training"]["local_epochs"]
    trial = trials(made(), run, "fedosd")[0]
    for stage, name in (("train", None), ("unlearn", trial), ("recover", trial)):
        assert spec(made(), stage, run, name)["local"]["local_epochs"] == epochs
    assert spec(made(), "unlearn", run, "retraining")["local"] == spec(made(), "train", run)["local"]


def test_the_rate_of_post_training_is_that_of_unlearning_in_every_trial_of_the_paper() -> None:
    found = [(scope, name) for scope, names in made().names.items() if scope[1] == "fedosd" for name in names]
    assert len(found) >= 4 * 19
    for (scope, _), name in found:
        local = spec(made(), "recover", f"{scope}/seed0", name)["local"]
        assert local == spec(made(), "unlearn", f"{scope}/seed0", name)["local"]
        assert f"fedosd+lr{local['lr']:g}" == name


def test_the_published_codes_post_training_rate_comes_one_round_late() -> None:
    stated = WRITTEN["methods"]["fedosd.as-published-code"]["settings"]
    late = spec(made(), "recover", RUN, "fedosd.as-published-code")
    assert late["local"]["lr"] == stated["recovery"]["lr"]
    assert late["local"]["exception"] == [SETTINGS["unlearning"]["rounds"], stated["unlearning"]["lr"]]
    assert late["first_round"] == SETTINGS["unlearning"]["rounds"]
    assert late["projection"] == stated["recovery"]["projection"]
    assert spec(made(), "unlearn", RUN, "fedosd.as-published-code")["local"]["exception"] is None
    assert spec(made(), "recover", RUN, "fedosd+lr0.005")["local"]["exception"] is None


def test_conflicts_are_counted_where_the_file_asks_for_it() -> None:
    asked = {
        name: spec(made(), "unlearn", f"fedosd/{name}/seed0", trials(made(), f"fedosd/{name}/seed0", "fedosd")[0])
        for name in ("mnist-pat20", "cifar100-pat20", "mnist-iid", "fmnist-pat20")
    }
    assert {name: found["watch"] for name, found in asked.items()} == {
        "mnist-pat20": "conflicts",
        "cifar100-pat20": "conflicts",
        "mnist-iid": None,
        "fmnist-pat20": None,
    }


@pytest.mark.usefixtures("with_toy")
def test_post_training_knows_no_method() -> None:
    projection = {"recovery": {"projection": {"name": "away_from_original"}}}
    before, after = Plan(toy()), Plan(toy(methods={"fupga": {"settings": projection}}))
    fupga, fedosd = (text(before, "recover", TOY, f"{method}+lr0.02") for method in ("fupga", "fedosd"))
    assert text(after, "recover", TOY, "fupga+lr0.02") == fedosd != fupga
    assert [name for name in available("methods") if f'"{name}"' in fedosd] == []


def test_an_evaluation_is_told_the_roles_of_the_models_it_is_given() -> None:
    def evaluate(trial: str) -> Any:
        job = made().job("evaluate", {"run": PAT50, "trial": trial, "evaluation": "evaluation"})
        assert len(job.inputs["models"]) == len(job.inputs["traces"]) == len(json.loads(job.json)["roles"])
        return json.loads(job.json)["roles"]

    trials = ("original", "retraining", "fedosd+lr0.005", "fedosd+chosen", "fedosd.m2+lr0.005")
    assert [evaluate(trial) for trial in trials] == [
        ["original"],
        ["unlearned"],
        ["unlearned"],
        ["unlearned", "recovered"],
        ["unlearned"],
    ]


def test_an_evaluation_without_evaluators_is_not_run() -> None:
    planned = plan("smoke", scenarios={"mnist-pat20": {"settings": {"evaluations": {"own": ["forgotten"]}}}})
    without = plan("smoke", scenarios={"mnist-pat20": {"settings": {"evaluations": {"own": []}}}})
    settings = [one.trials["fedosd/mnist-pat20", "original"].settings.evaluations for one in (planned, without)]
    assert [*settings[1]] == [name for name in settings[0] if name != "own"] != []


def test_evaluators_apart_are_jobs_apart_and_made_where_an_artefact_shows_them() -> None:
    apart = {"evaluation": ["backdoor", "utility", "distance", "cost"], "clashes": ["conflicts"]}
    planned = plan("smoke", settings={"evaluations": apart})
    jobs = [job for job in planned.jobs() if job.stage == "evaluate" and job.names["evaluation"] != "audit"]
    jobs = [job for job in jobs if "-each-" not in job.names["run"]]  # which has evaluators of its own
    for job in jobs:
        assert json.loads(job.json)["evaluators"] == apart[job.names["evaluation"]]
    shown = [entry.scenarios for entry in planned.artefacts.values() if "conflicts" in entry.metrics]
    assert {job.names["run"] for job in jobs if job.names["evaluation"] == "clashes"} == {
        f"fedosd/{name}/seed0" for scenarios in shown for name in scenarios
    }


def test_what_is_counted_only_while_unlearning_has_a_column_and_no_file_elsewhere() -> None:
    names = {"run": "fedosd/mnist-pat20/seed0"}
    train, *later = (
        made("smoke").job(stage, names | {"trial": trial})
        for stage, trial in (("train", "original"), ("unlearn", "fedosd+lr0.02"), ("recover", "fedosd+lr0.02"))
    )
    assert {job.spec.counted for job in (train, *later)} == {("conflicts",)}  # type: ignore[attr-defined]
    assert train.spec.traced == ("backdoor", "utility", "distance")  # type: ignore[attr-defined]
    assert ["fu.evaluation.conflicts" in job.parts for job in (train, *later)] == [False, True, False]
