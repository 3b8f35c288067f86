"""Shadow models: each trains as the attacked model on a half of its own, and what they say is kept to attack with."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.data import archives, membership
from fu.data.clients import ClientData
from fu.data.request import Request
from fu.federation import driver, plugged
from fu.federation.local import Federation, LocalTraining
from fu.federation.task import State, Task
from fu.pipeline.provenance.catalogue import metrics_of
from fu.pipeline.stages import evaluate, shadow
from fu.plugins import Choice
from fu.seeds import derive_integer
from fu.training import fedavg
from tests.factories import make_partition
from tests.federation.runs import KilledError
from tests.pipeline.stages.scene import (
    BUILD,
    LABELS,
    LOCAL,
    MODEL,
    NORMALISED,
    OPTIONS,
    ROUNDS,
    SEED,
    Scene,
    make_scene,
    model,
    noted_tests,
)

PART = make_partition((7, 12, 9), trigger=False, server=4, held_out=2)
DRAWN: dict[str, Any] = {"rounds": ROUNDS, "clients_per_round": 2, "with_replacement": True}
SPEC = shadow.Spec(
    **{**MODEL, "attack": None}, **DRAWN, local=LOCAL, number=3, most=None, training=Choice(name="fedavg"), server=None
)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Nobody is attacked; client 2 asks to be forgotten."""
    made = make_scene(tmp_path, PART)
    ask(made, clients=np.array([2]))
    return made


def made(scene: Scene, spec: shadow.Spec = SPEC) -> membership.Shadows:
    path = scene("run/x.shadows.npz")
    path.unlink(missing_ok=True)
    shadow.main(spec, shadow.Files(**scene.asked, shadows=path), OPTIONS)
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    return membership.load(path)


def seed_of(shadow: int, *asked: int) -> int:
    """Return the seed of a shadow's draws: of the request that it belongs to."""
    return derive_integer(SEED, "shadow", shadow, *asked)


def ask(scene: Scene, **request: Any) -> None:
    """Ask for other clients or samples."""
    asked = Request(**{"clients": np.empty(0, np.int64), **request})
    np.savez(scene("request.npz"), allow_pickle=False, **asked.arrays())  # type: ignore[arg-type]


def test_each_shadow_trains_as_the_scenario_does_on_half_of_the_retained_data(scene: Scene) -> None:
    found = made(scene)
    labels, nothing = LABELS.astype(np.int64), np.empty(0, np.int64)
    sets = membership.draw(PART, labels, [2], nothing, SEED)
    assert (found.members.tolist(), found.pool.tolist()) == (sets.members.tolist(), sets.pool.tolist())
    assert len(found.pool) == 19
    assert (found.labels == labels[found.pool]).all()
    assert (found.classes == labels[found.non_members]).all()
    x = NORMALISED
    first = []
    for number in range(3):
        part = membership.half(PART, [2], nothing, SEED, number)
        held = ClientData(x, torch.from_numpy(labels), part, 10, "share")
        own = seed_of(number, 2)
        federation = Federation(BUILD(), held, LocalTraining(**LOCAL), "training", own)
        task = Task(federation, BUILD, [], [0, 1], ROUNDS, own, clients_per_round=2, with_replacement=True)
        state = fedavg.start(task, fedavg.Params())
        first.append(state.theta)
        for round in range(ROUNDS):
            state = fedavg.step(task, fedavg.Params(), state, round)
        assert found.inside[number].tolist() == np.isin(found.pool, np.concatenate(part.train)).tolist()
        for name, rows in (("pool", sets.pool), ("member", sets.members), ("non_member", sets.non_members)):
            said = federation.logits(state.theta, x[rows].permute(0, 3, 1, 2)).numpy()
            assert np.array_equal(getattr(found, f"{name}_logits")[number], said), name
    assert not torch.equal(first[0], first[1])
    assert not np.array_equal(found.inside[0], found.inside[1])


def test_no_shadow_trains_on_data_that_name_a_test_sample(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    found = noted_tests(monkeypatch)
    made(scene)
    assert set(found) == {0}


def test_the_sets_have_no_more_than_asked_for(scene: Scene) -> None:
    found = made(scene, SPEC.model_copy(update={"most": 2}))
    assert (len(found.pool), len(found.members), len(found.non_members)) == (2, 2, 2)


def test_a_killed_job_trains_no_finished_shadow_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, trained, step = made(scene), list[int](), fedavg.step

    def dying(task: Task, p: Any, state: Any, round: int) -> Any:
        trained.append(round)
        if len(trained) == ROUNDS + 2:
            raise KilledError
        return step(task, p, state, round)

    monkeypatch.setattr(fedavg, "step", dying)
    with pytest.raises(KilledError):
        made(scene)
    again = made(scene)
    assert trained == [*range(ROUNDS), 0, 1, *range(ROUNDS), *range(ROUNDS)]
    for name, array in vars(whole).items():
        if isinstance(array, np.ndarray):
            assert np.array_equal(array, getattr(again, name)), name


def test_shadows_that_a_killed_job_left_of_another_request_do_not_count(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(scene, clients=np.array([1]))
    whole, drive, left = made(scene), driver.drive, 2
    ask(scene, clients=np.array([2]))

    def killed(*args: Any, **more: Any) -> driver.Outcome:
        nonlocal left
        left -= 1
        if left < 0:
            raise KilledError
        return drive(*args, **more)

    with monkeypatch.context() as patched:
        patched.setattr(plugged, "drive", killed)
        with pytest.raises(KilledError):
            made(scene)
    assert len([*scene("run").glob(".*.checkpoint")]) == 2
    ask(scene, clients=np.array([1]))
    again = made(scene)
    assert np.array_equal(again.inside, whole.inside)
    assert np.array_equal(again.pool_logits, whole.pool_logits)


def test_draws_of_shadows_belong_to_their_request(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, drive = list[int](), driver.drive

    def seen(task: Task, *args: Any, **more: Any) -> driver.Outcome:
        seeds.append(task.seed)
        return drive(task, *args, **more)

    monkeypatch.setattr(plugged, "drive", seen)
    made(scene)
    sample = np.sort(PART.train[0][:2])
    ask(scene, samples=sample)
    made(scene)
    assert seeds == [*(seed_of(k, 2) for k in range(3)), *(seed_of(k, *sample.tolist()) for k in range(3))]


def test_shadows_of_a_training_at_the_server_have_as_many_of_its_samples(scene: Scene) -> None:
    """The server holds four."""
    given = {"training": Choice(name="server_sgd"), "local": {**LOCAL, "batch_size": 4}}
    two, four, every = (
        made(scene, shadow.Spec.model_validate({**SPEC.model_dump(), **given, "server": server}))
        for server in (2, 4, None)
    )
    assert np.array_equal(four.pool_logits, every.pool_logits)
    assert not np.allclose(two.pool_logits, four.pool_logits)
    assert not len(two.trained)  # the training does not say which rows it had


@pytest.mark.parametrize("name", ["fedavg", "fats"])
def test_the_record_says_which_members_the_attacked_training_had_in_a_batch(scene: Scene, name: str) -> None:
    """In three rounds of two clients, each of one step on two of its rows: some of client 2's nine."""
    local = {**LOCAL, "batch_size": 2, "local_epochs": None, "local_steps": 1}
    spec = shadow.Spec.model_validate({**SPEC.model_dump(), "local": local, "training": Choice(name=name)})
    found = made(scene, spec)
    data = ClientData(NORMALISED, torch.from_numpy(LABELS).long(), PART, 10, "share")
    federation, seen = Federation(BUILD(), data, LocalTraining(**local), "training", SEED), set[int]()
    task = Task(federation, BUILD, [], [0, 1, 2], ROUNDS, SEED, clients_per_round=2, with_replacement=True)
    training, train_on = plugged.training_of(spec.training), data.train

    def spied(client: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        assert rows is not None
        seen.update(PART.train[client][rows.numpy()].tolist())
        return train_on(client, rows)

    data.train = spied  # type: ignore[method-assign]
    state = training.start(task)
    for round in range(ROUNDS):
        state = training.step(task, state, round)
    assert found.trained.tolist() == [row in seen for row in found.members.tolist()]
    assert 0 < found.trained.sum() < len(found.trained)


def test_owners_of_the_archive_decide_who_is_a_non_member(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    owners = np.zeros(len(LABELS), np.int64)
    owners[np.concatenate([PART.train[2], PART.test[2]])] = 2
    monkeypatch.setattr(archives, "owners", lambda path, dataset: owners)
    found = made(scene)
    assert set(found.non_members.tolist()) <= set(PART.test[2].tolist())
    assert len(found.non_members)


def test_a_shadow_that_diverges_is_left_out(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    step, second = fedavg.step, seed_of(1, 2)

    def diverging(task: Task, p: Any, state: Any, round: int) -> Any:
        following = step(task, p, state, round)
        return State(following.theta * torch.inf) if task.seed == second else following

    whole = made(scene)
    monkeypatch.setattr(fedavg, "step", diverging)
    found = made(scene)
    assert (found.number, int(found.asked)) == (2, 3)
    assert np.array_equal(found.inside, whole.inside[[0, 2]])
    assert np.array_equal(found.member_logits, whole.member_logits[[0, 2]])


def test_an_evaluation_attacks_with_what_was_kept(scene: Scene) -> None:
    made(scene)
    scene("run/x.shadows.npz").rename(scene("shadows.npz"))
    scene.save("original", model(0))
    scene("original.csv").touch()
    spec = evaluate.Spec(**{**MODEL, "attack": None}, roles=("original",), evaluators=("membership",))
    assert {row["metric"] for row in scene.evaluate(spec)} == {metric.name for metric in metrics_of("membership")}
