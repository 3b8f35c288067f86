"""FedEraser's calibration (Liu et al. 2021): short local updates, rescaled to the norms of the stored ones."""

import math

import torch
from torch import Tensor

from fu.federation.flat import Layout
from fu.federation.local import Federation, Updates


def calibration(federation: Federation, theta: Tensor, clients: list[int], round: int, ratio: float) -> Updates:
    """Return the clients' updates after a share of their local steps, at least one."""
    wanted = [math.ceil(ratio * federation.steps_of(client, None) - 1e-9) for client in clients]
    parts = {
        steps: federation.local_updates(
            theta, [c for c, n in zip(clients, wanted, strict=True) if n == steps], round, steps=steps
        )
        for steps in sorted(set(wanted))
    }
    order = [place for steps in parts for place, n in enumerate(wanted) if n == steps]
    back = torch.tensor(order, device=theta.device).argsort()
    found = Updates.joined([*parts.values()])
    return Updates(found.delta[back], found.sizes[back], found.losses[back])


def calibrated(layout: Layout, delta: Tensor, norms: Tensor) -> Tensor:
    """Return updates [m, d] whose layers have the given norms [m, layers]; a layer that did not move stays."""
    pieces = []
    for piece, wanted in zip(delta.split(layout.sizes, dim=1), norms.T, strict=True):
        length = piece.norm(dim=1)
        pieces.append(piece * torch.where(length > 0, wanted / length, torch.zeros_like(length))[:, None])
    return torch.cat(pieces, dim=1)
