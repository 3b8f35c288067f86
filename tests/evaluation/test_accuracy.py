"""Accuracy on one test set for all, over the last rounds, and on classes that nobody who takes part holds."""

from typing import Any

import numpy as np
import pytest
import torch

from fu.data.clients import ClientData
from fu.data.partition import Partition
from fu.evaluation import accuracy
from fu.evaluation.context import Context
from fu.federation.network import Network
from tests.evaluation.scene import CLASSES, TopRow, reads_top_row, swap_rows

# Class of each sample and the class that the model gives it: six of training, then pools, then tests.
TRAIN = [(0, 0), (0, 1), (1, 1), (2, 2), (2, 0), (3, 3)]  # of clients 0, 1, 1, 2, 2, 2
HELD_OUT = [(0, 0), (1, 0), (2, 2), (3, 1), (3, 3)]
TEST = [(0, 0), (1, 1), (1, 0), (2, 0), (2, 1), (3, 3), (0, 2), (3, 0)]
OWN = [[0, 1], [2, 3, 4], [5, 6, 7]]  # the tests, if they are the clients' own
ALL = np.arange(len(TRAIN) + len(HELD_OUT) + len(TEST))


def context(absent: tuple[int, ...] = (), own: bool = False, held_out: bool = True, **more: Any) -> Context:
    """Return what an evaluator is given of three clients with a model whose every prediction is written above."""
    labels, answers = zip(*TRAIN, *HELD_OUT, *TEST, strict=True)
    rows = torch.nn.functional.one_hot(torch.tensor([answers, answers]).T, CLASSES).float()[..., None]
    tests = ALL[len(TRAIN) + len(HELD_OUT) :]
    nobody = np.empty(0, np.int64)
    part = Partition(
        train=[ALL[:1], ALL[1:3], ALL[3:6]],
        validation=[nobody] * 3,
        test=[tests[rows] for rows in OWN] if own else [nobody] * 3,
        attacked=np.array([0]),
        absent=np.array(absent, np.int64),
        held_out=ALL[len(TRAIN) : len(TRAIN) + len(HELD_OUT)] if held_out else nobody,
        global_test=nobody if own else tests,
    )
    data = ClientData(rows, torch.tensor(labels), part, CLASSES, "all", swap_rows)
    return Context(Network(TopRow(), data.device), data, reads_top_row(), **more)


@pytest.mark.parametrize("own", [False, True])
def test_accuracy_is_the_share_of_all_test_samples_and_of_the_held_out_ones(own: bool) -> None:
    expected = {"accuracy": 3 / 8, "accuracy_held_out": 3 / 5}
    assert accuracy.trace(context(own=own)) == pytest.approx(expected)
    assert accuracy.trace(context(own=own, held_out=False)) == pytest.approx({"accuracy": 3 / 8})
    assert accuracy.evaluate(context(own=own)) == pytest.approx({**expected, "share_present": 1.0})


@pytest.mark.parametrize(
    ("absent", "expected"),
    [
        ((), {"share_present": 1.0}),
        ((0,), {"share_present": 1.0}),  # client 1 holds class 0, too
        ((1,), {"share_present": 6 / 8, "accuracy_absent": 1 / 2}),  # class 1
        ((2,), {"share_present": 4 / 8, "accuracy_absent": 1 / 4}),  # classes 2 and 3: right is one of four
        ((0, 1), {"share_present": 4 / 8, "accuracy_absent": 2 / 4}),
    ],
)
def test_accuracy_on_absent_classes_is_that_on_classes_no_present_client_holds(
    absent: tuple[int, ...], expected: dict[str, float]
) -> None:
    """The trigger gives client 0 class 2 to train on, which does not make it a holder of it."""
    found = accuracy.evaluate(context(absent))
    assert {name: found[name] for name in found if name in ("share_present", "accuracy_absent")} == expected


def rows(numbers: list[float | None]) -> list[dict[str, str]]:
    """Return a trace with these accuracies, and the same minus one hundred on held-out samples."""
    texts = [{} if number is None else {"accuracy": number, "accuracy_held_out": number - 100} for number in numbers]
    names = ("accuracy", "accuracy_held_out")
    return [{"round": str(k), **{name: str(text.get(name, "")) for name in names}} for k, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([float(k) for k in range(14)], 8.5),  # rounds 4 to 13
        ([100.0, 1.0, 2.0, 6.0], 3.0),  # the first row is the model before the first round
        ([100.0, *range(1, 11)], 5.5),
        ([0.0, 50.0, None, *range(1, 11), None], 5.5),  # ten of the eleven that were measured
        ([0.0, 0.0, None, 4.0], 2.0),  # zero is a number
    ],
)
def test_the_accuracy_of_ten_rounds_is_the_mean_of_the_last_ten_measured(
    numbers: list[float | None], expected: float
) -> None:
    found = accuracy.evaluate(context(trace=rows(numbers)))
    assert found["accuracy_of_ten"] == pytest.approx(expected)
    assert found["accuracy_held_out_of_ten"] == pytest.approx(expected - 100)


@pytest.mark.parametrize("trace", [[], rows([0.5]), rows([0.5, None]), [{"round": "0"}, {"round": "1", "asr": "0.1"}]])
def test_without_measured_rounds_there_is_no_mean_over_them(trace: list[dict[str, str]]) -> None:
    assert not [name for name in accuracy.evaluate(context(trace=trace)) if name.endswith("_of_ten")]
