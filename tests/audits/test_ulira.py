"""U-LiRA on numbers worked out by hand, and its intervals on Gaussians with a known shift."""

from math import exp, log, sqrt

import numpy as np
import pytest
from scipy import integrate, stats

from fu.audits import ulira
from fu.audits.ulira import epsilon
from tests.audits.synthetic import World, models_of, relabelled

UNLEARNED = np.array([[2.0, 4, 6], [3, 4, 6], [4, 4, 6], [0, 0, 0]])
RETRAINED = np.array([[-1.0, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]])
MODELS = models_of(UNLEARNED, RETRAINED, RETRAINED)


def test_ratios_by_hand() -> None:
    (unlearned, retrained), (even, _) = ulira.folds(MODELS)
    # even models: means 3, 4, 6 and 0, 0, 0, variances 26/33, 20/33, 20/33 both; the ratio is m (2 x - m) / (2 v)
    ratio = np.array([9 * 33 / 52, 16 * 33 / 40, 36 * 33 / 40])
    assert unlearned == pytest.approx(np.array([ratio, -ratio]), rel=1e-5)
    assert retrained == pytest.approx(np.array([-ratio, -ratio]), rel=1e-5)
    # odd models: means 1.5 and 0; squares 4.5, 8, 18, mean 30.5 / 3; variances (4.5 + 305/3) / 11 and .0001; x = 2
    variance = (4.5 + 305 / 3) / 11
    assert even[0, 0] == pytest.approx((4 / 1e-4 - 0.25 / variance + log(1e-4 / variance)) / 2, rel=1e-5)


def test_the_audit_by_hand() -> None:
    values = ulira.audit(MODELS)
    # The last unlearned model is called retrained, the first and third retrained ones unlearned. Of 144 pairs six
    # ratios of thousands win 12 each, three other positive ones 10, their negatives 8 + 1, 2 + 1 and 0 + 1.
    assert values["ulira_auc"] == pytest.approx((72 + 30 + 13) / 144)
    low, median, high = epsilon(1, 2, 0.5, 2)  # 2 of 4 and 1 of 4, counted as of 2
    assert (values["ulira_epsilon_low"], values["ulira_epsilon"], values["ulira_epsilon_high"]) == (low, median, high)
    assert values["ulira_epsilon_ceiling"] == epsilon(0, 2, 0, 2)[0]
    assert values["ulira_epsilon_low_delta_5"] == epsilon(1, 2, 0.5, 2, 0.05)[0] < low
    assert values["ulira_epsilon_low_delta_50"] == epsilon(1, 2, 0.5, 2, 0.5)[0]
    assert not [name for name in values if "tpr" in name]  # 12 pairs


def test_a_model_is_called_unlearned_by_the_sum_over_its_examples() -> None:
    first = np.array([[3.0, -1], [-3, 1]]), np.array([[-2.0, 1], [-1, -1]])
    second = np.array([[1.0, 1], [2, -1]]), np.array([[-1.0, 2], [-5, 4]])
    values = ulira.attacked("it", [first, second])  # wrong are the second unlearned and the third retrained model
    assert values["it_epsilon"] == epsilon(0.5, 2, 0.5, 2)[1]
    # pairs won by 3, 2, 1 (thrice), -1 (twice) and -3, ties counting half
    assert values["it_auc"] == (7 + 6.5 + 3 * 5.5 + 2 * 3.5 + 1) / 64


def test_errors_count_among_the_models_of_their_own_kind() -> None:
    first = np.array([[3.0], [-3], [2], [1]]), np.array([[-2.0], [1]])
    second = np.array([[-1.0], [-2]]), np.array([[-1.0], [-5]])
    values = ulira.attacked("it", [first, second])  # three of six unlearned, one of four retrained models is wrong
    ends = [values[f"it_epsilon{end}"] for end in ("_low", "", "_high")]
    assert ends == list(epsilon(0.5, 2, 1.5, 3))


@pytest.mark.parametrize(("samples", "expected"), [(24, set()), (25, {"1"}), (249, {"1"}), (250, {"1", "01"})])
def test_a_rate_that_so_few_pairs_cannot_tell_is_left_out(samples: int, expected: set[str]) -> None:
    values = ulira.audit(World(0, samples).models(4, 1.0))
    ends = {f"{name}{end}" for name in expected for end in ("", "_low", "_high")}
    assert {name.removeprefix("ulira_tpr_") for name in values if "tpr" in name} == ends


@pytest.mark.parametrize(("wrong", "models"), [((0, 0), 4), ((1, 3), 8), ((0.5, 2), 4.5), ((20, 3), 32)])
def test_the_ends_of_epsilon_are_those_of_the_ratio_of_two_beta_variables(
    wrong: tuple[float, float], models: float
) -> None:
    def below(bound: float, numerator: float, denominator: float) -> float:
        """Return P((1 - rate) / rate < e^bound), the rates of so many errors."""
        one = stats.beta(models - numerator + 0.5, numerator + 0.5)
        other = stats.beta(denominator + 0.5, models - denominator + 0.5)
        return integrate.quad(lambda u: one.cdf(min(1, exp(bound) * other.ppf(u))), 0, 1, limit=200)[0]

    ends = epsilon(wrong[0], models, wrong[1], models)
    for end, level in zip(ends, (0.025, 0.5, 0.975), strict=True):
        both = [below(end, *wrong), below(end, *wrong[::-1])]
        assert min(both) == pytest.approx(level, abs=0.002)  # the larger end is the smaller probability


@pytest.mark.parametrize("shift", [1.0, 1.5, 2.0])
def test_the_interval_covers_the_true_epsilon(shift: float) -> None:
    """64 models of each kind, a Gaussian with variance 1 each, and the threshold in the middle."""
    random = np.random.default_rng(0)
    rate = stats.norm.cdf(-shift / 2)
    truth = log((1 - rate) / rate)
    positives = (random.normal(0, 1, (1000, 64)) > shift / 2).sum(1)
    negatives = (random.normal(shift, 1, (1000, 64)) <= shift / 2).sum(1)
    ends = [epsilon(one, 64, other, 64) for one, other in zip(positives, negatives, strict=True)]
    assert 930 <= sum(low <= truth <= high for low, _, high in ends) <= 970


def test_a_coin_has_an_epsilon_of_nothing_and_so_many_models_no_more_than_the_ceiling() -> None:
    low, median, high = epsilon(16, 32, 16, 32)
    assert low < 0 < high
    assert median == pytest.approx(0, abs=0.01)
    assert epsilon(30, 32, 30, 32)[1] < -1
    ceilings = [epsilon(0, number, 0, number)[0] for number in (4, 8, 16, 32)]
    assert ceilings == pytest.approx([0.66, 1.27, 1.91, 2.58], abs=0.01)
    far = ulira.audit(World(0, shift=30).models(16, 1.0))
    assert far["ulira_epsilon_low"] == far["ulira_epsilon_ceiling"] == ceilings[1]
    assert far["ulira_auc"] == 1


def test_repeats_of_retraining_are_found_less_often_than_by_counting_both_halves_as_independent() -> None:
    world = World(0, samples=10)
    values = [ulira.attacked("ulira", ulira.folds(world.models(8, 0.0))) for _ in range(400)]
    assert sum(one["ulira_epsilon_low"] > 0 for one in values) <= 12  # 26 were N models counted
    areas = np.array([value["ulira_auc"] for value in values])
    assert abs(areas.mean() - 0.5) < 3 * areas.std() / sqrt(len(areas))


def test_p_counts_relabellings_within_halves_that_are_fitted_anew() -> None:
    random = np.random.default_rng(0)
    u, r = random.normal(10.7, 1, (4, 3)), random.normal(10, 1, (4, 3))
    every = []
    for one, other in relabelled(u, r):
        judged = ulira.folds(models_of(one, other, other))
        every.append(np.mean([one.sum(1).mean() - other.sum(1).mean() for one, other in judged]))
    assert ulira.audit(models_of(u, r, r))["ulira_p"] == pytest.approx((np.array(every) >= every[0] - 1e-4).mean())


def test_true_positives_have_an_interval_over_models() -> None:
    """A quarter of the unlearned models is caught on every sample, the others on none: one of two in the first fold."""
    unlearned, retrained = np.repeat([[9.0], [-9], [-9], [-9]], 50, axis=1), np.zeros((4, 50))
    values = ulira.attacked("it", [(unlearned[:2], retrained[:2]), (unlearned[2:], retrained[2:])])
    assert (values["it_tpr_1"], values["it_tpr_1_low"], values["it_tpr_1_high"]) == (0.25, 0, 0.5)


def test_epsilon_at_delta_counts_true_decisions_less_delta() -> None:
    """10,000 models, so that posteriors are narrow: 10% false positives, 20% false negatives."""
    _, median, _ = epsilon(1_000, 10_000, 2_000, 10_000, 0.1)
    assert median == pytest.approx(max(log((0.8 - 0.1) / 0.1), log((0.9 - 0.1) / 0.2)), abs=0.01)
    assert epsilon(5_000, 10_000, 9_900, 10_000, 0.6)[1] < -20  # as no decision is as often true
