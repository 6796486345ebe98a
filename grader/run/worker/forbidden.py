"""Notices calls of what a stage forbids, while the learner's code answers a check.

A forbidden name still works. A Python function gets new code in place, so that its calls are
noticed however the learner's code found it: getattr, importlib, sys.modules or a name of its own; a
class is watched through its methods. A function written in C is replaced wherever it is found by
name. An operation of torch that is made of others, or is named torch.ops.aten.NAME, is replaced in
torch's dispatcher.

This is no security boundary: code that takes this module apart in its own process, or brings a copy
of the source, can make forbidden calls unnoticed.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import inspect
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

_OPS = "torch.ops.aten."
_DEVICES = ("CPU", "CUDA", "MPS", "NestedTensorCPU", "NestedTensorCUDA")
_COMPOSITE = "CompositeImplicitAutograd"  # an operation made of others, on any device
_VMAP = "FuncTorchVmapMode"  # torch.vmap takes such an operation apart before that


def kit_globals() -> frozenset[int]:
    """The ids of the globals of the kit's modules, before any code of the learner is loaded.

    It looks at every module there is, so call it before the fork: a worker would have to copy a
    thousand pages of memory.
    """
    modules = (module for name, module in list(sys.modules.items()) if name[:7] == "grader.")
    return frozenset(id(vars(module)) for module in modules)


class CallWatch:
    """Notices calls by name; `line` returns the text of a line of the learner's own files.

    It notices them inside `noticing`, once for each name that `begin` was given; between two such
    blocks too, but for calls from the kit's modules, of which `kit` has the ids of their globals.
    """

    def __init__(self, line: Callable[[str, int], str | None], kit: frozenset[int]) -> None:
        self._line = line
        self._kit = kit
        self._watched: set[str] = set()
        self._places: dict[str, list[tuple[str, str]]] = {}  # by file: dotted and qualified names
        self._libraries: list[Any] = []  # torch forgets a library's operations when it is freed
        self._stays = False
        self._is_on = False
        self._inside = threading.local()
        self._wanted: set[str] = set()
        self._seen: set[str] = set()
        self._told: list[dict[str, Any]] = []
        self._under_way: list[str] = []  # the names of calls that have not ended, or are recorded

    def over(self, names: Iterable[str]) -> None:
        """Prepare to notice these dotted names too. A name that does not exist cannot be called."""
        for name in names:
            if name not in self._watched:
                self._watched.add(name)
                with suppress(ImportError, AttributeError):
                    self._watch(name, *_found(name))

    def begin(self, names: Iterable[str]) -> None:
        """Start a case: notice these names from now on, each once.

        A call that waits for the case, in a thread, is noticed too. So is one that torch has
        recorded, because the recording can repeat its steps later.
        """
        self._wanted = set(names)
        self._seen.clear()
        self._told += [{"name": name, "frames": []} for name in self._wanted & {*self._under_way}]

    @contextmanager
    def noticing(self) -> Iterator[None]:
        """The block in which the learner's code answers a check.

        Some of that code may run later: in a thread, in a destructor or for a profiler.
        """
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def drain(self) -> list[dict[str, Any]]:
        """What was noticed since the last call: each name, and the learner's line if known."""
        told, self._told = self._told, []
        return told

    def _watch(self, name: str, owner: Any, last: str, value: Any) -> None:
        if isinstance(value, types.FunctionType):
            self._watch_function(name, value)
        elif isinstance(value, type):
            self._watch_class(name, value)
            self._watch_derived(name, value)
        elif callable(value):
            operation = _operation(name)
            if operation is not None:
                self._watch_operation(name, operation)
            if not name.startswith(_OPS):
                self._replace(name, owner, last, value, everywhere=operation is None)
        self._watch_wrapped(name, value)

    def _watch_wrapped(self, name: str, value: Any) -> None:
        """Watch the Python function that another callable wraps, as most of numpy's do."""
        wrapped = inspect.unwrap(value) if hasattr(value, "__wrapped__") else None
        if isinstance(wrapped, types.FunctionType):
            self._watch_function(name, wrapped)

    def _watch_function(self, name: str, function: types.FunctionType) -> None:
        """Replace the function's code by code that reports the call and then makes it."""
        if any(isinstance(constant, _Noticing) for constant in function.__code__.co_consts):
            return
        code = function.__code__
        self._places.setdefault(code.co_filename, []).append((name, function.__qualname__))
        self._stay()
        original = types.FunctionType(
            code, function.__globals__, code.co_name, function.__defaults__, function.__closure__
        )
        original.__kwdefaults__ = function.__kwdefaults__
        function.__code__ = _code_like(code, _Noticing(self, name, original))

    def _watch_class(self, name: str, kind: type) -> None:
        """Watch a class's own methods, and above all its constructor."""
        for own in list(vars(kind).values()):
            function = own.__func__ if isinstance(own, (staticmethod, classmethod)) else own
            if isinstance(function, types.FunctionType):
                self._watch_function(name, function)
        if "__init__" not in vars(kind):
            inherited = kind.__init__  # type: ignore[misc]
            with suppress(TypeError):  # a class written in C

                def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
                    inherited(self, *args, **kwargs)

                kind.__init__ = __init__  # type: ignore[misc]
                self._watch_function(name, __init__)  # type: ignore[arg-type]

    def _watch_derived(self, name: str, kind: Any) -> None:
        """Watch the classes that derive from this one, now or later."""
        pending = type.__subclasses__(kind)
        for derived in pending:
            self._watch_class(name, derived)
            pending += type.__subclasses__(derived)
        if "__init_subclass__" in vars(kind):
            return

        def __init_subclass__(derived: Any, /, **options: Any) -> None:
            super(kind, derived).__init_subclass__(**options)
            self._watch_class(name, derived)

        with suppress(TypeError):  # a class written in C
            kind.__init_subclass__ = classmethod(__init_subclass__)

    def _watch_operation(self, name: str, operation: Any) -> None:
        """Replace the operation in torch's dispatcher, to notice it however it is called."""
        import torch
        from torch.library import Library

        library: Any = Library("aten", "IMPL")  # type: ignore[no-untyped-call]
        self._libraries.append(library)
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the warning that a kernel is overridden
            for overload in operation.overloads():
                op = getattr(operation, overload)
                keys = {key: key for key in (_COMPOSITE, *_DEVICES) if has_kernel(op.name(), key)}
                if _COMPOSITE in keys:
                    keys[_COMPOSITE] = keys[_VMAP] = "Undefined"  # which has the same kernel
                kernels = {key: torch.library.get_kernel(op, of) for key, of in keys.items()}
                for key, kernel in kernels.items():
                    call = _Noticing(self, name, kernel.call_boxed)
                    library.impl(op, _plain(call), key, with_keyset=True)

    def _replace(self, name: str, owner: Any, last: str, value: Any, *, everywhere: bool) -> None:
        """Replace the object, if `everywhere` in all modules of its library, and of its part in C.

        That has the same name after an underscore, as _heapq.
        """
        instead = _plain(_Noticing(self, name, value))
        instead.__name__ = last
        instead.__doc__ = getattr(value, "__doc__", None)
        with suppress(TypeError):  # an attribute of a class written in C
            setattr(owner, last, instead)
        if not everywhere:
            return
        top = name.split(".")[0]
        for module_name, module in list(sys.modules.items()):
            if module_name.split(".")[0] in (top, f"_{top}") and isinstance(
                module, types.ModuleType
            ):
                for key, held in list(vars(module).items()):
                    if held is value:
                        setattr(module, key, instead)

    def _stay(self) -> None:
        """Watch a module again after a reload, so that a reload cannot end the watch."""
        if self._stays:
            return
        self._stays = True
        loader: Any = importlib.machinery.SourceFileLoader
        original = loader.exec_module

        def exec_module(of: Any, module: types.ModuleType) -> None:
            try:
                original(of, module)
            finally:
                for name, qualified in self._places.get(getattr(of, "path", ""), ()):
                    self._watch_again(name, module, qualified)

        loader.exec_module = exec_module

    def _watch_again(self, name: str, module: types.ModuleType, qualified: str) -> None:
        value: Any = module
        for part in qualified.split("."):
            value = vars(value).get(part) if hasattr(value, "__dict__") else None
        if isinstance(value, types.FunctionType):
            self._watch_function(name, value)
        self._watch_wrapped(name, value)

    def call(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call the function, and report it unless it is part of another forbidden call."""
        is_part = name not in self._wanted or getattr(self._inside, "call", False)
        if is_part or self._is_kits(name, sys._getframe(2).f_back):
            self._under_way.append(name)
            try:
                return function(*args, **kwargs)
            finally:
                if not _is_recorded():
                    self._under_way.remove(name)
        if name not in self._seen:
            told: dict[str, Any] = {"name": name, "frames": []}
            self._told.append(told)
            self._seen.add(name)  # only now: too deep a recursion may end any of these lines
            told["frames"] = self._learners_frame()
        self._inside.call = True
        try:
            return function(*args, **kwargs)
        finally:
            self._inside.call = False

    def _is_kits(self, name: str, caller: types.FrameType | None) -> bool:
        """Whether the call of `name` is the kit's own.

        Code of the kit that names the function calls it for itself. Any other may call it for the
        learner's code, while that answers a check.
        """
        if caller is None or id(caller.f_globals) not in self._kit:
            return False
        return not self._is_on or name.rpartition(".")[2] in caller.f_code.co_names

    def _learners_frame(self) -> list[dict[str, Any]]:
        """The innermost line of the learner's own that led to the call, if there is one."""
        frame: types.FrameType | None = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            text = self._line(code.co_filename, frame.f_lineno)
            if text is not None:
                place = {"file": code.co_filename, "line": frame.f_lineno}
                return [{**place, "function": code.co_name, "text": text.strip()[:200]}]
            frame = frame.f_back
        return []


class _Noticing:
    """A forbidden function as its callers see it."""

    def __init__(self, watch: CallWatch, name: str, function: Callable[..., Any]) -> None:
        self._watch = watch
        self._name = name
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._watch.call(self._name, self._function, args, kwargs)


def _found(name: str) -> tuple[Any, str, Any]:
    """The owner of a dotted name's last part, that part, and its value.

    Raises ImportError or AttributeError.
    """
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            owner = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:-1]:
            owner = getattr(owner, part)
        return owner, parts[-1], getattr(owner, parts[-1])
    raise ImportError(name)


def _is_recorded() -> bool:
    """Whether torch writes down the steps of what runs, as torch.jit.trace and torch.export do."""
    torch = sys.modules.get("torch")
    proxies = sys.modules.get("torch.fx.experimental.proxy_tensor")
    is_traced = torch is not None and torch._C._get_tracing_state() is not None
    return is_traced or (proxies is not None and proxies.get_proxy_mode() is not None)


def _code_like(code: types.CodeType, noticing: _Noticing) -> types.CodeType:
    """Code that passes all arguments to `noticing`, and fits a function whose code is `code`.

    It has no file, so that torch.jit.script finds no source to compile, which would not call it.
    """
    cells = [f"cell_{number}" for number in range(len(code.co_freevars))]
    # The code names the cells but never reads them: only their number has to match.
    source = (
        f"def outer({', '.join(cells)}):\n"
        "    def inner(*args, **kwargs):\n"
        f"        if False: ({''.join(cell + ', ' for cell in cells)})\n"
        f"        call = {_MARK!r}\n"
        "        return call(*args, **kwargs)\n"
    )
    inner = _code_in(_code_in(compile(source, "", "exec", dont_inherit=True)))
    return inner.replace(
        co_consts=tuple(noticing if c == _MARK else c for c in inner.co_consts),
        co_name=code.co_name,
        co_filename="<noticed>",
    )


_MARK = "what was called"


def _code_in(code: types.CodeType) -> types.CodeType:
    return next(each for each in code.co_consts if isinstance(each, types.CodeType))


def _operation(name: str) -> Any:
    """The operation of torch that a name of something written in C stands for, if there is one.

    Operations that are made of others count whoever calls them. Any other operation may be part of
    an allowed one, as torch.bmm is of `@`, so it counts only if it was named directly.
    """
    torch = sys.modules.get("torch")
    if torch is None or not name.startswith("torch."):
        return None
    packet = getattr(torch.ops.aten, name.rpartition(".")[2], None)
    if packet is None or name.startswith(_OPS):
        return packet
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    overloads = [getattr(packet, overload).name() for overload in packet.overloads()]
    return packet if any(has_kernel(overload, _COMPOSITE) for overload in overloads) else None


def _plain(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same as a plain function, because torch and classes accept no other callable here."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    return function
