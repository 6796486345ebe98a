"""The course's own solutions: as a submission, in this process, or behind a worker's questions."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from grader.run.worker.loader import Loader
from grader.run.worker.wire import Closed, DeadlineError, Frame, WireError
from grader.run.workers import Interpreter, Worker
from grader.types.course import Course, Stage
from grader.types.errors import CourseError

_MODULE = "references"
_ANSWER_SECONDS = 2.0
# What a worker may say in a question; other parts of a request are for the checks alone.
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

    For a fixture's it is the module with the tests. Within the block the code may import the other
    files too. Raises whatever their import does.
    """
    loader = Loader(files, {})
    loader.install()
    try:
        module = importlib.import_module(stage.slug)
        yield lambda name: module if name == stage.fixture else getattr(module, name)
    finally:
        loader.remove()


def local_solutions(course: Course, stage: Stage) -> Callable[[str], Any]:
    """The solution's entry points of `stage`, in this process, by name; see `at_hand`."""
    with at_hand(solution_files(course), stage) as found:
        return found


class References:
    """Answers the functions of earlier stages for a worker, from a second worker of our own.

    The two workers are strangers: requests are relayed, and of an error only its type and message
    go back, so that no line of a solution reaches the learner's process.
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
        if not interpreter.forks:  # it may have to import torch, for which no call has the time
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
        """Forget the calls of the check before."""
        self._begins = True

    def answer(self, question: Frame) -> Frame:
        """The reply to a worker's question. Raises WireError for what is no question."""
        header = {key: question.header[key] for key in _QUESTION if key in question.header}
        target = header.get("target")
        name = target.get("function") if isinstance(target, dict) else None
        known = name in self._names
        header["target"] = {"function": name}  # and nothing that only a check may ask
        if header.get("op") != "backward" and not (header.get("op") == "call" and known):
            raise WireError("a worker may only ask for the functions of earlier stages")
        reply = self._exchange(Frame({**header, "begin": self._begins}, question.data))
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
        """One request to the worker; if it does not answer, the next one gets another worker."""
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
        except (Closed, DeadlineError, WireError):
            if self._worker is not None:
                self._worker.end()
                self._worker = None
            raise WireError("an earlier stage's function does not answer to that") from None
