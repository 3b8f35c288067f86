"""What trainings declare: how often clients train, whether the server's data are needed, which rows are drawn."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.errors import UserError
from fu.federation.plugged import training_of
from fu.pipeline.provenance import catalogue
from fu.plugins import Choice
from fu.training import fedavg
from tests.factories import make_data, make_federation, make_partition, make_task

PART = make_partition((5, 5), forgotten=(), trigger=False, server=5)
CHOICES = [
    Choice(name="fedavg"),
    Choice(name="server_sgd"),
    Choice(name="fedprox"),
    Choice(name="safari", params={"q": 0.2}),
    Choice(name="safari", params={"q": 0.8}),
]
ROUNDS = 60


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_clients_train_in_the_declared_share_of_rounds_and_the_servers_data_are_read_where_declared(
    choice: Choice,
) -> None:
    task = make_task(make_federation(make_data(PART), "logistic"), "logistic", trained=False)
    training = training_of(choice)
    task.federation.data.x[torch.from_numpy(PART.server)] = torch.nan
    state = training.start(task)
    for round in range(ROUNDS):
        state = training.step(task, state, round)
    declared = catalogue.declared("training", choice.name)
    share = declared.get("ESTIMATE", {}).get("share", 1)
    share = choice.params[share] if isinstance(share, str) else share
    assert task.federation.cost.client_rounds / (2 * ROUNDS) == pytest.approx(share, abs=0.15 * (0 < share < 1))
    assert bool(state.theta.isnan().any()) == declared.get("SERVER", False)


EPOCH, STEPS = {"local_epochs": 1}, {"local_epochs": None, "local_steps": 2}


@pytest.mark.parametrize(
    ("name", "number", "local"),
    [("fedavg", None, EPOCH), ("fedprox", 2, EPOCH), ("fedavg", 2, EPOCH), ("fedavg", 2, STEPS), ("fats", 2, STEPS)],
)
def test_the_rows_that_a_training_says_it_trains_on_are_those_that_pass_through_it(
    name: str, number: int | None, local: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve clients of nine rows, of whom two may be drawn for a round; two steps take four rows."""
    data = make_data(make_partition((9,) * 12, forgotten=(), trigger=False, absent=(3,)))
    federation = make_federation(data, "logistic", batch_size=2, stream="training", **local)
    task = replace(
        make_task(federation, "logistic", trained=False), clients_per_round=number, with_replacement=name == "fats"
    )
    seen, taken = set[int](), ClientData.train

    def spied(held: ClientData, client: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        assert rows is not None
        seen.update(held.rows[client][rows.numpy()].tolist())
        return taken(held, client, rows)

    monkeypatch.setattr(ClientData, "train", spied)
    training = training_of(Choice(name=name))
    state = training.start(task)
    for round in range(task.rounds):
        state = training.step(task, state, round)
    assert training.trained_on is not None
    assert training.trained_on(replace(task, memory={})).tolist() == sorted(seen)
    everything = {row for client in task.clients for row in data.rows[client].tolist()}
    assert (seen == everything) == (number is None)


@pytest.mark.parametrize(
    ("rows", "got"),
    [
        (np.array([True, False]), "bool [2]"),  # a mask would be taken for rows 0 and 1
        (np.zeros((2, 1), int), "int64 [2, 1]"),
        ([3, 4], "list"),
    ],
)
def test_rows_that_are_no_numbers_of_rows_are_refused(rows: object, got: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fedavg, "trained_on", lambda task, p: rows)
    trained_on = training_of(Choice(name="fedavg")).trained_on
    assert trained_on is not None
    with pytest.raises(
        UserError, match=re.escape(f"trained_on must return row numbers (an integer array [n]), got {got}.")
    ):
        trained_on(make_task(make_federation(make_data(make_partition((4, 4))))))


def test_every_training_is_here() -> None:
    apart = {"KEEPS", "FILE"}
    drawn = {name for name in catalogue.available("training") if apart & catalogue.declared("training", name).keys()}
    assert {choice.name for choice in CHOICES} == {*catalogue.available("training")} - drawn
