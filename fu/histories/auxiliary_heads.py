"""Auxiliary heads [k, h] of the clients to be forgotten, trained on wrong labels: W_a of Gu et al. 2024 (FedAU).

In every round a client trains a second head, a copy of the model's last fully connected layer, on its own samples, each
with one wrong label drawn once, for as many epochs as it trains. The head starts at (1 - gamma) W + gamma W_a, with W
the global model's head and W_a the client's from the round before (in round 0 at W; in the authors' code W_a is random
then); all other layers stay the global model's. Clients train it in every round, also where they are not drawn. In the
authors' code the two heads train together, so that the auxiliary one also moves the layers below; here it leaves the
training as it is. During training only an attack identifies the clients; without one, all clients train such a head.
"""

from collections.abc import Iterator
from itertools import islice

import torch
from torch import Tensor

from fu.federation.heads import head_mask
from fu.federation.local import FLOAT_BYTES, generator
from fu.federation.task import Record, Task

TRAINS = True  # clients do work for it, which counts
GAMMA = 0.9  # called best and final in the authors' script for MNIST and LeNet, whose commands use .5


def record(task: Task, so_far: Record, theta: Tensor, round: int) -> Record:
    """Return the heads after a round that began at theta [d]."""
    data = task.federation.data
    federation = task.federation.holding(data)  # what is known of this round's updates stays known
    head, heads = head_mask(federation.network), []
    clients, before = task.forgotten or task.clients, federation.cost.time_steps
    for k, client in enumerate(clients):
        began, random = theta.clone(), generator(task.seed, "wrong labels", client)
        shifts = torch.randint(1, data.classes, (data.size(client),), generator=random)
        shift = iter(shifts[torch.cat([*federation.orders(client, round)])].split(1))  # in the order of the batches
        if so_far:
            began[head] = (1 - GAMMA) * theta[head] + GAMMA * so_far["heads"][k]

        def wrong(x: Tensor, y: Tensor, shift: Iterator[Tensor] = shift) -> Tensor:
            return (y + torch.cat([*islice(shift, len(y))]).to(y.device)) % data.classes

        def hold(weights: Tensor, began: Tensor = began) -> None:
            weights.copy_(torch.where(head, weights, began))

        updates = federation.local_updates(began, [client], round, relabel=wrong, project=hold)
        heads.append((began + updates.delta[0])[head])
    slowest = max(federation.steps_of(client, None) for client in clients)
    federation.cost.add(time_steps=before + slowest - federation.cost.time_steps)  # they train side by side
    rest = int((~head).sum()) * len(heads) * FLOAT_BYTES  # of which nothing is sent
    federation.cost.add(bytes_up=-rest, bytes_down=-rest - len(heads) * int(head.sum()) * FLOAT_BYTES)
    return {"heads": torch.stack(heads)}
