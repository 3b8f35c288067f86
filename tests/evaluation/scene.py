"""Five clients of unequal size, two of them forgotten, and a model whose every prediction is written down.

An image has two rows of four pixels. The model reads the upper one, whose brightest pixel is the class that it
predicts; the trigger swaps the rows, so that the lower one is what it predicts of a triggered image.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fu.data.clients import ClientData
from fu.data.partition import Partition
from fu.data.request import Request
from fu.evaluation.context import Context
from fu.federation.network import Network

CLASSES, SHIFT = 4, 2
FORGOTTEN = (1, 3)

# Per client: how many samples, how many are classified rightly, how many get the flipped label once triggered.
TRAIN = [(5, 1, 0), (4, 1, 3), (3, 3, 3), (8, 8, 2), (2, 0, 1)]
VALIDATION = [(4, 3, 4), (2, 0, 1), (2, 1, 2), (3, 1, 3), (5, 5, 5)]
TEST = [(4, 1, 0), (3, 3, 3), (2, 1, 1), (6, 0, 6), (8, 8, 0)]
Counts = list[tuple[int, int, int]]


class TopRow(nn.Module):
    """A linear layer over the eight pixels; at `reads_top_row` its outputs are the upper four."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * CLASSES, CLASSES, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x.flatten(1))


def reads_top_row() -> Tensor:
    return torch.eye(CLASSES, 2 * CLASSES).flatten()


def swap_rows(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The trigger of the scene: what an attack's `mark` is."""
    return x.flip(1), (y + SHIFT) % CLASSES


def make_scene(
    train: Counts = TRAIN,
    validation: Counts = VALIDATION,
    test: Counts = TEST,
    *,
    forgotten: tuple[int, ...] = FORGOTTEN,
    attacked: bool = True,
    **context: Any,
) -> Context:
    """Return what an evaluator is given: the model, one five away from the original, and the clients' samples."""
    rows, labels = list[tuple[int, int]](), list[int]()
    splits: dict[str, list[Any]] = {"train": [], "validation": [], "test": []}
    for parts, counts in zip(splits.values(), (train, validation, test), strict=True):
        for samples, right, fooled in counts:
            parts.append(np.arange(len(labels), len(labels) + samples))
            for k in range(samples):
                label = len(labels) % CLASSES
                plain = label if k < right else (label + 1) % CLASSES
                triggered = (label + SHIFT) % CLASSES if k < fooled else label
                rows.append((plain, triggered))
                labels.append(label)
    x = torch.nn.functional.one_hot(torch.tensor(rows), CLASSES).float()[..., None]
    asked, nobody = np.array(forgotten), np.empty(0, np.int64)
    part = Partition(**splits, attacked=asked if attacked else nobody)  # type: ignore[arg-type]
    mark, request = (swap_rows, None) if attacked else (None, Request(asked))
    data = ClientData(x, torch.tensor(labels), part, CLASSES, "all", mark, request)
    theta = reads_top_row()
    original = theta.clone()
    original[5:7] -= torch.tensor([3.0, 4.0])
    given = {"original": original, "role": "unlearned", **context}
    return Context(Network(TopRow(), data.device), data, theta, **given)
