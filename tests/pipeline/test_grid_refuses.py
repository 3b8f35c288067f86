"""What cannot be planned is refused before the first job, in one sentence: names, plug-ins, grids, histories."""

import math
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan import Plan
from tests.mistakes import has, sentence
from tests.pipeline.configs import artefact, grid, method, scenario, settings, toy

INFINITE = math.inf
TOY = "config.yaml: overrides.toy"

PLANS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "an unknown method in a scenario": (
        toy(scenarios={"iid": {"methods": {"fedosdd": {}}}}),
        (f"{TOY}: scenarios.iid.methods: there is no 'fedosdd'", "did you mean 'fedosd'?"),
    ),
    "a scenario's method that touches what all share": (
        toy(scenarios={"iid": {"methods": {"fedosd": {"data": {}}}}}),
        ("methods.fedosd.settings: 'data' is shared by all methods",),
    ),
    "two methods with one label": (
        method("mine", label="FUPGA", source="y", plugin="fedosd"),
        (f"{TOY}: methods.mine.label: 'FUPGA' is 'fupga' already; give it another one.",),
    ),
    "a table without methods": (
        artefact("numbers", methods=[]),
        ("artefacts.numbers: kind table needs methods (or trainings) and metrics; name at least one of each.",),
    ),
    "curves of no scenario": (
        artefact("rounds", scenarios=[]),
        ("artefacts.rounds: kind curves needs scenarios; name at least one.",),
    ),
    "curves of what is not measured per round": (
        artefact("rounds", metrics=["r_acc_validation"]),
        ("'r_acc_validation' is not measured per round", "allowed: accuracy, accuracy_held_out, asr"),
    ),
    "unknown model": (
        settings(model={"name": "lenet"}),
        (
            "there is no models plug-in 'lenet'",
            "did you mean 'lenet5'?",
            "allowed: cnn, lenet5, logistic, lstm, mcmahan_cnn, mlp",
        ),
    ),
    "wrong hyper-parameter of a model": (
        settings(model={"name": "mlp", "params": {"hidden": 0}}),
        (f"{TOY}: model: params.hidden: Input should be greater than 0, got 0",),
    ),
    "unknown training": (
        settings(training={"method": {"name": "fedagv"}}),
        (
            "there is no training plug-in 'fedagv'",
            "did you mean 'fedavg'?",
            "allowed: fats, fedavg, safari, server_sgd",
        ),
    ),
    "unknown evaluator": (
        settings(evaluations={"evaluation": ["bckdoor"]}),
        (
            "there is no evaluation plug-in 'bckdoor'",
            "did you mean 'backdoor'?",
            "allowed: accuracy, backdoor, conflicts",
        ),
    ),
    "a file of the evaluation folder that is no evaluator": (
        settings(evaluations={"evaluation": ["selection"]}),
        ("there is no evaluation plug-in 'selection'", "allowed: accuracy, backdoor, conflicts"),
    ),
    "unknown history": (
        settings(training={"history": ["last_local_models", "foo"]}),
        (
            "training.history: there is no histories plug-in 'foo'",
            "allowed: last_local_models, update_norms, update_sums",
        ),
    ),
    "a method without its history": (
        settings(training={"history": []}),
        (
            f"{TOY}: method fupga",
            ": needs the history 'last_local_models'",
            "add it to settings.training.history",
            "recorded: none",
        ),
    ),
    "a method without its history where others have theirs": (
        settings(training={"history": ["update_norms", "update_sums"]}),
        (
            f"{TOY}: method fupga",
            ": needs the history 'last_local_models'",
            "add it to settings.training.history",
            "recorded: update_norms, update_sums",
        ),
    ),
    "an evaluator that cannot be traced": (
        settings(recovery={"traced": ["cost"]}),
        (
            f"{TOY}: scenario iid: recovery.traced: 'cost' defines no trace",
            "allowed: accuracy, backdoor, conflicts, distance, predicted_classes, utility.",
        ),
    ),
    "unknown method plug-in": (
        method("fedosd", plugin="fedods"),
        (f"{TOY}: methods.fedosd: there is no methods plug-in 'fedods'", "did you mean 'fedosd'?"),
    ),
    "unknown hyper-parameter of a method": (
        method("fedosd", params={"los": "uce"}),
        (
            f"{TOY}: method fedosd: params.los: unknown key",
            "did you mean 'loss'? allowed: clip, direction, loss",
        ),
    ),
    "wrong hyper-parameter of a method": (
        method("fedosd", params={"loss": "ce"}),
        ("params.loss: Input should be 'uce', 'ascent' or 'uce-undivided', got 'ce'",),
    ),
    "a method that sets what all methods share": (
        method("fedosd", settings={"data": {"clients": 5}}),
        (
            f"{TOY}: methods.fedosd.settings: 'data' is shared by all methods",
            "a method may set unlearning, recovery, total_rounds, grid",
        ),
    ),
    "unknown scenario of an artefact": (
        artefact("numbers", scenarios=["pt"]),
        (f"{TOY}: artefacts.numbers: there is no scenario 'pt'", "did you mean 'pat'?"),
    ),
    "unknown method of an artefact": (
        artefact("numbers", methods=["fedods"]),
        (f"{TOY}: artefacts.numbers: there is no method 'fedods'", "did you mean 'fedosd'?", "allowed: fedosd"),
    ),
    "unknown metric of an artefact": (
        artefact("numbers", metrics=["acc"]),
        (
            f"{TOY}: artefacts.numbers: there is no metric 'acc'",
            "did you mean 'r_acc'?",
            "allowed: r_acc, accuracy",
        ),
    ),
    "unknown kind of artefact": (
        artefact("numbers", kind="tabel"),
        (
            "artefacts.numbers: there is no artefacts plug-in 'tabel'",
            "did you mean 'table'?",
            "allowed: across, classes, curves, gains",
        ),
    ),
    "an artefact with published numbers but no file": (
        artefact("losses", published=True),
        ("artefacts.losses: published is true, but workflow/published/toy/losses.csv does not exist",),
    ),
    "bars without methods": (
        artefact("bars", methods=[]),
        ("artefacts.bars: kind table needs methods (or trainings) and metrics; name at least one of each",),
    ),
    "a running time of nothing that is counted": (
        artefact("times", metrics=[]),
        ("artefacts.times: kind runtime needs methods (or trainings) and metrics; name at least one of each",),
    ),
    "an axis of no scenario": (
        artefact("rates", scenarios=[]),
        ("artefacts.rates: kind across needs scenarios; name at least one",),
    ),
    "a scenario on an unknown base": (
        scenario("pat", base="idd"),
        (
            f"{TOY}: scenarios.pat.base: there is no scenario 'idd'",
            "did you mean 'iid'? allowed: iid, pat",
        ),
    ),
    "a scenario on an unknown base further up": (
        scenario("iid", base="ii"),
        (f"{TOY}: scenarios.iid.base: there is no scenario 'ii'", "did you mean 'iid'?"),
    ),
    "a scenario on itself": (
        scenario("iid", base="iid"),
        (f"{TOY}: scenarios.iid.base: 'iid' is built on itself; name another scenario",),
    ),
    "two scenarios on each other": (
        scenario("iid", base="pat"),
        (".base: 'iid' is built on itself; name another scenario",),
    ),
    "a method from the unlearned model of an unknown one": (
        method("fedosd.m5", unlearned_from="fedods"),
        (
            f"{TOY}: methods.fedosd.m5.unlearned_from: there is no method 'fedods'",
            "did you mean 'fedosd'? allowed: fedosd, fedosd.m5, fedosd.rates, fupga",
        ),
    ),
    "a method from the unlearned model of one that has none": (
        method("fedosd.rates", unlearned_from="fedosd.m5"),
        ("methods.fedosd.rates.unlearned_from: 'fedosd.m5' has no unlearning of its own",),
    ),
    "a method from its own unlearned model": (
        method("fedosd.m5", unlearned_from="fedosd.m5"),
        ("methods.fedosd.m5.unlearned_from: 'fedosd.m5' has no unlearning of its own",),
    ),
    "a method from the model of one that takes all rounds": (
        method("fedosd.m5", unlearned_from="retraining"),
        ("scenarios.pat: a method that starts from 'retraining' must have its unlearning settings",),
    ),
    "a scenario's unlearning rounds where nothing is unlearned": (
        scenario("pat", methods={"fedosd.m5": {"unlearning": {"rounds": 1}}}),
        (
            "scenarios.pat: a method that starts from 'fedosd'",
            "must have its unlearning settings; only recovery, total_rounds and the recovery grid may differ",
        ),
    ),
    "unknown projection": (
        settings(recovery={"projection": {"name": "away_from_orignal"}}),
        (
            "scenario iid, method retraining: there is no projections plug-in 'away_from_orignal'",
            "did you mean 'away_from_original'? allowed: away_from_original",
        ),
    ),
    "a hyper-parameter that a projection does not have": (
        method("fedosd", settings={"recovery": {"projection": {"params": {"were": "always"}}}}),
        ("recovery.projection: params.were: unknown key", "did you mean 'where'? allowed: where"),
    ),
    "a wrong hyper-parameter of a projection": (
        method("fedosd", settings={"recovery": {"projection": {"params": {"where": "never"}}}}),
        ("recovery.projection: params.where: Input should be 'conflicting' or 'always', got 'never'",),
    ),
    "a grid of what a grid cannot hold": (
        grid("fupga", {"training.lr": [0.1, 0.2]}),
        ("method fupga: grid", "'training.lr'", "unlearning", "recovery", "params"),
    ),
    "a grid of a setting without its phase": (grid("fupga", {"lr": [0.1]}), ("method fupga: grid", "'lr'")),
    "a grid of an unknown setting": (
        grid("fupga", {"unlearning.lrr": [0.1]}),
        ("method fupga: unlearning.lrr: unknown key", "did you mean 'lr'?"),
    ),
    "a grid of an unknown hyper-parameter": (
        grid("fedosd", {"params.los": ["uce"]}),
        ("method fedosd: params.los: unknown key", "did you mean 'loss'?"),
    ),
    "a grid with a wrong hyper-parameter": (
        grid("fupga", {"params.clip": [1, -1]}),
        ("params.clip: Input should be greater than or equal to 0, got -1",),
    ),
    "a grid with a negative rate": (
        grid("fupga", {"unlearning.lr": [0.1, -0.1]}),
        ("iid, method fupga: unlearning.lr: Input should be greater than 0, got -0.1",),
    ),
    "a grid with an infinite rate": (
        grid("fupga", {"unlearning.lr": [0.1, INFINITE]}),
        ("config: overrides.toy.methods.fupga.settings.grid.unlearning.lr.1: must be a finite number, got inf",),
    ),
    "a grid with a truth value": (
        grid("fupga", {"unlearning.lr": [True]}),
        ("method fupga: unlearning.lr: Input should be a valid number, got True",),
    ),
    "a grid with a rate that YAML reads as text": (
        grid("fupga", {"unlearning.lr": ["1e-3"]}),
        ("method fupga: unlearning.lr: Input should be a valid number, got '1e-3'", "needs a decimal point: 1.0e-3"),
    ),
    "a grid with more unlearning rounds than total rounds": (
        toy(
            scenarios={"iid": {"settings": {"total_rounds": 6}}},
            methods={"fupga": {"settings": {"grid": {"unlearning.rounds": [2, 7]}}}},
        ),
        ("method fupga: unlearning.rounds: 7 rounds exceed total_rounds, 6",),
    ),
    "a grid with one value twice": (
        grid("fupga", {"unlearning.lr": [0.1, 0.1]}),
        ("methods.fupga: grid: 'fupga+lr0.1' becomes a file name; values must differ within six digits",),
    ),
    "a grid with two values of one name": (
        grid("fupga", {"unlearning.lr": [0.1, 0.10000001]}),
        ("methods.fupga: grid: 'fupga+lr0.1' becomes a file name; values must differ within six digits",),
    ),
    "a grid with a value outside results": (
        grid("fedosd", {"params.loss": ["../x"]}),
        ("methods.fedosd: grid: 'fedosd+lr", "-loss../x' becomes a file name", "words of letters, digits, dots"),
    ),
    "a rate that a grid would replace": (
        method("fupga", settings={"unlearning": {"lr": 0.3}, "grid": {"unlearning.lr": [0.1, 0.2]}}),
        (
            "methods.fupga.settings: unlearning.lr is set, but its grid [0.1, 0.2] would replace it",
            "write grid: {unlearning.lr: [0.3]} instead",
        ),
    ),
    "a scenario's rate that the common grid would replace": (
        scenario("iid", methods={"fupga": {"unlearning": {"lr": 0.3}}}),
        ("methods.fupga.settings: unlearning.lr is set, but its grid", "write grid: {unlearning.lr: [0.3]} instead"),
    ),
    "a grid as a number": (grid("fupga", 5), ("grid: Input should be a valid dictionary, got 5",)),
    "a common grid as a number": (settings(grid=5), ("grid: Input should be a valid dictionary, got 5",)),
    "no grid at all": (grid("fupga", None), ("grid: Input should be a valid dictionary, got None",)),
    "a grid with a rate outside a list": (
        grid("fupga", {"unlearning.lr": 0.1}),
        ("unlearning.lr: Input should be a valid list, got 0.1",),
    ),
    "a grid and nothing held out to choose on": (
        toy(
            settings={"data": {"validation_share": 0}},
            methods={"fupga": {"settings": {"grid": {"unlearning.lr": [0.1, 0.2]}}}},
        ),
        (
            "scenarios.iid: data.validation_share is 0, but fupga has a grid",
            "its best point is chosen on validation data, so hold some out",
        ),
    ),
    "an axis that is in no grid": (
        artefact("rates", methods=["retraining"]),
        ("artefacts.rates: x: 'recovery.lr' is no coordinate of 'iid' and in no grid",),
    ),
    "marks that a kind does not draw": (
        artefact("bars", marks="bar"),
        ("artefacts.bars: marks: kind table has no 'bar'; did you mean 'bars'? allowed: bars",),
    ),
    "marks of a kind that has none": (
        artefact("rounds", marks="bars"),
        ("artefacts.rounds: marks: kind curves has no 'bars'; allowed: none",),
    ),
    "a metric that no evaluation has": (
        settings(evaluations={"evaluation": ["backdoor", "distance", "cost"]}),
        ("artefacts.numbers: no evaluation of 'iid' has the metric 'r_acc'; add its evaluator",),
    ),
    "a choice by two evaluations": (
        settings(evaluations={"evaluation": ["backdoor", "distance", "conflicts", "cost"], "own": ["utility"]}),
        (
            "scenarios.pat: evaluations: fedosd has a grid; its best point is chosen by",
            "by r_acc_validation and asr_validation, so their evaluators must be in one evaluation.",
        ),
    ),
    "unlearning rounds of a method that takes all": (
        method("retraining", settings={"unlearning": {"rounds": 3}}),
        ("methods.retraining.settings: unlearning.rounds: with post_training: own, the method runs for total_rounds",),
    ),
}


@pytest.mark.parametrize(("values", "words"), PLANS.values(), ids=PLANS)
@pytest.mark.usefixtures("with_toy")
def test_what_cannot_be_planned_is_told_in_one_sentence(values: dict[str, Any], words: tuple[str, ...]) -> None:
    has(sentence(lambda: Plan(values)), *words)


@pytest.mark.usefixtures("with_toy")
def test_nothing_is_held_out_where_nothing_is_chosen() -> None:
    alone = {"pat": {"methods": {"fedosd": {"grid": {"unlearning.lr": [0.02]}}}}}
    planned = Plan(toy(settings={"data": {"validation_share": 0}}, scenarios=alone))
    assert planned.trials["toy/pat", "original"].settings.data.validation_share == 0
    assert len(planned.names["toy/iid", "fedosd.rates"]) > 1  # rates shows them all


EVALUATED = {name: {"metrics": ["asr"]} for name in ("numbers", "utility", "bars", "rounds")}
NO_ATTACK = {name: {"metrics": ["r_acc"]} for name in ("numbers", "utility", "bars", "rounds", "rates")}
MANY = [k / 100 for k in range(1, 41)]

TOYS: dict[str, tuple[dict[str, Any], str]] = {
    "a choice without R-Acc": (
        toy(settings={"evaluations": {"evaluation": ["backdoor"]}}, artefacts=EVALUATED),
        f"{TOY}: scenarios.pat: evaluations: fedosd has a grid; its best point is chosen "
        "by r_acc_validation and asr_validation, so their evaluators must be in one evaluation.",
    ),
    "a choice without ASR, where there is an attack": (
        toy(settings={"evaluations": {"evaluation": ["utility"]}}, artefacts=NO_ATTACK),
        f"{TOY}: scenarios.pat: evaluations: fedosd has a grid; its best point is chosen "
        "by r_acc_validation and asr_validation, so their evaluators must be in one evaluation.",
    ),
    "a validation share of less than a sample": (
        toy(settings={"data": {"validation_share": 0.01}}),
        f"{TOY}: scenarios.pat: data.validation_share: 0.01 holds out none of the smallest client's training "
        "samples (at most 80), but fedosd needs some to choose the best point of its grid",
    ),
    "more clients than validation samples": (
        toy(settings={"data": {"clients": 80}}),
        "data.validation_share: 0.1 holds out none of the smallest client's training samples (at most 4)",
    ),
    "a training share of less than a sample": (
        toy(settings={"data": {"train_share": 0.001}}),
        "data: train_share: 0.001 leaves a client of 100 samples 0 for training and 100 for testing",
    ),
    "an axis of one of two settings that vary": (
        toy(methods={"fedosd.rates": {"settings": {"grid": {"unlearning.lr": [0.02, 0.005]}}}}),
        "artefacts.rates: points of 'fedosd.rates' in 'iid' cannot be told apart; name in x, lines or panels every",
    ),
    "an axis of a setting that a method's grid does not vary": (
        toy(artefacts={"rates": {"scenarios": ["pat"], "methods": ["fedosd.rates", "fedosd"]}}),
        "artefacts.rates: points of 'fedosd' in 'pat' cannot be told apart; name in x, lines or panels every",
    ),
    "all points of a grid in a table": (
        toy(artefacts={"numbers": {"points": "all"}}),
        "artefacts.numbers: points of 'fedosd' in 'pat' cannot be told apart; name in x, lines or panels every",
    ),
    "bars of the original model alone": (
        toy(artefacts={"bars": {"stages": ["original"]}}),
        f"{TOY}: artefacts.bars: stages: bars cannot show 'original' for 'iid'; allowed: unlearned, recovered.",
    ),
    "bars of post-training where none follows": (
        toy(artefacts={"bars": {"methods": ["retraining"]}}),
        f"{TOY}: artefacts.bars: stages: bars cannot show 'recovered' for 'iid'; allowed: unlearned.",
    ),
    "a table of post-training alone where none follows": (
        toy(artefacts={"utility": {"methods": ["retraining"], "stages": ["recovered"]}}),
        "artefacts.utility: stages: kind table cannot show 'recovered' for 'pat'; allowed: original, unlearned.",
    ),
    "curves of conflicts that nobody counts": (
        toy(artefacts={"rounds": {"metrics": ["conflicts"]}}),
        "artefacts.rounds: no scenario has the metric 'conflicts'; it needs settings.unlearning.conflicts.",
    ),
    "an axis of the success of no attack": (
        toy(settings={"data": {"attack": None}}),
        "artefacts.rates: no scenario has the metric 'asr'; it needs settings.data.attack.",
    ),
    "a running time of what does not add up": (
        toy(artefacts={"times": {"metrics": ["asr"]}}),
        f"{TOY}: artefacts.times: 'asr' does not add up over rounds; allowed: client_rounds, steps",
    ),
    "a grid of more points than anybody waits for": (
        toy(methods={"fupga": {"settings": {"grid": {"unlearning.lr": MANY, "recovery.lr": MANY}}}}),
        f"{TOY}: methods.fupga: grid: has more than 1000 points; name fewer values.",
    ),
    "a grid with a value of 200 letters": (
        toy(methods={"fedosd": {"settings": {"grid": {"params.loss": ["x" * 200]}}}}),
        "becomes a file name; values must differ within six digits",
    ),
}


@pytest.mark.parametrize(("values", "words"), TOYS.values(), ids=TOYS)
def test_what_would_fail_after_all_training_is_told_before(with_toy: Path, values: dict[str, Any], words: str) -> None:
    has(sentence(lambda: Plan(values)), words)


def test_the_small_paper_that_all_these_change_is_right(with_toy: Path) -> None:
    assert len(Plan(toy()).artefacts) == 8


def test_a_choice_without_an_attack_needs_no_success_of_it(with_toy: Path) -> None:
    evaluated = {"data": {"attack": None}, "evaluations": {"evaluation": ["utility"]}}
    assert Plan(toy(settings=evaluated, artefacts=NO_ATTACK)).names["toy/pat", "fedosd"]


def test_a_published_table_without_its_file_is_told_in_one_sentence(own_toy: Path) -> None:
    (own_toy / "published" / "toy" / "numbers.csv").unlink()
    text = sentence(lambda: Plan(toy()))
    has(text, "artefacts.numbers: published is true, but workflow/published/toy/numbers.csv does not exist")


@pytest.mark.usefixtures("with_toy")
def test_an_image_of_no_attack_is_told_in_one_sentence() -> None:
    planned = Plan(toy(settings={"data": {"attack": None}}, artefacts=NO_ATTACK))
    text = sentence(lambda: planned.job("publish", {"paper": "toy", "artefact": "triggers"}))
    has(text, f"{TOY}: artefacts.triggers: 'iid' has no attack to show")
