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
    """Load a partition file."""
    arrays = load_arrays(path)
    try:
        ragged = {
            split: np.split(arrays.pop(split), arrays.pop(f"{split}_offsets")[1:-1].astype(int)) for split in SPLITS
        }
        attack = {name.removeprefix(ATTACK): arrays.pop(name) for name in list(arrays) if name.startswith(ATTACK)}
        return Partition(**ragged, **arrays, attack=attack)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path}: this is no partition file; delete it and run snakemake again.") from None


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
    wanted = rng.choice(len(train), forget, replace=False) if isinstance(forget, int) else forget
    forgotten = np.sort(np.asarray(wanted, np.int64))
    backdoored, drawn = attack([train[c] for c in forgotten], rng) if attack else (np.empty(0, np.int64), {})
    return Partition(train, validation, test, forgotten, backdoored, drawn)
