"""FATS through its stages: kept models are the history file, requests come in a row, and a killed job resumes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.data.request import Request, in_a_row
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


def history() -> History:
    task = task_of(None)
    return fats.history(task)


def task_of(request: Request | None) -> Task:
    """Return the task of training, or of unlearning the request."""
    data = make_data("share", PART, request)
    stream = "training" if request is None else "unlearning"
    federation = Federation(BUILD(), data, LocalTraining(**SPEC["local"]), stream, SEED)
    drawn = {"clients_per_round": 1, "with_replacement": True}
    return Task(federation, BUILD, data.forgotten, data.retained, ROUNDS, SEED, **drawn)  # type: ignore[arg-type]


def stream() -> Request:
    """Two requests in a row: a client that takes part early, then a sample that is first used late in what is left."""
    before, none = history(), np.empty(0, np.int64)
    client = before.clients(1)[0]
    found = before.without([client])
    late = {(time, row) for k in range(3) for row in PART.train[k].tolist() if (time := found.first_step(k, row))}
    samples = [row for time, row in sorted(late) if time > 6 and row not in PART.train[client]]
    return in_a_row([np.array([client]), none], [none, np.array(samples[:1])])


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A trained model, and two requests."""
    made = make_scene(tmp_path, PART)
    np.savez(made("request.npz"), allow_pickle=False, **stream().arrays())  # type: ignore[arg-type]
    run_training(made)
    return made


def run_training(scene: Scene, options: Options = OPTIONS) -> None:
    files = train.Files(**scene.given, **scene.outputs("original"), history=scene("history.safetensors"))
    train.main(train.Spec(**SPEC, training=FATS, history=(), server=None), files, options)


def run_unlearning(scene: Scene, method: str = "fats", options: Options = OPTIONS) -> Tensor:
    again = FATS if method == "retrain" else None
    files = unlearn.Files(
        **{**scene.given, "request": [scene("request.npz")]},
        **scene.outputs("unlearned"),
        original=scene("original.safetensors"),
        history=[scene("history.safetensors")] if method == "fats" else [],
    )
    about = {"method": Choice(name=method), "training": again, "server": None, "watch": None}
    unlearn.main(unlearn.Spec(**{**SPEC, "rounds": 2 * ROUNDS}, **about), files, options)
    return scene.theta("unlearned")


def driven(found: History, rounds: int = ROUNDS) -> list[Tensor]:
    """Return the models at the start of every round and at the end."""
    task = task_of(None)
    models = [task.first_model()]
    for round in range(rounds):
        models.append(trained(task, found, models[-1], round))
    return models


def test_the_history_file_holds_the_models_that_are_kept(scene: Scene) -> None:
    kept, models = KeptModels(scene("history.safetensors")), driven(history())
    assert (kept.rounds, kept.length) == ([0, 2, 4], ROUNDS)
    assert all(torch.equal(kept.read(round), models[round]) for round in kept.rounds)
    assert torch.equal(scene.theta("original"), models[-1])
    assert sorted(path.name for path in scene.folder.iterdir()) == sorted(
        f"{name}.{end}"
        for name, ends in {
            "original": ("safetensors", "csv", "json"),
            "history": ("safetensors",),
            **dict.fromkeys(("digits", "partition", "request"), ("npz",)),
        }.items()
        for end in ends
    )


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


@pytest.mark.parametrize("killed", [2, ROUNDS + 1])
def test_killed_jobs_resume_to_the_same_bytes(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: int
) -> None:
    names = ("original.safetensors", "original.csv", "history.safetensors")
    whole = [scene(name).read_bytes() for name in names]
    theta = run_unlearning(scene)
    (tmp_path / "again").mkdir()
    other = make_scene(tmp_path / "again", PART)
    np.savez(other("request.npz"), allow_pickle=False, **stream().arrays())  # type: ignore[arg-type]
    calls = 0

    def dies(step: Any) -> Any:
        def call(task: Any, p: Any, state: Any, round: int) -> Any:
            nonlocal calls
            calls += 1
            if calls == 3:
                raise KilledError
            return step(task, p, state, round)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(fats, "step", dies(fats.step))
        with pytest.raises(KilledError):
            run_training(other, EVERY_ROUND)
    assert other(".original.kept").exists()
    steps = 0

    def counts(step: Any) -> Any:
        def call(*about: Any) -> Any:
            nonlocal steps
            steps += 1
            return step(*about)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(fats, "step", counts(fats.step))
        run_training(other, EVERY_ROUND)
    assert steps == ROUNDS - 2  # two rounds and their models were there
    assert [other(name).read_bytes() for name in names] == whole
    calls = 3 - killed if killed < 3 else 1
    with monkeypatch.context() as patched:
        patched.setattr(unlearning, "step", dies(unlearning.step))
        with pytest.raises(KilledError):
            run_unlearning(other, options=EVERY_ROUND)
    assert torch.equal(run_unlearning(other, options=EVERY_ROUND), theta)
    assert other("unlearned.csv").read_bytes() == scene("unlearned.csv").read_bytes()


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
