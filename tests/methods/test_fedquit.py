"""FedQUIT: its teacher, its loss, and who is taught."""

import math

import pytest
import torch
from torch import Tensor

from fu.federation.network import Network
from fu.methods import fedquit
from tests.factories import PLACE, builder, make_data, make_federation, make_partition, make_task, params_of

LOGITS = torch.tensor([[math.log(6), math.log(3), 0.0], [0.0, math.log(2), math.log(5)]])
LABELS = torch.tensor([0, 1])


@pytest.mark.parametrize(
    ("v", "expected"),
    [
        ("least", [[1 / 5, 3 / 5, 1 / 5], [1 / 7, 1 / 7, 5 / 7]]),
        (math.log(4), [[4 / 8, 3 / 8, 1 / 8], [1 / 10, 4 / 10, 5 / 10]]),
        # others 3/4 and 1/4: log 3 * 3/4; 1/6 and 5/6: log 5 * 5/6
        ("entropy", [[3**0.75, 3, 1], [1, 5 ** (5 / 6), 5]]),
    ],
)
def test_the_teacher_does_not_know_the_true_class(v: str | float, expected: list[list[float]]) -> None:
    rows = torch.tensor(expected)
    torch.testing.assert_close(fedquit.teacher(LOGITS, LABELS, v), rows / rows.sum(1, keepdim=True))


def test_a_true_class_that_is_the_least_likely_already_stays_so() -> None:
    logits = torch.tensor([[0.0, math.log(3), math.log(4)]])
    expected = torch.tensor([[1 / 8, 3 / 8, 4 / 8]])
    torch.testing.assert_close(fedquit.teacher(logits, torch.tensor([0]), "least"), expected)


def test_the_entropy_of_the_teacher_is_largest_at_its_v() -> None:
    def entropy(v: str | float) -> Tensor:
        p = fedquit.teacher(LOGITS, LABELS, v)
        return -(p * p.log()).sum(1)

    best = entropy("entropy")
    assert all((best >= entropy(v / 10) - 1e-6).all() for v in range(-50, 51))


def test_the_loss_is_the_divergence_of_teacher_and_student() -> None:
    targets = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    logits = torch.log(torch.tensor([[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]))
    expected = [0.5 * math.log(2) - 0.25 * math.log(2), math.log(2)]
    torch.testing.assert_close(fedquit.divergence(logits, targets), torch.tensor(expected))


def test_the_forgotten_clients_alone_learn_from_the_original_model() -> None:
    task = make_task(make_federation(make_data(make_partition((7, 12, 9, 8), (1, 3))), lr=0.5))
    p = params_of(fedquit)
    first = fedquit.start(task, p)
    assert torch.equal(first.theta, task.original_model)
    network = Network(builder()(), PLACE)

    def targets(x: Tensor, y: Tensor) -> Tensor:
        return fedquit.teacher(network.logits(task.original_model, x), y, "least")

    for state, round in ((first, 0), (fedquit.step(task, p, first, 0), 1)):
        again = make_federation(task.federation.data, lr=0.5)
        each = again.local_updates(state.theta, [1, 3], round, fedquit.divergence, relabel=targets).delta
        expected = state.theta + (12 * each[0] + 8 * each[1]) / 20
        torch.testing.assert_close(fedquit.step(task, p, state, round).theta, expected, rtol=0, atol=1e-5)
    assert task.federation.cost.client_rounds == task.federation.cost.forgotten_rounds


def test_what_a_student_believes_of_the_true_class_falls_to_its_teachers() -> None:
    task = make_task(make_federation(lr=1.0, lr_decay=1.0), rounds=60)
    p = params_of(fedquit)
    state = fedquit.start(task, p)
    x, y = task.federation.data.train(1)

    def true_class(theta: Tensor) -> float:
        return task.federation.logits(theta, x).softmax(1).gather(1, y[:, None]).mean().item()

    taught = fedquit.teacher(task.federation.logits(state.theta, x), y, "least").gather(1, y[:, None]).mean().item()
    first = true_class(state.theta)
    assert first > 1.2 * taught
    for round in range(60):
        state = fedquit.step(task, p, state, round)
    assert 0.5 < (first - true_class(state.theta)) / (first - taught) < 1
