"""Stability: the correction by hand, what does and does not count in it, and the step of the published code."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from fu.federation.local import aggregate
from fu.methods import stability
from tests.factories import make_data, make_federation, make_partition, make_task, params_of
from tests.systems import random, states_of


def unlearned(rounds: int = 1, **params: Any) -> Tensor:
    """Return theta after some rounds from the original model."""
    theta: Tensor = states_of(stability, make_task(), rounds, **params)[-1].theta
    return theta


def fedavg_of_the_retained(rounds: int = 1) -> Tensor:
    task = make_task()
    theta = task.original_model
    for round in range(rounds):
        theta = theta + aggregate(task.federation.local_updates(theta, task.retained, round), "samples")
    return theta


def test_the_correction_by_hand() -> None:
    # (4, 3) less its part along (2, 0) is (0, 3), of which half.
    assert stability.correction(torch.tensor([2.0, 0.0]), torch.tensor([4.0, 3.0]), 0.5).tolist() == [0.0, 1.5]
    assert stability.correction(torch.zeros(2), torch.tensor([4.0, 3.0]), 0.5).tolist() == [2.0, 1.5]


def test_the_correction_is_orthogonal_and_as_long_as_the_sine_says() -> None:
    retained, forgotten = random(500, seed=1), random(500, seed=2) + 0.3 * random(500, seed=1)
    found = stability.correction(retained, forgotten, 0.7).double()
    cosine = (retained @ forgotten / retained.norm() / forgotten.norm()).item()
    assert abs(found @ retained.double() / found.norm() / retained.double().norm()) < 1e-6
    assert 0.1 < abs(cosine) < 0.9
    assert found.norm().item() ** 2 == pytest.approx(0.49 * forgotten.norm().item() ** 2 * (1 - cosine**2), rel=1e-5)


def test_a_step_is_the_formula_of_the_paper() -> None:
    """With the gradient of torch's own loss over all samples of client 1, of 12 of 28, and lr .1 * .9^2."""
    task = make_task()
    start, theta = task.original_model, task.original_model + 0.1 * random(len(task.original_model), seed=5)
    weights = start.clone().requires_grad_()
    views = task.federation.layout.views(weights)
    x, y = task.federation.data.train(1)
    loss = torch.nn.functional.cross_entropy(torch.func.functional_call(task.federation.model, views, (x,)), y)
    (forgotten,) = torch.autograd.grad(loss, weights)
    updates = make_federation().local_updates(theta, [0, 2], 2)
    mean = theta + (7 * updates.delta[0] + 9 * updates.delta[1]) / 16
    g_s, g_j = (theta - mean).double() / 0.081, (forgotten + 5 * (mean - start)).double()
    g_c = 3 * 12 / 28 * (g_j - (g_j @ g_s) / (g_s @ g_s) * g_s)

    p = params_of(stability, lambda_=3.0)
    state = stability.start(task, p)
    torch.testing.assert_close(state.forgotten, forgotten, rtol=1e-4, atol=1e-6)
    assert state.theta is start
    found = stability.step(task, p, stability.Corrected(theta, state.forgotten), 2)
    torch.testing.assert_close(found.theta, (mean.double() - 0.081 * g_c).float(), rtol=1e-4, atol=1e-6)
    assert (0.081 * g_c).abs().max() > 1e-3
    assert found.forgotten is state.forgotten


def test_the_smoothness_does_not_count_in_the_first_round_and_does_later() -> None:
    one, other = (unlearned(smoothness=smoothness) for smoothness in (1.0, 25.0))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-6)
    assert (unlearned(2, smoothness=1.0) - unlearned(2, smoothness=25.0)).norm() > 1e-3


def test_only_the_product_of_lambda_and_the_server_s_rate_counts() -> None:
    torch.testing.assert_close(
        unlearned(3, lambda_=5.0, server_lr=0.01), unlearned(3, lambda_=1.0, server_lr=0.05), rtol=0, atol=1e-6
    )
    assert not torch.equal(unlearned(3, lambda_=5.0, server_lr=0.01), unlearned(3, lambda_=5.0, server_lr=0.05))


@pytest.mark.parametrize("params", [{"lambda_": 0.0}, {"server_lr": 0.0}])
def test_without_a_correction_it_is_fedavg_of_the_retained_bit_for_bit(params: dict[str, float]) -> None:
    assert torch.equal(unlearned(3, **params), fedavg_of_the_retained(3))


def test_forgotten_data_are_read_for_one_gradient_alone() -> None:
    data = make_data(make_partition())
    task, read = make_task(make_federation(data)), list[int]()
    train = data.train

    def spied(client: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        read.append(client)
        return train(client, rows)

    data.train = spied  # type: ignore[method-assign]
    p = params_of(stability)
    state = stability.start(task, p)
    assert read == [1]
    assert task.federation.cost.samples == 12
    assert task.federation.cost.bytes_up == task.federation.cost.bytes_down == 4 * task.federation.layout.size
    stability.step(task, p, state, 0)
    assert read.count(1) == 1


def test_several_forgotten_clients_are_weighed_by_their_samples() -> None:
    part = make_partition(forgotten=(0, 1))
    task = make_task(make_federation(make_data(part)))
    each = []
    for client in (0, 1):
        alone = make_task(make_federation(make_data(make_partition(forgotten=(client,)), poison="all")))
        each.append(stability.gradient_of(alone, task.original_model))
    expected = (7 * each[0] + 12 * each[1]) / 19
    torch.testing.assert_close(stability.gradient_of(task, task.original_model), expected, rtol=1e-4, atol=1e-6)
    assert stability.share(task) == pytest.approx(19 / 28)


def test_the_published_step_by_hand() -> None:
    """Full batches: the gradient after a client's steps is known, and tensors are corrected one by one."""
    task = make_task(make_federation(batch_size=100, local_epochs=2))
    theta = task.original_model + 0.1 * random(len(task.original_model), seed=5)
    plain = make_federation(batch_size=100, local_epochs=2)
    found = stability.published(task, params_of(stability, lambda_=2.0, as_published=True), theta, [0, 2], 0)
    for row, client in enumerate((0, 2)):
        one = plain.local_updates(theta, [client], 0, steps=1).delta[0]
        both = plain.local_updates(theta, [client], 0, steps=2).delta[0]
        last, away = -(both - one) / 0.1, 5 * (theta + both - task.original_model)
        further = torch.zeros_like(theta)
        views = task.federation.layout.views
        for name, view in views(further).items():
            g_s, g = views(last)[name].flatten().double(), views(away)[name].flatten().double()
            rest = g - (g @ g_s) / (g_s @ g_s) * g_s if g_s.any() else g
            view.copy_(((1 + 0.7 * 2) * g_s + 0.3 * 2 * rest).view_as(view))
        torch.testing.assert_close(found.delta[row], both - 0.1 * further, rtol=1e-3, atol=1e-5)
        assert math.isclose(found.sizes[row].item(), (7, 12, 9)[client])


def test_at_lambda_0_the_published_code_repeats_each_clients_last_gradient() -> None:
    task = make_task(make_federation(batch_size=100, local_epochs=1))
    theta = task.original_model
    found = stability.published(task, params_of(stability, lambda_=0.0, as_published=True), theta, [0], 0).delta[0]
    one = make_federation(batch_size=100).local_updates(theta, [0], 0, steps=1).delta[0]
    torch.testing.assert_close(found, 2 * one, rtol=1e-5, atol=1e-7)
