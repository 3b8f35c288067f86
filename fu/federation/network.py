"""A model evaluated at any flat vector theta [d], shared by training and evaluation."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from fu.errors import UserError
from fu.federation.flat import Layout
from fu.federation.sgd import LocalTraining

TEXT_BATCH = 200  # windows: an LSTM computes the gates of all their characters at once
Hook = Callable[[Tensor, Tensor], None]


def descent(training: LocalTraining, weights: Tensor) -> Hook | None:
    """Return what turns a gradient into the direction of a step, for weights [..., d] in one round; None: nothing.

    As `torch.optim.SGD`: weight decay is added to the gradient, the gradient to the momentum.
    """
    if not training.momentum and not training.weight_decay:
        return None
    velocity = torch.zeros_like(weights)

    def direct(weights: Tensor, gradient: Tensor) -> None:
        gradient.add_(weights, alpha=training.weight_decay)
        gradient.copy_(velocity.mul_(training.momentum).add_(gradient))

    return direct


def sample_of(shape: Sequence[int]) -> Tensor:
    """Return one empty sample as a model takes it; the shape is (height, width, channels), of text (length,)."""
    kind = torch.float32 if len(shape) > 1 else torch.int64
    return torch.zeros(1, *shape[-1:], *shape[:-1], dtype=kind)


def check_model(model: nn.Module, sample: Tensor, classes: int, where: str, *, statistics: bool = False) -> None:
    """Raise `UserError` where a model cannot be trained on samples like this one [1, ...]; `where`: what built it.

    `statistics`: it may have running statistics.
    """
    for name, module in model.named_modules():
        buffers = [key for key, _ in module.named_buffers(recurse=False) if key != "num_batches_tracked"]
        if buffers and not statistics:
            raise UserError(
                f"{where} returns a model with buffers ({name and f'{name}.'}{buffers[0]}), which few methods here "
                "average; declare STATISTICS = True, or use nn.GroupNorm or no normalisation (nfresnet18)."
            )
        if buffers and getattr(module, "momentum", 0.1) is None:
            raise UserError(f"{where} returns a model whose {name} has momentum None; set it to a number.")
    with torch.no_grad():
        outputs = model.eval()(sample)
    if outputs.shape != (1, classes):
        raise UserError(
            f"{where} returns a model with outputs {[*outputs.shape]} for one sample, expected [1, {classes}]: one per "
            "class."
        )


class Network:
    """A model whose parameters are views of one vector `weights` [d]."""

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        """Move the model to the device and bind it."""
        self.model = model.to(device).eval()
        self.device = device
        self.layout = Layout(model)
        self.weights = torch.zeros(self.layout.size, device=device)
        self.layout.bind(self.model, self.weights)
        trained = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        views = self.layout.views(self.weights)
        self._names, self._trained, self._views = [*trained], (*trained.values(),), [views[name] for name in trained]

    def descend(self, loss: Tensor, rate: float, *hooks: Hook) -> None:
        """Move the weights by -rate times the gradient of a loss, which each `hook(weights, gradient)` changes first.

        Every step gets a new gradient: to zero one and add to it takes 6% of an MLP's step on 200 samples, 20% on 10.
        """
        gradients = torch.autograd.grad(loss, self._trained, materialize_grads=True)
        if hooks:
            flat = torch.zeros_like(self.weights)
            views = self.layout.views(flat)
            for name, gradient in zip(self._names, gradients, strict=True):
                views[name].copy_(gradient)
            for hook in hooks:
                hook(self.weights, flat)
            gradients = tuple(views[name] for name in self._names)
        for weights, gradient in zip(self._views, gradients, strict=True):
            weights.add_(gradient, alpha=-rate)

    @torch.no_grad()
    def logits(self, theta: Tensor, x: Tensor, batch: int = 1000) -> Tensor:
        """Return the model's outputs [n, C] at theta for images [n, c, h, w] or text [n, length], also as bytes."""
        self.weights.copy_(theta)
        if not x.is_floating_point():
            return torch.cat([self.model(piece.long()) for piece in x.split(min(batch, TEXT_BATCH))])
        return torch.cat([self.model(piece) for piece in x.split(batch)])
