"""Slow checks of the plan, cached in `results/.cache`: hyper-parameters, models, their sizes, checksums of files."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from fu import plugins
from fu.contents import checksum
from fu.errors import UserError
from fu.pipeline.provenance.catalogue import NEEDED, available, declared, defines, needs
from fu.pipeline.provenance.digest import digest, load_cache, save_cache
from fu.plugins import Choice

CACHE = Path("results/.cache/plan.json")
TOPICS = ("params", "archives", "measured")  # kinds of cached values; rename one whose format changes


class Size(NamedTuple):
    """Size of a model: parameters, and of a forward pass on one sample FLOPs, operations, the numbers that all of these
    return for it together, and the most that one returns.
    """

    parameters: int
    flops: int
    operations: int
    outputs: int
    largest: int


class Planned(NamedTuple):
    """A plug-in with the hyper-parameters (canonical JSON) that the plan gives it, and the recorded histories."""

    kind: str
    name: str
    params: str
    where: str
    history: tuple[str, ...] = ()


def check_params(planned: Iterable[Planned]) -> dict[str, bool]:
    """Check that plug-ins can be called, their hyper-parameters are valid, and the histories they need are recorded.

    Imports a plug-in only where the same file and values are not cached as valid; returns the newly valid ones, to
    `remember` once the whole plan is valid.
    """
    remembered = _remembered("params")
    fresh = {**_fitting}
    for item in sorted(set(planned)):
        if item.kind == "methods":
            lacking = sorted(needs(item.name) - set(item.history))
            if lacking:
                raise UserError(
                    f"{item.where}: needs the history {lacking[0]!r}; add it to settings.training.history "
                    f"(recorded: {', '.join(item.history) or 'none'})."
                )
        key = _key(digest(f"fu.{item.kind}.{item.name}"), item.kind, item.name, item.params)
        if key not in remembered:
            plugins.load(item.kind, item.name)
            if "Params" in NEEDED[item.kind]:
                plugins.params(item.kind, Choice(name=item.name, params=json.loads(item.params)), item.where)
            fresh[key] = True
    return fresh


_fitting: dict[str, bool] = {}  # what fits, to be cached once a whole plan is valid


def check_fit(kind: str, chosen: Choice, model: Choice, shape: tuple[int, ...], classes: int, where: str) -> None:
    """Raise `UserError` where a method or training refuses the model (its function `check`); what fits is cached."""
    if not defines(kind, chosen.name, "check"):
        return
    codes = digest(f"fu.{kind}.{chosen.name}"), digest(f"fu.models.{model.name}")
    key = _key(*codes, kind, chosen.model_dump_json(), model.model_dump_json(), shape, classes)
    if key in _fitting or key in _remembered("params"):
        return
    built = _on_meta(model, shape, classes)
    if built is None:
        return
    try:
        plugins.load(kind, chosen.name).check(built, plugins.params(kind, chosen, where))
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    except Exception as error:  # any error of a plug-in
        raise UserError(f"{where}: {plugins.told(error)}") from None
    _fitting[key] = True


def _on_meta(model: Choice, shape: tuple[int, ...], classes: int) -> Any:
    """Build a model on the meta device; None if that fails: the job that needs it reports the error."""
    import torch

    try:
        with torch.device("meta"):
            built = plugins.load("models", model.name).build(shape, classes, plugins.params("models", model, ""))
    except Exception:  # any error of a plug-in
        return None
    return built.eval()


def size(model: str, params: Mapping[str, Any], shape: tuple[int, ...], classes: int) -> Size | None:
    """Return the size of a model for images of (height, width, channels) or text of (length,); None: not measurable."""
    return _size(model, json.dumps(params, sort_keys=True), shape, classes)


@cache
def _size(model: str, params: str, shape: tuple[int, ...], classes: int) -> Size | None:
    key = _key(digest(f"fu.models.{model}"), model, params, shape, classes)
    known = _remembered("measured")
    if key not in known:
        known[key] = _measured_size(Choice(name=model, params=json.loads(params)), shape, classes)
        remember("measured", known)
    return known[key] and Size(*known[key])


def _measured_size(model: Choice, shape: tuple[int, ...], classes: int) -> Size | None:
    """Build a model on the meta device and run it; None where it needs real tensors or lacks hyper-parameters.

    Raises `UserError` where it cannot be trained.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    from torch.utils.flop_counter import FlopCounterMode

    from fu.federation.network import check_model, sample_of

    returned = list[int]()  # how many numbers, by operation

    class Operations(TorchDispatchMode):
        def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = operation(*args, **(kwargs or {}))
            new = [] if operation.is_view else [one for one in tree_leaves(result) if isinstance(one, torch.Tensor)]
            returned.append(sum(one.numel() for one in new))
            return result

    built = _on_meta(model, shape, classes)
    if built is None:
        return None
    try:
        with torch.device("meta"), torch.no_grad():
            given = partial(torch.zeros, dtype=None if len(shape) > 1 else torch.int64)
            with FlopCounterMode(display=False) as flops, Operations():
                built(given(1, *shape[-1:], *shape[:-1]))
            number = len(returned)
            with Operations():
                built(given(2, *shape[-1:], *shape[:-1]))
    except Exception:  # any error of a plug-in: the job that needs it reports it
        return None
    with torch.device("meta"):
        module = plugins.load("models", model.name)
        place = f"{plugins.place_of(module, 'build')}: build"
        check_model(built, sample_of(shape), classes, place, statistics=hasattr(module, "STATISTICS"))
    parameters = sum(p.numel() for p in built.parameters())
    # what one more sample returns: all else are numbers of the model's parameters
    more = [of_two - of_one for of_one, of_two in zip(returned[:number], returned[number:], strict=False)]
    return Size(parameters, max(1, flops.get_total_flops()), number, sum(more), max(more))


def with_checksum(kind: str, chosen: Choice) -> Choice:
    """Return a choice whose `FILE` is named with its checksum, so that an edit of the file is noticed.

    Raises `UserError` where there is no such file.
    """
    key = declared(kind, chosen.name).get("FILE") if chosen.name in available(kind) else None
    if key is None or not isinstance(chosen.params.get(key), str):
        return chosen
    path = Path(chosen.params[key]).expanduser()
    content = archive_of(path)
    if content is None:
        raise UserError(f"params.{key}: there is no file {str(path)!r}.")
    return chosen.model_copy(update={"params": {**chosen.params, "sha256": content}})


def archive_of(path: Path) -> str | None:
    """Return the SHA-256 of an archive, hashed again only when the file changed; None where there is none."""
    try:
        if not path.is_file():
            return None
        stat = path.stat()
        key = f"{path.resolve()}:{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}:{stat.st_ino}"
        content: str = _remembered("archives").get(key) or checksum(path)
    except OSError as error:
        raise UserError(f"{path}: the archive cannot be read: {error.strerror}.") from None
    remember("archives", {key: content})
    return content


def _remembered(topic: str) -> dict[str, Any]:
    entries = load_cache(CACHE).get(topic)
    return entries if isinstance(entries, dict) else {}


def _key(*parts: object) -> str:
    """Return the key of a cached value: a hash of everything that determines it."""
    return hashlib.sha256("".join(map(str, parts)).encode()).hexdigest()


def remember(topic: str, entries: dict[str, Any]) -> None:
    """Cache entries of a topic for the next plan."""
    content = {name: _remembered(name) for name in TOPICS}
    if not entries.items() <= content[topic].items():
        save_cache(CACHE, {**content, topic: content[topic] | entries})
