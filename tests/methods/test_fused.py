"""FUSED: which layers get an adapter, and that nothing else moves."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fu.methods import fused
from tests.factories import make_federation, make_task, params_of
from tests.systems import weighted_mean


def test_layers_are_ranked_by_the_mean_absolute_change_of_their_weights() -> None:
    """Biases are no layers; a large layer does not win by its size."""
    layout = make_federation().layout
    names = [name for name, shape in layout.shapes.items() if len(shape) == 2]
    delta = torch.zeros(2, layout.size)
    views = layout.views(delta)
    for name, (one, two) in zip(names, [(1.0, -2.0), (3.0, -3.0), (-1.0, -1.0)], strict=True):
        views[name][0], views[name][1] = one, two  # mean |change|: 1.5, 3, 1
    for name in layout.shapes.keys() - {*names}:
        views[name][:] = 9.0
    assert fused.sensitive(layout, delta) == [names[1], names[0], names[2]]


@pytest.mark.parametrize(("layers", "density"), [(1, 1.0), (2, 0.3), (3, 0.3)])
def test_only_a_share_of_the_most_sensitive_layers_may_change(layers: int, density: float) -> None:
    task, p = make_task(), params_of(fused, layers=layers, density=density)
    state = fused.start(task, p)
    assert torch.equal(state.theta, task.original_model)
    layout, again = task.federation.layout, make_federation()
    ranked = fused.sensitive(layout, again.local_updates(state.theta, [0, 2], 0).delta)
    for name, view in layout.views(state.mask).items():
        if name in ranked[:layers]:
            spread = (density * (1 - density) / view.numel()) ** 0.5  # of a share of independent draws
            assert view.mean().item() == pytest.approx(density, abs=3 * spread)
        else:
            assert not view.any()
    assert torch.equal(fused.start(make_task(), p).mask, state.mask)
    before = task.federation.cost.time_steps
    fused.step(task, p, state, 0)
    numbers = layout.size + int(state.mask.sum())  # the model, then what an adapter may change
    assert task.federation.cost.bytes_up == task.federation.cost.bytes_down == 2 * 4 * numbers
    assert task.federation.cost.time_steps == 2 * before  # first the layers are found, then the adapters trained
    assert task.federation.cost.forgotten_rounds == 0


def held(mask: Tensor, original: Tensor) -> Callable[[Tensor], None]:
    def hold(weights: Tensor) -> None:
        weights[~mask] = original[~mask]

    return hold


def test_the_retained_clients_train_the_adapters_and_nothing_else_moves() -> None:
    task, p = make_task(make_federation(lr=0.5)), params_of(fused, density=0.5)
    state = fused.start(task, p)
    mask, original = state.mask.bool(), task.original_model
    for round in range(2):
        again = make_federation(task.federation.data, lr=0.5)
        each = [
            again.local_updates(state.theta, [client], round, project=held(mask, original)).delta[0]
            for client in (0, 2)
        ]
        expected = state.theta + weighted_mean(torch.stack(each), [7, 9])
        state = fused.step(task, p, state, round)
        torch.testing.assert_close(state.theta, expected, rtol=0, atol=1e-6)
        assert torch.equal(state.theta[~mask], original[~mask])
        assert (state.theta[mask] != original[mask]).float().mean() > 0.5
    assert task.federation.cost.forgotten_rounds == 0
