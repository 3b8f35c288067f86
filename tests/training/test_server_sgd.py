"""SGD on the server's data: a plain step on a batch of the first of them, and nothing else."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fu.federation.task import State, Task
from fu.training import server_sgd
from tests.factories import SMALL, builder, make_data, make_federation, make_partition, make_task, params_of
from tests.federation.runs import by_torch
from tests.systems import dropout_task

PART = make_partition(server=13)


def task_of(server: int | None = None, model: str = "mlp", batch_size: int = 5) -> Task:
    federation = make_federation(make_data(PART), model, stream="training", momentum=0.9, batch_size=batch_size)
    return replace(make_task(federation, model, trained=False), server=server)


def seen(task: Task, rounds: int) -> list[list[int]]:
    """Return which of the server's samples the model sees in every round."""
    images: list[Tensor] = []
    task.federation.model.register_forward_pre_hook(lambda _, inputs: images.append(inputs[0].flatten(1)))
    for round in range(rounds):
        server_sgd.step(task, params_of(server_sgd), State(task.first_model()), round)
    mine = task.federation.data.x[torch.from_numpy(PART.server)].flatten(1)
    return [[int((mine == image).all(1).nonzero()) for image in batch] for batch in images]


@pytest.mark.parametrize("model", ["mlp", "logistic"])
@pytest.mark.parametrize("server_lr", [0.1, 4.6])
def test_a_round_is_one_plain_step_at_the_servers_rate(model: str, server_lr: float) -> None:
    """Whatever rate, decay and momentum the clients have."""
    task = task_of(model=model)
    theta = task.first_model()
    before = theta.clone()
    (rows,) = seen(task_of(model=model), 1)
    index = torch.from_numpy(PART.server)[rows]
    x, y = task.federation.data.x[index].permute(0, 3, 1, 2), task.federation.data.y[index]
    found = server_sgd.step(task, params_of(server_sgd, server_lr=server_lr), State(theta), 0).theta
    expected, _ = by_torch(builder(model, SMALL), task.federation, theta, [(x, y)], server_lr)
    assert expected.norm() > 1e-2
    torch.testing.assert_close(found, theta + expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(theta, before)


@pytest.mark.parametrize(("server", "first"), [(None, 13), (13, 13), (8, 8), (3, 3)])
def test_batches_are_drawn_anew_from_the_first_samples_alone(server: int | None, first: int) -> None:
    batches = seen(task_of(server), 40)
    assert {row for batch in batches for row in batch} == set(range(first))
    assert all(len(set(batch)) == len(batch) == min(5, first) for batch in batches)
    assert len({tuple(batch) for batch in batches}) > (20 if first > 5 else 3)
    assert batches == seen(task_of(server), 40)


def test_a_round_of_the_server_sends_nothing_and_counts_no_client() -> None:
    for server, samples in ((None, 5), (3, 3)):
        task = task_of(server)
        server_sgd.step(task, params_of(server_sgd), State(task.first_model()), 0)
        nothing = dict.fromkeys(task.federation.cost.record(), 0)
        assert task.federation.cost.record() == {**nothing, "steps": 1, "samples": samples, "time_steps": 1}


def test_the_server_drops_out_as_clients_do_and_leaves_the_global_generator_alone() -> None:
    def task_with(dropout: tuple[float, float]) -> Task:
        task = dropout_task(dropout=dropout)
        data = task.federation.data
        data.partition = replace(data.partition, server=data.partition.train[0][:4])  # as many as a batch
        return task

    def update(task: Task, round: int) -> Tensor:
        return task.federation.server_update(task.original_model, round, 0.1)

    task, without = task_with((0.2, 0.5)), task_with((0.0, 0.0))
    before = torch.get_rng_state()
    found = update(task, 0)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(123)
    assert torch.equal(update(task, 0), found)
    assert (update(task, 1) - found).norm() > 1e-3
    torch.testing.assert_close(update(without, 1), update(without, 0), rtol=0, atol=1e-6)
    assert not task.federation.model.training
