"""A request in a file of its own, clients that are drawn, a server that helps: what stages hand over of these."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fu.contents import checksum
from fu.data import request
from fu.data.request import Request
from fu.federation import plugged
from fu.federation.local import Federation, LocalTraining
from fu.federation.task import State, Task
from fu.methods import fupga
from fu.pipeline.stages import common, recover, train, unlearn
from fu.pipeline.stages import request as stage
from fu.plugins import Choice
from tests.factories import make_partition
from tests.pipeline.stages.scene import (
    BUILD,
    LOCAL,
    PHASE,
    ROUNDS,
    SEED,
    Scene,
    loop,
    make_data,
    make_scene,
    make_task,
    model,
)

PART = make_partition((7, 12, 9), trigger=False, server=4, held_out=2)
UNMARKED = {**PHASE, "attack": None, "traced": ("utility",)}
DRAWN = {"clients_per_round": 2, "with_replacement": True}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Nobody is attacked; client 2 asks to be forgotten."""
    made = make_scene(tmp_path, PART)
    np.savez(made("request.npz"), allow_pickle=False, **Request(np.array([2])).arrays())  # type: ignore[arg-type]
    return made


def task_of(stream: str, forgotten: list[int], retained: list[int], **more: Any) -> Task:
    """Return the task that a stage must make of the files."""
    asked = Request(np.array(forgotten)) if forgotten else None
    federation = Federation(BUILD(), make_data("all", PART, asked), LocalTraining(**LOCAL), stream, SEED)
    return Task(federation, BUILD, forgotten, retained, ROUNDS, SEED, **more)


# ---- the stage that draws it -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "clients", "samples", "requests"),
    [(0, 1, None, 1), (1, 1, None, 2), (2, 2, None, 1), (0, [2, 0], None, 1), (0, None, 3, 1), (1, None, 2, 3)],
)
def test_the_stage_saves_the_requests_that_are_drawn(
    scene: Scene, seed: int, clients: int | list[int] | None, samples: int | None, requests: int
) -> None:
    output = scene("made/request.npz")
    spec = common.canonical(stage.Spec(seed=seed, clients=clients, samples=samples, requests=requests))
    argv = ["--spec", spec, "--partition", str(scene("partition.npz")), "--request", str(output)]
    common.run(stage.Spec, stage.Files, stage.main, argv)
    loaded, drawn = request.load(output, PART), request.draw(PART, seed, clients, samples, requests)
    assert {name: found.tolist() for name, found in loaded.arrays().items()} == {
        name: found.tolist() for name, found in drawn.arrays().items()
    }
    assert len(loaded.waves) == requests
    assert [path.name for path in output.parent.iterdir()] == ["request.npz"]


# ---- what is handed over ---------------------------------------------------------------------------------------------


def test_training_knows_no_request_and_draws_who_takes_part(scene: Scene) -> None:
    about = {"training": Choice(name="fedavg"), "history": (), "server": None}
    scene.train(train.Spec(**{**UNMARKED, **DRAWN}, **about))
    task = task_of("training", [], [0, 1, 2], clients_per_round=2, with_replacement=True)
    training = plugged.training_of(Choice(name="fedavg"))
    models = loop(training.start(task), lambda state, round: training.step(task, state, round), range(ROUNDS))
    assert torch.equal(scene.theta("original"), models[-1])
    trained = [len(set(task.participants(round))) for round in range(ROUNDS)]  # one that is drawn twice trains once
    assert [int(row["client_rounds"]) for row in scene.rows("original.csv")] == [
        sum(trained[:k]) for k in range(ROUNDS + 1)
    ]


def test_unlearning_forgets_whom_the_request_names(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Task] = []

    def start(task: Task, p: object) -> State:
        given.append(task)
        return State(task.original_model)

    monkeypatch.setattr(fupga, "start", start)
    monkeypatch.setattr(fupga, "step", lambda task, p, state, round: state)
    scene.save("original", model(0))
    again = {"method": Choice(name="fupga"), "training": Choice(name="server_sgd"), "server": 3, "watch": None}
    scene.unlearn(unlearn.Spec(**UNMARKED, **again))
    (task,) = given
    assert (task.forgotten, task.retained, task.server) == ([2], [0, 1], 3)
    assert task.training is not None
    assert scene.cost("unlearned")["inputs"] == [
        checksum(scene(name)) for name in ("digits.npz", "partition.npz", "request.npz", "original.safetensors")
    ]


def test_post_training_is_that_of_whom_the_request_leaves(scene: Scene) -> None:
    scene.save("original", model(0))
    scene.save("unlearned", model(1))
    scene.recover(recover.Spec(**UNMARKED, projection=None, client_weights="equal", first_round=0))
    task = task_of("unlearning", [2], [0, 1], original=model(0))

    def step(state: Any, round: int) -> Any:
        updates = task.federation.local_updates(state.theta, [0, 1], round)
        return State(state.theta + updates.delta.mean(0))

    expected = loop(State(model(1)), step, range(ROUNDS))[-1]
    torch.testing.assert_close(scene.theta("recovered"), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("number", [2, 4, None])
def test_a_server_trains_on_so_many_of_its_samples_as_the_spec_says(tmp_path: Path, number: int | None) -> None:
    scene = make_scene(tmp_path)
    about = {"training": Choice(name="server_sgd"), "history": (), "server": number}
    scene.train(train.Spec(**PHASE, **about))
    found = [helped(used) for used in (2, 4)]
    assert not torch.equal(*found)
    assert torch.equal(scene.theta("original"), found[0 if number == 2 else 1])
    assert {row["client_rounds"] for row in scene.rows("original.csv")} == {"0"}


def helped(used: int) -> torch.Tensor:
    """Return the model of a server that trains on so many of its samples."""
    task = make_task("training", "share", server=used)
    training = plugged.training_of(Choice(name="server_sgd"))
    return loop(training.start(task), lambda state, round: training.step(task, state, round), range(ROUNDS))[-1]
