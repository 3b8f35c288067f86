"""FedQUIT: its teacher, its loss, and who is taught."""

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from fu.federation.network import Network
from fu.methods import fedquit
from tests.factories import PLACE, builder, make_task
from tests.systems import forgetting_two, states_of

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
    least = torch.tensor([[0.0, 1.0, 2.0]])  # the true class is the least likely already
    torch.testing.assert_close(fedquit.teacher(least, torch.tensor([0]), "least"), least.softmax(1))


def test_the_entropy_of_the_teacher_is_largest_at_its_v() -> None:
    def entropy(v: str | float) -> Tensor:
        p = fedquit.teacher(LOGITS, LABELS, v)
        return -(p * p.log()).sum(1)

    best = entropy("entropy")
    assert all((best >= entropy(v / 10) - 1e-6).all() for v in range(-50, 51))


def test_the_loss_is_the_divergence_of_teacher_and_student() -> None:
    targets = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    logits = torch.log(torch.tensor([[1.0, 1.0, 2.0], [6.0, 3.0, 3.0]]))  # 1/4, 1/4, 1/2 and 1/2, 1/4, 1/4
    expected = [0.5 * math.log(2) - 0.25 * math.log(2), math.log(2)]
    torch.testing.assert_close(fedquit.divergence(logits, targets), torch.tensor(expected))


def test_the_forgotten_clients_alone_learn_from_the_original_model() -> None:
    task = make_task(forgetting_two(lr=0.5))
    states = [state.theta for state in states_of(fedquit, task, 2)]
    assert torch.equal(states[0], task.original_model)
    network = Network(builder()(), PLACE)

    def targets(x: Tensor, y: Tensor) -> Tensor:
        return fedquit.teacher(network.logits(task.original_model, x), y, "least")

    for round, (before, after) in enumerate(pairwise(states)):
        again = forgetting_two(lr=0.5)
        each = again.local_updates(before, [1, 3], round, fedquit.divergence, relabel=targets).delta
        torch.testing.assert_close(after, before + (12 * each[0] + 8 * each[1]) / 20, rtol=0, atol=1e-5)
    assert task.federation.cost.client_rounds == task.federation.cost.forgotten_rounds
