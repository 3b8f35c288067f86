"""Specs hold the values that a stage reads, as canonical JSON, and nothing that cannot change a result."""

import json
from fractions import Fraction
from typing import Any

import pytest

from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance.catalogue import available
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


def test_specs_hold_nothing_that_cannot_change_a_result() -> None:
    foreign = ["caption", "threads", "mem_mb", "device", "label", "title", "paper", "scenario", "grid", "source"]
    foreign += ["base", "post_training", "values", "preset", "shown_in", "evaluations"]
    jobs = [job for job in made().jobs() if job.names.get("run") in (None, PAT50) and job.stage != "publish"]
    assert {job.stage for job in jobs} >= {"data", "partition", "train", "unlearn", "recover", "evaluate", "select"}
    for job in jobs:
        assert [word for word in foreign if f'"{word}"' in job.json] == [], job.stem


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
    assert part["partition"] == {**data["partition"], "params": {}}


@pytest.mark.usefixtures("with_toy")
def test_who_is_forgotten_is_drawn_with_the_attack_or_apart_from_who_holds_what() -> None:
    forget = {"data": {"forget": {"clients": [3, 1]}}}
    marked = spec(Plan(toy(settings=forget)), "partition", TOY)
    assert (marked["attacked"], marked["attack"]["name"]) == ([3, 1], "patch")
    apart = toy(scenarios={"pat": {"settings": forget | {"data": {**forget["data"], "attack": None}}}})
    apart["overrides"]["toy"]["artefacts"] = {"rounds": {"metrics": ["r_acc"]}}
    planned, run, file = Plan(apart), "toy/pat/seed0", "results/paper/toy/pat/seed0/request.npz"
    assert [spec(planned, stage, run)["attack"] for stage in ("partition", "train")] == [None, None]
    assert spec(planned, "partition", run)["attacked"] == []
    assert spec(planned, "request", run) == {"clients": [3, 1], "samples": None, "requests": 1, "seed": 0}
    for stage, trial, files in (
        ("train", "original", []),
        *(("unlearn", trial, [file]) for trial in ("retraining", "fedosd+lr0.005")),
        ("recover", "fedosd+lr0.005", [file]),
        ("evaluate", "original", [file]),
    ):
        names = {"run": run, "trial": trial} | ({"evaluation": "evaluation"} if stage == "evaluate" else {})
        assert planned.job(stage, names).inputs["request"] == files, stage


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
    for name, watch in (("mnist-pat20", "conflicts"), ("cifar100-pat20", "conflicts"), ("mnist-iid", None)):
        run = f"fedosd/{name}/seed0"
        assert spec(made(), "unlearn", run, trials(made(), run, "fedosd")[0])["watch"] == watch


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

    assert evaluate("original") == ["original"]
    assert [evaluate(trial) for trial in ("retraining", "fedosd+lr0.005")] == [["unlearned"]] * 2
    assert evaluate("fedosd+chosen") == ["unlearned", "recovered"]


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
