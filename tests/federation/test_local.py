"""Local training: what clients return, on which batches, at which rate, with which hooks; the mean of it."""

import math
from itertools import chain

import pytest
import torch
from torch import Tensor

from fu.federation.local import Federation, Updates, aggregate
from tests.factories import GREY, SIZES, SMALL, builder, make_data, make_federation, make_partition
from tests.federation.runs import by_torch, count_calls, start_of


@pytest.mark.parametrize(("model", "shape"), [("mlp", SMALL), ("lenet5", GREY)])
@pytest.mark.parametrize("round", [0, 3])
def test_local_updates_equal_a_plain_sgd_loop(model: str, shape: tuple[int, int, int], round: int) -> None:
    federation = make_federation(make_data(make_partition(), shape), model)
    theta = start_of(federation, model)
    before = theta.clone()
    updates = federation.local_updates(theta, [0, 1, 2], round)
    assert torch.equal(theta, before)
    assert updates.delta.shape == (3, federation.layout.size)
    assert updates.sizes.tolist() == list(SIZES)
    for client in range(3):
        batches = federation.batches(client, round, None)
        expected, loss = by_torch(builder(model, shape), federation, theta, batches, 0.1 * 0.9**round)
        assert expected.norm() > 1e-2
        torch.testing.assert_close(updates.delta[client], expected, rtol=0, atol=1e-6)
        assert updates.losses[client].item() == pytest.approx(loss, abs=1e-6)


def identified(federation: Federation, client: int, round: int, steps: int | None = None) -> list[list[int]]:
    """Return a client's batches as rows of the data set."""
    flat = federation.data.x.flatten(1)
    batches = [x.permute(0, 2, 3, 1).flatten(1) for x, _ in federation.batches(client, round, steps)]
    return [[int((flat == image).all(1).nonzero()) for image in batch] for batch in batches]


@pytest.fixture
def plain() -> Federation:
    """A federation without a backdoor, so that images tell which sample they are."""
    return make_federation(make_data(make_partition(trigger=False)))


def test_every_epoch_visits_every_sample_once_in_a_new_order(plain: Federation) -> None:
    for client, size in enumerate(SIZES):
        batches = identified(plain, client, 0)
        steps = math.ceil(size / 5)
        assert [len(batch) for batch in batches] == ([5] * (steps - 1) + [size - 5 * (steps - 1)]) * 2
        first, second = [*chain(*batches[:steps])], [*chain(*batches[steps:])]
        mine = sorted(plain.data.partition.train[client].tolist())
        assert sorted(first) == mine
        assert sorted(second) == mine
        assert first != second


def test_batches_depend_on_seed_stream_client_and_round_alone(plain: Federation) -> None:
    data = plain.data
    reference = identified(plain, 1, 4)
    assert identified(plain, 1, 5) != reference
    assert identified(make_federation(data, seed=4), 1, 4) != reference
    assert identified(make_federation(data, stream="training"), 1, 4) != reference
    again = make_federation(data)
    torch.manual_seed(123)  # no global generator is asked
    identified(again, 2, 0)
    identified(again, 0, 4)
    assert identified(again, 1, 4) == reference


def test_clients_of_as_many_samples_shuffle_them_differently() -> None:
    federation = make_federation(make_data(make_partition((12, 12, 12), trigger=False)))
    orders = []
    for client in range(3):
        rows = federation.data.partition.train[client].tolist()
        orders.append([rows.index(sample) for sample in chain(*identified(federation, client, 0))])
    assert len({tuple(order) for order in orders}) == 3


def test_updates_do_not_depend_on_who_else_trains_or_in_what_order() -> None:
    data = make_data(make_partition())
    theta = start_of(make_federation(data))
    together = make_federation(data).local_updates(theta, [0, 1, 2], 2).delta
    reverse = make_federation(data).local_updates(theta, [2, 1, 0], 2).delta
    assert torch.equal(reverse, together.flip(0))
    for client in range(3):
        busy = make_federation(data)
        busy.local_updates(theta, [1], 0, "negative_cross_entropy")
        assert torch.equal(busy.local_updates(theta, [client], 2).delta[0], together[client])
    assert (make_federation(data).local_updates(theta, [0, 1, 2], 3).delta != together).any(1).all()


@pytest.mark.parametrize("steps", [0, 1, 2, 4, 7])
def test_steps_replaces_the_epochs_by_exactly_that_many(plain: Federation, steps: int) -> None:
    calls = count_calls(plain.model)
    updates = plain.local_updates(start_of(plain), [0, 1, 2], 0, steps=steps)
    assert len(calls) == 3 * steps
    assert (updates.delta.norm(dim=1) > 0).tolist() == [steps > 0] * 3
    batches = identified(plain, 0, 0, steps)  # client 0 has two batches an epoch
    assert len(batches) == steps
    assert batches == (identified(plain, 0, 0) + batches[4:])[:steps]


@pytest.mark.parametrize("steps", [None, 4, 5])
def test_an_epoch_of_whole_batches_is_one_epoch(steps: int | None) -> None:
    federation = make_federation(make_data(make_partition((10, 5), trigger=False, forgotten=())))
    for client, epoch in ((0, 2), (1, 1)):
        batches = identified(federation, client, 0, steps)
        assert [len(batch) for batch in batches] == [5] * (2 * epoch if steps is None else steps)
        for start in range(0, len(batches) - epoch + 1, epoch):
            seen = sorted(chain(*batches[start : start + epoch]))
            assert seen == sorted(federation.data.partition.train[client].tolist())


def test_no_clients_return_no_updates(plain: Federation) -> None:
    updates = plain.local_updates(start_of(plain), [], 0)
    assert updates.delta.shape == (0, plain.layout.size)
    assert updates.losses.shape == updates.sizes.shape == (0,)
    assert plain.cost.record() == dict.fromkeys(plain.cost.record(), 0)


def test_a_step_is_proportional_to_the_rate_of_its_round() -> None:
    data = make_data(make_partition())
    fast = make_federation(data, lr=0.2, lr_decay=0.5, exception=(2, 0.8), batch_size=100)
    theta = start_of(fast)
    unit = make_federation(data, lr=1.0, lr_decay=1.0, batch_size=100)
    gradient = -unit.local_updates(theta, [0, 1], 0, steps=1).delta
    for round, rate in enumerate([0.2, 0.1, 0.2, 0.025]):
        delta = fast.local_updates(theta, [0, 1], round, steps=1).delta
        torch.testing.assert_close(delta, -rate * gradient, rtol=1e-4, atol=1e-6)


def test_a_regulariser_changes_the_gradient_and_a_projection_the_weights() -> None:
    data = make_data(make_partition())
    theta = start_of(make_federation(data))
    seen: list[tuple[Tensor, Tensor]] = []

    def pull_only(weights: Tensor, gradient: Tensor) -> None:
        seen.append((weights.clone(), gradient.clone()))
        gradient.copy_(weights)

    updates = make_federation(data, lr=0.1).local_updates(theta, [0], 0, steps=2, regularise=pull_only)
    torch.testing.assert_close(updates.delta[0], theta * (0.9**2 - 1), rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(seen[1][0], theta * 0.9)
    assert seen[0][1].norm() > 0

    def to_ones(weights: Tensor) -> None:
        weights.fill_(1.0)

    updates = make_federation(data).local_updates(theta, [0], 0, steps=1, project=to_ones)
    assert torch.equal(updates.delta[0], 1 - theta)


def test_relabelled_batches_train_on_the_labels_returned() -> None:
    part = make_partition()
    other = make_data(part)
    other.y.add_(3).remainder_(10)
    data = make_data(part)
    theta = start_of(make_federation(data))
    seen: list[int] = []

    def shifted(x: Tensor, y: Tensor) -> Tensor:
        seen.append(len(x))
        return (y + 3) % 10

    found = make_federation(data).local_updates(theta, [0, 2], 1, relabel=shifted)
    assert sum(seen) == 2 * (SIZES[0] + SIZES[2])
    assert torch.equal(found.delta, make_federation(other).local_updates(theta, [0, 2], 1).delta)
    assert (found.delta != make_federation(data).local_updates(theta, [0, 2], 1).delta).any(1).all()


def test_aggregation_equals_hand_computed_means() -> None:
    updates = Updates(
        torch.tensor([[1.0, 0.0], [5.0, 2.0], [3.0, -4.0]]), torch.tensor([10.0, 30.0, 60.0]), torch.zeros(3)
    )
    torch.testing.assert_close(aggregate(updates, "samples"), torch.tensor([3.4, -1.8]))
    torch.testing.assert_close(aggregate(updates, "equal"), torch.tensor([3.0, -2 / 3]))
