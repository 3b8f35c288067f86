from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.federation import recovery
from fu.federation.local import Updates, aggregate, generator
from fu.federation.task import Task, initial_parameters, theta_of
from fu.histories.target_model import record as target_model
from fu.methods import ewcsga, fedosd, fupga, retrain
from fu.projections import away_from_original
from fu.training import fedavg
from tests.factories import (
    CLASSES,
    MARK,
    SIZES,
    builder,
    cosines,
    make_data,
    make_federation,
    make_partition,
    make_task,
    params_of,
)

D = 40


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# ---- FedOSD: the direction -----------------------------------------------------------------------------------------


def nearly_parallel(by: float) -> Tensor:
    return random(D, seed=1) + by * random(5, D)


ROWS: dict[str, Callable[[], Tensor]] = {
    "independent": lambda: random(6, D),
    "one": lambda: random(1, D),
    "as many as dimensions but one": lambda: random(D - 1, D),
    "duplicated": lambda: random(3, D).repeat(2, 1),
    "rank-deficient": lambda: random(6, 3) @ random(3, D, seed=1),
    "zero among others": lambda: torch.cat([random(3, D), torch.zeros(2, D)]),
    "nearly parallel by 1e-2": lambda: nearly_parallel(1e-2),
    "nearly parallel by 1e-4": lambda: nearly_parallel(1e-4),
    "nearly parallel by 1e-6": lambda: nearly_parallel(1e-6),
    "opposite": lambda: torch.cat([random(2, D), -random(2, D)]),
    "of widely different norms": lambda: random(6, D) * torch.tensor([1e-12, 1e-6, 1e-3, 1, 1e4, 1e8])[:, None],
    "tiny": lambda: 1e-15 * random(6, D),
}


@pytest.mark.parametrize("kind", list(ROWS))
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e6])
def test_fedosd_moves_orthogonally_to_every_retained_update_with_the_targets_norm(kind: str, scale: float) -> None:
    retained, target = ROWS[kind](), scale * random(D, seed=7)
    found = fedosd.direction(retained, target)
    assert found.dtype == torch.float32
    assert cosines(retained, found).abs().max() <= 1e-6
    assert found.norm().item() == pytest.approx(target.norm().item(), rel=1e-6)


@pytest.mark.parametrize("kind", ["independent", "one", "duplicated", "rank-deficient", "of widely different norms"])
def test_fedosd_direction_equals_equation_6_computed_with_a_pseudo_inverse(kind: str) -> None:
    retained, target = ROWS[kind](), random(D, seed=7)
    rows = retained.double().numpy()
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = target.double().numpy()
    rest = wanted - rows.T @ np.linalg.pinv(rows @ rows.T, rcond=1e-10) @ rows @ wanted
    expected = rest * np.linalg.norm(wanted) / np.linalg.norm(rest)
    np.testing.assert_allclose(fedosd.direction(retained, target).numpy(), expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("kind", ["independent", "duplicated", "nearly parallel by 1e-2", "zero among others"])
def test_no_other_orthogonal_vector_is_closer_to_the_target(kind: str) -> None:
    retained, target = ROWS[kind](), random(D, seed=7)
    best = fedosd.direction(retained, target)
    ours = cosines(best[None], target)
    _, values, basis = torch.linalg.svd(retained.double())
    rank = int((values > 1e-6 * values.max()).sum())
    others = random(200, D - rank).double() @ basis[rank:]
    others = torch.cat([others, best.double() + 0.01 * others])  # anywhere, and beside ours
    assert (retained.double() @ others.T).abs().max() < 1e-5
    assert ours > 0
    assert (cosines(others, target) <= ours + 1e-9).all()


def test_a_target_orthogonal_to_the_retained_updates_is_kept() -> None:
    retained, target = torch.eye(D)[:3] * torch.tensor([[1.0], [5.0], [-2.0]]), random(D)
    target[:3] = 0
    torch.testing.assert_close(fedosd.direction(retained, target), target, rtol=1e-6, atol=0)


def test_without_retained_conflict_directions_the_target_is_kept() -> None:
    target = random(D)
    torch.testing.assert_close(fedosd.direction(torch.zeros(3, D), target), target, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("retained", "target"),
    [
        (torch.eye(D)[:3], torch.eye(D)[0] * 4 - torch.eye(D)[2]),
        (torch.tensor([[1.0, 2, 0, 0], [0, 1, -1, 0], [1, 3, -1, 0]]), torch.tensor([2.0, 7, -3, 0])),
        (random(2, D), random(2, D)[1]),
        (random(2, D), -2 * random(2, D)[0]),
        (random(D, D), random(D, seed=7)),
        (random(3, D), torch.zeros(D)),
    ],
    ids=["axes", "integers", "one of them", "opposite of one", "everything", "no target"],
)
def test_there_is_no_direction_where_the_target_lies_in_the_span(retained: Tensor, target: Tensor) -> None:
    assert torch.equal(fedosd.direction(retained, target), torch.zeros_like(target))


DIRECTIONS = ["orthogonal", "target", "common-descent", "random", "as-published-code"]


@pytest.mark.parametrize("broken", ["nobody's", "a retained client's", "the target's"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_single_infinite_number_in_an_update_that_is_used_ends_the_run(
    direction: str, value: float, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task()
    whole = task.federation.local_updates

    def with_broken(theta: Tensor, clients: list[int], *args: Any) -> Updates:
        found = whole(theta, clients, *args)
        delta = found.delta.clone()
        if broken == ("the target's" if clients == task.forgotten else "a retained client's"):
            delta[-1, 2] = value
        return replace(found, delta=delta)

    monkeypatch.setattr(task.federation, "local_updates", with_broken)
    theta = theta_of(fedosd.step(task, params_of(fedosd, direction=direction), {"theta": task.original_model}, 0))
    if broken == "nobody's" or (direction == "target" and broken == "a retained client's"):
        assert torch.isfinite(theta).all()
    elif direction == "target":
        assert theta.isfinite().logical_not().nonzero().tolist() == [[2]]
    else:
        assert theta.isnan().all()


@pytest.mark.parametrize("kind", ["independent", "duplicated", "rank-deficient", "zero among others"])
def test_the_published_direction_is_finite_with_the_targets_norm(kind: str) -> None:
    retained, target = ROWS[kind](), random(D, seed=7)
    found = fedosd.published_direction(retained, target)
    assert torch.isfinite(found).all()
    assert found.norm().item() == pytest.approx(target.norm().item(), rel=1e-5)
    assert cosines(retained, found).abs().max() <= 1e-3


def test_the_published_code_does_not_drop_the_directions_below_its_tolerance() -> None:
    weak = 1e-5 * random(1, D)  # its square lies below 1e-6
    target = random(D, seed=7)
    kept = fedosd.published_direction(weak, target)
    torch.testing.assert_close(kept, target)
    assert cosines(weak, kept).abs() > 1e-3
    assert cosines(weak, fedosd.direction(weak, target)).abs() <= 1e-6


@pytest.mark.parametrize("direction", ["orthogonal", "as-published-code"])
def test_a_round_of_fedosd_moves_along_its_direction(direction: str) -> None:
    task = make_task(make_federation(make_data(make_partition((7, 12, 9, 8), (1, 3))), lr=0.05))
    theta, p = task.original_model, params_of(fedosd, direction=direction)
    found = theta_of(fedosd.step(task, p, {"theta": theta}, 2)) - theta
    fresh = make_federation(task.federation.data, lr=0.05)
    retained = fresh.local_updates(theta, [0, 2], 2).delta
    one, two = fresh.local_updates(theta, [1, 3], 2, "unlearning_cross_entropy").delta
    assert torch.equal(theta_of(fedosd.start(task, p)), theta)
    assert found.norm().item() == pytest.approx((one + two).norm().item(), rel=1e-4)
    assert cosines(retained, found).abs().max() <= 1e-3  # float32 theta
    torch.testing.assert_close(found, fedosd.direction(retained, one + two), rtol=0, atol=1e-5)
    assert task.federation.cost == fresh.cost


# ---- post-training and its projection --------------------------------------------------------------------------------


@pytest.fixture
def away() -> tuple[Task, Tensor]:
    """A task and a theta away from its original model."""
    task = make_task()
    return task, task.original_model + 0.1 * random(task.original_model.numel(), seed=5)


def towards_and_away(task: Task, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return six updates, and which of them pull back to the original model."""
    line = theta - task.original_model
    signs = torch.tensor([-0.5, 0.5, -0.01, 0.01, -2.0, 2.0])
    side = random(6, len(line), seed=6)
    side = side - (side @ line / (line @ line))[:, None] * line
    return 0.01 * (side / side.norm(dim=1, keepdim=True) + signs[:, None] * line / line.norm()), signs < 0


def test_post_training_projects_exactly_the_updates_that_pull_back(away: tuple[Task, Tensor]) -> None:
    task, theta = away
    delta, back = towards_and_away(task, theta)
    found = away_from_original.project(task, params_of(away_from_original), theta, delta)
    assert torch.equal(found[~back], delta[~back])
    assert (found[back] != delta[back]).any(1).all()


@pytest.mark.parametrize("mode", ["conflicting", "always"])
def test_projected_updates_are_orthogonal_to_the_way_back_and_keep_their_norm(
    away: tuple[Task, Tensor], mode: str
) -> None:
    task, theta = away
    delta, back = towards_and_away(task, theta)
    p = params_of(away_from_original, where=mode)
    found = away_from_original.project(task, p, theta, delta)
    changed = back if mode == "conflicting" else torch.ones_like(back)
    assert torch.equal((found != delta).any(1), changed)
    assert cosines(found[changed], theta - task.original_model).abs().max() <= 1e-5
    torch.testing.assert_close(found.norm(dim=1), delta.norm(dim=1), rtol=1e-5, atol=0)
    line = (theta - task.original_model).double()
    flat = delta.double() - (delta.double() @ line / (line @ line))[:, None] * line
    expected = flat * (delta.double().norm(dim=1) / flat.norm(dim=1))[:, None]
    torch.testing.assert_close(found[changed].double(), expected[changed], rtol=0, atol=1e-7)


@pytest.mark.parametrize("mode", ["conflicting", "always"])
def test_at_the_original_model_nothing_is_projected(mode: str) -> None:
    task = make_task()
    delta = random(4, task.original_model.numel())
    p = params_of(away_from_original, where=mode)
    assert torch.equal(away_from_original.project(task, p, task.original_model.clone(), delta), delta)


def test_an_update_of_zero_stays_zero(away: tuple[Task, Tensor]) -> None:
    task, theta = away
    delta = torch.zeros(2, len(theta))
    assert torch.equal(
        away_from_original.project(task, params_of(away_from_original, where="always"), theta, delta), delta
    )


@pytest.mark.parametrize("client_weights", ["samples", "equal"])
def test_a_post_training_round_averages_what_the_projection_leaves(
    away: tuple[Task, Tensor], client_weights: str
) -> None:
    task, theta = away
    updates = make_federation().local_updates(theta, [0, 2], 4)
    plain = theta_of(recovery.step(task, {"theta": theta}, 4, client_weights, None))
    assert torch.equal(plain, theta + aggregate(updates, client_weights))

    def second_only(at: Tensor, delta: Tensor) -> Tensor:
        assert at is theta
        return delta * torch.tensor([[0.0], [1.0]])

    found = theta_of(recovery.step(task, {"theta": theta}, 4, client_weights, second_only))
    share = SIZES[2] / (SIZES[0] + SIZES[2]) if client_weights == "samples" else 0.5
    torch.testing.assert_close(found, theta + share * updates.delta[1])


# ---- EWCSGA --------------------------------------------------------------------------------------------------------


def test_ewcsga_without_a_penalty_is_plain_ascent_of_the_target() -> None:
    task = make_task(make_federation(make_data(make_partition((7, 12, 9, 8), (1, 3)))))
    p = params_of(ewcsga, lambda_=0.0)
    state = ewcsga.start(task, p)
    assert torch.equal(theta_of(state), task.original_model)
    for round in range(2):
        theta = theta_of(state)
        fresh = make_federation(task.federation.data)
        expected = theta + fresh.local_updates(theta, [1, 3], round, "negative_cross_entropy").delta.mean(0)
        state = ewcsga.step(task, p, state, round)
        assert torch.equal(theta_of(state), expected)


def test_the_penalty_of_ewcsga_adds_lambda_times_fisher_times_distance_to_the_gradient() -> None:
    task = make_task(make_federation(local_epochs=1, batch_size=100))
    fisher = random(task.original_model.numel()).abs()
    theta = task.original_model + random(len(fisher), seed=1)
    found = theta_of(ewcsga.step(task, params_of(ewcsga, lambda_=3.0), {"theta": theta, "fisher": fisher}, 0))
    ascent = make_federation(local_epochs=1, batch_size=100).local_updates(theta, [1], 0, "negative_cross_entropy")
    expected = theta + ascent.delta[0] - 0.1 * 3 * fisher * (theta - task.original_model)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("samples", [100, 3])
def test_the_fisher_information_is_the_mean_squared_gradient_of_single_samples(samples: int) -> None:
    task = make_task()
    net = builder()()
    net.load_state_dict(task.federation.layout.named(task.original_model))
    squares = []
    for client in task.retained:
        rows = torch.randperm(SIZES[client], generator=generator(task.seed, "fisher", client))[:samples]
        x, y = task.federation.data.train(client)
        for row in rows:
            net.zero_grad()
            (-net(x[row : row + 1]).log_softmax(1)[0, y[row]]).backward()
            gradients = {name: p.grad for name, p in net.named_parameters() if p.grad is not None}
            squares.append(task.federation.layout.flatten(gradients).square())
    assert len(squares) == sum(min(samples, SIZES[client]) for client in (0, 2))
    found = ewcsga.fisher(task, samples)
    torch.testing.assert_close(found, torch.stack(squares).mean(0), rtol=1e-4, atol=1e-8)
    assert found.max() > 1e-3


def test_ewcsga_asks_only_the_forgotten_client_while_unlearning() -> None:
    task = make_task()
    p = params_of(ewcsga)
    state = ewcsga.start(task, p)
    cost = task.federation.cost
    model = 4 * task.federation.layout.size
    assert cost.samples == sum(SIZES[client] for client in task.retained)  # for the Fisher information, once
    assert cost.bytes_up == cost.bytes_down == len(task.retained) * model
    assert (cost.client_rounds, cost.steps) == (0, 0)
    before = cost.samples
    ewcsga.step(task, p, state, 0)
    assert (cost.client_rounds, cost.samples - before) == (1, 2 * SIZES[1])
    assert cost.bytes_up == (len(task.retained) + 1) * model


# ---- FUPGA ---------------------------------------------------------------------------------------------------------


def with_local_models(task: Task) -> Task:
    return replace(task, histories={"target_model": target_model(task, {}, task.original_model, 0)})


@pytest.mark.parametrize("forgotten", [(1,), (1, 3)])
def test_fupga_starts_at_the_model_without_the_forgotten_clients_part(forgotten: tuple[int, ...]) -> None:
    task = with_local_models(make_task(make_federation(make_data(make_partition((7, 12, 9, 8), forgotten)))))
    locals_ = make_federation(task.federation.data).local_updates(task.original_model, forgotten, 0).delta
    state = fupga.start(task, params_of(fupga))
    gone = len(forgotten)
    expected = (4 * task.original_model - (task.original_model + locals_).sum(0)) / (4 - gone)
    torch.testing.assert_close(theta_of(state), expected, rtol=1e-5, atol=1e-6)
    assert state["theta"] is state["reference"]


def test_the_radius_of_fupga_is_a_third_of_the_mean_distance_to_ten_random_models() -> None:
    task = with_local_models(make_task())
    models = torch.stack([initial_parameters(builder(), 3, "model", "random", k) for k in range(10)])
    assert torch.unique(models, dim=0).shape == models.shape
    radius = fupga.start(task, params_of(fupga))["radius"]
    assert radius == pytest.approx((models - task.original_model).norm(dim=1).mean().item() / 3, rel=1e-5)


def test_fupga_never_leaves_the_ball_around_its_reference() -> None:
    task = with_local_models(make_task(make_federation(lr=0.5)))
    p = params_of(fupga, radius_share=0.02)
    state = fupga.start(task, p)
    reference, radius = state["reference"], state["radius"]
    assert isinstance(reference, Tensor)
    for round in range(3):
        state = fupga.step(task, p, state, round)
        distance = (theta_of(state) - reference).norm().item()
        assert distance <= radius * (1 + 1e-5)
        assert distance > 0.9 * radius  # the ascent is strong enough to be held back
        assert state["reference"] is reference
        assert state["radius"] == radius


def test_fupga_projects_every_step() -> None:
    task = with_local_models(make_task(make_federation(lr=0.5)))
    p = params_of(fupga, radius_share=0.02)
    state = fupga.start(task, p)
    reference, radius = state["reference"], state["radius"]
    seen: list[float] = []

    def look(module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
        weights = task.federation.layout.flatten(dict(module.named_parameters()))
        seen.append((weights - reference).norm().item())

    task.federation.model.register_forward_pre_hook(look)
    fupga.step(task, p, state, 0)
    assert len(seen) == 6
    assert seen[0] == 0
    assert seen[1:] == pytest.approx([radius] * 5, rel=1e-4)


def test_fupga_inside_a_large_ball_is_plain_ascent_of_the_target() -> None:
    task = with_local_models(make_task())
    p = params_of(fupga, radius_share=100)
    state = fupga.start(task, p)
    expected = make_federation().local_updates(theta_of(state), [1], 0, "negative_cross_entropy").delta[0]
    found = theta_of(fupga.step(task, p, state, 0)) - theta_of(state)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert task.federation.cost.client_rounds == 1


# ---- retraining ----------------------------------------------------------------------------------------------------


def test_retraining_never_touches_the_data_of_a_forgotten_client() -> None:
    part = make_partition()
    clean = make_data(part)
    poisoned_x = clean.x.clone()
    poisoned_x[part.train[1]] = torch.nan
    results = []
    for x in (clean.x, poisoned_x):
        data = ClientData(x, clean.y, part, CLASSES, "all")
        task = make_task(make_federation(data))
        state = retrain.start(task, params_of(retrain))
        for round in range(3):
            state = retrain.step(task, params_of(retrain), state, round)
        results.append(theta_of(state))
        assert data.train(1)[0].isnan().any() == x.isnan().any()
    assert torch.isfinite(results[0]).all()
    assert torch.equal(results[0], results[1])


def test_retraining_starts_from_another_model_than_the_training() -> None:
    task = make_task(make_federation(seed=3))
    again = theta_of(retrain.start(task, params_of(retrain)))
    assert torch.equal(again, initial_parameters(builder(), 3, "model", "retrained"))
    assert not torch.equal(again, theta_of(fedavg.start(task, params_of(fedavg))))
    other_seed = make_task(make_federation(seed=4))
    assert not torch.equal(again, theta_of(retrain.start(other_seed, params_of(retrain))))


@pytest.mark.parametrize("client_weights", ["samples", "equal"])
@pytest.mark.parametrize(("plugin", "clients"), [(retrain, [0, 2]), (fedavg, [0, 1, 2])])
def test_a_round_of_federated_averaging_adds_the_mean_update(
    plugin: Any, clients: list[int], client_weights: str
) -> None:
    task = make_task()
    p = params_of(plugin, client_weights=client_weights)
    theta = task.original_model
    delta = make_federation().local_updates(theta, clients, 1).delta
    sizes = [SIZES[client] if client_weights == "samples" else 1 for client in clients]
    expected = theta + sum(size * row for size, row in zip(sizes, delta, strict=True)) / sum(sizes)
    torch.testing.assert_close(theta_of(plugin.step(task, p, {"theta": theta}, 1)), expected, rtol=1e-5, atol=1e-6)


# ---- the original training -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("poison", "marked"), [("share", 8), ("all", 10)])
def test_training_marks_eighty_percent_of_the_targets_samples(poison: Any, marked: int) -> None:
    part = make_partition((5, 10, 5))
    data = make_data(part, poison=poison)
    federation = make_federation(data, local_epochs=1)
    images: list[Tensor] = []
    federation.model.register_forward_pre_hook(lambda _, inputs: images.append(inputs[0].clone()))
    task = make_task(federation)
    fedavg.step(task, params_of(fedavg), {"theta": task.original_model}, 0)
    corner = torch.cat(images)[:, 0, 5:7, 5:7]  # 2 x 2 pixels, one pixel from the border
    triggered = (corner == MARK)[:, torch.tensor([[True, False], [True, True]])].all(1)
    assert len(corner) == 20
    assert int(triggered.sum()) == marked
    assert int(triggered[5:15].sum()) == marked  # all of them the target's


def test_exactly_the_backdoored_samples_carry_trigger_and_flipped_label() -> None:
    part = make_partition((5, 10, 5))
    data = make_data(part, poison="share")
    x, y = data.train(1)
    rows = part.train[1]
    clean = data.x[rows].permute(0, 3, 1, 2)
    changed = (x != clean).flatten(1).any(1)
    assert changed.tolist() == np.isin(rows, part.backdoored).tolist()
    assert torch.equal(y, torch.where(changed, (data.y[rows] + 5) % 10, data.y[rows]))
    assert (x != clean)[changed].flatten(1).sum(1).tolist() == [3] * 8


def test_fedosd_direction_stays_orthogonal_to_nearly_parallel_updates() -> None:
    basis = torch.eye(3, 50)
    rows = basis[0].repeat(10, 1)
    rows[0] += 3e-6 * basis[1]
    d = fedosd.direction(rows, basis[1] + 1e-3 * basis[2])
    assert cosines(rows, d).abs().max() <= 1e-6


def test_fedosd_direction_is_zero_where_float32_rounding_alone_is_left_of_the_target() -> None:
    random = torch.Generator().manual_seed(0)
    rows = torch.randn(4, 50, generator=random)
    target = torch.randn(4, generator=random) @ rows
    assert torch.equal(fedosd.direction(rows, target), torch.zeros(50))


def test_fedosd_published_direction_of_a_vanished_target_is_zero_and_no_divergence() -> None:
    rows = torch.randn(3, 20, generator=torch.Generator().manual_seed(0))
    assert torch.equal(fedosd.published_direction(rows, torch.zeros(20)), torch.zeros(20))


def test_the_projection_leaves_nothing_of_an_update_straight_back_to_the_original() -> None:
    task = make_task()
    away = torch.randn(task.original_model.numel(), generator=torch.Generator().manual_seed(0))
    delta = torch.stack([-0.3 * away, -0.7 * away + 1e-3 * away.flip(0)])
    projected = away_from_original.project(task, params_of(away_from_original), task.original_model + away, delta)
    moved = (task.original_model + away) - task.original_model
    assert projected[0].norm() <= 1e-6 * delta[0].norm()
    assert cosines(projected[1:], moved).abs().max() <= 1e-6
