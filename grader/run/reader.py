"""Has a worker examine a submission's source: see grader.run.worker.reading."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from grader.run.budget import Budget
from grader.run.cells import Names
from grader.run.facts import ForbiddenCall
from grader.run.frames import frames_told
from grader.run.sources import all_sources, cell_name, stage_sources
from grader.run.worker.reading import look
from grader.run.worker.wire import Closed, DeadlineError, Frame, WireError
from grader.run.workers import Interpreter, Worker
from grader.types.course import Course, Stage
from grader.types.submission import Submission
from grader.types.text import safe

_TRIES = 2  # workers that may end over one request
_SECONDS = 3.0  # for one look
_ANOTHER_ENCODING = re.compile(rb"(?i)coding[:=](?![ \t]*utf-8(?![\w.-]))")


@dataclass(frozen=True)
class Same:
    """A stage's code: the `digest` of what it does, and the names of the `sources` that hold it.

    `lazy_from` is the first cell that imports annotations from __future__, for itself and the cells
    after it.
    """

    digest: str
    sources: frozenset[str]
    lazy_from: str | None

    def alone(self, submission: Submission) -> Submission:
        """The submission without its other sources."""
        if submission.cells is None:
            files = {name: data for name, data in submission.files.items() if name in self.sources}
            return replace(submission, files=files)

        def kept(name: str, cell: str) -> str:
            if name in self.sources:
                return cell
            return "from __future__ import annotations" if name == self.lazy_from else ""

        numbered = enumerate(submission.cells, start=1)
        return replace(submission, cells=tuple(kept(cell_name(n), cell) for n, cell in numbered))


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

    After one look times out, no other look starts.
    """

    def __init__(
        self, reader: Reader, submission: Submission, budget: Budget | None = None
    ) -> None:
        self._budget = budget or Budget()
        self._reader = reader
        self._submission = submission
        self._known: dict[tuple[str, str], Any] = {}
        self._is_hopeless = False

    def place(self, stage: Stage, target: str) -> str:
        """The lines of the body of `target`, a function or "Class.method", in words; "" if unknown.

        It quotes a body of a few lines, and the lines that return of a longer one.
        """
        found = self._look(
            "place",
            f"{stage.slug} {target}",
            {"sources": list(stage_sources(self._submission, stage)), "target": target},
        )
        return safe(found) if isinstance(found, str) else ""

    def calls(self, course: Course, stage: Stage) -> tuple[ForbiddenCall, ...]:
        """The calls of forbidden names that the stage's functions may reach."""
        if not stage.forbidden:
            return ()
        about = {
            "sources": list(all_sources(self._submission)),
            "own": [entry.name for entry in stage.entry_points],
            "others": [
                entry.name
                for other in course.stages
                for entry in other.entry_points
                if other.slug != stage.slug
            ],
            "forbidden": list(stage.forbidden),
            "is_notebook": self._submission.cells is not None,
        }
        found = self._look("calls", stage.slug, about)
        return tuple(ForbiddenCall(call["name"], frames_told(call)) for call in found or ())

    def same(self, course: Course, stages: Sequence[Stage]) -> dict[str, Same]:
        """The code of each stage that no other code can affect, by slug."""
        submission = self._submission
        files = {name: data for name, data in submission.files.items() if name.endswith(".py")}
        if not all(map(_is_read_alike, files.values())):
            return {}
        kind = "files" if submission.is_folder else "script" if submission.script else "cells"
        about = {
            "sources": list(all_sources(replace(submission, files=files))),
            "kind": kind,
            "modules": list(course.preload),
            "stages": {
                stage.slug: {
                    "names": [entry.name for entry in stage.entry_points],
                    "file": self._submission.script or stage.file_name,
                    "forbidden": list(stage.forbidden),
                }
                for stage in stages
                if not stage.fixture
            },
        }
        found = self._look("same", "", about) or {}
        return {
            slug: Same(digest, frozenset(names), lazy_from)
            for slug, (digest, names, lazy_from) in found.items()
        }

    def names(self, cells: Sequence[str]) -> list[Names] | None:
        """The names in each cell, None if they cannot be determined."""
        found = self._look("names", "", {"cells": list(cells)})
        return None if found is None else [Names(*map(frozenset, names)) for names in found]

    def _look(self, what: str, key: str, about: dict[str, Any]) -> Any:
        if (what, key) not in self._known:
            self._is_hopeless |= self._budget.is_spent
            seconds = min(_SECONDS, self._budget.left)
            ask = self._reader.ask
            found = None if self._is_hopeless else ask({"what": what, **about}, seconds)
            self._is_hopeless |= found is None
            self._known[what, key] = found
        return self._known[what, key]


def _is_read_alike(data: bytes) -> bool:
    """Whether Python reads a file in UTF-8, as grader.run.sources does.

    In another encoding a comment may hold code.
    """
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not _ANOTHER_ENCODING.search(b"\n".join(data.splitlines()[:2]))
