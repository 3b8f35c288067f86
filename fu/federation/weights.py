"""Model files: named tensors as safetensors. A diverged run's file holds no tensors, only the round."""

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from fu.errors import UserError
from fu.federation.layout import Layout


def save(path: Path, layout: Layout, theta: Tensor, diverged: int | None) -> None:
    """Write theta [d] as named tensors, or only the round in which it left the finite numbers."""
    tensors = {} if diverged else layout.named(theta)
    save_file(tensors, path, metadata={"fu": json.dumps({"diverged": diverged})})


def load(path: Path, layout: Layout) -> tuple[Tensor | None, int | None]:
    """Return theta [d] and None, or None and the round of divergence."""
    tensors, notes = read(path)
    diverged = notes.get("diverged")
    return (None, diverged) if diverged else (layout.flatten(tensors, str(path)), None)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, int | None]]:
    """Return the named tensors and notes of a file; `UserError` where it is missing or truncated."""
    try:
        with safe_open(path, framework="pt") as file:
            notes = dict(json.loads((file.metadata() or {}).get("fu", "{}")))
            return {name: file.get_tensor(name) for name in file.keys()}, notes  # noqa: SIM118
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such weights file.") from None
    except (SafetensorError, OSError, TypeError, ValueError):
        raise UserError(
            f"{path}: the weights file is truncated or broken; delete it and run snakemake again."
        ) from None
