"""Round checkpoints: a killed job resumes where it was, to the same bytes; an edited one starts over."""

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from fu.federation.task import State


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

    def save(self, state: State, notes: dict[str, Any]) -> None:
        """Write the state and notes (plain JSON) whole or not at all."""
        tensors = {name: value.cpu().contiguous().clone() for name, value in state.items() if isinstance(value, Tensor)}
        numbers = {name: value for name, value in state.items() if not isinstance(value, Tensor)}
        text = json.dumps({"numbers": numbers, "notes": notes})
        part = self.path.with_name(self.path.name + ".part")
        save_file(tensors, part, metadata={"json": text, "digest": self._digest(text, tensors)})
        part.replace(self.path)
        self._last = time.monotonic()

    def load(self, device: str) -> tuple[State, dict[str, Any]] | None:
        """Return what was saved under this key, or None; one of another key or a damaged one does not count."""
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
        return {name: value.to(device) for name, value in tensors.items()} | content["numbers"], content["notes"]

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
