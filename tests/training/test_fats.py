"""FATS: what it draws, how it averages, what it keeps; and unlearning that is exact, bit for bit."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.data.request import Request, in_a_row
from fu.errors import UserError
from fu.federation.kept import KeptModels
from fu.federation.local import Federation
from fu.federation.sampled import shape_of
from fu.federation.sampled import trained as trained_on
from fu.federation.sampling import History, Shape, begin
from fu.federation.task import Task
from fu.methods import fats as unlearning
from fu.training import fats
from tests.factories import CLASSES, make_data, make_federation, make_partition, make_task
from tests.federation.enumeration import Fixed
from tests.systems import dropout_task

PART = make_partition((9, 12, 9, 10, 8, 11, 9, 10), trigger=False)
SHAPE = Shape(clients_per_round=2, rounds=6, steps=4, batch_size=3)
DRAWN: dict[str, Any] = {"clients_per_round": 2, "with_replacement": True}
PLAIN = make_data(PART)
NONE = np.empty(0, np.int64)
LOCAL: dict[str, Any] = {"batch_size": 3, "local_epochs": None, "local_steps": 4}


class Locked(ClientData):
    """Clients' data of which some samples raise when they are touched."""

    locked: Collection[int] = ()

    def train(self, client: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return a client's samples unless one is locked."""
        touched = self.rows[client] if rows is None else self.rows[client][rows.numpy()]
        assert not np.isin(touched, list(self.locked)).any(), "data of a target were touched"
        return super().train(client, rows)


def task_of(request: Request | None = None, seed: int = 3, momentum: float = 0, **more: Any) -> Task:
    """Return a training's task; with a request, that of unlearning."""
    data = Locked(PLAIN.x, PLAIN.y, PART, CLASSES, "all", None, request)
    stream = "training" if request is None else "unlearning"
    federation = make_federation(data, stream=stream, seed=seed, **{"momentum": momentum, **LOCAL})
    task = make_task(federation, rounds=6 * (len(request.waves) if request else 1), trained=False)
    return replace(task, **DRAWN, **more)


def federation_of(data: ClientData, stream: str) -> Federation:
    return make_federation(data, stream=stream, **LOCAL)


def keeping(folder: Path, every: int | None) -> KeptModels:
    rounds = range(0, 6, every) if every else [0]
    return KeptModels.create(folder / "kept.safetensors", rounds, 6, task_of().federation.layout.size)


def trained(folder: Path, every: int | None = 1, seed: int = 3) -> tuple[Tensor, KeptModels]:
    """Return the trained model and the models that the training kept."""
    kept = keeping(folder, every)
    task = task_of(seed=seed, kept=kept)
    state = fats.start(task, fats.Params())
    for round in range(6):
        state = fats.step(task, fats.Params(), state, round)
    return state.theta, kept


def unlearned(
    original: Tensor, kept: KeptModels, request: Request, full: bool = False, seed: int = 3
) -> tuple[Tensor, Task]:
    """Return the unlearned model, request after request."""
    p = unlearning.Params(full=full)
    task = task_of(request, seed, original=original, kept=kept)
    task.federation.data.locked = {*request.samples, *(row for k in request.clients for row in PART.train[k])}  # type: ignore[attr-defined]
    state = None
    for number in range(1, task.requests + 1):
        now = task.after(number)
        state = unlearning.again(now, p, state, 0) if state else unlearning.start(now, p)
        while not unlearning.done(state):
            state = unlearning.step(now, p, state, 0)
    assert state is not None
    return state.theta, task


def from_the_start(request: Request, full: bool = False, seed: int = 3) -> tuple[Tensor, History]:
    """Return the model that training gives on the history after the request, and that history."""
    task = task_of(seed=seed)
    history = fats.history(task)
    for wave in request.waves:
        history = history.without(wave.clients.tolist(), PART.holders(wave.samples), full=full)
    theta = fats.start(task, fats.Params()).theta
    for round in range(6):
        theta = trained_on(task, history, theta, round)
    return theta, history


def sample_of(step: int) -> int:
    """Return a sample that is first used in a step of a round after the first."""
    history = fats.history(task_of())
    for client, rows in enumerate(PART.train):
        for row in rows.tolist():
            time = history.first_step(client, row)
            if time is not None and time >= 4 and time % 4 == step:
                return int(row)
    raise AssertionError


def firsts() -> dict[int, int | None]:
    """Return every client's first round, if it takes part."""
    history = fats.history(task_of())
    return {client: history.first_round(client) for client in range(8)}


def clients_by_time() -> list[int]:
    """Return those who take part, by their first round."""
    first = firsts()
    return sorted((k for k in first if first[k] is not None), key=lambda client: (first[client], client))


def requests() -> dict[str, Request]:
    late, early = clients_by_time()[-1], clients_by_time()[0]
    stream = in_a_row([np.array([late]), NONE, np.array([early])], [NONE, np.array([sample_of(2)]), NONE])
    after = fats.history(task_of()).without([early])
    rounds = {client: after.first_round(client) for client in after.population}
    last = max((client for client in rounds if rounds[client] is not None), key=lambda client: (rounds[client], client))
    several = Request(NONE, np.sort([sample_of(1), sample_of(3)]))
    return {
        "a client": Request(np.array([late])),
        "a sample at a round's start": Request(NONE, np.array([sample_of(0)])),
        "a sample in mid-round": Request(NONE, np.array([sample_of(2)])),
        "two samples": several,
        "a stream of three": stream,
        "a stream from early to late": in_a_row([np.array([early]), np.array([last])], [NONE, NONE]),
    }


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("every", [1, 3, None])
@pytest.mark.parametrize("what", list(requests()))
def test_the_unlearned_model_is_that_of_training_on_the_unlearned_history(
    tmp_path: Path, what: str, every: int | None, momentum: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with momentum, which is zero at the start of a round, where everything that is computed again begins."""
    monkeypatch.setitem(LOCAL, "momentum", momentum)
    monkeypatch.setitem(LOCAL, "weight_decay", momentum / 100)
    request = requests()[what]
    original, kept = trained(tmp_path, every)
    if len(request.waves) > 1:
        kept = KeptModels.copied(kept, tmp_path / "copy", "")
    theta, _ = unlearned(original, kept, request)
    expected, history = from_the_start(request)
    assert history.restart is not None
    assert not torch.equal(theta, original)
    assert torch.equal(theta, expected)


@pytest.mark.parametrize("what", ["a client", "a sample in mid-round"])
def test_the_full_rerun_needs_the_first_model_alone(tmp_path: Path, what: str) -> None:
    original, kept = trained(tmp_path, None)
    theta, task = unlearned(original, kept, requests()[what], full=True)
    expected, history = from_the_start(requests()[what], full=True)
    assert torch.equal(theta, expected)
    assert history.clients(0) == fats.history(task_of()).clients(0)
    assert (task.federation.cost.time_steps, task.federation.cost.replayed) == (24, 0)


def test_who_never_took_part_leaves_every_bit_as_it_is_and_costs_nothing(tmp_path: Path) -> None:
    original, kept = trained(tmp_path)
    idle = next(client for client in range(8) if client not in clients_by_time())
    theta, task = unlearned(original, kept, Request(np.array([idle])))
    assert torch.equal(theta, original)
    assert not any(task.federation.cost.record().values())


@pytest.mark.parametrize(("every", "replayed"), [(1, 2), (3, None), (None, None)])
def test_steps_computed_again_and_steps_that_only_rebuild_are_counted_apart(
    tmp_path: Path, every: int | None, replayed: int | None
) -> None:
    row = sample_of(2)
    original, kept = trained(tmp_path, every)
    _, task = unlearned(original, kept, Request(NONE, np.array([row])))
    history = from_the_start(Request(NONE, np.array([row])))[1]
    assert history.restart is not None
    time, cost = history.restart.time, task.federation.cost
    before = time - 4 * kept.nearest(time // 4) if replayed is None else replayed
    assert (cost.time_steps, cost.replayed) == (24 - time, before)
    assert cost.steps == sum(
        len(set(history.clients(round))) * (4 if round > time // 4 else 2) for round in range(time // 4, 6)
    )
    assert cost.samples == 3 * cost.steps
    assert cost.client_rounds == sum(len(set(history.clients(round))) for round in range(time // 4, 6))
    assert cost.bytes_up == cost.bytes_down == cost.client_rounds * task.federation.layout.size * 4


@pytest.mark.parametrize(("distinct", "weights"), [(False, (1, 2)), (True, (3, 4))], ids=["FATS", "as published"])
def test_a_client_drawn_twice_trains_once_and_counts_twice_or_as_published_once_by_its_batches(
    distinct: bool, weights: tuple[int, int]
) -> None:
    """Clients 2 and 5 have 9 and 11 samples: 3 and 4 batches of 3."""
    task = replace(task_of(), clients_per_round=3)
    history = begin(dict(enumerate(PART.train)), Shape(3, 6, 4, 3), lambda *name: Fixed(5, 2, 5))
    theta = task.first_model()
    moved = trained_on(task, history, theta, 0, distinct=distinct) - theta
    assert (task.federation.cost.client_rounds, task.federation.cost.steps) == (2, 8)
    places = {client: task.federation.data.places(client, PART.train[client][:3]) for client in (2, 5)}
    alone = {
        client: task.federation.local_updates(theta, [client], 0, rows=lambda k, step: places[k]).delta[0]
        for client in (2, 5)
    }
    torch.testing.assert_close(moved, (weights[0] * alone[2] + weights[1] * alone[5]) / sum(weights))


def test_what_is_needed_is_said_in_one_sentence_and_dropout_is_refused() -> None:
    """Its draws are none of the history's: steps that are replayed would not be those that were."""
    for lacking in ({"clients_per_round": None}, {"with_replacement": False}):
        with pytest.raises(UserError, match=r"clients_per_round clients, with_replacement: true, for local_steps"):
            fats.history(replace(task_of(), **lacking))  # type: ignore[arg-type]
    task = replace(dropout_task(), **DRAWN)
    task.federation.training = task.federation.training.model_copy(update={"local_epochs": None, "local_steps": 4})
    with pytest.raises(UserError, match=r"do not include dropout; use a model without dropout\."):
        shape_of(task, 6)


def test_retraining_draws_otherwise_than_training() -> None:
    """As it must where it runs FATS itself, on the clients that stay."""
    federation = make_federation(PLAIN, batch_size=3, local_epochs=None, local_steps=4, stream="unlearning")
    one, other = fats.history(task_of()), fats.history(replace(task_of(), federation=federation))
    assert one.population.keys() == other.population.keys()
    assert [one.clients(round) for round in range(6)] != [other.clients(round) for round in range(6)]


def test_kept_models_are_read_as_they_were_written(tmp_path: Path) -> None:
    original, kept = trained(tmp_path, 3)
    assert (kept.rounds, kept.length, [kept.nearest(round) for round in (0, 2, 3, 5)]) == ([0, 3], 6, [0, 0, 3, 3])
    again = KeptModels(kept.path)
    task = task_of()
    theta = task.first_model()
    assert torch.equal(again.read(0), theta)
    for round in range(3):
        theta = trained_on(task, fats.history(task), theta, round)
    assert torch.equal(again.read(3), theta)
    before = kept.path.read_bytes()
    copy = KeptModels.copied(again, tmp_path / "copy", "mine")
    assert (copy.key, copy.rounds, copy.writable, again.writable) == ("mine", [0, 3], True, False)
    copy.write(3, original)
    assert torch.equal(KeptModels(copy.path).read(3), original)
    assert torch.equal(KeptModels(copy.path).read(0), again.read(0))
    assert kept.path.read_bytes() == before
    kept.path.write_bytes(before[:200])
    with pytest.raises(UserError, match="is damaged"):
        KeptModels(kept.path)


def test_where_nobody_asks_the_attacked_clients_are_forgotten(tmp_path: Path) -> None:
    part = make_partition((9, 12, 9, 10, 8, 11, 9, 10), clients_by_time()[2:4])
    found = []
    for asked in (None, part.attacked):
        kept = keeping(tmp_path, 2)
        task = replace(task_of(kept=kept), federation=federation_of(make_data(part, poison="share"), "training"))
        state = fats.start(task, fats.Params())
        for round in range(6):
            state = fats.step(task, fats.Params(), state, round)
        data = make_data(part, asked=None if asked is None else asked.tolist())
        federation = federation_of(data, "unlearning")
        gone = make_task(federation, rounds=6, original=state.theta)
        gone = replace(gone, kept=kept, **DRAWN)
        left = unlearning.start(gone, unlearning.Params())
        while not unlearning.done(left):
            left = unlearning.step(gone, unlearning.Params(), left, 0)
        found.append(left.theta)
        assert gone.federation.cost.forgotten_rounds == 0 < task.federation.cost.forgotten_rounds
        assert not torch.equal(left.theta, state.theta)
    assert torch.equal(*found)
