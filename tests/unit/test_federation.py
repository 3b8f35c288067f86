import math
from collections.abc import Callable
from itertools import chain

import pytest
import torch
from torch import Tensor, nn

from fu.errors import UserError
from fu.evaluation.watch import conflicts
from fu.federation.flat import Layout
from fu.federation.local import Federation, Updates, aggregate
from fu.federation.losses import (
    OBJECTIVES,
    cross_entropy,
    negative_cross_entropy,
    unlearning_cross_entropy,
)
from fu.federation.task import initial_parameters
from tests.factories import (
    COLOUR,
    GREY,
    SIZES,
    SMALL,
    builder,
    make_data,
    make_federation,
    make_partition,
    make_task,
)

MODELS = [("mlp", SMALL), ("lenet5", GREY)]


def start_of(federation: Federation, model: str = "mlp") -> Tensor:
    return initial_parameters(builder(model, federation.data.shape), 1)


def count_calls(model: nn.Module) -> list[int]:
    """Return a list that gets the batch size of every call of a model."""
    seen: list[int] = []
    model.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    return seen


# ---- models and layout ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "shape", "params", "expected"),
    [
        ("mlp", GREY, {"hidden": 400}, 478_410),
        ("lenet5", GREY, {}, 61_706),
        ("cnn", COLOUR, {}, 797_962),
    ],
)
def test_models_have_the_published_number_of_parameters(
    model: str, shape: tuple[int, int, int], params: dict[str, int], expected: int
) -> None:
    assert Layout(builder(model, shape, **params)()).size == expected


@pytest.mark.parametrize(("model", "shape"), [("mlp", SMALL), ("lenet5", GREY), ("cnn", COLOUR)])
def test_flat_vectors_and_named_tensors_convert_exactly(model: str, shape: tuple[int, int, int]) -> None:
    net = builder(model, shape)()
    layout = Layout(net)
    tensors = dict(net.named_parameters())
    theta = layout.flatten(tensors)
    assert theta.shape == (layout.size,)
    assert theta.dtype == torch.float32
    named = layout.named(theta)
    assert list(named) == list(tensors)
    assert all(torch.equal(named[name], tensors[name]) for name in tensors)
    assert all(value.is_contiguous() for value in named.values())
    assert torch.equal(layout.flatten(named), theta)
    views = layout.views(theta)
    assert all(torch.equal(views[name], tensors[name]) for name in tensors)
    assert all(view.untyped_storage().data_ptr() == theta.untyped_storage().data_ptr() for view in views.values())


def test_convolution_weights_lie_channels_last_in_the_vector() -> None:
    layout = Layout(nn.Sequential(nn.Conv2d(2, 3, (2, 4))))
    theta = torch.arange(layout.size, dtype=torch.float32)
    weight = layout.views(theta)["0.weight"]
    for o, i, h, w in [(0, 0, 0, 1), (0, 1, 0, 0), (1, 1, 1, 2), (2, 0, 1, 3)]:
        assert weight[o, i, h, w] == ((o * 2 + h) * 4 + w) * 2 + i
    assert torch.equal(layout.views(theta)["0.bias"], theta[-3:])


def test_views_of_many_vectors_are_the_views_of_each() -> None:
    layout = Layout(builder("lenet5", GREY)())
    thetas = torch.randn(2, 3, layout.size, generator=torch.Generator().manual_seed(0))
    together, alone = layout.views(thetas), layout.views(thetas[1, 2])
    assert all(torch.equal(together[name][1, 2], alone[name]) for name in layout.shapes)


def test_bind_makes_parameters_and_gradients_views_of_flat_vectors() -> None:
    net = builder("lenet5", GREY)()
    layout = Layout(net)
    theta, gradient = torch.randn(layout.size), torch.zeros(layout.size)
    layout.bind(net, theta, gradient)
    assert torch.equal(layout.flatten(dict(net.named_parameters())), theta)
    net(torch.ones(2, 1, 28, 28)).sum().backward()
    by_name = {name: p.grad for name, p in net.named_parameters() if p.grad is not None}
    assert gradient.norm() > 0
    assert torch.equal(layout.flatten(by_name), gradient)


def test_weights_of_another_model_are_refused_with_the_tensor_named() -> None:
    layout = Layout(builder(hidden=8)())
    other = dict(builder(hidden=9)().named_parameters())
    with pytest.raises(UserError, match=r"x\.safetensors.*'1\.bias' is \(9,\), expected \(8,\)"):
        layout.flatten(other, "x.safetensors")
    with pytest.raises(UserError, match=r"'1\.weight' is absent, expected \(8, 64\)"):
        layout.flatten({k: v for k, v in builder(hidden=8)().named_parameters() if k != "1.weight"})


def test_models_with_buffers_have_no_layout() -> None:
    with pytest.raises(TypeError, match="buffers"):
        Layout(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)))


# ---- local training ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "shape"), MODELS)
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
        net = builder(model, shape)()
        net.load_state_dict(federation.layout.named(theta))
        optimiser = torch.optim.SGD(net.parameters(), lr=0.1 * 0.9**round)
        losses = []
        for x, y in federation.batches(client, round, None):
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(net(x.contiguous()), y)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        expected = federation.layout.flatten(dict(net.named_parameters())) - theta
        assert expected.norm() > 1e-2
        torch.testing.assert_close(updates.delta[client], expected, rtol=0, atol=1e-6)
        assert updates.losses[client].item() == pytest.approx(sum(losses) / len(losses), abs=1e-6)


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


def test_no_clients_return_no_updates(plain: Federation) -> None:
    updates = plain.local_updates(start_of(plain), [], 0)
    assert updates.delta.shape == (0, plain.layout.size)
    assert updates.losses.shape == updates.sizes.shape == (0,)
    assert plain.cost.record() == dict.fromkeys(plain.cost.record(), 0)


def test_the_rate_decays_by_round_and_late_changes_one_round() -> None:
    federation = make_federation(lr=0.2, lr_decay=0.5, late=(2, 0.8))
    assert [federation.rate(round) for round in range(4)] == [0.2, 0.1, 0.2, 0.025]


def test_a_step_is_proportional_to_the_rate_of_its_round() -> None:
    data = make_data(make_partition())
    fast = make_federation(data, lr=0.2, lr_decay=0.5, late=(2, 0.8), batch_size=100)
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


def test_hooked_updates_are_neither_remembered_nor_taken_from_memory() -> None:
    federation = make_federation()
    theta = start_of(federation)
    plain = federation.local_updates(theta, [0], 0).delta

    def to_zero(weights: Tensor) -> None:
        weights.zero_()

    hooked = federation.local_updates(theta, [0], 0, project=to_zero).delta
    assert torch.equal(hooked[0], -theta)
    assert torch.equal(federation.local_updates(theta, [0], 0).delta, plain)


@pytest.mark.parametrize(("model", "shape"), MODELS)
@pytest.mark.parametrize("objective", list(OBJECTIVES))
@pytest.mark.parametrize("steps", [None, 4])
def test_all_clients_at_once_equal_client_after_client(
    model: str, shape: tuple[int, int, int], objective: str, steps: int | None
) -> None:
    data = make_data(make_partition((7, 12, 1)), shape)
    one = make_federation(data, model, strategy="sequential")
    many = make_federation(data, model, strategy="vectorised")
    theta = start_of(one, model)
    expected = one.local_updates(theta, [2, 0, 1], 1, objective, steps)
    found = many.local_updates(theta, [2, 0, 1], 1, objective, steps)
    assert (expected.delta.norm(dim=1) > 1e-3).all()
    torch.testing.assert_close(found.delta, expected.delta, rtol=0, atol=1e-5)
    torch.testing.assert_close(found.losses, expected.losses, rtol=0, atol=1e-5)
    assert torch.equal(found.sizes, expected.sizes)
    assert many.cost == one.cost


def test_the_automatic_strategy_on_a_cpu_is_client_after_client() -> None:
    assert make_federation(strategy="auto").strategy == "sequential"


# ---- what it costs -------------------------------------------------------------------------------------------------


def test_costs_equal_hand_computed_values() -> None:
    federation = make_federation(batch_size=5, local_epochs=2)  # 7, 12, 9 samples: 2, 3, 2 batches
    theta, size = start_of(federation), federation.layout.size
    federation.local_updates(theta, [0, 1, 2], 0)
    assert federation.cost.record() == {
        "client_rounds": 3,
        "steps": 14,
        "samples": 56,
        "bytes_up": 12 * size,
        "bytes_down": 12 * size,
    }
    federation.local_updates(theta, [0, 1], 0, steps=4)  # 5+2+5+2 and 5+5+2+5 samples
    assert federation.cost.record() == {
        "client_rounds": 5,
        "steps": 22,
        "samples": 56 + 14 + 17,
        "bytes_up": 20 * size,
        "bytes_down": 20 * size,
    }


@pytest.mark.parametrize("strategy", ["sequential", "vectorised"])
@pytest.mark.parametrize("steps", [None, 1, 2, 5])
def test_samples_counted_are_the_samples_drawn(strategy: str, steps: int | None) -> None:
    federation = make_federation(strategy=strategy)
    federation.local_updates(start_of(federation), [0, 1, 2], 0, steps=steps)
    drawn = [len(y) for client in range(3) for _, y in federation.batches(client, 0, steps)]
    assert (federation.cost.steps, federation.cost.samples) == (len(drawn), sum(drawn))


def test_updates_asked_for_twice_are_computed_once() -> None:
    federation = make_federation()
    theta = start_of(federation)
    calls = count_calls(federation.model)
    first = federation.local_updates(theta, [0, 1, 2], 0)
    assert sum(calls) == 56
    again = federation.local_updates(theta, [2, 0], 0, counted=False)
    assert sum(calls) == 56
    assert torch.equal(again.delta, first.delta[[2, 0]])
    assert torch.equal(again.losses, first.losses[[2, 0]])
    assert federation.cost.client_rounds == 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda federation, theta: federation.local_updates(theta.clone(), [0], 0),
        lambda federation, theta: federation.local_updates(theta, [0], 1),
        lambda federation, theta: federation.local_updates(theta, [0], 0, "unlearning_cross_entropy"),
        lambda federation, theta: federation.local_updates(theta, [0], 0, steps=4),
        lambda federation, theta: federation.local_updates(theta, [1], 0),
    ],
    ids=["theta", "round", "objective", "steps", "client"],
)
def test_other_updates_are_computed_anew(ask: Callable[[Federation, Tensor], Updates]) -> None:
    federation = make_federation()
    theta = start_of(federation)
    federation.local_updates(theta, [0], 0)
    calls = count_calls(federation.model)
    updates = ask(federation, theta)
    assert calls
    assert torch.equal(updates.delta, ask(make_federation(), theta).delta)


def test_conflicts_reuse_the_rounds_updates_and_cost_nothing() -> None:
    task = make_task()
    theta = task.original_model
    delta = task.federation.local_updates(theta, task.retained, 0).delta
    before, calls = task.federation.cost.record(), count_calls(task.federation.model)
    assert conflicts(task, theta, theta - delta.sum(0), 0) == {"conflicts": 2}
    assert conflicts(task, theta, theta + delta.sum(0), 0) == {"conflicts": 0}
    assert calls == []
    assert conflicts(task, theta.clone(), theta, 0) == {"conflicts": 0}  # no update is against nobody
    assert sum(calls) == 2 * (SIZES[0] + SIZES[2])
    assert task.federation.cost.record() == before


# ---- aggregation ---------------------------------------------------------------------------------------------------


def test_aggregation_equals_hand_computed_means() -> None:
    updates = Updates(
        torch.tensor([[1.0, 0.0], [5.0, 2.0], [3.0, -4.0]]), torch.tensor([10.0, 30.0, 60.0]), torch.zeros(3)
    )
    torch.testing.assert_close(aggregate(updates, "samples"), torch.tensor([3.4, -1.8]))
    torch.testing.assert_close(aggregate(updates, "equal"), torch.tensor([3.0, -2 / 3]))


# ---- objectives ----------------------------------------------------------------------------------------------------


def closed_forms(p: Tensor, y: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """Return, for probabilities p [n, C], each objective's values [n] and derivatives by the logits [n, C]."""
    right = p.gather(1, y[:, None])
    away = p - torch.nn.functional.one_hot(y, p.shape[1])
    return {
        "cross_entropy": (-right.log().squeeze(1), away),
        "negative_cross_entropy": (right.log().squeeze(1), -away),
        "unlearning_cross_entropy": (-(1 - right / 2).log().squeeze(1), -right / (2 - right) * away),
    }


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_objectives_equal_their_closed_forms(name: str) -> None:
    logits = torch.randn(20, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    y = torch.arange(20) % 5
    values, derivatives = closed_forms(logits.detach().softmax(1), y)[name]
    found = OBJECTIVES[name](logits, y)
    (gradient,) = torch.autograd.grad(found.sum(), logits)
    torch.testing.assert_close(found, values, rtol=0, atol=1e-12)
    torch.testing.assert_close(gradient, derivatives, rtol=0, atol=1e-12)


def test_objectives_are_known_by_the_names_of_their_functions() -> None:
    functions = (cross_entropy, negative_cross_entropy, unlearning_cross_entropy)
    assert [OBJECTIVES[function.__name__] for function in functions] == list(functions)
    assert set(OBJECTIVES) == set(closed_forms(torch.tensor([[0.5, 0.5]]), torch.tensor([0])))


@pytest.mark.parametrize("margin", [1e4, 200.0, 90.0, 20.0])
def test_the_unlearning_loss_is_bounded_and_finite_at_both_ends(margin: float) -> None:
    logits = torch.tensor([[margin, 0.0, 0.0], [-margin, 0.0, 0.0]], requires_grad=True)
    values = unlearning_cross_entropy(logits, torch.tensor([0, 0]))
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    assert values[0].item() == pytest.approx(math.log(2), abs=1e-6)
    assert values[1].item() == pytest.approx(0, abs=1e-8)
    assert torch.isfinite(gradient).all()
    assert gradient.abs().max() < 1e-6


def test_the_unlearning_loss_stays_between_zero_and_log_two() -> None:
    logits = 30 * torch.randn(1000, 10, generator=torch.Generator().manual_seed(0))
    values = unlearning_cross_entropy(logits, torch.arange(1000) % 10)
    assert values.min() >= 0
    assert values.max() <= math.log(2) + 1e-6
    assert values.max() > 0.69


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_gradients_of_objectives_are_finite_far_from_the_label(name: str) -> None:
    logits = torch.tensor([[1e4, 0.0], [-1e4, 0.0]], requires_grad=True)
    values = OBJECTIVES[name](logits, torch.tensor([0, 0]))
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    assert torch.isfinite(values).all()
    assert torch.isfinite(gradient).all()
