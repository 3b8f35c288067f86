"""On a device that is not there: the bytes of the CPU, no operation on tensors of both, and none without a fixed order.

Computed on `tests.ghost`, which refuses what a GPU would refuse.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fu import plugins
from fu.data.clients import ClientData
from fu.federation.checkpoint import flat
from fu.federation.driver import Outcome
from fu.federation.local import Federation, LocalTraining
from fu.federation.task import initial_parameters
from fu.pipeline.provenance.catalogue import declared
from tests import factories, ghost
from tests.contract.names import FOLDER, pairs_of, plugins_of, runs
from tests.contract.runs import driven, rows_of
from tests.contract.test_attacks import drawn, samples
from tests.contract.test_evaluation import scene
from tests.contract.test_models import TEXT, offline_params, reads_text
from tests.evaluation.shadows import record_of
from tests.factories import (
    CLASSES,
    COLOUR,
    FORGOTTEN,
    KINDS,
    default_params,
    make_context,
    make_data,
    make_partition,
    make_task,
)
from tests.federation.runs import KilledError

LOCAL = LocalTraining(lr=0.01, lr_decay=1, batch_size=2, local_epochs=1)

# Operations that have no fixed order on CUDA, and raise there (torch's page of `use_deterministic_algorithms`).
UNORDERED = {
    *("avg_pool3d_backward", "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward"),
    *("max_pool3d_with_indices_backward", "adaptive_max_pool2d_backward", "fractional_max_pool2d_backward"),
    *("fractional_max_pool3d_backward", "max_unpool2d", "max_unpool3d", "upsample_linear1d_backward"),
    *("upsample_bilinear2d_backward", "upsample_bicubic2d_backward", "upsample_trilinear3d_backward"),
    *("reflection_pad1d_backward", "reflection_pad2d_backward", "reflection_pad3d_backward"),
    *("replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward"),
    *("nll_loss2d_forward", "nll_loss2d_backward", "_ctc_loss_backward", "_embedding_bag_dense_backward"),
    *("put_", "histc", "bincount", "kthvalue", "median", "grid_sampler_2d_backward", "grid_sampler_3d_backward"),
    *("cumsum", "scatter_reduce", "scatter_reduce_"),
}


@contextmanager
def placed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the toy lie on the device that is not there, and check the operations on it."""
    ghost.SEEN.clear()
    with monkeypatch.context() as patch, ghost.there():
        patch.setattr(factories, "PLACE", ghost.DEVICE)
        yield
    assert ghost.SEEN
    assert not ghost.SEEN & UNORDERED


def assert_same_there(monkeypatch: pytest.MonkeyPatch, action: Callable[[], Any]) -> None:
    """Assert that a computation gives the same on the CPU and on the emulated GPU."""
    here = action()
    with placed(monkeypatch):
        assert action() == here


def contents(value: Any) -> Any:
    """Return the bytes of every tensor, wherever it lies, and all else as it is."""
    if isinstance(value, dict):
        return {key: contents(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [contents(one) for one in value]
    return (value.dtype, value.shape, value.cpu().numpy().tobytes()) if isinstance(value, Tensor) else value


def found(outcome: Outcome) -> Any:
    return contents([flat(vars(outcome.state)), outcome.histories, outcome.rows])


@pytest.mark.parametrize(("kind", "name"), pairs_of("methods", "training", only=runs))
def test_a_run_on_another_device_gives_the_same_bytes(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run on another device gives the bytes of the CPU, even after a kill, with all tensors on that device."""
    here_task, here = driven(kind, name, tmp_path / "here")
    with placed(monkeypatch):
        if not (kind == "methods" and declared(kind, name).get("CONTROL") is True):
            with pytest.raises(KilledError):
                driven(kind, name, tmp_path / "there", 1)
        there_task, there = driven(kind, name, tmp_path / "there")
    assert there.state.theta.device == ghost.DEVICE
    assert found(there) == found(here)
    assert there_task.federation.cost == here_task.federation.cost


@pytest.mark.parametrize("name", plugins_of("models"))
def test_a_model_on_another_device_trains_to_the_same_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model trains to the same numbers on another device as on the CPU, within a thousandth, one client at a time and
    all clients at once as on a GPU. For models of this repository that are not recurrent, the bytes are equal.
    """
    module = plugins.load("models", name)
    shape = TEXT[1] if reads_text(module) else COLOUR
    build = partial(module.build, shape, CLASSES, offline_params(module))
    model = build()
    # torch takes recurrent steps and group normalisation in another order on the CPU
    exact = FOLDER is None and not any(isinstance(one, nn.RNNBase) for one in model.modules())

    def federation_of(strategy: str) -> Federation:
        data = make_data(make_partition((2, 3, 2), trigger=False), COLOUR, asked=FORGOTTEN)
        if reads_text(module):
            text = (data.y[:, None] + torch.arange(*shape, device=data.device)).remainder(CLASSES).byte()
            data = ClientData(text, data.y, data.partition, CLASSES, data.poison, None, data.request)
        return Federation(build(), data, LOCAL, "training", 3, strategy)

    def trained(strategy: str) -> tuple[Tensor, Tensor]:
        federation = federation_of(strategy)
        updates = federation.local_updates(initial_parameters(build, "model").to(federation.device), [2, 0, 1], 0)
        return updates.delta, updates.losses

    for strategy in ("sequential", "vectorised")[: 1 + federation_of("auto").at_once]:
        here = trained(strategy)
        with placed(monkeypatch):
            there = [one.cpu() for one in trained(strategy)]
        for one, other in zip(here, there, strict=True):
            assert torch.equal(one, other) if exact else (one - other).norm() < 1e-3 * one.norm()


@pytest.mark.parametrize("name", plugins_of("evaluation"))
def test_an_evaluator_on_another_device_gives_the_same_numbers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An evaluator returns the same numbers on another device as on the CPU."""
    module, shadows = plugins.load("evaluation", name), record_of(scene(trigger=True).federation.data)
    trace = rows_of(driven("methods", "retrain", tmp_path)[1])

    @torch.no_grad()
    def judged() -> Any:
        task = scene(trigger=True)
        context = replace(
            make_context(task, task.original_model + 0.1, trace=[dict(row) for row in trace]), shadows=shadows
        )
        return module.evaluate(context), module.trace(context) if hasattr(module, "trace") else None

    assert_same_there(monkeypatch, judged)


@pytest.mark.parametrize("kind", plugins_of("histories"))
def test_a_history_on_another_device_gives_the_same_bytes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`record` returns the same bytes on another device as on the CPU."""

    def recorded() -> Any:
        task = make_task()
        once = KINDS[kind](task, {}, task.original_model, 0)
        return contents(KINDS[kind](task, once, task.original_model + 0.1, 1))

    assert_same_there(monkeypatch, recorded)


@pytest.mark.parametrize("name", plugins_of("projections"))
def test_a_projection_on_another_device_gives_the_same_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`project` returns the same bytes on another device as on the CPU."""
    module = plugins.load("projections", name)

    def projected() -> Any:
        task = make_task()
        theta, device = task.original_model + 0.1, task.federation.device
        delta = torch.randn(6, len(theta), generator=torch.Generator().manual_seed(0)).to(device)
        return contents(module.project(task, default_params(module.Params), theta, delta))

    assert_same_there(monkeypatch, projected)


@pytest.mark.parametrize("name", plugins_of("attacks"))
def test_an_attack_on_another_device_gives_the_same_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`mark` returns the same bytes on another device as on the CPU."""
    module, (_, what) = plugins.load("attacks", name), drawn(name, samples(), COLOUR)

    def marked() -> Any:
        random = torch.Generator().manual_seed(0)
        x, y = torch.randn(20, *COLOUR, generator=random), torch.randint(CLASSES, (20,), generator=random)
        return contents(module.mark(what, x.to(factories.PLACE), y.to(factories.PLACE), CLASSES))

    assert_same_there(monkeypatch, marked)
