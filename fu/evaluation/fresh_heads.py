"""Fresh linear heads on a model's last hidden layer: an attack on a model whose weights are known.

A head may have forgotten what the hidden layers below it still hold. Two fresh heads are fitted for each model, both by
ridge regression in closed form, so that they have no random draws (our choice; linear probes as of Alain and Bengio
2016, arXiv 1610.01644):

- `head_held_out`, `head_triggered`: a classifier fitted to the hidden representations of the forgotten training samples
  as they were trained on, and evaluated on held-out samples of the client and on others' test samples with the trigger;
- `members`: whether a sample is a training sample of the forgotten client (class 1) or a held-out one (class 0), fitted
  to every second sample and evaluated on the others.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from fu.data.clients import ClientData
from fu.evaluation.predictions import audited_rows
from fu.federation.heads import head_of
from fu.federation.network import Network

RIDGE = 0.1  # penalty per sample, for features of variance 1 (our choice)
RARE = 0.02  # the variance of a feature must come from more than this share of the samples (our choice)
HEAD, MEMBERS = "head_", "members"
EVALUATED = ("held_out", "triggered")  # probes that the classifier is evaluated on, if present
Probes = Mapping[str, tuple[Tensor, Tensor]]


def labels(network: Network, probes: Probes) -> dict[str, Tensor]:
    """Return the labels [n] of the samples that fresh heads are evaluated on; none without a linear layer."""
    if head_of(network.model) is None:
        return {}
    sizes = len(probes["forgotten"][1]), len(probes["held_out"][1])
    members = torch.cat([torch.ones(sizes[0]), torch.zeros(sizes[1])]).long()
    return {HEAD + name: probes[name][1] for name in EVALUATED if name in probes} | {MEMBERS: members}


def logits(network: Network, theta: Tensor, data: ClientData, probes: Probes) -> dict[str, Tensor]:
    """Return the outputs [n, C] (`MEMBERS`: [n, 2]) of fresh heads on the hidden layer of the model theta [d]."""
    known = labels(network, probes)
    if not known:
        return {}
    layers = {name: hidden(network, theta, probes[name][0]) for name in ("forgotten", *EVALUATED) if name in probes}
    y = probes["forgotten"][1]
    outputs = {
        HEAD + name: fitted(layers["forgotten"], y, data.classes, layers[name]) for name in EVALUATED if name in layers
    }
    clean = hidden(network, theta, data.clean(audited_rows(data))[0])
    x, member = torch.cat([clean, layers["held_out"]]), known[MEMBERS].to(clean.device)
    outputs[MEMBERS] = x.new_empty(len(x), 2)
    for k in (0, 1):
        outputs[MEMBERS][k::2] = fitted(x[1 - k :: 2], member[1 - k :: 2], 2, x[k::2])
    return outputs


def fitted(x: Tensor, y: Tensor, classes: int, of: Tensor) -> Tensor:
    """Return the outputs [m, C] for features `of` [m, h] of a ridge regression of one-hot labels y [n] on x [n, h].

    Features are centred and scaled by those of x. Features that are constant, or whose variance comes from so few
    samples that it says nothing about others, are left out. The intercept is not penalised. Features that are not
    finite give outputs that are not.
    """
    x, of = x.double(), of.double()
    mean = x.mean(0)
    x, of = x - mean, of - mean
    variance = x.square().mean(0)
    rare = variance.square() <= RARE * x.pow(4).mean(0)  # a share of the samples: inverse kurtosis
    scale = variance.sqrt().masked_fill(rare, torch.inf)
    x, of = x / scale, of / scale
    target = nn.functional.one_hot(y, classes).double()
    gram = x.T @ x + RIDGE * len(x) * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    weights = torch.linalg.solve(gram, x.T @ target)
    return (of @ weights + target.mean(0)).float()


def hidden(network: Network, theta: Tensor, x: Tensor) -> Tensor:
    """Return the inputs [n, h] of the head at theta [d], for images or text as `Network.logits` takes them."""
    head, inputs = head_of(network.model), list[Tensor]()
    assert head is not None
    hook = head.register_forward_pre_hook(lambda _, given: inputs.append(given[0].flatten(1)))
    try:
        network.logits(theta, x)
    finally:
        hook.remove()
    return torch.cat(inputs)
