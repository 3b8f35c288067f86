"""FedOSD's projection: no update of post-training pulls back to the original model."""

import pytest
import torch
from torch import Tensor

from fu.federation.task import Task
from fu.projections import away_from_original
from tests.factories import cosines, make_task, params_of
from tests.systems import random


@pytest.fixture
def away() -> tuple[Task, Tensor]:
    """A task and a theta away from its original model."""
    task = make_task()
    return task, task.original_model + 0.1 * random(task.original_model.numel(), seed=5)


def towards_and_away(task: Task, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return six updates, and which of them pull back to the original model."""
    line = theta - task.original_model
    signs = torch.tensor([-0.5, 0.5, -0.01, 0.01, -2.0, 2.0])
    side = random(6, len(line), seed=6)
    side = side - (side @ line / (line @ line))[:, None] * line
    return 0.01 * (side / side.norm(dim=1, keepdim=True) + signs[:, None] * line / line.norm()), signs < 0


@pytest.mark.parametrize("mode", ["conflicting", "always"])
def test_projected_updates_are_orthogonal_to_the_way_back_and_keep_their_norm(
    away: tuple[Task, Tensor], mode: str
) -> None:
    task, theta = away
    delta, back = towards_and_away(task, theta)
    p = params_of(away_from_original, where=mode)
    found = away_from_original.project(task, p, theta, delta)
    changed = back if mode == "conflicting" else torch.ones_like(back)
    assert torch.equal((found != delta).any(1), changed)
    assert cosines(found[changed], theta - task.original_model).abs().max() <= 1e-5
    torch.testing.assert_close(found.norm(dim=1), delta.norm(dim=1), rtol=1e-5, atol=0)
    line = (theta - task.original_model).double()
    flat = delta.double() - (delta.double() @ line / (line @ line))[:, None] * line
    expected = flat * (delta.double().norm(dim=1) / flat.norm(dim=1))[:, None]
    torch.testing.assert_close(found[changed].double(), expected[changed], rtol=0, atol=1e-7)


@pytest.mark.parametrize("mode", ["conflicting", "always"])
def test_at_the_original_model_nothing_is_projected(mode: str) -> None:
    task = make_task()
    delta = random(4, task.original_model.numel())
    p = params_of(away_from_original, where=mode)
    assert torch.equal(away_from_original.project(task, p, task.original_model.clone(), delta), delta)


def test_an_update_of_zero_stays_zero(away: tuple[Task, Tensor]) -> None:
    task, theta = away
    delta = torch.zeros(2, len(theta))
    assert torch.equal(
        away_from_original.project(task, params_of(away_from_original, where="always"), theta, delta), delta
    )


def test_the_projection_leaves_nothing_of_an_update_straight_back_to_the_original() -> None:
    task = make_task()
    away = torch.randn(task.original_model.numel(), generator=torch.Generator().manual_seed(0))
    delta = torch.stack([-0.3 * away, -0.7 * away + 1e-3 * away.flip(0)])
    projected = away_from_original.project(task, params_of(away_from_original), task.original_model + away, delta)
    moved = (task.original_model + away) - task.original_model
    assert not projected[0].any()
    assert cosines(projected[1:], moved).abs().max() <= 1e-6
