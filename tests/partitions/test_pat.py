"""Pathological non-IID: which client holds which classes, in equal parts; what cannot be dealt is refused."""

import numpy as np
import pytest

from fu.data.partition import Indices
from fu.partitions import pat
from tests.data.draws import LABELS, SIZES


def dealt(class_share: float) -> list[Indices]:
    return pat.deal(LABELS, 10, 10, pat.Params(class_share=class_share), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("class_share", "held"),
    [
        (0.1, [{client} for client in range(10)]),
        (0.2, [{0, 1}, {0, 1}, {2, 3}, {2, 3}, {4, 5}, {4, 5}, {6, 7}, {6, 7}, {8, 9}, {8, 9}]),
        (0.5, [{0, 1, 2, 3, 4}] * 5 + [{5, 6, 7, 8, 9}] * 5),
        (1.0, [set(range(10))] * 10),
    ],
)
def test_a_pathological_client_holds_its_classes_and_no_other(class_share: float, held: list[set[int]]) -> None:
    assert [set(LABELS[pool].tolist()) for pool in dealt(class_share)] == held


def test_clients_of_one_class_share_it_equally() -> None:
    for client, pool in enumerate(dealt(0.2)):
        counts = np.bincount(LABELS[pool], minlength=10)
        first = client // 2 * 2
        assert abs(counts[first] - SIZES[first] / 2) <= 0.5
        assert abs(counts[first + 1] - SIZES[first + 1] / 2) <= 0.5


@pytest.mark.parametrize("clients", [10, 20, 100])
@pytest.mark.parametrize("classes_per_client", range(1, 11))
def test_clients_in_tens_are_all_served_and_hold_no_more_classes_than_stated(
    clients: int, classes_per_client: int
) -> None:
    sharing = clients * classes_per_client // 10
    holders = pat.holders(clients, 10, classes_per_client)
    held = [sum(client in chosen for chosen in holders) for client in range(clients)]
    assert len(holders) == 10
    assert {len(chosen) == len(set(chosen)) for chosen in holders} == {True}
    assert 1 <= min(map(len, holders)) <= max(map(len, holders)) == sharing
    assert 1 <= min(held) <= max(held) == classes_per_client
    if 10 % classes_per_client == 0:
        assert [len(chosen) for chosen in holders] == [sharing] * 10
        assert held == [classes_per_client] * clients


def test_a_share_is_checked_as_the_classes_that_it_means() -> None:
    pat.check(100, 100, pat.Params(class_share=0.07))  # 7.000000000000001
    pat.check(10, 10, pat.Params(class_share=0.2))
    for clients, share, words in (
        (3, 0.2, "3 clients with 2 of 10 classes each leave client 0 without data"),
        (3, 0.5, "3 clients with 5 of 10 classes each leave client 2 without data"),
        (12, 0.1, "12 clients with 1 of 10 classes each leave client 10 without data"),
    ):
        with pytest.raises(ValueError, match=words):
            pat.check(clients, 10, pat.Params(class_share=share))
    for share in (0.25, 0.05):
        with pytest.raises(ValueError, match=f"class_share: {share} of 10 classes is not a whole number of classes"):
            pat.check(10, 10, pat.Params(class_share=share))
