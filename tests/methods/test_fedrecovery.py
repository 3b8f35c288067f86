"""FedRecovery: the residuals it takes out, and its noise."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from fu.federation.task import State, Task
from fu.methods import fedrecovery
from tests.factories import (
    GREY,
    SMALL,
    make_data,
    make_federation,
    make_partition,
    make_task,
    params_of,
)
from tests.methods.trained import Trained, train
from tests.systems import random, states_of


def plain_residual(
    trained: Trained, forgotten: list[int], lr: float = 0.1, decay: float = 0.7
) -> tuple[Tensor, Tensor]:
    """Return sum_t p_t (the model after round t with the forgotten clients minus without them), and p [T]."""
    updates = trained.updates.double()
    retained = [client for client in range(updates.shape[1]) if client not in forgotten]
    with_all = trained.models[:-1].double() + updates.mean(1)
    without = trained.models[:-1].double() + updates[:, retained].mean(1)
    rates = torch.tensor([lr * decay**t for t in range(len(updates))])
    squares = (updates.mean(1) / rates[:, None]).square().sum(1)
    p = squares / squares.sum()
    return (p[:, None] * (with_all - without)).sum(0), p


@pytest.mark.parametrize("client_weights", ["equal", "samples"])
@pytest.mark.parametrize("forgotten", [(1,), (1, 3)], ids=["one", "two"])
def test_fedrecovery_from_running_sums_is_its_definition_on_all_updates(
    forgotten: tuple[int, ...], client_weights: str, tmp_path: Path
) -> None:
    trained = train(tmp_path, 4, forgotten=forgotten, client_weights=client_weights)
    if client_weights == "equal":  # then the mean update is the round that was made
        torch.testing.assert_close(trained.models[1:], trained.models[:-1] + trained.updates.mean(1))
    task = trained.task()
    found = states_of(fedrecovery, task, noise_std=0)[-1].theta.double()
    residual, shares = plain_residual(trained, list(forgotten))
    torch.testing.assert_close(found, trained.models[-1].double() - residual, rtol=0, atol=1e-6)
    assert shares.max() > 1.2 * shares.min()  # the weights are not those of a plain mean
    with_all, without = trained.updates.mean(1), trained.updates[:, task.retained].mean(1)
    assert (residual - (with_all - without).double().mean(0)).abs().max() > 1e-4
    assert task.federation.cost.record() == make_federation().cost.record()


def recovery_task(updates: Tensor, *, model: str = "mlp", rounds: int = 1, seed: int = 3) -> Task:
    """Return a task after one round with the given updates [m, k] of the first k parameters, of weight 2."""
    shape = SMALL if model == "mlp" else GREY
    bound = make_federation(make_data(make_partition(), shape), model, seed=seed)
    rows = torch.zeros(len(updates), bound.layout.size)
    rows[:, : updates.shape[1]] = updates
    recorded = {"sums": 2 * rows, "weight": torch.tensor([2.0], dtype=torch.float64)}
    return make_task(bound, model, rounds=rounds, histories={"update_sums": recorded})


@pytest.mark.parametrize("rounds", [1, 4])
def test_fedrecovery_of_one_target_is_what_it_is_by_hand_however_many_rounds_it_takes(rounds: int) -> None:
    task = recovery_task(torch.tensor([[1.0, 0, 3], [4, 2, 3], [1, 4, 3]]), rounds=rounds)
    # With all three the round moves by (2, 2, 3), without the second by (1, 2, 3).
    expected = task.original_model.clone()
    expected[0] -= 1
    torch.testing.assert_close(states_of(fedrecovery, task, noise_std=0)[-1].theta, expected)


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_the_noise_of_fedrecovery_has_its_standard_deviation_however_many_rounds_it_takes(rounds: int) -> None:
    def drawn(seed: int) -> Tensor:
        task = recovery_task(torch.zeros(3, 1), model="lenet5", rounds=rounds, seed=seed)
        return torch.stack([state.theta for state in states_of(fedrecovery, task, noise_std=0.05)]).diff(dim=0)

    parts = drawn(3)
    noise = parts.sum(0)
    assert noise.std().item() == pytest.approx(0.05, rel=0.03)
    assert abs(noise.mean().item()) < 0.001
    every = torch.cat([parts, drawn(4)])
    assert torch.corrcoef(every).triu(1).abs().max() < 0.03  # independent between rounds and seeds


def test_the_sums_of_a_client_are_found_by_its_place_among_those_who_take_part() -> None:
    data = make_data(make_partition((7, 12, 9, 8), trigger=False, absent=(0,)), asked=(2,))  # in place 1 of three
    theta = make_task(make_federation(data)).original_model
    sums = random(3, theta.numel(), seed=4)
    recorded = {"sums": sums, "weight": torch.tensor([2.0])}
    task = make_task(make_federation(data), rounds=1, histories={"update_sums": recorded})
    found = fedrecovery.step(task, params_of(fedrecovery, noise_std=0), State(theta), 0).theta
    torch.testing.assert_close(found, theta - (sums[1] - sums.mean(0)) / 2 / 2, rtol=0, atol=1e-6)
