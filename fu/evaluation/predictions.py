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

MOST = 1000
LABELS, ROWS, REPEATS = "labels", "rows", "repeats"  # in the place of a role


def probes(data: ClientData) -> dict[str, tuple[Tensor, Tensor]]:
    """Return images [n, c, h, w] (or text [n, length]) and labels [n] by name; nothing forgotten: `retained` alone."""
    part = data.partition
    gone = _spread(np.concatenate([*(part.train[client] for client in data.forgotten), data.forgotten_samples]))
    tested = [part.global_test] if len(part.global_test) else [part.test[client] for client in data.retained]
    found = {"forgotten": data.clean(gone)} if len(gone) else {}
    if len(gone) and data.mark is not None:
        found["triggered"] = data.triggered(gone)
    return found | {"retained": data.clean(_spread(np.concatenate(tested)))}


def audited(data: ClientData) -> dict[str, tuple[Tensor, Tensor]]:
    """Return images [n, c, h, w] (or text [n, length]) and labels [n] of an audit's probes, by name.

    `forgotten`: training samples of the forgotten clients as these trained on them, the backdoor included, or forgotten
    samples; `held_out`: test samples of the same classes; `retained_train` and `retained_test`: of the retained
    clients. Of each at most `MOST`, at equal distances.
    """
    part, present = data.partition, [*data.forgotten, *data.retained]
    _, y = data.trained_on(_forgotten(data))
    tested = part.global_test if len(part.global_test) else np.concatenate([part.test[client] for client in present])
    alike = torch.isin(data.clean(tested)[1], y).cpu().numpy()
    stay = part.global_test if len(part.global_test) else np.concatenate([part.test[one] for one in data.retained])
    return {
        "forgotten": data.trained_on(audited_rows(data)),
        "held_out": data.clean(_spread(tested[alike])),
        "retained_train": data.clean(_spread(np.concatenate([data.rows[client] for client in data.retained]))),
        "retained_test": data.clean(_spread(stay)),
    }


def audited_rows(data: ClientData) -> Indices:
    """Return which samples of the data set are an audit's `forgotten` probe, in its order."""
    return _spread(_forgotten(data))


def save(path: Path, labels: Mapping[str, Tensor], models: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Write the probes' labels [n] and the logits [n, C] of the model in each role, if it has any."""
    named = {f"{role}.{name}": value for role, of in {LABELS: labels, **models}.items() for name, value in of.items()}
    save_file({name: value.cpu().contiguous() for name, value in named.items()}, path)


def load(path: Path, role: str) -> dict[str, Tensor]:
    """Return a model's logits [n, C] by probe, or the probes' `LABELS` [n]; nothing of a model that has diverged.

    Of an audit's predictions `ROWS` [n], too: which samples of the data set the forgotten ones are.
    """
    return {name.removeprefix(f"{role}."): value for name, value in model_files.read(path, f"{role}.")[0].items()}


def _forgotten(data: ClientData) -> Indices:
    """Return which samples the forgotten clients train on, and the forgotten samples of others."""
    return np.concatenate([*(data.rows[client] for client in data.forgotten), data.forgotten_samples])


def _spread(rows: Indices) -> Indices:
    """Return at most `MOST` of some rows, at equal distances."""
    number = min(len(rows), MOST)
    return rows[np.arange(number) * len(rows) // max(number, 1)]
