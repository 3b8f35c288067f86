"""What cannot be planned is refused before the first job, in one sentence: names, plug-ins, grids, histories."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fu.pipeline.plan.entry_checks import EntryChecks
from fu.pipeline.plan.plan import Plan
from fu.pipeline.plan.specs import Trials
from fu.pipeline.provenance import catalogue
from tests.mistakes import has, sentence
from tests.pipeline.configs import at, toy

TOY = "config.yaml: overrides.toy"

NO_ATTACK = {name: {"metrics": ["r_acc"]} for name in ("numbers", "utility", "bars", "rounds", "rates")}
MANY = [k / 100 for k in range(1, 41)]

PLANS: list[tuple[Any, ...]] = [
    ("scenarios/iid/methods/fedosdd", {}, "scenarios.iid.methods: there is no 'fedosdd'", "did you mean 'fedosd'?"),
    ("methods/mine", {"label": "FUPGA", "source": "y", "plugin": "fedosd"},
     "methods.mine.label: 'FUPGA' is already the label of 'fupga'; choose another one"),
    ("artefacts/numbers/methods", [], "kind table needs methods (or trainings) and metrics; name at least one of each"),
    ("artefacts/rounds/scenarios", [], "artefacts.rounds: kind curves needs scenarios; name at least one"),
    ("artefacts/rounds/metrics", ["r_acc_validation"], "'r_acc_validation' is not measured per round"),
    ("artefacts/utility/kind", "matrix", "artefacts.utility: kind matrix needs against."),
    ("artefacts/utility", {"kind": "matrix", "against": ["retraining"]},
     "artefacts.utility: against: kind matrix needs at least 3 repeats of retraining by 'original', which 'fupga' "
     "starts from, got 1."),
    ("artefacts/utility", {"kind": "matrix", "against": ["retraining", "fedosd"]},
     "artefacts.utility: against: 'fedosd' is not a retraining; kind matrix needs repeats of one."),
    ("settings/model/name", "lenet", "there is no models plug-in 'lenet'", "did you mean 'lenet5'?"),
    ("settings/model", {"name": "resnet18"},
     "does not average the running statistics (batch normalisation) of resnet18",
     "; allowed: fairness, fats_as_published, fine_tuning, lottery, random_weights, retrain, retrain_partly, "
     "stability, untouched, weight_negation."),
    ("", {"settings": {"evaluations": {"a": ["clients"]}}, "artefacts": {"utility": {"metrics": ["client_accuracy"]}}},
     "artefacts.utility: kind table cannot show 'client_accuracy', which has a value per client; allowed: tradeoffs."),
    ("settings/model", {"name": "mlp", "params": {"hidden": 0}}, "params.hidden: Input should be greater than 0"),
    ("settings/training/method/name", "fedagv", "there is no training plug-in 'fedagv'", "did you mean 'fedavg'?"),
    ("settings/evaluations/evaluation", ["bckdoor"], "there is no evaluation plug-in 'bckdoor'"),
    ("settings/training/history", ["last_local_models", "foo"], "there is no histories plug-in 'foo'"),
    ("settings/training/history", ["update_norms", "update_sums"],
     "method fupga", ": needs the history 'last_local_models'; add it to settings.training.history",
     "recorded: update_norms, update_sums"),
    ("settings/recovery/traced", ["cost"], "scenario iid: recovery.traced: 'cost' defines no trace"),
    ("methods/fedosd/plugin", "fedods", "methods.fedosd: there is no methods plug-in 'fedods'"),
    ("methods/fedosd/settings/data/clients", 5,
     "methods.fedosd.settings: 'data' is shared by all methods",
     "a method may set unlearning, recovery, total_rounds, grid"),
    ("artefacts/numbers/scenarios", ["pt"], "artefacts.numbers: there is no scenario 'pt'", "did you mean 'pat'?"),
    ("artefacts/numbers/methods", ["fedods"], "artefacts.numbers: there is no method 'fedods'"),
    ("artefacts/numbers/metrics", ["acc"], "artefacts.numbers: there is no metric 'acc'", "did you mean 'r_acc'?"),
    ("methods/fupga/shown_in", ["numbrs"],
     "methods.fupga.shown_in: there is no artefact 'numbrs'; did you mean 'numbers'?"),
    ("artefacts/numbers/kind", "tabel", "artefacts.numbers: there is no artefacts plug-in 'tabel'"),
    ("artefacts/losses/published", True, "published is true, but workflow/published/toy/losses.csv does not exist"),
    ("scenarios/pat/base", "idd", "scenarios.pat.base: there is no scenario 'idd'"),
    ("scenarios/iid/base", "pat", ".base: 'iid' is based on itself; choose another scenario"),
    ("methods/fedosd.m5/unlearned_from", "fedods", "methods.fedosd.m5.unlearned_from: there is no method 'fedods'"),
    ("methods/fedosd.rates/unlearned_from", "fedosd.m5", "'fedosd.m5' does no unlearning itself"),
    ("methods/fedosd.m5/unlearned_from", "retraining",
     "scenarios.pat: a method that starts from 'retraining' must have its unlearning settings"),
    ("scenarios/pat/methods/fedosd.m5/unlearning/rounds", 1,
     "scenarios.pat: a method that starts from 'fedosd'",
     "must have its unlearning settings; only recovery, total_rounds and the recovery grid may differ"),
    ("settings/recovery/projection/name", "away_from_orignal", "there is no projections plug-in 'away_from_orignal'"),
    ("methods/fedosd/settings/recovery/projection/params/were", "always",
     "recovery.projection: params.were: unknown key"),
    ("methods/fupga/settings/grid/training.lr", [0.1, 0.2], "method fupga: grid", "'training.lr'", "unlearning"),
    ("methods/fupga/settings/grid/lr", [0.1], "method fupga: grid", "'lr'"),
    ("methods/fupga/settings/grid/params.clip", [1, -1], "params.clip: Input should be greater than or equal to 0"),
    ("scenarios/iid", {"settings": {"total_rounds": 6}, "methods": {"fupga": {"grid": {"unlearning.rounds": [2, 7]}}}},
     "method fupga: unlearning.rounds: 7 exceeds total_rounds (6)"),
    ("methods/fupga/settings/grid/unlearning.lr", [0.1, 0.10000001],
     "methods.fupga: grid: 'fupga+lr0.1' becomes a file name; values must differ within six digits"),
    ("methods/fedosd/settings/grid/params.loss", ["../x"],
     "methods.fedosd: grid: 'fedosd+lr", "-loss../x' becomes a file name", "words of letters, digits, dots"),
    ("methods/fupga/settings", {"unlearning": {"lr": 0.3}, "grid": {"unlearning.lr": [0.1, 0.2]}},
     "methods.fupga.settings: unlearning.lr is set, but its grid [0.1, 0.2] would replace it",
     "write grid: {unlearning.lr: [0.3]} instead"),
    ("methods/fupga/settings/grid", 5, "grid: Input should be a valid dictionary, got 5"),
    ("methods/fupga/settings/grid/unlearning.lr", 0.1, "unlearning.lr: Input should be a valid list, got 0.1"),
    ("scenarios/pat/settings/data/validation_share", 0,
     "scenarios.pat: data.validation_share is 0, but fedosd has a grid",
     "its best point is chosen on validation data, so hold some samples out"),
    ("artefacts/bars/marks", "bar",
     "artefacts.bars: marks: kind table has no 'bar'; did you mean 'bars'? allowed: bars"),
    ("artefacts/numbers/highlight", True,
     "artefacts.numbers: highlight: kind table shows a table; a highlight is a figure."),
    ("settings/evaluations/evaluation", ["backdoor", "distance", "cost"],
     "artefacts.numbers: no evaluation of 'iid' has the metric 'r_acc'; add its evaluator"),
    ("settings/evaluations", {"evaluation": ["backdoor", "distance", "conflicts", "cost"], "own": ["utility"]},
     "scenarios.pat: evaluations: fedosd has a grid; its best point is chosen by",
     "by r_acc_validation and asr_validation, so their evaluators must be in the same evaluation"),
    ("methods/retraining/settings/unlearning/rounds", 3,
     "methods.retraining.settings: unlearning.rounds: with post_training: own, the method runs for total_rounds"),
    ("settings/data/validation_share", 0.01,
     "scenarios.pat: data.validation_share: 0.01 holds out none of the smallest client's training samples (at most 80)",
     ", but fedosd needs some to choose the best point of its grid"),
    ("settings/data/train_share", 0.001,
     "data: train_share: 0.001 gives a client with 100 samples 0 for training and 100 for testing"),
    ("methods/fedosd.rates/settings/grid/unlearning.lr", [0.02, 0.005],
     "artefacts.rates: points of 'fedosd.rates' in 'iid' cannot be told apart; put every setting that"),
    ("artefacts/bars/stages", ["original"],
     "artefacts.bars: stages: bars has no 'original' model for 'iid'; allowed: unlearned, recovered."),
    ("artefacts/bars/methods", ["retraining"],
     "artefacts.bars: stages: bars has no 'recovered' model for 'iid'; allowed: unlearned."),
    ("artefacts/rounds/metrics", ["conflicts"],
     "artefacts.rounds: no scenario has the metric 'conflicts'; it needs settings.unlearning.conflicts."),
    ("settings/data/attack", None, "artefacts.rates: no scenario has the metric 'asr'; it needs settings.data.attack."),
    ("artefacts/times/metrics", ["asr"], "artefacts.times: 'asr' cannot be summed over rounds; allowed: client_rounds"),
    ("methods/fupga/settings/grid", {"unlearning.lr": MANY, "recovery.lr": MANY},
     "methods.fupga: grid: has more than 1000 points; list fewer values."),
    ("scenarios/pat/methods/fedosd/grid/unlearning.rounds", [1, 4],
     "some points of the grid of 'fedosd' leave rounds", "(points: all)"),
]  # fmt: skip


@pytest.mark.parametrize("case", PLANS, ids=[case[0] for case in PLANS])
@pytest.mark.usefixtures("with_toy")
def test_what_cannot_be_planned_is_told_in_one_sentence(case: tuple[Any, ...]) -> None:
    path, value, *words = case
    has(sentence(lambda: Plan(at(path, value))), *words)


@pytest.mark.usefixtures("with_toy")
def test_nothing_is_held_out_where_nothing_is_chosen() -> None:
    alone = {"pat": {"methods": {"fedosd": {"grid": {"unlearning.lr": [0.02]}}}}}
    planned = Plan(toy(settings={"data": {"validation_share": 0}}, scenarios=alone))
    assert planned.trials["toy/pat", "original"].settings.data.validation_share == 0
    assert len(planned.names["toy/iid", "fedosd.rates"]) > 1  # rates shows them all


def test_a_choice_without_an_attack_needs_no_success_of_it(with_toy: Path) -> None:
    evaluated = {"data": {"attack": None}, "evaluations": {"evaluation": ["utility"]}}
    assert Plan(toy(settings=evaluated, artefacts=NO_ATTACK)).names["toy/pat", "fedosd"]


@pytest.mark.usefixtures("with_toy")
def test_a_choice_by_an_attack_that_is_not_there_is_told_in_one_sentence() -> None:
    chosen_by = ["asr_validation", "r_acc_validation"]
    evaluated = {"data": {"attack": None}, "evaluations": {"evaluation": ["utility"]}, "chosen_by": chosen_by}
    text = sentence(lambda: Plan(toy(settings=evaluated, artefacts=NO_ATTACK)))
    has(text, "chosen_by: 'asr_validation' needs data.attack; put it after a metric that does not.")


@pytest.mark.usefixtures("with_toy")
def test_two_columns_of_one_name_are_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    known = catalogue.metrics()
    for label in (known["asr"].label, "Rate"):
        changed = {**known, "r_acc": known["r_acc"].model_copy(update={"label": label})}
        monkeypatch.setattr(catalogue, "metrics", lambda changed=changed: changed)
        has(sentence(lambda: Plan(toy())), f"metrics: two columns would be called '{label}'; give your metric another")


@pytest.mark.usefixtures("with_toy")
def test_an_image_of_no_attack_is_told_in_one_sentence() -> None:
    planned = Plan(toy(settings={"data": {"attack": None}}, artefacts=NO_ATTACK))
    text = sentence(lambda: planned.job("publish", {"paper": "toy", "artefact": "triggers"}))
    has(text, f"{TOY}: artefacts.triggers: 'iid' has no attack (data.attack) to show")


def test_methods_that_a_preset_leaves_out_of_a_scenario_have_no_metric_to_miss() -> None:
    here: Any = SimpleNamespace(settings=SimpleNamespace(evaluations={"evaluation": ["backdoor"]}))
    grid = Trials({})
    grid.names, grid.trials = {("p/s", "gone"): [], ("p/s", "here"): ["here"]}, {("p/s", "here"): here}
    entry: Any = SimpleNamespace(kind="table", shown=["gone", "here"], metrics=["r_acc"])
    shown = EntryChecks(grid, "p", entry, "place")
    has(sentence(lambda: shown.evaluated("s")), "place: no evaluation of 's' has the metric 'r_acc'; add its evaluator")
    entry.shown = ["gone"]
    shown.evaluated("s")
