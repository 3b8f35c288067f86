"""Normalised float32 images: all of a data set at once, or only the requested ones."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fu.data.dataset import Dataset


def normalised(pixels: Tensor, facts: Dataset) -> Tensor:
    """Return bytes [n, h, w, c] as float32, of [0, 1], less the data set's mean, over its standard deviation."""
    x = pixels.float().div_(255)
    if any(facts.mean) or any(std != 1 for std in facts.std):  # else two passes over all pixels for nothing
        x.sub_(torch.tensor(facts.mean, device=x.device)).div_(torch.tensor(facts.std, device=x.device))
    return x


def restored(x: Tensor, facts: Dataset) -> NDArray[np.float32]:
    """Return normalised images [n, h, w, c] as they are in the archive, in [0, 1]."""
    pixels: NDArray[np.float32] = (x * torch.tensor(facts.std) + torch.tensor(facts.mean)).clamp(0, 1).numpy()
    return pixels


class Streamed:
    """Images [n, h, w, c] of a data set that would not fit the memory as float32, in place of a tensor of them.

    Their bytes stay where they are (a memory map, of which the system holds what is used); those that are asked for
    come to the device and are normalised there, to the bits of a tensor that was normalised at once.
    """

    ndim = 4

    def __init__(self, parts: Sequence[NDArray[np.generic]], facts: Dataset, device: torch.device) -> None:
        """Take the bytes of all images, in parts uint8 [n, h, w, c], one after another."""
        self.parts, self.facts, self.device = [torch.from_numpy(part) for part in parts], facts, device
        self.shape = torch.Size((sum(len(part) for part in parts), *facts.shape))

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        """Return images float32 [m, h, w, c] by their rows, as `torch.Tensor.index_select` does; `dim` is 0."""
        assert dim == 0
        rows, first = index.cpu(), 0
        pixels = torch.empty(len(rows), *self.shape[1:], dtype=torch.uint8)
        for part in self.parts:
            here = (first <= rows) & (rows < first + len(part))
            pixels[here] = part.index_select(0, rows[here] - first)
            first += len(part)
        return normalised(pixels.to(self.device), self.facts)
