"""Running statistics stand behind the parameters: each client moves its own, the server averages them as weights."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from fu.errors import UserError
from fu.evaluation.measure import distance
from fu.federation.flat import Layout, tensors_of
from fu.federation.local import Federation, LocalTraining
from fu.federation.network import check_model, sample_of
from fu.federation.task import State, Task, initial_parameters
from fu.methods import stability
from fu.models import resnet18
from fu.training import fedavg
from tests.factories import CLASSES, SIZES, SMALL, make_context, make_data, make_partition
from tests.federation.runs import by_torch
from tests.systems import weighted_mean

build = partial(resnet18.build, SMALL, CLASSES, resnet18.Params(widths=[8, 8]))


def make_task(original: bool = True, **training: Any) -> Task:
    """Return a task whose model has batch normalisation; nobody is attacked, client 1 is to be forgotten."""
    local = LocalTraining(**{"lr": 0.1, "lr_decay": 1.0, "batch_size": 5, "local_epochs": 2, **training})
    data = make_data(make_partition(trigger=False), asked=(1,) if original else None)
    federation = Federation(build(), data, local, "unlearning", 3, "sequential")
    theta = initial_parameters(build, 99) if original else None
    return Task(federation, build, data.forgotten, data.retained, 3, 3, theta)


@pytest.mark.parametrize("sgd", [{}, {"momentum": 0.9, "weight_decay": 0.1}], ids=["plain", "with decay"])
def test_a_round_of_fedavg_averages_what_each_client_has_seen_as_it_averages_weights(sgd: dict[str, float]) -> None:
    task = make_task(original=False, **sgd)
    layout, theta = task.federation.layout, initial_parameters(build, 5)
    task.federation.network.weights.fill_(7)  # whatever was computed before
    state = fedavg.step(task, fedavg.Params(), State(theta), 0)
    batches = [task.federation.batches(client, 0, None) for client in range(3)]
    each = torch.stack([by_torch(build, task.federation, theta, found, 0.1, **sgd)[0] for found in batches])
    expected = theta + weighted_mean(each, [*SIZES])
    torch.testing.assert_close(state.theta, expected, rtol=0, atol=2e-5)
    moved = (state.theta - theta)[layout.parameters :]
    assert layout.size - layout.parameters == 2 * (8 + 4 * 8 + 4 * 8 + 8)  # mean and variance of each channel
    assert (moved.abs() > 1e-3).float().mean() > 0.9


def test_a_model_predicts_by_its_own_running_statistics() -> None:
    task, x = make_task(), torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    theta = task.original_model.clone()
    before = task.federation.logits(theta, x)
    alone = torch.cat([task.federation.logits(theta, one[None]) for one in x])
    torch.testing.assert_close(before, alone)  # a sample does not see the others
    theta[task.federation.layout.parameters :] *= 2
    assert (task.federation.logits(theta, x) - before).abs().max() > 1e-2


def test_files_hold_the_statistics_by_name_and_the_distance_leaves_them_out() -> None:
    task = make_task()
    layout, theta = task.federation.layout, task.original_model.clone()
    assert [name for name in layout.named(theta) if "running" in name][:2] == ["1.running_mean", "1.running_var"]
    assert torch.equal(layout.flatten(layout.named(theta)), theta)
    before = layout.named(theta.clone())
    theta[layout.parameters :] += 5
    assert [name for name, now in layout.named(theta).items() if not torch.equal(now, before[name])] == [
        name for name in before if "running" in name
    ]
    assert distance(make_context(task, theta)) == 0
    theta[0] += 2
    assert distance(make_context(task, theta)) == pytest.approx(2, abs=1e-6)


def test_what_the_statistics_are_has_no_part_in_the_correction() -> None:
    """Along g_S is measured on parameters alone: other statistics of the same model give the same correction."""
    task, p = make_task(), stability.Params(**{"lambda": 5.0})
    size = task.federation.layout.parameters
    across = []
    for shift in (0.0, 3.0):
        state = stability.start(task, p)
        state.forgotten[size:] += shift  # as if a gradient had moved them
        across.append(stability.step(task, p, state, 0).theta)
    assert torch.equal(*across)


def test_clients_cannot_be_trained_side_by_side() -> None:
    local = LocalTraining(lr=0.1, lr_decay=1.0, batch_size=5, local_epochs=1)
    data = make_data(make_partition())
    assert Federation(build(), data, local, "training", 0).strategy == "sequential"
    with pytest.raises(ValueError, match="running statistics"):
        Federation(build(), data, local, "training", 0, "vectorised")


def test_running_statistics_are_declared_and_forget_at_a_constant_rate() -> None:
    norm = nn.BatchNorm1d(64)
    net = nn.Sequential(nn.Flatten(), norm, nn.Linear(64, CLASSES))
    with pytest.raises(UserError, match=r"with buffers \(1\.running_mean\).*declare STATISTICS = True"):
        check_model(net, sample_of(SMALL), CLASSES, "mine")
    check_model(net, sample_of(SMALL), CLASSES, "mine", statistics=True)
    norm.momentum = None
    with pytest.raises(UserError, match="momentum None"):
        check_model(net, sample_of(SMALL), CLASSES, "mine", statistics=True)


def test_resnet18_has_its_number_of_parameters() -> None:
    with torch.device("meta"):
        net = resnet18.build((32, 32, 3), 10, resnet18.Params())
    layout = Layout(net)
    assert sum(weight.numel() for weight in net.parameters()) == 11_173_962
    assert (layout.parameters, layout.size) == (11_173_964, 11_173_964 + 2 * 4_800)  # two zeros behind the last bias


def test_every_tensor_begins_at_a_multiple_of_16_bytes() -> None:
    """cuDNN's batch normalisation fails at other addresses; the numbers between stay zero through training."""
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(3, 2))
    layout = Layout(net)
    assert layout.sizes == [28, 4, 4, 4, 8, 4, 4, 4]  # 27, 3, 3, 3, 6, 2 and, behind all parameters, 3, 3
    assert (layout.parameters, layout.size) == (52, 60)
    theta = layout.flatten(tensors_of(net))
    assert all(view.storage_offset() % 4 == 0 for view in layout.views(theta).values())
    named = layout.named(theta)
    assert all(torch.equal(named[name], tensor) for name, tensor in tensors_of(net).items())
    assert theta.count_nonzero() == sum(tensor.count_nonzero() for tensor in named.values())
