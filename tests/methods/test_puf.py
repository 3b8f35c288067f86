"""PUF: what is subtracted in the first round, and FedAvg after it."""

import pytest
import torch

from fu.methods import puf
from tests.factories import make_data, make_federation, make_partition, make_task, params_of
from tests.systems import weighted_mean

SIZES, FORGOTTEN, RETAINED = (7, 12, 9, 8), (1, 3), (0, 2)


@pytest.mark.parametrize("rate", [0, 3, 20])
def test_in_a_regular_round_the_forgotten_clients_updates_are_subtracted(rate: float) -> None:
    task = make_task(make_federation(make_data(make_partition(SIZES, FORGOTTEN))))
    p = params_of(puf, unlearning_rate=rate)
    state = puf.start(task, p)
    assert torch.equal(state.theta, task.original_model)
    each = make_federation(task.federation.data).local_updates(state.theta, [0, 1, 2, 3], 0).delta
    expected = state.theta + (7 * each[0] + 9 * each[2] - rate * (12 * each[1] + 8 * each[3])) / 36
    found = puf.step(task, p, state, 0)
    torch.testing.assert_close(found.theta, expected, rtol=1e-5, atol=1e-5)
    assert (task.federation.cost.client_rounds, task.federation.cost.forgotten_rounds) == (4, 2)


def test_in_a_special_round_the_forgotten_clients_are_alone() -> None:
    task = make_task(make_federation(make_data(make_partition(SIZES, FORGOTTEN))))
    p = params_of(puf, unlearning_rate=2, round="special")
    state = puf.start(task, p)
    each = make_federation(task.federation.data).local_updates(state.theta, FORGOTTEN, 0).delta
    expected = state.theta - 2 * (12 * each[0] + 8 * each[1]) / 20
    torch.testing.assert_close(puf.step(task, p, state, 0).theta, expected, rtol=1e-5, atol=1e-5)
    assert task.federation.cost.client_rounds == 2


@pytest.mark.parametrize("kind", ["regular", "special"])
def test_all_other_rounds_are_fedavg_on_the_retained_clients(kind: str) -> None:
    task = make_task(make_federation(make_data(make_partition(SIZES, FORGOTTEN))))
    p = params_of(puf, round=kind)
    state = puf.start(task, p)
    delta = make_federation(task.federation.data).local_updates(state.theta, RETAINED, 1).delta
    found = puf.step(task, p, state, 1)
    torch.testing.assert_close(found.theta, state.theta + weighted_mean(delta, [7, 9]), rtol=0, atol=1e-6)
    assert task.federation.cost.forgotten_rounds == 0
