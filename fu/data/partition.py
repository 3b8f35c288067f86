"""The partition: everything random that later stages share, drawn once (FedOSD section 4.1 and appendix B.1).

Indices count the merged data set: training samples first, then test samples.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fu.data.archives import load_arrays
from fu.data.assignment import pathological
from fu.errors import UserError
from fu.federation.seeds import derive_integer

Indices = NDArray[np.int64]
SPLITS = ("train", "validation", "test")
_EMPTY = np.empty(0, np.int64)


@dataclass(frozen=True)
class Partition:
    """Who holds what, who is to be forgotten, what is backdoored.

    `train`, `validation`, `test`: one index array per client. `server`: the server's own data. `forget_clients` and
    `forget_samples` with `forget_round` (-1: after training). `backdoored`: the samples of the forgotten clients'
    training data that carry the trigger during the original training. `trigger`: bool [p, p], true where the pixel is
    set to `trigger_value` in model-input space. `label_shift`: y becomes (y + label_shift) mod classes.
    `members`, `nonmembers`: for membership inference. Arrays are empty where a scenario has none.
    """

    train: list[Indices]
    validation: list[Indices]
    test: list[Indices]
    forget_clients: Indices
    server: Indices
    forget_samples: Indices
    forget_round: Indices
    backdoored: Indices
    trigger: NDArray[np.bool_]
    trigger_margin: int
    trigger_value: float
    label_shift: int
    members: Indices
    nonmembers: Indices

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
        for name in ("forget_clients", "server", "forget_samples", "forget_round", "backdoored", "trigger"):
            out[name] = getattr(self, name)
        out["trigger_margin"] = np.array(self.trigger_margin)
        out["trigger_value"] = np.array(self.trigger_value, np.float64)
        out["label_shift"] = np.array(self.label_shift)
        out["members"], out["nonmembers"] = self.members, self.nonmembers
        return out


def load(path: Path) -> Partition:
    """Load a partition file."""
    arrays = load_arrays(path)
    try:
        ragged = {
            split: np.split(arrays.pop(split), arrays.pop(f"{split}_offsets")[1:-1].astype(int)) for split in SPLITS
        }
        numbers = {name: arrays.pop(name).item() for name in ("trigger_margin", "trigger_value", "label_shift")}
        return Partition(**ragged, **numbers, **arrays)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path}: this is no partition file; delete it and run snakemake again.") from None


def _pools(
    y: NDArray[Any], classes: int, clients: int, kind: dict[str, Any], rng: np.random.Generator
) -> list[Indices]:
    """Split all samples to clients, class by class."""
    pools: list[list[Indices]] = [[] for _ in range(clients)]
    iid = kind["kind"] == "iid"
    holders = [list(range(clients))] * classes if iid else pathological(clients, classes, kind["classes_per_client"])
    for label, chosen in enumerate(holders):
        found = np.flatnonzero(y == label)
        if iid:
            found = rng.permutation(found)
        for client, part in zip(chosen, np.array_split(found, len(chosen)), strict=True):
            pools[client].append(part)
    return [np.concatenate(parts) for parts in pools]


def draw(y: NDArray[Any], classes: int, spec: dict[str, Any]) -> Partition:
    """Draw the partition of a data set with labels `y` [n] (train and test merged) as `spec` says.

    `spec`: seed, samples (how many of them to use, drawn at random; None: all), clients, partition (kind `iid` or `pat`
    with classes_per_client), train_share, validation_share (of the training samples), forget (clients: a number to draw
    or a list) and backdoor (or None).
    """
    rng = np.random.default_rng(derive_integer(spec["seed"], "partition"))
    train, validation, test = [], [], []
    limit = spec.get("samples")
    used = np.arange(len(y)) if limit is None else np.sort(rng.choice(len(y), limit, replace=False))
    for client, pool in enumerate(_pools(y[used], classes, spec["clients"], spec["partition"], rng)):
        order = used[rng.permutation(pool)]
        cut = int(len(order) * spec["train_share"])
        held_out = int(cut * spec["validation_share"])
        train.append(order[held_out:cut])
        validation.append(order[:held_out])
        test.append(order[cut:])
        if not len(train[-1]) or not len(test[-1]):
            raise UserError(
                f"client {client} gets {len(train[-1])} training and {len(test[-1])} test samples of {len(order)}; "
                "both must be at least 1: use fewer clients or another train_share."
            )
    wanted = spec["forget"]["clients"]
    if isinstance(wanted, int):
        wanted = rng.choice(spec["clients"], wanted, replace=False)
    forget = np.sort(np.asarray(wanted, np.int64))
    backdoor = spec["backdoor"]
    backdoored, trigger = _EMPTY, np.zeros((0, 0), bool)
    if backdoor:
        chosen = [rng.permutation(train[c])[: round(len(train[c]) * backdoor["share"])] for c in forget]
        backdoored = np.sort(np.concatenate([_EMPTY, *chosen]))
        trigger = rng.random((backdoor["size"], backdoor["size"])) < 0.5
        if not trigger.any():  # a pattern of zeros would leave every image as it is
            trigger[0, 0] = True
    return Partition(
        train=train,
        validation=validation,
        test=test,
        forget_clients=forget,
        server=_EMPTY,
        forget_samples=_EMPTY,
        forget_round=np.full(len(forget), -1, np.int64),
        backdoored=backdoored,
        trigger=trigger,
        trigger_margin=backdoor["margin"] if backdoor else 0,
        trigger_value=backdoor["value"] if backdoor else 0.0,
        label_shift=int(classes * backdoor["label_shift"]) if backdoor else 0,
        members=_EMPTY,
        nonmembers=_EMPTY,
    )
