"""Shadow models in the plan: one job per training, scenario and seed, and which jobs an edit runs."""

from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan import estimates, specs
from fu.pipeline.plan.plan import Plan
from tests.pipeline.configs import toy
from tests.pipeline.test_room import changed, of, table

ASKED: dict[str, Any] = {"data": {"attack": None, "forget": {"clients": 1}}}
ATTACKED = {**ASKED, "evaluations": {"attack": ["membership"]}}
RUN = "toy/one/seed0"
SHADOWS = {"run": RUN, "trial": "original"}


def planned(two: dict[str, Any] | None = None, **settings: Any) -> Plan:
    """Plan two scenarios on one training, the second with settings of its own, both attacked."""
    scenarios = {
        "one": {"label": "One", "base": "iid", "settings": {**ATTACKED, **settings}},
        "two": {"label": "Two", "base": "one", "settings": two or {}},
    }
    about = {"scenarios": ["one", "two"], "methods": ["retraining", "fedosd"], "metrics": ["mia_auc"]}
    return Plan(toy(scenarios=scenarios, artefacts={"mine": {**table(**about), "kind": "membership"}}))


def shadows_of(plan: Plan, run: str, trial: str, evaluation: str = "attack") -> object:
    return plan.job("evaluate", {"run": run, "trial": trial, "evaluation": evaluation}).inputs["shadows"]


def test_there_is_one_job_for_a_scenario_and_seed_whatever_the_methods(with_toy: Path) -> None:
    plan = planned(two={"data": {"forget": {"clients": [0]}}})
    assert of(plan, "shadow", "mine") == ["toy/one/seed0 original", "toy/two/seed0 original"]
    path = plan.paths("shadow", "shadows", **SHADOWS)
    for trial in ("original", "retraining", "fedosd+lr0.02"):
        assert shadows_of(plan, RUN, trial) == [path]
        assert shadows_of(plan, RUN, trial, "evaluation") == []
    job = plan.job("shadow", {"run": "toy/two/seed0", "trial": "original"})
    assert job.inputs == {
        "data": plan.paths("data", "archive", dataset="digits"),
        "partition": plan.paths("partition", "partition", run="toy/one/seed0"),
        "request": [plan.paths("request", "request", run="toy/two/seed0")],
        "chosen": [],
        "points": [],
    }
    assert plan.producers[path] == ("shadow", SHADOWS)


def test_a_model_is_attacked_with_shadows_of_its_own_training_at_its_own_rate() -> None:
    """FATS and what unlearns from it with FATS's, the others with FedAvg's; at chosen points as is chosen."""
    rated = {
        "label": "MNIST at a chosen rate",
        "base": "mnist-clients",
        "settings": {"data": {"held_out": 100}, "chosen_by": ["accuracy_held_out"]},
        "trainings": {"fats.training": {"grid": {"training.lr": [0.02, 0.05]}}},
    }
    laid = {"scenarios": {"rated": rated}, "artefacts": {"table1": {"scenarios": ["mnist-clients", "rated"]}}}
    plan = Plan({"preset": "smoke", "papers": ["fats"], "overrides": {"fats": laid}})
    clients, rates = "fats/mnist-clients/seed0", "fats/rated/seed0"
    trainings = {
        **{(clients, trial): "fats.training" for trial in ("fats.training", "fats")},
        **{(clients, trial): "fedavg" for trial in ("fedavg", "retraining", "fr2")},
        (rates, "fats+chosen"): "fats+chosen",
        (rates, "fats.training+chosen"): "fats.training+chosen",
    }
    for (run, trial), training in trainings.items():
        assert shadows_of(plan, run, trial) == [plan.paths("shadow", "shadows", run=run, trial=training)]

    def spec(trial: str, run: str = clients) -> Any:
        return plan.job("shadow", {"run": run, "trial": trial}).spec

    assert (spec("fats.training").training.name, spec("fats.training").with_replacement) == ("fats", True)
    assert (spec("fedavg").training.name, spec("fedavg").with_replacement) == ("fedavg", False)
    chosen = plan.job("shadow", {"run": rates, "trial": "fats+chosen"})
    points = {name: one.local.lr for name, one in spec("fats+chosen", rates).points.items()}
    assert points == {f"fats+trained-lr{lr}": lr for lr in (0.02, 0.05)}
    assert chosen.inputs["chosen"] == plan.job("unlearn", {"run": rates, "trial": "fats+chosen"}).inputs["chosen"]
    assert chosen.seconds > estimates.JOB_S  # no point's own job has trained them


def test_shadows_train_as_the_original_model_does(with_toy: Path) -> None:
    plan = planned(shadows={"number": 5, "most": 70}, training={"momentum": 0.5})
    trial = plan.trials["toy/one", "original"]
    like, found = specs.of_training(trial, 0), specs.of_shadows(trial, 0)
    for name in ("dataset", "model", "seed", "local", "rounds", "clients_per_round", "with_replacement", "training"):
        assert getattr(found, name) == getattr(like, name), name
    assert (found.number, found.most, found.attack) == (5, 70, None)
    assert found.local.momentum == 0.5
    assert plan.job("shadow", SHADOWS).spec == found


def test_attacks_take_a_while(with_toy: Path) -> None:
    plain, attack = (planned().job("evaluate", {**SHADOWS, "evaluation": name}) for name in ("evaluation", "attack"))
    assert attack.seconds - plain.seconds == pytest.approx(estimates.ATTACKS_S)


def test_without_an_attack_no_shadow_is_trained(with_toy: Path) -> None:
    assert "shadow" not in {stage for stage, _ in Plan(toy()).producers.values()}


@pytest.mark.parametrize("changes", [{"number": 9}, {"most": 50}])
def test_other_shadows_run_their_own_jobs_and_train_nothing_else(with_toy: Path, changes: dict[str, int]) -> None:
    """The attacks' own specs are as they were: their shadows' contents are other ones."""
    expected = {"shadow toy/one/seed0 original"}  # both ask for the same
    assert changed(planned(), planned(shadows=changes), "mine") == expected


def test_of_equal_scenarios_the_original_model_is_attacked_once_and_of_other_shadows_twice(with_toy: Path) -> None:
    def attacked(plan: Plan) -> list[str]:
        return [name for name in of(plan, "evaluate", "mine") if "original attack" in name]

    assert attacked(planned()) == ["toy/one/seed0 original attack"]
    assert attacked(planned(two={"shadows": {"number": 3}})) == [
        "toy/one/seed0 original attack",
        "toy/two/seed0 original attack",
    ]
