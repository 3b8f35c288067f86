"""FATS's published attack: its rates by hand, who is a member, what it sees of models that tell all or nothing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fu.data.clients import ClientData
from fu.data.partition import Partition
from fu.data.request import Request
from fu.evaluation import membership_forest as attack
from fu.evaluation.context import Context
from fu.federation.network import Network

CLASSES, SIZES = 2, (60, 60, 40, 7)  # client 2 is forgotten, client 3 takes no part
NONE: Any = np.empty(0, np.int64)


class Scaled(nn.Module):
    """Its logits are two pixels, times one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)[:, :CLASSES] * self.weight


def context(member: float, other: float, request: Request | None = None) -> Context:
    """Return a model that gives a member's class a logit of `member` more than the other, others' one of `other`."""
    ends = np.cumsum(SIZES)
    rows = np.split(np.arange(ends[-1]), ends[:-1])
    y = torch.arange(int(ends[-1])) % CLASSES
    x = torch.zeros(len(y), 2, 2, 1)
    x[:, 1] = torch.rand(len(y), 2, 1, generator=torch.Generator().manual_seed(0))  # all that forests can learn from
    forgotten = torch.zeros(len(y), dtype=torch.bool)
    forgotten[torch.from_numpy(rows[2])] = True
    x[torch.arange(len(y)), 0, y, 0] = torch.where(forgotten, other, member)
    part = Partition(rows, [NONE] * 4, [NONE] * 4, absent=np.array([3]))
    data = ClientData(x, y, part, CLASSES, "all", None, request or Request(np.array([2])))
    return Context(Network(Scaled(), data.device), data, torch.ones(1))


def test_rates_are_those_worked_out_by_hand() -> None:
    """Of four members three are called members, of four non-members one: right are 3 + 3 of 8."""
    yes = np.array([True, True, True, False])
    found = attack.rates(yes, ~yes, np.random.default_rng(0))
    assert found == {"forest_accuracy": 6 / 8, "forest_recall": 3 / 4, "forest_false_positives": 1 / 4}


def test_as_many_members_as_non_members_are_drawn_a_hundred_times() -> None:
    """Of one in ten that is called a member, four at a time hold .4 on average."""
    members = np.arange(100) % 10 == 0
    found = attack.rates(members, np.zeros(4, bool), np.random.default_rng(0))
    assert found["forest_recall"] == pytest.approx(0.1, abs=0.05)
    assert found["forest_accuracy"] == pytest.approx(0.5 + found["forest_recall"] / 2)


def test_a_model_that_is_sure_of_members_alone_gives_them_away() -> None:
    """A forest is sure of what it trained on, and so is taken to be whoever is."""
    found = attack.evaluate(context(member=20.0, other=-0.4))
    assert found["forest_accuracy"] > 0.9
    assert found["forest_false_positives"] < 0.1


def test_a_model_that_is_as_sure_of_all_gives_nobody_away() -> None:
    found = attack.evaluate(context(member=20.0, other=20.0))
    assert found["forest_accuracy"] == 0.5
    assert found["forest_recall"] == 1


def test_members_are_the_retained_clients_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []

    def calls(context: Context, rows: Any, attacks: Any) -> Any:
        seen.append(sorted(rows.tolist()))
        return np.zeros(len(rows), bool)

    monkeypatch.setattr(attack, "calls", calls)
    attack.evaluate(context(1.0, 1.0))
    assert seen == [[*range(120)], [*range(120, 160)]]
    seen.clear()
    attack.evaluate(context(1.0, 1.0, Request(NONE, np.array([130]))))  # whoever holds a sample counts as a whole
    assert seen == [[*range(120)], [*range(120, 160)]]


def test_shadows_train_on_halves_of_disjoint_fifths(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[tuple[int, ...]] = []
    grown = attack.grown

    def watched(x: Any, y: Any, random: Any) -> Any:
        trained.append(x.shape)
        return grown(x, y, random)

    monkeypatch.setattr(attack, "grown", watched)
    one = context(1.0, 1.0)
    attacks = attack.attack_forests(one, np.arange(120), np.random.default_rng(0))
    assert trained == [*[(12, 4)] * 5, *[(60, 2)] * 2]  # of 120 rows fifths of 24; two classes of five times 12
    assert attacks.keys() == {0, 1}
    assert [len(forest.estimators_) for forest in attacks.values()] == [100, 100]


def test_without_a_request_nothing_is_measured() -> None:
    one = context(1.0, 1.0)
    data = ClientData(one.data.x, one.data.y, one.data.partition, CLASSES, "all")
    assert attack.evaluate(replace(one, data=data)) == {}
