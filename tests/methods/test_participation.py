"""Methods that train on the retained clients: who takes part in a round, and with which weight."""

from dataclasses import replace
from types import ModuleType

import pytest
import torch
from torch import Tensor

from fu.methods import fine_tuning, fused, puf, weight_negation
from tests.factories import make_data, make_federation, make_partition, make_task, params_of
from tests.systems import weighted_mean

SIZES = (7, 12, 9, 8, 11)
SEED = 0  # draws a client twice in rounds 0 and 1


@pytest.mark.parametrize("method", [fine_tuning, weight_negation, puf, fused], ids=lambda method: method.__name__)
def test_those_drawn_for_a_round_take_part_and_one_drawn_twice_counts_twice(method: ModuleType) -> None:
    data = make_data(make_partition(SIZES))
    task = replace(make_task(make_federation(data)), clients_per_round=3, with_replacement=True, seed=SEED)
    drawn = task.participants(1)
    assert len(drawn) > len(set(drawn))
    assert set(drawn) < set(task.retained)
    p = params_of(method)
    state = method.start(task, p)
    mask = state.mask.bool() if method is fused else torch.ones(len(state.theta), dtype=torch.bool)

    def hold(weights: Tensor) -> None:
        weights[~mask] = task.original_model[~mask]

    clients = [*dict.fromkeys(drawn)]
    project = hold if method is fused else None
    rows = make_federation(data).local_updates(state.theta, clients, 1, project=project).delta
    each = dict(zip(clients, rows, strict=True))
    moved = weighted_mean(torch.stack([each[client] for client in drawn]), [SIZES[client] for client in drawn])
    found = method.step(task, p, state, 1).theta - state.theta
    torch.testing.assert_close(found, moved, rtol=1e-4, atol=1e-6)


def test_puf_weighs_its_first_round_by_those_drawn() -> None:
    data = make_data(make_partition(SIZES))
    task = replace(make_task(make_federation(data)), clients_per_round=3, with_replacement=True, seed=SEED)
    state = puf.start(task, params_of(puf))
    drawn = task.participants(0)
    rows = make_federation(data).local_updates(state.theta, [0, 1, 2, 3, 4], 0).delta
    kept = sum(SIZES[client] * rows[client] for client in drawn)
    total = sum(SIZES[client] for client in drawn) + SIZES[1]
    found = puf.step(task, params_of(puf, unlearning_rate=5), state, 0).theta
    torch.testing.assert_close(found, state.theta + (kept - 5 * SIZES[1] * rows[1]) / total, rtol=1e-4, atol=1e-5)
