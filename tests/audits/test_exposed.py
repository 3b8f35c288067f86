"""Who is at risk: which samples are chosen, on which models, and that a mean over all hides them."""

import numpy as np

from fu.audits import exposed, ulira
from fu.audits.models import FORGOTTEN
from tests.audits.synthetic import World, models_of


def around(*means: float) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """Return margins of eight models, of which four models of even and four of odd number are alike."""
    noise = np.array([1.0, 1, -1, -1, 2, 2, -2, -2])
    return noise[:, None] + np.array(means)


def test_the_most_exposed_differ_most_in_units_of_their_spread() -> None:
    gaps = [3.0, 0, -5, *np.linspace(1, 2, 17)]
    retrained = around(*np.arange(20))
    original = around(*np.arange(20) + np.array(gaps))
    assert exposed.ranked(original, retrained).tolist() == [2, 0, *reversed(range(3, 20)), 1]
    original[:, 2] = original[:, 2].mean() + 40 * (original[:, 2] - original[:, 2].mean())  # as far, but all over
    found = exposed.ranked(original, retrained).tolist()
    assert found[0] == 0
    assert exposed.indices(models_of(retrained, retrained, original)).tolist() == found


def test_units_are_deviations_not_variances() -> None:
    # squares 20 and 80 over eight models, drawn towards 50: variances 5.38 and 8.91
    retrained = around(0, 0) * [1, 2]
    # the gaps are 1.29 and 1.47 deviations; over variances .56 and .49
    assert exposed.ranked(retrained + np.array([3, 4.4]), retrained).tolist() == [1, 0]


def test_they_are_chosen_on_the_models_that_are_fitted_and_judged_on_the_others() -> None:
    retrained, original = around(*[0] * 10), around(*[0] * 10)
    original[::2, 3] += 5  # even models expose sample 3, odd ones sample 6
    original[1::2, 6] -= 5
    unlearned = around(0, 0, 0, 2, 0, 0, -1, 0, 0, 0)
    unlearned[1::2, 3] += 1.5  # so that the halves are not alike
    models = models_of(unlearned, retrained, original)
    (even, odd) = ulira.folds(models)
    judged = [(even[0][:, [3]], even[1][:, [3]]), (odd[0][:, [6]], odd[1][:, [6]])]
    expected = ulira.attacked("exposed", judged)
    assert exposed.audit(models) == {name: expected[name] for name in exposed.METRICS if name in expected}


def test_a_mean_hides_the_few_whom_a_model_gives_away() -> None:
    world = World(0, samples=100)
    world.gap[FORGOTTEN][10:] = 0
    models = world.models(16, 1.0)
    assert set(exposed.indices(models)[:10]) == set(range(10))
    assert exposed.audit(models)["exposed_auc"] > 0.9
    assert exposed.audit(models)["exposed_tpr_1"] > 3 * ulira.audit(models)["ulira_tpr_1"]
    assert ulira.audit(models)["ulira_auc"] < 0.65
