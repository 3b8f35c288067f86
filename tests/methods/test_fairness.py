"""Fairness: weights by hand, what they do to training, and which model is returned."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from fu.federation.local import aggregate
from fu.methods import fairness
from fu.methods.fairness import Fair
from tests.factories import make_federation, make_task, params_of
from tests.systems import states_of


def test_the_weights_by_hand() -> None:
    # e^ln2 = 2, e^0 = 1, e^-ln2 = .5, with the 1 of the denominator 4.5.
    harm = torch.tensor([math.log(2), 0.0, -math.log(2)])
    found = fairness.weights(params_of(fairness, bound=3.0), harm)
    torch.testing.assert_close(found, 3 * torch.tensor([2, 1, 0.5]) / 4.5)
    p = params_of(fairness, bound=3.0, margin=True, epsilon=math.log(2))  # 1, .5, .25 of 2.75
    torch.testing.assert_close(fairness.weights(p, harm), 3 * torch.tensor([1, 0.5, 0.25]) / 2.75)
    published = fairness.weights(params_of(fairness, bound=3.0, variant="as-published"), harm)
    torch.testing.assert_close(published, torch.tensor([2, 1, 0.5]) / 4.5 - 3.5 / 4.5 / 3)
    assert (published < 0).any()


def test_no_exponential_overflows() -> None:
    found = fairness.weights(params_of(fairness, bound=1.3), torch.tensor([800.0, 0.0, -800.0]))
    torch.testing.assert_close(found, torch.tensor([1.3, 0.0, 0.0]))
    low = fairness.weights(params_of(fairness), torch.tensor([-800.0, -900.0, -800.0]))
    assert low.tolist() == [0, 0, 0]


@pytest.mark.parametrize("unit", ["points", "loss"])
@pytest.mark.parametrize("variant", ["best", "as-published"])
def test_reports_are_of_the_training_data_of_retained_clients_and_as_published_of_their_test_data(
    variant: str, unit: str
) -> None:
    task = make_task()
    data, theta = task.federation.data, task.original_model
    scores, loss = fairness.reports(task, params_of(fairness, variant=variant, unit=unit), theta)
    expected, losses = [], []
    for client in (0, 2):
        x, y = data.train(client)
        losses.append(F.cross_entropy(task.federation.logits(theta, x), y).item())
        if variant == "as-published":
            x, y = data.held_out(client, "test")
        logits = task.federation.logits(theta, x)
        wrong = sum(int(row.argmax() != label) for row, label in zip(logits, y, strict=True))
        expected.append(100 * wrong / len(y) if unit == "points" else F.cross_entropy(logits, y).item())
    assert scores.tolist() == pytest.approx(expected, rel=1e-5)
    assert loss == pytest.approx((7 * losses[0] + 9 * losses[1]) / 16, rel=1e-5)


def test_a_clients_weight_multiplies_its_loss_which_is_its_rate_in_plain_sgd() -> None:
    task = make_task(make_federation(lr=0.1))
    p, theta = params_of(fairness), task.original_model
    state = Fair(theta, theta, torch.tensor([0.5, 2.0]), torch.zeros(2))
    found = fairness.step(task, p, state, 0).current
    deltas = [
        make_federation(lr=0.1 * factor).local_updates(theta, [client], 0).delta[0]
        for client, factor in ((0, 1.5), (2, 3.0))
    ]
    torch.testing.assert_close(found, theta + (7 * deltas[0] + 9 * deltas[1]) / 16, rtol=1e-4, atol=1e-6)


def run(rounds: int, **params: Any) -> list[Fair]:
    """Return the states after each round."""
    return states_of(fairness, make_task(), rounds, **params)


def test_at_bound_0_all_models_are_those_of_fedavg_of_the_retained_bit_for_bit() -> None:
    task = make_task()
    theta = task.original_model
    for round, state in enumerate(run(3, bound=0.0)[1:]):
        theta = theta + aggregate(task.federation.local_updates(theta, task.retained, round), "samples")
        assert torch.equal(state.current, theta)


def test_the_first_round_has_no_weights_and_later_ones_those_of_what_clients_report() -> None:
    task, p = make_task(), params_of(fairness, unit="loss", bound=2.0)
    states = run(2, unit="loss", bound=2.0)
    assert states[0].lambdas.tolist() == [0, 0]
    first, _ = fairness.reports(task, p, states[0].current)
    scores, _ = fairness.reports(task, p, states[1].current)
    r = (scores - first).double()
    torch.testing.assert_close(states[1].lambdas, (2 * r.exp() / (1 + r.exp().sum())).float())
    assert torch.equal(states[0].first, first)
    assert torch.equal(states[2].first, first)


CASES = {  # scores of the two retained clients and F_{-J} of each new model; epsilon is 1; which is returned after each
    "the least loss of those that are feasible": ([(0, 1), (3, 0), (1, 1), (0, 0)], [4, 1, 2, 3], [0, 0, 2, 2]),
    "a feasible one for one that is not": ([(5, 0), (1, 1), (0, 2)], [1, 9, 1], [0, 1, 1]),
    "the least harm while none is": ([(5, 0), (0, 4), (2, 6)], [9, 9, 1], [0, 1, 1]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_right_model_is_returned(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, losses, wanted = CASES[case]
    each = zip(scores, losses, strict=True)
    told = iter([(torch.zeros(2), 0.0), *((torch.tensor(score).float(), float(loss)) for score, loss in each)])
    monkeypatch.setattr(fairness, "reports", lambda *_: next(told))
    _, *states = run(len(scores))
    for state, best in zip(states, wanted, strict=True):
        assert state.theta is states[best].current
        assert state.feasible == (max(scores[best]) <= 1)
        assert (state.worst, state.loss) == (max(scores[best]), losses[best])


def test_to_the_letter_algorithm_1_ends_after_its_first_round() -> None:
    states = run(1, variant="literal")
    assert states[1].theta is states[1].current
    assert (fairness.done(states[0]), fairness.done(states[1])) == (False, True)
    assert not fairness.done(run(2)[-1])


def test_the_published_code_returns_the_last_model() -> None:
    states = run(3, variant="as-published")
    assert all(state.theta is state.current for state in states)
    assert not any(map(fairness.done, states))


def test_a_model_that_is_not_finite_is_returned_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    task, p = make_task(), params_of(fairness)
    state = fairness.start(task, p)
    task.federation.training = make_federation(lr=1e30).training
    following = fairness.step(task, p, state, 0)
    assert not torch.isfinite(following.theta).all()


def test_one_more_model_is_sent_for_the_reports_on_the_last() -> None:
    task = make_task()
    states_of(fairness, task)
    cost, each = task.federation.cost, 2 * 4 * task.federation.layout.size
    assert (cost.bytes_up, cost.bytes_down) == (3 * each, 4 * each)
