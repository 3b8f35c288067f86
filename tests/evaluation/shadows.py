"""Shadow models whose outputs are drawn, and true ones."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from fu.data import membership
from fu.data.clients import ClientData
from fu.data.membership import Shadows
from fu.federation.local import Federation, LocalTraining
from fu.federation.task import Task
from fu.seeds import derive_integer
from fu.training import fedavg


def drawn(
    classes: int = 10, shadows: int = 8, rows: int = 2000, pairs: int = 1000, leak: float = 2.0, seed: int = 0
) -> tuple[Shadows, Callable[[bool], Tensor]]:
    """Return shadows whose logits are normal, those of the own class higher by two, and by `leak` where trained on.

    And a function that returns logits of a model on as many samples as there are pairs: trained on or not.
    """
    random = np.random.default_rng(seed)

    def logits(labels: np.ndarray, lift: float | np.ndarray, *shape: int) -> np.ndarray:
        x = random.normal(size=(*shape, len(labels), classes)).astype(np.float32)
        x[..., np.arange(len(labels)), labels] += 2 + lift
        return x

    labels, own = random.integers(classes, size=rows), np.sort(random.integers(classes, size=pairs))
    inside = random.random((shadows, rows)) < 0.5
    record = Shadows(
        pool=np.arange(rows),
        labels=labels,
        inside=inside,
        pool_logits=logits(labels, leak * inside, shadows),
        members=np.arange(rows, rows + pairs),
        non_members=np.arange(rows + pairs, rows + 2 * pairs),
        classes=own,
        member_logits=logits(own, 0, shadows),
        non_member_logits=logits(own, 0, shadows),
        trained=np.arange(pairs) % 3 == 0,
        seed=np.array(seed),
        asked=np.array(shadows),
    )
    return record, lambda trained: torch.from_numpy(logits(own, leak * trained))


def record_of(data: ClientData, pairs: int = 8) -> Shadows:
    """Return three shadows that say anything on the first samples of some data."""
    random = np.random.default_rng(5)
    rows = np.arange(len(data.y))
    labels = np.arange(len(rows)) % 2
    members, others, pool = rows[:pairs], rows[pairs : 2 * pairs], rows[2 * pairs :]
    sets = membership.Sets(members, others, pool)
    said = [
        [random.normal(size=(len(part), data.classes)).astype(np.float32) for part in (pool, members, others)]
        for _ in range(3)
    ]
    inside = [np.arange(len(pool)) % 4 < 1 + shadow for shadow in range(3)]
    return membership.shadows(sets, labels, inside, said, data.classes, 0, 3, members[::2])


def trained(
    data: ClientData, build: Callable[[], nn.Module], local: LocalTraining, rounds: int, number: int, seed: int = 0
) -> Shadows:
    """Train shadows on halves of what the retained clients hold."""
    labels, asked = data.y.numpy(), (data.forgotten, data.forgotten_samples)
    sets, inside, said = membership.draw(data.partition, labels, *asked, seed), [], []
    for shadow in range(number):
        part = membership.half(data.partition, *asked, seed, shadow)
        held = ClientData(data.x, data.y, part, data.classes, "share")
        own = derive_integer(seed, "shadow", shadow)
        federation = Federation(build(), held, local, "training", own)
        task, p = Task(federation, build, [], held.retained, rounds, own), fedavg.Params()
        state = fedavg.start(task, p)
        for round in range(rounds):
            state = fedavg.step(task, p, state, round)
        inside.append(np.isin(sets.pool, np.concatenate(part.train)))
        shown = (sets.pool, sets.members, sets.non_members)
        said.append([federation.logits(state.theta, data.clean(rows)[0]).numpy() for rows in shown])
    return membership.shadows(sets, labels, inside, said, data.classes, seed, number)
