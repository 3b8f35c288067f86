"""Partition files: a torn and a foreign one are told in one sentence, and so is a split that leaves a client bare."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fu.data import clients, partition
from fu.data.partition import Partition
from fu.partitions import iid
from tests.mistakes import has, sentence, write_archive

LABELS = np.repeat(np.arange(10, dtype=np.uint8), 4)


def draw(
    labels: NDArray[Any] = LABELS, classes: int = 10, samples: int | None = None, train_share: float = 0.75
) -> Partition:
    """Draw two clients with nothing held out; one is forgotten, nobody attacked."""
    deal = partial(iid.deal, classes=classes, clients=2, p=iid.Params())
    return partition.draw(labels, 0, samples, lambda found, rng: deal(found, rng=rng), train_share, 0.0, 1, None)


def write(path: Path, drawn: Partition) -> Path:
    np.savez(path, allow_pickle=False, **drawn.arrays())  # type: ignore[arg-type]
    return path


def test_a_truncated_partition_is_told_in_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "partition.npz", draw())
    path.write_bytes(path.read_bytes()[:500])
    has(sentence(lambda: partition.load(path)), f"{path}: the file is truncated", "make or copy it again")


def test_an_archive_in_place_of_a_partition_is_told_in_one_sentence(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "partition.npz")
    has(sentence(lambda: partition.load(path)), f"{path}: this is no partition file", "run snakemake again")


def test_a_partition_of_another_data_set_is_told_in_one_sentence(tmp_path: Path) -> None:
    archive, path = write_archive(tmp_path / "digits.npz"), write(tmp_path / "partition.npz", draw())
    text = sentence(lambda: clients.load(archive, path, "digits", None, torch.device("cpu"), "share"))
    has(text, f"{path}: the partition belongs to another data set", "sample 39", f"{archive} has samples 0 to 9")


def test_clients_that_share_too_few_of_the_samples_are_told_in_one_sentence() -> None:
    text = sentence(lambda: draw(np.arange(40) % 2, classes=2, samples=2))
    has(text, "client 0 gets 0 training", "both must be at least 1: use fewer clients or another train_share")


def test_a_client_without_test_samples_is_told_in_one_sentence() -> None:
    text = sentence(lambda: draw(np.arange(4) % 2, classes=2, train_share=1.0))
    has(text, "client 0 gets 2 training and 0 test samples of 2", "use fewer clients or another train_share")
