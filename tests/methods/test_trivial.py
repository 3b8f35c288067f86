"""Fine-tuning and gradient ascent."""

import torch

from fu.methods import fine_tuning, gradient_ascent
from tests.factories import make_data, make_federation, make_partition, make_task, params_of
from tests.systems import weighted_mean


def test_fine_tuning_is_a_round_of_fedavg_on_the_retained_clients() -> None:
    task, p = make_task(), params_of(fine_tuning)
    state = fine_tuning.start(task, p)
    assert torch.equal(state.theta, task.original_model)
    for round in (0, 1):
        moved = weighted_mean(make_federation().local_updates(state.theta, [0, 2], round).delta, [7, 9])
        expected = state.theta + moved
        state = fine_tuning.step(task, p, state, round)
        torch.testing.assert_close(state.theta, expected, rtol=0, atol=1e-6)
    assert task.federation.cost.forgotten_rounds == 0


def test_gradient_ascent_averages_the_forgotten_clients_by_their_samples() -> None:
    task = make_task(make_federation(make_data(make_partition((7, 12, 9, 8), (1, 3)))))
    state = gradient_ascent.start(task, params_of(gradient_ascent))
    assert torch.equal(state.theta, task.original_model)
    each = make_federation(task.federation.data).local_updates(state.theta, [1, 3], 0, "negative_cross_entropy").delta
    found = gradient_ascent.step(task, params_of(gradient_ascent), state, 0)
    torch.testing.assert_close(found.theta, state.theta + (12 * each[0] + 8 * each[1]) / 20, rtol=0, atol=1e-6)
    assert task.federation.cost.client_rounds == task.federation.cost.forgotten_rounds == 2


def test_gradient_ascent_takes_steps_of_at_most_the_clipped_gradient() -> None:
    task, p = make_task(make_federation(lr=0.1)), params_of(gradient_ascent, clip=0.01)
    state = gradient_ascent.start(task, p)
    moved = gradient_ascent.step(task, p, state, 0).theta - state.theta
    steps = 6  # two epochs of twelve samples in batches of five
    assert 0 < moved.norm() <= steps * 0.1 * 0.01 * (1 + 1e-4)
