"""The clients' and the server's data on the device, once: normalised images as float32 [n, h, w, c] and labels.

Images that would take more than `dataset.RESIDENT_BYTES` come there a batch at a time (`Streamed`). Text stays as
bytes [n, length]; a training batch of it is int64.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from fu import plugins
from fu.contents import require_file
from fu.data import archives, partition, request
from fu.data.dataset import Dataset, about
from fu.data.images import Streamed, normalised
from fu.data.partition import POOLS, SPLITS, Indices, Partition
from fu.data.request import Request
from fu.errors import UserError

Poison = Literal["share", "all"]
Key = tuple[Path, tuple[int, ...], Dataset, torch.device]
KEPT: dict[Key, tuple[Tensor, Tensor]] = {}  # the last data sets, where a fork server keeps them for its jobs
KEPT_BYTES = 1_000_000_000  # of these, but for the last (our choice: MNIST and CIFAR-10, whose jobs may take turns)
READ: list[tuple[str, str]] = []  # archive and data set of what could have been kept
Mark = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def batch_of(x: Tensor) -> Tensor:
    """Return images [n, c, h, w] (channels last in memory) of [n, h, w, c]; text [n, length] as int64; other floats."""
    return x.permute(0, 3, 1, 2) if x.ndim == 4 else x if x.is_floating_point() else x.long()


class ClientData:
    """What every client holds, by index; only the attacked clients own copies, because they carry the trigger.

    `forgotten`: the clients that the request names, or, where there is none (while the original model is trained),
    those that are attacked. `retained`: the others that take part; training samples that the request names
    (`forgotten_samples`) are no longer theirs.
    """

    def __init__(
        self,
        x: Tensor | Streamed,
        y: Tensor,
        part: Partition,
        classes: int,
        poison: Poison,
        mark: Mark | None = None,
        request: Request | None = None,
    ) -> None:
        """Take the merged data set (x [n, h, w, c] normalised, y [n]) to its clients.

        `mark` puts the attack's trigger on a copy of images and flips their labels; None: nobody is attacked.
        `poison`: "share" marks the backdoored share of the attacked clients' training samples (the original
        training), "all" all of them (FedOSD's code: 80% while pretraining, 100% while unlearning).
        """
        self.inputs, self.y, self.partition, self.classes, self.poison, self.mark = x, y, part, classes, poison, mark
        self.request = request
        self.forgotten: list[int] = sorted((part.attacked if request is None else request.clients).tolist())
        forgotten = set(self.forgotten)
        self.retained = [client for client in part.present if client not in forgotten]
        self.device = x.device
        self.forgotten_samples = part.train[0][:0] if request is None else request.samples
        gone = self.forgotten_samples
        self.rows = [rows[~np.isin(rows, gone)] for rows in part.train] if len(gone) else part.train
        self._train = [torch.from_numpy(rows).to(self.device) for rows in self.rows]
        self._own: dict[int, tuple[Tensor, Tensor]] = {}
        if mark is not None:
            for client in part.attacked.tolist():
                clean_x, clean_y = (of.index_select(0, self._train[client]) for of in (x, y))
                marked_x, marked_y = mark(clean_x, clean_y)
                if poison == "share":
                    clean = torch.from_numpy(~np.isin(part.train[client], part.backdoored)).to(self.device)
                    marked_x[clean], marked_y[clean] = clean_x[clean], clean_y[clean]
                self._own[client] = marked_x, marked_y

    @property
    def shape(self) -> tuple[int, ...]:
        """Height, width, channels of one image; the length of a window of text."""
        return tuple(self.inputs.shape[1:])

    @property
    def streamed(self) -> bool:
        """Whether images become float32 when they are asked for; all others are there as they are trained on."""
        return isinstance(self.inputs, Streamed)

    @property
    def x(self) -> Tensor:
        """All samples: images float32 [n, h, w, c], text bytes [n, length]; `UserError` where they are streamed."""
        if isinstance(self.inputs, Streamed):
            raise UserError(
                "ClientData.x: images of this data set are streamed because they do not fit into memory; request "
                "some of them: train(client), clean(rows), inputs.index_select(0, rows)."
            )
        return self.inputs

    def after(self, requests: int) -> "ClientData":
        """Return the same data as they are once the first of several requests in a row were met."""
        assert self.request is not None
        return ClientData(
            self.inputs, self.y, self.partition, self.classes, self.poison, self.mark, self.request.first(requests)
        )

    def dealt(self, rows: list[Indices]) -> "ClientData":
        """Return the same data where the clients train on other samples [clients][n]."""
        part = replace(self.partition, train=rows)
        return ClientData(self.inputs, self.y, part, self.classes, self.poison, self.mark, self.request)

    def without_tests(self) -> "ClientData":
        """Return the same data, images shared, as methods and trainings get them: no test sample is named.

        Nor is a sample of the pools that nobody trains on. Whoever asks for one gets a `UserError`.
        """
        found, part, none = copy.copy(self), self.partition, self.partition.global_test[:0]
        found.partition = replace(part, test=[none] * part.clients, held_out=none, global_test=none)
        vars(found).pop("global_test", None)  # may be cached
        return found

    def places(self, client: int, samples: Indices) -> Tensor:
        """Return where samples (indices in the data set) stand among a client's training samples."""
        order = np.argsort(self.rows[client])
        found = order[np.searchsorted(self.rows[client], samples, sorter=order)]
        assert (self.rows[client][found] == samples).all()
        return torch.from_numpy(found)

    def size(self, client: int) -> int:
        """The number of training samples of a client."""
        return len(self._train[client])

    def train(self, client: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return training images [n, c, h, w] (or text [n, length]) and labels [n], in the order `rows`."""
        if client in self._own:
            x, y = self._own[client]
            if rows is not None:
                x, y = x.index_select(0, rows), y.index_select(0, rows)
        else:
            index = self._train[client] if rows is None else self._train[client].index_select(0, rows)
            x, y = self.inputs.index_select(0, index), self.y.index_select(0, index)
        return batch_of(x), y

    def trained_on(self, samples: Indices) -> tuple[Tensor, Tensor]:
        """Return images [n, c, h, w] and labels [n] by rows of the data set, as whoever holds them trains on them.

        Those of an attacked client have its trigger and label where they are backdoored.
        """
        x, y = self.clean(samples)
        for client, (marked_x, marked_y) in self._own.items():
            held = np.isin(samples, self.rows[client])
            places = self.places(client, samples[held]).to(self.device)
            at = torch.from_numpy(held).to(self.device)
            x[at], y[at] = batch_of(marked_x[places]), marked_y[places]
        return x, y

    def held_out(self, client: int, split: Literal["validation", "test"]) -> tuple[Tensor, Tensor]:
        """Return a client's validation or test images [n, c, h, w] and labels [n]: never with a trigger."""
        if split == "test":
            self._require_tests()
        return self.clean(getattr(self.partition, split)[client])

    def pool(
        self, name: Literal["server", "held_out", "global_test"], first: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the images [n, c, h, w] and labels [n] of a pool that belongs to no client, or the first of them."""
        if name != "server":
            self._require_tests()
        return self.clean(getattr(self.partition, name)[:first])

    @cached_property
    def global_test(self) -> tuple[Tensor, Tensor]:
        """The images [n, c, h, w] and labels [n] of the test set for all: that of nobody, or all clients' together."""
        self._require_tests()
        part = self.partition
        return self.clean(part.global_test if len(part.global_test) else np.concatenate(part.test))

    @property
    def retained_test(self) -> Indices:
        """Which samples of the data set are the test set of nobody, or else those of the retained clients [n]."""
        self._require_tests()
        part = self.partition
        return part.global_test if len(part.global_test) else np.concatenate([part.test[one] for one in self.retained])

    def _require_tests(self) -> None:
        """Raise `UserError` where no test sample is named; every partition file has some."""
        if not len(self.partition.global_test) and not any(map(len, self.partition.test)):
            raise UserError(
                "ClientData: methods and trainings get no test or held-out samples, by which their models are judged; "
                'allowed: train(client), held_out(client, "validation"), pool("server").'
            )

    def clean(self, rows: Indices) -> tuple[Tensor, Tensor]:
        """Return images [n, c, h, w] and labels [n] by their rows in the merged data set: never with a trigger."""
        index = torch.from_numpy(rows).to(self.device)
        x = self.inputs.index_select(0, index)
        return x if x.ndim == 2 else batch_of(x), self.y.index_select(0, index)  # text stays as bytes

    def backdoored(self, client: int, split: Literal["train", "validation"] = "train") -> tuple[Tensor, Tensor]:
        """Return all training (or validation) images of an attacked client with the trigger, and the flipped labels."""
        return self.triggered(getattr(self.partition, split)[client])

    def triggered(self, rows: Indices) -> tuple[Tensor, Tensor]:
        """Return images [n, c, h, w] with the trigger, and the flipped labels [n], by their rows in the data set."""
        assert self.mark is not None
        index = torch.from_numpy(rows).to(self.device)
        x, y = self.mark(self.inputs.index_select(0, index), self.y.index_select(0, index))
        return batch_of(x), y

    def flipped(self, rows: Indices) -> tuple[Tensor, Tensor]:
        """Return the same without images whose own label the attack leaves as it is: of `patch` there are none."""
        x, y = self.triggered(rows)
        changed = y != self.y.index_select(0, torch.from_numpy(rows).to(self.device))
        return x[changed], y[changed]


def load(
    archive: Path,
    partition_file: Path,
    dataset: str,
    attack: str | None,
    device: torch.device,
    poison: Poison,
    request_file: Path | None = None,
) -> ClientData:
    """Load an archive, a partition and a request, if any, to the device; `attack`: the plug-in that drew a trigger."""
    facts = about(dataset)
    x, y = _samples(archive, dataset, facts, device)
    part = partition.load(partition_file)
    asked = request.load(request_file, part) if request_file else None
    samples = len(y)
    pools = [rows for split in SPLITS for rows in getattr(part, split)] + [getattr(part, name) for name in POOLS]
    highest = max(int(rows.max(initial=-1)) for rows in pools)
    if highest >= samples:
        raise UserError(
            f"{partition_file}: the partition belongs to another data set: it has sample {highest}, but "
            f"{archive} has samples 0 to {samples - 1}."
        )
    mark = None
    if attack:
        mark = partial(plugins.load("attacks", attack).mark, part.attack, classes=facts.classes)
        _try(mark, facts.shape, f"{partition_file}: attack {attack!r}")
    return ClientData(x, y, part, facts.classes, poison, mark, asked)


def _samples(archive: Path, dataset: str, facts: Dataset, device: torch.device) -> tuple[Tensor | Streamed, Tensor]:
    """Return all images (or texts) of an archive, as `ClientData` takes them, and their labels."""
    require_file(archive)
    found = KEPT.get(key := _key(archive, facts, device))
    if found is None:
        if device.type == "cpu":
            READ.append((str(key[0]), dataset))
        arrays = archives.read(archive, dataset, mapped=facts.streamed)
        images = [arrays["x_train"], arrays["x_test"]]
        y = torch.from_numpy(np.concatenate([arrays["y_train"], arrays["y_test"]])).to(device).long()
        if facts.streamed:
            return Streamed(images, facts, device), y
        pixels = torch.from_numpy(np.concatenate(images)).to(device)
        found = pixels if facts.text else normalised(pixels, facts), y
    return found


def _key(archive: Path, facts: Dataset, device: torch.device) -> Key:
    """Return what changes when the archive, or how it is read, does."""
    state = archive.stat()
    return archive.absolute(), (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns), facts, device


def keep(archive: Path, dataset: str) -> None:
    """Keep a data set on the CPU for the processes that this one forks, in place of the oldest; not if streamed."""
    facts, device = about(dataset), torch.device("cpu")
    key = _key(archive, facts, device)
    if key not in KEPT and not facts.streamed:
        for old in [old for old in KEPT if old[0] == key[0]]:
            del KEPT[old]
        x, y = _samples(archive, dataset, facts, device)
        assert isinstance(x, Tensor)
        KEPT[key] = x, y
        while len(KEPT) > 1 and sum(x.nbytes for x, _ in KEPT.values()) > KEPT_BYTES:
            del KEPT[next(iter(KEPT))]
    READ.clear()


def _try(mark: Mark, shape: tuple[int, ...], where: str) -> None:
    """Mark one image; `UserError` where the attack cannot be made from what the partition holds."""
    try:
        marked, _ = mark(torch.zeros(1, *shape), torch.zeros(1, dtype=torch.int64))
        problem = "" if marked.isfinite().all() else "its trigger is not finite"
    except Exception as error:  # a plug-in may raise anything
        problem = f"{type(error).__name__}: {error}".splitlines()[0]
    if problem:
        raise UserError(f"{where} does not match the partition ({problem}); delete the file and start the run again.")
