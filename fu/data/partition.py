"""The partition: everything random that later stages share, drawn once (FedOSD section 4.1 and appendix B.1).

Indices count the merged data set: training samples first, then test samples.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fu.data.archives import load_arrays
from fu.errors import UserError
from fu.seeds import derive_integer

Indices = NDArray[np.int64]
Drawn = Mapping[str, NDArray[Any]]  # what an attack has drawn, by name
SPLITS = ("train", "validation", "test")
ATTACK = "attack."


@dataclass(frozen=True)
class Partition:
    """Who holds what, who is to be forgotten, what is backdoored.

    `train`, `validation`, `test`: one index array per client. `backdoored`: the samples of the forgotten clients'
    training data that the attack marks during the original training. `attack`: what the attack has drawn (fu/attacks);
    empty where a scenario has none.
    """

    train: list[Indices]
    validation: list[Indices]
    test: list[Indices]
    forget_clients: Indices
    backdoored: Indices
    attack: Drawn = field(default_factory=dict)

    @property
    def clients(self) -> int:
        """The number of clients m."""
        return len(self.train)

    @property
    def forgotten(self) -> list[int]:
        """The clients to be forgotten."""
        return [int(client) for client in self.forget_clients]

    @property
    def retained(self) -> list[int]:
        """The clients that stay."""
        return [client for client in range(self.clients) if client not in set(self.forgotten)]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the plain arrays of the file: ragged lists as one array and its offsets."""
        out: dict[str, NDArray[Any]] = {}
        for split in SPLITS:
            parts: list[Indices] = getattr(self, split)
            out[split] = np.concatenate(parts)
            out[f"{split}_offsets"] = np.cumsum([0, *map(len, parts)])
        out |= {"forget_clients": self.forget_clients, "backdoored": self.backdoored}
        return out | {f"{ATTACK}{name}": value for name, value in self.attack.items()}


def load(path: Path) -> Partition:
    """Load a partition file; `UserError` where it is none or contradicts itself."""
    arrays = load_arrays(path)
    attack = {name.removeprefix(ATTACK): arrays.pop(name) for name in list(arrays) if name.startswith(ATTACK)}
    names = {*SPLITS, *(f"{split}_offsets" for split in SPLITS), "forget_clients", "backdoored"}
    if arrays.keys() != names or any(array.dtype != np.int64 or array.ndim != 1 for array in arrays.values()):
        raise UserError(f"{path}: this is not a partition file; delete it and run snakemake again.")
    problem = _problem(arrays)  # type: ignore[arg-type]
    if problem:
        raise UserError(f"{path}: the partition contradicts itself: {problem}; delete it and run snakemake again.")
    ragged = {split: np.split(arrays.pop(split), arrays.pop(f"{split}_offsets")[1:-1]) for split in SPLITS}  # type: ignore[arg-type]
    return Partition(**ragged, **arrays, attack=attack)  # type: ignore[arg-type]


def _problem(arrays: Mapping[str, Indices]) -> str | None:
    """Return what is wrong with the arrays of a partition, if anything."""
    clients = len(arrays["train_offsets"]) - 1
    for split in SPLITS:
        offsets, falls = arrays[f"{split}_offsets"], np.less if split == "validation" else np.less_equal
        ends = len(offsets) == clients + 1 > 1 and (offsets[0], offsets[-1]) == (0, len(arrays[split]))
        if not ends or falls(offsets[1:], offsets[:-1]).any():
            return f"{split}_offsets do not share the samples out to clients"
    everybody, backdoored = np.concatenate([arrays[split] for split in SPLITS]), arrays["backdoored"]
    for what, rows in (
        ("names sample", everybody),
        ("forgets client", arrays["forget_clients"]),
        ("marks", backdoored),
    ):
        ordered = np.sort(rows)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(twice):
            return f"it {what} {twice[0]} twice"
        if len(rows) and ordered[0] < 0:
            return f"it {what} {ordered[0]}"
    foreign = [int(client) for client in arrays["forget_clients"] if client >= clients]
    if foreign:
        return f"it forgets client {foreign[0]}, but has clients 0 to {clients - 1}"
    starts, train = arrays["train_offsets"], arrays["train"]
    held = [train[starts[client] : starts[client + 1]] for client in arrays["forget_clients"]]
    strange = backdoored[~np.isin(backdoored, np.concatenate([train[:0], *held]), assume_unique=True)]
    return f"sample {strange[0]} is backdoored, but no forgotten client trains on it" if len(strange) else None


def draw(
    labels: NDArray[Any],
    seed: int,
    samples: int | None,
    deal: Callable[[NDArray[Any], np.random.Generator], list[Indices]],
    train_share: float,
    validation_share: float,
    forget: int | Sequence[int],
    attack: Callable[[list[Indices], np.random.Generator], tuple[Indices, Drawn]] | None,
) -> Partition:
    """Draw the partition of a data set with `labels` [n] (train and test merged).

    `samples`: how many of them to use, drawn at random (None: all). `deal(labels, random)` shares them out: the samples
    of each client. Of these `train_share` trains, of which `validation_share` is held out. `forget`: how many clients
    to draw, or which. `attack(train, random)`, given the forgotten clients' training samples, returns those that it
    marks and what it has drawn.
    """
    if samples is not None and samples > len(labels):
        raise UserError(
            f"samples: {samples} are to be used, but the data set holds {len(labels)}; allowed: up to that."
        )
    rng = np.random.default_rng(derive_integer(seed, "partition"))
    train, validation, test = [], [], []
    used = np.arange(len(labels)) if samples is None else np.sort(rng.choice(len(labels), samples, replace=False))
    for client, pool in enumerate(deal(labels[used], rng)):
        order = used[rng.permutation(pool)]
        cut = int(len(order) * train_share)
        held_out = int(cut * validation_share)
        train.append(order[held_out:cut])
        validation.append(order[:held_out])
        test.append(order[cut:])
        if not len(train[-1]) or not len(test[-1]):
            raise UserError(
                f"client {client} gets {len(train[-1])} training and {len(test[-1])} test samples of {len(order)}; "
                "both must be at least 1: use fewer clients or another train_share."
            )
        if validation_share and not held_out:
            raise UserError(
                f"client {client} gets no validation sample: {validation_share:g} of its {cut} training samples is "
                "less than one; use fewer clients, or another validation_share (0: hold nothing out)."
            )
    wanted = rng.choice(len(train), forget, replace=False) if isinstance(forget, int) else forget
    forgotten = np.sort(np.asarray(wanted, np.int64))
    backdoored, drawn = attack([train[c] for c in forgotten], rng) if attack else (np.empty(0, np.int64), {})
    return Partition(train, validation, test, forgotten, backdoored, drawn)
