"""Models with running statistics, with other buffers, and those that ask how images lie in memory."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fu.api import Federation
from fu.errors import UserError
from tests.api.test_federation import CLASSES, CLIENTS, blobs, refused

torch.set_num_threads(1)


class Normed(nn.Sequential):
    """Batch normalisation of vectors, which fails on one sample in training mode."""

    STATISTICS = True

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(36, 8), nn.BatchNorm1d(8), nn.Linear(8, CLASSES))


class Masked(nn.Module):
    """A linear model with a mask and a number that are no parameters."""

    STATISTICS = True

    def __init__(self, *, persistent: bool = False, fill: float = 1.0) -> None:
        super().__init__()
        self.linear = nn.Linear(36, CLASSES)
        self.register_buffer("mask", torch.full((CLASSES,), fill), persistent=persistent)
        self.register_buffer("number", torch.tensor(3))

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x.flatten(1)) * self.get_buffer("mask")


class Viewed(nn.Module):
    """A convolution, whose outputs are viewed as vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(1, 2, 3), nn.Linear(32, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.last(self.first(x).view(len(x), -1))
        return outputs


def federation(model: Callable[[], nn.Module], **changes: Any) -> Federation:
    """Return clients with 19 training samples each, in batches of 7: the last is of 5."""
    given = {"batch_size": 7, "lr": 0.1, "device": "cpu", **changes}
    return Federation.from_datasets(model, [blobs(client) for client in range(CLIENTS)], **given)


@pytest.mark.parametrize("persistent", [True, False])
def test_buffers_that_are_no_parameters_go_into_modules_and_back(persistent: bool) -> None:
    fed = federation(lambda: Masked(persistent=persistent))
    model = fed.train(1)
    module = model.module()
    assert torch.equal(module.get_buffer("mask"), torch.ones(CLASSES))
    assert torch.equal(module.get_parameter("linear.weight"), fed.layout.named(model.theta)["linear.weight"])
    for given in (module, module.state_dict()):
        assert torch.equal(fed.trained(given, 1).theta, model.theta)


def test_running_statistics_are_trained_and_put_into_modules() -> None:
    fed = federation(Normed)
    model = fed.train(2).unlearn("fine_tuning", [0])
    module = model.module()
    assert module.get_buffer("2.running_mean").abs().min() > 0
    assert torch.equal(module.get_buffer("2.running_var"), fed.layout.named(model.theta)["2.running_var"])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: federation(Normed).train(1, "fedprox"), "fedprox: does not average the model's running statistics "),
        (
            lambda: federation(Normed).train(1).unlearn("puf", 0),
            "puf: does not average the model's running statistics ",
        ),
        (lambda: federation(Normed, batch_size=6).train(1), "batch_size: 6 leaves one of the 19 training samples of "),
        (lambda: federation(Normed, batch_size=1, local_steps=2).train(1), "batch_size: 1 leaves one of the 19 "),
        (lambda: federation(Normed, batch_size=9, local_steps=3).train(1), "batch_size: 9 leaves one of the 19 "),
        (lambda: federation(Normed).train(1).recover(1, batch_size=3), "batch_size: 3 leaves one of the 19 training "),
        (lambda: federation(lambda: Masked(fill=-torch.inf)), "model: 'mask' is not finite; keep a mask as booleans."),
        (lambda: federation(Viewed), "model: fails on a sample [1, 1, 6, 6] that lies channels last in memory, as "),
    ],
)
def test_a_model_that_does_not_fit_gets_one_sentence(call: Callable[[], Any], sentence: str) -> None:
    refused(sentence, call)


def test_names_are_of_plug_ins_that_average_running_statistics_here() -> None:
    with pytest.raises(UserError, match=r"allowed: fats_as_published, fedavg\.$"):
        federation(Normed).train(1, "fedprox")


def test_a_batch_of_one_that_no_round_reaches_is_no_obstacle() -> None:
    assert federation(Normed, batch_size=6, local_steps=3).train(1).diverged is None
