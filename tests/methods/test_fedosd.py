"""FedOSD: its direction, and a round of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.federation.local import Updates
from fu.federation.task import State
from fu.methods import fedosd
from tests.factories import cosines, make_data, make_federation, make_partition, make_task, params_of
from tests.systems import random

D = 40


def nearly_parallel(by: float) -> Tensor:
    return random(D, seed=1) + by * random(5, D)


ROWS: dict[str, Callable[[], Tensor]] = {
    "independent": lambda: random(6, D),
    "one": lambda: random(1, D),
    "as many as dimensions but one": lambda: random(D - 1, D),
    "duplicated": lambda: random(3, D).repeat(2, 1),
    "rank-deficient": lambda: random(6, 3) @ random(3, D, seed=1),
    "zero among others": lambda: torch.cat([random(3, D), torch.zeros(2, D)]),
    "nearly parallel by 1e-2": lambda: nearly_parallel(1e-2),
    "nearly parallel by 1e-4": lambda: nearly_parallel(1e-4),
    "nearly parallel by 1e-6": lambda: nearly_parallel(1e-6),
    "opposite": lambda: torch.cat([random(2, D), -random(2, D)]),
    "of widely different norms": lambda: random(6, D) * torch.tensor([1e-12, 1e-6, 1e-3, 1, 1e4, 1e8])[:, None],
    "tiny": lambda: 1e-15 * random(6, D),
}


@pytest.mark.parametrize("kind", list(ROWS))
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e6])
def test_fedosd_moves_orthogonally_to_every_retained_update_with_the_targets_norm(kind: str, scale: float) -> None:
    retained, target = ROWS[kind](), scale * random(D, seed=7)
    found = fedosd.direction(retained, target)
    assert found.dtype == torch.float32
    assert cosines(retained, found).abs().max() <= 1e-6
    assert found.norm().item() == pytest.approx(target.norm().item(), rel=1e-6)


@pytest.mark.parametrize("kind", ["independent", "one", "duplicated", "rank-deficient", "of widely different norms"])
def test_fedosd_direction_equals_equation_6_computed_with_a_pseudo_inverse(kind: str) -> None:
    retained, target = ROWS[kind](), random(D, seed=7)
    rows = retained.double().numpy()
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = target.double().numpy()
    rest = wanted - rows.T @ np.linalg.pinv(rows @ rows.T, rcond=1e-10) @ rows @ wanted
    expected = rest * np.linalg.norm(wanted) / np.linalg.norm(rest)
    np.testing.assert_allclose(fedosd.direction(retained, target).numpy(), expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("kind", ["independent", "duplicated", "nearly parallel by 1e-2", "zero among others"])
def test_no_other_orthogonal_vector_is_closer_to_the_target(kind: str) -> None:
    retained, target = ROWS[kind](), random(D, seed=7)
    best = fedosd.direction(retained, target)
    ours = cosines(best[None], target)
    _, values, basis = torch.linalg.svd(retained.double())
    rank = int((values > 1e-6 * values.max()).sum())
    others = random(200, D - rank).double() @ basis[rank:]
    others = torch.cat([others, best.double() + 0.01 * others])  # anywhere, and beside ours
    assert (retained.double() @ others.T).abs().max() < 1e-5
    assert ours > 0
    assert (cosines(others, target) <= ours + 1e-9).all()


def test_a_target_orthogonal_to_the_retained_updates_is_kept() -> None:
    retained, target = torch.eye(D)[:3] * torch.tensor([[1.0], [5.0], [-2.0]]), random(D)
    target[:3] = 0
    torch.testing.assert_close(fedosd.direction(retained, target), target, rtol=1e-6, atol=0)


def test_without_retained_conflict_directions_the_target_is_kept() -> None:
    target = random(D)
    torch.testing.assert_close(fedosd.direction(torch.zeros(3, D), target), target, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("retained", "target"),
    [
        (torch.eye(D)[:3], torch.eye(D)[0] * 4 - torch.eye(D)[2]),
        (torch.tensor([[1.0, 2, 0, 0], [0, 1, -1, 0], [1, 3, -1, 0]]), torch.tensor([2.0, 7, -3, 0])),
        (random(2, D), random(2, D)[1]),
        (random(2, D), -2 * random(2, D)[0]),
        (random(D, D), random(D, seed=7)),
        (random(3, D), torch.zeros(D)),
    ],
    ids=["axes", "integers", "one of them", "opposite of one", "everything", "no target"],
)
def test_there_is_no_direction_where_the_target_lies_in_the_span(retained: Tensor, target: Tensor) -> None:
    assert torch.equal(fedosd.direction(retained, target), torch.zeros_like(target))


def test_fedosd_direction_stays_orthogonal_to_nearly_parallel_updates() -> None:
    basis = torch.eye(3, 50)
    rows = basis[0].repeat(10, 1)
    rows[0] += 3e-6 * basis[1]
    d = fedosd.direction(rows, basis[1] + 1e-3 * basis[2])
    assert cosines(rows, d).abs().max() <= 1e-6


def test_what_lies_outside_is_orthogonal_to_float64_rounding_also_where_little_of_the_target_does() -> None:
    rows, beside = random(6, D), random(D, seed=1)
    target = rows.sum(0) + 1e-5 * beside
    rest = fedosd.outside(rows, target)
    assert 0 < rest.norm() < 1e-4 * target.norm()
    assert cosines(rows, rest).abs().max() < 1e-13


def test_fedosd_direction_is_zero_where_float32_rounding_alone_is_left_of_the_target() -> None:
    random = torch.Generator().manual_seed(0)
    rows = torch.randn(4, 50, generator=random)
    target = torch.randn(4, generator=random) @ rows
    assert torch.equal(fedosd.direction(rows, target), torch.zeros(50))


# ---- the published code --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["independent", "duplicated", "rank-deficient", "zero among others"])
def test_the_published_direction_is_finite_with_the_targets_norm(kind: str) -> None:
    retained, target = ROWS[kind](), random(D, seed=7)
    found = fedosd.published_direction(retained, target)
    assert torch.isfinite(found).all()
    assert found.norm().item() == pytest.approx(target.norm().item(), rel=1e-5)
    assert cosines(retained, found).abs().max() <= 1e-3


def test_the_published_code_does_not_drop_the_directions_below_its_tolerance() -> None:
    weak = 1e-5 * random(1, D)  # its square lies below 1e-6
    target = random(D, seed=7)
    kept = fedosd.published_direction(weak, target)
    torch.testing.assert_close(kept, target)
    assert cosines(weak, kept).abs() > 1e-3
    assert cosines(weak, fedosd.direction(weak, target)).abs() <= 1e-6


def test_fedosd_published_direction_of_a_vanished_target_is_zero_and_no_divergence() -> None:
    rows = torch.randn(3, 20, generator=torch.Generator().manual_seed(0))
    assert torch.equal(fedosd.published_direction(rows, torch.zeros(20)), torch.zeros(20))


# ---- a round -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["orthogonal", "as-published-code"])
def test_a_round_of_fedosd_moves_along_its_direction(direction: str) -> None:
    task = make_task(make_federation(make_data(make_partition((7, 12, 9, 8), (1, 3))), lr=0.05))
    theta, p = task.original_model, params_of(fedosd, direction=direction)
    found = fedosd.step(task, p, State(theta), 2).theta - theta
    fresh = make_federation(task.federation.data, lr=0.05)
    retained = fresh.local_updates(theta, [0, 2], 2).delta
    one, two = fresh.local_updates(theta, [1, 3], 2, "unlearning_cross_entropy").delta
    assert torch.equal(fedosd.start(task, p).theta, theta)
    assert found.norm().item() == pytest.approx((one + two).norm().item(), rel=1e-4)
    assert cosines(retained, found).abs().max() <= 1e-3  # float32 theta
    torch.testing.assert_close(found, fedosd.direction(retained, one + two), rtol=0, atol=1e-5)
    assert task.federation.cost == fresh.cost


DIRECTIONS = get_args(fedosd.Params.model_fields["direction"].annotation)


@pytest.mark.parametrize("broken", ["nobody's", "a retained client's", "the target's"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_single_infinite_number_in_an_update_that_is_used_ends_the_run(
    direction: str, value: float, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task()
    whole = task.federation.local_updates

    def with_broken(theta: Tensor, clients: list[int], *args: Any, **given: Any) -> Updates:
        found = whole(theta, clients, *args, **given)
        delta = found.delta.clone()
        if broken == ("the target's" if clients == task.forgotten else "a retained client's"):
            delta[-1, 2] = value
        return replace(found, delta=delta)

    monkeypatch.setattr(task.federation, "local_updates", with_broken)
    theta = fedosd.step(task, params_of(fedosd, direction=direction), State(task.original_model), 0).theta
    if broken == "nobody's" or (direction == "target" and broken == "a retained client's"):
        assert torch.isfinite(theta).all()
    elif direction == "target":
        assert theta.isfinite().logical_not().nonzero().tolist() == [[2]]
    else:
        assert theta.isnan().all()
