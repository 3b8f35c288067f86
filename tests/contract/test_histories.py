"""A history: repeatable, recorded round after round, and it leaves alone what it is given."""

import pytest
import torch

from fu.pipeline.provenance.catalogue import declared
from tests.contract.names import plugins_of
from tests.factories import KINDS, make_task


@pytest.mark.parametrize("kind", plugins_of("histories"))
def test_recording_a_history_is_repeatable_and_leaves_the_model_unchanged(kind: str) -> None:
    """`record` is deterministic, returns finite tensors, and does not change the model."""
    task = make_task()
    theta = task.original_model.clone()
    one = KINDS[kind](task, {}, theta, 0)
    two = KINDS[kind](make_task(), {}, theta.clone(), 0)
    assert torch.equal(theta, task.original_model)
    assert one.keys() == two.keys() != set()
    assert all(torch.equal(value, two[name]) and torch.isfinite(value).all() for name, value in one.items())


@pytest.mark.parametrize("kind", plugins_of("histories"))
def test_a_second_round_is_added_to_a_history_and_leaves_the_first_unchanged(kind: str) -> None:
    """A second round is added under the same names and does not change the record of the first."""
    task = make_task()
    one = KINDS[kind](task, {}, task.original_model, 0)
    copies = {name: value.clone() for name, value in one.items()}
    two = KINDS[kind](task, one, task.original_model + 0.1, 1)
    assert all(torch.equal(value, copies[name]) for name, value in one.items())
    assert two.keys() == one.keys()
    assert any(not torch.equal(value, one[name]) for name, value in two.items())


@pytest.mark.parametrize("kind", plugins_of("histories"))
def test_recording_a_history_costs_the_clients_nothing_unless_it_says_so(kind: str) -> None:
    """`record` makes no client train or send anything, unless it declares `TRAINS = True`; then the work is counted."""
    task = make_task()
    KINDS[kind](task, {}, task.original_model, 0)
    costs = task.federation.cost
    assert (costs.client_rounds > 0) == declared("histories", kind).get("TRAINS", False)
    assert costs.client_rounds or set(costs.record().values()) == {0}
