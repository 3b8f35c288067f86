"""MoDe: degradation by a second model, and guidance by the classes it gives."""

from typing import Any

import pytest
import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.federation.flat import Layout
from fu.federation.local import Updates
from fu.federation.task import Task
from fu.methods import mode
from tests.factories import builder, make_federation, make_partition, make_task, params_of
from tests.systems import dropout_task, random, weighted_mean


def classes_of(model: Tensor, x: Tensor) -> Tensor:
    """Return the classes that a model [d] of the toy's kind gives images, by a network of its own."""
    net = builder()()
    layout = Layout(net)
    net.load_state_dict(layout.named(model))
    return net.eval()(x).argmax(1)


def guided(task: Task, theta: Tensor, second: Tensor, round: int, retained: list[int] | None = None) -> Tensor:
    """Return theta after a round of FedAvg on data in which the forgotten client's labels are the second model's.

    `retained`: who trains beside; all unless given.
    """
    data = task.federation.data
    (client,) = task.forgotten
    rows = torch.from_numpy(data.partition.train[client])
    marked, flipped = data.train(client)
    labels = classes_of(second, marked)
    assert (labels != flipped).any()
    assert (labels != data.y[rows]).any()
    x, y = data.x.clone(), data.y.clone()
    x[rows], y[rows] = marked.permute(0, 2, 3, 1), labels
    sizes = [data.size(k) for k in range(len(data.partition.train))]
    part = make_partition(sizes, task.forgotten, trigger=False)
    plain = make_federation(ClientData(x, y, part, data.classes, "all"), lr=task.federation.training.lr)
    everyone = [*(task.retained if retained is None else retained), client]
    return theta + weighted_mean(plain.local_updates(theta, everyone, round).delta, [sizes[k] for k in everyone])


@pytest.mark.parametrize("momentum", [1.0, 0.95, 0.0])
def test_a_round_of_mode_trains_the_second_model_degrades_and_guides(momentum: float) -> None:
    task, p = make_task(rounds=3), params_of(mode, lambda_=momentum, lambda_rounds=3, schedule="both")
    state = mode.start(task, p)
    assert torch.equal(state.theta, task.original_model)
    for round in range(2):
        theta, second = state.theta, state.second
        state = mode.step(task, p, state, round)
        trained = make_federation().local_updates(second, [0, 2], round).delta
        torch.testing.assert_close(state.second, second + weighted_mean(trained, [7, 9]), rtol=0, atol=1e-6)
        assert not torch.equal(state.second, second)
        degraded = {1.0: theta, 0.95: 0.95 * theta + 0.05 * state.second, 0.0: state.second}[momentum]
        expected = guided(task, degraded, state.second, round)
        torch.testing.assert_close(state.theta, expected, rtol=0, atol=1e-5)


def test_degradation_with_lambda_one_changes_nothing_and_with_zero_everything() -> None:
    theta, second = random(2, 50)
    assert torch.equal(mode.degrade(theta, second, 1.0), theta)
    torch.testing.assert_close(mode.degrade(theta, second, 0.0), second)
    torch.testing.assert_close(mode.degrade(theta, second, 0.95), 0.95 * theta + 0.05 * second)


@pytest.mark.parametrize("schedule", ["split", "alternating"])
def test_a_round_of_mode_trains_about_ten_clients_of_ten(schedule: str) -> None:
    """The toy's three clients: 0 and 2 train the second model, 1 the first, on the second model's classes."""
    task, p = make_task(rounds=5), params_of(mode, lambda_=0.5, lambda_rounds=None, schedule=schedule)
    state = mode.start(task, p)
    trained = []
    for round in range(5):
        theta, second, before = state.theta, state.second, task.federation.cost.client_rounds
        state = mode.step(task, p, state, round)
        trained.append(task.federation.cost.client_rounds - before)
        if round == 4 or (schedule == "alternating" and round % 2):  # guidance alone
            torch.testing.assert_close(state.theta, guided(task, theta, second, round), rtol=0, atol=1e-6)
            assert torch.equal(state.second, second)
            continue
        moved = weighted_mean(make_federation().local_updates(second, [0, 2], round).delta, [7, 9])
        torch.testing.assert_close(state.second, second + moved, rtol=0, atol=1e-6)
        degraded = (theta + state.second) / 2
        expected = guided(task, degraded, state.second, round, []) if schedule == "split" else degraded
        torch.testing.assert_close(state.theta, expected, rtol=0, atol=1e-5)
    assert trained == {"split": [3, 3, 3, 3, 3], "alternating": [2, 3, 2, 3, 3]}[schedule]


@pytest.mark.parametrize(
    ("schedule", "meant", "expected"),
    [
        ("split", 100, 0.9**20),
        ("both", 100, 0.9**20),
        ("alternating", 100, 0.9**40),
        ("both", 5, 0.9),
        ("split", None, 0.9),
        ("alternating", None, 0.9),
    ],
)
def test_lambda_leaves_as_much_of_the_original_in_fewer_rounds(
    schedule: str, meant: int | None, expected: float
) -> None:
    p = params_of(mode, lambda_=0.9, lambda_rounds=meant, schedule=schedule)
    assert mode.momentum(p, 5) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("share", "degrading"), [(0.8, 4), (0.5, 3), (0.0, 0), (1.0, 5)])
def test_the_last_rounds_of_mode_are_guidance_alone(share: float, degrading: int) -> None:
    task, p = make_task(rounds=5), params_of(mode, lambda_=0.5, degradation_share=share, schedule="both")
    state = mode.start(task, p)
    for round in range(5):
        theta, second = state.theta, state.second
        before = task.federation.cost.client_rounds
        state = mode.step(task, p, state, round)
        assert torch.equal(state.second, second) is (round >= degrading)
        assert task.federation.cost.client_rounds - before == (5 if round < degrading else 3)
        if round >= degrading:
            torch.testing.assert_close(state.theta, guided(task, theta, second, round), rtol=0, atol=1e-6)


def test_mode_begins_with_a_second_model_that_is_neither_of_training_nor_of_retraining() -> None:
    task = make_task()
    second = mode.start(task, params_of(mode)).second
    for other in (make_task(trained=False).first_model(), task.first_model()):
        assert not torch.equal(second, other)
    assert torch.equal(second, mode.start(make_task(), params_of(mode)).second)
    assert not torch.equal(second, mode.start(make_task(make_federation(seed=4)), params_of(mode)).second)


def test_the_classes_of_modes_second_model_are_those_it_gives_without_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    task = dropout_task()
    seen: list[tuple[Tensor, Tensor]] = []
    whole = task.federation.local_updates

    def watched(theta: Tensor, clients: list[int], round: int, **given: Any) -> Updates:
        relabel = given.get("relabel")
        if relabel is not None:

            def look(x: Tensor, y: Tensor) -> Tensor:
                assert task.federation.model.training
                seen.append((x, relabel(x, y)))
                assert task.federation.model.training  # the client trains on with dropout
                return seen[-1][1]

            given["relabel"] = look
        return whole(theta, clients, round, **given)

    monkeypatch.setattr(task.federation, "local_updates", watched)
    p = params_of(mode)
    state = mode.step(task, p, mode.start(task, p), 0)
    assert len(seen) == 3
    for x, labels in seen:
        assert labels.tolist() == task.federation.logits(state.second, x).argmax(1).tolist()
