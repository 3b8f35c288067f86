"""FedEraser: calibrated updates, the stored rounds it uses, and its share of the local steps."""

from pathlib import Path

import pytest
import torch

from fu.errors import UserError
from fu.federation import calibration
from fu.federation.task import State
from fu.methods import federaser, federaser_as_published
from tests.factories import make_data, make_federation, make_partition, make_task, params_of
from tests.methods.trained import train
from tests.systems import random, weighted_mean


@pytest.mark.parametrize(("given", "epochs"), [({}, 2), ({"calibration_ratio": 0.5}, 1)])  # of the toy's two
def test_federaser_takes_directions_from_retraining_and_layer_norms_from_the_training(
    given: dict[str, float], epochs: int, tmp_path: Path
) -> None:
    trained = train(tmp_path, 4)
    task, p = trained.task(rounds=2), params_of(federaser, **given)
    retained, sizes = [0, 2, 3], [7, 9, 8]
    state = federaser.start(task, p)
    for round, stored in ((0, 0), (1, 2)):
        theta = state.theta
        fresh = make_federation(trained.data, local_epochs=epochs)
        layout, rows = fresh.layout, []
        for client in retained:
            update = layout.named(fresh.local_updates(theta, [client], round).delta[0])
            wanted = layout.named(trained.updates[stored, client])
            assert all(piece.norm() > 0 for piece in [*update.values(), *wanted.values()])
            rows.append(
                layout.flatten({name: piece * wanted[name].norm() / piece.norm() for name, piece in update.items()})
            )
        state = federaser.step(task, p, state, round)
        expected = theta + weighted_mean(torch.stack(rows), sizes)
        torch.testing.assert_close(state.theta, expected, rtol=1e-5, atol=1e-6)
        assert (state.theta - theta).norm() > 0.01


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
        moved = federaser.step(task, params_of(federaser, interval=interval), State(theta), round).theta - theta
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
    found = calibration.calibration(bound, theta, retained, 1, ratio)
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
    found = calibration.calibrated(layout, delta, torch.full((2, len(names)), 2.0))
    norms = torch.stack([view.flatten(1).norm(dim=1) for view in layout.views(found).values()], dim=1)
    expected = torch.full((2, len(names)), 2.0)
    expected[0, 1] = 0
    torch.testing.assert_close(norms, expected)


def test_federaser_starts_at_the_model_that_the_original_training_began_from(tmp_path: Path) -> None:
    trained = train(tmp_path, 2)
    task = trained.task()
    start = federaser.start(task, params_of(federaser)).theta
    assert torch.equal(start, trained.models[0])
    assert not torch.equal(start, task.first_model())
    assert not torch.equal(start, task.original_model)


def test_the_norms_of_a_client_are_found_by_its_place_among_those_who_take_part() -> None:
    bound = make_federation(make_data(make_partition((5, 12, 9), absent=(0,))))  # 2 alone is retained, in place 1
    norms = torch.tensor([1.0, 5.0])[None, :, None].repeat(1, 1, len(bound.layout.shapes))
    task = make_task(bound, histories={"update_norms": {"norms": norms}})
    theta = task.original_model
    moved = federaser.step(task, params_of(federaser), State(theta), 0).theta - theta
    for piece in bound.layout.named(moved).values():
        assert piece.norm().item() == pytest.approx(5, rel=1e-4)


@pytest.mark.parametrize(("epochs", "half"), [(1, 1), (2, 1), (3, 2)])
def test_as_published_the_mean_update_takes_the_distance_of_two_stored_means(
    epochs: int, half: int, tmp_path: Path
) -> None:
    """Of six stored rounds in three, the second, fourth and last; the first round trains nobody."""
    trained = train(tmp_path, 6)
    task, p = trained.task(rounds=3, local_epochs=epochs), params_of(federaser_as_published)
    retained, sizes, everyone = [0, 2, 3], [7, 9, 8], [7, 12, 9, 8]
    state = federaser_as_published.step(task, p, federaser_as_published.start(task, p), 0)
    first = trained.models[1] + weighted_mean(trained.updates[1, retained], sizes)
    torch.testing.assert_close(state.theta, first)
    assert task.federation.cost.steps == 0
    for round, stored in ((1, 3), (2, 5)):
        theta = state.theta
        fresh = make_federation(trained.data, local_epochs=half)
        mean = weighted_mean(fresh.local_updates(theta, retained, round).delta, sizes)
        old = weighted_mean(trained.updates[stored, retained], sizes) - weighted_mean(trained.updates[stored], everyone)
        torch.testing.assert_close(
            trained.models[stored] + weighted_mean(trained.updates[stored], everyone), trained.models[stored + 1]
        )
        update, wanted = fresh.layout.named(mean), fresh.layout.named(old)
        expected = {name: piece * wanted[name].norm() / piece.norm() for name, piece in update.items()}
        state = federaser_as_published.step(task, p, state, round)
        torch.testing.assert_close(state.theta, theta + fresh.layout.flatten(expected), rtol=1e-4, atol=1e-6)
        assert (state.theta - theta).norm() > 0.001


def test_as_published_an_interval_beyond_the_stored_models_is_refused() -> None:
    bound = make_federation(make_data(make_partition((5, 12))))
    layers = len(bound.layout.shapes)
    stored = {"norms": torch.ones(66, layers), "models": torch.zeros(32, bound.layout.size)}
    task = make_task(bound, rounds=2, histories={"retained_means": stored})
    with pytest.raises(UserError, match="an interval of 33 rounds; allowed: at most 32"):
        federaser_as_published.step(task, params_of(federaser_as_published), State(task.original_model), 0)
