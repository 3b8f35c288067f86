"""The partition of a data set among clients, drawn once and shared by all later stages (FedOSD section 4.1, B.1).

It does not include the forget request (`fu.data.request`), so that many requests share one training. Indices refer to
the merged data set: training samples first, then test samples.
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
POOLS = ("server", "held_out", "global_test")
CLIENTS = ("attacked", "absent")
ATTACK = "attack."


def no_indices() -> Indices:
    """Return an empty array of indices."""
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Partition:
    """Who holds what, who never takes part, whose data are backdoored.

    `train`, `validation`, `test`: one index array per client. `attacked`: the clients whose data the attack marks,
    `backdoored`: those of their training samples that it marks during the original training, `attack`: what it has
    drawn (fu/attacks); all three are empty where a scenario has none. `absent`: the clients that never take part.
    `server`: the samples of the server in random order, so that its first n are a smaller set. `held_out`: samples of
    all classes on which nobody trains, to choose by. `global_test`: a test set that belongs to no client.
    """

    train: list[Indices]
    validation: list[Indices]
    test: list[Indices]
    attacked: Indices = field(default_factory=no_indices)
    backdoored: Indices = field(default_factory=no_indices)
    attack: Drawn = field(default_factory=dict)
    absent: Indices = field(default_factory=no_indices)
    server: Indices = field(default_factory=no_indices)
    held_out: Indices = field(default_factory=no_indices)
    global_test: Indices = field(default_factory=no_indices)

    @property
    def clients(self) -> int:
        """The number of clients m."""
        return len(self.train)

    @property
    def present(self) -> list[int]:
        """The clients that take part."""
        absent = set(self.absent.tolist())
        return [client for client in range(self.clients) if client not in absent]

    def holders(self, samples: Indices) -> dict[int, Indices]:
        """Return who trains on which of these samples."""
        found = {client: np.intersect1d(rows, samples) for client, rows in enumerate(self.train)}
        return {client: rows for client, rows in found.items() if len(rows)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the plain arrays of the file: ragged lists as one array and its offsets."""
        out: dict[str, NDArray[Any]] = {}
        for split in SPLITS:
            parts: list[Indices] = getattr(self, split)
            out[split] = np.concatenate(parts)
            out[f"{split}_offsets"] = np.cumsum([0, *map(len, parts)])
        out |= {name: getattr(self, name) for name in (*CLIENTS, *POOLS, "backdoored")}
        return out | {f"{ATTACK}{name}": value for name, value in self.attack.items()}


def load(path: Path) -> Partition:
    """Load a partition file; `UserError` where it is none or contradicts itself."""
    arrays = load_arrays(path)
    attack = {name.removeprefix(ATTACK): arrays.pop(name) for name in list(arrays) if name.startswith(ATTACK)}
    names = {*SPLITS, *(f"{split}_offsets" for split in SPLITS), *CLIENTS, *POOLS, "backdoored"}
    if arrays.keys() != names or any(array.dtype != np.int64 or array.ndim != 1 for array in arrays.values()):
        raise UserError(f"{path}: not a partition file; delete it and start the run again.")
    problem = _problem(arrays)  # type: ignore[arg-type]
    if problem:
        raise UserError(f"{path}: the partition is inconsistent: {problem}; delete it and start the run again.")
    ragged = {split: np.split(arrays.pop(split), arrays.pop(f"{split}_offsets")[1:-1]) for split in SPLITS}  # type: ignore[arg-type]
    return Partition(**ragged, **arrays, attack=attack)  # type: ignore[arg-type]


def _problem(arrays: Mapping[str, Indices]) -> str | None:
    """Return what is wrong with the arrays of a partition, if anything."""
    clients = len(arrays["train_offsets"]) - 1
    for split in SPLITS:
        offsets = arrays[f"{split}_offsets"]
        needed = split == "train" or (split == "test" and len(arrays["test"]))  # each client has some, or nobody
        falls = np.less_equal if needed else np.less
        ends = len(offsets) == clients + 1 > 1 and (offsets[0], offsets[-1]) == (0, len(arrays[split]))
        if not ends or falls(offsets[1:], offsets[:-1]).any():
            return f"{split}_offsets do not share the samples out to clients"
    everybody, backdoored = np.concatenate([arrays[name] for name in (*SPLITS, *POOLS)]), arrays["backdoored"]
    for what, rows in (
        ("names sample", everybody),
        ("attacks client", arrays["attacked"]),
        ("leaves out client", arrays["absent"]),
        ("marks", backdoored),
    ):
        ordered = np.sort(rows)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(twice):
            return f"it {what} {twice[0]} twice"
        if len(rows) and ordered[0] < 0:
            return f"it {what} {ordered[0]}"
    if not len(arrays["test"]) + len(arrays["global_test"]):
        return "it has no test sample"
    foreign = [int(client) for name in CLIENTS for client in arrays[name] if client >= clients]
    if foreign:
        return f"it names client {foreign[0]}, but has clients 0 to {clients - 1}"
    both = np.intersect1d(arrays["attacked"], arrays["absent"])
    if len(both):
        return f"it attacks client {both[0]}, who never takes part"
    starts, train = arrays["train_offsets"], arrays["train"]
    held = [train[starts[client] : starts[client + 1]] for client in arrays["attacked"]]
    strange = backdoored[~np.isin(backdoored, np.concatenate([train[:0], *held]), assume_unique=True)]
    return f"sample {strange[0]} is backdoored, but no attacked client trains on it" if len(strange) else None


Deal = Callable[[NDArray[Any], np.random.Generator], list[Indices]]
Attack = Callable[[list[Indices], np.random.Generator], tuple[Indices, Drawn]]


def draw(
    labels: NDArray[Any],
    seed: int,
    samples: int | None,
    deal: Deal,
    train_share: float,
    validation_share: float,
    attacked: int | Sequence[int],
    attack: Attack | None,
) -> Partition:
    """Draw the partition of a data set with `labels` [n] whose training and test parts are merged.

    `samples`: how many of them to use, drawn at random (None: all). `deal(labels, random)` shares them out: the samples
    of each client. Of these `train_share` trains, of which `validation_share` is held out. `attacked`: how many clients
    the attack marks, or which. `attack(train, random)`, given their training samples, returns those that it marks and
    what it has drawn.
    """
    _check_samples(samples, len(labels))
    rng = np.random.default_rng(derive_integer(seed, "partition"))
    train, validation, test = [], [], []
    used = np.arange(len(labels)) if samples is None else np.sort(rng.choice(len(labels), samples, replace=False))
    for client, pool in enumerate(deal(labels[used], rng)):
        order = used[rng.permutation(pool)]
        cut = int(len(order) * train_share)
        held_out = _validation(client, cut, validation_share)
        train.append(order[held_out:cut])
        validation.append(order[:held_out])
        test.append(order[cut:])
        if not len(train[-1]) or not len(test[-1]):
            raise UserError(
                f"client {client} gets {len(train[-1])} training and {len(test[-1])} test samples of {len(order)}; "
                "both must be at least 1, so use fewer clients or another train_share."
            )
    return Partition(train, validation, test, **_attack(train, range(len(train)), attacked, attack, rng))


def draw_official(
    labels: NDArray[Any],
    training: int,
    seed: int,
    samples: int | None,
    deal: Deal,
    validation_share: float,
    test: str,
    server: int,
    held_out: int,
    absent: int,
    attacked: int | Sequence[int],
    attack: Attack | None,
) -> Partition:
    """Draw the partition of a data set of whose `labels` the first `training` are its own training part.

    `samples`: how many of the training part to use, of the test part the same share. `server` and `held_out` samples
    are taken from the training part at random before clients get the rest by `deal`; what clients get is the same for
    every number of absent ones. `test`: "global" (one test set for all) or "clients" (dealt as the training part,
    which needs a `deal` whose choice of classes hangs on its generator alone). `absent`: how many clients never take
    part; fewer are some of these. `attacked` (of those that take part), `attack`: as for `draw`.
    """
    _check_samples(samples, training)
    share = 1.0 if samples is None else samples / training

    def random(what: str) -> np.random.Generator:
        return np.random.default_rng(derive_integer(seed, "partition", what))

    def use(part: Indices, what: str) -> Indices:
        number = round(len(part) * share)
        return part if number == len(part) else np.sort(random(f"samples {what}").choice(part, number, replace=False))

    used, tests = use(np.arange(training), "training"), use(np.arange(training, len(labels)), "test")
    if server + held_out >= len(used):
        raise UserError(
            f"server and held_out: {server} and {held_out} of {len(used)} samples leave none for the clients."
        )
    order = random("reserved").permutation(used)
    rest = np.sort(order[server + held_out :])
    train: list[Indices] = []
    validation: list[Indices] = []
    for client, pool in enumerate(deal(labels[rest], random("deal"))):
        mine = random(f"client {client}").permutation(rest[pool])
        apart = _validation(client, len(mine), validation_share)
        train.append(mine[apart:])
        validation.append(mine[:apart])
        if not len(train[-1]):
            raise UserError(f"client {client} gets no training sample; use fewer clients.")
    own = [tests[pool] for pool in deal(labels[tests], random("deal"))] if test == "clients" else []
    if not all(map(len, own)):
        raise UserError("a client gets no test sample; use fewer clients or one test set for all.")
    order_of_absent = random("absent").permutation(len(train))
    present = np.sort(order_of_absent[absent:])
    return Partition(
        train,
        validation,
        own or [no_indices()] * len(train),
        **_attack(train, present, attacked, attack, random("attack")),
        absent=np.sort(order_of_absent[:absent]),
        server=order[:server],
        held_out=np.sort(order[server : server + held_out]),
        global_test=no_indices() if own else tests,
    )


def _check_samples(samples: int | None, there: int) -> None:
    if samples is not None and samples > there:
        raise UserError(f"samples: must be at most {there}, the size of the data set, got {samples}.")


def _validation(client: int, train: int, share: float) -> int:
    """Return how many of a client's training samples are held out."""
    number = int(train * share)
    if share and not number:
        raise UserError(
            f"client {client} gets no validation sample: {share:g} of its {train} training samples is "
            "less than one; use fewer clients, or another validation_share (0: hold nothing out)."
        )
    return number


def _attack(
    train: list[Indices],
    present: Sequence[int] | Indices,
    attacked: int | Sequence[int],
    attack: Attack | None,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return who is attacked, and what the attack marks and has drawn."""
    if attack is None:
        return {}
    wanted = rng.choice(np.asarray(present), attacked, replace=False) if isinstance(attacked, int) else attacked
    chosen = np.sort(np.asarray(wanted, np.int64))
    backdoored, drawn = attack([train[client] for client in chosen], rng)
    return {"attacked": chosen, "backdoored": backdoored, "attack": drawn}
