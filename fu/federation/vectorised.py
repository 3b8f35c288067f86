"""Local training of all clients at once, for small models on a GPU: torch.func over a leading client dimension.

Equals training one client after another up to rounding: the same batches, padded to one shape and masked.
"""

from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap

from fu.federation.losses import Objective, resolve
from fu.federation.network import descent

if TYPE_CHECKING:
    from fu.federation.local import Federation, Rows


def train_all(
    federation: "Federation",
    theta: Tensor,
    clients: list[int],
    round: int,
    objective: str | Objective,
    steps: int | None,
    rows: "Rows | None" = None,
    factors: Mapping[int, float] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return updates [m, d] and mean losses [m] of the clients, trained side by side from theta [d].

    `rows`, `factors`: as in `local_updates`.
    """
    loss_of, layout, rate = resolve(objective), federation.layout, federation.rate(round)

    def loss(weights: Tensor, x: Tensor, y: Tensor, share: Tensor) -> Tensor:
        logits = functional_call(federation.model, layout.views(weights), (x,))
        return (loss_of(logits, y) * share).sum()

    gradient = vmap(grad_and_value(loss))
    weights = theta.repeat(len(clients), 1)
    losses = torch.zeros(len(clients), device=federation.device)
    direct = descent(federation.training, weights)
    factor = None
    if factors:
        factor = torch.tensor([factors.get(client, 1.0) for client in clients], device=federation.device)[:, None]
    for batches in zip_longest(*(federation.batches(client, round, steps, rows) for client in clients)):
        x, y, share = _pad(batches, federation.device)
        step, value = gradient(weights, x, y, share)
        if factor is not None:
            step = step * factor
        if direct is not None:
            direct(weights, step)
            step = step * torch.tensor([[batch is not None] for batch in batches], device=federation.device)
        weights = weights - rate * step
        losses = losses + value
    taken = torch.tensor([federation.steps_of(client, steps) for client in clients], device=federation.device)
    return weights - theta, losses / taken.clamp(min=1)


def _pad(batches: tuple[tuple[Tensor, Tensor] | None, ...], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Stack batches of unequal length; `share` [m, b] is 1 / length for samples and 0 for padding."""
    longest = max(len(batch[1]) for batch in batches if batch is not None)
    like = next(batch[0] for batch in batches if batch is not None)
    x = torch.zeros(len(batches), longest, *like.shape[1:], dtype=like.dtype, device=device)
    y = torch.zeros(len(batches), longest, dtype=torch.long, device=device)
    share = torch.zeros(len(batches), longest, device=device)
    for k, batch in enumerate(batches):
        if batch is not None:
            size = len(batch[1])
            x[k, :size], y[k, :size], share[k, :size] = batch[0], batch[1], 1 / size
    return x, y, share
