"""Calls across the wire that behave like local ones: real tensors, and gradients flow through."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grader.run.worker.packing import TRAVELS, Handle, Packer, Unpacker
from grader.run.worker.wire import Frame, WireError

Transport = Callable[[Frame], Frame]


class ChangedArgument(WireError):
    """An argument was changed in place in a way that cannot be repeated here; says how."""


class Caller:
    """Calls functions and objects on the other side of `transport`.

    `transport` sends one request and returns its reply. `fail` makes the exception to raise from an
    error reply. `handle_of` recognizes arguments that are objects of the other side.
    """

    def __init__(
        self,
        transport: Transport,
        fail: Callable[[dict[str, Any]], Exception],
        handle_of: Callable[[Any], Handle | None] = lambda value: None,
    ) -> None:
        self._transport = transport
        self._fail = fail
        self._handle_of = handle_of

    def call(
        self,
        target: dict[str, Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        seed: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        is_watched: Callable[[Any], bool] = lambda array: True,
    ) -> Any:
        """The result of calling `target` with the arguments.

        `parameters` are local leaf tensors that represent the target's own: a backward pass through
        the result also fills their gradients. If the callee changed an argument in place, it is
        changed here too if it `is_watched`. An argument that requires gradients never is: torch
        forbids such a change, so the learner's code must have bypassed torch. Raises TypeError for
        an argument that cannot travel.
        """
        packer = Packer(self._handle_of)
        header = {
            "op": "call",
            "target": target,
            "args": packer.pack(tuple(args)),
            "kwargs": packer.pack(dict(kwargs)),
            "seed": seed,
            "parameters": list(parameters or {}),
            "differentiate": False,
        }
        torch = sys.modules.get("torch")
        inputs: list[Any] = []
        if torch is not None and torch.is_grad_enabled():
            header["differentiate"] = True
            arrays = [array for array in packer.arrays if isinstance(array, torch.Tensor)]
            inputs = [array for array in arrays if array.requires_grad]
            inputs += (parameters or {}).values()
        if packer.refused:
            refused = packer.refused[0]
            why = f" ({refused.why})" if refused.why else ""
            raise TypeError(
                f"{refused.type_name}{why} cannot pass to another process as an argument\n"
                f"  expected  {TRAVELS}"
            )
        request = packer.frame(header)
        if not inputs:
            reply = self._unpacker(self._transport(request))
            return self._finish(reply, packer.arrays, is_watched)
        return self._call_with_gradients(torch, request, packer.arrays, inputs, is_watched)

    def _call_with_gradients(
        self,
        torch: Any,
        request: Frame,
        arrays: list[Any],
        inputs: list[Any],
        is_watched: Callable[[Any], bool],
    ) -> Any:
        function = _bridge(torch)
        unpacker: list[Unpacker] = []
        calls: list[Any] = []
        indices: list[int] = []

        def forward() -> tuple[list[Any], list[Any]]:
            reply = self._unpacker(self._transport(request))
            unpacker.append(reply)
            calls.append(reply.frame.header.get("call"))
            self._finish(reply, arrays, is_watched)
            entries = reply.frame.header.get("arrays", [])
            for index, array in enumerate(reply.arrays):
                if isinstance(array, torch.Tensor):
                    indices.append(index)
            tensors = [reply.arrays[index] for index in indices]
            constant = [
                reply.arrays[index]
                for index in indices
                if not entries[index].get("grad") or not reply.arrays[index].is_floating_point()
            ]
            return tensors, constant

        def backward(gradients: Sequence[Any]) -> list[Any]:
            # The results hold this object: if it held them too, neither would ever be freed.
            given = [
                (index, gradient)
                for index, gradient in zip(indices, gradients, strict=True)
                if gradient is not None
            ]
            return self._gradients(calls[0], given, inputs, torch)

        results = function.apply(forward, backward, *inputs)
        for index, tensor in zip(indices, results, strict=True):
            unpacker[0].arrays[index] = tensor
        return unpacker[0].unpack(unpacker[0].frame.header.get("value"))

    def _gradients(
        self, call: Any, given: list[tuple[int, Any]], inputs: list[Any], torch: Any
    ) -> list[Any]:
        packer = Packer()
        header = {"op": "backward", "call": call, "gradients": packer.pack(given)}
        gradients = self._finish(self._unpacker(self._transport(packer.frame(header))))
        if not isinstance(gradients, list) or len(gradients) != len(inputs):
            raise WireError("there is not one gradient for each input")
        for gradient, tensor in zip(gradients, inputs, strict=True):
            if gradient is None:
                continue
            if not isinstance(gradient, torch.Tensor) or gradient.shape != tensor.shape:
                raise WireError("a gradient does not have its input's shape")
        return [
            None if gradient is None else gradient.to(tensor.device, tensor.dtype)
            for gradient, tensor in zip(gradients, inputs, strict=True)
        ]

    def _unpacker(self, reply: Frame) -> Unpacker:
        error = reply.header.get("error")
        if error is not None:
            raise self._fail(error if isinstance(error, dict) else {})
        if type(reply.header.get("call", 0)) is not int:
            raise WireError("a call's number is not a number")
        return Unpacker(reply, handle=Handle)

    def _finish(
        self,
        reply: Unpacker,
        arrays: Sequence[Any] = (),
        is_watched: Callable[[Any], bool] = lambda array: False,
    ) -> Any:
        """Write changed arguments back if they are watched, and return the value."""
        header = reply.frame.header
        changed = reply.unpack(header.get("changed"))
        if not isinstance(changed, (list, type(None))):
            raise WireError("the changed arguments are not a list")
        for entry in changed or []:
            if not isinstance(entry, tuple) or len(entry) != 2:
                raise WireError("a changed argument is not a number and a value")
            index, new = entry
            if type(index) is not int or not 0 <= index < len(arrays):
                raise WireError("a changed argument was not among the arguments")
            _expect_fit(arrays[index], new)
            if is_watched(arrays[index]):
                _write_back(arrays[index], new)
        return reply.unpack(header.get("value"))


def _expect_fit(old: Any, new: Any) -> None:
    """Raise WireError if an argument cannot be changed here as the reply describes."""
    is_tensor = hasattr(old, "data_ptr")
    if not hasattr(new, "dtype") or hasattr(new, "data_ptr") != is_tensor:
        raise WireError("a changed argument is not of its kind any more")
    if old.shape != new.shape or old.dtype != new.dtype:
        before, after = (f"{list(array.shape)} {array.dtype}" for array in (old, new))
        raise ChangedArgument(
            "changed an argument in place: methods with a trailing underscore do\n"
            f"  expected  {before}, as it was given\n"
            f"  got       {after}"
        )
    if is_tensor and old.requires_grad:
        raise ChangedArgument("changed an argument in place, although it takes gradients")


def _write_back(old: Any, new: Any) -> None:
    if not hasattr(old, "data_ptr"):
        old[...] = new
        return
    target = old.data
    for axis, step in enumerate(target.stride()):
        if step == 0:  # an expanded axis holds one value many times
            target, new = target.narrow(axis, 0, 1), new.narrow(axis, 0, 1)
    target.copy_(new)


@functools.cache  # made on first use: torch is slow to make such a class
def _bridge(torch: Any) -> Any:
    """The autograd function whose forward and backward are the two halves of one remote call."""

    class Bridge(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, forward: Any, backward: Any, *inputs: Any) -> tuple[Any, ...]:
            tensors, constant = forward()
            ctx.remote_backward = backward
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(*constant)
            return tuple(tensors)

        @staticmethod
        @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
            return None, None, *ctx.remote_backward(gradients)

    return Bridge
