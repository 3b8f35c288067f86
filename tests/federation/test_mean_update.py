"""The mean of a round: the same for few clients and for many, which are added up without holding all they send."""

from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch

from fu.errors import UserError
from fu.federation import local
from fu.federation.local import Federation, aggregate
from tests.factories import make_federation
from tests.federation.runs import start_of


def trained_together(federation: Federation, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Note which clients are trained in one call."""
    found: list[list[int]] = []
    train = federation._train_each

    def noted(theta: Any, clients: list[int], *rest: Any) -> Any:
        found.append(clients)
        return train(theta, clients, *rest)

    monkeypatch.setattr(federation, "_train_each", noted)
    return found


@pytest.mark.parametrize(("weights", "shares"), [("samples", [18, 12, 7]), ("equal", [2, 1, 1])])
def test_many_clients_have_the_weighted_mean_of_few(
    monkeypatch: pytest.MonkeyPatch, weights: str, shares: list[int]
) -> None:
    monkeypatch.setattr(local, "TOGETHER", 2)
    federation = make_federation()  # 7, 12, 9 samples
    theta = start_of(federation)
    delta = make_federation().local_updates(theta, [2, 1, 0], 1).delta
    together = trained_together(federation, monkeypatch)
    found = federation.mean_update(theta, [2, 1, 2, 0], 1, weights)  # client 2 was drawn twice
    expected = sum(share * row for share, row in zip(shares, delta, strict=True)) / sum(shares)
    torch.testing.assert_close(found, expected)
    assert together == [[2, 1], [0]]


def test_a_mean_of_few_clients_is_that_of_their_updates() -> None:
    federation = make_federation()
    theta = start_of(federation)
    expected = aggregate(make_federation().local_updates(theta, [0, 1, 1], 0), "samples")
    assert torch.equal(federation.mean_update(theta, [0, 1, 1], 0), expected)


@pytest.mark.parametrize("together", [1, 9])
def test_unknown_weights_are_refused(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    monkeypatch.setattr(local, "TOGETHER", together)
    federation = make_federation()
    with pytest.raises(ValueError, match=r"^there are no weights 'sampels'; did you mean 'samples'\? allowed: "):
        federation.mean_update(start_of(federation), [0, 1], 0, "sampels")


def test_rows_and_factors_reach_every_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(client: int, step: int) -> torch.Tensor:
        return torch.tensor([client, step])

    federation = make_federation(local_epochs=None, local_steps=2)
    theta = start_of(federation)
    each = federation.local_updates(theta, [0, 1, 2], 0, rows=rows, factors={2: 3.0}).delta
    monkeypatch.setattr(local, "TOGETHER", 1)
    found = federation.mean_update(theta, [0, 1, 2], 0, "equal", rows=rows, factors={2: 3.0})
    torch.testing.assert_close(found, each.mean(0))


@pytest.mark.parametrize("clients", [[0, 1, 2], [1, 0, 1]])
def test_costs_do_not_depend_on_how_many_are_held(monkeypatch: pytest.MonkeyPatch, clients: list[int]) -> None:
    costs = []
    for together in (64, 1):
        monkeypatch.setattr(local, "TOGETHER", together)
        federation = make_federation()
        theta = start_of(federation)
        federation.mean_update(theta, clients, 0)
        federation.mean_update(theta, clients, 1, counted=False)
        federation.local_updates(theta, [0], 1)
        costs.append(federation.cost.record())
    assert costs[0] == costs[1]


@pytest.mark.parametrize("asked_again", [False, True])
def test_what_is_asked_for_again_is_held(monkeypatch: pytest.MonkeyPatch, asked_again: bool) -> None:
    monkeypatch.setattr(local, "TOGETHER", 1)
    federation = make_federation()
    federation.asked_again = asked_again
    theta, together = start_of(federation), trained_together(federation, monkeypatch)
    federation.mean_update(theta, [0, 1], 0)
    assert together == ([[0, 1]] if asked_again else [[0], [1]])
    federation.local_updates(theta, [0, 1], 0)
    assert len(together) == (1 if asked_again else 3)


def test_updates_that_do_not_fit_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    federation = make_federation()
    theta, needed = start_of(federation), 2 * 3 * federation.layout.size * 4
    for together, there, fits in ((2, needed, True), (2, needed - 1, False), (3, needed - 1, True)):
        monkeypatch.setattr(local, "TOGETHER", together)
        memory = SimpleNamespace(total=there)
        monkeypatch.setattr(psutil, "virtual_memory", lambda memory=memory: memory)
        theta = theta.clone()
        if fits:
            federation.local_updates(theta, [0, 1, 2], 0)
            continue
        with pytest.raises(
            UserError, match=r"^The updates of 3 clients, with 682 parameters each, take 0.0 GB at once"
        ):
            federation.local_updates(theta, [0, 1, 2], 0)
        federation.mean_update(theta, [0, 1, 2], 0)  # needs two at a time
