"""What every evaluator returns, against numbers worked out by hand on clients of unequal size."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fu import plugins
from fu.data.clients import ClientData
from fu.evaluation.context import Context
from tests.evaluation.scene import CLASSES, TEST, VALIDATION, Counts, make_scene, swap_rows

# Retained are 0, 2 and 4. Test: 1/4, 1/2, 8/8; pooled 10/14, with the forgotten 2.75/5. Validation: 3/4, 1/2, 5/5.
R_ACC = {
    "r_acc": 7 / 12,
    "r_acc_std": math.sqrt(((1 / 3) ** 2 + (1 / 12) ** 2 + (5 / 12) ** 2) / 3),
    "r_acc_worst": 1 / 4,
    "r_acc_best": 1.0,
}
HELD_OUT = 1 / 14  # of the retained clients' 14 test samples; of all 23 it would be 10
# With the trigger client 1 gets classes 3, 0, 1, 0 and client 3 gets 2, 3, 2, 3, 0, 1, 2, 3.
PREDICTED = {"predicted_0": 3 / 12, "predicted_1": 2 / 12, "predicted_2": 3 / 12, "predicted_3": 4 / 12}
ASR = 5 / 12  # of the forgotten clients' 12 training samples; the mean over the two clients would be 1/2
TRACE = [
    {"round": "4", "conflicts": "", "client_rounds": "0", "steps": "0", "samples": "0"},
    {"round": "5", "conflicts": "2.0", "client_rounds": "3", "steps": "6", "samples": "10"},
    {"round": "6", "conflicts": "0.0", "client_rounds": "6", "steps": "12", "samples": "20"},
    {"round": "7", "conflicts": "3.0", "client_rounds": "7", "steps": "15", "samples": "26"},
]
for k, row in enumerate(TRACE):
    row.update(bytes_up=str(128 * k), bytes_down=str(256 * k), time_steps=str(2 * k), replayed=str(5 * k))
    row.update(forgotten_rounds=str(k // 2), stored="1024")


def evaluated(name: str, context: Context) -> dict[str, float]:
    found: dict[str, float] = plugins.load("evaluation", name).evaluate(context)
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("backdoor", {"asr": ASR, "asr_held_out": HELD_OUT, "asr_validation": 4 / 5}),
        ("utility", {**R_ACC, "r_acc_validation": 3 / 4}),
        ("distance", {"distance": 5.0}),
        ("forgotten", {"forgotten_accuracy": (3 / 3 + 0 / 6) / 2}),  # of all their samples together it would be 1/3
        ("forget_set", {"forget_set_accuracy": 9 / 12}),  # the mean over the two clients would be 5/8
        ("predicted_classes", {"one_class": 4 / 12}),
        ("conflicts", {"conflicts": 5 / 3}),  # of the rounds that counted any
        (
            "cost",
            {"client_rounds": 7.0, "steps": 15.0, "samples": 26.0, "time_steps": 6.0, "replayed": 15.0}
            | {"bytes_up": 384.0, "bytes_down": 768.0, "forgotten_rounds": 1.0, "stored": 1024.0},
        ),
    ],
)
def test_an_evaluator_returns_what_is_worked_out_by_hand(name: str, expected: dict[str, float]) -> None:
    assert evaluated(name, make_scene(trace=TRACE)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("backdoor", {"asr": ASR, "asr_held_out": HELD_OUT}),
        ("utility", R_ACC),
        ("distance", {"distance": 5.0}),
        ("forget_set", {"forget_set_accuracy": 9 / 12}),
        ("predicted_classes", PREDICTED),
    ],
)
def test_what_is_traced_is_worked_out_by_hand_too(name: str, expected: dict[str, float]) -> None:
    assert plugins.load("evaluation", name).trace(make_scene()) == pytest.approx(expected, rel=1e-12)


def test_there_is_no_cost_without_a_run() -> None:
    assert evaluated("cost", make_scene(trace=[])) == {}


def without(counts: Counts, *clients: int) -> Counts:
    """Take the samples of some clients away."""
    return [(0, 0, 0) if client in clients else found for client, found in enumerate(counts)]


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("backdoor", {"attacked": False}, {}),
        ("backdoor", {"validation": without(VALIDATION, 3)}, {"asr", "asr_held_out"}),
        ("backdoor", {"validation": without(VALIDATION, 0)}, {"asr", "asr_held_out", "asr_validation"}),
        ("backdoor", {"test": without(TEST, 0, 2, 4)}, {"asr", "asr_validation"}),
        ("utility", {"attacked": False}, {*R_ACC, "r_acc_validation"}),
        ("utility", {"validation": without(VALIDATION, 4)}, {*R_ACC}),
        ("utility", {"test": [(0, 0, 0)] * 5}, {}),
        ("distance", {"original": None}, {}),
        ("predicted_classes", {"attacked": False}, {}),
        ("forget_set", {"forgotten": (), "attacked": False}, {}),
        ("clients", {"test": without(TEST, 3)}, {}),
        ("conflicts", {"trace": TRACE[:1]}, set()),
        ("conflicts", {"trace": [{"round": "1", "accuracy": "0.5"}]}, set()),
    ],
)
def test_what_cannot_be_measured_is_left_out(name: str, changes: dict[str, Any], expected: set[str]) -> None:
    assert set(evaluated(name, make_scene(**changes))) == set(expected)


def test_a_test_set_of_nobody_is_what_held_out_images_are_of() -> None:
    """All 23 test samples are nobody's, and 0 + 3 + 1 + 6 + 0 of them get the flipped label once triggered."""
    context = make_scene()
    part = context.data.partition
    part = replace(part, test=[part.train[0][:0]] * 5, global_test=np.concatenate(part.test))
    data = ClientData(context.data.x, context.data.y, part, CLASSES, "all", swap_rows)
    assert evaluated("backdoor", replace(context, data=data))["asr_held_out"] == pytest.approx(10 / 23)


def test_images_whose_label_the_attack_leaves_as_it_is_are_left_out() -> None:
    """An attack that wants class 0 of everything leaves those alone that are of it already."""
    context = make_scene()

    def to_zero(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x.flip(1), torch.zeros_like(y)

    data = ClientData(context.data.x, context.data.y, context.data.partition, CLASSES, "all", to_zero)
    rows, others = data.retained_test, data.y[data.retained_test] != 0
    assert 0 < others.sum() < len(rows)
    x, y = data.flipped(rows)
    assert torch.equal(x, data.x[rows][others].flip(1).permute(0, 3, 1, 2))
    assert y.tolist() == [0] * int(others.sum())


def test_every_client_has_its_own_numbers_forgotten_or_not() -> None:
    """One of four outputs is 1, the others 0: the loss is log(e + 3), less 1 where that is the label's."""
    found = plugins.load("evaluation", "clients").evaluate(make_scene())
    accuracies = [1 / 4, 3 / 3, 1 / 2, 0 / 6, 8 / 8]
    assert found == {
        "all_accuracy": pytest.approx((5 / 4 + 4 + 3 / 2 + 2) / 22),
        "retained_accuracy": pytest.approx((5 / 4 + 3 / 2 + 2) / 10),
        "client_accuracy": pytest.approx(dict(enumerate(accuracies))),
        "client_loss": pytest.approx({k: math.log(math.e + 3) - share for k, share in enumerate(accuracies)}),
        "client_samples": {0: 5.0, 1: 4.0, 2: 3.0, 3: 8.0, 4: 2.0},
        "client_forgotten": {0: 0.0, 1: 1.0, 2: 0.0, 3: 1.0, 4: 0.0},
    }


def test_how_much_accuracy_moved_is_counted_from_ten_rounds_before_the_last() -> None:
    def row(round: int, accuracy: float) -> dict[str, str]:
        return {"round": str(round), "all_accuracy": str(accuracy), "retained_accuracy": str(accuracy / 2)}

    rows = [row(0, 0.1), row(2, 0.5), row(11, 0.7), row(12, 0.9), {"round": "13", "all_accuracy": ""}]
    found = plugins.load("evaluation", "clients").evaluate(make_scene(trace=rows))
    assert (found["all_moved"], found["retained_moved"]) == (pytest.approx(40), pytest.approx(20))
    few = plugins.load("evaluation", "clients").evaluate(make_scene(trace=rows[2:]))
    assert few["all_moved"] == pytest.approx(20)  # since the first


def test_forgotten_clients_without_test_samples_have_no_accuracy_and_neither_have_none() -> None:
    assert evaluated("forgotten", make_scene(test=without(TEST, 3))) == {}
    assert evaluated("forgotten", make_scene(test=without(TEST, 2))) == {"forgotten_accuracy": 0.5}
    assert evaluated("forgotten", make_scene(forgotten=(), attacked=False)) == {}
    assert evaluated("forgotten", make_scene(forgotten=(1, 2), attacked=False)) == {"forgotten_accuracy": 0.75}
