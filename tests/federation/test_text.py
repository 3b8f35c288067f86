"""Training on text: bytes at home, whole numbers for the model, the same updates however clients are trained."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.data.partition import Partition
from fu.federation import local
from fu.federation.local import Federation, LocalTraining
from fu.federation.network import TEXT_BATCH, Network
from fu.federation.task import initial_parameters
from fu.models import lstm
from tests.contract.runs import spoiled
from tests.factories import make_partition

CLASSES, LENGTH = 12, 9
LOCAL = LocalTraining(lr=0.5, lr_decay=1.0, batch_size=5, local_epochs=2)
PART = make_partition((7, 12, 3), trigger=False, server=6)
BUILD = partial(lstm.build, (LENGTH,), CLASSES, lstm.Params(hidden=5))


def text_data(part: Partition = PART) -> ClientData:
    random = torch.Generator().manual_seed(4)
    samples = 1 + max(int(rows.max(initial=0)) for rows in (*part.train, *part.test, part.server))
    x = torch.randint(CLASSES, (samples, LENGTH), generator=random, dtype=torch.uint8)
    return ClientData(x, torch.randint(CLASSES, (samples,), generator=random), part, CLASSES, "share")


def federation(strategy: str = "auto", data: ClientData | None = None) -> Federation:
    return Federation(BUILD(), data or text_data(), LOCAL, "training", 0, strategy)


def seen(model: torch.nn.Module) -> list[Tensor]:
    found: list[Tensor] = []
    model.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0]))
    return found


def test_a_test_that_spoils_tests_changes_their_bytes_and_labels_alone() -> None:
    data = text_data()
    other, rows = spoiled(data), np.concatenate(PART.test)
    assert (other.x[rows] != data.x[rows]).all()
    assert (other.y[rows] != data.y[rows]).all()
    assert int(other.x.max()) < CLASSES > int(other.y.max())
    rest = np.setdiff1d(np.arange(len(data.y)), rows)
    assert torch.equal(other.x[rest], data.x[rest])
    assert torch.equal(other.y[rest], data.y[rest])
    one, two = (
        federation(data=some).local_updates(initial_parameters(BUILD, 0), [0, 1, 2], 0).delta for some in (data, other)
    )
    assert torch.equal(one, two)


def test_text_stays_bytes_until_it_is_a_batch() -> None:
    data = text_data()
    assert data.shape == (LENGTH,)
    for x, _ in (data.held_out(0, "test"), data.pool("server"), data.global_test):
        assert x.dtype == torch.uint8
    x, y = data.train(1, torch.tensor([3, 0]))
    rows = torch.from_numpy(PART.train[1])[[3, 0]]
    assert (x.dtype, y.dtype) == (torch.int64, torch.int64)
    assert torch.equal(x, data.x[rows].long())
    assert torch.equal(y, data.y[rows])


def test_a_network_reads_bytes_as_whole_numbers_in_pieces() -> None:
    network = Network(BUILD(), torch.device("cpu"))
    theta = initial_parameters(BUILD, 1)
    x = torch.randint(CLASSES, (TEXT_BATCH + 7, LENGTH), dtype=torch.uint8)
    batches = seen(network.model)
    found = network.logits(theta, x)
    assert [(batch.dtype, len(batch)) for batch in batches] == [(torch.int64, TEXT_BATCH), (torch.int64, 7)]
    torch.testing.assert_close(found, network.logits(theta, x.long(), batch=50))
    assert len(batches[-1]) == 7
    assert [len(batch) for batch in batches[2:]] == [50, 50, 50, 50, 7]


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_all_clients_at_once_equal_client_after_client_on_text() -> None:
    one, many = federation("sequential"), federation("vectorised")
    theta = initial_parameters(BUILD, 1)
    expected, found = one.local_updates(theta, [2, 0, 1], 0), many.local_updates(theta, [2, 0, 1], 0)
    torch.testing.assert_close(found.delta, expected.delta, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.losses, expected.losses, rtol=1e-4, atol=1e-5)


def test_a_recurrent_model_is_trained_client_after_client_on_every_device(monkeypatch: pytest.MonkeyPatch) -> None:
    data = text_data()
    data.device = torch.device("cuda")
    monkeypatch.setattr(local, "Network", lambda model, device: Network(model, torch.device("cpu")))
    assert federation("auto", data).strategy == "sequential"
    small = torch.nn.Sequential(
        torch.nn.Embedding(CLASSES, 2), torch.nn.Flatten(), torch.nn.Linear(2 * LENGTH, CLASSES)
    )
    assert Federation(small, data, LOCAL, "training", 0).strategy == "vectorised"
