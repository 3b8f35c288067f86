"""Round checkpoints: a killed job goes on where it was, to the same bytes; an edited one starts anew."""

import hashlib
import json
import time
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
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
        tensors = {name: value.contiguous().clone() for name, value in state.items() if isinstance(value, Tensor)}
        numbers = {name: value for name, value in state.items() if not isinstance(value, Tensor)}
        text = json.dumps({"key": self.key, "numbers": numbers, "notes": notes})
        part = self.path.with_name(self.path.name + ".part")
        save_file(tensors, part, metadata={"json": text})
        part.replace(self.path)
        self._last = time.monotonic()

    def load(self, device: str) -> tuple[State, dict[str, Any]] | None:
        """Return what was saved under this key, or None; a checkpoint of another key or a torn one does not count."""
        try:
            with safe_open(self.path, framework="pt", device=device) as file:
                content = json.loads(file.metadata()["json"])
                if content["key"] != self.key:
                    return None
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (FileNotFoundError, SafetensorError, KeyError, TypeError, json.JSONDecodeError):
            return None
        return {**tensors, **content["numbers"]}, content["notes"]

    def clear(self) -> None:
        """Remove the file, after success."""
        self.path.unlink(missing_ok=True)
