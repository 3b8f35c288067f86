"""Dropout in local training: drawn by name, absent in evaluation."""

import numpy as np
import pytest
import torch

from fu.federation.local import Federation
from tests.systems import dropout_task


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
