"""A projection: repeatable, and it leaves alone what it is given."""

import pytest
import torch

from fu import plugins
from tests.contract.names import plugins_of
from tests.factories import default_params, make_task


@pytest.mark.parametrize("name", plugins_of("projections"))
def test_a_projection_returns_finite_updates_and_leaves_its_inputs_unchanged(name: str) -> None:
    """`project` is deterministic, returns changed, finite updates [m, d], and does not modify its arguments."""
    module, task = plugins.load("projections", name), make_task()
    p = default_params(module.Params)
    theta = task.original_model + 0.1
    delta = torch.randn(6, len(theta), generator=torch.Generator().manual_seed(0))
    copies = [value.clone() for value in (theta, delta, task.original_model)]
    found = module.project(task, p, theta, delta)
    assert found.shape == delta.shape
    assert found.dtype == delta.dtype
    assert torch.isfinite(found).all()
    assert not torch.equal(found, delta)
    assert torch.equal(found, module.project(task, p, theta, delta))
    assert all(torch.equal(*pair) for pair in zip((theta, delta, task.original_model), copies, strict=True))
