"""What every contender is given (data, clients, model, order of samples) and what it reports (seconds, models)."""

import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from fu import plugins
from fu.federation.local import generator

CLIENTS, SAMPLES, BATCH, RATE, SEED, STREAM = 10, 6_000, 200, 0.025, 0, "training"
SHAPE, CLASSES = (28, 28, 1), 10


class Clients:
    """Who holds what: client i has samples 6,000 i to 6,000 i + 5,999 of a file of 60,000."""

    def __init__(self, file: Path) -> None:
        with np.load(file) as arrays:
            self.x = torch.from_numpy(arrays["x"]).view(-1, 1, 28, 28).float().div_(255)
            self.y = torch.from_numpy(arrays["y"]).long()

    @cached_property
    def each(self) -> list[tuple[Tensor, Tensor]]:
        """Every client's images [6000, 1, 28, 28] and labels [6000]."""
        return list(zip(self.x.split(SAMPLES), self.y.split(SAMPLES), strict=True))

    def shuffled(self, client: int, round: int) -> tuple[Tensor, Tensor]:
        """Return a client's samples in the order in which fu visits them in a round (from 0 on)."""
        order = torch.randperm(SAMPLES, generator=generator(SEED, STREAM, "batches", client, round))
        x, y = self.each[client]
        return x[order], y[order]


def build(name: str) -> nn.Module:
    """Return a model of fu with the initial weights that all contenders share."""
    torch.manual_seed(SEED)
    plugin = plugins.load("models", name)
    model = plugin.build(SHAPE, CLASSES, plugin.Params())
    assert isinstance(model, nn.Module)
    return model


class Report:
    """Seconds of every round and the model after it."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.models: list[Tensor] = []
        self._begun = time.perf_counter()

    def round_ends(self, parameters: Mapping[str, Tensor]) -> None:
        """Note the time and the parameters, and begin the next round."""
        self.seconds.append(time.perf_counter() - self._begun)
        self.models.append(torch.cat([value.detach().flatten() for value in parameters.values()]))
        self._begun = time.perf_counter()

    def save(self, file: Path) -> None:
        """Write both to an npz file."""
        np.savez(file, seconds=self.seconds, models=torch.stack(self.models).numpy())
