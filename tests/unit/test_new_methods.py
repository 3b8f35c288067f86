"""The methods, histories and models beyond the first slice, each against numbers computed in another way."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import minimize
from torch import Tensor, nn

from fu.data.clients import ClientData
from fu.evaluation import selection
from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import drive
from fu.federation.flat import Layout
from fu.federation.local import Federation, LocalTraining, Updates
from fu.federation.losses import unlearning_cross_entropy
from fu.federation.task import State, Task, initial_parameters, theta_of
from fu.methods import federaser, fedosd, fedrecovery, mode, retrain, sfu
from fu.models import nfresnet18
from fu.training import fedavg
from tests.factories import (
    COLOUR,
    GREY,
    KINDS,
    SMALL,
    builder,
    cosines,
    make_data,
    make_federation,
    make_partition,
    make_task,
    params_of,
)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def weighted_mean(rows: Tensor, sizes: list[int]) -> Tensor:
    return sum((size * row for size, row in zip(sizes, rows, strict=True)), torch.zeros_like(rows[0])) / sum(sizes)


@dataclass(frozen=True)
class Trained:
    """An original training: the models before and after its rounds [T + 1, d], every client's updates [T, m, d]."""

    data: ClientData
    models: Tensor
    updates: Tensor
    histories: dict[str, dict[str, Tensor]]

    def task(self, rounds: int = 1, **federation: Any) -> Task:
        """Return the task of unlearning that follows."""
        bound = make_federation(self.data, **federation)
        return make_task(bound, rounds=rounds, original=self.models[-1], histories=self.histories)


def train(
    folder: Path,
    rounds: int = 4,
    *,
    sizes: tuple[int, ...] = (7, 12, 9, 8),
    forgotten: tuple[int, ...] = (1,),
    client_weights: str = "samples",
    **federation: Any,
) -> Trained:
    """Train by FedAvg with the real recorders; the updates are computed again, by a federation of their own."""
    data = make_data(make_partition(sizes, forgotten), poison="share")
    federation = {"stream": "training", "lr_decay": 0.7, **federation}
    task = make_task(make_federation(data, **federation), rounds=rounds, trained=False)
    p = params_of(fedavg, client_weights=client_weights)
    models: list[Tensor] = []

    def step(state: State, round: int) -> State:
        models.append(theta_of(state))
        return fedavg.step(task, p, state, round)

    checkpoint = Checkpoint(folder / "job.checkpoint", {}, 1e9)
    outcome = drive(task, lambda: fedavg.start(task, p), step, lambda _: {}, checkpoint, "train", recorders=KINDS)
    assert outcome.diverged is None
    again = make_federation(data, **federation)
    updates = [again.local_updates(theta, range(len(sizes)), round).delta for round, theta in enumerate(models)]
    return Trained(data, torch.stack([*models, theta_of(outcome.state)]), torch.stack(updates), outcome.histories)


# ---- what training records -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "shape"), [("mlp", SMALL), ("lenet5", GREY)])
def test_recorded_norms_are_those_of_the_named_tensors_of_every_clients_updates(
    model: str, shape: tuple[int, int, int]
) -> None:
    data = make_data(make_partition(), shape)
    task = make_task(make_federation(data, model, stream="training"), model)
    models = task.original_model + 0.01 * random(3, task.federation.layout.size)
    record: dict[str, Tensor] = {}
    for k in range(3):
        record = KINDS["update_norms"](task, record, models[k], k)
    fresh = make_federation(data, model, stream="training")
    for k in range(3):
        for client in range(3):
            delta = fresh.local_updates(models[k], [client], k).delta[0]
            expected = [math.sqrt(piece.square().sum()) for piece in fresh.layout.named(delta).values()]
            torch.testing.assert_close(record["norms"][k, client], torch.tensor(expected), rtol=1e-5, atol=0)
    assert record.keys() == {"norms"}
    assert record["norms"].shape == (3, 3, len(fresh.layout.shapes))
    assert len(record["norms"].unique()) == record["norms"].numel()  # none is compared with another's


def test_recording_costs_nothing_and_trains_nobody_again(tmp_path: Path) -> None:
    def trained(recorders: dict[str, Any]) -> tuple[dict[str, int], list[int], list[float]]:
        task, p = make_task(make_federation(stream="training"), trained=False), params_of(fedavg)
        calls: list[int] = []
        task.federation.model.register_forward_pre_hook(lambda _, inputs: calls.append(len(inputs[0])))
        outcome = drive(
            task,
            lambda: fedavg.start(task, p),
            lambda state, round: fedavg.step(task, p, state, round),
            lambda _: {},
            Checkpoint(tmp_path / "job.checkpoint", {}, 1e9),
            "train",
            recorders=recorders,
        )
        assert outcome.histories.keys() == set(recorders)
        return task.federation.cost.record(), calls, theta_of(outcome.state).tolist()

    assert trained(KINDS) == trained({})
    assert KINDS.keys() >= {"target_model", "update_norms", "update_sums"}


# ---- FedRecovery ---------------------------------------------------------------------------------------------------


def plain_residual(
    trained: Trained, forgotten: list[int], lr: float = 0.1, decay: float = 0.7
) -> tuple[Tensor, Tensor]:
    """Return sum_t p_t (the model after round t with the forgotten clients minus without them), and p [T]."""
    updates = trained.updates.double()
    retained = [client for client in range(updates.shape[1]) if client not in forgotten]
    with_all = trained.models[:-1].double() + updates.mean(1)
    without = trained.models[:-1].double() + updates[:, retained].mean(1)
    rates = torch.tensor([lr * decay**t for t in range(len(updates))])
    squares = (updates.mean(1) / rates[:, None]).square().sum(1)
    p = squares / squares.sum()
    return (p[:, None] * (with_all - without)).sum(0), p


@pytest.mark.parametrize("client_weights", ["equal", "samples"])
@pytest.mark.parametrize("forgotten", [(1,), (1, 3)], ids=["one", "two"])
def test_fedrecovery_from_running_sums_is_its_definition_on_all_updates(
    forgotten: tuple[int, ...], client_weights: str, tmp_path: Path
) -> None:
    trained = train(tmp_path, 4, forgotten=forgotten, client_weights=client_weights)
    if client_weights == "equal":  # then the mean update is the round that was made
        torch.testing.assert_close(trained.models[1:], trained.models[:-1] + trained.updates.mean(1))
    task, p = trained.task(), params_of(fedrecovery, noise_std=0)
    found = theta_of(fedrecovery.step(task, p, fedrecovery.start(task, p), 0)).double()
    residual, shares = plain_residual(trained, list(forgotten))
    torch.testing.assert_close(found, trained.models[-1].double() - residual, rtol=0, atol=1e-6)
    assert shares.max() > 1.2 * shares.min()  # the weights are not those of a plain mean
    with_all, without = trained.updates.mean(1), trained.updates[:, task.retained].mean(1)
    assert (residual - (with_all - without).double().mean(0)).abs().max() > 1e-4
    assert task.federation.cost.record() == make_federation().cost.record()


def recovery_task(updates: Tensor, *, model: str = "mlp", rounds: int = 1, seed: int = 3) -> Task:
    """Return a task after one round with the given updates [m, k] of the first k parameters, of weight 2."""
    shape = SMALL if model == "mlp" else GREY
    bound = make_federation(make_data(make_partition(), shape), model, seed=seed)
    rows = torch.zeros(len(updates), bound.layout.size)
    rows[:, : updates.shape[1]] = updates
    recorded = {"sums": 2 * rows, "weight": torch.tensor([2.0], dtype=torch.float64)}
    return make_task(bound, model, rounds=rounds, histories={"update_sums": recorded})


def test_fedrecovery_of_one_round_and_one_target_is_what_it_is_by_hand() -> None:
    task = recovery_task(torch.tensor([[1.0, 0, 3], [4, 2, 3], [1, 4, 3]]))
    found = theta_of(fedrecovery.step(task, params_of(fedrecovery, noise_std=0), {"theta": task.original_model}, 0))
    # With all three the round moves by (2, 2, 3), without the second by (1, 2, 3).
    expected = task.original_model.clone()
    expected[0] -= 1
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_the_noise_of_fedrecovery_has_its_standard_deviation_however_many_rounds_it_takes(rounds: int) -> None:
    p = params_of(fedrecovery, noise_std=0.05)

    def draw(seed: int) -> list[Tensor]:
        task = recovery_task(torch.zeros(3, 1), model="lenet5", rounds=rounds, seed=seed)
        state = fedrecovery.start(task, p)
        assert torch.equal(theta_of(state), task.original_model)
        models = [theta_of(state)]
        for round in range(rounds):
            state = fedrecovery.step(task, p, state, round)
            models.append(theta_of(state))
        return [after - before for before, after in pairwise(models)]

    torch.manual_seed(0)
    parts = draw(3)
    torch.manual_seed(1)
    noise = torch.stack(parts).sum(0)
    assert noise.std().item() == pytest.approx(0.05, rel=0.03)
    assert abs(noise.mean().item()) < 0.001
    assert torch.equal(torch.stack(parts), torch.stack(draw(3)))
    for k, part in enumerate(parts):
        others = torch.stack([*parts[:k], *parts[k + 1 :], *draw(4)])
        assert cosines(others, part).abs().max() < 0.03  # independent between rounds and seeds


def test_fedrecovery_in_several_rounds_takes_out_what_it_takes_out_in_one() -> None:
    updates, p = random(3, 30), params_of(fedrecovery, noise_std=0)
    ends = []
    for rounds in (1, 4):
        task = recovery_task(updates, rounds=rounds)
        state = fedrecovery.start(task, p)
        for round in range(rounds):
            state = fedrecovery.step(task, p, state, round)
        ends.append(theta_of(state))
    torch.testing.assert_close(ends[0], ends[1])
    assert (ends[0] - task.original_model).norm() > 1


# ---- FedEraser -----------------------------------------------------------------------------------------------------


def test_federaser_takes_directions_from_retraining_and_layer_norms_from_the_training(tmp_path: Path) -> None:
    trained = train(tmp_path, 4)
    task, p = trained.task(rounds=2), params_of(federaser)
    retained, sizes = [0, 2, 3], [7, 9, 8]
    state = federaser.start(task, p)
    for round, stored in ((0, 0), (1, 2)):
        theta = theta_of(state)
        fresh = make_federation(trained.data, local_epochs=1)  # half the steps are one of two epochs
        layout, rows = fresh.layout, []
        for client in retained:
            given = layout.named(fresh.local_updates(theta, [client], round).delta[0])
            wanted = layout.named(trained.updates[stored, client])
            assert all(piece.norm() > 0 for piece in [*given.values(), *wanted.values()])
            rows.append(
                layout.flatten({name: piece * wanted[name].norm() / piece.norm() for name, piece in given.items()})
            )
        state = federaser.step(task, p, state, round)
        expected = theta + weighted_mean(torch.stack(rows), sizes)
        torch.testing.assert_close(theta_of(state), expected, rtol=1e-5, atol=1e-6)
        assert (theta_of(state) - theta).norm() > 0.01


def test_a_calibrated_update_has_the_stored_length_and_retrainings_direction_in_every_layer(tmp_path: Path) -> None:
    """One retained client, so that the step is its update; its retraining takes as many steps."""
    trained = train(tmp_path, 2, sizes=(12, 9))
    task, theta = trained.task(rounds=2), trained.models[1]
    moved = theta_of(federaser.step(task, params_of(federaser), {"theta": theta}, 1)) - theta
    again = make_task(make_federation(trained.data, local_epochs=1))
    retrained = theta_of(retrain.step(again, params_of(retrain), {"theta": theta}, 1)) - theta
    named, layout = [again.federation.layout.named(found) for found in (moved, retrained)], again.federation.layout
    stored = layout.named(trained.updates[1, 0])
    for name in layout.shapes:
        one, other = (found[name].flatten() for found in named)
        assert cosines(one[None], other).item() == pytest.approx(1, abs=1e-4)  # differences of float32 models
        assert one.norm().item() == pytest.approx(stored[name].norm().item(), rel=1e-3)
        assert one.norm().item() != pytest.approx(other.norm().item(), rel=1e-2)
    assert task.federation.cost.steps == again.federation.cost.steps == 3


@pytest.mark.parametrize(
    ("stored", "rounds", "interval", "used"),
    [
        (6, 3, None, [0, 2, 4]),
        (6, 6, None, [0, 1, 2, 3, 4, 5]),
        (7, 3, None, [0, 2, 4]),
        (2, 4, None, [0, 1, 1, 1]),
        (6, 3, 1, [0, 1, 2]),
        (6, 3, 3, [0, 3, 5]),
    ],
)
def test_federaser_uses_the_stored_rounds_that_its_interval_names(
    stored: int, rounds: int, interval: int | None, used: list[int]
) -> None:
    bound = make_federation(make_data(make_partition((5, 12))))  # one retained client: the step is its update
    layers = len(bound.layout.shapes)
    norms = (
        torch.arange(1.0, stored + 1)[:, None, None].repeat(1, 2, layers) * torch.tensor([1.0, 100.0])[None, :, None]
    )
    task = make_task(bound, rounds=rounds, histories={"update_norms": {"norms": norms}})
    for round in range(rounds):
        theta = task.original_model
        moved = theta_of(federaser.step(task, params_of(federaser, interval=interval), {"theta": theta}, round)) - theta
        for piece in bound.layout.named(moved).values():
            assert piece.norm().item() == pytest.approx(1 + used[round], rel=1e-4)


@pytest.mark.parametrize(("ratio", "steps"), [(0.3, [3, 1, 2]), (0.5, [5, 1, 2]), (0.01, [1, 1, 1]), (1, [10, 2, 4])])
def test_calibration_takes_its_share_of_each_clients_steps_and_keeps_the_clients_order(
    ratio: float, steps: list[int]
) -> None:
    sizes, retained = (22, 12, 3, 9), [0, 2, 3]  # two epochs of batches of five: 10, 6, 2 and 4 steps
    data = make_data(make_partition(sizes))
    bound = make_federation(data)
    theta = make_task(bound).original_model
    found = federaser.calibration(bound, theta, retained, 1, ratio)
    fresh = make_federation(data)
    each = [fresh.local_updates(theta, [client], 1, steps=n) for client, n in zip(retained, steps, strict=True)]
    assert torch.equal(found.delta, torch.cat([update.delta for update in each]))
    assert torch.equal(found.losses, torch.cat([update.losses for update in each]))
    assert found.sizes.tolist() == [22, 3, 9]
    assert bound.cost.steps == sum(steps)
    assert bound.cost == fresh.cost
    assert len(torch.unique(found.delta, dim=0)) == 3


def test_a_layer_that_did_not_move_stays() -> None:
    layout = make_federation().layout
    delta = random(2, layout.size)
    names = list(layout.shapes)
    layout.views(delta)[names[1]][0] = 0
    found = federaser.calibrated(layout, delta, torch.full((2, len(names)), 2.0))
    norms = torch.stack([view.flatten(1).norm(dim=1) for view in layout.views(found).values()], dim=1)
    expected = torch.full((2, len(names)), 2.0)
    expected[0, 1] = 0
    torch.testing.assert_close(norms, expected)


def test_federaser_touches_neither_data_nor_norms_of_a_forgotten_client(tmp_path: Path) -> None:
    trained = train(tmp_path, 4, forgotten=(1, 3))
    part = trained.data.partition
    x, norms = trained.data.x.clone(), trained.histories["update_norms"]["norms"].clone()
    for client in (1, 3):
        x[part.train[client]] = torch.nan
        norms[:, client] = torch.nan
    broken = replace(
        trained,
        data=ClientData(x, trained.data.y, part, trained.data.classes, "all"),
        histories={"update_norms": {"norms": norms}},
    )
    ends = []
    for given in (trained, broken):
        task, p = given.task(rounds=2), params_of(federaser)
        state = federaser.start(task, p)
        for round in range(2):
            state = federaser.step(task, p, state, round)
        ends.append(theta_of(state))
    assert torch.isfinite(ends[0]).all()
    assert torch.equal(ends[0], ends[1])
    assert not torch.equal(trained.histories["update_norms"]["norms"], norms)


def test_federaser_starts_at_the_model_that_the_original_training_began_from(tmp_path: Path) -> None:
    trained = train(tmp_path, 2)
    task = trained.task()
    start = theta_of(federaser.start(task, params_of(federaser)))
    assert torch.equal(start, trained.models[0])
    assert not torch.equal(start, theta_of(retrain.start(task, params_of(retrain))))
    assert not torch.equal(start, task.original_model)


# ---- MoDe ----------------------------------------------------------------------------------------------------------


def second_of(state: State) -> Tensor:
    second = state["second"]
    assert isinstance(second, Tensor)
    return second


def classes_of(model: Tensor, x: Tensor) -> Tensor:
    """Return the classes that a model [d] of the toy's kind gives images, by a network of its own."""
    net = builder()()
    layout = Layout(net)
    net.load_state_dict(layout.named(model))
    return net.eval()(x).argmax(1)


def guided(task: Task, theta: Tensor, second: Tensor, round: int) -> Tensor:
    """Return theta after a round of FedAvg on data in which the forgotten client's labels are the second model's."""
    data = task.federation.data
    (client,) = task.forgotten
    rows = torch.from_numpy(data.partition.train[client])
    marked, flipped = data.train(client)
    labels = classes_of(second, marked)
    assert (labels != flipped).any()
    assert (labels != data.y[rows]).any()
    x, y = data.x.clone(), data.y.clone()
    x[rows], y[rows] = marked.permute(0, 2, 3, 1), labels
    sizes = [data.size(k) for k in range(len(data.partition.train))]
    part = make_partition(sizes, task.forgotten, trigger=False)
    plain = make_federation(ClientData(x, y, part, data.classes, "all"), lr=task.federation.training.lr)
    everyone = [*task.retained, client]
    return theta + weighted_mean(plain.local_updates(theta, everyone, round).delta, [sizes[k] for k in everyone])


@pytest.mark.parametrize("momentum", [1.0, 0.95, 0.0])
def test_a_round_of_mode_trains_the_second_model_degrades_and_guides(momentum: float) -> None:
    task, p = make_task(rounds=3), params_of(mode, lambda_=momentum)
    state = mode.start(task, p)
    assert torch.equal(theta_of(state), task.original_model)
    for round in range(2):
        theta, second = theta_of(state), second_of(state)
        state = mode.step(task, p, state, round)
        trained = make_federation().local_updates(second, [0, 2], round).delta
        torch.testing.assert_close(second_of(state), second + weighted_mean(trained, [7, 9]), rtol=0, atol=1e-6)
        assert not torch.equal(second_of(state), second)
        degraded = {1.0: theta, 0.95: 0.95 * theta + 0.05 * second_of(state), 0.0: second_of(state)}[momentum]
        expected = guided(task, degraded, second_of(state), round)
        torch.testing.assert_close(theta_of(state), expected, rtol=0, atol=1e-5)


def test_degradation_with_lambda_one_changes_nothing_and_with_zero_everything() -> None:
    theta, second = random(2, 50)
    assert torch.equal(mode.degrade(theta, second, 1.0), theta)
    torch.testing.assert_close(mode.degrade(theta, second, 0.0), second)
    torch.testing.assert_close(mode.degrade(theta, second, 0.95), 0.95 * theta + 0.05 * second)


@pytest.mark.parametrize(("share", "degrading"), [(0.8, 4), (0.5, 3), (0.0, 0), (1.0, 5)])
def test_the_last_rounds_of_mode_are_guidance_alone(share: float, degrading: int) -> None:
    task, p = make_task(rounds=5), params_of(mode, lambda_=0.5, degradation_share=share)
    state = mode.start(task, p)
    for round in range(5):
        theta, second = theta_of(state), second_of(state)
        before = task.federation.cost.client_rounds
        state = mode.step(task, p, state, round)
        assert torch.equal(second_of(state), second) is (round >= degrading)
        assert task.federation.cost.client_rounds - before == (5 if round < degrading else 3)
        if round >= degrading:
            torch.testing.assert_close(theta_of(state), guided(task, theta, second, round), rtol=0, atol=1e-6)


def test_mode_begins_with_a_second_model_that_is_neither_of_training_nor_of_retraining() -> None:
    task = make_task()
    second = second_of(mode.start(task, params_of(mode)))
    for other in (fedavg.start(task, params_of(fedavg)), retrain.start(task, params_of(retrain))):
        assert not torch.equal(second, theta_of(other))
    assert torch.equal(second, second_of(mode.start(make_task(), params_of(mode))))
    assert not torch.equal(second, second_of(mode.start(make_task(make_federation(seed=4)), params_of(mode))))


def test_the_classes_of_modes_second_model_are_those_it_gives_without_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    task = dropout_task()
    seen: list[tuple[Tensor, Tensor]] = []
    whole = task.federation.local_updates

    def watched(theta: Tensor, clients: list[int], round: int, **given: Any) -> Updates:
        relabel = given.get("relabel")
        if relabel is not None:

            def look(x: Tensor, y: Tensor) -> Tensor:
                seen.append((x, relabel(x, y)))
                return seen[-1][1]

            given["relabel"] = look
        return whole(theta, clients, round, **given)

    monkeypatch.setattr(task.federation, "local_updates", watched)
    p = params_of(mode)
    state = mode.step(task, p, mode.start(task, p), 0)
    assert len(seen) == 3
    for x, labels in seen:
        assert labels.tolist() == task.federation.logits(second_of(state), x).argmax(1).tolist()


# ---- SFU -----------------------------------------------------------------------------------------------------------


def layers_of(model: nn.Module) -> dict[str, nn.Module]:
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear | nn.Conv2d)}


def observed(task: Task, theta: Tensor, x: Tensor, what: str) -> dict[str, Tensor]:
    """Return every layer's inputs or outputs at theta for images x."""
    found: dict[str, Tensor] = {}

    def look(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        return lambda _, inputs, output: found.__setitem__(name, (inputs[0] if what == "inputs" else output).clone())

    handles = [layer.register_forward_hook(look(name)) for name, layer in layers_of(task.federation.model).items()]
    task.federation.logits(theta, x)
    for handle in handles:
        handle.remove()
    return found


def started(task: Task, energy: float) -> tuple[State, Tensor]:
    """Return SFU's first state and the images that it looked at."""
    batches: list[Tensor] = []
    handle = task.federation.model.register_forward_pre_hook(lambda _, inputs: batches.append(inputs[0].clone()))
    state = sfu.start(task, params_of(sfu, energy=energy))
    handle.remove()
    assert len(batches) == len(task.retained)
    for batch, client in zip(batches, task.retained, strict=True):
        own = task.federation.data.train(client)[0]
        assert len(batch) == min(len(own), task.federation.training.batch_size)
        assert all((own == image).flatten(1).all(1).any() for image in batch)
    return state, torch.cat(batches)


def flat_images(x: Tensor) -> Tensor:
    """Return images [n, h, w, c] of one colour each: their patches span so little that convolutions can move."""
    return x[:, :1, :1].expand_as(x).clone()


SYSTEMS: dict[str, tuple[Callable[[], Task], set[str]]] = {
    "mlp": (lambda: make_task(make_federation(batch_size=3)), {"1", "3", "5"}),
    "lenet5": (lambda: model_task("lenet5", GREY), {"7", "9", "11"}),
    "lenet5 on flat images": (lambda: model_task("lenet5", GREY, flat_images), {"7", "9", "11"}),
    "cnn": (lambda: model_task("cnn", COLOUR, channels=8), {"7", "9", "11"}),
    "cnn on flat images": (
        lambda: model_task("cnn", COLOUR, flat_images, channels=8),
        {"0", "3", "7", "9", "11"},
    ),
}


@pytest.mark.parametrize("kind", list(SYSTEMS))
def test_sfu_with_all_energy_leaves_every_layers_output_on_the_sampled_batches(kind: str) -> None:
    build, movable = SYSTEMS[kind]
    task = build()
    state, x = started(task, 1.0)
    before = observed(task, task.original_model, x, "outputs")
    for round in range(2):
        state = sfu.step(task, params_of(sfu, energy=1.0), state, round)
    after = observed(task, theta_of(state), x, "outputs")
    for name, output in before.items():
        torch.testing.assert_close(after[name], output, rtol=1e-4, atol=1e-5 * output.abs().max().item())
    moved = task.federation.layout.named(theta_of(state) - task.original_model)
    assert {name.removesuffix(".weight") for name, piece in moved.items() if piece.norm() > 1e-4} >= movable
    ascent = task.federation.local_updates(task.original_model, task.forgotten, 0, "negative_cross_entropy").delta[0]
    unguarded = observed(task, task.original_model + ascent, x, "outputs")
    last = list(before)[-1]
    assert (unguarded[last] - before[last]).abs().max() > 100 * (after[last] - before[last]).abs().max()


@pytest.mark.parametrize("energy", [0.3, 1.0])
@pytest.mark.parametrize("kind", list(SYSTEMS))
def test_sfu_moves_no_bias(kind: str, energy: float) -> None:
    task = SYSTEMS[kind][0]()
    state, _ = started(task, energy)
    named = task.federation.layout.named
    moved = named(theta_of(sfu.step(task, params_of(sfu, energy=energy), state, 0)) - task.original_model)
    ascent = task.federation.local_updates(task.original_model, task.forgotten, 0, "negative_cross_entropy").delta[0]
    biases = [name for name in moved if name.endswith("bias")]
    assert len(biases) == len(moved) // 2
    for name in biases:
        assert not moved[name].any()
        assert named(ascent)[name].any()


def test_sfu_with_little_energy_changes_outputs() -> None:
    task = make_task()
    state, x = started(task, 0.3)
    theta = theta_of(sfu.step(task, params_of(sfu, energy=0.3), state, 0))
    before, after = (task.federation.logits(model, x) for model in (task.original_model, theta))
    assert (after - before).abs().max() > 1e-3


def test_sfu_takes_from_the_mean_ascent_exactly_the_part_in_its_subspace() -> None:
    task = make_task(make_federation(make_data(make_partition((7, 12, 9, 8), (1, 3)))))
    state, x = started(task, 0.9)
    fresh, theta = make_federation(task.federation.data), task.original_model
    ascent = fresh.layout.named(fresh.local_updates(theta, [1, 3], 0, "negative_cross_entropy").delta.mean(0))
    moved = fresh.layout.named(theta_of(sfu.step(task, params_of(sfu, energy=0.9), state, 0)) - theta)
    for name, inputs in observed(task, theta, x, "inputs").items():
        _, values, vh = np.linalg.svd(inputs.double().numpy())
        share = np.cumsum(values**2) / np.sum(values**2)
        basis = vh[: int(np.searchsorted(share, 0.9)) + 1]
        g = ascent[f"{name}.weight"].double().numpy()
        np.testing.assert_allclose(moved[f"{name}.weight"], g - g @ basis.T @ basis, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["mlp", "cnn on flat images"])
def test_the_basis_of_sfu_is_orthonormal_and_just_large_enough_for_its_energy(kind: str) -> None:
    task = SYSTEMS[kind][0]()
    ranks: list[list[int]] = []
    for energy in (0.3, 0.7, 0.95, 1.0):
        state, x = started(task, energy)
        inputs = observed(task, task.original_model, x, "inputs")
        assert state.keys() == {"theta", *(f"basis.{name}.weight" for name in inputs)}
        ranks.append([])
        for name, layer in layers_of(task.federation.model).items():
            basis = state[f"basis.{name}.weight"]
            assert isinstance(basis, Tensor)
            rank = basis.shape[1]
            torch.testing.assert_close(basis.T @ basis, torch.eye(rank), rtol=0, atol=1e-5)
            rows = inputs[name]
            if isinstance(layer, nn.Conv2d):  # patches of 5 x 5, cut out in another way
                rows = rows.unfold(2, 5, 1).unfold(3, 5, 1).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(0, 2)
            rows = rows.double()
            kept = (rows @ basis.double()).square().sum(0) / rows.square().sum()
            if energy < 1:
                assert kept.sum() >= energy - 1e-6
                assert kept[:-1].sum() < energy
            else:
                assert rank == int(torch.linalg.matrix_rank(rows, rtol=1e-5))
                assert kept.sum().item() == pytest.approx(1, abs=1e-6)
            ranks[-1].append(rank)
    table = np.array(ranks)
    assert (np.diff(table, axis=0) >= 0).all()
    assert (table[-1] > table[0]).all()


# ---- FedOSD: the variants of its ablation --------------------------------------------------------------------------


def stepped(round: int = 2, seed: int = 3, **params: Any) -> tuple[Tensor, Tensor, Task]:
    """Return theta before and after a round of FedOSD."""
    task = make_task(make_federation(make_data(make_partition((7, 12, 9, 8), (1, 3))), lr=0.05, seed=seed))
    theta = task.original_model
    return theta, theta_of(fedosd.step(task, params_of(fedosd, **params), {"theta": theta}, round)), task


def plain(theta: Tensor, objective: Any, round: int = 2) -> tuple[Tensor, Tensor]:
    """Return the retained updates and the sum of the forgotten ones, by a federation of their own."""
    fresh = make_federation(make_data(make_partition((7, 12, 9, 8), (1, 3))), lr=0.05)
    one, two = fresh.local_updates(theta, [1, 3], round, objective).delta
    return fresh.local_updates(theta, [0, 2], round).delta, one + two


def naive(logits: Tensor, labels: Tensor) -> Tensor:
    """-log(1 - p_y) as it is written."""
    return -torch.log(1 - logits.softmax(1).gather(1, labels[:, None])[:, 0])


def test_m1_is_fedosd_with_ascent_on_ce() -> None:
    theta, found, _ = stepped(loss="ascent")
    retained, target = plain(theta, lambda logits, labels: logits.log_softmax(1).gather(1, labels[:, None])[:, 0])
    torch.testing.assert_close(found, theta + fedosd.direction(retained, target), rtol=0, atol=1e-6)
    assert (found - stepped(loss="uce")[1]).norm() > 0.1 * (found - theta).norm()


def test_m2_is_the_targets_update_alone() -> None:
    theta, found, task = stepped(direction="target")
    assert torch.equal(found, theta + plain(theta, unlearning_cross_entropy)[1])
    assert task.federation.cost.client_rounds == 2


def test_m6_is_fedosd_with_uce_undivided() -> None:
    theta, found, _ = stepped(loss="uce-undivided")
    retained, target = plain(theta, naive)
    torch.testing.assert_close(found, theta + fedosd.direction(retained, target), rtol=0, atol=1e-6)
    assert (found - stepped(loss="uce")[1]).norm() > 0.1 * (found - theta).norm()


# M3


def test_a_round_of_m3_moves_along_the_common_descent_direction() -> None:
    theta, found, _ = stepped(direction="common-descent")
    retained, target = plain(theta, unlearning_cross_entropy)
    moved = found - theta
    assert moved.norm().item() == pytest.approx(target.norm().item(), rel=1e-4)
    assert cosines(torch.cat([retained, target[None]]), moved).min() > 0
    torch.testing.assert_close(moved, fedosd.common_descent(retained, target), rtol=0, atol=1e-6)


def spread(decades: float, m: int, seed: int) -> Tensor:
    norms = 10 ** (decades * (torch.rand(m, 1, generator=torch.Generator().manual_seed(seed)) - 0.5))
    return random(m, 8 if seed % 2 else 40, seed=seed) * norms


HULLS: dict[str, Callable[[int], Tensor]] = {
    "alike in norm": lambda seed: spread(0, 2 + seed % 9, seed),
    "norms over 4 decades": lambda seed: spread(4, 2 + seed % 9, seed),
    "norms over 8 decades": lambda seed: spread(8, 2 + seed % 9, seed),
    "norms over 12 decades": lambda seed: spread(12, 2 + seed % 9, seed),
    "duplicated": lambda seed: random(3, 40, seed=seed).repeat(2, 1),
    "duplicated and of other lengths": lambda seed: torch.cat([random(3, 40, seed=seed), 7 * random(2, 40, seed=seed)]),
    "nearly opposed by 1e-2": lambda seed: nearly_opposed(1e-2, seed),
    "nearly opposed by 1e-4": lambda seed: nearly_opposed(1e-4, seed),
    "more rows than dimensions": lambda seed: random(12, 5, seed=seed) + 0.7,
}


def nearly_opposed(by: float, seed: int) -> Tensor:
    one, other, more = random(3, 40, seed=seed)
    return torch.stack([one, by * other - one, more, by * other - 2 * more])


@pytest.mark.parametrize("kind", list(HULLS))
def test_no_clients_gradient_opposes_the_common_descent_direction(kind: str) -> None:
    directions = 0
    for seed in range(40):
        rows = HULLS[kind](seed)
        d = fedosd.common_descent(rows[:-1], rows[-1])
        assert d.dtype == torch.float32
        if not d.any():
            continue
        directions += 1
        assert d.norm().item() == pytest.approx(rows[-1].norm().item(), rel=1e-5)
        assert cosines(rows, d).min() >= -1e-6, seed
    assert directions >= 10


def test_the_minimum_norm_point_is_found_where_norms_differ_by_nine_decades() -> None:
    """A system on which scipy's non-negative least squares ended without an answer when its columns had these norms."""
    draws = torch.Generator().manual_seed(19638)
    decades = int(torch.randint(0, 13, (1,), generator=draws))
    m = 2 + int(torch.randint(0, 10, (1,), generator=draws))
    assert (decades, m) == (9, 11)
    rows = torch.randn(m, 8, generator=draws)
    rows = rows * 10 ** (torch.rand(m, 1, generator=draws) * decades - decades / 2)
    weights = fedosd.minimum_norm_weights(rows.double())
    assert (weights >= 0).all()
    assert weights.sum().item() == pytest.approx(1)
    assert cosines(rows, weights @ rows.double()).min() >= -1e-6


@pytest.mark.parametrize(
    "rows",
    [
        torch.stack([random(10), -random(10)]),
        torch.stack([random(10), -3 * random(10), random(10, seed=1)]),
        torch.cat([random(3, 10), -random(3, 10).sum(0)[None]]),
        torch.cat([random(3, 10), torch.zeros(1, 10)]),
        torch.zeros(3, 10),
    ],
    ids=["opposite", "opposite, among others", "their sum", "a client at rest", "nobody moves"],
)
def test_there_is_no_common_descent_where_the_hull_contains_zero(rows: Tensor) -> None:
    for target in range(len(rows)):
        retained = torch.cat([rows[:target], rows[target + 1 :]])
        assert torch.equal(fedosd.common_descent(retained, rows[target]), torch.zeros(rows.shape[1]))


def by_active_sets(rows: np.ndarray[Any, Any]) -> float:
    """Return the least squared norm in the convex hull of rows [m, d]: the best feasible point of all active sets."""
    best = math.inf
    for size in range(1, len(rows) + 1):
        for active in combinations(range(len(rows)), size):
            gram = rows[list(active)] @ rows[list(active)].T
            system = np.block([[gram, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            weights = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0][:size]
            if (weights >= -1e-12).all() and abs(weights.sum() - 1) < 1e-9:
                best = min(best, float(weights @ gram @ weights))
    return best


def by_slsqp(rows: np.ndarray[Any, Any]) -> float:
    """Return the same, by a general solver of quadratic programmes."""
    gram, m = rows @ rows.T, len(rows)
    found = minimize(
        lambda w: w @ gram @ w,
        np.full(m, 1 / m),
        jac=lambda w: 2 * gram @ w,
        bounds=[(0, 1)] * m,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(m)},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    return float(found.fun)


@pytest.mark.parametrize("reference", [by_active_sets, by_slsqp])
def test_minimum_norm_weights_solve_the_quadratic_programme(reference: Callable[[Any], float]) -> None:
    inside = 0
    for seed in range(30):
        m, d = 1 + seed % 5, 2 + seed % 4
        rows = (random(m, d, seed=seed) + 0.5 * random(d, seed=100 + seed)).double()
        if seed % 7 == 6:
            rows = torch.cat([rows[:-1], rows[:1]])  # a duplicate
        weights = fedosd.minimum_norm_weights(rows)
        assert weights.shape == (m,)
        assert (weights >= 0).all()
        assert weights.sum().item() == pytest.approx(1, abs=1e-12)
        square = (weights @ rows).square().sum().item()
        assert square == pytest.approx(reference(rows.numpy()), abs=1e-6)
        inside += int(((weights > 1e-6).sum() > 1) and square > 1e-3)
    assert inside >= 5  # neither a corner nor zero


# M4


@pytest.mark.parametrize("seed", range(6))
def test_m4_is_orthogonal_on_the_targets_side_and_as_long(seed: int) -> None:
    retained, target, drawn = random(5, 40, seed=seed), random(40, seed=50 + seed), random(40, seed=100 + seed)
    found = fedosd.random_direction(retained, target, drawn)
    assert cosines(retained, found).abs().max() <= 1e-6
    assert found @ target > 0  # d . g_u < 0
    assert found.norm().item() == pytest.approx(target.norm().item(), rel=1e-6)
    assert cosines(found[None], fedosd.direction(retained, target)).item() < 0.9
    assert torch.equal(fedosd.random_direction(retained, target, -drawn), found)  # turned, not drawn again
    basis = np.linalg.svd(retained.double().numpy())[2][:5]
    rest = drawn.double().numpy() - basis.T @ (basis @ drawn.double().numpy())
    assert abs(cosines(found[None], torch.from_numpy(rest)).item()) == pytest.approx(1, abs=1e-6)


def test_m4_draws_by_seed_and_round() -> None:
    def drawn(round: int, seed: int = 3) -> Tensor:
        theta, found, _ = stepped(round, seed, direction="random")
        return found - theta

    torch.manual_seed(0)
    one = drawn(2)
    torch.manual_seed(1)
    assert torch.equal(one, drawn(2))
    for other in (drawn(1), drawn(3), drawn(2, seed=4)):
        assert abs(cosines(other[None], one).item()) < 0.3
    theta = stepped()[0]
    retained, target = plain(theta, unlearning_cross_entropy)
    assert cosines(retained, one).abs().max() <= 1e-3  # float32 theta
    assert one @ target > 0
    assert one.norm().item() == pytest.approx(target.norm().item(), rel=1e-4)


# M6


def test_uce_undivided_is_minus_log_of_one_minus_p_where_that_is_stable() -> None:
    logits, labels = 3 * random(200, 10).double(), torch.arange(200) % 10
    assert naive(logits, labels).max() > 1
    torch.testing.assert_close(fedosd.undivided(logits, labels), naive(logits, labels), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(
        fedosd.undivided(logits.float(), labels), naive(logits, labels).float(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gap", [30.0, 100.0, 1000.0])
def test_uce_undivided_and_its_gradient_stay_right_at_p_close_to_one(gap: float, dtype: torch.dtype) -> None:
    logits = torch.tensor([[0.0, gap, -1.0], [gap, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    labels = torch.tensor([1, 0])
    loss = fedosd.undivided(logits, labels)
    others = [math.log(1 + math.exp(-1)), math.log(2)]  # log-sum-exp of the other logits
    assert loss.tolist() == pytest.approx([gap - one for one in others], rel=1e-6)  # unbounded in the gap
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    share = 1 / (1 + math.exp(-1))
    expected = torch.tensor([[-share, 1, share - 1], [1, -0.5, -0.5]], dtype=dtype)
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-6)
    assert unlearning_cross_entropy(logits, labels).max() <= math.log(2) + 1e-6


def test_uce_undivided_vanishes_with_p_and_its_gradient_with_it() -> None:
    logits = torch.tensor([[0.0, -50.0, 0.0]], requires_grad=True)
    loss = fedosd.undivided(logits, torch.tensor([1]))
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert abs(loss.item()) < 1e-6
    assert gradient.abs().max() < 1e-6


def test_uce_undivided_trains_all_clients_at_once_as_one_after_the_other() -> None:
    data = make_data(make_partition((7, 12, 9, 8), (1, 3)))
    theta = make_task(make_federation(data)).original_model
    one, two = (make_federation(data, strategy=kind) for kind in ("sequential", "vectorised"))
    found = [federation.local_updates(theta, [1, 3], 0, fedosd.undivided).delta for federation in (one, two)]
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-6)


# ---- NFResNet-18 ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "parameters"), [({}, 11_215_332), ({"stem": 64, "widths": [128, 256]}, 2_650_852)], ids=["four", "two"]
)
def test_nfresnet18_has_its_number_of_parameters(params: dict[str, Any], parameters: int) -> None:
    with torch.device("meta"):
        net = nfresnet18.build(COLOUR, 100, nfresnet18.Params(**params))
    assert sum(p.numel() for p in net.parameters()) == parameters
    assert not list(net.buffers())


def test_a_standardised_filter_has_mean_zero_and_the_norm_of_its_gain() -> None:
    layer = nfresnet18.Convolution(3, 5, 3)
    gains = torch.tensor([1.0, 0.5, 2.0, -1.5, 0.0])
    with torch.no_grad():
        layer.weight.mul_(4).add_(2)  # far from mean zero
        layer.gain.copy_(gains)
        impulses = torch.zeros(3, 3, 3, 3)
        impulses[range(3), range(3), 1, 1] = 1
        filters = layer(impulses).transpose(0, 1).flip(2, 3)  # [output, input, 3, 3]
    torch.testing.assert_close(filters.flatten(1).mean(1), torch.zeros(5), rtol=0, atol=1e-6)
    torch.testing.assert_close(filters.flatten(1).norm(dim=1), gains.abs(), rtol=1e-5, atol=1e-6)
    weight = layer.weight.detach().flatten(1)
    aligned = F.cosine_similarity(filters.flatten(1), weight - weight.mean(1, keepdim=True))
    torch.testing.assert_close(aligned, gains.sign(), rtol=1e-5, atol=1e-6)
    x = random(2, 3, 6, 6)
    torch.testing.assert_close(layer(x), F.conv2d(x, filters, padding=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("widths", [[16, 32, 64, 128], [128, 256]], ids=["four", "two"])
def test_channels_keep_their_variance_through_the_blocks_of_nfresnet18(widths: list[int]) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nfresnet18.build(COLOUR, 10, nfresnet18.Params(stem=widths[0], widths=widths))
    assert isinstance(net, nn.Sequential)
    inner: list[Tensor] = []
    for block in net:
        if isinstance(block, nfresnet18.Block):
            block.second.register_forward_hook(lambda _, inputs, output: inner.append(output))
    seen, h = [], random(8, 3, 32, 32)
    with torch.no_grad():
        for block in net:
            h = block(h)
            if isinstance(block, nfresnet18.Block):
                seen.append(h.var(dim=(0, 2, 3)).mean().item())
    assert len(seen) == 2 * len(widths)
    assert all(0.5 < variance < 2 for variance in seen), seen
    branches = [part.var(dim=(0, 2, 3)).mean().item() for part in inner]
    assert all(0.5 < variance < 2 for variance in branches), branches


# ---- the CNN and its dropout ---------------------------------------------------------------------------------------


def dropout_task(
    seed: int = 3, *, sizes: tuple[int, ...] = (7, 12, 9), dropout: tuple[float, float] = (0.2, 0.5)
) -> Task:
    training = {"lr_decay": 1.0, "local_epochs": 1}
    return model_task("cnn", COLOUR, sizes=sizes, seed=seed, training=training, channels=4, dropout=dropout)


def model_task(
    model: str,
    shape: tuple[int, int, int],
    images: Callable[[Tensor], Tensor] = lambda x: x,
    *,
    sizes: tuple[int, ...] = (7, 12, 9),
    seed: int = 3,
    training: dict[str, Any] | None = None,
    **params: Any,
) -> Task:
    """Return a task with a model of given hyper-parameters; batches of two unless `training` says otherwise."""
    part = make_partition(sizes)
    data = make_data(part, shape)
    data = ClientData(images(data.x), data.y, part, data.classes, "all")
    values: dict[str, Any] = {"lr": 0.02, "lr_decay": 0.9, "batch_size": 4, "local_epochs": 1, **(training or {})}
    build = builder(model, shape, **params)
    federation = Federation(build(), data, LocalTraining(**values), "unlearning", seed)
    original = initial_parameters(build, 99)
    return Task(federation, build, part.forgotten, part.retained, 3, seed, original)


def test_the_cnn_has_its_number_of_parameters_with_and_without_dropout() -> None:
    for dropout in ((0.0, 0.0), (0.2, 0.5)):
        net = builder("cnn", COLOUR, dropout=dropout)()
        assert Layout(net).size == 797_962
        shares = [layer.p for layer in net.modules() if isinstance(layer, nn.Dropout)]
        assert shares == ([0.2, 0.2, 0.5, 0.5] if any(dropout) else [])


def test_dropout_is_drawn_by_name_and_leaves_the_global_generator_alone() -> None:
    found = []
    for seed in (0, 1):
        task = dropout_task()
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        found.append(task.federation.local_updates(task.original_model, [0, 1, 2], 1).delta)
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(found[0], found[1])
    alone = dropout_task()  # whoever trains before
    assert torch.equal(alone.federation.local_updates(alone.original_model, [2], 1).delta[0], found[0][2])
    other = dropout_task(seed=4)
    assert not torch.equal(other.federation.local_updates(alone.original_model, [2], 1).delta[0], found[0][2])


def test_dropout_differs_between_rounds_and_clients_and_is_all_that_does() -> None:
    """Clients of one sample, the same: their batches and rates cannot differ."""
    for dropout, alike in (((0.2, 0.5), False), ((0.0, 0.0), True)):
        task = dropout_task(sizes=(1, 1, 1), dropout=dropout)
        data = task.federation.data
        rows = torch.from_numpy(np.concatenate(data.partition.train))
        data.x[rows], data.y[rows] = data.x[rows[:1]], data.y[rows[:1]]
        deltas = [task.federation.local_updates(task.original_model, [0, 2], round).delta for round in (0, 1)]
        distinct = torch.unique(torch.cat(deltas), dim=0)
        assert len(distinct) == (1 if alike else 4)


def test_evaluation_has_no_dropout_also_after_training() -> None:
    task, without = dropout_task(), dropout_task(dropout=(0.0, 0.0))
    x, theta = task.federation.data.train(0)[0], task.original_model
    one = task.federation.logits(theta, x)
    task.federation.local_updates(theta, [0], 0)
    assert torch.equal(task.federation.logits(theta, x), one)
    assert torch.equal(without.federation.logits(theta, x), one)


def test_training_drops_what_it_should() -> None:
    task = dropout_task(dropout=(0.2, 0.5))
    shares: dict[float, list[float]] = {0.2: [], 0.5: []}

    def look(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        assert isinstance(layer, nn.Dropout)
        present = inputs[0] != 0
        shares[layer.p].append(((output == 0) & present).sum().item() / present.sum().item())
        kept = present & (output != 0)
        torch.testing.assert_close(output[kept], inputs[0][kept] / (1 - layer.p))

    for layer in task.federation.model.modules():
        if isinstance(layer, nn.Dropout):
            layer.register_forward_hook(look)
    task.federation.local_updates(task.original_model, [0, 1, 2], 0)
    assert {share: pytest.approx(share, abs=0.05) for share in shares} == {
        share: float(np.mean(found)) for share, found in shares.items()
    }


def test_dropout_with_all_clients_at_once_is_refused() -> None:
    task = dropout_task()
    with pytest.raises(ValueError, match="only the sequential strategy"):
        Federation(task.build(), task.federation.data, task.federation.training, "unlearning", 3, "vectorised")
    without = dropout_task(dropout=(0.0, 0.0))
    Federation(without.build(), task.federation.data, task.federation.training, "unlearning", 3, "vectorised")
    assert task.federation.strategy == "sequential"


# ---- the choice among points ---------------------------------------------------------------------------------------


def evaluation(
    r_acc: float, asr: float | None = 0.0, after: tuple[float, float] | None = None
) -> dict[str, dict[str, float]]:
    """Return an evaluation with these validation numbers; those that a table shows point the other way."""
    found = {"original": {"r_acc": 0.5}}
    for role, pair in (("unlearned", (r_acc, asr)), ("recovered", after)):
        if pair is not None:
            found[role] = {"r_acc_validation": pair[0], "r_acc": 1 - pair[0], "asr": 0.0}
            if pair[1] is not None:
                found[role] |= {"asr_validation": pair[1], "asr": 1 - pair[1]}
    return found


def diverged(round: int) -> dict[str, dict[str, float]]:
    return {"unlearned": {"diverged_round": round}, "recovered": {"diverged_round": round}}


CHOICES: dict[str, tuple[dict[str, list[Any]], str]] = {
    "the highest r-acc": ({"a": [evaluation(0.7)], "b": [evaluation(0.8)], "c": [evaluation(0.75)]}, "b"),
    "minus asr": ({"a": [evaluation(0.9, 0.5)], "b": [evaluation(0.6, 0.1)]}, "b"),
    "mean over seeds": (
        {"a": [evaluation(0.9), evaluation(0.1)], "b": [evaluation(0.6), evaluation(0.5)]},
        "b",
    ),
    "unlearning before post-training": (
        {"a": [evaluation(0.6, 0, (0.9, 0.0))], "b": [evaluation(0.7, 0, (0.1, 0.0))]},
        "b",
    ),
    "post-training among equals": (
        {"a": [evaluation(0.7, 0, (0.8, 0.3))], "b": [evaluation(0.7, 0, (0.75, 0.0))]},
        "b",
    ),
    "equal but for rounding": (
        {"a": [evaluation(0.3, 0, (0.7, 0.0))], "b": [evaluation(0.1 + 0.2, 0, (0.6, 0.0))]},
        "a",
    ),
    "the first of equals": ({"b": [evaluation(0.7)], "a": [evaluation(0.7)], "c": [evaluation(0.7)]}, "b"),
    "no diverged point, however good its other seed": (
        {"a": [evaluation(1.0), diverged(9)], "b": [evaluation(0.1, 0.9), evaluation(0.1, 0.9)]},
        "b",
    ),
    "none that diverged in post-training": (
        {
            "a": [{**evaluation(0.9), "recovered": {"diverged_round": 9.0}}],
            "b": [evaluation(0.2, 0, (0.1, 0.9))],
        },
        "b",
    ),
    "the fewest diverged seeds": (
        {
            "a": [diverged(90), diverged(90), evaluation(0.9)],
            "b": [diverged(2), evaluation(0.1), evaluation(0.1)],
            "c": [diverged(99), diverged(99), diverged(99)],
        },
        "b",
    ),
    "of as many diverged seeds the later ones": (
        {"a": [diverged(3), evaluation(0.9)], "b": [evaluation(0.1), diverged(8)], "c": [diverged(4), evaluation(0.5)]},
        "b",
    ),
    "where all diverged, the one that lasted longest": (
        {"a": [diverged(3), diverged(4)], "b": [diverged(2), diverged(8)], "c": [diverged(4), diverged(4)]},
        "b",
    ),
    "without a backdoor r-acc alone": (
        {"a": [evaluation(0.7, None)], "b": [evaluation(0.8, None)], "c": [evaluation(0.1, None)]},
        "b",
    ),
    "without post-training": ({"a": [evaluation(0.7, 0.2)], "b": [evaluation(0.7, 0.1)]}, "b"),
}


@pytest.mark.parametrize("rule", list(CHOICES))
def test_the_point_of_a_grid_is_chosen_by_its_rule(rule: str) -> None:
    points, expected = CHOICES[rule]
    assert selection.choose(points) == expected


def test_numbers_that_a_table_shows_do_not_matter_to_the_choice() -> None:
    points = {"a": [evaluation(0.7, 0.2, (0.6, 0.1))], "b": [evaluation(0.7, 0.2, (0.6, 0.0))]}
    for name in ("a", "b"):
        for role in ("original", "unlearned", "recovered"):
            points[name][0][role] |= {"r_acc": float(name == "a"), "asr": float(name == "b"), "distance": 5.0}
    assert selection.choose(points) == "b"
    assert [selection.score(points["a"], role) for role in ("unlearned", "recovered")] == pytest.approx([0.5, 0.5])
