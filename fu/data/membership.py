"""The sets of a membership inference attack and the shadow models' outputs (Shokri et al. 2017, sections V and VI).

Members are training samples of the forget set; non-members are samples that nobody trained on, equally many of each
class and, where samples have owners, from the same owners. Shadow models train on halves of the retained clients' data,
so that no index is in two of the sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fu.data.archives import load_arrays
from fu.data.partition import Indices, Partition
from fu.errors import UserError
from fu.seeds import derive_integer

Numbers = NDArray[np.float32]


@dataclass(frozen=True)
class Sets:
    """`members`, `non_members` [m]: rows of the merged data set, at each place two of one class.

    `pool` [n]: training rows of the retained clients, on which every shadow's outputs are kept.
    """

    members: Indices
    non_members: Indices
    pool: Indices


def draw(
    part: Partition,
    labels: Indices,
    clients: Sequence[int],
    samples: Indices,
    seed: int,
    most: int | None = None,
    owners: Indices | None = None,
) -> Sets:
    """Draw the sets of a request for `clients` as a whole and for `samples`; `labels`: of the merged data set.

    Members are the training rows of the forgotten clients and the forgotten samples, but for those that an attack
    marks: nobody trained on these as they are. Non-members are the test set of nobody, else all clients' test sets; of
    these only what belongs to owners of members, where `owners` [n] are known: others write another hand. A class in
    which one side has too few limits the other. `most`: no set is larger (None: as large as it can be).
    """
    forgotten = np.setdiff1d(np.concatenate([samples, *(part.train[client] for client in clients)]), part.backdoored)
    test = part.global_test if len(part.global_test) else np.concatenate(part.test)
    if owners is not None:
        test = test[np.isin(owners[test], owners[forgotten])]
    inside = _random(seed, "members").permutation(forgotten)
    outside = _random(seed, "non-members").permutation(test)
    pairs = [np.empty((2, 0), np.int64)]
    for label in np.unique(labels[inside]):
        one, two = (rows[labels[rows] == label] for rows in (inside, outside))
        pairs.append(np.stack([one[: len(two)], two[: len(one)]]))
    matched = np.concatenate(pairs, axis=1)
    kept = _random(seed, "pairs").permutation(matched.shape[1])[:most]
    gone = set(clients)
    held = [part.train[client] for client in part.present if client not in gone]
    pool = _random(seed, "pool").permutation(np.setdiff1d(np.concatenate(held), samples))[:most]
    members, non_members = matched[:, np.sort(kept)]
    return Sets(members, non_members, np.sort(pool))


def half(part: Partition, clients: Sequence[int], samples: Indices, seed: int, shadow: int) -> Partition:
    """Return who holds what for one shadow model: each retained client a random half of its training rows.

    Of an odd number of rows one more or one less, by chance, but at least one. The forgotten clients are absent.
    """
    gone = sorted({*part.absent.tolist(), *clients})
    train = [part.train[0][:0]] * part.clients
    for client in sorted(set(range(part.clients)) - set(gone)):
        rows, random = np.setdiff1d(part.train[client], samples), _random(seed, shadow, client)
        number = max(1, (len(rows) + int(random.integers(2))) // 2)
        train[client] = np.sort(random.permutation(rows)[:number])
    nothing = part.train[0][:0]
    absent = np.array(gone, np.int64)
    return replace(part, train=train, absent=absent, attacked=nothing, backdoored=nothing, attack={})


def _random(*name: int | str) -> np.random.Generator:
    return np.random.default_rng(derive_integer(name[0], "membership", *name[1:]))


@dataclass(frozen=True, eq=False)
class Shadows:
    """What S shadow models were trained on and what they say, all that attacks need of them; rows of the merged data.

    `pool` [n] with `labels` [n], `inside` [S, n] (whether a shadow trained on a row) and `pool_logits` [S, n, C];
    `members` and `non_members` [m] of the same classes `classes` [m], with `member_logits` and `non_member_logits`
    [S, m, C], which no shadow trained on; `trained` [m]: whether the training under attack had a member in any batch
    ([0]: it does not say). `seed` []: names the draws of attacks. `asked` []: how many shadows were trained; those that
    diverged are left out.
    """

    pool: Indices
    labels: Indices
    inside: NDArray[np.bool_]
    pool_logits: Numbers
    members: Indices
    non_members: Indices
    classes: Indices
    member_logits: Numbers
    non_member_logits: Numbers
    trained: NDArray[np.bool_]
    seed: NDArray[np.int64]
    asked: NDArray[np.int64]

    @cached_property
    def number(self) -> int:
        """The number of shadow models that did not diverge, S."""
        return len(self.inside)


def shadows(
    sets: Sets,
    labels: Indices,
    inside: Sequence[NDArray[np.bool_]],
    said: Sequence[Sequence[Numbers]],
    outputs: int,
    seed: int,
    asked: int,
    trained_on: Indices | None = None,
) -> Shadows:
    """Return the record of S shadows: the rows of the pool that each trained on [n], and the logits [rows, C] that each
    gives on pool, members and non-members. `labels`: of the merged data set; `outputs`: C; `trained_on`: the rows that
    the training under attack had in any batch (None: it does not say).
    """
    sizes = (len(sets.pool), len(sets.members), len(sets.members))
    pool, members, others = (
        np.array([one[k] for one in said], np.float32).reshape(-1, size, outputs) for k, size in enumerate(sizes)
    )
    return Shadows(
        pool=sets.pool,
        labels=labels[sets.pool],
        inside=np.array(inside, bool).reshape(-1, len(sets.pool)),
        pool_logits=pool,
        members=sets.members,
        non_members=sets.non_members,
        classes=labels[sets.members],
        member_logits=members,
        non_member_logits=others,
        trained=np.empty(0, bool) if trained_on is None else np.isin(sets.members, trained_on),
        seed=np.array(seed),
        asked=np.array(asked),
    )


def save(path: Path, shadows: Shadows) -> None:
    """Write the file: plain arrays."""
    arrays = {field.name: getattr(shadows, field.name) for field in fields(Shadows)}
    np.savez(path, allow_pickle=False, **arrays)


def load(path: Path) -> Shadows:
    """Load the file; `UserError` where it is none."""
    arrays = load_arrays(path)
    if arrays.keys() != {field.name for field in fields(Shadows)} or not _fit(Shadows(**arrays)):  # type: ignore[arg-type]
        raise UserError(f"{path}: not a file of shadow models; delete it and start the run again.")
    return Shadows(**arrays)  # type: ignore[arg-type]


def _fit(found: Shadows) -> bool:
    """Return whether the shapes belong together."""
    if found.inside.ndim != 2 or found.members.ndim != 1 or found.pool_logits.ndim != 3:
        return False
    (shadows, rows), several, outputs = found.inside.shape, found.members.shape, found.pool_logits.shape[2:]
    return (
        found.pool.shape == found.labels.shape == (rows,)
        and found.non_members.shape == found.classes.shape == several
        and found.trained.shape in (several, (0,))
        and found.pool_logits.shape == (shadows, rows, *outputs)
        and found.member_logits.shape == found.non_member_logits.shape == (shadows, *several, *outputs)
    )
