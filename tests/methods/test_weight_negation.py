"""NoT: which weights are negated, and what follows."""

import pytest
import torch
from torch import nn

from fu.errors import UserError
from fu.methods import weight_negation
from tests.factories import COLOUR, builder, make_data, make_federation, make_partition, make_task, params_of
from tests.systems import weighted_mean


@pytest.mark.parametrize("model", ["mlp", "lenet5", "nfresnet18"])
def test_the_first_layers_weights_alone_are_negated(model: str) -> None:
    shape = COLOUR if model == "nfresnet18" else (28, 28, 1)
    task = make_task(make_federation(make_data(make_partition(), shape), model), model)
    p = params_of(weight_negation)
    views = task.federation.layout.views
    before, after = views(task.original_model), views(weight_negation.start(task, p).theta)
    first, *others = before
    assert first.endswith("weight")
    torch.testing.assert_close(after[first], -before[first], rtol=0, atol=0)
    assert before[first].abs().max() > 0
    assert all(torch.equal(after[name], before[name]) for name in others)


def test_the_retained_clients_then_fine_tune() -> None:
    task, p = make_task(), params_of(weight_negation)
    state = weight_negation.start(task, p)
    moved = weighted_mean(make_federation().local_updates(state.theta, [0, 2], 0).delta, [7, 9])
    found = weight_negation.step(task, p, state, 0)
    torch.testing.assert_close(found.theta, state.theta + moved, rtol=0, atol=1e-6)
    assert task.federation.cost.forgotten_rounds == 0


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (nn.Sequential(nn.GroupNorm(1, 1), nn.Conv2d(1, 2, 3)), r"here it is GroupNorm \(0\)\."),
        (nn.Sequential(nn.Embedding(3, 2), nn.Linear(2, 3)), r"here it is Embedding \(0\)\."),
        (nn.Embedding(3, 2), r"here it is Embedding \(the model itself\)\."),
    ],
)
def test_a_model_that_begins_otherwise_is_refused(model: nn.Module, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        weight_negation.check(model, params_of(weight_negation))


def test_a_model_that_begins_with_a_convolution_or_a_fully_connected_layer_is_not() -> None:
    for model in (
        builder()(),
        builder("lenet5", (28, 28, 1))(),
        nn.Linear(2, 3),
        nn.Sequential(nn.ReLU(), nn.Linear(2, 3)),
    ):
        weight_negation.check(model, params_of(weight_negation))
    assert weight_negation.first_weight(nn.Linear(2, 3)) == "weight"
    assert weight_negation.first_weight(nn.Sequential(nn.ReLU(), nn.Linear(2, 3))) == "1.weight"
