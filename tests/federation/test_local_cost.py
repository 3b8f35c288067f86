"""What local training costs, and that nothing is computed twice."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fu.federation.local import Cost, Federation, Updates
from tests.factories import make_data, make_federation, make_partition
from tests.federation.runs import count_calls, start_of


def test_costs_equal_hand_computed_values() -> None:
    federation = make_federation(batch_size=5, local_epochs=2)  # 7, 12, 9 samples: 2, 3, 2 batches
    theta, size = start_of(federation), federation.layout.size

    def cost(clients: int, steps: int, samples: int, time: int) -> Cost:
        """Of the clients' rounds one in each call is the forgotten client's; each model is 4 bytes a number."""
        return Cost(clients, calls, steps, samples, time, bytes_up=4 * size * clients, bytes_down=4 * size * clients)

    calls = 1
    federation.local_updates(theta, [0, 1, 2], 0)
    assert federation.cost == cost(3, 14, 56, 6)  # of client 1: 3 batches, twice
    calls = 2
    federation.local_updates(theta, [0, 1], 1, steps=4)  # 5+2+5+2 and 5+5+2+5 samples
    assert federation.cost == cost(5, 14 + 8, 56 + 14 + 17, 6 + 4)
    calls = 3
    federation.local_updates(theta, [1, 0, 1, 1], 2)  # drawn several times, a client trains and sends once
    assert federation.cost == cost(7, 22 + 10, 87 + 38, 10 + 6)


def test_clients_that_start_from_one_model_in_a_round_train_side_by_side() -> None:
    federation = make_federation(batch_size=5, local_epochs=2)  # 4, 6 and 4 steps
    theta, spent = start_of(federation), []
    asked: list[tuple[Tensor, list[int], int]] = [(theta, [0], 0), (theta, [1], 0), (theta, [2], 0), (theta, [1], 0)]
    asked += [(theta.clone(), [0], 0), (theta, [1, 0], 1), (theta, [], 2)]
    for start, clients, round in asked:
        federation.local_updates(start, clients, round)
        spent.append(federation.cost.time_steps)
    federation.local_updates(theta, [1], 3, counted=False)
    assert [*spent, federation.cost.time_steps] == [4, 6, 6, 6, 10, 16, 16, 16]


@pytest.mark.parametrize("strategy", ["sequential", "vectorised"])
@pytest.mark.parametrize("steps", [None, 1, 2, 5])
def test_samples_counted_are_the_samples_drawn(strategy: str, steps: int | None) -> None:
    federation = make_federation(strategy=strategy)
    federation.local_updates(start_of(federation), [0, 1, 2], 0, steps=steps)
    drawn = [len(y) for client in range(3) for _, y in federation.batches(client, 0, steps)]
    assert (federation.cost.steps, federation.cost.samples) == (len(drawn), sum(drawn))


def test_updates_asked_for_twice_are_computed_once() -> None:
    federation = make_federation()
    theta = start_of(federation)
    calls = count_calls(federation.model)
    first = federation.local_updates(theta, [0, 1, 2], 0)
    assert sum(calls) == 56
    again = federation.local_updates(theta, [2, 0], 0, counted=False)
    assert sum(calls) == 56
    assert torch.equal(again.delta, first.delta[[2, 0]])
    assert torch.equal(again.losses, first.losses[[2, 0]])
    assert federation.cost.client_rounds == 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda federation, theta: federation.local_updates(theta.clone(), [0], 0),
        lambda federation, theta: federation.local_updates(theta, [0], 1),
        lambda federation, theta: federation.local_updates(theta, [0], 0, "unlearning_cross_entropy"),
        lambda federation, theta: federation.local_updates(theta, [0], 0, steps=4),
        lambda federation, theta: federation.local_updates(theta, [1], 0),
    ],
    ids=["theta", "round", "objective", "steps", "client"],
)
def test_other_updates_are_computed_anew(ask: Callable[[Federation, Tensor], Updates]) -> None:
    federation = make_federation()
    theta = start_of(federation)
    federation.local_updates(theta, [0], 0)
    calls = count_calls(federation.model)
    updates = ask(federation, theta)
    assert calls
    assert torch.equal(updates.delta, ask(make_federation(), theta).delta)


def test_other_data_have_updates_of_their_own() -> None:
    federation = make_federation()
    theta = start_of(federation)
    own = federation.local_updates(theta, [1], 0).delta
    data = make_data(make_partition((7, 5, 9)))
    found = federation.holding(data).local_updates(theta, [1], 0).delta
    assert torch.equal(found, make_federation(data).local_updates(theta, [1], 0).delta)
    assert not torch.equal(found, own)


def test_hooked_updates_are_neither_remembered_nor_taken_from_memory() -> None:
    federation = make_federation()
    theta = start_of(federation)
    plain = federation.local_updates(theta, [0], 0).delta

    def to_zero(weights: Tensor) -> None:
        weights.zero_()

    hooked = federation.local_updates(theta, [0], 0, project=to_zero).delta
    assert torch.equal(hooked[0], -theta)
    assert torch.equal(federation.local_updates(theta, [0], 0).delta, plain)
