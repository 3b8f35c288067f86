"""From ordinary data sets, one for each client, to the samples and the partition that `fu.federation` takes."""

from collections.abc import Sequence
from itertools import pairwise
from numbers import Real
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from fu.data.partition import Indices, Partition
from fu.errors import UserError
from fu.seeds import derive_integer


class Samples(Protocol):
    """What `torch.utils.data.Dataset` with a length is: pairs of a sample and its label, by number."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


def merged(
    train: Sequence[Samples], test: Samples | Sequence[Samples] | None, test_share: float, seed: int
) -> tuple[Tensor, Tensor, Partition]:
    """Return all samples (images [n, h, w, c], others as they are), labels [n], and who holds which.

    `test`: one set for all, or one for each client; None: `test_share` of each client's own samples, drawn.
    `UserError` where a set has no samples, or samples that do not fit together.
    """
    if not (hasattr(train, "__len__") and hasattr(train, "__getitem__")):
        raise UserError(f"datasets: must be a list, one data set for each client, got {type(train).__name__}.")
    if not len(train):
        raise UserError("datasets: there is none; give one for each client.")
    several = test is None or isinstance(test, Sequence)
    tests = [*test] if isinstance(test, Sequence) else [] if test is None else [test]
    if isinstance(test, Sequence) and len(tests) != len(train):
        raise UserError(f"test: there are {len(tests)} data sets for {len(train)} clients; give one for all, or each.")
    names = [f"datasets[{client}]" for client in range(len(train))]
    names += [f"test[{client}]" for client in range(len(tests))] if several else ["test"]
    sets = [_stacked(one, name) for one, name in zip([*train, *tests], names, strict=True)]
    shape, kind = sets[0][0].shape[1:], sets[0][0].dtype
    for name, (x, _) in zip(names, sets, strict=True):
        if (x.shape[1:], x.dtype) != (shape, kind):
            raise UserError(
                f"{name}: its samples are {x.dtype} {[*x.shape[1:]]}, but those of datasets[0] are {kind} {[*shape]}."
            )
    x, y = (torch.cat(parts) for parts in zip(*sets, strict=True))
    cuts = np.cumsum([0, *(len(labels) for _, labels in sets)])
    rows = [np.arange(first, last, dtype=np.int64) for first, last in pairwise(cuts)]
    held, none = rows[: len(train)], np.empty(0, np.int64)
    apart, pool = rows[len(train) :], none
    if test is None:
        held, apart = _split(held, test_share, seed)
    elif not several:
        [pool], apart = apart, [none] * len(train)
    x = x.permute(0, 2, 3, 1).contiguous() if x.ndim == 4 else x
    return x, y, Partition(held, [none] * len(train), apart, global_test=pool)


def _stacked(dataset: Samples, name: str) -> tuple[Tensor, Tensor]:
    """Return samples [n, ...] and labels [n] of a data set."""
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        what = type(dataset).__name__
        raise UserError(f"{name}: must be a data set with a length, got {what}; of a DataLoader give its dataset.")
    if not len(dataset):
        raise UserError(f"{name}: has no samples.")
    if type(dataset) is TensorDataset and len(dataset.tensors) == 2:
        x, y = dataset.tensors
    else:
        try:
            pairs = [dataset[index] for index in range(len(dataset))]
            x = torch.stack([torch.as_tensor(sample) for sample, _ in pairs])
            y = torch.stack([torch.as_tensor(label) for _, label in pairs])
        except (TypeError, ValueError, RuntimeError) as error:
            raise UserError(
                f"{name}: its items must be pairs of a tensor, all of one shape, and a label: {_first_line(error)}."
            ) from None
    if not y.is_floating_point() and y.ndim == 1 and int(y.min()) < 0:
        raise UserError(f"{name}: has label {int(y.min())}; labels must be whole numbers from 0.")
    if y.is_floating_point() or y.ndim != 1:
        raise UserError(f"{name}: labels must be whole numbers from 0, one a sample, got {y.dtype} {[*y.shape]}.")
    if not x.is_floating_point() and x.ndim != 2:
        raise UserError(
            f"{name}: samples must be floats, or text as whole numbers [length], got {x.dtype} {[*x.shape[1:]]}; "
            "turn images into floats, as torchvision.transforms.ToTensor does."
        )
    x = x.float() if x.is_floating_point() else x.long()
    if not x.isfinite().all():
        raise UserError(f"{name}: has a sample that is not finite.")
    return x, y.long()


def _split(held: list[Indices], share: float, seed: int) -> tuple[list[Indices], list[Indices]]:
    """Return the training and the test samples of each client; `share`: of test samples, one at least."""
    if not (isinstance(share, Real) and 0 < share < 1):
        raise UserError(f"test_share: must be between 0 and 1, got {share!r}.")
    train, test = [], []
    for client, rows in enumerate(held):
        if len(rows) < 2:
            raise UserError(f"datasets[{client}]: has 1 sample; give two at least, or test sets of their own (test).")
        order = np.random.default_rng(derive_integer(seed, "test", client)).permutation(rows)
        number = min(max(1, round(share * len(rows))), len(rows) - 1)
        train.append(np.sort(order[number:]))
        test.append(np.sort(order[:number]))
    return train, test


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
