"""Round checkpoints: a killed job resumes with identical results; an edited one starts over."""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from fu.federation.task import Record, State

Flat = dict[str, Tensor | float | int]  # what lies inside a mapping has two names with a dot between them
S = TypeVar("S", bound=State)


def flat(values: Mapping[str, Any]) -> Flat:
    """Return values by name, those of a mapping among them by its name and theirs."""
    found: Flat = {}
    for name, value in values.items():
        found |= {f"{name}.{key}": one for key, one in value.items()} if isinstance(value, Mapping) else {name: value}
    return found


def inside(values: Flat, name: str) -> dict[str, Any]:
    """Return what `flat` has made of the mapping of this name."""
    return {key.removeprefix(f"{name}."): value for key, value in values.items() if key.startswith(f"{name}.")}


def state_of(kind: type[S], values: Flat) -> S:
    """Return the state of which `flat` has made these values."""
    names = [field.name for field in fields(kind)]
    given: dict[str, Any] = {name: values[name] if name in values else inside(values, name) for name in names}
    return kind(**given)


class Checkpoint:
    """One file beside a job's output, valid for what it is `about`: spec, code digest, inputs, machine."""

    def __init__(self, path: Path, about: dict[str, Any], every_seconds: float) -> None:
        """`every_seconds`: the least time between two checkpoints."""
        self.path, self.about, self.every_seconds = path, about, every_seconds
        self.key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time to write one."""
        return time.monotonic() - self._last >= self.every_seconds

    def save(self, state: State, notes: dict[str, Any], histories: Mapping[str, Record] | None = None) -> None:
        """Write state, histories by kind and notes (plain JSON) whole or not at all."""
        recorded = {f"history.{kind}": record for kind, record in (histories or {}).items()}
        values = flat({**vars(state), **recorded})
        tensors = {name: one.cpu().contiguous().clone() for name, one in values.items() if isinstance(one, Tensor)}
        numbers = {name: one for name, one in values.items() if not isinstance(one, Tensor)}
        kept = [name for name, one in values.items() if isinstance(one, Tensor) and one.device.type == "cpu"]
        text = json.dumps({"numbers": numbers, "notes": notes, "on_cpu": kept})
        part = self.path.with_name(self.path.name + ".part")
        save_file(tensors, part, metadata={"json": text, "digest": self._digest(text, tensors)})
        part.replace(self.path)
        self._last = time.monotonic()

    def load(self, device: str) -> tuple[Flat, dict[str, Any]] | None:
        """Return values and notes saved under this key, or None; another key or a damaged file does not count.

        What lay on the CPU comes back there, all else to the device.
        """
        if not self.path.is_file():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                text, digest = file.metadata()["json"], file.metadata()["digest"]
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if digest != self._digest(text, tensors):
                return None
        except Exception:  # safetensors and torch raise many kinds; to start anew is always right
            return None
        content = json.loads(text)
        tensors = {name: one if name in content["on_cpu"] else one.to(device) for name, one in tensors.items()}
        return tensors | content["numbers"], content["notes"]

    def _digest(self, text: str, tensors: Mapping[str, Tensor]) -> str:
        """Return the SHA-256 of the key and all that is saved under it."""
        found = hashlib.sha256(f"{self.key}{text}".encode())
        for name, value in sorted(tensors.items()):
            found.update(f"{name}{value.dtype}{list(value.shape)}".encode())
            found.update(value.reshape(-1).view(torch.uint8).numpy().data)
        return found.hexdigest()

    def clear(self) -> None:
        """Remove the file, after success."""
        self.path.unlink(missing_ok=True)
