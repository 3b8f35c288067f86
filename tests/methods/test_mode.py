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
from tests.systems import dropout_task, weighted_mean


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


@pytest.mark.parametrize(
    ("schedule", "share", "degrading", "trained"),
    [
        ("split", 0.8, 4, [3, 3, 3, 3, 3]),
        ("alternating", 0.8, 4, [2, 3, 2, 3, 3]),
        ("both", 0.8, 4, [5, 5, 5, 5, 3]),
        ("both", 0.5, 3, [5, 5, 5, 3, 3]),
        ("both", 0.0, 0, [3, 3, 3, 3, 3]),
    ],
)
def test_who_trains_which_model_in_which_round(schedule: str, share: float, degrading: int, trained: list[int]) -> None:
    """The toy's three clients: 0 and 2 train the second model, 1 the first, on the second model's classes."""
    task, found = make_task(rounds=5), list[int]()
    p = params_of(mode, lambda_=0.75, lambda_rounds=None, schedule=schedule, degradation_share=share)
    state = mode.start(task, p)
    assert torch.equal(state.theta, task.original_model)
    for round in range(5):
        before, done = state, task.federation.cost.client_rounds
        state = mode.step(task, p, state, round)
        found.append(task.federation.cost.client_rounds - done)
        theta, second = before.theta, before.second
        degrades = round < degrading and not (schedule == "alternating" and round % 2)
        if degrades:
            delta = make_federation().local_updates(second, [0, 2], round).delta
            second = second + weighted_mean(delta, [7, 9])
            theta = 0.75 * theta + 0.25 * second
        torch.testing.assert_close(state.second, second, rtol=0, atol=1e-6)
        if not (degrades and schedule == "alternating"):
            theta = guided(task, theta, state.second, round, [] if degrades and schedule == "split" else None)
        torch.testing.assert_close(state.theta, theta, rtol=0, atol=1e-5)
    assert found == trained


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
