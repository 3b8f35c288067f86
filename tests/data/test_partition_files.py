"""Partition files: a torn and a foreign one are told in one sentence."""

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


def test_a_partition_of_another_data_set_is_told_in_one_sentence(tmp_path: Path) -> None:
    archive, path = write_archive(tmp_path / "digits.npz"), write(tmp_path / "partition.npz", draw())
    text = sentence(lambda: clients.load(archive, path, "digits", None, torch.device("cpu"), "share"))
    has(text, f"{path}: the partition belongs to another data set", "sample 39", f"{archive} has samples 0 to 9")


PART = make_partition((7, 12, 9, 4), absent=(3,), server=2, held_out=1)
ARRAYS = PART.arrays()


def first(name: str, value: Any) -> dict[str, NDArray[Any]]:
    """Return an array of the partition with another first element."""
    return {name: np.concatenate([[value], ARRAYS[name][1:]]).astype(np.int64)}


def shared_out(split: str, *offsets: int) -> tuple[dict[str, NDArray[Any]], str]:
    return {f"{split}_offsets": np.array(offsets)}, f"{split}_offsets do not share the samples out to clients"


NOBODY = np.empty(0, np.int64)
SERVERS, TESTED, TRAINED = PART.server[1], PART.test[0][0], PART.train[3][:1]
CONTRADICTIONS: list[tuple[dict[str, NDArray[Any]], str]] = [
    (first("test", -1), "it names sample -1;"),
    (first("test", PART.train[0][0]), f"it names sample {PART.train[0][0]} twice"),
    (first("attacked", 4), "it names client 4, but has clients 0 to 3"),
    (first("absent", 5), "it names client 5, but has clients 0 to 3"),
    ({"attacked": np.array([1, 1])}, "it attacks client 1 twice"),
    ({"absent": np.array([3, 3])}, "it leaves out client 3 twice"),
    ({"absent": np.array([1])}, "it attacks client 1, who never takes part"),
    (first("server", TESTED), f"it names sample {TESTED} twice"),
    (first("held_out", SERVERS), f"it names sample {SERVERS} twice"),
    ({"global_test": TRAINED}, f"it names sample {TRAINED[0]} twice"),
    ({"test": NOBODY, "test_offsets": np.zeros(5, np.int64)}, "it has no test sample"),
    (first("backdoored", PART.train[0][0]), "but no attacked client trains on it"),
    (first("backdoored", ARRAYS["backdoored"][1]), "it marks"),
    ({"attacked": NOBODY}, "is backdoored, but no attacked client"),
    shared_out("train", 0, 19, 7, 28, 32),
    shared_out("validation", 0, 4, 2, 6, 8),
    shared_out("train", 0, 0, 7, 28, 32),
    shared_out("test", 0, 3, 3, 9, 12),
    shared_out("train", 1, 7, 19, 28, 32),
    shared_out("train", 0, 7, 19, 28, 31),
    shared_out("train", 0),
    shared_out("test", 0, 4, 12),
]
FOREIGN: list[dict[str, NDArray[Any]]] = [
    {"train": ARRAYS["train"].astype(np.float64)},
    {"test": ARRAYS["test"][None]},
    {"clients": np.array([3])},
]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        *((changes, words) for changes, words in CONTRADICTIONS),
        *((changes, "not a partition file") for changes in FOREIGN),
    ],
)
def test_what_is_no_partition_or_contradicts_itself_is_told_in_one_sentence(
    tmp_path: Path, changes: dict[str, NDArray[Any]], words: str
) -> None:
    path = tmp_path / "partition.npz"
    np.savez(path, allow_pickle=False, **{**ARRAYS, **changes})  # type: ignore[arg-type]
    text = sentence(lambda: partition.load(path))
    has(text, f"{path}: ", words, "; delete it and start the run again")


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
