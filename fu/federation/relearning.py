"""Relearning: continue training an unlearned model and measure whether the forgotten data return.

After Siddiqui et al. 2025 (arXiv 2505.22310), where models train on after unlearning, on retained data alone or with
few forgotten samples, and what they say of forgotten samples is compared with what a retrained model says after the
same training. Here the retained clients train as in any round, or the forgotten clients alone, on a few samples each.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.errors import UserError
from fu.federation.task import Task
from fu.seeds import derive_integer

RETAINED, FORGOTTEN = "retained", "forgotten"
ATTACKS = (RETAINED, FORGOTTEN)  # who trains


def shared_out(data: ClientData, samples: int) -> tuple[ClientData, ClientData]:
    """Return the data with so many training samples of each forgotten client, and with its other ones.

    Which these are depends on the client alone, so that they are the same for all models. `UserError` where none are
    left to measure on.
    """
    taught, others = list(data.rows), list(data.rows)
    for client in data.forgotten:
        rows = data.rows[client]
        if len(rows) <= samples:
            raise UserError(
                f"relearning.samples: of the {len(rows)} training samples of client {client}, {samples} leave none to "
                f"measure on; allowed: at most {len(rows) - 1}."
            )
        order = np.random.default_rng(derive_integer("relearned", client)).permutation(len(rows))
        taught[client], others[client] = rows[np.sort(order[:samples])], rows[np.sort(order[samples:])]
    return data.dealt(taught), data.dealt(others)


def relearned(task: Task, theta: Tensor, attack: str) -> Iterator[Tensor]:
    """Yield theta [d] as it is and after each round, up to the last one in which it is finite.

    Updates count by samples, as in FedAvg; all draws are named by seed, client and round, not by the model.
    """
    yield theta
    for round in range(task.rounds):
        clients = task.participants(round) if attack == RETAINED else task.forgotten
        theta = theta + task.federation.mean_update(theta, clients, round)
        if not torch.isfinite(theta).all():
            return
        yield theta
