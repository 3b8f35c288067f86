"""Fresh linear heads on a model's last hidden layer: what somebody who has its weights can ask of it.

The head of a model may have forgotten what its hidden layers still hold. `head_held_out`, `head_triggered`: what a new
head, fitted to the hidden representations of the forgotten training samples as they were trained on, says of held-out
samples and of others' test samples with the trigger. `members`: whether a sample is a training sample of the forgotten
client (class 1) or one of its held-out samples (class 0), as a linear classifier that was fitted to every second sample
says of the others. Both are our choice: linear probes as of Alain and Bengio 2016 (arXiv 1610.01644), with the closed
form of ridge regression, so that they have no draws of their own.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.evaluation.predictions import audited_rows
from fu.federation.network import Network

RIDGE = 0.1  # of features with variance 1, per sample (our choice)
HEAD, MEMBERS = "head_", "members"
MEASURED = ("held_out", "triggered")  # probes on which the new head is measured, where there are such
Probes = Mapping[str, tuple[Tensor, Tensor]]


def labels(probes: Probes) -> dict[str, Tensor]:
    """Return the labels [n] of each fresh head's samples, by probe."""
    found = {HEAD + name: probes[name][1] for name in MEASURED if name in probes}
    sizes = len(probes["forgotten"][1]), len(probes["held_out"][1])
    return found | {MEMBERS: torch.cat([torch.ones(sizes[0]), torch.zeros(sizes[1])]).long()}


def logits(network: Network, theta: Tensor, data: ClientData, probes: Probes) -> dict[str, Tensor]:
    """Return what fresh heads on the hidden layer of the model theta [d] say: [n, C] by probe, of `MEMBERS` [n, 2].

    Nothing of a model without a linear layer.
    """
    head = network.head()
    if head is None:
        return {}
    hidden = {name: network.hidden(theta, probes[name][0]) for name in ("forgotten", *MEASURED) if name in probes}
    y = probes["forgotten"][1]
    found = {
        HEAD + name: fitted(hidden["forgotten"], y, data.classes, hidden[name]) for name in MEASURED if name in hidden
    }
    clean = network.hidden(theta, data.clean(audited_rows(data))[0])
    both, member = torch.cat([clean, hidden["held_out"]]), labels(probes)[MEMBERS].to(clean.device)
    says = both.new_empty(len(both), 2)
    for k in (0, 1):
        says[k::2] = fitted(both[1 - k :: 2], member[1 - k :: 2], 2, both[k::2])
    return {**found, MEMBERS: says}


def fitted(x: Tensor, y: Tensor, classes: int, of: Tensor) -> Tensor:
    """Return the outputs [m, C] for features `of` [m, h] of ridge regression of one-hot labels y [n] on x [n, h].

    Features are centred and scaled by the fitted ones, and the intercept is not penalised. Outputs of a feature that is
    not finite are not either.
    """
    x, of = x.double(), of.double()
    mean, scale = x.mean(0), x.std(0, correction=0).clamp_min(1e-6)
    x, of = (x - mean) / scale, (of - mean) / scale
    target = torch.nn.functional.one_hot(y, classes).double()
    gram = x.T @ x + RIDGE * len(x) * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    weights = torch.linalg.solve(gram, x.T @ target)
    return (of @ weights + target.mean(0)).float()
