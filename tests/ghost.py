"""A device that is not there: tensors that say they lie on another device than the CPU, and carry data all the same.

To torch a ghost lies on `meta`; its data are a tensor of the CPU, on which every operation is computed. What a GPU
would refuse is refused: an operation on tensors of both devices (`MixedError`), a generator of the CPU that is to draw
on the device, `numpy()`. As on CUDA, numbers without dimensions and indices may lie on the CPU.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._C import _DisableTorchDispatch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

DEVICE = torch.device("meta")
CPU = torch.device("cpu")
SET_DATA = Tensor.data.__set__  # type: ignore[attr-defined]
TORCH = Path(torch.__file__).parent
INDEXED = {"index.Tensor", "index_put_.default", "index_put.default", "_index_put_impl_.default"}
COPIES = {"_to_copy.default", "copy_.default"}


class MixedError(RuntimeError):
    """An operation on tensors of two devices."""


class Ghost(Tensor):
    """A tensor that says it lies on `DEVICE`; `own`: its data, on the CPU."""

    own: Tensor

    @staticmethod
    def __new__(cls, own: Tensor) -> "Ghost":
        """Wrap a tensor of the CPU, whose storage it shares."""
        made: Ghost = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            own.size(),
            strides=own.stride(),
            storage_offset=own.storage_offset(),
            dtype=own.dtype,
            layout=own.layout,
            device=DEVICE,
        )
        made.own = own
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"ghost of {self.own!r}"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Compute on the data, and wrap what comes out."""
        return computed(func, args, kwargs or {})


SEEN: set[str] = set()  # the operations that ghosts were in


def computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return what an operation gives, as a ghost where a GPU would have it on the GPU."""
    name = func._overloadpacket.__name__ + "." + func._overloadname
    given = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, Tensor)]
    ghosts = [one for one in given if isinstance(one, Ghost)]
    wanted = kwargs.get("device")
    wanted = None if wanted is None else torch.device(wanted)
    if not ghosts and wanted != DEVICE:
        return func(*args, **kwargs)
    SEEN.add(func._schema.name.partition("::")[2])
    if name not in COPIES:
        indices = args[1] if name in INDEXED else ()
        others = [one for one in given if not isinstance(one, Ghost) and one.dim() and not _among(one, indices)]
        if (ghosts and others) or (name in INDEXED and not isinstance(args[0], Ghost)):
            raise MixedError(f"{place()}: {func} is given tensors of the CPU and of another device.")
    random = kwargs.get("generator")
    if random is not None and random.device != DEVICE:
        raise MixedError(f"{place()}: {func} draws on another device with a generator of the CPU.")
    plain_args, plain_kwargs = tree_map_only(Ghost, lambda one: one.own, (args, kwargs))
    if wanted is not None:
        plain_kwargs["device"] = CPU
    if wanted == CPU:
        return func(*plain_args, **plain_kwargs)
    if name == "copy_.default" and not isinstance(args[0], Ghost):
        return func(*plain_args, **plain_kwargs)
    found = func(*plain_args, **plain_kwargs)
    if torch.Tag.inplace_view in func.tags:  # it changes the shape of what it is given, which a ghost shows, too
        with _DisableTorchDispatch():
            func(*args, **kwargs)
    changed = {id(one.own): one for one in ghosts}  # what is changed in place is returned as it was given
    return tree_map_only(Tensor, lambda one: changed[id(one)] if id(one) in changed else Ghost(one), found)


def _among(one: Tensor, several: Any) -> bool:
    return any(one is other for other in several)


def place() -> str:
    """Return file and line of the innermost code that is neither torch's nor this module's."""
    frame = sys._getframe()
    while frame.f_back and (frame.f_code.co_filename == __file__ or TORCH in Path(frame.f_code.co_filename).parents):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _listed(index: Any) -> Any:
    """Return an index with tensors in place of lists, which torch itself would make on the device, without numbers."""
    if isinstance(index, tuple):
        return tuple(map(_listed, index))
    return torch.tensor(index) if isinstance(index, list) else index


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})


class _Functions(TorchFunctionMode):
    """Routes what does not go through an operation: making a tensor of Python's numbers, and reading it back."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.tensor and torch.device(kwargs.get("device") or "cpu") == DEVICE:
            return func(*args, **{**kwargs, "device": CPU}).to(DEVICE)
        if func is Tensor.tolist and isinstance(args[0], Ghost):
            return args[0].own.tolist()
        if func == SET_DATA and isinstance(args[0], Ghost):
            args[0].own = args[1].own
        if func in (Tensor.__getitem__, Tensor.__setitem__):
            return func(args[0], _listed(args[1]), *args[2:])
        return func(*args, **kwargs)


@contextmanager
def there() -> Iterator[torch.device]:
    """Let the device be there."""
    with _Functions(), _Operations():
        yield DEVICE
