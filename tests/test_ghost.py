"""The device that is not there refuses what a GPU refuses, and computes all else as the CPU does."""

import inspect

import pytest
import torch
from torch import Tensor

from fu.evaluation.context import Context
from fu.federation.local import aggregate
from fu.federation.task import State, Task
from tests import factories, ghost
from tests.contract import test_devices
from tests.factories import make_context, make_task


def left_behind(task: Task, state: State) -> State:
    """Stands for a method that forgets to move its noise."""
    delta = aggregate(task.federation.local_updates(state.theta, task.retained, 0), "samples")
    return State(state.theta + delta + torch.ones(len(state.theta)))


def counted(context: Context) -> float:
    """Stands for an evaluator that forgets to move its labels."""
    x, y = context.data.train(0)
    return (context.network.logits(context.theta, x).argmax(1) == torch.zeros(len(y))).float().mean().item()


@pytest.mark.parametrize("broken", [left_behind, counted])
def test_a_tensor_left_on_the_cpu_is_refused_where_it_meets_the_others(
    broken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, ghost.there():
        patch.setattr(factories, "PLACE", ghost.DEVICE)
        task = make_task()
        with pytest.raises(ghost.MixedError) as caught:
            left_behind(task, State(task.original_model)) if broken is left_behind else counted(make_context(task))
    lines, start = inspect.getsourcelines(broken)  # type: ignore[arg-type]
    line = start + next(k for k, text in enumerate(lines) if "torch.ones" in text or "torch.zeros" in text)
    assert str(caught.value).startswith(f"{__file__}:{line}: aten.")
    assert str(caught.value).endswith(" is given tensors of the CPU and of another device.")


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
