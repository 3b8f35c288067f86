"""A model's parameters as one float32 vector theta [d], and back.

Weights of convolutions lie in the vector in channels-last order (output, height, width, input), which makes their
views fast on a CPU. Files hold the ordinary named tensors, so that only this module knows.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from fu.errors import UserError


class Layout:
    """Names, shapes and places of a model's parameters in theta."""

    def __init__(self, model: nn.Module) -> None:
        """Read the layout from a model; buffers are refused, since no method here averages them."""
        if list(model.buffers()):
            raise TypeError("models with buffers (batch normalisation) have no flat vector")
        self.shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
        self.sizes = [p.numel() for p in model.parameters()]
        self.size = sum(self.sizes)

    def views(self, theta: Tensor) -> dict[str, Tensor]:
        """Return the named tensors as views of the last dimension of theta [..., d]."""
        out, start = {}, 0
        for name, shape in self.shapes.items():
            size = int(torch.Size(shape).numel())
            piece = theta[..., start : start + size]
            lead = theta.shape[:-1]
            if len(shape) == 4:
                o, i, h, w = shape
                k = len(lead)
                piece = piece.view(*lead, o, h, w, i).permute(*range(k), k, k + 3, k + 1, k + 2)
            else:
                piece = piece.view(*lead, *shape)
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
        theta = torch.empty(self.size)
        for name, view in self.views(theta).items():
            view.copy_(tensors[name].detach())
        return theta

    def named(self, theta: Tensor) -> dict[str, Tensor]:
        """Return contiguous named tensors on the CPU, as files hold them."""
        return {name: view.cpu().contiguous() for name, view in self.views(theta.detach()).items()}

    def bind(self, model: nn.Module, theta: Tensor) -> None:
        """Make the model's parameters views of `theta`."""
        views = self.views(theta)
        for name, parameter in model.named_parameters():
            parameter.data = views[name]
