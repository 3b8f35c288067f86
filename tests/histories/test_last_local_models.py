"""The history that FUPGA needs: the models of the last round of those who will be forgotten."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.factories import KINDS, make_data, make_federation, make_partition, make_task
from tests.federation.runs import KilledError, always, toy, train


@pytest.mark.parametrize("killed_after", [None, 2])
def test_the_last_local_models_are_those_of_the_forgotten_clients_after_the_last_round(
    tmp_path: Path, killed_after: int | None
) -> None:
    if killed_after is not None:
        with pytest.raises(KilledError):
            train(toy(trained=False), always(tmp_path), killed_after, kinds=("last_local_models",))
    seen: list[Tensor] = []
    task = toy(trained=False)
    outcome = train(task, always(tmp_path), seen=seen, kinds=("last_local_models",))
    fresh = toy().federation
    expected = seen[-1] + fresh.local_updates(seen[-1], [1], 3).delta
    assert expected.shape == (1, task.federation.layout.size)
    assert outcome.histories.keys() == {"last_local_models"}
    assert outcome.histories["last_local_models"].keys() == {"theta"}
    assert torch.equal(outcome.histories["last_local_models"]["theta"], expected)
    assert task.federation.cost.client_rounds == 3 * 4  # recording costs nothing


def test_where_nobody_is_attacked_the_last_local_models_of_all_who_take_part_are_recorded() -> None:
    data = make_data(make_partition((7, 12, 9, 8), trigger=False, absent=(1,)))
    task, fresh = (make_task(make_federation(data, stream="training")) for _ in range(2))
    theta = task.original_model
    found = KINDS["last_local_models"](task, {}, theta, 2)["theta"]
    assert torch.equal(found, theta + fresh.federation.local_updates(theta, [0, 2, 3], 2).delta)
