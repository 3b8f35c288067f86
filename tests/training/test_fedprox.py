"""FedProx: its steps by hand, and FedAvg where mu is zero."""

from dataclasses import replace

import torch
from torch import Tensor

from fu.federation.gradient import loss_gradient
from fu.federation.task import State
from fu.training import fedavg, fedprox
from tests.factories import make_federation, make_task, params_of


def test_two_steps_of_a_client_by_hand() -> None:
    """A step is w <- w - lr (g + mu (w - w_t)); the second sees how far the first has moved."""
    task = replace(
        make_task(make_federation(batch_size=20, local_epochs=2, lr=0.1), trained=False), clients_per_round=1
    )
    theta = task.first_model()
    (client,) = task.participants(0)
    other = make_federation()
    x, y = other.data.train(client)  # one batch holds all of them, in any order

    def gradient(at: Tensor) -> Tensor:
        return loss_gradient(other.network, at, x, y)[1]

    one = theta - 0.1 * gradient(theta)
    two = one - 0.1 * (gradient(one) + 3.0 * (one - theta))
    found = fedprox.step(task, params_of(fedprox, mu=3.0), State(theta), 0).theta
    torch.testing.assert_close(found, two, rtol=1e-4, atol=1e-6)


def test_without_the_proximal_term_it_is_fedavg() -> None:
    task, again = make_task(trained=False), make_task(trained=False)
    theta = task.first_model()
    found = fedprox.step(task, params_of(fedprox, mu=0), State(theta), 1).theta
    torch.testing.assert_close(found, fedavg.step(again, params_of(fedavg), State(theta), 1).theta)
