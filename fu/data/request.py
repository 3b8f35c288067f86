"""The forget request: which clients or samples to forget. Drawn once, separately from the partition.

It is drawn before any training, hence independent of the training's draws. Exactness (`fu.federation.sampling`)
requires that; it does not cover targets chosen after looking at the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fu.data.archives import load_arrays
from fu.data.partition import Indices, Partition, no_indices
from fu.errors import UserError
from fu.seeds import derive_integer

TARGETS = ("clients", "samples")
NAMES = (*TARGETS, "clients_cuts", "samples_cuts")


class Wave(NamedTuple):
    """One request of several in a row: clients as a whole, and single training samples of others."""

    clients: Indices
    samples: Indices


@dataclass(frozen=True)
class Request:
    """What is to be forgotten: clients as a whole, or training samples by their indices in the data set.

    Of several requests in a row the targets stand one after another, those of each in order of their numbers;
    `clients_cuts` and `samples_cuts` say where the next request begins (empty: there is one).
    """

    clients: Indices
    samples: Indices = field(default_factory=no_indices)
    clients_cuts: Indices = field(default_factory=no_indices)
    samples_cuts: Indices = field(default_factory=no_indices)

    @property
    def waves(self) -> list[Wave]:
        """The requests in a row."""
        parts = np.split(self.clients, self.clients_cuts), np.split(self.samples, self.samples_cuts)
        return [Wave(*found) for found in zip(*parts, strict=True)]

    def first(self, number: int) -> "Request":
        """Return the first requests alone."""
        waves = self.waves[:number]
        return in_a_row([wave.clients for wave in waves], [wave.samples for wave in waves])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the plain arrays of the file."""
        return {name: getattr(self, name) for name in NAMES}


def in_a_row(clients: Sequence[Indices], samples: Sequence[Indices]) -> Request:
    """Return the request that asks for these clients and samples, one pair after another."""
    cuts = [np.cumsum([len(part) for part in parts])[:-1].astype(np.int64) for parts in (clients, samples)]
    return Request(np.concatenate(clients), np.concatenate(samples), *cuts)


def draw(
    part: Partition, seed: int, clients: int | Sequence[int] | None, samples: int | None = None, requests: int = 1
) -> Request:
    """Draw what is forgotten among all that takes part, each client or sample as likely as any other.

    Either `clients` (how many, or which) or `samples` (how many), at each of `requests` in a row; clients that are
    named are asked for all at once.
    """
    if not isinstance(clients, int | None):
        return Request(np.sort(np.asarray(clients, np.int64)))
    rng = np.random.default_rng(derive_integer(seed, "request"))
    there = np.asarray(part.present, np.int64)
    if samples is not None:
        there = np.concatenate([part.train[client] for client in part.present])
    number = (clients or samples or 0) * requests
    if number >= len(there):
        what = "clients" if samples is None else "training samples"
        raise UserError(f"forget: cannot forget {number} of {len(there)} {what}; some must remain.")
    drawn = [np.sort(wave) for wave in np.split(rng.choice(there, number, replace=False), requests)]
    none = [no_indices()] * requests
    return in_a_row(drawn, none) if samples is None else in_a_row(none, drawn)


def load(path: Path, part: Partition) -> Request:
    """Load a request file; `UserError` where it is none or does not belong to the partition."""
    arrays = load_arrays(path)
    odd = any(array.dtype != np.int64 or array.ndim != 1 for array in arrays.values())
    if arrays.keys() != set(NAMES) or odd:
        raise UserError(f"{path}: not a request file; delete it and start the run again.")
    found = Request(**arrays)  # type: ignore[arg-type]
    if problem := _problem(found, part):
        raise UserError(f"{path}: the request contradicts the partition: {problem}; delete it and start the run again.")
    return found


def _problem(asked: Request, part: Partition) -> str | None:
    """Return what is wrong with a request, if anything."""
    if len(asked.clients_cuts) != len(asked.samples_cuts):
        return "it has not as many requests for clients as for samples"
    for what in TARGETS:
        targets, cuts = getattr(asked, what), getattr(asked, f"{what}_cuts")
        if (np.diff([0, *cuts, len(targets)]) < 0).any():
            return f"{what}_cuts do not share the {what} out to requests"
        if any((np.diff(wave) <= 0).any() for wave in np.split(targets, cuts)):
            return f"it must name {what} in order, each once"
        if len(np.unique(targets)) < len(targets):
            return f"two of its requests name the same of {what}"
    present = np.asarray(part.present, np.int64)
    if len(strangers := np.setdiff1d(asked.clients, present)):
        return f"client {strangers[0]} does not take part"
    stay = np.setdiff1d(present, asked.clients)
    if not len(stay) or not len(asked.clients) + len(asked.samples):
        return "it must name somebody, but not all clients"
    held = [part.train[client] for client in stay]
    if len(strangers := np.setdiff1d(asked.samples, np.concatenate(held))):
        return f"no client that stays trains on sample {strangers[0]}"
    if not all(len(np.setdiff1d(rows, asked.samples)) for rows in held):
        return "it leaves a client without samples"
    return None
