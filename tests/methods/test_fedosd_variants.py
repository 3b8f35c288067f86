"""The variants of FedOSD's ablation: M1, M2 and M6 change one part of a round, M3 and M4 its direction."""

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.federation.losses import Objective, unlearning_cross_entropy
from fu.federation.task import State, Task
from fu.methods import fedosd
from tests.factories import cosines, make_task, params_of
from tests.systems import forgetting_two, random


def stepped(round: int = 2, seed: int = 3, **params: Any) -> tuple[Tensor, Tensor, Task]:
    """Return theta before and after a round of FedOSD."""
    task = make_task(forgetting_two(lr=0.05, seed=seed))
    theta = task.original_model
    return theta, fedosd.step(task, params_of(fedosd, **params), State(theta), round).theta, task


def plain(theta: Tensor, objective: Any, round: int = 2) -> tuple[Tensor, Tensor]:
    """Return the retained updates and the sum of the forgotten ones, by a federation of their own."""
    fresh = forgetting_two(lr=0.05)
    one, two = fresh.local_updates(theta, [1, 3], round, objective).delta
    return fresh.local_updates(theta, [0, 2], round).delta, one + two


def naive(logits: Tensor, labels: Tensor) -> Tensor:
    """-log(1 - p_y) as it is written."""
    return -torch.log(1 - logits.softmax(1).gather(1, labels[:, None])[:, 0])


def log_p(logits: Tensor, labels: Tensor) -> Tensor:
    return logits.log_softmax(1).gather(1, labels[:, None])[:, 0]


@pytest.mark.parametrize(("loss", "by_hand"), [("ascent", log_p), ("uce-undivided", naive)], ids=["M1", "M6"])
def test_m1_and_m6_are_fedosd_with_another_loss(loss: str, by_hand: Objective) -> None:
    theta, found, _ = stepped(loss=loss)
    torch.testing.assert_close(found, theta + fedosd.direction(*plain(theta, by_hand)), rtol=0, atol=1e-6)
    assert (found - stepped(loss="uce")[1]).norm() > 0.1 * (found - theta).norm()


def test_m2_is_the_targets_update_alone() -> None:
    theta, found, task = stepped(direction="target")
    assert torch.equal(found, theta + plain(theta, unlearning_cross_entropy)[1])
    assert task.federation.cost.client_rounds == 2


# ---- M3: common descent --------------------------------------------------------------------------------------------


def test_a_round_of_m3_moves_along_the_common_descent_direction() -> None:
    theta, found, _ = stepped(direction="common-descent")
    retained, target = plain(theta, unlearning_cross_entropy)
    moved = found - theta
    assert moved.norm().item() == pytest.approx(target.norm().item(), rel=1e-4)
    assert cosines(torch.cat([retained, target[None]]), moved).min() > 0
    torch.testing.assert_close(moved, fedosd.common_descent(retained, target), rtol=0, atol=1e-6)


def spread(decades: float, m: int, seed: int) -> Tensor:
    norms = 10 ** (decades * (torch.rand(m, 1, generator=torch.Generator().manual_seed(seed)) - 0.5))
    return random(m, 8 if seed % 2 else 40, seed=seed) * norms


def nearly_opposed(by: float, seed: int) -> Tensor:
    one, other, more = random(3, 40, seed=seed)
    return torch.stack([one, by * other - one, more, by * other - 2 * more])


HULLS: dict[str, Callable[[int], Tensor]] = {
    "alike in norm": lambda seed: spread(0, 2 + seed % 9, seed),
    "norms over 4 decades": lambda seed: spread(4, 2 + seed % 9, seed),
    "norms over 12 decades": lambda seed: spread(12, 2 + seed % 9, seed),
    "duplicated and of other lengths": lambda seed: torch.cat([random(3, 40, seed=seed), 7 * random(2, 40, seed=seed)]),
    "nearly opposed by 1e-4": lambda seed: nearly_opposed(1e-4, seed),
    "more rows than dimensions": lambda seed: random(12, 5, seed=seed) + 0.7,
}


@pytest.mark.parametrize("kind", list(HULLS))
def test_no_clients_gradient_opposes_the_common_descent_direction(kind: str) -> None:
    directions = 0
    for seed in range(40):
        rows = HULLS[kind](seed)
        d = fedosd.common_descent(rows[:-1], rows[-1])
        assert d.dtype == torch.float32
        if not d.any():
            continue
        directions += 1
        assert d.norm().item() == pytest.approx(rows[-1].norm().item(), rel=1e-5)
        assert cosines(rows, d).min() >= -1e-6, seed
    assert directions >= 10


def test_the_minimum_norm_point_is_found_where_norms_differ_by_nine_decades() -> None:
    """A system on which scipy's non-negative least squares ended without an answer when its columns had these norms."""
    draws = torch.Generator().manual_seed(19638)
    decades = int(torch.randint(0, 13, (1,), generator=draws))
    m = 2 + int(torch.randint(0, 10, (1,), generator=draws))
    assert (decades, m) == (9, 11)
    rows = torch.randn(m, 8, generator=draws)
    rows = rows * 10 ** (torch.rand(m, 1, generator=draws) * decades - decades / 2)
    weights = fedosd.minimum_norm_weights(rows.double())
    assert (weights >= 0).all()
    assert weights.sum().item() == pytest.approx(1)
    assert cosines(rows, weights @ rows.double()).min() >= -1e-6


@pytest.mark.parametrize(
    "rows",
    [
        torch.stack([random(10), -random(10)]),
        torch.stack([random(10), -3 * random(10), random(10, seed=1)]),
        torch.cat([random(3, 10), -random(3, 10).sum(0)[None]]),
        torch.cat([random(3, 10), torch.zeros(1, 10)]),
        torch.zeros(3, 10),
    ],
    ids=["opposite", "opposite, among others", "their sum", "a client at rest", "nobody moves"],
)
def test_there_is_no_common_descent_where_the_hull_contains_zero(rows: Tensor) -> None:
    for target in range(len(rows)):
        retained = torch.cat([rows[:target], rows[target + 1 :]])
        assert torch.equal(fedosd.common_descent(retained, rows[target]), torch.zeros(rows.shape[1]))


def by_active_sets(rows: np.ndarray[Any, Any]) -> float:
    """Return the least squared norm in the convex hull of rows [m, d]: the best feasible point of all active sets."""
    best = math.inf
    for size in range(1, len(rows) + 1):
        for active in combinations(range(len(rows)), size):
            gram = rows[list(active)] @ rows[list(active)].T
            system = np.block([[gram, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            weights = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0][:size]
            if (weights >= -1e-12).all() and abs(weights.sum() - 1) < 1e-9:
                best = min(best, float(weights @ gram @ weights))
    return best


def test_minimum_norm_weights_solve_the_quadratic_programme() -> None:
    inside = 0
    for seed in range(30):
        m, d = 1 + seed % 5, 2 + seed % 4
        rows = (random(m, d, seed=seed) + 0.5 * random(d, seed=100 + seed)).double()
        if seed % 7 == 6:
            rows = torch.cat([rows[:-1], rows[:1]])  # a duplicate
        weights = fedosd.minimum_norm_weights(rows)
        assert weights.shape == (m,)
        assert (weights >= 0).all()
        assert weights.sum().item() == pytest.approx(1, abs=1e-12)
        square = (weights @ rows).square().sum().item()
        assert square == pytest.approx(by_active_sets(rows.numpy()), abs=1e-6)
        inside += int(((weights > 1e-6).sum() > 1) and square > 1e-3)
    assert inside >= 5  # neither a corner nor zero


# ---- M4: a random solution -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_m4_is_orthogonal_on_the_targets_side_and_as_long(seed: int) -> None:
    retained, target, drawn = random(5, 40, seed=seed), random(40, seed=50 + seed), random(40, seed=100 + seed)
    found = fedosd.random_direction(retained, target, drawn)
    assert cosines(retained, found).abs().max() <= 1e-6
    assert found @ target > 0  # d . g_u < 0
    assert found.norm().item() == pytest.approx(target.norm().item(), rel=1e-6)
    assert cosines(found[None], fedosd.direction(retained, target)).item() < 0.9
    assert torch.equal(fedosd.random_direction(retained, target, -drawn), found)  # turned, not drawn again
    basis = np.linalg.svd(retained.double().numpy())[2][:5]
    rest = drawn.double().numpy() - basis.T @ (basis @ drawn.double().numpy())
    assert abs(cosines(found[None], torch.from_numpy(rest)).item()) == pytest.approx(1, abs=1e-6)


def test_m4_draws_by_seed_and_round() -> None:
    def drawn(round: int, seed: int = 3) -> Tensor:
        theta, found, _ = stepped(round, seed, direction="random")
        return found - theta

    torch.manual_seed(0)
    one = drawn(2)
    torch.manual_seed(1)
    assert torch.equal(one, drawn(2))
    for other in (drawn(1), drawn(3), drawn(2, seed=4)):
        assert abs(cosines(other[None], one).item()) < 0.3
    theta = stepped()[0]
    retained, target = plain(theta, unlearning_cross_entropy)
    assert cosines(retained, one).abs().max() <= 1e-3  # float32 theta
    assert one @ target > 0
    assert one.norm().item() == pytest.approx(target.norm().item(), rel=1e-4)


# ---- M6: UCE undivided ---------------------------------------------------------------------------------------------


def test_uce_undivided_is_minus_log_of_one_minus_p_where_that_is_stable() -> None:
    logits, labels = 3 * random(200, 10).double(), torch.arange(200) % 10
    assert naive(logits, labels).max() > 1
    torch.testing.assert_close(fedosd.undivided(logits, labels), naive(logits, labels), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gap", [30.0, 100.0, 1000.0])
def test_uce_undivided_and_its_gradient_stay_right_at_p_close_to_one(gap: float, dtype: torch.dtype) -> None:
    logits = torch.tensor([[0.0, gap, -1.0], [gap, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    labels = torch.tensor([1, 0])
    loss = fedosd.undivided(logits, labels)
    others = [math.log(1 + math.exp(-1)), math.log(2)]  # log-sum-exp of the other logits
    assert loss.tolist() == pytest.approx([gap - one for one in others], rel=1e-6)  # unbounded in the gap
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    share = 1 / (1 + math.exp(-1))
    expected = torch.tensor([[-share, 1, share - 1], [1, -0.5, -0.5]], dtype=dtype)
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-6)
    assert unlearning_cross_entropy(logits, labels).max() <= math.log(2) + 1e-6
