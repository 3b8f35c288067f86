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


CHOICES: dict[str, tuple[dict[str, list[Any]], str]] = {
    "the highest r-acc": ({"a": [evaluation(0.7)], "b": [evaluation(0.8)], "c": [evaluation(0.75)]}, "b"),
    "minus asr": ({"a": [evaluation(0.9, 0.5)], "b": [evaluation(0.6, 0.1)]}, "b"),
    "mean over seeds": (
        {"a": [evaluation(0.9), evaluation(0.1)], "b": [evaluation(0.6), evaluation(0.5)]},
        "b",
    ),
    "unlearning before post-training": (
        {"a": [evaluation(0.6, 0, (0.9, 0.0))], "b": [evaluation(0.7, 0, (0.1, 0.0))]},
        "b",
    ),
    "post-training among equals": (
        {"a": [evaluation(0.7, 0, (0.8, 0.3))], "b": [evaluation(0.7, 0, (0.75, 0.0))]},
        "b",
    ),
    "equal but for rounding": (
        {"a": [evaluation(0.3, 0, (0.7, 0.0))], "b": [evaluation(0.1 + 0.2, 0, (0.6, 0.0))]},
        "a",
    ),
    "the first of equals": ({"b": [evaluation(0.7)], "a": [evaluation(0.7)], "c": [evaluation(0.7)]}, "b"),
    "no diverged trial, however good its other seed": (
        {"a": [evaluation(1.0), diverged(9)], "b": [evaluation(0.1, 0.9), evaluation(0.1, 0.9)]},
        "b",
    ),
    "none that diverged in post-training": (
        {
            "a": [{**evaluation(0.9), "recovered": {"diverged_round": 9.0}}],
            "b": [evaluation(0.2, 0, (0.1, 0.9))],
        },
        "b",
    ),
    "the fewest diverged seeds": (
        {
            "a": [diverged(90), diverged(90), evaluation(0.9)],
            "b": [diverged(2), evaluation(0.1), evaluation(0.1)],
            "c": [diverged(99), diverged(99), diverged(99)],
        },
        "b",
    ),
    "of as many diverged seeds the later ones": (
        {"a": [diverged(3), evaluation(0.9)], "b": [evaluation(0.1), diverged(8)], "c": [diverged(4), evaluation(0.5)]},
        "b",
    ),
    "of as many diverged seeds one that lasted through unlearning": (
        {"a": [diverged(9)], "b": [{**evaluation(0.3), "recovered": {"diverged_round": 5.0}}]},
        "b",
    ),
    "where all diverged, the one that lasted longest": (
        {"a": [diverged(3), diverged(4)], "b": [diverged(2), diverged(8)], "c": [diverged(4), diverged(4)]},
        "b",
    ),
    "without a backdoor r-acc alone": (
        {"a": [evaluation(0.7, None)], "b": [evaluation(0.8, None)], "c": [evaluation(0.1, None)]},
        "b",
    ),
    "without post-training": ({"a": [evaluation(0.7, 0.2)], "b": [evaluation(0.7, 0.1)]}, "b"),
}


@pytest.mark.parametrize("rule", list(CHOICES))
def test_the_trial_of_a_grid_is_chosen_by_its_rule(rule: str) -> None:
    trials, expected = CHOICES[rule]
    assert selection.choose(trials, TERMS, ROLES) == expected


def test_a_seed_is_lost_in_the_first_round_that_leaves_the_finite_numbers() -> None:
    later = {"unlearned": {"diverged_round": 3.0}, "recovered": {"diverged_round": 5.0}}
    assert selection.rounds_of_divergence([later, evaluation(0.7), diverged(9)]) == [3, 9]


def test_numbers_that_a_table_shows_do_not_matter_to_the_choice() -> None:
    trials = {"a": [evaluation(0.7, 0.2, (0.6, 0.1))], "b": [evaluation(0.7, 0.2, (0.6, 0.0))]}
    for name in ("a", "b"):
        for role in ("original", "unlearned", "recovered"):
            trials[name][0][role] |= {"r_acc": float(name == "a"), "asr": float(name == "b"), "distance": 5.0}
    assert selection.choose(trials, TERMS, ROLES) == "b"
    assert [selection.score(trials["a"], role, TERMS) for role in ROLES] == pytest.approx([0.5, 0.5])


def test_a_score_is_the_sum_of_its_terms_some_of_them_subtracted() -> None:
    found = [{"original": {"a": 0.7, "b": 0.2, "c": 0.1}}, {"original": {"a": 0.5, "b": 0.3}}]
    assert selection.score(found, "original", {"a": 1, "b": -1, "c": 1}) == pytest.approx((0.6 + 0.2) / 2)
    assert selection.score(found, "original", {"b": -1}) == pytest.approx(-0.25)
    assert selection.score(found, "original", {"c": 1}) is None
    assert selection.score(found, "unlearned", {"a": 1}) is None


def test_trainings_are_chosen_by_their_trained_models() -> None:
    trials = {"a": [{"original": {"accuracy": 0.7}}], "b": [{"original": {"accuracy": 0.8}}]}
    assert selection.choose(trials, {"accuracy": 1}, ["original"]) == "b"
    assert selection.choose(trials, {"accuracy": -1}, ["original"]) == "a"


def test_the_rule_is_said_in_words() -> None:
    assert selection.rule("R-Acc minus ASR", ROLES, [3, 4]) == (
        "on seeds 3, 4: fewest diverged, then highest mean R-Acc minus ASR on validation data after unlearning, then "
        "the same after post-training, then the first; if all diverged, the last to do so"
    )
    assert selection.rule("Accuracy", ["original"], [3]) == (
        "on seed 3: highest Accuracy on validation data, then the first; if all diverged, the last to do so"
    )
