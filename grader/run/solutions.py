"""The course's own solutions: as a submission, in this process, or as answers to a worker."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from grader.run.worker.loader import Loader
from grader.run.worker.wire import Closed, DeadlineError, Frame, WireError
from grader.run.workers import GRACE, Interpreter, Worker
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, located

_MODULE = "references"
_ANSWER_SECONDS = 2.0
# What a worker's question may contain; only checks may send the other parts of a request.
_QUESTION = (
    *("op", "target", "args", "kwargs", "seed", "parameters", "differentiate", "arrays"),
    *("call", "gradients"),
)


def solution_files(course: Course) -> dict[str, bytes]:
    """The sources of all solutions by file name. Raises CourseError if one is missing."""
    files = {}
    for stage in course.stages:
        try:
            files[stage.file_name] = stage.solution_file.read_bytes()
        except OSError as error:
            raise CourseError(f"{stage.solution_file}: {error.strerror}") from None
    return files


@contextmanager
def at_hand(files: Mapping[str, bytes], stage: Stage) -> Iterator[Callable[[str], Any]]:
    """The entry points of `stage` by name, in this process, from the sources `files`.

    A fixture's entry point is the module with the tests. Within the block the code may import the
    other files too. Raises whatever their import raises.
    """
    loader = Loader(files, {})
    loader.install()
    try:
        module = importlib.import_module(stage.slug)
        yield lambda name: module if name == stage.fixture else getattr(module, name)
    finally:
        loader.remove()


@contextmanager
def solution_at_hand(course: Course, stage: Stage) -> Iterator[Callable[[str], Any]]:
    """As `at_hand`, of the course's solutions. Raises CourseError if it cannot be imported."""
    with ExitStack() as stack:
        try:
            found = stack.enter_context(at_hand(solution_files(course), stage))
        except Exception as error:  # noqa: BLE001 - a solution that is broken may raise anything
            places = {each.file_name: each.place(each.solution_file) for each in course.stages}
            fault = located(error, places, sys.modules)
            raise CourseError(f"{fault}: fix the solution first") from None
        yield found


def local_solutions(course: Course, stage: Stage) -> Callable[[str], Any]:
    """The entry points of the solution of `stage`, in this process, by name. Raises CourseError."""
    with solution_at_hand(course, stage) as found:
        return found


class References:
    """Answers a worker's calls of earlier stages' functions, from a second worker of our own.

    The two workers do not trust each other: requests are relayed, and only the type and message of
    an error go back, so no line of a solution reaches the learner's process.
    """

    def __init__(self, interpreter: Interpreter, course: Course, stages: Sequence[Stage]) -> None:
        self._names = [entry.name for stage in stages for entry in stage.entry_points]
        lines = [
            f"from {stage.slug} import {entry.name}\n"
            for stage in stages
            for entry in stage.entry_points
        ]
        files = solution_files(course) | {f"{_MODULE}.py": "".join(lines).encode()}
        self._interpreter = interpreter.beside
        self._worker: Worker | None = None
        if not interpreter.forks:  # it may have to import torch, which takes longer than a call may
            self._worker = self._interpreter.start()
        self._is_loaded = False
        self._begins = True
        self._load = Frame(
            {
                "op": "load",
                "files": {name: data.decode("latin-1") for name, data in files.items()},
                "script": None,
                "cells": None,
                "module": _MODULE,
                "aliases": [],
                "names": self._names,
                "answered": {},
                "forbidden": [],
            }
        )

    def begin(self) -> None:
        """Forget the calls of the previous check."""
        self._begins = True

    def answer(self, question: Frame) -> Frame:
        """The reply to a worker's question. Raises WireError if it is not a valid question."""
        header = {key: question.header[key] for key in _QUESTION if key in question.header}
        target = header.get("target")
        name = target.get("function") if isinstance(target, dict) else None
        known = name in self._names
        header["target"] = {"function": name}  # drops the parts that only a check may send
        if header.get("op") != "backward" and not (header.get("op") == "call" and known):
            raise WireError("a worker may only ask for the functions of earlier stages")
        reply = self._exchange(Frame(header, question.data, {"begin": self._begins}))
        self._begins = False
        error = reply.header.get("error")
        if error is not None:
            return Frame({"error": {key: error.get(key) for key in ("type", "bases", "message")}})
        return reply

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.release()

    def _exchange(self, frame: Frame) -> Frame:
        """Send one request to the worker; if it does not answer, the next one gets a new worker."""
        deadline = time.monotonic() + _ANSWER_SECONDS
        try:
            if self._worker is None:
                self._worker, self._is_loaded = self._interpreter.start(), False
            if not self._is_loaded:
                self._worker.channel.send(self._load, deadline)
                self._worker.channel.receive(deadline)
                self._is_loaded = True
            self._worker.channel.send(frame, deadline)
            return self._worker.channel.receive(deadline)
        except (Closed, DeadlineError, WireError) as error:
            if self._worker is not None:
                self._worker.end(GRACE if isinstance(error, Closed) else 0.0)
                self._worker = None
            raise WireError("an earlier stage's function did not answer") from None
