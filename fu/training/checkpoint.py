"""Checkpoint: the original model is a file of your own; what is trained again is trained by FedAvg.

No client takes part in the original training, which reads the file: named tensors as safetensors, or a `state_dict`
that `torch.save` wrote. Methods start from it. Retraining, and the shadow models of attacks, train freshly initialised
models by FedAvg (McMahan et al. 2017), for the rounds and at the rate of the settings. As nothing is trained, no
history is recorded, and methods that need one cannot be used.
"""

from pathlib import Path

import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from fu.contents import verified
from fu.errors import UserError
from fu.federation.flat import Layout
from fu.federation.task import State, Task
from fu.training import fedavg

STATISTICS = True  # it reads them as they are, and FedAvg averages them
RECORDS = False  # there is nothing to record
FILE = "file"  # the hyper-parameter that names a file; the plan adds its checksum


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    file: str = Field(min_length=1, examples=["model.safetensors"], description="path of the model")
    sha256: str = Field("", description="checksum of the file: added by the plan (our choice: an edit must be noticed)")


def check(model: nn.Module, p: Params) -> None:
    """Raise `UserError` where the file holds no model of this architecture."""
    Layout(model).flatten(_read(p), p.file)


def start(task: Task, p: Params) -> State:
    """Begin at the model of the file; retraining begins at a freshly initialised one."""
    if task.original is not None:
        return State(task.first_model())
    return State(task.federation.layout.flatten(_read(p), p.file).to(task.federation.device))


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Leave the model of the file as it is; retraining averages one round of the clients that take part."""
    return state if task.original is None else fedavg.step(task, fedavg.Params(), state, round)


def _read(p: Params) -> dict[str, Tensor]:
    path = verified(Path(p.file).expanduser(), p.sha256)
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            found = load_file(path)
        else:
            found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # damaged bytes raise a dozen kinds
        raise UserError(f"{path}: is neither safetensors nor a state_dict written by torch.save.") from None
    if not isinstance(found, dict) or not all(isinstance(one, Tensor) for one in found.values()):
        raise UserError(f"{path}: must hold named tensors (a state_dict), got {type(found).__name__}.")
    named = {name: one.float() for name, one in found.items() if one.is_floating_point()}
    if odd := [name for name, one in named.items() if not one.isfinite().all()]:
        raise UserError(f"{path}: {odd[0]!r} is not finite.")
    return named
