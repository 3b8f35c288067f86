"""What is traced besides: columns of the trace in every round of unlearning and post-training."""

from pathlib import Path
from typing import Any

import pytest

from fu.evaluation.trace import COUNTS
from fu.pipeline.stages import recover, train, unlearn
from tests.pipeline.plans import PAT50, made, spec
from tests.pipeline.stages.scene import PHASE, make_scene

MEASURED = ("asr", "asr_held_out", "r_acc", "r_acc_std", "r_acc_worst", "r_acc_best", "distance", "conflicts")
SHARES = tuple(f"predicted_{label}" for label in range(10))
Rows = list[dict[str, str]]


@pytest.fixture
def traces(tmp_path: Path) -> dict[str, Rows]:
    """Train, unlearn and train on for two rounds each; the forgotten clients' triggered images are traced."""
    scene = make_scene(tmp_path)
    phase: dict[str, Any] = {**PHASE, "rounds": 2, "evaluate_every": 1, "traced": ("utility",)}
    later = {**phase, "traced": ("backdoor", "utility", "distance", "predicted_classes"), "counted": ("conflicts",)}
    trained: dict[str, Any] = {"training": {"name": "fedavg"}, "history": (), "server": None}
    forgets: dict[str, Any] = {"method": {"name": "fedosd"}, "training": None, "server": None, "watch": None}
    scene.train(train.Spec(**phase, **trained))
    scene.unlearn(unlearn.Spec(**later, **forgets))
    scene.recover(recover.Spec(**later, projection=None, client_weights="equal", first_round=2))
    return {role: scene.rows(f"{role}.csv") for role in ("original", "unlearned", "recovered")}


def test_a_trace_has_the_columns_of_its_own_evaluators_in_order(traces: dict[str, Rows]) -> None:
    """Those of `conflicts` are there where nobody counts them; which classes there are, only the data know."""
    assert [tuple(row) for row in traces["original"]] == [
        ("round", "r_acc", "r_acc_std", "r_acc_worst", "r_acc_best", *COUNTS)
    ] * 3
    for role in ("unlearned", "recovered"):
        assert len(traces[role]) == 3
        for row in traces[role]:
            assert tuple(row) == ("round", *MEASURED, *COUNTS, *SHARES)
            assert sum(float(row[share]) for share in SHARES) == pytest.approx(1)
    assert traces["unlearned"][-1]["predicted_3"] == traces["recovered"][0]["predicted_3"]


def test_the_plan_asks_for_what_a_phase_says_and_for_that_of_the_phase_before_where_it_says_nothing() -> None:
    run, usual = "fedosd/mnist-mlp-pat50/seed0", ["backdoor", "utility", "distance"]
    for stage in ("unlearn", "recover"):
        assert spec(made("smoke"), stage, run, "fedosd+lr0.02")["traced"] == [*usual, "predicted_classes"]
        assert spec(made("smoke"), stage, PAT50, "fedosd+lr0.02")["traced"] == usual
    assert spec(made("smoke"), "train", run, "original")["traced"] == usual
