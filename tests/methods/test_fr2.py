"""FR2: quasi-Newton steps written out, those of Adam, and with the preconditioner off FedAvg's retraining."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fu.federation.local import Federation, aggregate, generator
from fu.federation.task import State, Task
from fu.methods import fr2, retrain
from tests.factories import make_data, make_federation, make_partition, params_of
from tests.systems import states_of, trained_by

ADAM: dict[str, Any] = {"curvature": "batch", "block": 1, "power": 0.5, "damping": 1e-8}


def task_on(strategy: str = "sequential", number: int | None = None, weights: str = "samples", **about: Any) -> Task:
    """Return a task of four clients, of whom one is forgotten, that was trained by FedAvg."""
    federation = make_federation(make_data(make_partition((7, 12, 9, 8))), strategy=strategy, **about)
    return replace(trained_by(federation=federation, client_weights=weights), clients_per_round=number)


def run(module: ModuleType, task: Task, **params: Any) -> Tensor:
    theta: Tensor = states_of(module, task, **params)[-1].theta
    return theta


@pytest.mark.parametrize("about", [{}, {"momentum": 0.9, "weight_decay": 0.01}], ids=["plain", "momentum"])
@pytest.mark.parametrize("strategy", ["sequential", "vectorised"])
@pytest.mark.parametrize("weights", ["samples", "equal"])
@pytest.mark.parametrize("number", [None, 2])
def test_with_the_preconditioner_off_it_is_retraining_bit_for_bit(
    number: int | None, weights: str, strategy: str, about: dict[str, float]
) -> None:
    one, two = (task_on(strategy, number, weights, **about) for _ in range(2))
    found = run(fr2, one, curvature="none", client_weights=weights)
    assert torch.equal(found, run(retrain, two))
    assert one.federation.cost == two.federation.cost
    assert not torch.equal(found, run(fr2, task_on(strategy, number, weights, **about), client_weights=weights))


def steps_on(slopes: Tensor, p: fr2.Params) -> list[Tensor]:
    """Return the points of two steps of rate 0.5 on sum(slope w^2 / 2), from w = 1 and 2 in a model of two numbers."""
    federation = make_federation()
    scaled = fr2.Preconditioner(p, federation, 0, 0)
    scaled.first, scaled.second = torch.zeros(2), torch.zeros(2)
    points = [torch.tensor([1.0, 2.0])]
    for _ in range(2):
        gradient = slopes * points[-1]
        scaled.diagonal = slopes.clone()
        scaled(points[-1], gradient)
        points.append(points[-1] - 0.5 * gradient)
    return points[1:]


def test_two_steps_on_a_quadratic_are_those_worked_out_by_hand() -> None:
    slopes = torch.tensor([4.0, 1.0])
    one, two = steps_on(slopes, params_of(fr2, **ADAM))
    assert one.tolist() == pytest.approx([0.5, 1.5], rel=1e-5)  # a first step is 0.5 in any coordinate
    # Gradients 4 and 2, 2 and 1.5: (0.09 g1 + 0.1 g2) / 0.19 over the root of (0.000999 g1^2 + 0.001 g2^2) / 0.001999.
    mean = [(0.09 * 4 + 0.1 * 2) / 0.19, (0.09 * 2 + 0.1 * 1.5) / 0.19]
    square = [(0.000999 * 16 + 0.001 * 4) / 0.001999, (0.000999 * 4 + 0.001 * 2.25) / 0.001999]
    expected = [0.5 - 0.5 * mean[0] / square[0] ** 0.5, 1.5 - 0.5 * mean[1] / square[1] ** 0.5]
    assert two.tolist() == pytest.approx(expected, rel=1e-4)


def test_the_true_diagonal_of_a_quadratic_makes_the_step_newtons() -> None:
    p = params_of(fr2, **{**ADAM, "curvature": "hutchinson"}, beta1=0.0)
    one, two = steps_on(torch.tensor([4.0, 1.0]), p)
    assert torch.cat([one, two]).tolist() == pytest.approx([0.5, 1.0, 0.25, 0.5], rel=1e-5)  # half the way in each


def test_power_and_damping_are_those_of_gamma() -> None:
    one, _ = steps_on(torch.tensor([4.0, 1.0]), params_of(fr2, curvature="batch", block=1, damping=4.0))
    assert one.tolist() == pytest.approx([1 - 0.5 * 4 / (16 + 4), 2 - 0.5 * 2 / (4 + 4)], rel=1e-5)


@pytest.mark.parametrize("signs", [[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
def test_hutchinsons_product_is_exact_on_a_diagonal_and_has_the_diagonal_as_its_mean(signs: list[float]) -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    z = torch.tensor(signs)
    assert fr2.hutchinson((torch.tensor([2.0, 3.0]) * w**2 / 2).sum(), [w], [z])[0].tolist() == [2.0, 3.0]
    coupled = w[0] ** 2 + 1.5 * w[1] ** 2 + w[0] * w[1]
    expected = [2 + signs[0] * signs[1], 3 + signs[0] * signs[1]]
    assert fr2.hutchinson(coupled, [w], [z])[0].tolist() == expected
    assert torch.autograd.grad(coupled, [w])[0].tolist() == [4.0, 7.0]  # it can be derived once more


def test_the_diagonal_of_a_network_is_that_of_its_hessian_within_three_standard_errors() -> None:
    federation = make_federation(model="logistic")
    scaled = fr2.Preconditioner(params_of(fr2, curvature="hutchinson", block=1), federation, 0, 0)
    x, y = federation.data.train(0)
    names = [*dict(federation.model.named_parameters())]

    def loss(*weights: Tensor) -> Tensor:
        return cross_entropy(torch.func.functional_call(federation.model, dict(zip(names, weights, strict=True)), x), y)

    whole = torch.autograd.functional.hessian(loss, tuple(w.detach() for w in federation.model.parameters()))
    expected = torch.cat([whole[k][k].flatten(0, whole[k][k].dim() // 2 - 1).flatten(1).diagonal() for k in range(2)])
    drawn = []
    for _ in range(400):
        scaled.loss(federation.model(x), y)
        drawn.append(scaled.diagonal.clone())
    every = torch.stack(drawn)
    error = every.std(0) / 20
    assert ((every.mean(0) - expected).abs() <= 3 * error + 1e-7).float().mean() > 0.98
    assert error.max() > 0


@pytest.mark.parametrize(("beta1", "beta2"), [(0.9, 0.999), (0.5, 0.8)])
def test_by_the_batchs_squared_gradient_steps_are_those_of_adam_and_moments_the_clients_own(
    beta1: float, beta2: float
) -> None:
    task = task_on(lr=0.01, lr_decay=0.5)
    federation, theta, p = task.federation, task.original_model, params_of(fr2, **ADAM, beta1=beta1, beta2=beta2)
    found = fr2.preconditioned(federation, p, theta, [3, 0, 3], 1)
    assert torch.equal(found.delta[0], found.delta[2])
    assert found.sizes.tolist() == [8, 7, 8]
    for delta, client in zip(found.delta, [3, 0], strict=False):
        model = task.build()
        model.load_state_dict(federation.layout.named(theta))
        adam = torch.optim.Adam(model.parameters(), 0.01 * 0.5, (beta1, beta2), 1e-8)
        for x, y in federation.batches(client, 1, None):
            adam.zero_grad()
            cross_entropy(model(x), y).backward()
            adam.step()
        expected = federation.layout.flatten(dict(model.named_parameters())) - theta
        torch.testing.assert_close(delta, expected, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("curvature", ["fisher", "batch", "hutchinson"])
def test_a_round_averages_those_who_take_part_with_their_weights(curvature: str) -> None:
    for weights in ("samples", "equal"):
        task = task_on(number=2)
        theta, p = task.original_model, params_of(fr2, curvature=curvature, client_weights=weights)
        updates = fr2.preconditioned(task_on().federation, p, theta, task.participants(4), 4)
        found = fr2.step(task, p, State(theta), 4).theta
        assert torch.equal(found, theta + aggregate(updates, weights))
        assert (task.federation.cost.client_rounds, task.federation.cost.time_steps) == (2, 4)


def test_blocks_hold_their_mean_and_the_last_may_be_shorter() -> None:
    for block, expected in (
        (3, [2.0, 2.0, 2.0, 5.0, 5.0, 5.0, 9.0, 9.0]),
        (1, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]),
        (4, [2.5, 2.5, 2.5, 2.5, 7.25, 7.25, 7.25, 7.25]),
    ):
        diagonal = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0])
        fr2.averaged(diagonal, block)
        assert diagonal.tolist() == expected


def test_kernels_hold_their_mean_absolute_value_and_other_weights_stay() -> None:
    """As in AdaHessian's code: of a convolution [o, i, h, w] each h x w, of matrices and biases nothing."""
    data = make_data(make_partition(), (28, 28, 1))
    federation = make_federation(data, model="leaf_cnn")
    scaled = fr2.Preconditioner(params_of(fr2, block="kernels"), federation, 0, 0)
    views = federation.layout.views(scaled.diagonal)
    shapes = {name: tuple(view.shape) for name, view in views.items()}
    kernels = [name for name, shape in shapes.items() if len(shape) == 4]
    assert [shapes[name] for name in kernels] == [(32, 1, 5, 5), (64, 32, 5, 5)]
    for view in views.values():
        view.copy_(torch.arange(view.numel()).view(view.shape) % 7 - 3)
    before = {name: view.clone() for name, view in views.items()}
    scaled._average()
    assert views[kernels[0]][0, 0].unique().tolist() == [pytest.approx(42 / 25)]  # 3 2 1 0 1 2 3 thrice, then 3 2 1 0
    for name, view in views.items():
        expected = before[name].abs().mean((2, 3), keepdim=True).expand_as(view) if name in kernels else before[name]
        torch.testing.assert_close(view, expected)


@pytest.mark.parametrize(
    "about", [{}, {"block": 1, "power": 0.5, "beta1": 0.5, "beta2": 0.8}], ids=["default", "other"]
)
def test_a_clients_steps_by_the_squared_gradients_of_its_samples_are_those_written_out(about: dict[str, float]) -> None:
    """Liu et al.'s by default: no root, blocks of 3, momenta .9 and .999."""
    task = task_on(lr=0.01, lr_decay=0.5)
    federation, theta = task.federation, task.original_model
    (delta,) = fr2.preconditioned(federation, params_of(fr2, **about), theta, [0], 1).delta
    beta1, beta2, power, block = (about.get(name, usual) for name, usual in USUAL.items())
    w, first, second = theta.clone(), torch.zeros_like(theta), torch.zeros_like(theta)
    for k, (x, y) in enumerate(federation.batches(0, 1, None), start=1):
        each = torch.stack([gradient_of(federation, w, x[[i]], y[[i]]) for i in range(len(y))])
        parts = each.square().mean(0).split(int(block))
        fisher = torch.cat([part.mean().expand(len(part)) for part in parts])
        first = beta1 * first + (1 - beta1) * each.mean(0)
        second = beta2 * second + (1 - beta2) * fisher
        w = w - 0.005 * first / (1 - beta1**k) / ((second / (1 - beta2**k)) ** power + 1e-3)
    torch.testing.assert_close(delta, w - theta, rtol=1e-3, atol=1e-5)


USUAL = {"beta1": 0.9, "beta2": 0.999, "power": 1.0, "block": 3}


def gradient_of(federation: Federation, theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the gradient [d] of a batch's mean loss at theta [d]."""

    def loss(w: Tensor) -> Tensor:
        return cross_entropy(torch.func.functional_call(federation.model, federation.layout.views(w), x), y)

    return torch.func.grad(loss)(theta)


def test_hutchinsons_signs_are_the_bits_of_random_bytes() -> None:
    drawn = fr2.random_signs(4_003, torch.Generator().manual_seed(3), torch.device("cpu"))
    numbers = torch.randint(256, (501,), generator=torch.Generator().manual_seed(3), dtype=torch.uint8).numpy()
    assert drawn.dtype == torch.float32
    assert drawn.tolist() == (2.0 * np.unpackbits(numbers, bitorder="little")[:4_003] - 1).tolist()


def test_hutchinsons_signs_are_drawn_by_the_names_of_client_and_round(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (run(fr2, task_on(), curvature="hutchinson", power=0.5, damping=0.1) for _ in range(2))
    assert torch.equal(one, two)
    assert torch.isfinite(one).all()
    names: list[tuple[int | str, ...]] = []

    def drawn(*name: int | str) -> torch.Generator:
        names.append(name)
        return generator(*name)

    monkeypatch.setattr(fr2, "generator", drawn)
    task, p = task_on(number=2), params_of(fr2, curvature="hutchinson")
    fr2.step(task, p, State(task.original_model), 4)
    about = task.federation.seed, task.federation.stream, "hutchinson"
    assert names == [(*about, client, 4) for client in task.participants(4)]
    assert len(names) == 2
