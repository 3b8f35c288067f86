"""The device that is not there refuses what a GPU refuses, and computes all else as the CPU does."""

import re

import pytest
import torch
from torch import Tensor

from tests import factories, ghost
from tests.contract import test_devices
from tests.factories import make_task


def test_a_tensor_left_on_the_cpu_is_refused_where_it_meets_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factories, "PLACE", ghost.DEVICE)
    with ghost.there():
        task = make_task()
        delta = task.federation.mean_update(task.original_model, task.retained, 0)
        noise = torch.ones(len(delta))  # as a method does that forgets to move it
        with pytest.raises(ghost.MixedError) as caught:
            task.original_model + delta + noise
    assert re.match(rf"{__file__}:\d+: aten.* is given tensors of the CPU and of another device\.$", str(caught.value))


def test_what_cuda_allows_is_computed_as_on_the_cpu() -> None:
    x, rows = torch.arange(6.0).view(3, 2), torch.tensor([2, 0])
    expected = [(x * torch.tensor(3.0))[rows], x[[1, 2]], x[1], x.t() @ x, x[x > 2]]
    with ghost.there() as device:
        y = x.to(device)
        found = [(y * torch.tensor(3.0))[rows], y[[1, 2]], y[1], y.t() @ y, y[y > 2]]
        assert [one.device for one in found] == [device] * 5
        assert y.tolist() == x.tolist()
        assert torch.tensor([1.5, 2.5], device=device).sum().item() == 4
        y[rows] = y[[1]]
        assert y.cpu().tolist() == [[2, 3], [2, 3], [2, 3]]
        parameter = torch.nn.Parameter(torch.zeros(2, device=device))
        parameter.data = y[0]
        assert parameter.tolist() == [2, 3]
        turned = y.clone().t_().unsqueeze_(0)
        assert turned.shape == (1, 2, 3)
        assert turned[0, 1].tolist() == [3, 3, 3]
    assert all(torch.equal(one.cpu(), other) for one, other in zip(found, expected, strict=True))
    assert x.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_what_cuda_refuses_is_refused() -> None:
    x, y = torch.zeros(3), torch.zeros(3).to("cpu")
    with ghost.there() as device:
        there: Tensor = x.to(device)
        for mixed in (
            lambda: there + y,
            lambda: torch.cat([there, y]),
            lambda: torch.where(there > 0, there, y),
            lambda: y[there.long()],
            lambda: y.add_(there),
            lambda: there.index_put_((torch.tensor([0]),), torch.ones(1)),
            lambda: torch.randn(3, device=device, generator=torch.Generator()),
        ):
            with pytest.raises(ghost.MixedError):
                mixed()
        with pytest.raises((RuntimeError, TypeError), match="numpy"):
            there.numpy()


def test_an_operation_without_a_fixed_order_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="cumsum"), test_devices.placed(monkeypatch):
        torch.zeros(3).to(ghost.DEVICE).cumsum(0)
