"""Fresh heads by hand, on what the hidden layer holds alone, and never measured on what they were fitted to."""

import pytest
import torch
from torch import Tensor, nn

from fu.audits.models import FRESH
from fu.evaluation import fresh_heads, predictions
from fu.evaluation.fresh_heads import fitted
from fu.federation.heads import head_of
from fu.federation.network import Network
from tests.factories import PLACE, builder, make_data, make_partition

X, Y = torch.tensor([[-1.0], [1.0]]), torch.tensor([0, 1])


def test_ridge_regression_by_hand() -> None:
    # Features are standardised already: X'X + .1 x 2 = 2.2, X'(t - 1/2) of class 1 = 1, so its weight is 1 / 2.2.
    expected = [0.5 - 3 / 2.2, 0.5 + 3 / 2.2]
    assert fitted(X, Y, 2, torch.tensor([[3.0]]))[0].tolist() == pytest.approx(expected)


def test_neither_unit_nor_origin_of_a_feature_matters() -> None:
    x, of = torch.randn(20, 3), torch.randn(5, 3)
    y = torch.arange(20) % 3
    torch.testing.assert_close(fitted(x * 50 + 7, y, 3, of * 50 + 7), fitted(x, y, 3, of), rtol=1e-4, atol=1e-4)


def test_a_unit_that_hardly_any_fitted_sample_activates_does_not_count() -> None:
    x, y = torch.randn(100, 3), torch.arange(100) % 3
    of, unit = torch.randn(5, 3), torch.zeros(100, 1)
    expected = fitted(x, y, 3, of)
    for active, counts in ((0, False), (1, False), (2, True)):  # of 100: about as many set the deviation
        unit[:active] = 0.001
        both = fitted(torch.cat([x, unit], 1), y, 3, torch.cat([of, torch.full((5, 1), 2.0)], 1))
        assert torch.allclose(both, expected) is not counts


@pytest.mark.parametrize("wrong", [torch.inf, torch.nan])
def test_what_is_not_finite_stays_so_and_counts_as_diverged(wrong: float) -> None:
    assert not fitted(X, Y, 2, torch.tensor([[wrong]])).isfinite().any()
    assert not fitted(torch.tensor([[-1.0], [wrong]]), Y, 2, X).isfinite().any()


def network_of(model: nn.Module) -> tuple[Network, Tensor]:
    network = Network(model, PLACE)
    theta = torch.nn.utils.parameters_to_vector(network.model.parameters()).detach().clone()
    return network, theta


def test_the_head_is_given_what_the_hidden_layer_holds() -> None:
    data = make_data(make_partition(), poison="share", asked=[1])
    network, theta = network_of(builder(hidden=8)())
    probes = predictions.audited(data)
    x = probes["forgotten"][0]
    head = head_of(network.model)
    assert head is not None
    expected = network.logits(theta, x)
    torch.testing.assert_close(fresh_heads.hidden(network, theta, x) @ head.weight.T + head.bias, expected)


def test_fresh_heads_ignore_the_model_s_own_head() -> None:
    data = make_data(make_partition(), poison="share", asked=[1])
    network, theta = network_of(builder(hidden=8)())
    probes, head = predictions.audited(data), head_of(network.model)
    assert head is not None
    says = fresh_heads.logits(network, theta, data, probes)
    labels = fresh_heads.labels(network, probes)
    assert {*says} == {*labels} == {*FRESH}
    assert all(len(says[name]) == len(labels[name]) for name in says)
    x, y = probes["forgotten"]
    hidden = [fresh_heads.hidden(network, theta, of) for of in (x, probes["triggered"][0])]
    torch.testing.assert_close(says["head_triggered"], fitted(hidden[0], y, data.classes, hidden[1]))
    gone = theta.clone()
    gone[-(head.weight.numel() + data.classes) :] = 0
    assert network.logits(gone, x).eq(0).all()
    again = fresh_heads.logits(network, gone, data, probes)
    assert all(torch.equal(again[name], says[name]) for name in says)


def test_a_member_is_classified_by_a_head_that_was_not_fitted_to_it() -> None:
    data = make_data(make_partition((20, 20, 20)), asked=[1])
    network, theta = network_of(builder(hidden=30)())
    probes = predictions.audited(data)
    member = fresh_heads.labels(network, probes)["members"]
    sizes = [len(probes[name][1]) for name in ("forgotten", "held_out")]
    assert member.tolist() == [1] * sizes[0] + [0] * sizes[1]
    says = fresh_heads.logits(network, theta, data, probes)["members"]
    both = torch.cat(
        [
            fresh_heads.hidden(network, theta, data.clean(predictions.audited_rows(data))[0]),
            fresh_heads.hidden(network, theta, probes["held_out"][0]),
        ]
    )
    for k in (0, 1, len(member) - 1):
        others = [n for n in range(len(member)) if n % 2 != k % 2]
        expected = fitted(both[others], member[others], 2, both[[k]])[0]
        assert says[k].tolist() == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_model_without_a_linear_layer_has_none() -> None:
    data = make_data(make_partition(), asked=[1])
    convolution = nn.Sequential(nn.Conv2d(1, 10, 8), nn.Flatten())
    network, theta = network_of(convolution)
    probes = predictions.audited(data)
    assert fresh_heads.logits(network, theta, data, probes) == fresh_heads.labels(network, probes) == {}
