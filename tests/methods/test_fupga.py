"""FUPGA: its reference, its radius, and ascent inside the ball."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fu.federation.task import Task, initial_parameters, theta_of
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
    torch.testing.assert_close(theta_of(state), expected, rtol=1e-5, atol=1e-6)
    assert state["theta"] is state["reference"]


def test_the_radius_of_fupga_is_a_third_of_the_mean_distance_to_ten_random_models() -> None:
    task = with_local_models(make_task())
    models = torch.stack([initial_parameters(builder(), 3, "model", "random", k) for k in range(10)])
    assert torch.unique(models, dim=0).shape == models.shape
    radius = fupga.start(task, params_of(fupga))["radius"]
    assert radius == pytest.approx((models - task.original_model).norm(dim=1).mean().item() / 3, rel=1e-5)


def test_fupga_never_leaves_the_ball_around_its_reference() -> None:
    task = with_local_models(make_task(make_federation(lr=0.5)))
    p = params_of(fupga, radius_share=0.02)
    state = fupga.start(task, p)
    reference, radius = state["reference"], state["radius"]
    assert isinstance(reference, Tensor)
    for round in range(3):
        state = fupga.step(task, p, state, round)
        distance = (theta_of(state) - reference).norm().item()
        assert distance <= radius * (1 + 1e-5)
        assert distance > 0.9 * radius  # the ascent is strong enough to be held back
        assert state["reference"] is reference
        assert state["radius"] == radius


def test_fupga_projects_every_step() -> None:
    task = with_local_models(make_task(make_federation(lr=0.5)))
    p = params_of(fupga, radius_share=0.02)
    state = fupga.start(task, p)
    reference, radius = state["reference"], state["radius"]
    seen: list[float] = []

    def look(module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
        weights = task.federation.layout.flatten(dict(module.named_parameters()))
        seen.append((weights - reference).norm().item())

    task.federation.model.register_forward_pre_hook(look)
    fupga.step(task, p, state, 0)
    assert len(seen) == 6
    assert seen[0] == 0
    assert seen[1:] == pytest.approx([radius] * 5, rel=1e-4)


def test_fupga_inside_a_large_ball_is_plain_ascent_of_the_target() -> None:
    task = with_local_models(make_task())
    p = params_of(fupga, radius_share=100)
    state = fupga.start(task, p)
    expected = make_federation().local_updates(theta_of(state), [1], 0, "negative_cross_entropy").delta[0]
    found = theta_of(fupga.step(task, p, state, 0)) - theta_of(state)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert task.federation.cost.client_rounds == 1
