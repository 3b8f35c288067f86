"""Along the line: projections by hand, every relabelling, several probes, and the level."""

from math import sqrt

import numpy as np
import pytest

from fu.audits import line
from fu.audits.models import FORGOTTEN, TEST, TRAIN, TRIGGERED, Models, fitted
from tests.audits.synthetic import World, models_of, relabelled

RETRAINED, ORIGINAL = np.array([[0.0], [0], [2], [2]]), np.array([[4.0], [4], [6], [6]])
UNLEARNED = np.array([[1.0], [5], [3], [3]])


def test_projections_by_hand() -> None:
    # Either half of each kind has variance 2: along w = 1 / sqrt 2 the retrained models' mean is 1, the original's 5.
    u, r, o = line.projected(UNLEARNED, RETRAINED, ORIGINAL)
    assert u * sqrt(2) == pytest.approx([0, 2, 4, 2])  # the even ones first
    assert r * sqrt(2) == pytest.approx([-1, 1, -1, 1])
    assert o * sqrt(2) == pytest.approx([3, 5, 3, 5])


def test_each_half_is_projected_on_the_direction_of_the_other() -> None:
    retrained = np.array([[0.0, 0], [0, 0], [0, 2], [2, 0]])  # even: the first sample is constant, odd: the second
    original = np.array([[3.0, 0], [0, 5], [3, 2], [2, 5]])  # even ones differ by 3 in the first, odd ones by 5
    u, _, _ = line.projected(retrained + 1, retrained, original)
    for k, places in enumerate((u[:2], u[2:])):
        w = line.direction(*map(fitted, (retrained[1 - k :: 2], original[1 - k :: 2])))
        assert places == pytest.approx((retrained[k::2] + 1) @ w - (retrained[k::2] @ w).mean())


def test_p_counts_relabellings_whose_directions_are_fitted_anew() -> None:
    random = np.random.default_rng(0)
    u, r, o = (random.normal(at, 1, (4, 3)) for at in (10.8, 10, 12))
    projections = [line.projected(*kinds, o) for kinds in relabelled(u, r)]
    every = np.array([one.mean() - other.mean() for one, other, _ in projections])
    assert len(every) == 36
    p = line.audit(models_of(u, r, o, probes=(FORGOTTEN, TRAIN, TEST)))["line_p"]
    exact = (every >= every[0] - 1e-6).mean()
    assert 0.02 < exact < 0.5
    assert p == pytest.approx(exact)


def test_the_probe_where_models_lie_furthest_counts() -> None:
    """As where a method was fitted to retrained models on the client's own images alone."""
    world = World(0)
    world.gap[TRIGGERED] = world.gap[FORGOTTEN]

    def models(left: dict[str, float]) -> Models:
        probes = (FORGOTTEN, TRIGGERED, TRAIN, TEST)
        kinds = ({**left}, dict.fromkeys(probes, 0.0), dict.fromkeys(probes, 1.0))
        return models_of(
            *({one: world.margins(8, one, of.get(one, 0)) for one in probes} for of in kinds), probes=probes
        )

    hidden, none = models({TRIGGERED: 1.0}), models({})
    assert line.audit(hidden)["line_p"] < 0.01
    assert line.audit(hidden)["line_position"] == pytest.approx(1, abs=0.15)
    assert line.audit(none)["line_p"] > 0.05
    places = line.runs(hidden)
    assert {*places} == {
        f"{one}, {kind}" for one in (FORGOTTEN, TRIGGERED) for kind in ("unlearned", "retrained", "original")
    }
    assert abs(places["forgotten, unlearned"].mean()) < places["triggered, unlearned"].mean() / 4


def test_the_position_is_relative_to_held_out_original_models_and_left_out_where_these_are_not_apart() -> None:
    kinds = [np.tile(of, (1, 2)) for of in (UNLEARNED, RETRAINED, ORIGINAL)]
    assert line.audit(models_of(*kinds))["line_position"] == pytest.approx(2 / 4)
    alike = models_of(*np.random.default_rng(1).normal(size=(3, 8, 5)))
    assert "line_position" not in line.audit(alike)


KINDS = {
    "normal": lambda random, size: random.normal(size=size),
    "t3": lambda random, size: random.standard_t(3, size),
    "skewed": lambda random, size: random.exponential(size=size),
    "bimodal": lambda random, size: random.choice([-2.0, 2], size) + random.normal(size=size) / 2,
}


@pytest.mark.parametrize("kind", KINDS)
def test_its_level_is_kept_whatever_runs_are_like(kind: str) -> None:
    """What is common to all samples of a run is drawn from each distribution."""
    random = np.random.default_rng(0)
    found = 0
    for _ in range(200):
        runs = KINDS[kind](random, (18, 1)) + random.normal(size=(18, 4))
        runs[12:] += 1
        found += line.audit(models_of(runs[:6], runs[6:12], runs[12:]))["line_p"] <= 0.05
    assert found <= 17  # of 200, 10 on average; more in 2% of all tests
