"""Requests that a method cannot meet: told in one sentence before any job."""

from typing import Any

import pytest

from fu.pipeline.plan.grid import completed
from fu.pipeline.plan.plan import Plan
from tests.mistakes import has, sentence
from tests.pipeline.plans import made


def fats(**laid: Any) -> Plan:
    """Plan FATS with something laid over the paper."""
    return Plan({"preset": "smoke", "papers": ["fats"], "overrides": {"fats": laid}})


def samples(**settings: Any) -> dict[str, Any]:
    """Return overrides of the MNIST scenario with sample requests."""
    return {"scenarios": {"mnist-samples": {"settings": settings}}}


def mine(plugin: str, trained_by: str = "original", **about: Any) -> dict[str, Any]:
    """Return overrides that add a method for sample requests."""
    entry = {"label": "Mine", "source": "this test", "in_paper": False, "post_training": "none", "shown_in": ["fig5"]}
    return {"methods": {"mine": {**entry, "plugin": plugin, "trained_by": trained_by, **about}}}


def training(**settings: Any) -> dict[str, Any]:
    return {"trainings": {"fats.training": {"settings": {"training": settings}}}}


PUBLISHED = ("fats_as_published", "fats.training-as-published")
SEVERAL = {"data": {"forget": {"requests": 2}}, "unlearning": {"rounds": 8}}
FOREST = {"evaluations": {"attack": ["membership_forest"]}}
RECORDED = {"history": ["retained_means"], "clients_per_round": None}

REFUSED: list[tuple[dict[str, Any], str]] = [
    (mine("fedosd"),
     "scenario mnist-samples, method mine: data.forget.samples: fedosd forgets only whole clients; allowed: fats, "
     "fats_as_published, fine_tuning, fr2, random_weights, retrain, untouched."),
    (mine("fats", "fedavg"), "method mine: fats continues training by fats, got fedavg; set trained_by."),
    (mine("fats", "fats.training", settings={"unlearning": {"lr": 0.3}}),
     "method mine: unlearning.lr: fats continues the training; allowed: 0.03, as in training."),
    (samples(unlearning={"rounds": 40}), "unlearning.rounds: fats completes the training; allowed: 20, the rounds of"),
    (samples(unlearning={"rounds": 7}), "unlearning.rounds: fats completes the training; allowed: 20, the rounds of"),
    ({"scenarios": {"mnist-as-published-clients": {"settings": SEVERAL}}},
     "method fats.as-published: data.forget.requests: fats_as_published supports only one request; allowed: 1."),
    ({"scenarios": {"mnist-stream-clients": {"settings": {"training": {"lr_decay": 0.9}}}}},
     "method retraining: unlearning.lr_decay: retrain restarts at every request; allowed: 1."),
    ({"methods": {"mine": {**mine("puf")["methods"]["mine"], "shown_in": ["fig8_single"]}}},
     "method mine: data.forget.requests: puf supports only one request; allowed: 1."),
    (training(with_replacement=False), "training.with_replacement: fats needs true."),
    (training(clients_per_round=None), "training.with_replacement: requires clients_per_round."),
    (mine("fr2", "fedavg"), "method mine: unlearning.momentum: fr2 has its own momentum; allowed: 0."),
    ({"scenarios": {"shakespeare": {"settings": FOREST}}}, "evaluations: membership_forest needs images, but"),
    ({"trainings": {"fedavg": {"settings": {"training": RECORDED}}}},
     "training.history: retained_means needs data.attack, which determines the forgotten clients."),
    (samples(data={"forget": {"clients": 2}}), "clients, samples: set exactly one of them"),
    (samples(data={"forget": {"requests": 3}}, unlearning={"rounds": 20}), "multiple of forget.requests (3)"),
    (samples(data={"forget": {"samples": 760, "requests": 2}}),
     "forget.samples: cannot forget 1520 of 1520 training samples; some must remain"),
]  # fmt: skip


@pytest.mark.parametrize(("laid", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_a_training_or_a_method_cannot_do_is_refused(laid: dict[str, Any], words: str) -> None:
    has(sentence(lambda: fats(**laid)), words)


def test_what_is_just_possible_is_planned() -> None:
    assert fats(**samples(data={"forget": {"samples": 1519}}))
    assert fats(**mine(*PUBLISHED, settings={"unlearning": {"rounds": 7}, "total_rounds": 7}))


def test_rounds_follow_from_training_for_every_request() -> None:
    planned = fats(**samples(data={"forget": {"requests": 3}}))
    settings = planned.trials["fats/mnist-samples", "fats"].settings
    assert settings.unlearning is not None
    assert (settings.training.rounds, settings.unlearning.rounds, settings.total_rounds) == (20, 60, 60)


def test_without_a_training_validation_says_so() -> None:
    filled = completed({"unlearning": {}, "data": {"forget": {"samples": 1}}}, "none")
    assert (filled["unlearning"]["rounds"], filled["total_rounds"]) == (None, None)


def test_the_plan_says_what_keeping_models_costs_on_the_disk() -> None:
    megabytes = {}
    for every in (7, None):
        planned = fats(trainings={"fats.training": {"params": {"keep_every": every}}})
        names = {"run": "fats/mnist/seed0", "trial": "fats.training"}
        megabytes[every] = planned.job("train", names).disk_mb
    one = 51_210 * 4 / 1e6
    assert megabytes[7] - megabytes[None] == pytest.approx(2 * one)  # of 20 rounds the starts of 0, 7 and 14


# ---- what an edit runs -----------------------------------------------------------------------------------------------


def specs(planned: Plan) -> dict[str, str]:
    """Return the jobs of all artefacts by name, with what they are given."""
    return {" ".join([job.stage, *job.names.values()]): job.json for job in planned.jobs()}


def changed(**laid: Any) -> set[str]:
    """Return the jobs, but for artefacts, that something laid over the paper makes other ones."""
    before = specs(made("smoke", "fats"))
    after = specs(fats(**laid))
    return {name for name, spec in after.items() if before.get(name) != spec and not name.startswith("publish ")}


def test_the_full_rerun_runs_no_training_and_no_other_method() -> None:
    found = changed(methods={"fats": {"params": {"full": True}}})
    assert {name.split()[0] for name in found} == {"unlearn"}
    assert {name.split()[2].partition("+")[0] for name in found} == {"fats"}
    assert len(found) == 21  # Figures 1 and 5: 12, eight streams, the printed optimiser


def test_what_a_training_keeps_is_part_of_that_training_alone() -> None:
    laid = {"femnist": {"trainings": {"fats.training": {"params": {"keep_every": 5}}}}}
    assert changed(scenarios=laid) == {"train fats/femnist/seed0 fats.training"}


def test_both_levels_of_a_data_set_share_their_trainings() -> None:
    jobs = specs(made("smoke", "fats"))
    places = ("train fats/cifar10/", "train fats/cifar10-")
    trained = {name.removeprefix("train ") for name in jobs if name.startswith(places)}
    published = {f"fats/cifar10-as-published/seed0 {one}" for one in ("fats.training-as-published", "fedavg")}
    assert trained - published == {"fats/cifar10/seed0 fats.training", "fats/cifar10/seed0 fedavg"}
    assert trained > published
