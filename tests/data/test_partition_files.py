"""Partition files: a torn and a foreign one are told in one sentence, and so is a split that leaves a client bare."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fu.data import clients, partition
from fu.data.partition import Partition
from fu.partitions import iid
from tests.data.files import arrays_of
from tests.factories import make_partition
from tests.mistakes import has, sentence, write_archive

LABELS = np.repeat(np.arange(10, dtype=np.uint8), 4)


def draw(
    labels: NDArray[Any] = LABELS, classes: int = 10, samples: int | None = None, train_share: float = 0.75
) -> Partition:
    """Draw two clients with nothing held out; nobody is attacked."""
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
    has(sentence(lambda: partition.load(path)), f"{path}: not a partition file", "run snakemake again")


def test_a_partition_of_another_data_set_is_told_in_one_sentence(tmp_path: Path) -> None:
    archive, path = write_archive(tmp_path / "digits.npz"), write(tmp_path / "partition.npz", draw())
    text = sentence(lambda: clients.load(archive, path, "digits", None, torch.device("cpu"), "share"))
    has(text, f"{path}: the partition belongs to another data set", "sample 39", f"{archive} has samples 0 to 9")


def test_more_samples_than_there_are_is_told_in_one_sentence() -> None:
    has(sentence(lambda: draw(samples=41)), "samples: must be at most 40, the size of the data set, got 41")


PART = make_partition((7, 12, 9, 4), absent=(3,), server=2, held_out=1)
ARRAYS = PART.arrays()


def first(name: str, value: Any) -> dict[str, NDArray[Any]]:
    """Return an array of the partition with another first element."""
    return {name: np.concatenate([[value], ARRAYS[name][1:]]).astype(np.int64)}


def shared_out(split: str, *offsets: int) -> tuple[dict[str, NDArray[Any]], str]:
    return {f"{split}_offsets": np.array(offsets)}, f"{split}_offsets do not share the samples out to clients"


NOBODY = np.empty(0, np.int64)
CONTRADICTIONS: dict[str, tuple[dict[str, NDArray[Any]], str]] = {
    "a negative sample": (first("test", -1), "it names sample -1;"),
    "a sample of two splits": (first("test", PART.train[0][0]), f"it names sample {PART.train[0][0]} twice"),
    "a client from nowhere": (first("attacked", 4), "it names client 4, but has clients 0 to 3"),
    "an absent client from nowhere": (first("absent", 5), "it names client 5, but has clients 0 to 3"),
    "a negative client": (first("attacked", -1), "it attacks client -1;"),
    "a client attacked twice": ({"attacked": np.array([1, 1])}, "it attacks client 1 twice"),
    "a client absent twice": ({"absent": np.array([3, 3])}, "it leaves out client 3 twice"),
    "an attacked client absent": ({"absent": np.array([1])}, "it attacks client 1, who never takes part"),
    "a server's sample of a client": (first("server", PART.test[0][0]), f"it names sample {PART.test[0][0]} twice"),
    "a held-out sample of the server": (first("held_out", PART.server[1]), f"it names sample {PART.server[1]} twice"),
    "a test sample of a client": ({"global_test": PART.train[3][:1]}, f"it names sample {PART.train[3][0]} twice"),
    "nothing to test on": ({"test": NOBODY, "test_offsets": np.zeros(5, np.int64)}, "it has no test sample"),
    "a retained client's sample marked": (first("backdoored", PART.train[0][0]), "but no attacked client trains on it"),
    "nobody's sample marked": (first("backdoored", 99), "sample 99 is backdoored, but no attacked client trains"),
    "a sample marked twice": (first("backdoored", ARRAYS["backdoored"][1]), "it marks"),
    "marked samples of nobody": ({"attacked": NOBODY}, "is backdoored, but no attacked client"),
    "offsets that fall": shared_out("train", 0, 19, 7, 28, 32),
    "validation offsets that fall": shared_out("validation", 0, 4, 2, 6, 8),
    "a client that trains on nothing": shared_out("train", 0, 0, 7, 28, 32),
    "a client that tests on nothing": shared_out("test", 0, 3, 3, 9, 12),
    "offsets from one": shared_out("train", 1, 7, 19, 28, 32),
    "offsets to before the end": shared_out("train", 0, 7, 19, 28, 31),
    "no client": shared_out("train", 0),
    "other numbers of clients": shared_out("test", 0, 4, 12),
}
FOREIGN: dict[str, dict[str, NDArray[Any]]] = {
    "broken numbers": {"train": ARRAYS["train"].astype(np.float64)},
    "the other byte order": {"train": ARRAYS["train"].astype(">i8")},
    "short numbers": {"attacked": np.array([1], np.uint8)},
    "a table": {"test": ARRAYS["test"][None]},
    "one number": {"backdoored": np.array(1)},
    "one array more": {"clients": np.array([3])},
    "a request": {"absent": np.array(["3"])},
}


def edited(path: Path, changes: dict[str, NDArray[Any]]) -> Path:
    np.savez(path, allow_pickle=False, **{**ARRAYS, **changes})  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize(("changes", "words"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_partition_that_contradicts_itself_is_told_in_one_sentence(
    tmp_path: Path, changes: dict[str, NDArray[Any]], words: str
) -> None:
    path = edited(tmp_path / "partition.npz", changes)
    text = sentence(lambda: partition.load(path))
    has(text, f"{path}: the partition is inconsistent: ", words, "delete it and run snakemake again")


@pytest.mark.parametrize("changes", FOREIGN.values(), ids=FOREIGN)
def test_arrays_of_another_kind_are_no_partition(tmp_path: Path, changes: dict[str, NDArray[Any]]) -> None:
    path = edited(tmp_path / "partition.npz", changes)
    has(sentence(lambda: partition.load(path)), f"{path}: not a partition file; delete it and run")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"value": np.array(math.nan)}, "its trigger is not finite"),
        ({"value": np.array("much")}, "ValueError"),
        ({"trigger": np.ones((99, 99), bool)}, "IndexError"),
        ({"margin": np.array(math.inf)}, "OverflowError"),
        ({}, "KeyError: 'trigger'"),
    ],
)
def test_an_attack_that_the_partition_lacks_is_told_in_one_sentence(
    tmp_path: Path, changes: dict[str, NDArray[Any]], words: str
) -> None:
    archive = tmp_path / "digits.npz"
    np.savez(archive, allow_pickle=False, **arrays_of("digits", 50, 5))  # type: ignore[arg-type]
    path = write(tmp_path / "partition.npz", replace(PART, attack={**PART.attack, **changes} if changes else {}))
    text = sentence(lambda: clients.load(archive, path, "digits", "patch", torch.device("cpu"), "share"))
    has(text, f"{path}: attack 'patch' does not match the partition ({words}", "delete the file")


def test_clients_that_share_too_few_of_the_samples_are_told_in_one_sentence() -> None:
    text = sentence(lambda: draw(np.arange(40) % 2, classes=2, samples=2))
    has(text, "client 0 gets 0 training", "both must be at least 1, so use fewer clients or another train_share")


def test_a_client_without_test_samples_is_told_in_one_sentence() -> None:
    text = sentence(lambda: draw(np.arange(4) % 2, classes=2, train_share=1.0))
    has(text, "client 0 gets 2 training and 0 test samples of 2", "use fewer clients or another train_share")
