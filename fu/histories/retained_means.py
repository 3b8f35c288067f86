"""Mean local model of the retained clients in every round, as the code of FedEraser's authors stores and uses it.

During training the retained clients are known only if an attack marks the others. Models are stored for the first
rounds only, because the code starts from one of them.
"""

import torch

from fu.federation.task import Record, Task
from fu.histories.update_norms import layer_norms

ATTACK = True  # who will be forgotten must be known while it trains
FIRST = 32  # rounds whose mean is kept (our choice: FedOSD's interval is 10)


def record(task: Task, so_far: Record, theta: torch.Tensor, round: int) -> Record:
    """Return what to keep after a round that began at theta [d]; its updates are known and cost nothing.

    `models` [rounds, d]: the mean, as FedAvg weights clients. `norms` [rounds, layers]: of its difference from the next
    global model, the mean of all clients.
    """
    federation = task.federation

    def mean(clients: list[int]) -> torch.Tensor:
        updates = federation.local_updates(theta, clients, round, counted=False)
        return updates.sizes / updates.sizes.sum() @ updates.delta

    retained = mean(task.retained)
    norms = layer_norms(federation.layout, (retained - mean(task.clients))[None])
    models = (theta + retained)[None]
    if so_far:
        norms = torch.cat([so_far["norms"], norms])
        models = torch.cat([so_far["models"], models]) if round < FIRST else so_far["models"]
    return {"norms": norms, "models": models}
