"""Dropout in local training: drawn by name, absent in evaluation."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from fu.federation.flat import Layout, tensors_of
from fu.federation.local import Federation
from tests.factories import COLOUR
from tests.systems import dropout_task

PIXELS = math.prod(COLOUR)
NORMS = ("norm", "both")  # without and with running statistics


def test_dropout_is_drawn_by_name_and_leaves_the_global_generator_alone() -> None:
    found = []
    for seed in (0, 1):
        task = dropout_task()
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        found.append(task.federation.local_updates(task.original_model, [0, 1, 2], 1).delta)
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(found[0], found[1])
    alone = dropout_task()  # whoever trains before
    assert torch.equal(alone.federation.local_updates(alone.original_model, [2], 1).delta[0], found[0][2])
    other = dropout_task(seed=4)
    assert not torch.equal(other.federation.local_updates(alone.original_model, [2], 1).delta[0], found[0][2])


def test_dropout_differs_between_rounds_and_clients_and_is_all_that_does() -> None:
    """Clients of one sample, the same: their batches and rates cannot differ."""
    for dropout, alike in (((0.2, 0.5), False), ((0.0, 0.0), True)):
        task = dropout_task(sizes=(1, 1, 1), dropout=dropout)
        data = task.federation.data
        rows = torch.from_numpy(np.concatenate(data.partition.train))
        data.x[rows], data.y[rows] = data.x[rows[:1]], data.y[rows[:1]]
        deltas = [task.federation.local_updates(task.original_model, [0, 2], round).delta for round in (0, 1)]
        distinct = torch.unique(torch.cat(deltas), dim=0)
        assert len(distinct) == (1 if alike else 4)


def test_evaluation_has_no_dropout_also_after_training() -> None:
    task, without = dropout_task(), dropout_task(dropout=(0.0, 0.0))
    x, theta = task.federation.data.train(0)[0], task.original_model
    one = task.federation.logits(theta, x)
    task.federation.local_updates(theta, [0], 0)
    assert torch.equal(task.federation.logits(theta, x), one)
    assert torch.equal(without.federation.logits(theta, x), one)


def test_dropout_with_all_clients_at_once_is_refused() -> None:
    task = dropout_task()
    with pytest.raises(ValueError, match="only the sequential strategy"):
        Federation(task.build(), task.federation.data, task.federation.training, "unlearning", 3, "vectorised")
    without = dropout_task(dropout=(0.0, 0.0))
    Federation(without.build(), task.federation.data, task.federation.training, "unlearning", 3, "vectorised")
    assert task.federation.strategy == "sequential"


class Net(nn.Module):
    """A user's model for images [n, 3, 8, 8]: it drops its inputs, or outputs of a layer of torch, in training."""

    def __init__(self, kind: str, frozen: bool = False) -> None:
        super().__init__()
        self.kind, self.scale = kind, nn.Parameter(torch.tensor(2.0))
        self.linear = nn.Linear(PIXELS, 10).requires_grad_(not frozen)
        self.rnn = nn.LSTM(PIXELS // 8, 10, 2, batch_first=True, dropout=0.5) if kind == "lstm" else None
        self.norm = nn.BatchNorm1d(10, track_running_stats=kind == "both") if kind in NORMS else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs [n, 10]."""
        flat = functional.dropout(x.flatten(1), 0.5 * (self.kind in ("functional", "both")), self.training)
        steps = self.rnn(x.flatten(1).unflatten(1, (8, -1)))[0][:, -1] if self.rnn else 0
        return self.scale * self.norm(self.linear(flat)) + steps


def test_dropout_without_a_dropout_layer_is_seen_drawn_by_name_and_absent_in_evaluation() -> None:
    data, local = dropout_task().federation.data, dropout_task().federation.training
    for kind, stochastic, together in (
        ("functional", True, False),
        ("lstm", True, False),
        ("norm", False, False),
        ("both", True, False),
        ("plain", False, True),
    ):
        net, before = Net(kind), torch.get_rng_state()
        theta = Layout(net).flatten(tensors_of(net))
        one, same, other = (Federation(copy.deepcopy(net), data, local, "training", seed) for seed in (3, 3, 4))
        assert [model.stochastic for model in (one, same, other)] == [stochastic] * 3
        assert one.at_once == together
        first, again = (model.local_updates(theta, [0], 0, steps=1).delta for model in (one, same))
        assert torch.equal(first, again)
        assert torch.equal(torch.get_rng_state(), before)
        later = one.local_updates(theta, [0], 1, steps=1, rows=lambda client, step: torch.arange(7)).delta
        apart = other.local_updates(theta, [0], 1, steps=1, rows=lambda client, step: torch.arange(7)).delta
        assert torch.equal(later, apart) != stochastic
        assert not one.model.training
    assert not Federation(Net("plain", frozen=True), data, local, "training", 3).at_once
