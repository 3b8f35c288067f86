"""Run by run: ratios, distances and chances by hand, single runs that do nothing, and the level."""

import numpy as np
import pytest

from fu.audits import runs
from fu.audits.models import FORGOTTEN, HELD_OUT, TEST, TRAIN
from tests.audits.synthetic import World, models_of
from tests.audits.test_line import KINDS


def test_the_ratio_is_that_of_two_gaussians_with_one_variance() -> None:
    retrained, original = np.array([[0.0, 0], [2, 2]]), np.array([[3.0, 7], [5, 5]])
    # means 1, 1 and 4, 6; all variances 2: (x - 2.5) 3 / 2 + (y - 3.5) 5 / 2
    found = runs.log_ratio(np.array([[1.0, 1], [4, 6], [2.5, 4.5]]), retrained, original)
    assert found == pytest.approx([-2.25 - 6.25, 2.25 + 6.25, 2.5])


def test_distances_by_hand() -> None:
    found = runs.outlying(np.array([1.9, 2.0, 2.5, 11]), np.array([0.0, 1, 2]))  # mean 1, deviation 1
    assert found.tolist() == [-np.inf, -np.inf, 1.5, 10]


def test_chances_by_hand() -> None:
    # two distributions, three places, four simulations
    known = np.array([[[9.0, 5, 4, 1], [3, 2, 1, 0], [0, 0, 0, 0]], [[6.0, 5, 4, 3], [5, 4, 1, 0], [1, 0, 0, 0]]])
    assert runs.chance(np.array([0.5, 7, 2.5, 2]), known) == pytest.approx(1)  # 3 x min(2/5, 3/5, 2/5)
    assert runs.chance(np.array([0.5, 7, 9, 2]), known / 10) == pytest.approx(3 / 5)  # none is as far: 3 x 1/5
    assert runs.chance(np.array([7.0, -np.inf, -np.inf, -np.inf]), known[:, :, :1] / 100) == pytest.approx(1)  # 3 x 1/2
    assert runs.chance(np.full(4, -np.inf), known) == 1


def test_simulated_places_are_those_of_so_many_runs() -> None:
    known = runs.simulated(8, 8)
    assert known.shape == (2, 3, 100_000)
    assert (known[:, 0] >= known[:, 1]).all()
    assert (known[:, 1] >= known[:, 2]).all()
    beyond = np.isfinite(known[:, :2]).mean(-1)  # the largest of 16 is equally likely to be any
    assert beyond[:, 0] == pytest.approx(1 / 2, abs=0.01)
    assert beyond[:, 1] == pytest.approx(1 / 2 * 7 / 15, abs=0.01)
    assert runs.simulated(3, 4).shape == (2, 2, 30_000)
    assert runs.simulated(16, 16).shape == (2, 3, 200_000)


def test_the_models_of_a_repeat_are_judged_by_fits_without_them() -> None:
    random = np.random.default_rng(0)
    unlearned, retrained, original = random.normal(size=(4, 3)), random.normal(size=(5, 3)), random.normal(2, 1, (4, 3))
    models = models_of(unlearned, retrained, original, probes=(FORGOTTEN, TRAIN, TEST))
    for found, values in zip(runs._ratios(models, FORGOTTEN), (unlearned, retrained), strict=True):
        expected = runs.log_ratio(values[2:3], np.delete(retrained, 2, 0), np.delete(original, 2, 0))
        assert found[2] == pytest.approx(expected[0], rel=1e-5)
    _, last = runs._ratios(models, FORGOTTEN)  # of which there is no original model
    assert last[4] == pytest.approx(runs.log_ratio(retrained[4:], retrained[:4], original)[0], rel=1e-5)


@pytest.mark.parametrize("same", [0.7, 1.0])
def test_models_that_resemble_the_original_they_started_from_are_not_found_where_nothing_is_left(same: float) -> None:
    """Margins of all kinds have one mean: of a client without any effect nothing can be left."""
    random, found = np.random.default_rng(0), 0
    for _ in range(40):
        retrained, original, own = random.normal(size=(3, 8, 200))
        unlearned = same * original + (1 - same**2) ** 0.5 * own
        found += runs.audit(models_of(unlearned, retrained, original, probes=(FORGOTTEN,)))["runs_p"] < runs.LEVEL
    assert found <= 5  # of 40, 2 on average; more in 1.4% of all tests


@pytest.mark.parametrize(("number", "idle"), [(8, 1), (8, 2), (16, 2), (32, 1), (32, 4)])
def test_runs_that_do_nothing_are_found_among_many_that_forget(number: int, idle: int) -> None:
    world = World(number, samples=60, shift=9)
    kinds = {}
    for name, left in (("unlearned", 0.0), ("retrained", 0.0), ("original", 1.0)):
        kinds[name] = {probe: world.margins(number, probe, left) for probe in (FORGOTTEN, HELD_OUT, TRAIN, TEST)}

    def audit() -> dict[str, float]:
        return runs.audit(models_of(kinds["unlearned"], kinds["retrained"], kinds["original"]))

    assert audit()["runs_there"] == 0
    kinds["unlearned"][FORGOTTEN][3 : 3 + idle] = world.margins(idle, FORGOTTEN, 1.0)
    values = audit()
    assert values["runs_there"] == idle
    assert values["runs_p"] < (0.05 if idle == 1 else 0.005)
    assert values["runs_most"] > 0 > values["runs_most_retrained"]


@pytest.mark.parametrize("number", [8, 16, 32])
@pytest.mark.parametrize("kind", KINDS)
def test_its_level_is_kept_whatever_runs_are_like(kind: str, number: int) -> None:
    random = np.random.default_rng(0)
    out = runs.outlying(*(KINDS[kind](random, (1_000, number)) for _ in range(2)))
    known = runs.simulated(number, number)
    found = np.mean([runs.chance(one, known) < runs.LEVEL for one in out])
    assert found <= 0.065  # of 1,000; more in 2% of all tests
