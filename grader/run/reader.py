"""Has a worker examine a submission's source: see grader.run.worker.reading."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from grader.run.budget import Budget
from grader.run.cells import Names
from grader.run.facts import ForbiddenCall
from grader.run.sources import all_sources, imported_sources, stage_sources
from grader.run.traceback_words import frames_told
from grader.run.worker.reading import look
from grader.run.worker.wire import Closed, DeadlineError, Frame, WireError
from grader.run.workers import Interpreter, Worker
from grader.types.course import Course, Stage
from grader.types.submission import Submission
from grader.types.text import safe

_TRIES = 2  # workers that may end over one request
_SECONDS = 3.0  # for one look


@cache
def sent_along(package: str, names: tuple[str, ...]) -> dict[str, str]:
    """The text of modules of a package, by their full names, for a worker that needs them seldom.

    Each comes after those that it imports, first the packages around them, which are empty.
    """
    around = itertools.accumulate(package.split("."), "{}.{}".format)
    folder = resources.files(package)
    return dict.fromkeys(around, "") | {
        f"{package}.{name}": (folder / f"{name}.py").read_text(encoding="utf-8") for name in names
    }


class Reader:
    """A worker that never runs a submission's code, so it can serve one submission after the other.

    Without an `interpreter`, and on systems without fork, this process examines the source itself.
    """

    def __init__(self, interpreter: Interpreter | None) -> None:
        self._interpreter = interpreter if interpreter and interpreter.forks else None
        self._worker: Worker | None = None

    def close(self) -> None:
        """End the worker."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()

    def ask(self, about: dict[str, Any], seconds: float = _SECONDS) -> Any:
        """What `look` finds; None if it takes longer than `seconds`."""
        if self._interpreter is None:
            return look(about)
        for _ in range(_TRIES):
            worker = self._worker = self._worker or self._interpreter.start()
            deadline = time.monotonic() + seconds
            try:
                worker.channel.send(Frame({"op": "look", **about}), deadline)
                return worker.channel.receive(deadline).header.get("found")
            except DeadlineError:
                self.close()
                return None
            except (Closed, WireError):
                self.close()  # an earlier request may have ended it, or the system: try again
        return None


class SourceReader:
    """Examines the source of one submission while its budget lasts.

    After one look times out, no other look starts. `unsearched` are the slugs of stages whose
    source takes too long to search for forbidden calls.
    """

    def __init__(
        self, reader: Reader, submission: Submission, budget: Budget | None = None
    ) -> None:
        self._budget = budget or Budget()
        self._reader = reader
        self._submission = submission
        self._known: dict[tuple[str, str], Any] = {}
        self._is_hopeless = False
        self.unsearched: set[str] = set()

    def place(self, stage: Stage, target: str) -> str:
        """The lines of the body of `target`, a function or "Class.method", in words; "" if unknown.

        It quotes a body of a few lines, and the lines that return of a longer one.
        """
        found = self.look(
            "place",
            f"{stage.slug} {target}",
            {
                "sources": list(stage_sources(self._submission, stage)),
                "target": target,
                "is_notebook": self._submission.cells is not None,
            },
        )
        return safe(found) if isinstance(found, str) else ""

    def calls(self, course: Course, stage: Stage) -> tuple[ForbiddenCall, ...]:
        """The calls of forbidden names that the stage's functions may reach."""
        if not stage.forbidden:
            return ()
        submission = self._submission
        # A notebook's cells all run; a file that nothing imports does not.
        is_notebook = submission.cells is not None
        sources = all_sources(submission) if is_notebook else imported_sources(submission, stage)
        about = {
            "sources": list(sources),
            "own": [entry.name for entry in stage.entry_points],
            "others": [
                entry.name
                for other in course.stages
                for entry in other.entry_points
                if other.slug != stage.slug
            ],
            "forbidden": list(stage.forbidden),
            "is_notebook": is_notebook,
        }
        found = self.look("calls", stage.slug, about)
        if found is None and not self._budget.is_spent:
            self.unsearched.add(stage.slug)
        return tuple(ForbiddenCall(call["name"], frames_told(call)) for call in found or ())

    def names(self, cells: Sequence[str]) -> list[Names] | None:
        """The names in each cell, None if they cannot be determined."""
        found = self.look("names", "", {"cells": list(cells)})
        return None if found is None else [Names(*map(frozenset, names)) for names in found]

    def look(self, what: str, key: str, about: dict[str, Any]) -> Any:
        """What `look` finds in the sources; with the same `key`, only the first time."""
        if (what, key) not in self._known:
            self._is_hopeless |= self._budget.is_spent
            seconds = min(_SECONDS, self._budget.left)
            ask = self._reader.ask
            found = None if self._is_hopeless else ask({"what": what, **about}, seconds)
            self._is_hopeless |= found is None
            self._known[what, key] = found
        return self._known[what, key]
