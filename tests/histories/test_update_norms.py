"""The history that FedEraser needs: norms of every client's update, layer by layer."""

import math

import pytest
import torch
from torch import Tensor

from tests.factories import GREY, KINDS, SMALL, make_data, make_federation, make_partition, make_task
from tests.systems import random


@pytest.mark.parametrize(("model", "shape"), [("mlp", SMALL), ("lenet5", GREY)])
def test_recorded_norms_are_those_of_the_named_tensors_of_every_clients_updates(
    model: str, shape: tuple[int, int, int]
) -> None:
    data = make_data(make_partition(), shape)
    task = make_task(make_federation(data, model, stream="training"), model)
    models = task.original_model + 0.01 * random(3, task.federation.layout.size)
    record: dict[str, Tensor] = {}
    for k in range(3):
        record = KINDS["update_norms"](task, record, models[k], k)
    fresh = make_federation(data, model, stream="training")
    for k in range(3):
        for client in range(3):
            delta = fresh.local_updates(models[k], [client], k).delta[0]
            expected = [math.sqrt(piece.square().sum()) for piece in fresh.layout.named(delta).values()]
            torch.testing.assert_close(record["norms"][k, client], torch.tensor(expected), rtol=1e-5, atol=0)
    assert record.keys() == {"norms"}
    assert record["norms"].shape == (3, 3, len(fresh.layout.shapes))
    assert len(record["norms"].unique()) == record["norms"].numel()  # none is compared with another's
