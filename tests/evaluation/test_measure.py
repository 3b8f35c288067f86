"""What is measured of a model: accuracies of clients, attack success, distance."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.evaluation import measure, utility, values
from fu.federation.task import Task
from tests.factories import CLASSES, MARK, builder, make_context, make_data, make_federation, make_partition, make_task
from tests.systems import random

FEDOSD = ("backdoor", "utility", "distance", "conflicts")


def measured(task: Task, traced: Sequence[str]) -> Callable[[Tensor], dict[str, float]]:
    return values.measured(task, task.federation.data, traced)


def marked(x: Tensor) -> Tensor:
    """Return images [n, h, w, c] with the toy's trigger of three pixels, one pixel from the lower right border."""
    x = x.clone()
    for row, column in ((-3, -3), (-2, -3), (-2, -2)):
        x[:, row, column] = MARK
    return x


def classes_of(task: Task, theta: Tensor, x: Tensor) -> Tensor:
    """Return the classes that a network of its own gives images [n, h, w, c]."""
    net = builder()()
    net.load_state_dict(task.federation.layout.named(theta))
    return net(x.permute(0, 3, 1, 2)).argmax(1)


@pytest.fixture
def scene() -> tuple[Task, Tensor]:
    """Four clients, two of them to be forgotten, and a model that gives their images many classes."""
    task = make_task(make_federation(make_data(make_partition((7, 30, 9, 28), (1, 3)))))
    theta = 3 * random(task.federation.layout.size, seed=2)
    data, part = task.federation.data, task.federation.data.partition
    for split in (part.test, part.validation, part.train):  # half of the labels as the model has them, in turn
        for rows in split:
            x = marked(data.x[rows]) if split is part.train else data.x[rows]
            shift = CLASSES // 2 if split is part.train else 0
            data.y[rows[::2]] = (classes_of(task, theta, x) - shift)[::2] % CLASSES
    return task, theta


@pytest.mark.parametrize("split", ["test", "validation"])
def test_a_retained_clients_accuracy_is_that_on_its_own_samples(
    scene: tuple[Task, Tensor], split: Literal["test", "validation"]
) -> None:
    task, theta = scene
    data = task.federation.data
    expected = []
    for rows in (getattr(data.partition, split)[client] for client in (0, 2)):
        right = classes_of(task, theta, data.x[rows]) == data.y[rows]
        expected.append(float(np.mean(right.numpy())))
    found = measure.client_accuracies(make_context(task, theta), split)
    assert found.dtype == torch.float64
    assert found.tolist() == expected
    assert min(expected) > 0


@pytest.mark.parametrize("split", ["train", "validation"])
def test_attack_success_is_the_accuracy_on_all_triggered_samples_of_the_forgotten_clients(
    scene: tuple[Task, Tensor], split: Literal["train", "validation"]
) -> None:
    task, theta = scene
    data = task.federation.data
    rows = np.concatenate([getattr(data.partition, split)[client] for client in (1, 3)])
    flipped = (data.y[rows] + CLASSES // 2) % CLASSES
    right = classes_of(task, theta, marked(data.x[rows])) == flipped
    assert measure.attack_success_rate(make_context(task, theta), split) == float(np.mean(right.numpy()))
    if split == "train":
        assert 0.5 <= right.double().mean() < 1
        assert (classes_of(task, theta, data.x[rows]) != classes_of(task, theta, marked(data.x[rows]))).any()


def always_class_zero(**partition: Any) -> tuple[Task, Tensor]:
    """Return a task whose clients hold few labels of class zero, and a model that gives every image this class."""
    part = make_partition(**partition)
    data = make_data(part)
    task = make_task(make_federation(data))
    theta = torch.zeros(task.federation.layout.size)
    list(task.federation.layout.views(theta).values())[-1][0] = 1
    data.y[:] = 1
    data.y[part.test[0][:2]] = 0
    data.y[part.test[1]] = 0  # of the forgotten client, which does not count
    data.y[part.test[2][:1]] = 0
    data.y[part.train[1][:3]] = CLASSES // 2  # becomes zero with the trigger
    return task, theta


def test_metrics_of_a_round_are_what_they_are_by_hand() -> None:
    task, theta = always_class_zero()
    found = measured(task, FEDOSD)(theta)
    assert found == {
        "r_acc": pytest.approx((2 / 3 + 1 / 3) / 2),
        "r_acc_std": pytest.approx(1 / 6),
        "r_acc_worst": pytest.approx(1 / 3),
        "r_acc_best": pytest.approx(2 / 3),
        "asr": 3 / 12,
        "distance": pytest.approx(np.linalg.norm((theta - task.original_model).double().numpy()), rel=1e-12),
    }
    assert found["distance"] > 1


def test_without_an_attack_there_is_no_attack_success() -> None:
    task, theta = always_class_zero(trigger=False)
    assert tuple(measured(task, FEDOSD)(theta)) == (*utility.TRACE, "distance")


def test_there_is_no_distance_without_an_original_model() -> None:
    task = make_task(trained=False)
    theta = torch.zeros(task.federation.layout.size)
    assert tuple(measured(task, FEDOSD)(theta)) == ("asr", *utility.TRACE)


def test_only_what_is_traced_is_measured_in_its_order() -> None:
    task, theta = always_class_zero()
    assert tuple(measured(task, ["distance", "backdoor"])(theta)) == ("distance", "asr")
    assert measured(task, ["conflicts"])(theta) == measured(task, [])(theta) == {}
