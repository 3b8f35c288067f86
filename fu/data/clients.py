"""The clients' data on the device, once: normalised images as float32 [n, height, width, channel] and labels."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from fu import plugins
from fu.data import archives, partition
from fu.data.dataset import about
from fu.data.partition import SPLITS, Partition
from fu.errors import UserError

Poison = Literal["share", "all"]
Mark = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class ClientData:
    """What every client holds, by index; only the forgotten clients own copies, because they carry the trigger."""

    def __init__(
        self, x: Tensor, y: Tensor, part: Partition, classes: int, poison: Poison, mark: Mark | None = None
    ) -> None:
        """Take the merged data set (x [n, h, w, c] normalised, y [n]) to its clients.

        `mark` puts the attack's trigger on a copy of images and flips their labels; None: nobody is attacked.
        `poison`: "share" marks the backdoored share of the forgotten clients' training samples (the original
        training), "all" all of them (FedOSD's code: 80% while pretraining, 100% while unlearning).
        """
        self.x, self.y, self.partition, self.classes, self.mark = x, y, part, classes, mark
        self.device = x.device
        self._train = [torch.from_numpy(rows).to(self.device) for rows in part.train]
        self._own: dict[int, tuple[Tensor, Tensor]] = {}
        if mark is not None:
            for client in part.forgotten:
                clean_x, clean_y = x[self._train[client]], y[self._train[client]]
                marked_x, marked_y = mark(clean_x, clean_y)
                if poison == "share":
                    clean = torch.from_numpy(~np.isin(part.train[client], part.backdoored)).to(self.device)
                    marked_x[clean], marked_y[clean] = clean_x[clean], clean_y[clean]
                self._own[client] = marked_x, marked_y

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels of one image."""
        return tuple(self.x.shape[1:])  # type: ignore[return-value]

    def size(self, client: int) -> int:
        """The number of training samples of a client."""
        return len(self._train[client])

    def train(self, client: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return training images [n, c, h, w] (channels last in memory) and labels [n], in the order `rows`."""
        if client in self._own:
            x, y = self._own[client]
            if rows is not None:
                x, y = x.index_select(0, rows), y.index_select(0, rows)
        else:
            index = self._train[client] if rows is None else self._train[client].index_select(0, rows)
            x, y = self.x.index_select(0, index), self.y.index_select(0, index)
        return x.permute(0, 3, 1, 2), y

    def held_out(self, client: int, split: Literal["validation", "test"]) -> tuple[Tensor, Tensor]:
        """Return a client's validation or test images [n, c, h, w] and labels [n]: never with a trigger."""
        index = torch.from_numpy(getattr(self.partition, split)[client]).to(self.device)
        return self.x.index_select(0, index).permute(0, 3, 1, 2), self.y.index_select(0, index)

    def backdoored(self, client: int, split: Literal["train", "validation"] = "train") -> tuple[Tensor, Tensor]:
        """Return all training (or validation) images of a forgotten client with the trigger, and the flipped labels."""
        assert self.mark is not None
        index = torch.from_numpy(getattr(self.partition, split)[client]).to(self.device)
        x, y = self.mark(self.x.index_select(0, index), self.y.index_select(0, index))
        return x.permute(0, 3, 1, 2), y


def load(
    archive: Path, partition_file: Path, dataset: str, attack: str | None, device: torch.device, poison: Poison
) -> ClientData:
    """Load an archive and a partition to the device; `attack` names the plug-in that has drawn the trigger."""
    arrays = archives.read(archive, dataset)
    part = partition.load(partition_file)
    samples = len(arrays["y_train"]) + len(arrays["y_test"])
    highest = max(int(rows.max(initial=-1)) for split in SPLITS for rows in getattr(part, split))
    if highest >= samples:
        raise UserError(
            f"{partition_file}: the partition belongs to another data set: it names sample {highest}, "
            f"{archive} has samples 0 to {samples - 1}."
        )
    facts = about(dataset)
    pixels = np.concatenate([arrays["x_train"], arrays["x_test"]])
    labels = np.concatenate([arrays["y_train"], arrays["y_test"]])
    x = torch.from_numpy(pixels).to(device).float()
    x.div_(255)
    if any(facts.mean) or any(std != 1 for std in facts.std):  # else two passes over all pixels for nothing
        x.sub_(torch.tensor(facts.mean, device=device)).div_(torch.tensor(facts.std, device=device))
    y = torch.from_numpy(labels).to(device).long()
    mark = None
    if attack:
        mark = partial(plugins.load("attacks", attack).mark, part.attack, classes=facts.classes)
        _try(mark, facts.shape, f"{partition_file}: attack {attack!r}")
    return ClientData(x, y, part, facts.classes, poison, mark)


def _try(mark: Mark, shape: tuple[int, int, int], where: str) -> None:
    """Mark one image; `UserError` where the attack cannot be made from what the partition holds."""
    try:
        marked, _ = mark(torch.zeros(1, *shape), torch.zeros(1, dtype=torch.int64))
        problem = "" if marked.isfinite().all() else "its trigger is not finite"
    except Exception as error:  # a plug-in may raise anything
        problem = f"{type(error).__name__}: {error}".splitlines()[0]
    if problem:
        raise UserError(
            f"{where} does not fit what the partition holds of it ({problem}); delete the file and run snakemake again."
        )
