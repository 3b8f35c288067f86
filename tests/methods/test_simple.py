"""Methods that are FedAvg but for a step: fine-tuning, gradient ascent, NoT and PUF; who takes part in a round."""

from dataclasses import replace
from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from fu.data.clients import ClientData
from fu.data.partition import Partition, no_indices
from fu.data.request import Request, in_a_row
from fu.errors import UserError
from fu.federation.local import Federation
from fu.federation.task import Task
from fu.methods import fine_tuning, fused, gradient_ascent, puf, weight_negation
from tests.factories import COLOUR, make_data, make_federation, make_partition, make_task, params_of
from tests.systems import forgetting_two, states_of, weighted_mean


@pytest.mark.parametrize("method", [fine_tuning, weight_negation], ids=lambda method: method.__name__)
def test_the_retained_clients_fine_tune(method: ModuleType) -> None:
    task = make_task()
    states = states_of(method, task, 2)
    for round, (before, after) in enumerate(pairwise(states)):
        moved = weighted_mean(make_federation().local_updates(before.theta, [0, 2], round).delta, [7, 9])
        torch.testing.assert_close(after.theta, before.theta + moved, rtol=0, atol=1e-6)
    assert torch.equal(states[0].theta, task.original_model) == (method is fine_tuning)
    assert task.federation.cost.forgotten_rounds == 0


def test_fine_tuning_leaves_out_forgotten_samples_and_continues_with_the_next_request() -> None:
    def federation(part: Partition, asked: Request | None = None) -> Federation:
        drawn = make_data(whole)
        return make_federation(ClientData(drawn.inputs, drawn.y, part, drawn.classes, "all", request=asked))

    whole = make_partition(trigger=False)
    first, second = np.sort(whole.train[0][:2]), np.sort(whole.train[2][:3])
    task = make_task(federation(whole, in_a_row([no_indices()] * 2, [first, second])))
    p, state = params_of(fine_tuning), fine_tuning.start(task.after(1), params_of(fine_tuning))
    gone, sizes = first, [5, 12, 9]
    for requests in (1, 2):
        left = replace(whole, train=[rows[~np.isin(rows, gone)] for rows in whole.train])
        moved = weighted_mean(federation(left).local_updates(state.theta, [0, 1, 2], requests).delta, sizes)
        met = fine_tuning.step(task.after(requests), p, state, requests)
        torch.testing.assert_close(met.theta, state.theta + moved, rtol=0, atol=1e-6)
        state = fine_tuning.again(task, p, met, requests)
        assert torch.equal(state.theta, met.theta)
        gone, sizes = np.concatenate([first, second]), [5, 12, 6]


def test_gradient_ascent_averages_the_forgotten_clients_by_their_samples() -> None:
    task = make_task(forgetting_two())
    first, second = (state.theta for state in states_of(gradient_ascent, task, 1))
    assert torch.equal(first, task.original_model)
    each = forgetting_two().local_updates(first, [1, 3], 0, "negative_cross_entropy").delta
    torch.testing.assert_close(second, first + (12 * each[0] + 8 * each[1]) / 20, rtol=0, atol=1e-6)
    assert task.federation.cost.client_rounds == task.federation.cost.forgotten_rounds == 2


def test_gradient_ascent_takes_steps_of_at_most_the_clipped_gradient() -> None:
    first, second = (state.theta for state in states_of(gradient_ascent, make_task(), 1, clip=0.01))
    steps = 6  # two epochs of twelve samples in batches of five
    assert 0 < (second - first).norm() <= steps * 0.1 * 0.01 * (1 + 1e-4)


@pytest.mark.parametrize("model", ["mlp", "lenet5", "nfresnet18"])
def test_not_negates_the_first_layers_weights_alone(model: str) -> None:
    shape = COLOUR if model == "nfresnet18" else (28, 28, 1)
    task = make_task(make_federation(make_data(make_partition(), shape), model), model)
    views = task.federation.layout.views
    before, after = (views(theta) for theta in (task.original_model, states_of(weight_negation, task, 0)[0].theta))
    first, *others = before
    assert first.endswith("weight")
    assert torch.equal(after[first], -before[first])
    assert before[first].abs().max() > 0
    assert all(torch.equal(after[name], before[name]) for name in others)


def test_not_refuses_a_model_that_begins_with_neither_a_convolution_nor_a_fully_connected_layer() -> None:
    for model, sentence in (
        (nn.Sequential(nn.GroupNorm(1, 1), nn.Conv2d(1, 2, 3)), r"here it is GroupNorm \(0\)\."),
        (nn.Embedding(3, 2), r"here it is Embedding \(the model itself\)\."),
        (nn.Flatten(), r"here it is Flatten \(the model itself\)\."),
        (nn.Sequential(weight_norm(nn.Conv2d(1, 2, 3))), r"here it is ParametrizedConv2d \(0\)\."),
    ):
        with pytest.raises(UserError, match=sentence):
            weight_negation.check(model, params_of(weight_negation))
    assert weight_negation.first_weight(nn.Linear(2, 3)) == "weight"
    assert weight_negation.first_weight(nn.Sequential(nn.ReLU(), nn.Linear(2, 3))) == "1.weight"


@pytest.mark.parametrize(("stated", "rate"), [(0, 0), (3, 3), (None, 20)])
def test_in_pufs_regular_round_the_forgotten_clients_updates_are_subtracted(stated: float | None, rate: float) -> None:
    task = make_task(forgetting_two())
    first, second = (state.theta for state in states_of(puf, task, 1, unlearning_rate=stated))
    assert torch.equal(first, task.original_model)
    each = forgetting_two().local_updates(first, [0, 1, 2, 3], 0).delta
    expected = first + (7 * each[0] + 9 * each[2] - rate * (12 * each[1] + 8 * each[3])) / 36
    torch.testing.assert_close(second, expected, rtol=1e-5, atol=1e-5)
    assert (task.federation.cost.client_rounds, task.federation.cost.forgotten_rounds) == (4, 2)


def test_in_pufs_special_round_the_forgotten_clients_are_alone_and_later_the_retained_ones() -> None:
    task = make_task(forgetting_two())
    first, second, third = (s.theta for s in states_of(puf, task, 2, round="special"))
    each = forgetting_two().local_updates(first, [1, 3], 0).delta
    torch.testing.assert_close(second, first - 2 * (12 * each[0] + 8 * each[1]) / 20, rtol=1e-5, atol=1e-5)
    delta = forgetting_two().local_updates(second, [0, 2], 1).delta
    torch.testing.assert_close(third, second + weighted_mean(delta, [7, 9]), rtol=0, atol=1e-6)
    assert (task.federation.cost.client_rounds, task.federation.cost.forgotten_rounds) == (4, 2)


SIZES = (7, 12, 9, 8, 11)


def drawing() -> Task:
    """Return a task of five clients of whom three are drawn for a round: one of them twice in rounds 0 and 1."""
    task = make_task(make_federation(make_data(make_partition(SIZES))))
    return replace(task, clients_per_round=3, with_replacement=True, seed=0)


@pytest.mark.parametrize("method", [fine_tuning, weight_negation, puf, fused], ids=lambda method: method.__name__)
def test_those_drawn_for_a_round_take_part_and_one_drawn_twice_counts_twice(method: ModuleType) -> None:
    task, p = drawing(), params_of(method)
    drawn, state = task.participants(1), method.start(task, p)
    assert len(drawn) > len(set(drawn))
    assert set(drawn) < set(task.retained)
    mask = state.mask.bool() if method is fused else torch.ones(len(state.theta), dtype=torch.bool)

    def hold(weights: Tensor) -> None:
        weights[~mask] = task.original_model[~mask]

    project = hold if method is fused else None
    rows = drawing().federation.local_updates(state.theta, drawn, 1, project=project).delta
    found = method.step(task, p, state, 1).theta - state.theta
    torch.testing.assert_close(found, weighted_mean(rows, [SIZES[one] for one in drawn]), rtol=1e-4, atol=1e-6)


def test_puf_weighs_its_first_round_by_those_drawn() -> None:
    task = drawing()
    first, second = (state.theta for state in states_of(puf, task, 1, unlearning_rate=5))
    drawn = task.participants(0)
    rows = drawing().federation.local_updates(first, [0, 1, 2, 3, 4], 0).delta
    kept = sum(SIZES[client] * rows[client] for client in drawn)
    total = sum(SIZES[client] for client in drawn) + SIZES[1]
    torch.testing.assert_close(second, first + (kept - 5 * SIZES[1] * rows[1]) / total, rtol=1e-4, atol=1e-5)
