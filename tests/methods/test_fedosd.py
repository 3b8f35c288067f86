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
from tests.factories import cosines, make_task, params_of
from tests.systems import forgetting_two, random

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


@pytest.mark.parametrize(
    ("retained", "target"),
    [
        (torch.eye(D)[:3], torch.eye(D)[0] * 4 - torch.eye(D)[2]),
        (torch.tensor([[1.0, 2, 0, 0], [0, 1, -1, 0], [1, 3, -1, 0]]), torch.tensor([2.0, 7, -3, 0])),
        (random(2, D), random(2, D)[1]),
        (random(2, D), -2 * random(2, D)[0]),
        (random(D, D), random(D, seed=7)),
        (random(4, 50), random(4, seed=9) @ random(4, 50)),
        (random(3, D), torch.zeros(D)),
    ],
    ids=["axes", "integers", "one of them", "opposite of one", "everything", "a mixture", "no target"],
)
def test_there_is_no_direction_where_the_target_lies_in_the_span(retained: Tensor, target: Tensor) -> None:
    assert torch.equal(fedosd.direction(retained, target), torch.zeros_like(target))


def test_what_lies_outside_is_orthogonal_to_float64_rounding_also_where_little_of_the_target_does() -> None:
    rows, beside = random(6, D), random(D, seed=1)
    target = rows.sum(0) + 1e-5 * beside
    rest = fedosd.outside(rows, target)
    assert 0 < rest.norm() < 1e-4 * target.norm()
    assert cosines(rows, rest).abs().max() < 1e-13


# ---- the published code --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["independent", "duplicated", "rank-deficient", "zero among others"])
def test_the_published_direction_is_finite_with_the_targets_norm(kind: str) -> None:
    retained, target = ROWS[kind](), random(D, seed=7)
    found = fedosd.published_direction(retained, target)
    assert torch.isfinite(found).all()
    assert found.norm().item() == pytest.approx(target.norm().item(), rel=1e-5)
    assert cosines(retained, found).abs().max() <= 1e-3
    assert not fedosd.published_direction(retained, torch.zeros(D)).any()


def test_the_published_code_does_not_drop_the_directions_below_its_tolerance() -> None:
    weak = 1e-5 * random(1, D)  # its square lies below 1e-6
    target = random(D, seed=7)
    kept = fedosd.published_direction(weak, target)
    torch.testing.assert_close(kept, target)
    assert cosines(weak, kept).abs() > 1e-3
    assert cosines(weak, fedosd.direction(weak, target)).abs() <= 1e-6


# ---- a round -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["orthogonal", "as-published-code"])
def test_a_round_of_fedosd_moves_along_its_direction(direction: str) -> None:
    task, fresh = make_task(forgetting_two(lr=0.05)), forgetting_two(lr=0.05)
    theta, p = task.original_model, params_of(fedosd, direction=direction)
    found = fedosd.step(task, p, State(theta), 2).theta - theta
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
