"""The history that FUPGA needs: the models of the last round of those who will be forgotten."""

from pathlib import Path

import torch
from torch import Tensor

from tests.factories import KINDS, make_data, make_federation, make_partition, make_task
from tests.federation.runs import never, toy, train


def test_the_last_local_models_are_those_of_the_forgotten_clients_after_the_last_round(tmp_path: Path) -> None:
    seen: list[Tensor] = []
    outcome = train(toy(trained=False), never(tmp_path), seen=seen, kinds=("last_local_models",))
    expected = seen[-1] + toy().federation.local_updates(seen[-1], [1], 3).delta
    assert torch.equal(outcome.histories["last_local_models"]["theta"], expected)


def test_where_nobody_is_attacked_the_last_local_models_of_all_who_take_part_are_recorded() -> None:
    data = make_data(make_partition((7, 12, 9, 8), trigger=False, absent=(1,)))
    task, fresh = (make_task(make_federation(data, stream="training")) for _ in range(2))
    theta = task.original_model
    found = KINDS["last_local_models"](task, {}, theta, 2)["theta"]
    assert torch.equal(found, theta + fresh.federation.local_updates(theta, [0, 2, 3], 2).delta)
