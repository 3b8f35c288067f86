"""A method and a training: repeatable, resumable, finite, and they leave alone what they are given."""

import copy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fu import plugins
from fu.data.clients import ClientData
from fu.federation import local
from fu.federation.checkpoint import flat
from fu.federation.local import Cost, Federation
from fu.federation.task import Task
from fu.pipeline.provenance.catalogue import declared, needs
from tests.contract.names import pairs_of, plugins_of, runs
from tests.contract.runs import assert_equal_outcomes, assert_equal_states, driven, spoiled, task_for, two_rounds
from tests.contract.test_documentation import documentation
from tests.factories import KINDS, default_params
from tests.federation.runs import KilledError

WITH_STEPS = pairs_of("methods", "training", only=runs)
IDLE = plugins_of("methods", lambda name: declared("methods", name).get("CONTROL") is True)
RETRAINING = plugins_of(
    "methods", lambda name: {"RETRAINS"} == {"RETRAINS", "LEFT", "CONTROL"} & declared("methods", name).keys()
)
RESTARTED = plugins_of("methods", lambda name: declared("methods", name).get("REQUESTS") is True)
OF_MEANS = pairs_of(
    "methods", "training", only=lambda kind, name: declared(kind, name).get("ESTIMATE", {}).get("mean", False)
)
WITH_ROUNDS = pairs_of(
    "methods", "training", only=lambda kind, name: runs(kind, name) and declared(kind, name).get("CONTROL") is not True
)


@pytest.mark.parametrize("name", plugins_of("methods"))
def test_a_method_needs_histories_that_the_training_can_record(name: str) -> None:
    """`needs` names existing histories."""
    assert plugins.load("methods", name).needs == needs(name)
    assert needs(name) <= set(KINDS)


@pytest.mark.parametrize(("kind", "name"), WITH_STEPS)
def test_a_start_and_two_steps_are_finite_and_move_unless_it_is_a_control(kind: str, name: str) -> None:
    """`start` and `step` return a finite float32 model [d] without gradient. It changes unless this is a control
    (`CONTROL = True`).
    """
    task, control = task_for(kind, name), kind == "methods" and declared(kind, name).get("CONTROL") is True
    for state, following in pairwise(two_rounds(kind, name, task)):
        theta = following.theta
        assert theta.shape == (task.federation.layout.size,)
        assert theta.dtype == torch.float32
        assert not theta.requires_grad
        assert torch.isfinite(theta).all()
        assert torch.equal(theta, state.theta) is control
        assert all(isinstance(value, Tensor | float | int) for value in flat(vars(following)).values())
        assert flat(vars(following)).keys() == flat(vars(state)).keys()


@pytest.mark.parametrize(("kind", "name"), WITH_STEPS)
def test_what_clients_do_is_counted(kind: str, name: str) -> None:
    """Clients' work is counted (`local_updates` does so), unless the docstring says that the method 'communicates
    nothing' or that 'No client takes part'.
    """
    task = task_for(kind, name)
    two_rounds(kind, name, task)
    nobody = ("communicates nothing", "No client takes part")  # what a plug-in says of itself
    trains = not any(words in documentation(kind, name) for words in nobody)
    assert (task.federation.cost.client_rounds > 0) is trains
    assert (task.federation.cost.bytes_up > 0) is trains


@pytest.mark.parametrize(("kind", "name"), OF_MEANS)
def test_where_a_mean_is_enough_no_more_updates_are_held(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If `ESTIMATE` has `mean`, only the mean of a round's updates is requested."""
    task, train = task_for(kind, name), Federation._train_each
    monkeypatch.setattr(local, "TOGETHER", 1)
    together: list[int] = []

    def noted(self: Federation, theta: Tensor, clients: list[int], *rest: Any) -> tuple[Tensor, Tensor]:
        together.append(len(clients))
        return train(self, theta, clients, *rest)

    monkeypatch.setattr(Federation, "_train_each", noted)
    two_rounds(kind, name, task)
    assert set(together) <= {1}


@pytest.mark.parametrize("name", IDLE)
def test_a_control_is_done_from_the_start_and_costs_nothing(name: str, tmp_path: Path) -> None:
    """A control (`CONTROL = True`) is done from the start, costs nothing, and needs no history."""
    module, (task, outcome) = plugins.load("methods", name), driven("methods", name, tmp_path)
    start = module.start(task_for("methods", name), default_params(module.Params))
    assert module.done(start)
    assert torch.equal(outcome.state.theta, start.theta)
    assert task.federation.cost == Cost()
    assert needs(name) == set()
    assert module.ESTIMATE == {"forgotten": 0, "retained": 0}


@pytest.mark.parametrize("name", RETRAINING)
def test_a_retraining_reads_no_sample_of_the_forgotten_clients(name: str) -> None:
    """A method with `RETRAINS`, and without `LEFT` and `CONTROL`, reads no sample of a forgotten client."""
    task = task_for("methods", name)
    data = task.federation.data
    x = data.x.clone()
    x[np.concatenate([data.rows[client] for client in task.forgotten])] = torch.nan
    broken = ClientData(x, data.y, data.partition, data.classes, data.poison, data.mark, data.request)
    task = replace(task, federation=task.federation.holding(broken))
    assert torch.isfinite(two_rounds("methods", name, task)[-1].theta).all()


@pytest.mark.parametrize("name", RESTARTED)
def test_a_method_that_restarts_does_not_depend_on_the_number_of_rounds(name: str) -> None:
    """With default hyper-parameters the steps of a method with `REQUESTS` do not depend on the number of rounds."""
    task = task_for("methods", name)
    few, many = (two_rounds("methods", name, replace(task, rounds=rounds)) for rounds in (2, 4))
    for one, other in zip(few, many, strict=True):
        assert_equal_states(one, other)


@pytest.mark.parametrize(("kind", "name"), WITH_STEPS)
def test_a_run_reads_no_test_sample(kind: str, name: str, tmp_path: Path) -> None:
    """With default hyper-parameters a run reads no test or held-out sample: it gives the same bits when their pixels
    are NaN (text: other bytes) and their labels others.
    """
    one, two = driven(kind, name, tmp_path / "one")[1], driven(kind, name, tmp_path / "two", change=spoiled)[1]
    assert_equal_outcomes(one, two)


@pytest.mark.parametrize(("kind", "name"), WITH_STEPS)
def test_a_run_is_repeatable_bit_for_bit(kind: str, name: str, tmp_path: Path) -> None:
    """Two runs give the same bits, regardless of the state of Python's and torch's global generators."""
    torch.manual_seed(0)
    one_task, one = driven(kind, name, tmp_path / "one")
    torch.manual_seed(1)  # the global generators are nobody's
    two_task, two = driven(kind, name, tmp_path / "two")
    assert_equal_outcomes(one, two)
    assert one_task.federation.cost == two_task.federation.cost


def inputs_of(task: Task) -> list[Tensor]:
    data = task.federation.data
    found = [data.x, data.y, *(part for client in task.clients for part in data.train(client))]
    found += [] if task.original is None else [task.original]
    return [*found, *(value for record in task.histories.values() for value in record.values())]


@pytest.mark.parametrize(("kind", "name"), WITH_STEPS)
def test_a_run_leaves_its_inputs_unchanged(kind: str, name: str) -> None:
    """`step` does not modify the data, the original model, the histories or the state that it receives."""
    module, task = plugins.load(kind, name), task_for(kind, name)
    p = default_params(module.Params)
    copies = [value.clone() for value in inputs_of(task)]
    state = module.start(task, p)
    for round in range(2):
        given = copy.deepcopy(state)
        following = module.step(task, p, state, round)
        assert_equal_states(state, given)
        state = following
    assert all(torch.equal(now, before) for now, before in zip(inputs_of(task), copies, strict=True))


@pytest.mark.parametrize("killed_after", [1, 2])
@pytest.mark.parametrize(("kind", "name"), WITH_ROUNDS)
def test_a_killed_run_resumes_to_the_same_bytes(kind: str, name: str, killed_after: int, tmp_path: Path) -> None:
    """A killed run resumes from its checkpoint to the same bytes and costs: `State` holds all that a round needs."""
    whole_task, whole = driven(kind, name, tmp_path / "whole")
    with pytest.raises(KilledError):
        driven(kind, name, tmp_path, killed_after)
    assert (tmp_path / "job.checkpoint").exists()
    task, resumed = driven(kind, name, tmp_path)
    assert_equal_outcomes(resumed, whole)
    assert resumed.diverged is whole.diverged is None
    assert task.federation.cost == whole_task.federation.cost
