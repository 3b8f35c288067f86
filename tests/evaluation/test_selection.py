"""The choice among trials."""

from typing import Any

import pytest

from fu.evaluation import selection

TERMS = {"r_acc_validation": 1, "asr_validation": -1}
ROLES = ("unlearned", "recovered")


def evaluation(
    r_acc: float, asr: float | None = 0.0, after: tuple[float, float] | None = None
) -> dict[str, dict[str, float]]:
    """Return an evaluation with these validation numbers; those that a table shows point the other way."""
    found = {"original": {"r_acc": 0.5}}
    for role, pair in (("unlearned", (r_acc, asr)), ("recovered", after)):
        if pair is not None:
            found[role] = {"r_acc_validation": pair[0], "r_acc": 1 - pair[0], "asr": 0.0}
            if pair[1] is not None:
                found[role] |= {"asr_validation": pair[1], "asr": 1 - pair[1]}
    return found


def diverged(round: int) -> dict[str, dict[str, float]]:
    return {"unlearned": {"diverged_round": round}, "recovered": {"diverged_round": round}}


CHOICES: dict[str, dict[str, list[Any]]] = {  # the winner is b
    "the highest r-acc": {"a": [evaluation(0.7)], "b": [evaluation(0.8)], "c": [evaluation(0.75)]},
    "minus asr": {"a": [evaluation(0.9, 0.5)], "b": [evaluation(0.6, 0.1)]},
    "mean over seeds": {"a": [evaluation(0.9), evaluation(0.1)], "b": [evaluation(0.6), evaluation(0.5)]},
    "unlearning before post-training": {
        "a": [evaluation(0.6, 0, (0.9, 0.0))],
        "b": [evaluation(0.7, 0, (0.1, 0.0))],
    },
    "post-training among equals": {
        "a": [evaluation(0.7, 0, (0.8, 0.3))],
        "b": [evaluation(0.7, 0, (0.75, 0.0))],
    },
    "equal but for rounding": {
        "b": [evaluation(0.3, 0, (0.7, 0.0))],
        "a": [evaluation(0.1 + 0.2, 0, (0.6, 0.0))],
    },
    "the first of equals": {"b": [evaluation(0.7)], "a": [evaluation(0.7)], "c": [evaluation(0.7)]},
    "no diverged trial, however good its other seed": {
        "a": [evaluation(1.0), diverged(9)],
        "b": [evaluation(0.1, 0.9), evaluation(0.1, 0.9)],
    },
    "none that diverged in post-training": {
        "a": [{**evaluation(0.9), "recovered": {"diverged_round": 9.0}}],
        "b": [evaluation(0.2, 0, (0.1, 0.9))],
    },
    "the fewest diverged seeds": {
        "a": [diverged(90), diverged(90), evaluation(0.9)],
        "b": [diverged(2), evaluation(0.1), evaluation(0.1)],
        "c": [diverged(99), diverged(99), diverged(99)],
    },
    "of as many diverged seeds the later ones": {
        "a": [diverged(3), evaluation(0.9)],
        "b": [evaluation(0.1), diverged(8)],
        "c": [diverged(4), evaluation(0.5)],
    },
    "of as many diverged seeds one that lasted through unlearning": {
        "a": [diverged(9)],
        "b": [{**evaluation(0.3), "recovered": {"diverged_round": 5.0}}],
    },
    "where all diverged, the one that lasted longest": {
        "a": [diverged(3), diverged(4)],
        "b": [diverged(2), diverged(8)],
        "c": [diverged(4), diverged(4)],
    },
    "without a backdoor r-acc alone": {"a": [evaluation(0.7, None)], "b": [evaluation(0.8, None)]},
    "without post-training": {"a": [evaluation(0.7, 0.2)], "b": [evaluation(0.7, 0.1)]},
}


@pytest.mark.parametrize("rule", list(CHOICES))
def test_the_trial_of_a_grid_is_chosen_by_its_rule(rule: str) -> None:
    assert selection.choose(CHOICES[rule], TERMS, ROLES) == "b"


def test_a_seed_is_lost_in_the_first_round_that_leaves_the_finite_numbers() -> None:
    later = {"unlearned": {"diverged_round": 3.0}, "recovered": {"diverged_round": 5.0}}
    assert selection.rounds_of_divergence([later, evaluation(0.7), diverged(9)]) == [3, 9]


def test_a_score_is_the_sum_of_its_terms_some_of_them_subtracted() -> None:
    found = [{"original": {"a": 0.7, "b": 0.2, "c": 0.1}}, {"original": {"a": 0.5, "b": 0.3}}]
    assert selection.score(found, "original", {"a": 1, "b": -1, "c": 1}) == pytest.approx((0.6 + 0.2) / 2)
    assert selection.score(found, "original", {"b": -1}) == pytest.approx(-0.25)
    assert selection.score(found, "original", {"c": 1}) is None
    assert selection.score(found, "unlearned", {"a": 1}) is None


def test_the_rule_is_said_in_words() -> None:
    first, last = "highest {}Accuracy on validation data{}, ties to the first", "if all diverged, the last to diverge"
    expected = f"on seed 3: {first.format('', '')}; {last}"
    assert selection.rule("Accuracy", ["original"], [3]) == expected
    stages = " after unlearning, then the same after post-training"
    expected = f"on seeds 3, 4: fewest diverged, then {first.format('mean ', stages)}; {last}"
    assert selection.rule("Accuracy", ROLES, [3, 4]) == expected
