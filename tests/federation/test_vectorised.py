"""All clients at once: the same updates as client after client."""

import pytest
import torch

from fu.federation.losses import OBJECTIVES
from tests.factories import GREY, SMALL, make_data, make_federation, make_partition
from tests.federation.runs import start_of


@pytest.mark.parametrize(("model", "shape"), [("mlp", SMALL), ("lenet5", GREY)])
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
