"""What trainings declare for the plan: how often clients train, and whether the server's data are needed."""

from dataclasses import replace

import pytest
import torch

from fu.federation.task import Task, theta_of
from fu.pipeline import catalogue
from fu.pipeline.stages.compute import training_of
from fu.plugins import Choice
from tests.factories import make_data, make_federation, make_partition, make_task

PART = make_partition((5, 5), forgotten=(), trigger=False, server=5)
CHOICES = [
    Choice(name="fedavg"),
    Choice(name="server_sgd"),
    Choice(name="safari", params={"q": 0.2}),
    Choice(name="safari", params={"q": 0.8}),
]
ROUNDS = 60


def task_of() -> Task:
    return replace(make_task(make_federation(make_data(PART), "logistic"), "logistic", trained=False), rounds=ROUNDS)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_clients_train_in_the_declared_share_of_rounds(choice: Choice) -> None:
    task, training = task_of(), training_of(choice)
    state = training.start(task)
    for round in range(ROUNDS):
        state = training.step(task, state, round)
    declared = catalogue.declared("training", choice.name).get("ESTIMATE", {"share": 1})["share"]
    share = choice.params[declared] if isinstance(declared, str) else declared
    assert task.federation.cost.client_rounds / (2 * ROUNDS) == pytest.approx(share, abs=0.15 * (0 < share < 1))


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_a_training_reads_the_servers_data_where_it_says_so(choice: Choice) -> None:
    task, training = task_of(), training_of(choice)
    task.federation.data.x[torch.from_numpy(PART.server)] = torch.nan
    state = training.start(task)
    for round in range(ROUNDS):
        state = training.step(task, state, round)
    assert bool(theta_of(state).isnan().any()) == catalogue.declared("training", choice.name).get("SERVER", False)


def test_every_training_is_here() -> None:
    drawn = {name for name in catalogue.available("training") if "KEEPS" in catalogue.declared("training", name)}
    assert {choice.name for choice in CHOICES} == {*catalogue.available("training")} - drawn
