"""FUPGA: its reference, its radius, and ascent inside the ball."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fu.federation.gradient import loss_gradient
from fu.federation.network import descent
from fu.federation.task import Task, initial_parameters
from fu.histories import last_local_models
from fu.methods import fupga
from tests.factories import builder, make_data, make_federation, make_partition, make_task, params_of


def with_local_models(task: Task) -> Task:
    return replace(task, histories={"last_local_models": last_local_models.record(task, {}, task.original_model, 0)})


@pytest.mark.parametrize("forgotten", [(1,), (1, 3)])
def test_fupga_starts_at_the_model_without_the_forgotten_clients_part(forgotten: tuple[int, ...]) -> None:
    task = with_local_models(make_task(make_federation(make_data(make_partition((7, 12, 9, 8), forgotten)))))
    locals_ = make_federation(task.federation.data).local_updates(task.original_model, forgotten, 0).delta
    state = fupga.start(task, params_of(fupga))
    gone = len(forgotten)
    expected = (4 * task.original_model - (task.original_model + locals_).sum(0)) / (4 - gone)
    torch.testing.assert_close(state.theta, expected, rtol=1e-5, atol=1e-6)
    assert state.theta is state.reference


@pytest.mark.parametrize("radius", ["from-original", "from-reference"])
def test_the_radius_is_a_third_of_the_mean_distance_to_ten_random_models_or_the_original_codes(radius: str) -> None:
    task = with_local_models(make_task())
    models = torch.stack([initial_parameters(builder(), 3, "model", "random", k) for k in range(10)])
    assert torch.unique(models, dim=0).shape == models.shape
    state = fupga.start(task, params_of(fupga, radius=radius))
    squares = (models - (task.original_model if radius == "from-original" else state.theta)).square().sum(1)
    expected = squares.sqrt().mean() / 3 if radius == "from-original" else (squares.mean() / 3).sqrt()
    assert state.radius == pytest.approx(expected.item(), rel=1e-5)


def test_fupga_projects_every_step() -> None:
    task = with_local_models(make_task(make_federation(lr=0.5)))
    p = params_of(fupga, radius_share=0.02)
    state = fupga.start(task, p)
    reference, radius = state.reference, state.radius
    seen: list[float] = []

    def look(module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
        weights = task.federation.layout.flatten(dict(module.named_parameters()))
        seen.append((weights - reference).norm().item())

    task.federation.model.register_forward_pre_hook(look)
    following = fupga.step(task, p, state, 0)
    assert ((following.theta - reference).norm().item(), following.radius) == (pytest.approx(radius, rel=1e-4), radius)
    assert following.reference is reference
    assert len(seen) == 6
    assert seen[0] == 0
    assert seen[1:] == pytest.approx([radius] * 5, rel=1e-4)


@pytest.mark.parametrize("forgotten", [(1,), (1, 3)])
def test_clip_and_momentum_of_fupga_are_those_of_plain_sgd(forgotten: tuple[int, ...]) -> None:
    task = with_local_models(make_task(make_federation(make_data(make_partition((7, 12, 9, 8), forgotten)))))
    state = fupga.start(task, params_of(fupga))
    moved, norms = [], []
    for client in forgotten:
        net = builder()()
        net.load_state_dict(task.federation.layout.named(state.theta))
        sgd = torch.optim.SGD(net.parameters(), lr=0.1 * 0.9**2, momentum=0.9)
        for x, y in make_federation(task.federation.data).batches(client, 2, None):
            sgd.zero_grad()
            (-torch.nn.functional.cross_entropy(net(x), y)).backward()
            norms.append(torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0).item())
            sgd.step()
        moved.append(task.federation.layout.flatten(dict(net.named_parameters())).detach() - state.theta)
    assert min(norms) < 1 < max(norms)
    found = fupga.step(task, params_of(fupga, radius_share=100, clip=1.0, momentum=0.9), state, 2)
    expected = state.theta + torch.stack(moved).mean(0)
    torch.testing.assert_close(found.theta, expected, rtol=0, atol=2e-6)


def test_momentum_of_the_ascent_and_of_training_are_two_velocities() -> None:
    """By hand: the ascent's is g + .5 a (1, 3.5, .75 and -2, 0, 4), training's a + .2 v."""
    weights = torch.zeros(2)
    ascent = fupga.Ascent(params_of(fupga, momentum=0.5), weights, 100.0, weights)
    training = descent(make_federation(momentum=0.2).training, weights)
    assert training is not None
    found = []
    for gradient in (torch.tensor([1.0, -2.0]), torch.tensor([3.0, 1.0]), torch.tensor([-1.0, 4.0])):
        ascent.accelerate(weights, gradient)
        training(weights, gradient)
        found.append(gradient)
    torch.testing.assert_close(torch.stack(found), torch.tensor([[1.0, -2.0], [3.7, -0.4], [1.49, 3.92]]))


def test_a_round_of_fupga_takes_both_momenta() -> None:
    task = with_local_models(make_task(make_federation(momentum=0.6)))
    state = fupga.start(task, params_of(fupga))
    theta, ascent, training = state.theta.clone(), torch.zeros_like(state.theta), torch.zeros_like(state.theta)
    for x, y in make_federation().batches(1, 2, None):
        ascent = 0.3 * ascent - loss_gradient(make_federation().network, theta, x, y)[1]
        training = 0.6 * training + ascent
        theta -= 0.1 * 0.9**2 * training
    found = fupga.step(task, params_of(fupga, radius_share=100, momentum=0.3), state, 2).theta
    torch.testing.assert_close(found, theta, rtol=0, atol=2e-6)


def test_fupga_stops_for_good_where_it_is_far_enough_from_the_clients_own_model() -> None:
    task = with_local_models(make_task(make_federation(lr=0.02)))
    local = task.histories["last_local_models"]["theta"][0]
    free, squares = params_of(fupga, radius_share=100), []

    def look(module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
        weights = task.federation.layout.flatten(dict(module.named_parameters()))
        squares.append((weights - local).square().sum().item())

    handle = task.federation.model.register_forward_pre_hook(look)
    state = fupga.start(task, free)
    fupga.step(task, free, fupga.step(task, free, state, 0), 1)
    handle.remove()
    assert sorted(squares) == squares  # six steps in each of two rounds, further from step to step
    limit = (squares[8] + squares[9]) / 2  # the third step of the second round is the first beyond
    p = params_of(fupga, radius_share=100, stop_distance=limit)
    first = fupga.step(task, p, state, 0)
    assert not first.stopped
    second = fupga.step(task, p, first, 1)
    assert second.stopped
    assert (second.theta - local).square().sum().item() == pytest.approx(squares[9], rel=1e-4)
    spent = task.federation.cost.client_rounds
    assert fupga.step(task, p, second, 2) == second
    assert task.federation.cost.client_rounds == spent


@pytest.mark.parametrize("asked", [(1,), (4, 2), (2,)])
def test_fupga_finds_the_forgotten_clients_among_all_whose_models_are_recorded(asked: tuple[int, ...]) -> None:
    """Nobody is attacked and client 0 never takes part, so that places are not numbers of clients."""
    part, asked = make_partition((7, 12, 9, 8, 6), trigger=False, absent=(0,)), tuple(sorted(asked))
    training = make_task(make_federation(make_data(part)))
    recorded = last_local_models.record(training, {}, training.original_model, 0)
    assert len(recorded["theta"]) == 4
    task = make_task(make_federation(make_data(part, asked=asked)), histories={"last_local_models": recorded})
    fresh = make_federation(make_data(part))
    expected = task.original_model + fresh.local_updates(task.original_model, asked, 0).delta
    assert torch.equal(fupga.local_models(task), expected)
    moved = fupga.step(task, params_of(fupga), fupga.start(task, params_of(fupga)), 0)
    assert task.federation.cost.client_rounds == len(asked)
    reference = (4 * task.original_model - expected.sum(0)) / (4 - len(asked))
    torch.testing.assert_close(moved.reference, reference, rtol=1e-5, atol=1e-6)
