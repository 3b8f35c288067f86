"""Both sides of Assumption 5.1, the groups' gradients and training losses, by hand on one pixel and two classes."""

from math import log

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fu.data.clients import ClientData
from fu.data.partition import Partition
from fu.data.request import Request
from fu.evaluation import heterogeneity
from fu.evaluation.context import Context
from fu.federation.network import Network

# Per client (pixel x, label y); at theta = 0 its gradient is (u, -u), u the mean of -x / 2 where y = 0, of x / 2 else.
SAMPLES = [
    [(2.0, 0)],  # u = -1
    [(4.0, 1), (0.0, 1)],  # forgotten, u = 1
    [(6.0, 1), (6.0, 1), (0.0, 1)],  # u = 2
    [(2.0, 0)],  # forgotten, u = -1
    [(9.0, 0), (8.0, 0)],  # takes no part
]


class Pixel(nn.Module):
    """Two classes, whose outputs are a pixel times two weights."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(1, 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x.flatten(1))


def context(theta: tuple[float, float] = (0.0, 0.0), forgotten: tuple[int, ...] = (1, 3)) -> Context:
    """Return what an evaluator is given of a model; every client has one test sample, which must not count."""
    pixels, labels = zip(*[pair for client in SAMPLES for pair in client], strict=True)
    ends = np.cumsum([len(client) for client in SAMPLES])
    test = [np.array([len(labels) + k]) for k in range(len(SAMPLES))]
    train, none = np.split(np.arange(len(labels)), ends[:-1]), [np.empty(0, np.int64)] * len(SAMPLES)
    part = Partition(train, none, test, absent=np.array([4]))
    x = torch.tensor([*pixels, *[7.0] * len(test)])[:, None, None, None]
    y = torch.tensor([*labels, *[0] * len(test)])
    data = ClientData(x, y, part, 2, "all", None, Request(np.array(forgotten, np.int64)))
    return Context(Network(Pixel(), data.device), data, torch.tensor(theta))


# Retained: u is -1 and 2 at weights 1/4 and 3/4, so 5/4 in the mean. Forgotten: 1 and -1 at 2/3 and 1/3, so 1/3.
APART = {
    "clients_apart": 2 * ((9 / 4) ** 2 / 4 + 3 * (3 / 4) ** 2 / 4),
    "gradient_retained": 2 * (5 / 4) ** 2,
    "groups_apart": 2 * (5 / 4 - 1 / 3) ** 2,
}


def test_gradients_of_clients_and_groups_are_weighed_by_training_size() -> None:
    found = heterogeneity.evaluate(context())
    assert {name: found[name] for name in APART} == pytest.approx(APART, rel=1e-6)
    assert found["share_forgotten"] == pytest.approx(3 / 7)
    assert heterogeneity.trace(context()) == {name: found[name] for name in APART}
    assert tuple(heterogeneity.trace(context())) == heterogeneity.TRACE


def test_a_request_decides_who_is_retained_and_one_client_alone_is_not_apart() -> None:
    """Clients 1 and 3 retained: u is 1 and -1 at 2/3 and 1/3, so 1/3 in the mean."""
    found = heterogeneity.trace(context(forgotten=(0, 2)))
    assert found["clients_apart"] == pytest.approx(2 * ((2 / 3) ** 2 * 2 / 3 + (4 / 3) ** 2 / 3), rel=1e-6)
    assert heterogeneity.trace(context(forgotten=(1, 2, 3)))["clients_apart"] == 0.0


def test_training_losses_of_clients_and_of_the_retained() -> None:
    """At weights (log 3, 0) a pixel x has class 0 at the odds 3^x."""
    found = heterogeneity.evaluate(context((log(3), 0.0)))
    each = {0: log(10 / 9), 1: (log(82) + log(2)) / 2, 2: (2 * log(730) + log(2)) / 3, 3: log(10 / 9)}
    assert found["client_training_loss"] == pytest.approx(each, rel=1e-5)
    assert found["retained_training_loss"] == pytest.approx((each[0] + 3 * each[2]) / 4, rel=1e-5)


def test_where_no_client_is_forgotten_groups_are_not_compared() -> None:
    """All four: u is -1, 1, 2, -1 at weights 1, 2, 3, 1 of 7, so 6/7 in the mean."""
    found = heterogeneity.evaluate(context(forgotten=()))
    assert set(heterogeneity.METRICS) - set(found) == {"groups_apart"}
    assert found["share_forgotten"] == 0.0
    assert found["gradient_retained"] == pytest.approx(2 * (6 / 7) ** 2, rel=1e-6)
