"""FATS through its stages: kept models are the history file, requests come in a row, and a killed job resumes."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.data.request import Request, in_a_row
from fu.federation.checkpoint import Checkpoint
from fu.federation.kept import KeptModels
from fu.federation.local import Federation, LocalTraining
from fu.federation.sampled import trained
from fu.federation.sampling import History
from fu.federation.task import Task
from fu.methods import fats as unlearning
from fu.methods import retrain
from fu.pipeline.stages import train, unlearn
from fu.pipeline.stages.common import Options
from fu.plugins import Choice
from fu.training import fats
from tests.factories import make_partition
from tests.federation.runs import KilledError
from tests.pipeline.stages.scene import BUILD, LOCAL, OPTIONS, PHASE, SEED, Scene, make_data, make_scene

PART = make_partition((7, 12, 9), trigger=False, server=4, held_out=2)
ROUNDS = 5
FATS = Choice(name="fats", params={"keep_every": 2})
SPEC: dict[str, Any] = {**PHASE, "attack": None, "traced": ("accuracy",), "rounds": ROUNDS, "evaluate_every": 1}
SPEC |= {"local": {**LOCAL, "momentum": 0.0, "local_epochs": None, "local_steps": 3, "batch_size": 2}}
SPEC |= {"clients_per_round": 1, "with_replacement": True}
EVERY_ROUND = replace(OPTIONS, checkpoint_seconds=0.0)
REQUESTS = 3


def history() -> History:
    return fats.history(task_of(None))


def task_of(request: Request | None) -> Task:
    """Return the task of training, or of unlearning the request."""
    data = make_data("share", PART, request)
    stream = "training" if request is None else "unlearning"
    federation = Federation(BUILD(), data, LocalTraining(**SPEC["local"]), stream, SEED)
    drawn = {"clients_per_round": 1, "with_replacement": True}
    return Task(federation, BUILD, data.forgotten, data.retained, ROUNDS, SEED, **drawn)  # type: ignore[arg-type]


def first_uses(found: History) -> list[tuple[int, int]]:
    """Return, in order, each sample's first use: time and sample."""
    times = {(time, row) for k in range(3) for row in PART.train[k].tolist() if (time := found.first_step(k, row))}
    return sorted(times)


def stream() -> Request:
    """Two requests in a row: a client that takes part early, then a sample that is first used late in what is left."""
    before, none = history(), np.empty(0, np.int64)
    client = before.clients(1)[0]
    late = first_uses(before.without([client]))
    samples = [row for time, row in late if time > 6 and row not in PART.train[client]]
    return in_a_row([np.array([client]), none], [none, np.array(samples[:1])])


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A trained model, and two requests."""
    made = asking(tmp_path, stream())
    run_training(made)
    return made


def asking(folder: Path, request: Request) -> Scene:
    """Write the inputs of stages, and a request."""
    made = make_scene(folder, PART)
    np.savez(made("request.npz"), allow_pickle=False, **request.arrays())  # type: ignore[arg-type]
    return made


def run_training(scene: Scene, options: Options = OPTIONS, keep_every: int = 2) -> None:
    choice = Choice(name="fats", params={"keep_every": keep_every})
    scene.train(train.Spec(**SPEC, training=choice, history=(), server=None), options)


def run_unlearning(scene: Scene, method: str = "fats", options: Options = OPTIONS, requests: int = 2) -> Tensor:
    again = FATS if method == "retrain" else None
    about = {"method": Choice(name=method), "training": again, "server": None, "watch": None}
    spec = unlearn.Spec(**{**SPEC, "rounds": requests * ROUNDS}, **about)
    scene.unlearn(spec, options, history=method == "fats")
    return scene.theta("unlearned")


def driven(found: History) -> list[Tensor]:
    """Return the models at the start of every round and at the end."""
    task = task_of(None)
    models = [task.first_model()]
    for round in range(ROUNDS):
        models.append(trained(task, found, models[-1], round))
    return models


def test_the_history_file_holds_the_models_that_are_kept(scene: Scene) -> None:
    kept, models = KeptModels(scene("history.safetensors")), driven(history())
    assert (kept.rounds, kept.length) == ([0, 2, 4], ROUNDS)
    assert all(torch.equal(kept.read(round), models[round]) for round in kept.rounds)
    assert torch.equal(scene.theta("original"), models[-1])
    assert not [*scene.folder.glob(".*")]


def unlearned() -> History:
    found = history()
    for wave in stream().waves:
        found = found.without(wave.clients.tolist(), PART.holders(wave.samples))
    return found


def test_two_requests_in_a_row_give_the_model_of_their_history(scene: Scene) -> None:
    before = scene("history.safetensors").read_bytes()
    assert torch.equal(run_unlearning(scene), driven(unlearned())[-1])
    assert scene("history.safetensors").read_bytes() == before
    assert not list(scene.folder.glob(".*"))
    rows = scene.rows("unlearned.csv")
    first = history().without(stream().waves[0].clients.tolist()).restart
    second = unlearned().restart
    assert first is not None
    assert second is not None
    steps = [int(row["time_steps"]) for row in rows]
    assert len(rows) == 2 * ROUNDS + 1
    assert (steps[ROUNDS], steps[-1]) == (first.steps, first.steps + second.steps)
    assert len({row["accuracy"] for row in rows[ROUNDS - first.time // 3 : ROUNDS + 1]}) == 1  # idle: the value holds


def test_a_killed_training_resumes_to_the_same_bytes(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("original.safetensors", "original.csv", "history.safetensors")
    whole = [scene(name).read_bytes() for name in names]
    (tmp_path / "again").mkdir()
    other, calls, step = make_scene(tmp_path / "again", PART), 0, fats.step

    def dying(*about: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KilledError
        return step(*about)

    monkeypatch.setattr(fats, "step", dying)
    with pytest.raises(KilledError):
        run_training(other, EVERY_ROUND)
    assert other(".original.kept").exists()
    run_training(other, EVERY_ROUND)
    assert calls == 3 + ROUNDS - 2  # two rounds and their models were there
    assert [other(name).read_bytes() for name in names] == whole


def in_three() -> Request:
    """Three requests in a row, each for a sample that is first used a round or more before that of the one before."""
    rounds = {time // 3: row for time, row in first_uses(history())}
    samples = [np.array([rounds[round]]) for round in sorted(rounds, reverse=True)[:REQUESTS]]
    return in_a_row([np.empty(0, np.int64)] * REQUESTS, samples)


@pytest.mark.parametrize("keep_every", [1, 3])
@pytest.mark.parametrize("due", [[], [1], range(1, 15)], ids=["never", "after the first round", "always"])
def test_a_stream_resumes_to_the_same_bytes_wherever_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_every: int, due: Collection[int]
) -> None:
    made = asking(tmp_path, in_three())
    run_training(made, keep_every=keep_every)
    models: dict[int, Tensor] = {}
    calls, dies_at, rounds = 0, 0, 0
    step = unlearning.step

    def dying(task: Task, p: Any, state: Any, round: int) -> Any:
        nonlocal calls
        calls += 1
        state = step(task, p, state, round)
        if calls == dies_at:
            raise KilledError
        models[round] = state.theta
        return state

    def is_due(checkpoint: Checkpoint) -> bool:
        nonlocal rounds
        rounds += 1
        return rounds in due

    monkeypatch.setattr(unlearning, "step", dying)
    monkeypatch.setattr(Checkpoint, "due", is_due)
    run_unlearning(made, requests=REQUESTS)
    rows, whole, kills = made("unlearned.csv").read_bytes(), dict(models), calls
    assert kills == 1 + 2 + 3  # each request goes back a round further
    for kill in range(1, kills + 1):
        for damaged in (False, True):
            calls, dies_at, rounds = 0, kill, 0
            with pytest.raises(KilledError):
                run_unlearning(made, requests=REQUESTS)
            assert made(".unlearned.kept").exists()
            if damaged:  # what later requests have written is no start of the first
                made(".unlearned.checkpoint").write_bytes(b"damaged")
            run_unlearning(made, requests=REQUESTS)
            assert [round for round in whole if not torch.equal(models[round], whole[round])] == []
            assert made("unlearned.csv").read_bytes() == rows
            assert not list(made.folder.glob(".*"))


def test_a_copy_of_kept_models_is_there_whole_or_not_at_all(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*given: Any) -> None:
        raise KilledError

    monkeypatch.setattr("fu.federation.kept.shutil.copyfileobj", dies)
    with pytest.raises(KilledError):
        KeptModels.copied(KeptModels(scene("history.safetensors")), tmp_path / "copy", "key")
    assert not (tmp_path / "copy").exists()


def test_a_checkpoint_without_its_models_does_not_count(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    theta = run_unlearning(scene)
    again = unlearning.again

    def dies(*given: Any) -> None:
        raise KilledError

    monkeypatch.setattr(unlearning, "again", dies)  # at the second request, once the first has written its models
    with pytest.raises(KilledError):
        run_unlearning(scene, options=EVERY_ROUND)
    monkeypatch.setattr(unlearning, "again", again)
    scene(".unlearned.kept").unlink()
    assert torch.equal(run_unlearning(scene, options=EVERY_ROUND), theta)


def test_retraining_starts_again_at_every_request_and_draws_no_target(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[int, list[int], list[int]]] = []
    start = retrain.start

    def counted(task: Task, p: Any) -> Any:
        begun.append((task.requests, task.forgotten, task.federation.data.forgotten_samples.tolist()))
        assert set(fats.history(task).population) == set(task.retained)
        assert not np.isin(np.concatenate(list(fats.history(task).population.values())), begun[-1][2]).any()
        return start(task, p)

    monkeypatch.setattr(retrain, "start", counted)
    theta = run_unlearning(scene, "retrain")
    first, second = stream().waves
    assert begun == [(1, first.clients.tolist(), []), (2, first.clients.tolist(), second.samples.tolist())]
    assert not torch.equal(theta, scene.theta("original"))
    steps = [int(row["time_steps"]) for row in scene.rows("unlearned.csv")]
    assert steps == [3 * round for round in range(2 * ROUNDS + 1)]
