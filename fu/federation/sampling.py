"""The sampling history of FATS (Tao et al. 2024, Algorithms 1 to 3): who takes part in a round, on which samples.

Everything random comes from `random`, so that a run draws by name and a test can walk through all outcomes. A history
is a list of pieces: what was drawn before a restart stays a draw from the population of that time. What it needs is
drawn when it is asked for.

Exactness: after a request the history has the law of one drawn without the target. Algorithm 1, lines 7 and 8, breaks
it for samples, as does Claim 2: when the target's batch opens a round they draw the round's clients again, though the
target's client is known to be among them. Here the clients drawn up to that time stay. The guarantee is for requests
that do not depend on the history: it does not cover a target chosen after a look at the model.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Population = Mapping[int, Rows]


class Random(Protocol):
    """What is needed of a numpy `Generator`."""

    def integers(self, high: int, *, size: int) -> Any:
        """Return `size` integers below `high`, each as likely as any other."""

    def choice(self, a: int, size: int, *, replace: bool, shuffle: bool) -> Any:
        """Return `size` different integers below `a`."""


Named = Callable[..., Any]  # a name -> `Random`; Any, because numpy types `Generator` more narrowly


@dataclass(frozen=True)
class Shape:
    """K clients a round, R rounds, E steps a round, b samples a step; T = R E time steps."""

    clients_per_round: int
    rounds: int
    steps: int
    batch_size: int

    @property
    def time(self) -> int:
        """The number of time steps T."""
        return self.rounds * self.steps


@dataclass(frozen=True)
class Piece:
    """Draws from one population: of clients from a round on, of batches from a time step on."""

    population: Population
    clients_from: int = 0
    batches_from: int = 0

    @cached_property
    def clients(self) -> list[int]:
        """The clients in order: sorted once, as thousands of them are drawn from in every round."""
        return sorted(self.population)


@dataclass(frozen=True)
class Restart:
    """From which time step on a model is computed anew, and how many steps that are up to the request."""

    time: int
    steps: int


class History:
    """What training draws; `without` returns what it has drawn once a request is met. Rounds and steps count from 0.

    `restart`: from where on the last request changed it; None where it changed nothing that was drawn before.
    """

    def __init__(self, shape: Shape, random: Named, pieces: tuple[Piece, ...], restart: Restart | None = None) -> None:
        """`random(what, piece, round, ...)` returns the source of one draw."""
        self.shape, self.random, self.pieces, self.restart = shape, random, pieces, restart
        self._clients: dict[int, list[int]] = {}
        self._batches: dict[tuple[int, int], list[Rows]] = {}
        self._kept: dict[tuple[int, int], list[Rows]] = {}  # batches from before a restart
        self._rounds: dict[int, list[int]] | None = None
        self._first: dict[int, dict[int, int]] = {}

    @property
    def population(self) -> Population:
        """The clients and samples that are left."""
        return self.pieces[-1].population

    def clients(self, round: int) -> list[int]:
        """Return the K clients of a round in order; one that is drawn twice stands there twice (section 4.1)."""
        if round not in self._clients:
            number = max(k for k, piece in enumerate(self.pieces) if piece.clients_from <= round)
            there = self.pieces[number].clients
            drawn = self.random("clients", number, round).integers(len(there), size=self.shape.clients_per_round)
            self._clients[round] = sorted(there[k] for k in drawn)
        return self._clients[round]

    def batches(self, round: int, client: int) -> list[Rows]:
        """Return the samples of a client's E steps, each b of its own (all it has, if fewer) without replacement."""
        if (round, client) not in self._batches:
            kept = self._kept.get((round, client), [])
            parts, end = [], self.shape.steps
            for number in reversed(range(len(self.pieces))):
                begin = min(max(self.pieces[number].batches_from - round * self.shape.steps, len(kept)), end)
                if begin < end:
                    parts.append(self._draw(number, round, client, end - begin))
                    end = begin
            self._batches[round, client] = [*kept, *(batch for part in reversed(parts) for batch in part)]
        return self._batches[round, client]

    def _draw(self, number: int, round: int, client: int, steps: int) -> list[Rows]:
        rows = self.pieces[number].population[client]
        size, random = min(self.shape.batch_size, len(rows)), self.random("batches", number, round, client)
        return [rows[np.asarray(random.choice(len(rows), size, replace=False, shuffle=False))] for _ in range(steps)]

    def rounds_of(self, client: int) -> list[int]:
        """Return the rounds that a client takes part in."""
        if self._rounds is None:
            self._rounds = {}
            for round in range(self.shape.rounds):
                for one in dict.fromkeys(self.clients(round)):
                    self._rounds.setdefault(one, []).append(round)
        return self._rounds.get(client, [])

    def first_round(self, client: int) -> int | None:
        """Return the first round that a client takes part in: r_C of Algorithm 3."""
        return next(iter(self.rounds_of(client)), None)

    def first_step(self, client: int, sample: int) -> int | None:
        """Return the first time step whose batch holds a sample of a client: t_S of Algorithm 2."""
        if client not in self._first:
            found = self._first[client] = {}
            for round in self.rounds_of(client):
                for step, batch in enumerate(self.batches(round, client)):
                    for one in batch.tolist():
                        found.setdefault(one, round * self.shape.steps + step)
        return self._first[client].get(sample)

    def without(
        self,
        clients: Iterable[int] = (),
        samples: Mapping[int, Collection[int]] | None = None,
        until: int | None = None,
        full: bool = False,
    ) -> "History":
        """Return the history once clients and samples (client -> its samples) are to be forgotten, all at once.

        A client (Algorithm 3): from its first round on clients and batches are drawn anew. A sample (Algorithm 2): from
        its first step on batches are, clients from the next round on. Of several the earliest counts. `until`: how many
        time steps are done when the request comes (None: all); later draws are from those that stay. `full`: everything
        is computed again (section 5.3.2), with the clients drawn so far. K and b stay (B.1).
        """
        gone, asked = set(clients), {client: set(found) for client, found in (samples or {}).items()}
        done = self.shape.time if until is None else until
        left = {
            client: rows[~np.isin(rows, list(asked[client]))] if client in asked else rows
            for client, rows in self.population.items()
            if client not in gone
        }
        if not left or not all(len(left[client]) for client in asked.keys() & left.keys()):
            raise ValueError(
                "a request must leave at least one client, and at least one sample to every retained client"
            )
        met = [point for point in self._points(gone, asked) if point[1] < done]
        clients_from, batches_from = -(-done // self.shape.steps), done
        if met:
            clients_from, batches_from = min(met, key=lambda point: point[::-1])
        if met and full:
            batches_from = 0
        restart = Restart(batches_from, done - batches_from) if met else None
        piece = Piece(left, clients_from, batches_from)
        return self._continued(piece, restart)

    def _points(self, clients: set[int], samples: Mapping[int, set[int]]) -> list[tuple[int, int]]:
        """Return from which round on clients, and from which step on batches would be drawn anew, for each target."""
        steps = self.shape.steps
        rounds = [found for client in clients if (found := self.first_round(client)) is not None]
        times = [
            found
            for client, rows in samples.items()
            if client not in clients
            for row in rows
            if (found := self.first_step(client, row)) is not None
        ]
        return [(round, round * steps) for round in rounds] + [(time // steps + 1, time) for time in times]

    def _continued(self, piece: Piece, restart: Restart | None) -> "History":
        """Return the history with one more piece and all that was drawn before it."""
        steps, found = self.shape.steps, History(self.shape, self.random, (*self.pieces, piece), restart)
        found._clients = {round: drawn for round, drawn in self._clients.items() if round < piece.clients_from}
        for (round, client), drawn in (self._kept | self._batches).items():
            kept = min(piece.batches_from - round * steps, steps)
            if kept > 0:
                found._kept[round, client] = drawn[:kept]
        return found


def begin(population: Population, shape: Shape, random: Named) -> History:
    """Return the history of a training: `population` is client -> its samples."""
    return History(shape, random, (Piece(population),))
