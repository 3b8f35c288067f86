"""Heterogeneity of the clients' training losses: both sides of Assumption 5.1 (Shao et al. 2024).

F_{-J} and F_J are the mean losses f_i of the retained and of the forgotten clients, weighted by training samples
(p'_i). Each evaluation computes one gradient over all training samples of every client, which costs about one local
epoch of all clients.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from fu.evaluation.context import Context
from fu.federation.gradient import loss_gradient

TRACE = ("clients_apart", "gradient_retained", "groups_apart")
METRICS = {
    "clients_apart": {
        "label": "Client dissimilarity",
        "unit": "squared norm",
        "better": "neither",
        "formula": "sum over retained clients of p'_i ||grad f_i(w) - grad F_{-J}(w)||^2, on training data",
        "source": "Shao et al. 2024, Assumption 5.1, left-hand side",
    },
    "gradient_retained": {
        "label": "Retained gradient",
        "unit": "squared norm",
        "better": "neither",
        "formula": "||grad F_{-J}(w)||^2, on training data",
        "source": "Shao et al. 2024, Assumption 5.1, factor of beta_S^2",
        "tells": {"broken": "higher"},
    },
    "groups_apart": {
        "label": "Group dissimilarity",
        "unit": "squared norm",
        "better": "neither",
        "formula": "||grad F_{-J}(w) - grad F_J(w)||^2, on training data",
        "source": "Shao et al. 2024, Lemma 5.8",
    },
    "share_forgotten": {
        "label": "P_J",
        "unit": "fraction",
        "better": "neither",
        "formula": "the forgotten clients' share of all training samples",
        "source": "Shao et al. 2024, Definition 3.2",
    },
    "retained_training_loss": {
        "label": "Training loss, retained clients",
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
        "formula": "f_i(w), mean cross-entropy on the client's training samples, for forgotten clients as well",
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
