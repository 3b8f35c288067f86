"""The law of what training draws, by walking through all outcomes in rational arithmetic (FATS, Definition 1)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from fu.federation.sampling import History, Named, Population, Shape, begin

Outcome = tuple[Any, ...]
Law = dict[Outcome, Fraction]
Make = Callable[[Named], History]


class Walk:
    """In place of a numpy `Generator`: every run takes another path, until all outcomes were drawn."""

    def __init__(self) -> None:
        self.path: list[tuple[int, int]] = []  # which of how many outcomes each choice takes
        self.made, self.chance = 0, Fraction(1)

    def __call__(self, *name: int | str) -> "Walk":
        return self

    def integers(self, high: int, *, size: int) -> list[int]:
        return [self._pick(high) for _ in range(size)]

    def choice(self, a: Any, size: int | None = None, *, replace: bool = True, shuffle: bool = True) -> Any:
        if size is None:
            return a[self._pick(len(a))]
        assert not replace
        several = [*combinations(range(a), size)]
        return list(several[self._pick(len(several))])

    def _pick(self, count: int) -> int:
        if self.made == len(self.path):
            self.path.append((0, count))
        found, known = self.path[self.made]
        assert known == count  # the same choices lead to the same next one
        self.made += 1
        self.chance /= count
        return found

    def again(self) -> bool:
        """Turn to the next path; False after the last one."""
        while self.path and self.path[-1][0] + 1 == self.path[-1][1]:
            self.path.pop()
        if self.path:
            self.path[-1] = (self.path[-1][0] + 1, self.path[-1][1])
        self.made, self.chance = 0, Fraction(1)
        return bool(self.path)


class Fixed:
    """A source that draws the given clients, and of each its first samples."""

    def __init__(self, *clients: int) -> None:
        self.clients = clients

    def integers(self, high: int, *, size: int) -> list[int]:
        assert size == len(self.clients)
        return list(self.clients)

    def choice(self, a: int, size: int, *, replace: bool, shuffle: bool) -> list[int]:
        return list(range(size))


def outcomes(draw: Callable[[Named], Outcome]) -> Iterator[tuple[Outcome, Fraction]]:
    """Yield what every path draws, with its probability."""
    walk = Walk()
    while True:
        found = draw(walk)
        yield found, walk.chance
        if not walk.again():
            return


def drawn(history: History, round: int) -> Outcome:
    """Return a round's multiset of clients and, for each that is in it, the samples of its steps."""
    clients = history.clients(round)
    batches = (tuple(frozenset(batch.tolist()) for batch in history.batches(round, one)) for one in sorted({*clients}))
    return tuple(clients), tuple(batches)


def law(make: Make) -> Law:
    """Return the law of the sampling history that `make` returns."""
    return gathered(lambda random: rounds_of(make(random)))


def rounds_of(history: History) -> Outcome:
    """Return what all rounds draw."""
    return tuple(drawn(history, round) for round in range(history.shape.rounds))


def gathered(draw: Callable[[Named], Outcome]) -> Law:
    """Return the law of what `draw` returns."""
    found: defaultdict[Outcome, Fraction] = defaultdict(Fraction)
    for outcome, chance in outcomes(draw):
        found[outcome] += chance
    assert sum(found.values()) == 1
    return found


def mean(value: Callable[[Named], int]) -> Fraction:
    """Return the expectation of a number that is drawn."""
    return sum((found[0] * chance for found, chance in outcomes(lambda random: (value(random),))), Fraction(0))


def distance(one: Law, other: Law) -> Fraction:
    """Return the total variation between two laws."""
    both = one.keys() | other.keys()
    return sum((abs(one.get(key, Fraction(0)) - other.get(key, Fraction(0))) for key in both), Fraction(0)) / 2


class System(NamedTuple):
    """M clients with N samples each, K of them a round, R rounds, E steps, b samples a step."""

    clients: int
    samples: int
    per_round: int
    rounds: int
    steps: int
    batch: int

    @property
    def shape(self) -> Shape:
        return Shape(self.per_round, self.rounds, self.steps, self.batch)

    def population(self, clients: Iterable[int] = (), samples: Iterable[int] = ()) -> Population:
        """Return who holds what, without some: client k holds samples kN to kN + N - 1."""
        gone, away = set(clients), list(samples)
        rows = {k: np.arange(k * self.samples, (k + 1) * self.samples) for k in range(self.clients) if k not in gone}
        return {client: found[~np.isin(found, away)] for client, found in rows.items()}

    def trained(self, clients: Iterable[int] = (), samples: Iterable[int] = ()) -> Make:
        """Return what draws a training without some clients and samples."""
        population = self.population(clients, samples)
        return lambda random: begin(population, self.shape, random)
