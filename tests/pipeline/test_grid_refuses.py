"""What cannot be planned is refused before the first job, in one sentence: names, plug-ins, grids, histories."""

import math
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan import Plan
from tests.mistakes import has, sentence
from tests.pipeline.configs import artefact, config, grid, laid_over, method, scenario, settings, toy

INFINITE = math.inf
FEDOSD, TOY = "config.yaml: overrides.fedosd", "config.yaml: overrides.toy"

PLANS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "an unknown method in a scenario": (
        laid_over(scenarios={"mnist-iid": {"methods": {"fedosdd": {}}}}),
        (f"{FEDOSD}: scenarios.mnist-iid.methods: there is no 'fedosdd'", "did you mean 'fedosd'?"),
    ),
    "a scenario's method that touches what all share": (
        laid_over(scenarios={"mnist-iid": {"methods": {"fedosd": {"data": {}}}}}),
        ("methods.fedosd.settings: 'data' is shared by all methods",),
    ),
    "two methods with one label": (
        method("mine", label="FUPGA", source="y", plugin="fedosd"),
        (f"{FEDOSD}: methods.mine.label: 'FUPGA' is 'fupga' already; give it another one.",),
    ),
    "a table without methods": (
        artefact("table8", methods=[]),
        ("artefacts.table8: kind table needs methods (or trainings) and metrics; name at least one of each.",),
    ),
    "curves of no scenario": (
        artefact("mnist_curves", scenarios=[]),
        ("artefacts.mnist_curves: kind curves needs scenarios; name at least one.",),
    ),
    "curves of what is not measured per round": (
        artefact("mnist_curves", metrics=["r_acc_validation"]),
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
        (f"{FEDOSD}: model: params.hidden: Input should be greater than 0, got 0",),
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
            f"{FEDOSD}: method federaser",
            ": needs the history 'update_norms'",
            "add it to settings.training.history",
            "recorded: none",
        ),
    ),
    "a method without its history where others have theirs": (
        settings(training={"history": ["update_norms", "update_sums"]}),
        (
            f"{FEDOSD}: method fupga",
            ": needs the history 'last_local_models'",
            "add it to settings.training.history",
            "recorded: update_norms, update_sums",
        ),
    ),
    "an evaluator that cannot be traced": (
        settings(recovery={"traced": ["cost"]}),
        (
            f"{FEDOSD}: scenario fmnist-pat20: recovery.traced: 'cost' defines no trace",
            "allowed: accuracy, backdoor, conflicts, distance, predicted_classes, utility.",
        ),
    ),
    "unknown method plug-in": (
        method("fedosd", plugin="fedods"),
        (f"{FEDOSD}: methods.fedosd: there is no methods plug-in 'fedods'", "did you mean 'fedosd'?"),
    ),
    "unknown hyper-parameter of a method": (
        method("fedosd", params={"los": "uce"}),
        (
            f"{FEDOSD}: method fedosd: params.los: unknown key",
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
            f"{FEDOSD}: methods.fedosd.settings: 'data' is shared by all methods",
            "a method may set unlearning, recovery, total_rounds, grid",
        ),
    ),
    "unknown scenario of an artefact": (
        artefact("table8", scenarios=["mnist-pat2"]),
        (f"{FEDOSD}: artefacts.table8: there is no scenario 'mnist-pat2'", "did you mean 'mnist-pat20'?"),
    ),
    "unknown method of an artefact": (
        artefact("table8", methods=["fedods"]),
        (f"{FEDOSD}: artefacts.table8: there is no method 'fedods'", "did you mean 'fedosd'?", "allowed: ewcsga"),
    ),
    "unknown metric of an artefact": (
        artefact("table8", metrics=["acc"]),
        (
            f"{FEDOSD}: artefacts.table8: there is no metric 'acc'",
            "did you mean 'r_acc'?",
            "allowed: r_acc, accuracy",
        ),
    ),
    "unknown kind of artefact": (
        artefact("table8", kind="tabel"),
        (
            "artefacts.table8: there is no artefacts plug-in 'tabel'",
            "did you mean 'table'?",
            "allowed: across, bars, classes, curves, gains",
        ),
    ),
    "an artefact with published numbers but no file": (
        artefact("fig3", published=True),
        ("artefacts.fig3: published is true, but workflow/published/fedosd/fig3.csv does not exist",),
    ),
    "bars without methods": (
        artefact("fig6", methods=[]),
        ("artefacts.fig6: kind bars needs methods (or trainings) and metrics; name at least one of each",),
    ),
    "a running time of nothing that is counted": (
        artefact("table12", metrics=[]),
        ("artefacts.table12: kind runtime needs methods (or trainings) and metrics; name at least one of each",),
    ),
    "a sweep of no scenario": (
        artefact("recovery_rate", scenarios=[]),
        ("artefacts.recovery_rate: kind sweep needs scenarios; name at least one",),
    ),
    "a scenario on an unknown base": (
        scenario("mnist-pat50", base="mnist-idd"),
        (
            f"{FEDOSD}: scenarios.mnist-pat50.base: there is no scenario 'mnist-idd'",
            "did you mean 'mnist-iid'? allowed: cifar10-iid",
        ),
    ),
    "a scenario on an unknown base further up": (
        scenario("fmnist-pat20", base="fmnist"),
        (f"{FEDOSD}: scenarios.fmnist-pat20.base: there is no scenario 'fmnist'", "did you mean 'fmnist-iid'?"),
    ),
    "a scenario on itself": (
        scenario("mnist-iid", base="mnist-iid"),
        (f"{FEDOSD}: scenarios.mnist-iid.base: 'mnist-iid' is built on itself; name another scenario",),
    ),
    "two scenarios on each other": (
        scenario("mnist-iid", base="mnist-pat50"),
        (".base: 'mnist-", "is built on itself; name another scenario"),
    ),
    "a method from the unlearned model of an unknown one": (
        method("fedosd.m5", unlearned_from="fedods"),
        (
            f"{FEDOSD}: methods.fedosd.m5.unlearned_from: there is no method 'fedods'",
            "did you mean 'fedosd'? allowed: ewcsga, federaser, federaser.half, fedosd",
        ),
    ),
    "a method from the unlearned model of one that has none": (
        method("fedosd.rates-free", unlearned_from="fedosd.m5"),
        ("methods.fedosd.rates-free.unlearned_from: 'fedosd.m5' has no unlearning of its own",),
    ),
    "a method from its own unlearned model": (
        method("fedosd.m5", unlearned_from="fedosd.m5"),
        ("methods.fedosd.m5.unlearned_from: 'fedosd.m5' has no unlearning of its own",),
    ),
    "a method from the model of one that takes all rounds": (
        method("fedosd.m5", unlearned_from="retraining"),
        ("scenarios.fmnist-pat50: a method that starts from 'retraining' must have its unlearning settings",),
    ),
    "a scenario's unlearning rounds where nothing is unlearned": (
        scenario("fmnist-pat50", methods={"fedosd.m5": {"unlearning": {"rounds": 1}}}),
        (
            "scenarios.fmnist-pat50: a method that starts from 'fedosd+lr",
            "must have its unlearning settings; only recovery, total_rounds and the recovery grid may differ",
        ),
    ),
    "unknown projection": (
        settings(recovery={"projection": {"name": "away_from_orignal"}}),
        (
            "scenario fmnist-pat20, method retraining: there is no projections plug-in 'away_from_orignal'",
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
        grid("mode", {"training.lr": [0.1, 0.2]}),
        ("method mode: grid", "'training.lr'", "unlearning", "recovery", "params"),
    ),
    "a grid of a setting without its phase": (grid("mode", {"lr": [0.1]}), ("method mode: grid", "'lr'")),
    "a grid of an unknown setting": (
        grid("mode", {"unlearning.lrr": [0.1]}),
        ("method mode: unlearning.lrr: unknown key", "did you mean 'lr'?"),
    ),
    "a grid of an unknown hyper-parameter": (
        grid("fedosd", {"params.los": ["uce"]}),
        ("method fedosd: params.los: unknown key", "did you mean 'loss'?"),
    ),
    "a grid with a wrong hyper-parameter": (
        grid("fedosd.m6", {"params.loss": ["uce", "ce"]}),
        ("params.loss: Input should be 'uce', 'ascent' or 'uce-undivided', got 'ce'",),
    ),
    "a grid with a negative rate": (
        grid("mode", {"unlearning.lr": [0.1, -0.1]}),
        ("fmnist-pat20, method mode: unlearning.lr: Input should be greater than 0, got -0.1",),
    ),
    "a grid with an infinite rate": (
        grid("mode", {"unlearning.lr": [0.1, INFINITE]}),
        ("config: overrides.fedosd.methods.mode.settings.grid.unlearning.lr.1: must be a finite number, got inf",),
    ),
    "a grid with a truth value": (
        grid("mode", {"unlearning.lr": [True]}),
        ("method mode: unlearning.lr: Input should be a valid number, got True",),
    ),
    "a grid with a rate that YAML reads as text": (
        grid("mode", {"unlearning.lr": ["1e-3"]}),
        ("method mode: unlearning.lr: Input should be a valid number, got '1e-3'", "needs a decimal point: 1.0e-3"),
    ),
    "a grid with more unlearning rounds than total rounds": (
        laid_over(
            scenarios={"mnist-iid": {"settings": {"total_rounds": 6}}},
            methods={"mode": {"settings": {"grid": {"unlearning.rounds": [2, 7]}}}},
        ),
        ("method mode: unlearning.rounds: 7 rounds exceed total_rounds, 6",),
    ),
    "a grid with one value twice": (
        grid("mode", {"unlearning.lr": [0.1, 0.1]}),
        ("methods.mode: grid: 'mode+lr0.1' becomes a file name; values must differ within six digits",),
    ),
    "a grid with two values of one name": (
        grid("mode", {"unlearning.lr": [0.1, 0.10000001]}),
        ("methods.mode: grid: 'mode+lr0.1' becomes a file name; values must differ within six digits",),
    ),
    "a grid with a value outside results": (
        grid("fedosd", {"params.loss": ["../x"]}),
        ("methods.fedosd: grid: 'fedosd+lr", "-loss../x' becomes a file name", "words of letters, digits, dots"),
    ),
    "a rate that a grid would replace": (
        method("mode", settings={"unlearning": {"lr": 0.3}, "grid": {"unlearning.lr": [0.1, 0.2]}}),
        (
            "methods.mode.settings: unlearning.lr is set, but its grid [0.1, 0.2] would replace it",
            "write grid: {unlearning.lr: [0.3]} instead",
        ),
    ),
    "a scenario's rate that the common grid would replace": (
        scenario("mnist-iid", methods={"mode": {"unlearning": {"lr": 0.3}}}),
        ("methods.mode.settings: unlearning.lr is set, but its grid", "write grid: {unlearning.lr: [0.3]} instead"),
    ),
    "a grid as a number": (grid("mode", 5), ("grid: Input should be a valid dictionary, got 5",)),
    "a common grid as a number": (settings(grid=5), ("grid: Input should be a valid dictionary, got 5",)),
    "no grid at all": (grid("mode", None), ("grid: Input should be a valid dictionary, got None",)),
    "a grid with a rate outside a list": (
        grid("mode", {"unlearning.lr": 0.1}),
        ("unlearning.lr: Input should be a valid list, got 0.1",),
    ),
    "a grid and nothing held out to choose on": (
        laid_over(
            settings={"data": {"validation_share": 0}},
            methods={"mode": {"settings": {"grid": {"unlearning.lr": [0.1, 0.2]}}}},
        ),
        (
            "scenarios.fmnist-pat20: data.validation_share is 0, but mode has a grid",
            "its best point is chosen on validation data, so hold some out",
        ),
    ),
    "a sweep of a method without a grid": (
        artefact("recovery_rate", methods=["fedosd.rates-free", "retraining"]),
        ("artefacts.recovery_rate: kind sweep needs a grid of two or more values; 'retraining' has none",),
    ),
    "a metric that no evaluation has": (
        settings(evaluations={"evaluation": ["backdoor", "utility", "distance", "cost"]}),
        ("artefacts.table3: no evaluation of 'mnist-pat20' has the metric 'conflicts'; add its evaluator",),
    ),
    "a choice by two evaluations": (
        settings(evaluations={"evaluation": ["backdoor", "distance", "conflicts", "cost"], "own": ["utility"]}),
        (
            "scenarios.mnist-pat50: evaluations: mode has a grid; its best point is chosen by",
            "by r_acc_validation and asr_validation, so their evaluators must be in one evaluation.",
        ),
    ),
    "unlearning rounds of a method that takes all": (
        method("retraining", settings={"unlearning": {"rounds": 3}}),
        ("methods.retraining.settings: unlearning.rounds: with post_training: own, the method runs for total_rounds",),
    ),
}


@pytest.mark.parametrize(("values", "words"), PLANS.values(), ids=PLANS)
def test_what_cannot_be_planned_is_told_in_one_sentence(values: dict[str, Any], words: tuple[str, ...]) -> None:
    has(sentence(lambda: Plan(values)), *words)


def test_nothing_is_held_out_where_nothing_is_chosen() -> None:
    common = {"data": {"validation_share": 0}, "grid": {"unlearning.lr": [0.005]}}
    unclipped: dict[str, Any] = {"settings": {"grid": {"params.clip": [], "params.lambda": []}}}
    ascent = dict.fromkeys(("ewcsga", "fupga", "sfu", "fedosd.m1"), unclipped)
    made = Plan({**laid_over(settings=common, methods=ascent), "preset": "paper"})
    assert made.trials["fedosd/mnist-pat50", "original"].settings.data.validation_share == 0
    assert len(made.names["fedosd/mnist-pat50", "fedosd.rates-free"]) > 1  # a sweep shows them all


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
    "a sweep over two settings": (
        toy(methods={"fedosd.rates": {"settings": {"grid": {"unlearning.lr": [0.02, 0.005]}}}}),
        "artefacts.rates: kind sweep needs grids in which one setting varies, got recovery.lr, unlearning.lr.",
    ),
    "a sweep over one setting of one method and another of the next": (
        toy(artefacts={"rates": {"scenarios": ["pat"], "methods": ["fedosd.rates", "fedosd"]}}),
        "artefacts.rates: kind sweep needs grids in which one setting varies, got recovery.lr, unlearning.lr.",
    ),
    "bars of the original model alone": (
        toy(artefacts={"bars": {"stages": ["original"]}}),
        f"{TOY}: artefacts.bars: stages: kind bars cannot show 'original' for 'iid'; allowed: unlearned, recovered.",
    ),
    "bars of post-training where none follows": (
        toy(artefacts={"bars": {"methods": ["retraining"]}}),
        f"{TOY}: artefacts.bars: stages: kind bars cannot show 'recovered' for 'iid'; allowed: unlearned.",
    ),
    "a table of post-training alone where none follows": (
        toy(artefacts={"utility": {"methods": ["retraining"], "stages": ["recovered"]}}),
        "artefacts.utility: stages: kind table cannot show 'recovered' for 'pat'; allowed: original, unlearned.",
    ),
    "curves of conflicts that nobody counts": (
        toy(artefacts={"rounds": {"metrics": ["conflicts"]}}),
        "artefacts.rounds: no scenario has the metric 'conflicts'; it needs settings.unlearning.conflicts.",
    ),
    "a sweep of the success of no attack": (
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


def test_a_published_table_without_its_file_is_told_in_one_sentence(workflow: Path) -> None:
    (workflow / "published" / "fedosd" / "table8.csv").unlink()
    text = sentence(lambda: Plan(config()))
    has(text, "artefacts.table8: published is true, but workflow/published/fedosd/table8.csv does not exist")


def test_an_image_of_no_attack_is_told_in_one_sentence() -> None:
    planned = Plan(scenario("cifar100-pat50", settings={"data": {"attack": None}}))
    text = sentence(lambda: planned.job("publish", {"paper": "fedosd", "artefact": "fig7"}))
    has(text, f"{FEDOSD}: artefacts.fig7: 'cifar100-pat50' has no attack to show")
