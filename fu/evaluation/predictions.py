"""Logits of a model on fixed probes, to compare models without loading them (our choice: no paper keeps them).

Every model of a run is given the same probes, of at most `MOST` samples each: `forgotten`, training samples of the
forgotten clients and forgotten samples, without the attack; `triggered`, the same samples with the attack's trigger, if
there is one; `retained`, test samples of the retained clients, or of the test set that belongs to no client.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from fu.data.clients import ClientData
from fu.data.partition import Indices
from fu.federation import model_files
from fu.seeds import derive_integer

MOST = 1000
NOISE = 0.1  # standard deviation of what `altered` adds to model inputs (our choice: a tenth of MNIST's range)
BUCKETS = 4096  # of a sketch (our choice: distances within some 1%)
DIRECTIONS = torch.tensor([(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if y or x])  # down and right [8, 2]
WEIGHTS = "weights"  # key of sketches of the weights, beside the probes
LABELS, ROWS, REPEATS = "labels", "rows", "repeats"  # in the place of a role


def probes(data: ClientData) -> dict[str, tuple[Tensor, Tensor]]:
    """Return images [n, c, h, w] (or text [n, length]) and labels [n] by name; nothing forgotten: `retained` alone."""
    part = data.partition
    gone = _spread(np.concatenate([*(part.train[client] for client in data.forgotten), data.forgotten_samples]))
    found = {"forgotten": data.clean(gone)} if len(gone) else {}
    if len(gone) and data.mark is not None:
        found["triggered"] = data.triggered(gone)
    return found | {"retained": data.clean(_spread(data.retained_test))}


def audited(data: ClientData) -> dict[str, tuple[Tensor, Tensor]]:
    """Return images [n, c, h, w] (or text [n, length]) and labels [n] of an audit's probes, by name.

    `forgotten`: training samples of the forgotten clients as these trained on them, the backdoor included, or forgotten
    samples; `augmented`: the same `altered`, of images alone; `held_out`: the forgotten clients' own test samples, or,
    where they have none, test samples of the same classes; `retained_train` and `retained_test`: of the retained
    clients; with a backdoor `triggered`, the test samples of the retained clients (or of no client) with trigger and
    flipped labels, and `triggered_altered`, the same `altered`. Of each at most `MOST`, at equal distances.
    """
    x, y = data.trained_on(audited_rows(data))
    kept, tested = np.concatenate([data.rows[client] for client in data.retained]), _spread(data.retained_test)
    found = {
        "forgotten": (x, y),
        "held_out": data.clean(_spread(_held_out(data))),
        "retained_train": data.clean(_spread(kept)),
        "retained_test": data.clean(tested),
    }
    if x.ndim == 4:
        secret = int(_held_out(data).sum())  # no method gets these rows
        found["augmented"] = altered(x, derive_integer("augmented", secret)), y
    if data.mark is not None:
        x, y = found["triggered"] = data.flipped(tested)
        found["triggered_altered"] = altered(x, derive_integer("triggered_altered")), y
    return found


def altered(x: Tensor, seed: int) -> Tensor:
    """Return images [n, c, h, w], each shifted by one or two pixels in one of eight directions, with Gaussian noise.

    Pixels from beyond an edge repeat it, as the value of a background differs between data sets. Draws are made on the
    CPU and depend on the seed and an image's place alone.
    """
    random, (images, _, height, width) = torch.Generator().manual_seed(seed), x.shape
    drawn = torch.randint(len(DIRECTIONS), (images,), generator=random)
    shift = DIRECTIONS[drawn] * torch.randint(1, 3, (images, 1), generator=random)
    rows = (torch.arange(height) - shift[:, :1]).clamp(0, height - 1)
    columns = (torch.arange(width) - shift[:, 1:]).clamp(0, width - 1)
    noise = NOISE * torch.randn(x.shape, generator=random)
    moved = x[torch.arange(images)[:, None, None], :, rows[:, :, None], columns[:, None, :]]  # [n, h, w, c]
    return moved.permute(0, 3, 1, 2) + noise.to(x.device)


def sketch(theta: Tensor) -> Tensor:
    """Return `BUCKETS` sums [K, 1] of the weights [d], each with a random sign in a random one (Charikar et al. 2002).

    The distance of two models' sketches estimates that of their weights, with a relative deviation of 1 / sqrt(2 K).
    """
    random, theta = torch.Generator().manual_seed(derive_integer("sketch", len(theta))), theta.cpu()
    bucket = torch.randint(BUCKETS, theta.shape, generator=random)
    sign = 2 * torch.randint(2, theta.shape, generator=random) - 1
    return theta.new_zeros(BUCKETS).index_add_(0, bucket, theta * sign)[:, None]


def audited_rows(data: ClientData) -> Indices:
    """Return which samples of the data set are an audit's `forgotten` probe, in its order."""
    return _spread(_forgotten(data))


def save(path: Path, labels: Mapping[str, Tensor], models: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Write the probes' labels [n] and the logits [n, C] of the model in each role, if it has any."""
    named = {f"{role}.{name}": value for role, of in {LABELS: labels, **models}.items() for name, value in of.items()}
    whole = torch.contiguous_format  # and none of another's memory: two probes may have the same labels
    save_file({name: value.cpu().clone(memory_format=whole) for name, value in named.items()}, path)


def load(path: Path, role: str) -> dict[str, Tensor]:
    """Return a model's logits [n, C] by probe, or the probes' `LABELS` [n]; nothing of a model that has diverged.

    Of an audit's predictions `ROWS` [n], too: which samples of the data set the forgotten ones are.
    """
    return {name.removeprefix(f"{role}."): value for name, value in model_files.read(path, f"{role}.")[0].items()}


def _forgotten(data: ClientData) -> Indices:
    """Return which samples the forgotten clients train on, and the forgotten samples of others."""
    return np.concatenate([*(data.rows[client] for client in data.forgotten), data.forgotten_samples])


def _held_out(data: ClientData) -> Indices:
    """Return the forgotten clients' test samples; if there are none, all test samples of the classes to forget."""
    part = data.partition
    own = np.concatenate([part.global_test[:0], *(part.test[client] for client in data.forgotten)])
    if len(own):
        return own
    present = [*data.forgotten, *data.retained]
    tested = part.global_test if len(part.global_test) else np.concatenate([part.test[one] for one in present])
    _, y = data.trained_on(_forgotten(data))
    alike = torch.isin(data.clean(tested)[1], y).cpu().numpy()
    return tested[alike]


def _spread(rows: Indices) -> Indices:
    """Return at most `MOST` of some rows, at equal distances."""
    number = min(len(rows), MOST)
    return rows[np.arange(number) * len(rows) // max(number, 1)]
