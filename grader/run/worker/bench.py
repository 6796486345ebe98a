"""Answers calls: finds the function or object that a request names, calls it, packs the result."""

from __future__ import annotations

import contextlib
import functools
import gc
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from grader.run.worker.packing import Handle, Packer, Unpacker, tensor_bytes
from grader.run.worker.probes import defined, held_shapes, made, meter
from grader.run.worker.raised import describe
from grader.run.worker.recording import recorder
from grader.run.worker.trying import tried
from grader.run.worker.wire import Frame, WireError


@dataclass(frozen=True)
class _Call:
    """What a later backward pass needs of one call."""

    outputs: list[Any]
    leaves: list[Any]
    module: Any
    parameters: list[str]


class Bench:
    """The objects and calls of one check.

    `find` returns the function or class of an entry point's name, and for a fixture the module or
    class with the tests; `line` returns the text of a line of the learner's own files, or None for
    other files.
    """

    def __init__(
        self, find: Callable[[str], Any], line: Callable[[str, int], str | None] | None = None
    ) -> None:
        self._find = find
        self._line = line or (lambda file, number: None)
        self._objects: dict[int, Any] = {}
        self._calls: dict[int, _Call] = {}
        self._meter: Any = None
        self._recorded: list[tuple[Any, str, int]] = []

    def reset(self) -> None:
        """Forget every object and call: the next check starts afresh."""
        self._objects.clear()
        self._calls.clear()
        self._meter = None
        self._recorded = []

    def held(self, number: int) -> Any:
        """The object with a handle's number, None if there is none."""
        return self._objects.get(number)

    def answer(self, request: Frame) -> Frame:
        """The reply to one request; an exception of the called code becomes an error reply."""
        torch = sys.modules.get("torch")
        try:
            # The caller may be in this process too, in the middle of an autograd function.
            with contextlib.nullcontext() if torch is None else torch.enable_grad():
                for earlier in request.header.get("before", ()):
                    function, _ = self._target(earlier["target"])
                    function(*earlier["args"])
                if request.header.get("op") == "backward":
                    return self._backward(request)
                if request.header.get("op") == "usage":
                    return self._usage()
                if request.header.get("op") == "recorded":
                    packer = Packer()
                    return packer.frame({"value": packer.pack(self._recorded)})
                if request.header.get("op") == "try":
                    return self._tried(request.header)
                return self._call(request)
        except BaseException as error:  # noqa: BLE001 - sys.exit and Ctrl-C are answers too
            return Frame({"error": describe(error, self._line)})

    def _call(self, request: Frame) -> Frame:
        header = request.header
        unpacker = Unpacker(
            request, handle=lambda id, _: self._objects[id], strided=True, leaves=True
        )
        args = unpacker.unpack(header["args"])
        kwargs = unpacker.unpack(header["kwargs"])
        function, owner = self._target(header["target"])
        seed_all(header.get("seed"))
        torch = sys.modules.get("torch")
        if torch is None:
            result = function(*args, **kwargs)
        else:
            differentiates = torch.set_grad_enabled(header["differentiate"])
            with differentiates, self._metered(header), self._recording(header):
                kind, base = type(function), torch.nn.Module
                has_forward = getattr(kind, "forward", None) is not base.forward
                if not has_forward and kind.__call__ is base.__call__:
                    args, kwargs = (), {}  # torch then reports the missing one
                result = function(*args, **kwargs)
        if header["target"].get("makes") and type(result).__module__ != "builtins":
            self._keep(result)
        packer = Packer(self._handle)
        value = packer.pack(result)
        outputs = list(packer.arrays)
        changed = packer.pack(list(_changed(unpacker)))
        call = len(self._calls)
        leaves = [
            array
            for array, entry in zip(unpacker.arrays, header.get("arrays", []), strict=True)
            if entry.get("grad")
        ]
        # Other results would only be kept alive.
        kept = [output if getattr(output, "requires_grad", False) else None for output in outputs]
        self._calls[call] = _Call(kept, leaves, owner, header["parameters"])
        return packer.frame({"value": value, "changed": changed, "call": call})

    def _metered(self, header: dict[str, Any]) -> AbstractContextManager[Any]:
        """A block that counts tensors if the check measures memory."""
        if not header.get("measured"):
            return contextlib.nullcontext()
        self._meter = self._meter or meter()
        return self._meter  # type: ignore[no-any-return]

    def _recording(self, header: dict[str, Any]) -> AbstractContextManager[Any]:
        """A block whose tensors are kept for the request "recorded", if the call is to be."""
        if not header.get("recorded"):
            return contextlib.nullcontext()
        block, self._recorded = recorder(self._line)
        return block

    def _usage(self) -> Frame:
        """The memory that the measured calls took and still hold, as counted here."""
        gc.collect()
        counted, self._meter = self._meter, None
        return Frame({"value": {"peak": counted.peak, "held": counted.held} if counted else {}})

    def _backward(self, request: Frame) -> Frame:
        import torch

        header = request.header
        call = self._calls[header["call"]]
        own = dict(call.module.named_parameters()) if call.parameters else {}
        inputs = call.leaves + [own.get(name) for name in call.parameters]
        pairs = [
            (output, gradient)
            for index, gradient in Unpacker(request).unpack(header["gradients"])
            if (output := call.outputs[index]) is not None
        ]
        wanted = [tensor for tensor in inputs if tensor is not None and tensor.requires_grad]
        found: Sequence[Any] = []
        if pairs and wanted:
            # A weighted sum, because torch imports its symbolic shapes for grad_outputs.
            weighted = [(output * gradient.to(output.device)).sum() for output, gradient in pairs]
            found = torch.autograd.grad(weighted, wanted, allow_unused=True, retain_graph=True)
        by_id = {id(tensor): gradient for tensor, gradient in zip(wanted, found, strict=False)}
        packer = Packer()
        return packer.frame({"value": packer.pack([by_id.get(id(tensor)) for tensor in inputs])})

    def _tried(self, header: dict[str, Any]) -> Frame:
        """How the tests that `find` returns for a fixture's name judge an implementation.

        The request is deleted, so that code that examines the frames above it finds nothing.
        """
        fixture = header["target"]["function"]
        given = defined(header.pop("given"), header.pop("name"))
        seed_all(header.pop("seed"))
        whole = header.pop("whole")
        tests = self._find(fixture)
        return Frame(tried(tests, fixture, given, lambda e: describe(e, self._line), whole=whole))

    def _target(self, target: dict[str, Any]) -> tuple[Callable[..., Any], Any]:
        """The callable that a request names, and the object that it belongs to."""
        if "function" in target:
            return self._find(target["function"]), None
        if "given" in target:
            return lambda *args, **kwargs: self._keep(
                made(target["given"], target["name"], args, kwargs)
            ), None
        owner = self._objects[target["object"]]
        if target.get("probe") == "held":
            return functools.partial(held_shapes, owner), owner
        method = target.get("method")
        return (owner if method is None else getattr(owner, method)), owner

    def _handle(self, value: Any) -> Handle | None:
        """The handle of a module, or of an object that was kept; other objects have none."""
        for number, known in self._objects.items():
            if known is value:
                return Handle(number, type(value).__name__)
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(value, torch.nn.Module):
            return None
        self._keep(value)
        return Handle(len(self._objects) - 1, type(value).__name__)

    def _keep(self, value: Any) -> Any:
        self._objects[len(self._objects)] = value
        return value


def _changed(unpacker: Unpacker) -> list[tuple[int, Any]]:
    """The arguments whose values or shapes have changed, with their new values."""
    changed = []
    entries = unpacker.frame.header.get("arrays", [])
    for index, (array, sent) in enumerate(zip(unpacker.arrays, unpacker.buffers, strict=True)):
        now = tensor_bytes(array) if hasattr(array, "data_ptr") else array.tobytes()
        if now != sent or list(array.shape) != entries[index]["shape"]:
            changed.append((index, array))
    return changed


def seed_all(seed: int | None) -> None:
    """Seed the generators that the learner's code may use, so that a run can be repeated."""
    if seed is None:
        return
    if not isinstance(seed, int):
        raise WireError("a seed is not an integer")
    random.seed(seed)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None:
        # torch.manual_seed would format a stack trace at each call while no GPU is in use.
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(seed)
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))
