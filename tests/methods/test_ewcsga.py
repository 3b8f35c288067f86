"""EWCSGA: penalised ascent, and the Fisher information."""

from itertools import pairwise

import pytest
import torch

from fu.federation.local import generator
from fu.methods import ewcsga
from tests.factories import SIZES, builder, make_federation, make_task, params_of
from tests.systems import forgetting_two, random, states_of


def test_ewcsga_without_a_penalty_is_plain_ascent_of_the_target() -> None:
    task = make_task(forgetting_two())
    states = [state.theta for state in states_of(ewcsga, task, 2, lambda_=0.0)]
    assert torch.equal(states[0], task.original_model)
    for round, (before, after) in enumerate(pairwise(states)):
        ascent = forgetting_two().local_updates(before, [1, 3], round, "negative_cross_entropy").delta
        assert torch.equal(after, before + ascent.mean(0))


@pytest.mark.parametrize("round", [0, 2])
def test_a_step_of_ewcsga_is_the_minimum_of_the_penalty_and_the_distance_to_the_ascended_model(round: int) -> None:
    task = make_task(make_federation(local_epochs=1, batch_size=100))
    fisher = random(task.original_model.numel()).abs()
    theta = task.original_model + random(len(fisher), seed=1)
    found = ewcsga.step(task, params_of(ewcsga, lambda_=3.0), ewcsga.Consolidated(theta, fisher), round).theta
    ascent = make_federation(local_epochs=1, batch_size=100).local_updates(theta, [1], round, "negative_cross_entropy")
    # (3 / 2) sum F (w - w0)^2 + ||w - (theta + ascent)||^2 / (2 lr) is stationary at w, with lr = .1 * .9^round.
    slope = 3 * fisher * (found - task.original_model) + (found - theta - ascent.delta[0]) / (0.1 * 0.9**round)
    assert slope.abs().max() < 1e-4
    assert (found - theta - ascent.delta[0]).abs().max() > 0.1


def test_the_penalty_of_ewcsga_is_stable_for_every_lambda() -> None:
    task = make_task()
    state = ewcsga.Consolidated(task.original_model + 1, torch.full_like(task.original_model, 100.0))
    away = ewcsga.step(task, params_of(ewcsga, lambda_=1e12), state, 0).theta - task.original_model
    assert away.abs().max() < 1e-6


@pytest.mark.parametrize("samples", [100, 3])
def test_the_fisher_information_is_the_mean_squared_gradient_of_single_samples(samples: int) -> None:
    task = make_task()
    net = builder()()
    net.load_state_dict(task.federation.layout.named(task.original_model))
    squares = []
    for client in task.retained:
        rows = torch.randperm(SIZES[client], generator=generator(task.seed, "fisher", client))[:samples]
        x, y = task.federation.data.train(client)
        for row in rows:
            net.zero_grad()
            (-net(x[row : row + 1]).log_softmax(1)[0, y[row]]).backward()
            gradients = {name: p.grad for name, p in net.named_parameters() if p.grad is not None}
            squares.append(task.federation.layout.flatten(gradients).square())
    assert len(squares) == sum(min(samples, SIZES[client]) for client in (0, 2))
    found = ewcsga.fisher(task, samples)
    torch.testing.assert_close(found, torch.stack(squares).mean(0), rtol=1e-4, atol=1e-8)
    assert found.max() > 1e-3


def test_ewcsga_asks_only_the_forgotten_client_while_unlearning() -> None:
    task = make_task()
    p = params_of(ewcsga)
    state = ewcsga.start(task, p)
    cost = task.federation.cost
    model = 4 * task.federation.layout.size
    assert cost.samples == sum(SIZES[client] for client in task.retained)  # for the Fisher information, once
    assert cost.bytes_up == cost.bytes_down == len(task.retained) * model
    assert (cost.client_rounds, cost.steps) == (0, 0)
    before = cost.samples
    ewcsga.step(task, p, state, 0)
    assert (cost.client_rounds, cost.samples - before) == (1, 2 * SIZES[1])
    assert cost.bytes_up == (len(task.retained) + 1) * model
