"""Partitions drawn for tests: labels with classes of many sizes, ways to share them out, clients who hold them."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fu import plugins
from fu.attacks import patch
from fu.data import partition
from fu.data.clients import ClientData, Poison
from fu.data.partition import Indices, Partition
from fu.data.request import Request
from tests.factories import CLASSES

CLIENTS = 10
SIZES = (70, 63, 81, 77, 64, 90, 72, 68, 75, 71)  # samples per class
TESTS = 200
LABELS: NDArray[np.int64] = np.random.default_rng(5).permutation(np.repeat(np.arange(len(SIZES)), SIZES))
BACKDOOR = patch.Params()
Kind = tuple[str, dict[str, Any]]  # a way to share out, with its hyper-parameters
IID: Kind = ("iid", {})


def pat(class_share: float) -> Kind:
    return ("pat", {"class_share": class_share})


KINDS = [pytest.param(IID, id="iid"), *(pytest.param(pat(share), id=f"pat-{share}") for share in (0.1, 0.2, 0.5, 1.0))]


def _given(kind: Kind, backdoor: patch.Params | None) -> dict[str, Any]:
    """Return the partition of the samples, and the attack on them."""
    name, params = kind
    plugin = plugins.load("partitions", name)
    return {
        "deal": lambda labels, random: plugin.deal(labels, CLASSES, CLIENTS, plugin.Params(**params), random),
        "attack": (lambda train, random: patch.draw(train, CLASSES, backdoor, random)) if backdoor else None,
    }


def draw(*, kind: Kind = IID, backdoor: patch.Params | None = BACKDOOR, **changes: Any) -> Partition:
    """Draw a partition of `LABELS` among ten clients."""
    usual = {"seed": 0, "samples": None, "train_share": 6 / 7, "validation_share": 0.1, "attacked": 1}
    return partition.draw(LABELS, **{**usual, **changes}, **_given(kind, backdoor))


def draw_official(*, kind: Kind = IID, backdoor: patch.Params | None = None, **changes: Any) -> Partition:
    """Draw a partition of `LABELS`, whose last `TESTS` are the test part, to ten clients."""
    usual = {"seed": 0, "samples": None, "validation_share": 0.1, "test": "global", "attacked": 1}
    given = {**usual, "server": 0, "held_out": 0, "absent": 0, **changes, **_given(kind, backdoor)}
    return partition.draw_official(LABELS, len(LABELS) - TESTS, **given)


def pools(part: Partition) -> list[Indices]:
    return [np.concatenate(splits) for splits in zip(part.train, part.validation, part.test, strict=True)]


def equal(one: Partition, other: Partition) -> bool:
    first, second = one.arrays(), other.arrays()
    return set(first) == set(second) and all(np.array_equal(first[key], second[key]) for key in first)


def client_data(
    part: Partition, poison: Poison, side: int = 28, channels: int = 1, request: Request | None = None
) -> ClientData:
    """Return random images for `LABELS`."""
    x = torch.randn(len(LABELS), side, side, channels, generator=torch.Generator().manual_seed(0))
    mark = partial(patch.mark, part.attack, classes=CLASSES) if part.attack else None
    return ClientData(x, torch.from_numpy(LABELS.copy()), part, CLASSES, poison, mark, request)
