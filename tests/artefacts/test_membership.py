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
    trial = make_trial(0.2).model_copy(update={"trained": "scratch", "recovers": False, "recovery_rate": None})
    scenario = make_entry("membership").scenarios[0].model_copy(update={"original": None})
    methods = (training, make_scratch(), make_method(trial))
    about = {"methods": methods, "scenarios": (scenario,), "seeds": (0,), "chosen": {}}
    return make_entry("membership", metrics=METRICS, **{**about, **changes})


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
    accuracy, _, lira = (row for row in table if row[0] == "Small")
    assert accuracy[1] == "61.00 ± 2.00"
    assert accuracy[3] == "50.12 ± 0.34"
    assert lira[3] == "49.80"


@pytest.mark.parametrize(
    ("area", "spread", "tells"), [(0.63, 0.06, True), (0.61, 0.06, False), (0.5, 0.0, False), (0.2, 0.06, False)]
)
def test_the_table_says_whether_the_attack_had_power_on_the_original_model(
    area: float, spread: float, tells: bool
) -> None:
    one = entry()
    values = {("fedavg", "mia_auc"): area, ("fedavg", "mia_auc_std"): spread}
    body = make(frame(one, values), one).body
    said = f"Small, FedAvg before: AUC {area:.3f} ± {spread:.3f}; the attack "
    assert (
        said + ("tells members." if tells else "cannot tell members, so that 50% after unlearning says nothing.")
        in body
    )
    assert body.count("; the attack ") == 1  # of models before the request alone


def test_what_the_spread_is_is_said() -> None:
    one = entry()
    body = make(frame(one, AUC), one).body
    assert "±: standard deviation over the 100 attacks on a model" in body
    assert "it is not that over trainings." in body


def test_attacks_without_a_precision_are_counted_beside_it() -> None:
    one = entry()
    values = {**AUC, **DEFINED, ("ours", "mia_undefined"): 7.0, ("ours", "mia_precision"): 0.6}
    table = cells(make(frame(one, values), one).body)
    assert [row[3].endswith(", 7 undefined") for row in table if row[0] == "Small"] == [False, True, False]
    assert not any("undefined" in cell for row in table for cell in row[1:3])


def test_numbers_are_means_over_seeds_beside_the_paper_s() -> None:
    one = entry(seeds=(0, 1), published="x")
    values = {("ours", "mia_accuracy"): 0.5, ("ours", "mia_accuracy_std"): 0.01, **AUC, **DEFINED}
    rows = frame(one, values, mia_accuracy=0.4835, mia_accuracy_std=0.0528)
    first = (rows["method"] == "ours") & (rows["metric"] == "mia_accuracy") & (rows["seed"] == 0)
    rows.loc[first, "value"] = 0.54
    result = make(rows, one)
    (accuracy, *_) = [row for row in cells(result.body) if row[0] == "Small"]
    assert accuracy[-2:] == ["52.00 ± 1.00", "48.35 ± 5.28"]
    assert accuracy[1].count("±") == 1  # a model before the request is not in the paper
    row = result.frame[(result.frame["method"] == "ours") & (result.frame["metric"] == "mia_accuracy")].iloc[0]
    assert row["difference"] == pytest.approx(0.52 - 0.4835)
    assert row["std"] == pytest.approx(0.04 / 2**0.5)


def test_without_a_retrained_model_the_table_says_so() -> None:
    one = entry()
    bare = one.model_copy(update={"methods": tuple(method for method in one.methods if not method.retrains)})
    assert "No retrained model is shown" in make(frame(bare, AUC), bare).body
    assert "No retrained model is shown" not in make(frame(one, AUC), one).body
