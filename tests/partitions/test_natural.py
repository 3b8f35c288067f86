"""Natural: a client is an owner with enough samples, and holds all of them."""

import numpy as np
import pytest

from fu.errors import UserError
from fu.partitions import natural
from fu.partitions.natural import Params

SIZES = (5, 30, 12, 0, 9, 10)  # samples of owners 0 to 5
OWNERS = np.random.default_rng(2).permutation(np.repeat(np.arange(6, dtype=np.int32), SIZES))


def owners_of(clients: int, minimum: int, seed: int = 0) -> list[int]:
    """Return whose samples clients hold: all of one owner's."""
    found = []
    for pool in natural.deal(OWNERS, 6, clients, Params(minimum=minimum), np.random.default_rng(seed)):
        (owner,) = set(OWNERS[pool].tolist())
        assert sorted(pool.tolist()) == np.flatnonzero(owner == OWNERS).tolist()
        found.append(owner)
    return found


def test_every_client_is_an_owner_with_enough_samples_in_their_order() -> None:
    assert owners_of(3, 10) == [1, 2, 5]
    assert owners_of(4, 9) == [1, 2, 4, 5]
    assert owners_of(5, 1) == [0, 1, 2, 4, 5]


def test_of_more_owners_than_clients_some_are_drawn() -> None:
    drawn = [tuple(owners_of(2, 10, seed)) for seed in range(60)]
    assert set(drawn) == {(1, 2), (1, 5), (2, 5)}
    assert all(8 < drawn.count(pair) < 35 for pair in set(drawn))


def test_too_few_owners_are_told_and_already_before_the_first_job() -> None:
    with pytest.raises(UserError, match=r"^partition: 4 clients need .* 10 .*, but of 5 owners 3 have so many; use"):
        owners_of(4, 10)
    natural.check(6, 6, Params())
    with pytest.raises(ValueError, match="7 clients cannot be drawn from 6 owners"):
        natural.check(7, 6, Params())
