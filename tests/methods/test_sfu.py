"""SFU: the subspace of the retained data, and ascent beside it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fu.errors import UserError
from fu.federation.task import Task
from fu.methods import sfu
from tests.factories import COLOUR, GREY, make_federation, make_task, params_of
from tests.systems import forgetting_two, model_task


def layers_of(model: nn.Module) -> dict[str, nn.Module]:
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear | nn.Conv2d)}


def observed(task: Task, theta: Tensor, x: Tensor, what: str) -> dict[str, Tensor]:
    """Return every layer's inputs or outputs at theta for images x."""
    found: dict[str, Tensor] = {}

    def look(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        return lambda _, inputs, output: found.__setitem__(name, (inputs[0] if what == "inputs" else output).clone())

    handles = [layer.register_forward_hook(look(name)) for name, layer in layers_of(task.federation.model).items()]
    task.federation.logits(theta, x)
    for handle in handles:
        handle.remove()
    return found


def started(task: Task, energy: float) -> tuple[sfu.Projected, Tensor]:
    """Return SFU's first state and the images that it looked at."""
    batches: list[Tensor] = []
    handle = task.federation.model.register_forward_pre_hook(lambda _, inputs: batches.append(inputs[0].clone()))
    state = sfu.start(task, params_of(sfu, energy=energy))
    handle.remove()
    assert len(batches) == len(task.retained)
    for batch, client in zip(batches, task.retained, strict=True):
        own = task.federation.data.train(client)[0]
        assert len(batch) == min(len(own), task.federation.training.batch_size)
        assert all((own == image).flatten(1).all(1).any() for image in batch)
    return state, torch.cat(batches)


def flat_images(x: Tensor) -> Tensor:
    """Return images [n, h, w, c] of one colour each: their patches span so little that convolutions can move."""
    return x[:, :1, :1].expand_as(x).clone()


SYSTEMS: dict[str, tuple[Callable[[], Task], set[str]]] = {
    "mlp": (lambda: make_task(make_federation(batch_size=3)), {"1", "3", "5"}),
    "lenet5": (lambda: model_task("lenet5", GREY), {"7", "9", "11"}),
    "lenet5 on flat images": (lambda: model_task("lenet5", GREY, flat_images), {"7", "9", "11"}),
    "cnn": (lambda: model_task("cnn", COLOUR, channels=8), {"7", "9", "11"}),
    "cnn on flat images": (
        lambda: model_task("cnn", COLOUR, flat_images, channels=8),
        {"0", "3", "7", "9", "11"},
    ),
}


@pytest.mark.parametrize("kind", list(SYSTEMS))
def test_sfu_with_all_energy_leaves_every_layers_output_on_the_sampled_batches(kind: str) -> None:
    build, movable = SYSTEMS[kind]
    task = build()
    state, x = started(task, 1.0)
    before = observed(task, task.original_model, x, "outputs")
    for round in range(2):
        state = sfu.step(task, params_of(sfu, energy=1.0), state, round)
    after = observed(task, state.theta, x, "outputs")
    for name, output in before.items():
        torch.testing.assert_close(after[name], output, rtol=1e-4, atol=1e-5 * output.abs().max().item())
    moved = task.federation.layout.named(state.theta - task.original_model)
    assert {name.removesuffix(".weight") for name, piece in moved.items() if piece.norm() > 1e-4} >= movable
    ascent = task.federation.local_updates(task.original_model, task.forgotten, 0, "negative_cross_entropy").delta[0]
    unguarded = observed(task, task.original_model + ascent, x, "outputs")
    last = list(before)[-1]
    assert (unguarded[last] - before[last]).abs().max() > 100 * (after[last] - before[last]).abs().max()


def test_sfu_takes_from_the_mean_ascent_exactly_the_part_in_its_subspace_and_moves_no_bias() -> None:
    task, fresh = make_task(forgetting_two()), forgetting_two()
    theta, (state, x) = task.original_model, started(task, 0.9)
    ascent = fresh.layout.named(fresh.local_updates(theta, [1, 3], 0, "negative_cross_entropy").delta.mean(0))
    moved = fresh.layout.named(sfu.step(task, params_of(sfu, energy=0.9), state, 0).theta - theta)
    for name, inputs in observed(task, theta, x, "inputs").items():
        _, values, vh = np.linalg.svd(inputs.double().numpy())
        share = np.cumsum(values**2) / np.sum(values**2)
        basis = vh[: int(np.searchsorted(share, 0.9)) + 1]
        g = ascent[f"{name}.weight"].double().numpy()
        np.testing.assert_allclose(moved[f"{name}.weight"], g - g @ basis.T @ basis, rtol=0, atol=1e-6)
        assert ascent[f"{name}.bias"].any()
        assert not moved[f"{name}.bias"].any()


@pytest.mark.parametrize("kind", ["mlp", "cnn on flat images"])
def test_the_basis_of_sfu_is_orthonormal_and_just_large_enough_for_its_energy(kind: str) -> None:
    task = SYSTEMS[kind][0]()
    ranks: list[list[int]] = []
    for energy in (0.3, 0.7, 0.95, 1.0):
        state, x = started(task, energy)
        inputs = observed(task, task.original_model, x, "inputs")
        assert state.bases.keys() == {f"{name}.weight" for name in inputs}
        ranks.append([])
        for name, layer in layers_of(task.federation.model).items():
            basis = state.bases[f"{name}.weight"]
            rank = basis.shape[1]
            torch.testing.assert_close(basis.T @ basis, torch.eye(rank), rtol=0, atol=1e-5)
            rows = inputs[name]
            if isinstance(layer, nn.Conv2d):  # patches of 5 x 5, cut out in another way
                rows = rows.unfold(2, 5, 1).unfold(3, 5, 1).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(0, 2)
            rows = rows.double()
            kept = (rows @ basis.double()).square().sum(0) / rows.square().sum()
            if energy < 1:
                assert kept.sum() >= energy - 1e-6
                assert kept[:-1].sum() < energy
            else:
                assert rank == int(torch.linalg.matrix_rank(rows, rtol=1e-5))
                assert kept.sum().item() == pytest.approx(1, abs=1e-6)
            ranks[-1].append(rank)
    table = np.array(ranks)
    assert (np.diff(table, axis=0) >= 0).all()
    assert (table[-1] > table[0]).all()


@pytest.mark.parametrize("changes", [{"padding": "same"}, {"groups": 2}, {"padding": 1, "padding_mode": "circular"}])
def test_sfu_refuses_convolutions_whose_patches_it_does_not_cut(changes: dict[str, Any]) -> None:
    model = nn.Sequential(nn.Conv2d(2, 2, 3, padding=1), nn.Conv2d(2, 2, 3, **changes))
    with pytest.raises(UserError, match=r"^sfu: 1 is a convolution with groups, .* of zeros\.$"):
        sfu.check(model, params_of(sfu))
    sfu.check(model[:1], params_of(sfu))
