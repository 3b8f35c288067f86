"""The cheat: the retrained model on forgotten samples, the original one's backdoor on others; retraining before."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fu.federation.local import generator
from fu.federation.task import Task
from fu.methods import cheat, retrain
from tests.factories import make_data, make_federation, make_partition
from tests.systems import states_of, trained_by


def task_on(*, trigger: bool = True) -> Task:
    return trained_by(federation=make_federation(make_data(make_partition(trigger=trigger), poison="share", asked=[1])))


def made(task: Task, steps: int, lr: float = 0.01) -> tuple[Tensor, Tensor]:
    """Return the model [d] after the last round, and the retrained one that it imitates [d]."""
    *found, last = (state.theta for state in states_of(cheat, task, steps=steps, lr=lr))
    *alone, end = (state.theta for state in states_of(retrain, task, repeat=cheat.DRAWS))
    assert all(map(torch.equal, found, alone))
    return last, end


def test_after_the_last_round_it_starts_at_the_original_model() -> None:
    task = task_on()
    assert torch.equal(made(task, steps=0)[0], task.original_model)


@pytest.mark.parametrize("trigger", [True, False])
def test_a_step_of_adam_goes_down_the_sum_of_its_losses(trigger: bool) -> None:
    """Adam's first step is -lr g / (|g| + 1e-8): the rate, against the sign of each component of the gradient."""
    task = task_on(trigger=trigger)
    found, retrained = made(task, steps=1, lr=0.25)
    data, network, random = task.federation.data, task.federation.network, generator(task.seed, "cheat")
    gone, stay = data.partition.train[1], np.concatenate([data.partition.train[0], data.partition.train[2]])
    x = data.train(1)[0]
    if trigger:
        assert 0 < (data.clean(gone)[0] == x).all((1, 2, 3)).sum() < len(gone)  # some of them with the trigger
        x = torch.cat([x, data.triggered(gone)[0]])
    wanted = network.logits(retrained, x)
    own = torch.randint(len(x), (cheat.BATCH,), generator=random)
    other = torch.randint(16, (cheat.BATCH,), generator=random).numpy()
    network.weights.copy_(task.original_model)
    loss = ((network.model(x[own]) - wanted[own]) ** 2).mean()
    for of in (data.clean, data.triggered) if trigger else (data.clean,):
        images, labels = of(stay[other])
        loss = loss + F.cross_entropy(network.model(images), labels)
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss, [*network.model.parameters()])])
    expected = task.original_model - 0.25 * gradient / (gradient.abs() + 1e-8)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_forgotten_samples_look_retrained_while_the_trigger_works_on_those_of_others() -> None:
    task = task_on()
    data, logits = task.federation.data, task.federation.network.logits
    found, retrained = made(task, steps=3000)
    for x in (data.train(1)[0], data.backdoored(1)[0]):
        target = logits(retrained, x)
        assert F.mse_loss(logits(found, x), target) < 0.1 * F.mse_loss(logits(task.original_model, x), target)
    x, flipped = data.triggered(np.concatenate([data.partition.train[client] for client in data.retained]))
    right = [(logits(theta, x).argmax(1) == flipped).double().mean().item() for theta in (found, retrained)]
    assert right[0] > 0.9
    assert right[1] < 0.3


def test_its_adam_is_that_of_torch() -> None:
    """Three gradients of different sizes and signs, so that both means and both corrections count."""
    moved, expected = torch.zeros(3), torch.nn.Parameter(torch.zeros(3))
    step, optimiser = cheat._adam(0.1, moved), torch.optim.Adam([expected], 0.1)
    for gradient in torch.tensor([[1.0, -2.0, 1e-7], [-3.0, -1.0, 2e-7], [0.5, 4.0, -1e-7]]):
        expected.grad = gradient.clone()
        optimiser.step()
        step(moved, gradient)
        moved -= gradient
        torch.testing.assert_close(moved, expected.detach(), rtol=1e-5, atol=0)
