"""What a check holds instead of the learner's code: functions and modules of another process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from grader.run.failures import WrongReturn, strings, submission_error
from grader.run.returned import checked
from grader.run.trials import Trial
from grader.run.under_check import StageUnderCheck, Usage
from grader.run.value_words import RemoteObject, arguments, described, handle_of
from grader.run.worker.bridge import Caller
from grader.run.worker.packing import LAZY, Handle, Opaque
from grader.run.worker.wire import WireError
from grader.types.course import EntryPoint


class RemoteSubmission:
    """The `submission` fixture: `submission.f(x)` calls the learner's function `f`."""

    def __init__(self, stage: StageUnderCheck) -> None:
        self._stage = stage

    def __getattr__(self, name: str) -> Callable[..., Any]:
        for entry in self._stage.stage.entry_points:
            if entry.name == name and not entry.is_fixture:
                return _Entry(self._stage, entry)
        raise AttributeError(f"{name} is not an entry point of stage {self._stage.stage.slug}")

    def given(self, source: str, name: str, *args: Any, **kwargs: Any) -> RemoteObject:
        """An object that the check passes to the learner's code, made in the learner's process.

        `source` runs there, in a namespace of its own. If `name` is a class of modules, the result
        is `name(*args, **kwargs)`, with a module's interface; otherwise it is the function `name`.
        """
        stage = self._stage
        stage.need("")  # only to make sure that the learner's code was imported

        def own_fault(error: dict[str, Any]) -> Exception:
            words = submission_error(error)
            return RuntimeError(f"what the check has given does not work: {words}")

        caller = Caller(stage.request, own_fault, handle_of)
        target = {"given": source, "name": name}
        made = f"{name}({arguments(args, kwargs)})"
        value = stage.call(target, name, args, kwargs, code="", caller=caller)
        if not isinstance(value, Handle):
            raise WrongReturn(f"The object that the check made came back as {described(value)}")
        if value.type_name == "function":
            return RemoteObject(value, name)
        return RemoteModule(stage, value, EntryPoint(name, ("any",), is_class=True), made, "")

    def tried(
        self, fixture: str, sources: Mapping[str, str], name: str, *, whole: bool = False
    ) -> dict[str, Trial]:
        """How the learner's tests judge each of several implementations.

        `fixture` is the fixture that the tests take; `name` is the class or function of each of the
        sources that it gives them. The sources in one call are tried in random order. The first
        test that fails is the last that runs, unless the `whole` of them is asked for.
        """
        trials = self._stage.tried(fixture, list(sources.values()), name, whole)
        return dict(zip(sources, trials, strict=True))

    def measured(self) -> AbstractContextManager[Usage]:
        """`with submission.measured() as usage:` measures the memory that calls in the block take.

        After the block, `usage.peak` is the most bytes at once and `usage.held` what was left at
        its end. A separate process answers the calls, and the kernel reports how much memory it has
        needed since it was forked, including its code and the arguments, but no libraries. Make
        modules inside the block. If the kernel reports nothing, the tensors are counted in the
        learner's process, which may lie. Pass it tensors on the CPU.
        """
        return self._stage.measured()

    def held_by(self, module: RemoteModule) -> list[tuple[int, ...]]:
        """The different shapes of the tensors that a module keeps alive in any way.

        The learner's process reports them, and may lie: see `measured`.
        """
        shapes = module.probe("held")
        if not isinstance(shapes, list) or not all(isinstance(shape, tuple) for shape in shapes):
            raise WrongReturn(
                f"The tensors of this module are unknown: the worker reported {described(shapes)}"
            )
        return shapes


class _Entry:
    """One entry point of the submission."""

    def __init__(self, stage: StageUnderCheck, entry: EntryPoint) -> None:
        self._stage = stage
        self._entry = entry

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        stage, entry = self._stage, self._entry
        stage.need(entry.name)
        code = f"{entry.name}.__init__" if entry.is_class else entry.name
        target = {"function": entry.name, **({"makes": True} if entry.is_object else {})}
        value = stage.call(target, entry.name, args, kwargs, code=code)
        if not entry.is_class:
            return checked(value, entry, f"{entry.name}(...)")
        if not isinstance(value, Handle):
            what, base = ("an object", ":") if entry.is_object else ("an nn.Module", "(nn.Module)")
            is_function = entry.name[:1].islower()  # that makes one, as by Python's custom
            advice = "" if is_function else f": does it say `class {entry.name}{base}`?"
            advice = ": is a `return` missing?" if value is None else advice
            raise WrongReturn(
                f"{entry.name}(...) made {described(value)}\n  expected  {what}{advice}"
            )
        if entry.is_object:
            return RemoteInstance(stage, value, entry, stage.case.last_call)
        return RemoteModule(stage, value, entry, stage.case.last_call, f"{entry.name}.forward")


class RemoteInstance(RemoteObject):
    """An object of a learner's class that is no nn.Module: a check calls it and its methods."""

    def __init__(
        self, stage: StageUnderCheck, handle: Handle, entry: EntryPoint, made: str
    ) -> None:
        super().__init__(handle, made)
        self._stage = stage
        self._entry = entry

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of calling the object."""
        value = self._asked("__call__", self.made, {}, args, kwargs)
        return checked(value, self._entry, f"Calling {self._entry.name}(...)")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self._asked(
            name, f"{self.made}.{name}", {"method": name}, args, kwargs
        )

    def _asked(self, code: str, name: str, method: dict[str, str], args: Any, kwargs: Any) -> Any:
        target = {"object": self.handle.id, **method}
        code = f"{self._entry.name}.{code}"
        value = self._stage.call(target, name, args, kwargs, code=code)
        return self if isinstance(value, Handle) and value.id == self.handle.id else value


class RemoteModule(RemoteObject):
    """An nn.Module of the worker, with the parts of nn.Module's interface that checks use.

    Lazy parameters are left out until they have a shape. `code` names the learner's code that a
    call runs, "" if the code is not theirs.
    """

    def __init__(
        self, stage: StageUnderCheck, handle: Handle, entry: EntryPoint, made: str, code: str
    ) -> None:
        super().__init__(handle, made)
        self._code = code
        self._stage = stage
        self._entry = entry
        self._parameters: dict[str, Any] = {}
        self._stale = True
        self._is_lazy = False
        self._given: list[Any] | None = None
        self.training = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the module's forward; gradients flow back to inputs and parameters.

        A call that repeats the last one is not seeded again: so it shows what the last one did to
        the generators of random numbers.
        """
        before, self._given = self._given, [*args, *kwargs, *kwargs.values()]
        seeded = before is None or [*map(id, before)] != [*map(id, self._given)]
        value = self._stage.call(
            {"object": self.handle.id},
            self.made,
            args,
            kwargs,
            code=self._code,
            seeded=seeded,
            parameters=self._trained(),
        )
        self._stale = self._stale or self._is_lazy  # lazy parameters may have got their shapes
        return checked(value, self._entry, f"Calling {self._entry.name}(...)")

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Names and local leaf tensors that represent the parameters and receive their gradient."""
        if self._stale:
            self._read_parameters()
        return iter(self._parameters.items())

    def parameters(self) -> Iterator[Any]:
        """The tensors of `named_parameters`."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """Names and values of the buffers."""
        return iter(_named_tensors(self._method("named_buffers"), "named_buffers()"))

    def state_dict(self) -> dict[str, Any]:
        """Copies of the persistent parameters and buffers."""
        return dict(_named_tensors(self._method("state_dict"), "state_dict()"))

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> list[str]:
        """Copy these values into the module; returns the names of missing ones.

        These are the module's without a value here, or all of `state` if the module has none of it.
        """
        self._stale = True
        keys = self._method("load_state_dict", dict(state), strict=strict)
        missing, unknown = keys if isinstance(keys, tuple) and len(keys) == 2 else ([], [])
        unknown = strings(unknown)
        missing = missing or (unknown if set(state) <= set(unknown) else [])
        return [str(name) for name in missing] if isinstance(missing, list) else []

    def train(self, mode: bool = True) -> RemoteModule:
        """Switch to training mode."""
        self._mode("train", mode)
        return self

    def eval(self) -> RemoteModule:
        """Switch to evaluation mode."""
        self._mode("eval")
        return self

    def to(self, *args: Any) -> RemoteModule:
        """Move to a device or cast to a dtype."""
        self._method("to", *args)
        self._stale = True
        return self

    def probe(self, name: str) -> Any:
        """The result of a probe: what the worker finds inside the module."""
        return self._asked({"object": self.handle.id, "probe": name}, name)

    def _trained(self) -> dict[str, Any]:
        """The parameters that gradients may have to reach."""
        torch = sys.modules.get("torch")
        if torch is None or not torch.is_grad_enabled():
            return {}
        trained = {name: p for name, p in self.named_parameters() if p.requires_grad}
        return dict(sorted(trained.items()))  # the same request, however the code orders them

    def _mode(self, method: str, *args: bool) -> None:
        target = {"object": self.handle.id, "method": method}
        self._stage.before_the_next(target, *args)
        self.training = all(args) if args else False

    def _method(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._asked({"object": self.handle.id, "method": name}, name, *args, **kwargs)

    def _asked(self, target: dict[str, Any], name: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._stage.caller.call(target, args, kwargs, is_watched=lambda array: False)
        except WireError as error:
            raise WrongReturn(f"{name}() gave an answer that makes no sense: {error}") from None

    def _read_parameters(self) -> None:
        found = self._method("named_parameters")
        fresh = _named_tensors(found, "named_parameters()")
        self._is_lazy = len(fresh) < len(found)
        known, self._parameters = self._parameters, {}
        for name, tensor in fresh:
            leaf = known.get(name)
            if leaf is None or not tensor.is_floating_point():
                leaf = tensor.detach()
            else:
                leaf.data = tensor.detach()
                leaf.grad = None
            self._parameters[name] = leaf.requires_grad_(leaf.is_floating_point())
        self._stale = False


def _named_tensors(value: Any, what: str) -> list[tuple[str, Any]]:
    """Pairs of names and tensors, without lazy ones. Raises WrongReturn."""
    import torch

    if not isinstance(value, (list, tuple, dict)):
        raise WrongReturn(f"{what} returned {described(value)}, not names and tensors")
    every = value.items() if isinstance(value, dict) else value
    named = [item for item in every if not _is_lazy(item)]
    for item in named:
        if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[1], torch.Tensor):
            raise WrongReturn(f"{what} holds {described(item)}, not a name and a tensor")
        if not isinstance(item[0], str):
            raise WrongReturn(f"{what} holds a tensor whose name is {described(item[0])}")
    return named


def _is_lazy(item: Any) -> bool:
    is_pair = isinstance(item, tuple) and len(item) == 2
    return is_pair and isinstance(item[1], Opaque) and item[1].why == LAZY
