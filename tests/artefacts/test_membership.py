"""The table of attacks: the models before the request beside those after it, and whether the attack had power."""

from typing import Any

import pandas as pd
import pytest

from fu.artefacts.entry import ORIGINAL, Entry
from fu.artefacts.membership import make
from tests.artefacts.factories import as_training, cells, make_entry, make_frame, make_method, make_scratch, make_trial

METRICS = ("mia_accuracy", "mia_precision", "lira_auc")


def entry(**changes: Any) -> Entry:
    """One training, one method that starts from it, and retraining; one seed unless told otherwise."""
    training = as_training(make_scratch()).model_copy(update={"name": "fedavg", "label": "FedAvg"})
    trial = make_trial(0.2).model_copy(update={"trained": "scratch", "recovered": "", "recovery_rate": None})
    scenario = make_entry("membership").scenarios[0].model_copy(update={"original": None})
    methods = (training, make_scratch(), make_method(trial))
    about = {"metrics": METRICS, "methods": methods, "scenarios": (scenario,), "seeds": (0,), "chosen": {}}
    return make_entry("membership", **{**about, **changes})


def frame(one: Entry, values: dict[tuple[str, str], float], **published: float) -> pd.DataFrame:
    """Return the frame with some numbers set by method and metric."""
    printed = {("ours", "unlearned", name): value for name, value in published.items()}
    rows = make_frame(one, printed)
    rows = rows[rows["method"] != ORIGINAL]
    for (method, metric), value in values.items():
        here = (rows["method"] == method) & (rows["metric"] == metric) & ~rows["published"]
        assert here.any()
        rows.loc[here, "value"] = value
    return rows


AUC = {("fedavg", "mia_auc"): 0.63, ("fedavg", "mia_auc_std"): 0.06}
DEFINED = {(method, "mia_undefined"): 0.0 for method in ("fedavg", "scratch", "ours")}


def test_every_model_has_a_column_and_the_original_one_is_that_of_its_training() -> None:
    one = entry()
    values = {("ours", "mia_accuracy"): 0.5012, ("ours", "mia_accuracy_std"): 0.0034, **AUC, **DEFINED}
    values |= {("fedavg", "mia_accuracy"): 0.61, ("fedavg", "mia_accuracy_std"): 0.02, ("ours", "lira_auc"): 0.498}
    table = cells(make(frame(one, values), one).body)
    heads = [row for row in table if row[0] == "Data"]
    assert heads[0] == ["Data", "FedAvg before", "Scratch", "Ours *"]
    accuracy, _, lira, *_ = (row for row in table if row[0] == "Small")
    assert accuracy[1] == "61.00 ± 2.00"
    assert accuracy[3] == "50.12 ± 0.34"
    assert lira[3] == "49.80"


NUMBERS = {
    **{"mia_members": 400.0, "mia_auc": 0.51, "lira_auc": 0.5, "rmia_auc": 0.49},
    **{"mia_members_trained": 100.0, "mia_auc_trained": 0.5, "lira_auc_trained": 0.55, "rmia_auc_trained": 0.55},
}
ALL = ["51.00 (45.61 to 56.39)", "50.00 (44.61 to 55.39)", "49.00 (43.61 to 54.39)", "400"]
PART = ["50.00 (39.20 to 60.80)", "55.00 (44.20 to 65.80)", "55.00 (44.20 to 65.80)", "100"]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, {}),  # 2.64 sqrt(801 / (12 * 400 ** 2)) = 5.39%
        ({"lira_auc": 0.55393}, {1: "55.39 (50.00 to 60.79)"}),  # 50.0008 in full
        ({"lira_auc": 0.5541}, {1: "**55.41 (50.02 to 60.80)**"}),
        ({"mia_auc_trained": 0.7}, {4: "**70.00 (59.20 to 80.80)**"}),
    ],
)
def test_the_table_marks_which_attacks_detect_members_of_the_original_model(
    changes: dict[str, float], shown: dict[int, str]
) -> None:
    one = entry()
    values = {("fedavg", name): value for name, value in {**NUMBERS, **changes}.items()}
    table = cells(make(frame(one, values), one).body)
    head = table.index(next(row for row in table if row[1] == "Model"))
    [row] = table[head + 1 :]  # of models before the request alone
    assert row[:2] == ["Small", "FedAvg before"]
    assert row[2:] == [shown.get(k, text) for k, text in enumerate([*ALL, *PART])]


def test_an_attack_that_was_not_measured_on_members_used_in_training_has_no_interval() -> None:
    one = entry()
    rows = frame(one, {("fedavg", name): value for name, value in NUMBERS.items()})
    rows = rows[(rows["metric"] != "mia_members_trained") | (rows["method"] != "fedavg")]
    assert cells(make(rows, one).body)[-1][2:] == [*ALL, "–"]


def test_attacks_without_a_precision_are_counted_beside_it() -> None:
    one = entry()
    values = {**AUC, **DEFINED, ("ours", "mia_undefined"): 7.0, ("ours", "mia_precision"): 0.6}
    table = cells(make(frame(one, values), one).body)
    assert [row[3].endswith(", 7 undefined") for row in table if row[0] == "Small"][:3] == [False, True, False]
    assert not any("undefined" in cell for row in table for cell in row[1:3])


def test_numbers_are_means_over_seeds_beside_the_paper_s() -> None:
    one = entry(seeds=(0, 1), published="x")
    values = {("ours", "mia_accuracy"): 0.5, ("ours", "mia_accuracy_std"): 0.01, **AUC, **DEFINED}
    rows = frame(one, values, mia_accuracy=0.4835, mia_accuracy_std=0.0528)
    first = (rows["method"] == "ours") & (rows["metric"] == "mia_accuracy") & (rows["seed"] == 0)
    rows.loc[first, "value"] = 0.54
    result = make(rows, one)
    accuracy, precision, *_ = [row for row in cells(result.body) if row[0] == "Small"]
    assert len(precision) == 4  # of which the paper says nothing
    assert "diff" not in result.body
    assert accuracy[-2:] == ["52.00 ± 1.00", "48.35 ± 5.28"]
    assert len(accuracy) == 6  # a model before the request is not in the paper
    row = result.frame[(result.frame["method"] == "ours") & (result.frame["metric"] == "mia_accuracy")].iloc[0]
    assert row["difference"] == pytest.approx(0.52 - 0.4835)
    assert row["std"] == pytest.approx(0.04 / 2**0.5)


def test_what_no_shadow_fits_is_said() -> None:
    one = entry()
    others = [method.model_copy(update={"alike": method.retrains}) for method in one.methods]
    body = make(frame(one, AUC), one.model_copy(update={"methods": tuple(others)})).body
    assert (
        "Shadow models train as the model before the request; Ours unlearns otherwise, so that no shadow fits." in body
    )
    alike = tuple(method.model_copy(update={"alike": True}) for method in one.methods)
    assert "no shadow fits" not in make(frame(one, AUC), one.model_copy(update={"methods": alike})).body


def test_the_interval_narrows_with_the_number_of_seeds() -> None:
    one = entry(seeds=(0, 1))
    rows = frame(one, {("fedavg", name): value for name, value in NUMBERS.items()})
    assert cells(make(rows, one).body)[-1][2] == "51.00 (47.19 to 54.81)"  # 5.39% / sqrt(2)


def test_a_spread_over_other_seeds_than_the_mean_is_not_shown() -> None:
    one = entry(seeds=(0, 1))
    rows = frame(one, DEFINED)
    rows = rows[(rows["metric"] != "mia_accuracy_std") | (rows["seed"] == 0)]
    accuracy, precision, *_ = [row for row in cells(make(rows, one).body) if row[0] == "Small"]
    assert "±" not in accuracy[3]
    assert "±" in precision[3]
