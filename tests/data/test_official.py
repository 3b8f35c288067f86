"""Partitions of a data set's own training and test part: the server's data, held-out samples, absent clients."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from fu.attacks import patch
from fu.data.partition import Partition
from fu.errors import UserError
from tests.data.draws import LABELS, TESTS, Kind, draw_official, equal, pat

KINDS: list[Kind] = [("iid", {}), pat(0.2), ("balanced_classes", {"classes": 2})]
TRAINING = len(LABELS) - TESTS


def classes(rows: np.ndarray) -> set[int]:  # type: ignore[type-arg]
    return set(LABELS[rows].tolist())


@pytest.mark.parametrize("test", ["global", "clients"])
@pytest.mark.parametrize("kind", KINDS)
def test_clients_server_held_out_and_tests_share_no_sample_and_keep_to_their_part(kind: Kind, test: str) -> None:
    part = draw_official(kind=kind, test=test, server=60, held_out=35)
    training = np.concatenate([*part.train, *part.validation, part.server, part.held_out])
    tests = np.concatenate([*part.test, part.global_test])
    assert (len(part.server), len(part.held_out)) == (60, 35)
    assert len(set(training.tolist())) == len(training) <= TRAINING
    assert len(set(tests.tolist())) == len(tests)
    assert training.max() < TRAINING <= tests.min()
    if kind[0] != "balanced_classes":  # which leaves out what it cannot share out equally
        assert len(training) == TRAINING
        assert len(tests) == TESTS
    assert (len(part.global_test) == 0) == (test == "clients") == all(map(len, part.test))


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_tests_on_the_classes_that_it_trains_on(kind: Kind) -> None:
    part = draw_official(kind=kind, test="clients", server=60)
    for train, test in zip(part.train, part.test, strict=True):
        assert classes(test) == classes(train)
    assert len({frozenset(classes(train)) for train in part.train}) > (1 if kind[0] != "iid" else 0)


def same_clients(one: Partition, other: Partition) -> bool:
    return all(
        np.array_equal(a, b)
        for split in ("train", "validation", "test")
        for a, b in zip(getattr(one, split), getattr(other, split), strict=True)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_what_clients_hold_hangs_neither_on_who_is_absent_nor_on_an_attack(kind: Kind) -> None:
    one = draw_official(kind=kind, server=60, held_out=35)
    for absent in (1, 4, 8):
        other = draw_official(kind=kind, server=60, held_out=35, absent=absent)
        assert len(other.absent) == absent
        assert same_clients(one, other)
        assert other.server.tolist() == one.server.tolist()
        assert other.held_out.tolist() == one.held_out.tolist()
    assert same_clients(one, draw_official(kind=kind, server=60, held_out=35, backdoor=patch.Params()))


def test_fewer_absent_clients_are_some_of_more_and_they_vary_with_the_seed() -> None:
    sets = [set(draw_official(absent=number).absent.tolist()) for number in range(10)]
    assert [len(found) for found in sets] == list(range(10))
    assert all(few < more for few, more in pairwise(sets))
    drawn = [draw_official(absent=1, seed=seed).absent.tolist()[0] for seed in range(30)]
    assert len(set(drawn)) >= 7
    absent = draw_official(absent=4).absent.tolist()
    assert absent == sorted(absent)


def test_the_servers_samples_are_in_random_order_so_that_the_first_are_a_smaller_set_of_all_classes() -> None:
    server = draw_official(server=200).server
    assert server.tolist() != sorted(server.tolist())
    assert len(classes(server[:60])) == 10
    assert abs(np.corrcoef(np.arange(200), server)[0, 1]) < 0.25


@pytest.mark.parametrize("seed", range(8))
def test_only_clients_that_take_part_are_attacked(seed: int) -> None:
    part = draw_official(seed=seed, absent=6, attacked=3, backdoor=patch.Params())
    assert len(part.attacked) == 3
    assert set(part.attacked.tolist()) < set(part.present)


def test_the_same_share_of_the_test_part_is_used_as_of_the_training_part() -> None:
    part = draw_official(samples=TRAINING // 2 + 1, server=20)
    training = np.concatenate([*part.train, *part.validation, part.server])
    assert len(training) == TRAINING // 2 + 1
    assert len(part.global_test) == round(TESTS * (TRAINING // 2 + 1) / TRAINING)
    assert training.max() > 0.9 * TRAINING
    assert (part.global_test.min(), part.global_test.max()) > (TRAINING, TRAINING + TESTS // 2)


@pytest.mark.parametrize("kind", KINDS)
def test_the_validation_samples_are_the_stated_share_and_drawn(kind: Kind) -> None:
    part, whole = draw_official(kind=kind, validation_share=0.25), draw_official(kind=kind, validation_share=0.0)
    for train, validation, everything in zip(part.train, part.validation, whole.train, strict=True):
        assert len(validation) == len(everything) // 4
        assert {*train.tolist(), *validation.tolist()} == set(everything.tolist())
        assert classes(validation) <= classes(train) == classes(everything)


def test_a_seed_draws_the_same_again_and_another_seed_everything_else() -> None:
    given: dict[str, Any] = {"server": 60, "held_out": 35, "absent": 4}
    one, again, other = (draw_official(seed=seed, **given) for seed in (3, 3, 4))
    assert equal(one, again)
    for name in ("server", "held_out", "absent"):
        assert getattr(one, name).tolist() != getattr(other, name).tolist()
    assert all(set(a.tolist()) != set(b.tolist()) for a, b in zip(one.train, other.train, strict=True))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"server": TRAINING - 1, "held_out": 1}, f"{TRAINING - 1} and 1 of {TRAINING} samples leave none for the"),
        (
            {"samples": TRAINING + 1},
            f"samples: must be at most {TRAINING}, the size of the data set, got {TRAINING + 1}",
        ),
        ({"server": TRAINING - 4}, "client 0 gets no validation sample"),
        ({"server": TRAINING - 4, "validation_share": 0.0}, "gets no training sample; use fewer clients"),
        (
            {"samples": 100, "test": "clients", "validation_share": 0.0},
            "a client gets no test sample; use fewer clients",
        ),
    ],
)
def test_too_few_samples_are_told_in_one_sentence(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        draw_official(**given)
