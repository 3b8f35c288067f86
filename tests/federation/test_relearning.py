"""Training on after unlearning: who trains, on which samples, with whose draws, and what is left to measure on."""

import numpy as np
import pytest
import torch

from fu.errors import UserError
from fu.federation.local import Federation, LocalTraining, aggregate
from fu.federation.relearning import FORGOTTEN, RETAINED, relearned, shared_out
from fu.federation.task import Task
from tests.factories import make_partition
from tests.pipeline.stages.scene import BUILD, LOCAL, SEED, make_data, model

SAMPLES = 4


def make_task(seed: int = SEED, samples: int = SAMPLES) -> Task:
    """Return the task of two rounds; client 1 is forgotten, 0 and 2 stay."""
    taught, _ = shared_out(make_data("share"), samples)
    federation = Federation(BUILD(), taught, LocalTraining(**LOCAL), "relearning", seed)
    return Task(federation, BUILD, [1], [0, 2], 2, seed, model(0))


def test_samples_are_either_trained_on_or_measured_on() -> None:
    data = make_data("share")
    taught, others = (one.partition.train for one in shared_out(data, SAMPLES))
    assert len(taught[1]) == SAMPLES
    assert sorted([*taught[1], *others[1]]) == sorted(data.partition.train[1])
    for client in (0, 2):
        assert taught[client].tolist() == others[client].tolist() == data.partition.train[client].tolist()


def test_which_samples_is_a_draw_by_the_client_s_name_alone_and_more_hold_fewer() -> None:
    few, more = (set(shared_out(make_data("share"), number)[0].partition.train[1].tolist()) for number in (4, 7))
    assert few < more
    assert few == set(shared_out(make_data("all"), SAMPLES)[0].partition.train[1].tolist())
    assert few != set(make_data("share").partition.train[1][:SAMPLES].tolist())


def test_clients_of_equal_size_have_draws_of_their_own() -> None:
    data = make_data("share", make_partition((9, 9, 9)))
    data.forgotten = [0, 1]
    taught, _ = shared_out(data, SAMPLES)
    own = [np.isin(data.partition.train[k], taught.partition.train[k]).tolist() for k in (0, 1)]
    assert [sum(places) for places in own] == [SAMPLES] * 2
    assert own[0] != own[1]


def test_the_forgotten_client_s_samples_are_as_it_trained_on_them() -> None:
    data = make_data("share")
    taught, _ = shared_out(data, SAMPLES)
    place = [data.partition.train[1].tolist().index(row) for row in taught.partition.train[1]]
    for own, whole in zip(taught.train(1), data.train(1), strict=True):
        assert torch.equal(own, whole[place])


@pytest.mark.parametrize("samples", [12, 13])
def test_samples_that_leave_none_to_measure_on_are_refused(samples: int) -> None:
    with pytest.raises(UserError) as caught:
        shared_out(make_data("share"), samples)
    assert str(caught.value) == (
        f"relearning.samples: of the 12 training samples of client 1, {samples} leave none to measure on; allowed: at "
        "most 11."
    )
    assert len(shared_out(make_data("share"), 11)[1].partition.train[1]) == 1


@pytest.mark.parametrize(("attack", "clients"), [(RETAINED, [0, 2]), (FORGOTTEN, [1])])
def test_rounds_are_those_of_fedavg_by_samples(attack: str, clients: list[int]) -> None:
    task, theta = make_task(), model(1)
    found = [*relearned(task, theta, attack)]
    again = make_task().federation
    assert torch.equal(found[0], theta)
    for round in range(2):
        updates = again.local_updates(theta, clients, round)
        theta = theta + aggregate(updates, "samples")
        assert torch.equal(found[round + 1], theta)
    assert len(found) == 3


def test_a_run_ends_before_the_round_in_which_it_diverges() -> None:
    task = make_task()
    task.federation.training = task.federation.training.model_copy(update={"lr": 1e30})
    found = [*relearned(task, model(1), RETAINED)]
    assert len(found) < 3
    assert all(theta.isfinite().all() for theta in found)
