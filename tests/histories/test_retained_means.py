"""The history that FedEraser as published needs: mean local models of the first rounds, a norm per layer of each."""

import torch
from torch import Tensor

from fu.histories.retained_means import FIRST
from tests.factories import KINDS, make_federation, make_task


def test_norms_are_kept_of_every_round_and_models_of_the_first_alone() -> None:
    task = make_task(make_federation(stream="training"))
    record: dict[str, Tensor] = {}
    for round in range(FIRST + 2):
        record = KINDS["retained_means"](task, record, task.original_model + round, round)
    assert record["norms"].shape == (FIRST + 2, len(task.federation.layout.shapes))
    assert record["models"].shape == (FIRST, task.federation.layout.size)
    last = task.federation.local_updates(task.original_model + FIRST - 1, task.retained, FIRST - 1)
    mean = last.sizes / last.sizes.sum() @ last.delta
    torch.testing.assert_close(record["models"][-1], task.original_model + FIRST - 1 + mean)
