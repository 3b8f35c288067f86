"""Models at the start of rounds, kept in one safetensors file: each is written once, and none is held in memory."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from fu.contents import require_file
from fu.errors import UserError

PREFIX = "round."
FLOAT_BYTES = 4


class KeptModels:
    """Theta [d] at the start of some of the `length` rounds of a training; rounds count from 0."""

    def __init__(self, path: Path) -> None:
        """Open a file; `UserError` where it is missing or broken."""
        require_file(path)
        self.path, self.writable = path, False
        try:
            with safe_open(path, framework="pt") as file:
                about = json.loads((file.metadata() or {})["fu"])
                self.rounds = sorted(int(name.removeprefix(PREFIX)) for name in file.keys())  # noqa: SIM118
            self.length, self.key = int(about["length"]), str(about["key"])
        except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError):
            raise UserError(f"{path}: the file with the stored models is damaged; delete it and run again.") from None

    @classmethod
    def create(
        cls, path: Path, rounds: Sequence[int], length: int, size: int, key: str = "", source: Path | None = None
    ) -> "KeptModels":
        """Make a file with room for models of `size` parameters: zeros, or what another file of that shape holds.

        `key` names the run that writes it. The file is there whole or not at all.
        """
        header: dict[str, object] = {"__metadata__": {"fu": json.dumps({"length": length, "key": key})}}
        for place, round in enumerate(rounds):
            offsets = [place * size * FLOAT_BYTES, (place + 1) * size * FLOAT_BYTES]
            header[f"{PREFIX}{round}"] = {"dtype": "F32", "shape": [size], "data_offsets": offsets}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        part = path.with_name(f"{path.name}.part")
        with part.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            if source:
                with source.open("rb") as before:
                    before.seek(cls._start(before.read(8)))
                    shutil.copyfileobj(before, file)
            file.truncate(8 + len(text) + len(rounds) * size * FLOAT_BYTES)
        part.replace(path)
        return cls.resumed(path)

    @classmethod
    def resumed(cls, path: Path) -> "KeptModels":
        """Open a file to go on writing it."""
        models = cls(path)
        models.writable = True
        return models

    def copied(self, path: Path, key: str) -> "KeptModels":
        """Return a copy that can be written, of a run of its own."""
        size = len(self.read(self.rounds[0]))
        return self.create(path, self.rounds, self.length, size, key, self.path)

    def nearest(self, round: int) -> int:
        """Return the last round up to this one whose model is kept."""
        return max(kept for kept in self.rounds if kept <= round)

    def read(self, round: int) -> Tensor:
        """Return theta [d] at the start of a round, on the CPU."""
        with safe_open(self.path, framework="pt") as file:
            found: Tensor = file.get_tensor(f"{PREFIX}{round}")
        return found

    def write(self, round: int, theta: Tensor) -> None:
        """Keep theta [d] at the start of a round, if that round's is to be kept."""
        if round not in self.rounds:
            return
        with self.path.open("r+b") as file:
            start = self._start(file.read(8)) + self.rounds.index(round) * theta.numel() * FLOAT_BYTES
            file.seek(start)
            file.write(theta.detach().to("cpu", torch.float32).contiguous().numpy().data)

    @staticmethod
    def _start(length: bytes) -> int:
        return 8 + int.from_bytes(length, "little")
