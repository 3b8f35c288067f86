"""The settings of a run, the samples of a client and the model: what server and clients agree on."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from pydantic import ConfigDict, Field, ValidationError
from torch import Tensor, nn

from fu.data import archives, sources
from fu.data.dataset import about
from fu.data.images import normalised
from fu.errors import UserError, first_problem
from fu.models import mlp
from fu.partitions import pat
from fu.types import Count, Frozen, Held, Rate

METHODS = ("retrain", "fedosd", "weight_negation", "fine_tuning")
CLASSES, HIDDEN = 10, 64


class Settings(Frozen):
    """`[tool.flwr.app.config]` of pyproject.toml."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))
    method: Literal["all", "retrain", "fedosd", "weight_negation", "fine_tuning"]
    forget: Held
    rounds: Count
    unlearning_rounds: Count
    recovery_rounds: Count
    lr: Rate
    batch_size: Count
    class_share: float = Field(gt=0, le=1)
    seed: int
    archive: str
    out: str


def settings(config: Mapping[str, bool | float | int | str]) -> Settings:
    """Return the settings of a run; `UserError` names the first wrong one."""
    try:
        return Settings(**config)
    except ValidationError as error:
        raise UserError(first_problem(error, Settings, "run config")) from None


def samples(client: int, clients: int, archive: str, class_share: float) -> dict[str, tuple[Tensor, Tensor]]:
    """Return a client's images float32 [n, h, w, c] and labels [n], for "train" and "test": of the same classes."""
    name = "mnist" if archive else "digits"
    arrays = archives.read(Path(archive), name) if archive else sources.digits(about(name))
    held = {}
    for split in ("train", "test"):
        x, y = arrays[f"x_{split}"], arrays[f"y_{split}"].astype(np.int64)
        try:
            dealt = pat.deal(y, CLASSES, clients, pat.Params(class_share=class_share), np.random.default_rng(0))
        except ValueError as error:
            raise UserError(f"{error}.") from None
        rows = dealt[client]
        held[split] = normalised(torch.from_numpy(x[rows]), about(name)), torch.from_numpy(y[rows])
    return held


def build(shape: Sequence[int]) -> nn.Module:
    """Return the model, freshly initialised, for images of (height, width, channels)."""
    height, width, channels = shape
    return mlp.build((height, width, channels), CLASSES, mlp.Params(hidden=HIDDEN))
