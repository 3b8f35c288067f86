"""SFU: gradient ascent in the subspace that the retained data do not use (Li et al. 2023; FedOSD sections 2.2, A.3).

The retained clients send the inputs of every layer on one batch; S [k, r] is an orthonormal basis of their span for a
layer y = W x (patches for convolutions). From the forgotten client's ascent gradient g the server removes the part that
acts on that span: W <- W + lr (g - g S S^T). Outputs on the sampled batches are therefore preserved as far as S
represents the inputs; if S is complete, they do not change at all. All other parameters are frozen: biases, which would
violate this (as FedOSD notes), gains of normalisation, recurrent layers. Li et al. (2023) was not available to us. By a
summary with its formulas (vicw0ng-hk/feul) the client ascends for several local passes and the server updates once;
here every round of unlearning does so, with S of the original model. Its clients scale their inputs by random factors,
which hides them and shifts which directions are kept where S is incomplete; we omit this. With standardised weights
(NFResNet-18) the invariance holds only to first order. Several forgotten clients count equally. Stores S; communicates
the second moments of the layer inputs once, and one model up and down per round.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from pydantic import BaseModel, Field
from torch import Tensor, nn

from fu.errors import UserError
from fu.federation.ascent import CLIP, clipped
from fu.federation.local import FLOAT_BYTES, generator
from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {
    "source": "second-hand",
    "citation": "Li et al. 2023: FedOSD sections 2.2 and A.3, and a summary with the paper's formulas",
    "not_read": "Li et al. 2023",
}
ESTIMATE = {"forgotten": 1, "retained": 0}  # how often they train in a round, for the plan
RANK_TOLERANCE = 1e-10  # of the largest eigenvalue of a layer's second moments: below it is rounding of float32 inputs


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    energy: float = Field(
        0.95,
        gt=0,
        le=1,
        description="share of the inputs' squared norm that is kept, which sets the rank r (the paper's criterion); 1: "
        "all of it; our choice, as Saha et al. 2021, the origin of the idea, keep .95 to .99",
    )
    clip: float = Field(0, ge=0, description=CLIP)


@dataclass(frozen=True)
class Projected(State):
    """The model [d], and by the name of each layer's weight the basis S [k, r] of its inputs."""

    bases: dict[str, Tensor]


def check(model: nn.Module, p: Params) -> None:
    """Raise `UserError` where a convolution's patches are not those that `torch.nn.functional.unfold` returns."""
    for name, layer in model.named_modules():
        if not isinstance(layer, nn.Conv2d):
            continue
        if layer.groups > 1 or isinstance(layer.padding, str) or layer.padding_mode != "zeros":
            raise UserError(
                f"sfu: {name or 'the model'} is a convolution with groups, or with padding that is named or not of "
                "zeros; allowed: groups 1, padding in numbers, of zeros."
            )


def start(task: Task, p: Params) -> Projected:
    """Begin at the original model and compute the retained data's subspace there."""
    check(task.federation.model, p)
    bases = {name: basis(moments, p.energy) for name, moments in second_moments(task).items()}
    return Projected(task.original_model, bases)


def step(task: Task, p: Params, state: Projected, round: int) -> Projected:
    """One round of projected ascent by the forgotten clients."""
    theta, layout = state.theta, task.federation.layout
    ascent = task.federation.local_updates(
        theta, task.forgotten, round, "negative_cross_entropy", regularise=clipped(p.clip)
    ).delta.mean(0)
    moved = torch.zeros_like(theta)
    given, kept = layout.views(ascent), layout.views(moved)
    for name, found in state.bases.items():
        flat = given[name].reshape(len(given[name]), -1)
        rest = flat - (flat @ found) @ found.T
        kept[name].copy_(rest.view(given[name].shape))
    return replace(state, theta=theta + moved)


def basis(moments: Tensor, energy: float) -> Tensor:
    """Return an orthonormal basis [k, r] of the leading directions of second moments [k, k]."""
    values, vectors = torch.linalg.eigh(moments)
    values, vectors = values.flip(0).clamp(min=0).cpu(), vectors.flip(1)  # cumsum is not deterministic on CUDA
    present = int((values > RANK_TOLERANCE * values[0]).sum())
    share = values.cumsum(0) / values.sum().clamp(min=torch.finfo(values.dtype).tiny)
    rank = present if energy == 1 else min(present, int((share < energy).sum()) + 1)
    return vectors[:, :rank].float().contiguous()


def second_moments(task: Task) -> dict[str, Tensor]:
    """Return sum x x^T [k, k] (float64) of every layer's inputs, by the name of its weight, at the original model.

    One training batch of each retained client.
    """
    federation = task.federation
    found: dict[str, Tensor] = {}
    handles = [
        layer.register_forward_pre_hook(_collector(found, f"{name}.weight"))
        for name, layer in federation.model.named_modules()
        if isinstance(layer, nn.Linear | nn.Conv2d)
    ]
    seen = 0
    try:
        for client in task.retained:
            random = generator(task.seed, "representation", client)
            rows = torch.randperm(federation.data.size(client), generator=random)[: federation.training.batch_size]
            x, _ = federation.data.train(client, rows.to(federation.device))
            federation.logits(task.original_model, x)
            seen += len(x)
    finally:
        for handle in handles:
            handle.remove()
    sent = len(task.retained) * sum(moments.numel() for moments in found.values()) * FLOAT_BYTES
    federation.cost.add(
        samples=seen, bytes_up=sent, bytes_down=len(task.retained) * federation.layout.size * FLOAT_BYTES
    )
    return found


def _collector(found: dict[str, Tensor], key: str) -> Callable[[nn.Module, Any], None]:
    def collect(layer: nn.Module, inputs: tuple[Tensor]) -> None:
        x = inputs[0]
        if isinstance(layer, nn.Conv2d):
            assert not isinstance(layer.padding, str)
            patches = F.unfold(x, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
            x = patches.transpose(1, 2).flatten(0, 1)
        x = x.double()
        found[key] = found.get(key, 0) + x.T @ x

    return collect
