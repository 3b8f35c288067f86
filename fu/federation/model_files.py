"""Model files: named tensors as safetensors. A diverged run's file holds no tensors, only the round.

A training's histories lie in one file, as `kind.name`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from fu.contents import require_file
from fu.errors import UserError
from fu.federation.flat import Layout


def save(path: Path, layout: Layout, theta: Tensor, diverged: int | None) -> None:
    """Write theta [d] as named tensors, or only the round in which it diverged."""
    tensors = {} if diverged else layout.named(theta)
    save_file(tensors, path, metadata={"fu": json.dumps({"diverged": diverged})})


def load(path: Path, layout: Layout) -> tuple[Tensor | None, int | None]:
    """Return theta [d] and None, or None and the round of divergence."""
    tensors, notes = read(path)
    diverged = notes.get("diverged")
    if diverged is not None:
        if type(diverged) is not int or diverged < 1 or tensors:
            _refuse(path)
        return None, diverged
    odd = [name for name, tensor in tensors.items() if tensor.dtype != torch.float32]
    if odd:
        raise UserError(f"{path}: {odd[0]!r} is {tensors[odd[0]].dtype}, but weights are float32; delete the file.")
    theta = layout.flatten(tensors, str(path))
    if not torch.stack(theta.aminmax()).isfinite().all():  # as exact as theta.isfinite(), and 30 times as fast
        raise UserError(f"{path}: some weights are not finite; delete the file and start the run again.")
    return theta, None


def save_histories(path: Path, histories: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Write what a training recorded, by kind."""
    tensors = {f"{kind}.{name}": value for kind, record in histories.items() for name, value in record.items()}
    save_file({name: value.cpu().contiguous() for name, value in tensors.items()}, path)


def load_history(path: Path, kind: str, device: torch.device) -> dict[str, Tensor]:
    """Return the named tensors of one kind of history; the others are not read.

    They may hold infinity: squared norms overflow before the weights do.
    """
    prefix = f"{kind}."
    found = {name.removeprefix(prefix): value.to(device) for name, value in read(path, prefix)[0].items()}
    if not found:
        raise UserError(f"{path}: the file has no history {kind!r}; delete it and start the run again.")
    return found


def read(path: Path, prefix: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors whose names begin so, and the notes; `UserError` where the file is missing or truncated."""
    require_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            notes = dict(json.loads((file.metadata() or {}).get("fu", "{}")))
            return {name: file.get_tensor(name) for name in file.keys() if name.startswith(prefix)}, notes  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, ValueError, RecursionError):  # the last of deeply nested notes
        _refuse(path)


def _refuse(path: Path) -> NoReturn:
    raise UserError(f"{path}: the weights file is truncated or damaged; delete it and start the run again.")
