"""A model's parameters as one float32 vector theta [d], and back; running statistics (batch normalisation) behind them.

Running statistics are averaged as weights are, and no gradient moves them. Weights of convolutions lie in the vector in
channels-last order (output, height, width, input), which makes their views fast on a CPU. In a model with running
statistics every tensor begins at a multiple of 16 bytes, as cuDNN's batch normalisation demands; the numbers between
are zero. Files hold the ordinary named tensors, so that only this module knows.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from fu.errors import UserError

ALIGNED = 4  # numbers of float32 in 16 bytes


def tensors_of(model: nn.Module) -> dict[str, Tensor]:
    """Return what theta holds of a model by name: its parameters, then its running statistics."""
    buffers = {name: buffer for name, buffer in model.named_buffers() if buffer.is_floating_point()}
    return {**dict(model.named_parameters()), **buffers}


class Layout:
    """Names, shapes and places in theta [d] of a model's parameters, the first `parameters` of its numbers."""

    def __init__(self, model: nn.Module) -> None:
        """Read the layout from a model."""
        tensors = tensors_of(model)
        self.shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        trained = len([*model.parameters()])
        step = ALIGNED if len(tensors) > trained else 1
        self.sizes = [-(-tensor.numel() // step) * step for tensor in tensors.values()]
        self.size, self.parameters = sum(self.sizes), sum(self.sizes[:trained])

    def views(self, theta: Tensor) -> dict[str, Tensor]:
        """Return the named tensors as views of the last dimension of theta [..., d]."""
        out, start = {}, 0
        for (name, shape), size in zip(self.shapes.items(), self.sizes, strict=True):
            piece = theta[..., start : start + math.prod(shape)]
            lead = theta.shape[:-1]
            if len(shape) == 4:
                o, i, h, w = shape
                k = len(lead)
                piece = piece.view(*lead, o, h, w, i).permute(*range(k), k, k + 3, k + 1, k + 2)
            else:
                piece = piece.view((*lead, *shape))
            out[name] = piece
            start += size
        return out

    def flatten(self, tensors: Mapping[str, Tensor], source: str = "the model") -> Tensor:
        """Return theta [d] from named tensors; `UserError` where names or shapes are not this layout's."""
        found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        if found != self.shapes:
            odd = sorted(name for name in {**found, **self.shapes} if found.get(name) != self.shapes.get(name))
            raise UserError(
                f"{source}: the weights do not fit the model: {odd[0]!r} is {found.get(odd[0], 'absent')}, "
                f"expected {self.shapes.get(odd[0], 'absent')}."
            )
        theta = torch.zeros(self.size)
        for name, view in self.views(theta).items():
            view.copy_(tensors[name].detach())
        return theta

    def named(self, theta: Tensor) -> dict[str, Tensor]:
        """Return contiguous named tensors on the CPU, as files hold them."""
        return {name: view.cpu().contiguous() for name, view in self.views(theta.detach()).items()}

    def bind(self, model: nn.Module, theta: Tensor) -> None:
        """Make what theta holds of the model views of it."""
        views = self.views(theta)
        for name, tensor in tensors_of(model).items():
            tensor.data = views[name]
