"""How far clients' losses are apart on the data they train on: both sides of Assumption 5.1 (Shao et al. 2024).

F_{-J} and F_J are the mean losses f_i of the retained and of the forgotten clients, weighted by training size (p'_i).
Takes one gradient over all training samples per client: each time, about what a local epoch of all clients costs.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from fu.evaluation.context import Context
from fu.federation.gradient import loss_gradient

TRACE = ("clients_apart", "gradient_retained", "groups_apart")
METRICS = {
    "clients_apart": {
        "label": "Clients apart",
        "unit": "squared norm",
        "better": "neither",
        "formula": "sum over retained clients of p'_i ||grad f_i(w) - grad F_{-J}(w)||^2, on training data",
        "source": "Shao et al. 2024, Assumption 5.1: the left side",
    },
    "gradient_retained": {
        "label": "Retained gradient",
        "unit": "squared norm",
        "better": "neither",
        "formula": "||grad F_{-J}(w)||^2, on training data",
        "source": "Shao et al. 2024, Assumption 5.1: what beta_S^2 multiplies",
        "tells": {"broken": "higher"},
    },
    "groups_apart": {
        "label": "Groups apart",
        "unit": "squared norm",
        "better": "neither",
        "formula": "||grad F_{-J}(w) - grad F_J(w)||^2, on training data",
        "source": "Shao et al. 2024, Lemma 5.8",
    },
    "share_forgotten": {
        "label": "P_J",
        "unit": "fraction",
        "better": "neither",
        "formula": "the forgotten clients' share of all clients' training samples",
        "source": "Shao et al. 2024, Definition 3.2",
    },
    "retained_training_loss": {
        "label": "Training loss of the retained",
        "unit": "nats",
        "better": "lower",
        "formula": "F_{-J}(w), mean cross-entropy over the retained clients' training samples",
        "source": "Shao et al. 2024, Definition 3.2",
        "tells": {"broken": "higher"},
    },
    "client_training_loss": {
        "label": "Training loss of a client",
        "unit": "nats",
        "better": "lower",
        "formula": "f_i(w), mean cross-entropy on the client's training samples, forgotten or not",
        "source": "Shao et al. 2024, Definition 3.1",
        "per": "client",
        "tells": {"broken": "higher"},
    },
}


def evaluate(context: Context) -> dict[str, float | dict[int, float]]:
    """Return all that is declared; what compares groups is left out where no client is forgotten."""
    data = context.data
    out, losses = _measure(context)
    size = {client: data.size(client) for client in data.partition.present}
    kept = sum(size[client] for client in data.retained)
    return {
        **out,
        "share_forgotten": 1 - kept / sum(size.values()),
        "retained_training_loss": sum(size[client] * losses[client] for client in data.retained) / kept,
        "client_training_loss": {client: losses[client] for client in size},
    }


def trace(context: Context) -> dict[str, float]:
    """Return what can be drawn by round."""
    return _measure(context)[0]


def _measure(context: Context) -> tuple[dict[str, float], dict[int, float]]:
    """Return the squared norms by name, and each client's training loss."""
    retained, apart, losses = _gradients(context, context.data.retained)
    out = {"clients_apart": apart, "gradient_retained": (retained @ retained).item()}
    if context.data.forgotten:
        forgotten, _, others = _gradients(context, context.data.forgotten)
        between = retained - forgotten
        out["groups_apart"] = (between @ between).item()
        losses |= others
    return out, losses


def _gradients(context: Context, clients: Sequence[int]) -> tuple[Tensor, float, dict[int, float]]:
    """Return the mean [d] of clients' gradients weighted by size, their mean squared distance to it, their losses.

    Mean and distance are updated client by client, so that no two gradients are held at once.
    """
    mean, apart, seen, losses = torch.zeros_like(context.theta, dtype=torch.float64), 0.0, 0, {}
    for client in clients:
        x, y = context.data.train(client)
        losses[client], gradient = loss_gradient(context.network, context.theta, x, y)
        away = gradient.double() - mean
        apart += len(y) * seen / (seen + len(y)) * (away @ away).item()
        seen += len(y)
        mean += len(y) / seen * away
    return mean, apart / seen, losses
