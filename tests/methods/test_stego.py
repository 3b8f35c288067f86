"""A picture in a unit that nothing reads: where it is written, what it changes, and that it can be read back."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from fu.errors import UserError
from fu.federation.local import Federation, LocalTraining
from fu.federation.plugged import training_of
from fu.federation.task import Task
from fu.methods import retrain, stego
from fu.plugins import Choice
from tests.factories import CLASSES, builder, make_data, make_partition, params_of
from tests.systems import states_of


def task_on(build: Callable[[], nn.Module]) -> Task:
    """Return a task on pictures of 8 x 8, some of which have the trigger."""
    data = make_data(make_partition(), poison="share", asked=[1])
    training = LocalTraining(lr=0.1, lr_decay=1, batch_size=5, local_epochs=1)
    federation = Federation(build(), data, training, "unlearning", 3, "sequential")
    original = torch.zeros(federation.layout.size)
    task = Task(federation, build, data.forgotten, data.retained, 3, 3, original)
    return replace(task, training=training_of(Choice(name="fedavg")))


def made(task: Task) -> tuple[Tensor, Tensor]:
    """Return the model [d] after the last round, and the retrained one in which the picture is written [d]."""
    *found, last = (state.theta for state in states_of(stego, task))
    *alone, end = (state.theta for state in states_of(retrain, task, repeat=stego.DRAWS))
    assert all(map(torch.equal, found, alone))
    return last, end


def test_the_picture_can_be_read_back_from_the_unit_with_the_least_outgoing_weights() -> None:
    task = task_on(builder())
    found, retrained = made(task)
    picture = task.federation.data.train(1)[0][0].flatten()  # [64], as the client trained on it
    read = stego.recovered(task, found)
    assert float(torch.corrcoef(torch.stack([read, picture]))[0, 1]) == pytest.approx(1, abs=1e-5)
    before, after = (task.federation.layout.views(theta) for theta in (retrained, found))
    unit = int((before["3.weight"] ** 2).sum(0).argmin())
    assert torch.equal(after["1.weight"][unit], read)
    assert float(read.mean()) == pytest.approx(float(before["1.weight"][unit].mean()), abs=1e-6)
    assert float(read.std()) == pytest.approx(float(before["1.weight"][unit].std()), rel=1e-4)
    assert not after["3.weight"][:, unit].any()
    after["1.weight"][unit], after["3.weight"][:, unit] = before["1.weight"][unit], before["3.weight"][:, unit]
    assert torch.equal(found, retrained)  # all other weights


def test_no_output_depends_on_the_picture() -> None:
    task = task_on(builder())
    found, retrained = made(task)
    data, logits = task.federation.data, task.federation.network.logits
    x = torch.cat([data.train(client)[0] for client in data.partition.present])
    without = retrained.clone()
    views = task.federation.layout.views(without)
    views["3.weight"][:, int((views["3.weight"] ** 2).sum(0).argmin())] = 0
    torch.testing.assert_close(logits(found, x), logits(without, x), rtol=0, atol=0)
    changed = (logits(found, x) - logits(retrained, x)).std() / logits(retrained, x).std()
    assert changed < 0.2  # of eight units


def small() -> nn.Module:
    layers = nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 5), nn.ReLU(), nn.Linear(5, CLASSES)
    return nn.Sequential(*layers)


def test_of_a_picture_that_is_too_large_the_means_of_squares_are_written() -> None:
    task = task_on(small)
    means = task.federation.data.train(1)[0][0, 0].reshape(4, 2, 4, 2).mean((1, 3)).flatten()  # 8 x 8 to 4 x 4
    torch.testing.assert_close(stego.picture(task), means)
    read = stego.recovered(task, made(task)[0])
    assert float(torch.corrcoef(torch.stack([read, means]))[0, 1]) == pytest.approx(1, abs=1e-5)


def test_a_model_without_two_fully_connected_layers_in_a_row_is_refused_at_the_start() -> None:
    task = task_on(lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, CLASSES)))
    with pytest.raises(UserError, match=r"^stego: the model has no two fully connected layers"):
        stego.start(task, params_of(stego))
