"""Checks of what users pass to `fu.api`: models, settings, names of plug-ins; one sentence where it cannot work."""

import copy
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from fu import plugins
from fu.data.clients import batch_of
from fu.errors import UserError, first_problem, nearest
from fu.federation.flat import tensors_of
from fu.federation.network import Network, check_model
from fu.federation.sgd import LocalTraining
from fu.plugins import Choice

Build = Callable[[], nn.Module]
CALLED = {"methods": "method", "training": "training", "evaluation": "evaluator", "audits": "audit"}
FUNCTION = {"methods": "step", "training": "step", "evaluation": "evaluate", "audits": "audit"}
INSTEAD = {"local_epochs": "local_steps", "local_steps": "local_epochs"}


def names(kind: str) -> list[str]:
    """Return the names of a kind's plug-ins, including those in users' folders."""
    folders = [*importlib.import_module(f"fu.{kind}").__path__, *(str(folder / kind) for folder in plugins.FOLDERS)]
    complete = set()
    for module in pkgutil.iter_modules(folders):
        with suppress(UserError):  # reported where it is used
            complete |= {module.name} if hasattr(plugins.load(kind, module.name), FUNCTION[kind]) else set()
    return sorted(complete)


def plugin(kind: str, name: str) -> Any:
    """Return a plug-in; `UserError` where there is none of that name."""
    if not isinstance(name, str):
        raise UserError(f"{CALLED[kind]}: must be a name, got {name!r}.")
    if not plugins.exists(kind, name) or not hasattr(module := plugins.load(kind, name), FUNCTION[kind]):
        raise UserError(f"there is no {CALLED[kind]} {name!r}{nearest(name.lower(), names(kind))}.")
    return module


def several(names: str | Sequence[str], where: str) -> Sequence[str]:
    """Return names, also where one is given alone; `where`: the argument."""
    if not isinstance(names, Sequence):
        raise UserError(f"{where}: must be a name or a list of names, got {names!r}.")
    return [names] if isinstance(names, str) else names


def choice(name: str, params: Mapping[str, Any] | None) -> Choice:
    """Return a plug-in with its hyper-parameters; `UserError` where these are not a dictionary."""
    if params is not None and not (isinstance(params, Mapping) and all(isinstance(key, str) for key in params)):
        raise UserError(f"params: must be a dictionary of {name}'s hyper-parameters by their names, got {params!r}.")
    return Choice(name=name, params={**(params or {})})


def device_of(name: str) -> torch.device:
    """Return the device of that name; "auto": a GPU if there is one."""
    there = ["cpu", *["cuda"] * torch.cuda.is_available()]
    if name not in ("auto", *there):
        raise UserError(f"device: there is no {name!r}; allowed here: auto, {', '.join(there)}.")
    return torch.device(there[-1] if name == "auto" else name)


def local_sgd(settings: Mapping[str, Any], **changes: Any) -> LocalTraining:
    """Return settings of local SGD with changes; local epochs replace local steps, and the other way round.

    `UserError` where one is unknown or out of range.
    """
    if odd := [(name, value) for name, value in {**settings, **changes}.items() if isinstance(value, bool | str)]:
        raise UserError("local SGD: {}: must be a number, got {!r}.".format(*odd[0]))
    replaced = {INSTEAD[name]: None for name, value in changes.items() if name in INSTEAD and value is not None}
    try:
        return LocalTraining(**{**settings, **replaced, **changes})
    except ValidationError as error:
        raise UserError(first_problem(error, LocalTraining, "local SGD")) from None


def seeded(seed: int) -> int:
    """Return a seed; `UserError` where it is not a whole number from 0 that fits 64 bits."""
    if not isinstance(seed, Integral) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise UserError(f"seed: must be a whole number from 0, got {seed!r}.")
    return int(seed)


def count(number: int, name: str) -> int:
    """Return a number of rounds or repeats; `UserError` where it is not a whole number from 1."""
    if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
        raise UserError(f"{name}: must be a whole number from 1, got {number!r}.")
    return int(number)


def builder(model: nn.Module | Build) -> Build:
    """Return a function that builds a freshly initialised model without changing torch's global random state."""
    if not callable(model):
        raise UserError(f"model: must be an nn.Module, its class or a function, got {type(model).__name__}.")
    if not isinstance(model, nn.Module):
        return _apart(model)
    given: nn.Module = model
    for name, module in given.named_modules():
        if [*module.parameters(recurse=False)] and not hasattr(module, "reset_parameters"):
            raise UserError(
                f"model: {name or 'the module'} has parameters, but no reset_parameters() to initialise them; give "
                "the class, or a function that builds the model."
            )

    def build() -> nn.Module:
        built = copy.deepcopy(given)
        for module in built.modules():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()  # type: ignore[operator]
        return built

    return _apart(build)


def _apart(build: Build) -> Build:
    def apart() -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            return build()

    return apart


def built(build: Build) -> nn.Module:
    """Return a model; `UserError` where it cannot be built."""
    try:
        model = build()
    except Exception as error:  # a user's code may raise anything
        reason = " ".join(str(error).split()).rstrip(".")
        raise UserError(
            f"model: cannot be built: {type(error).__name__}: {reason}; give a function, as in lambda: Net(8)."
        ) from None
    if not isinstance(model, nn.Module):
        raise UserError(f"model: must build an nn.Module, got {type(model).__name__}.")
    if any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters()):
        raise UserError("model: has lazy layers, whose shape is unknown; use layers with shapes.")
    return model


def classes_of(model: nn.Module, x: Tensor, y: Tensor) -> int:
    """Return how many classes a model has; `UserError` where it does not take the samples, or has too few classes."""
    sample = batch_of(x[:1]).cpu()
    plain = sample.contiguous()
    try:
        with torch.no_grad():
            outputs = model.eval()(plain)
    except Exception as error:  # a user's code may raise anything
        reason = " ".join(str(error).split())
        raise UserError(f"model: fails on a sample {[*sample.shape]}: {type(error).__name__}: {reason}") from None
    if not isinstance(outputs, Tensor) or outputs.ndim != 2 or len(outputs) != 1:
        got = f"{[*outputs.shape]}" if isinstance(outputs, Tensor) else type(outputs).__name__
        raise UserError(f"model: must return one output per class for each sample, [1, classes] here, got {got}.")
    classes = outputs.shape[1]
    if int(y.max()) >= classes:
        raise UserError(
            f"model: has {classes} outputs, for labels 0 to {classes - 1}, but there is label {int(y.max())}; number "
            "labels from 0, with an output for each."
        )
    check_model(model, plain, classes, "model()", statistics=hasattr(model, "STATISTICS"))
    if odd := [name for name, tensor in tensors_of(model).items() if not tensor.isfinite().all()]:
        raise UserError(f"model: {odd[0]!r} is not finite; keep a mask as booleans.")
    bound = Network(model, torch.device("cpu"))
    try:
        bound.logits(bound.weights, sample)
    except Exception as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise UserError(
            f"model: fails on a sample {[*sample.shape]} that lies channels last in memory, as images and weights do "
            f"here: {type(error).__name__}: {reason}; use flatten or reshape in place of view."
        ) from None
    return classes


def fails_alone(model: nn.Module, x: Tensor) -> bool:
    """Return whether a model fails on a single sample in training mode, as with `nn.BatchNorm1d`."""
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            model.train()(batch_of(x[:1]).cpu())
    except Exception:  # a user's code may raise anything
        return True
    return False
