"""Interpreters for tests: forked from one that has imported the same, as lanes do.

A test that starts a process of its own, such as one that types the command, has none of it. Nor
has one that gives the kit a temporary folder of its own, to see what is left there.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType

import pytest

from grader.run import workers
from grader.run.workers import Interpreter
from grader.types.course import Limits

STARTERS = (
    "grader.run.device",
    "grader.authoring.verify.verify",
    "grader.learning.pictures.tracer",
)


class Copy(Interpreter):
    """Ends alone: the interpreter that it was forked from goes on."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Warm:
    """Takes the place of the class Interpreter: what was started once is copied afterwards."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._started: dict[object, Interpreter] = {}
        self._temporary = tempfile.gettempdir()

    def __call__(self, preload: tuple[str, ...], limits: Limits, *, gpu: bool) -> Interpreter:
        if not workers._CAN_FORK or tempfile.gettempdir() != self._temporary:
            return Interpreter(preload, limits, gpu=gpu)
        key = preload, limits, gpu, tuple(sys.path)
        first = self._started.get(key)
        if first is None:
            first = self._stack.enter_context(Interpreter(preload, limits, gpu=gpu))
        copy = first.copy()
        copy.__class__ = Copy
        self._started[key] = first  # not before: one that cannot import is of no further use
        return copy


@contextmanager
def warm_interpreters() -> Iterator[None]:
    """Let engines take copies of interpreters that are warm."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        warm = Warm(stack)
        for starter in STARTERS:
            patch.setattr(f"{starter}.Interpreter", warm)
        yield
