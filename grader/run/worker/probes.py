"""What a check may request in the learner's process besides calls."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from types import FrameType, FunctionType, ModuleType
from typing import Any


def defined(source: str, name: str) -> Any:
    """What `name` is in this source, which is run as a module so that pickle can find it."""
    module = sys.modules["given"] = ModuleType("given")
    exec(compile(source, "<given>", "exec", dont_inherit=True), vars(module))
    return vars(module)[name]


def made(source: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """`name(*args, **kwargs)` if `name` is a class of this source, else the object `name`."""
    found = defined(source, name)
    return found(*args, **kwargs) if isinstance(found, type) else found


def held_shapes(root: Any) -> list[tuple[int, ...]]:
    """The different shapes, sorted, of all tensors and arrays that `root` keeps alive.

    It follows attributes, its own and those of its class, containers, closures, hooks and
    gradients, but not other classes, the globals of a module or the graph of an autograd function.
    """
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    shapes: set[tuple[int, ...]] = set()
    seen: dict[int, Any] = {}  # keeps them alive, so that no other object gets the same id
    pending = [root]
    for owner in type(root).__mro__:
        if owner.__module__.partition(".")[0] not in ("torch", "builtins"):
            pending += vars(owner).values()
    while pending:
        value = pending.pop()
        if id(value) in seen or isinstance(value, (type, ModuleType)):
            continue
        seen[id(value)] = value
        if isinstance(value, FunctionType):
            pending += [value.__closure__, value.__defaults__, value.__kwdefaults__, vars(value)]
            continue
        if isinstance(value, FrameType):  # of a generator
            pending += value.f_locals.values()
            continue
        if torch is not None and isinstance(value, torch.Tensor):
            if not torch.nn.parameter.is_lazy(value):
                shapes.add(tuple(value.shape))
                pending.append(value.grad if value.is_leaf else None)
        elif numpy is not None and isinstance(value, numpy.ndarray):
            shapes.add(value.shape)
        pending += gc.get_referents(value)
    return sorted(shapes)


def meter() -> AbstractContextManager[Any]:
    """A block that notes, as its `peak`, the most bytes that its tensors took at once.

    `held` are the bytes that they take now. The block may be entered again and continues counting.
    It counts the storage of every tensor that an operation in the block makes, for as long as the
    storage lives, but not what an operation uses internally. So the count is the same on every
    machine.
    """
    meter: AbstractContextManager[Any] = _meter()()
    return meter


@cache  # only callers that need torch import it
def _meter() -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Meter(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.peak = 0
            self.held = 0
            self._sizes: dict[int, int] = {}
            self._alive: dict[int, Any] = {}

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # otherwise the first operation imports torch's compiler: 1.4 s

        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            before = {storage._cdata for storage in _storages([args, kwargs])}
            result = function(*args, **(kwargs or {}))
            for storage in _storages(result):
                if storage._cdata in self._sizes or storage._cdata not in before:
                    self._count(storage)
            self.peak = max(self.peak, self.held)
            return result

        def _count(self, storage: Any) -> None:
            key, size = storage._cdata, storage.nbytes()
            if key not in self._sizes:
                self._alive[key] = weakref.ref(storage, lambda _: self._free(key))
            self.held += size - self._sizes.get(key, 0)  # it may have been resized
            self._sizes[key] = size

        def _free(self, key: int) -> None:
            del self._alive[key]
            self.held -= self._sizes.pop(key)

    return Meter


def _storages(value: Any) -> Iterator[Any]:
    """The storages of the tensors in the arguments or the result of an operation."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided and not value.is_meta:
            yield value.untyped_storage()
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _storages(item)
    elif isinstance(value, dict):
        yield from _storages(list(value.values()))
