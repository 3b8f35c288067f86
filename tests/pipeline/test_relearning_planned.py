"""Relearning in the plan: a job a trial, with the same training for all, and what an edit runs."""

from collections import Counter
from functools import cache
from typing import Any

import pytest

from fu.artefacts.entry import Relearning
from fu.pipeline.plan import specs
from fu.pipeline.plan.plan import Plan
from fu.pipeline.settings.papers import read_paper
from tests.mistakes import has, sentence
from tests.pipeline.test_room import changed, jobs, of

SEEDS = (0, 1, 2)
SCENARIO = "audit/mnist-pat50"
ARTEFACTS = [name for name, about in read_paper("audit")["artefacts"].items() if about["kind"] != "verdicts"]
SHOWN = {
    "scenarios": ["mnist-pat50"],
    "methods": ["partly.0", "fedosd", "fats"],
    "against": ["retraining", "retraining.fats"],
}


def planned(shown: dict[str, Any] | None = None, **parts: Any) -> Plan:
    """Plan three repeats of relearning from FedOSD, FATS and a control, in place of the paper's other artefacts."""
    about = {"kind": "relearning", "metrics": ["forget_set_accuracy", "retained_accuracy"], **SHOWN, **(shown or {})}
    given = {"seeds": [*SEEDS], "artefacts": dict.fromkeys(ARTEFACTS, about), **parts}
    return Plan({"preset": "smoke", "papers": ["audit"], "overrides": {"audit": given}})


@cache
def plain() -> Plan:
    return planned()


def relearning(plan: Plan, trial: str) -> Any:
    return plan.job("relearn", {"scenario": SCENARIO, "trial": trial})


def test_the_jobs_behind_the_table() -> None:
    names = Counter(key.partition(" ")[0] for key in jobs(plain(), "relearning"))
    assert names == {
        **{"data": 1, "partition": 1, "request": 1, "train": 2 * 3, "unlearn": 5 * 3},
        **{"recover": 3, "relearn": 5, "publish": 1},
    }
    assert of(plain(), "relearn", "relearning") == [
        f"{SCENARIO} {trial}" for trial in ("fats", "fedosd", "partly.0", "retraining", "retraining.fats")
    ]


def test_the_last_models_train_on_beside_those_that_they_start_from() -> None:
    runs, paths = [f"{SCENARIO}/seed{seed}" for seed in SEEDS], plain().paths
    fedosd, fats = relearning(plain(), "fedosd"), relearning(plain(), "fats")
    assert fedosd.inputs["models"] == [paths("recover", "model", run=run, trial="fedosd") for run in runs]
    assert fedosd.inputs["originals"] == [paths("train", "model", run=run, trial="original") for run in runs]
    assert fats.inputs["models"] == [paths("unlearn", "model", run=run, trial="fats") for run in runs]
    assert fats.inputs["originals"] == [paths("train", "model", run=run, trial="fats.training") for run in runs]
    assert fedosd.inputs["partition"] == paths("partition", "partition", run=runs[0])
    assert fedosd.inputs["request"] == [paths("request", "request", run=runs[0])]
    assert fedosd.outputs["relearned"] == "results/smoke/audit/mnist-pat50/fedosd.relearned.csv"


def test_all_train_on_as_clients_do_after_unlearning_whatever_a_method_has_for_settings() -> None:
    """FATS draws clients for a round, EWCSGA's rates are its own."""
    found = {relearning(plain(), trial).json for trial in ("fats", "fedosd", "partly.0", "retraining")}
    assert len(found) == 1
    spec = relearning(plain(), "fats").spec
    assert (spec.local.lr, spec.local.batch_size, spec.local.local_steps) == (0.1, 20, 5)
    assert (spec.clients_per_round, spec.rounds, spec.samples, spec.seeds) == (None, 6, 10, SEEDS)
    assert spec.traced == ("clients", "forget_set")
    rate = {"methods": {"fedosd": {"settings": {"recovery": {"lr": 0.7}}}}}
    assert relearning(planned(**rate), "fedosd").json == relearning(plain(), "fedosd").json


def test_without_post_training_the_rates_are_those_of_unlearning() -> None:
    trial = plain().trials[SCENARIO, "original"]
    settings = trial.settings.model_copy(update={"recovery": None})
    assert trial.settings.unlearning
    assert specs.of_relearning(specs.Trial(settings), SEEDS).local.lr == trial.settings.unlearning.lr == 0.05


def test_a_backdoor_is_measured_where_there_is_one() -> None:
    settings = planned({"scenarios": ["mnist-backdoor"]}).trials["audit/mnist-backdoor", "original"].settings
    spec = specs.of_relearning(specs.Trial(settings), SEEDS)
    assert spec.traced == ("backdoor", "clients", "forget_set")
    assert spec.attack == "patch"


def test_another_attack_runs_its_own_jobs_and_no_training() -> None:
    found = changed(plain(), planned(settings={"relearning": {"samples": 5}}), "relearning")
    assert found == {
        *(key for key in jobs(plain(), "relearning") if key.startswith("relearn ")),
        "publish audit relearning",
    }


def test_a_method_that_goes_on_with_its_training_reads_what_that_has_kept() -> None:
    run = f"{SCENARIO}/seed2"
    kept = {
        trial: plain().job("unlearn", {"run": run, "trial": trial}).inputs["history"] for trial in ("fats", "fedosd")
    }
    assert kept == {"fats": [plain().paths("train", "history", run=run, trial="fats.training")], "fedosd": []}


def test_fewer_repeats_read_the_models_of_the_first_seeds() -> None:
    plan = planned(settings={"relearning": {"repeats": 2}})
    assert relearning(plan, "fats").spec.seeds == SEEDS[:2]
    assert len(relearning(plan, "fats").inputs["originals"]) == len(relearning(plan, "fats").inputs["models"]) == 2
    spec: Any = plan.job("publish", {"paper": "audit", "artefact": "relearning"}).spec
    assert spec.scenarios[0].relearning == Relearning(rounds=6, samples=10, repeats=2)


ALONE = {"methods": ["fats"], "against": ["retraining.fats"]}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"seeds": [0]}, "kind relearning needs at least 2 repeats of 'mnist-pat50', got 1"),
    ({"settings": {"relearning": {"repeats": 1}}}, "needs at least 2 repeats of 'mnist-pat50', got 1"),
    ({"shown": {"metrics": ["ulira_auc"]}}, "'ulira_auc' is not measured in relearning"),
    ({"shown": {"metrics": ["retained_accuracy"]}}, "metrics: kind relearning needs forget_set_accuracy"),
    ({"shown": {"metrics": ["forget_set_accuracy", "asr"]}},
     "asr needs data.attack, which 'mnist-pat50' does not have"),
    ({"shown": {"against": ["retraining"]}}, "against: lists no retraining of 'fats.training', with which 'fats'"),
    ({"shown": ALONE, "settings": {"data": {"forget": {"clients": None, "samples": 2}}}},
     "'mnist-pat50' needs data.forget.clients: kind relearning"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_relearn_is_refused(parts: dict[str, Any], words: str) -> None:
    has(sentence(lambda: planned(**parts)), words)


def test_one_sample_must_be_left_to_measure_on() -> None:
    _, train, held_out = plain().trials[SCENARIO, "original"].settings.data.fewest
    assert held_out > 0
    left = train - held_out
    planned(settings={"relearning": {"samples": left - 1}})
    text = sentence(lambda: planned(settings={"relearning": {"samples": left}}))
    has(text, f"relearning.samples of 'mnist-pat50': {left} of the smallest client's at most {left} training samples")
