"""The request to import a submission for a stage, and what the worker's reply means. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader.run.failures import AnswerError, LoadError, last_frame, strings, told
from grader.run.sources import defined_elsewhere, stage_sources, to_move
from grader.run.traceback_words import NO_MODULE
from grader.run.worker.loader import FOREIGN
from grader.run.worker.wire import Frame
from grader.types.course import Course, Stage
from grader.types.submission import IS_A_LINK, Submission
from grader.types.text import listed, safe

_FEW_NAMES = 3
_NOTEBOOK = "the notebook"
_NO_MODULE_NAMED = re.compile(r"No module named '(\w+)'$")
_RUNS = re.compile(r"^[ \t]*%run\b", re.MULTILINE)


@dataclass(frozen=True)
class Import:
    """The import of a submission for one stage.

    The course's own functions stand in for those of the `answered` stages. With `only_definitions`,
    only the definitions in the cells are run. An import `for_every_stage` serves later stages too.
    """

    course: Course
    stage: Stage
    submission: Submission
    answered: tuple[Stage, ...] = ()
    only_definitions: bool = False
    for_every_stage: bool = False

    def request(self) -> Frame:
        """The request to the worker. Raises LoadError if the stage's file is missing."""
        stage, submission = self.stage, self.submission
        if submission.is_folder and stage.file_name not in submission.files:
            raise LoadError(_missing_file(stage, submission))
        course, cells = self.course, submission.cells
        watched = course.stages if self.for_every_stage else (stage,)
        header = {
            "op": "load",
            "files": {name: data.decode("latin-1") for name, data in submission.files.items()},
            "script": submission.script,
            "cells": None if cells is None else list(cells),
            "only_definitions": self.only_definitions,
            "module": stage.slug,
            "aliases": [each.slug for each in course.stages],
            "names": [entry.name for each in course.stages for entry in each.entry_points],
            "answered": {earlier.slug: earlier.functions for earlier in self.answered},
            "forbidden": [name for each in watched for name in each.forbidden],
            "fixture": stage.fixture,
        }
        return Frame(header)

    def absent(self, reply: Mapping[str, Any]) -> dict[str, AnswerError]:
        """The entry points that are missing in a worker's reply, each with a message.

        Raises LoadError if nothing was imported.
        """
        stage, submission = self.stage, self.submission
        if "error" in reply:
            raise import_error(reply["error"], stage, submission)
        defined = strings(reply.get("defined"))
        return {
            entry.name: LoadError(missing_name(entry.name, reply, stage, submission))
            for entry in stage.entry_points
            if not entry.is_fixture and entry.name not in defined
        }


def import_error(error: Any, stage: Stage, submission: Submission) -> LoadError:
    """The message about an exception during the import, as the worker describes it."""
    error = error if isinstance(error, dict) else {}
    where, file = _where(stage, submission), str(last_frame(error).get("file", ""))
    is_circular = "partially initialized module" in str(error.get("message"))
    is_another = submission.is_folder and file != where and file in submission.files
    because = f" because of {safe(file)}" if is_another and not is_circular else ""
    said = told(error)
    missing = _NO_MODULE_NAMED.match(str(error.get("message")))
    own = [name.removesuffix(".py") for name in submission.files]
    close = difflib.get_close_matches(missing[1], own, n=1, cutoff=0.7) if missing else []
    if close:
        said = said.replace(NO_MODULE, f"\n  Your file is called {safe(close[0])}.py.")
    return LoadError(f"{_begins(where)} cannot be imported{because}. {said}")


def _where(stage: Stage, submission: Submission) -> str:
    """The name of the file or cells with the stage's code."""
    return stage.file_name if submission.is_folder else submission.script or _NOTEBOOK


def _begins(where: str) -> str:
    """`where` as a sentence begins with it."""
    return "The notebook" if where == _NOTEBOOK else where


def _missing_file(stage: Stage, submission: Submission) -> str:
    if stage.file_name in submission.links:
        return f"{stage.file_name} {IS_A_LINK}: submit the file itself"
    lower = {name.lower(): name for name in submission.files}
    wanted = stage.file_name.lower()
    close = difflib.get_close_matches(wanted, lower, n=1, cutoff=0.7)
    close = close or [name for name in lower if name.endswith(f"/{wanted}")]
    if close:
        hint = f"; did you name it {safe(lower[close[0]])}?"
    else:
        names = [entry.name for entry in stage.entry_points]
        found = ((name, _elsewhere(name, stage, submission)) for name in names)
        hint = next((f": {name}{where}" for name, where in found if where), "")
    return f"There is no file {stage.file_name}{hint}"


def _elsewhere(name: str, stage: Stage, submission: Submission) -> str:
    """Where another file defines the name; "" if none does."""
    for other, _ in defined_elsewhere(submission, stage, name):
        return f" is in {to_move(submission, stage, other)}"
    return ""


def missing_name(name: str, reply: Mapping[str, Any], stage: Stage, submission: Submission) -> str:
    """The message about an entry point that is not defined."""
    cells = reply.get("cells")
    cells = [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else []
    defines = re.compile(rf"\b(def|class) {name}\b|^[ \t]*{name} *[:=]", re.MULTILINE)
    defining = [cell for cell in cells if defines.search(str(cell.get("source")))]
    others = [other[:80] for other in strings(reply.get("others"))[:200]]
    close = difflib.get_close_matches(name, others, n=1, cutoff=0.7)
    ran = submission.cells or ("",)
    is_misspelled = close and re.search(rf"\b(def|class) {re.escape(close[0])}\b", ran[-1])
    # The learner is working on the cell that ran last, and its first error counts.
    if defining and not is_misspelled:
        last = defining[-1]
        file = last_frame(last).get("file")
        first = next(
            (each for each in defining if file and last_frame(each).get("file") == file), last
        )
        return f"{name} is not defined: a cell of the notebook fails. {told(first)}"
    where = _where(stage, submission)
    if name in others:
        replaced = _replaced(name, stage, submission)
        return f"{name} in {where} is neither a function nor a class{replaced}"
    hint = f"; it defines {safe(close[0])}: rename it" if close else ""
    hint = hint or _unreached(name, stage, submission)
    # In a kernel, the learner is working on the cell that ran last; in a file, the first may have
    # made the others fail.
    is_last = cells[-1:] and cells[-1].get("source") == ran[-1]
    blamed = cells[-1:] if is_last else cells[:1]
    fails = "".join(f"\n  And a cell of it fails: {told(cell)}" for cell in blamed)
    return f"{_begins(where)} does not define {name}{hint}{fails}"


# Without the name, because a pattern that may find it in many places reads a long line many times.
_GIVES = re.compile(r"^[ \t]*(\w+(?:, *\w+)*) *=(?!=)", re.MULTILINE)


def _replaced(name: str, stage: Stage, submission: Submission) -> str:
    """Which line sets the name to a value; "" if none is found."""
    for file, text in stage_sources(submission, stage):
        found = [each for each in _GIVES.finditer(text) if name in re.findall(r"\w+", each[1])]
        if found:
            line = text.count("\n", 0, found[-1].start()) + 1
            code = safe(text.split("\n")[line - 1].strip()[:200])
            return f": this line sets it\n  {safe(file)}, line {line}\n    {code}"
    return ""


def _unreached(name: str, stage: Stage, submission: Submission) -> str:
    """Why the text does not define the name, or what to do."""
    defines = re.compile(rf"^([ \t]*)(def|class) {name}\b", re.MULTILINE)
    deletes = re.compile(rf"^[ \t]*del\b[^#\n]*\b{name}\b", re.MULTILINE)
    text = submission.files.get(submission.script or stage.file_name, b"")
    codes = submission.cells or (text.decode("utf-8", "replace"),)
    for code in codes:
        found = defines.search(code)
        magic = FOREIGN.match(code)
        if found and magic:
            return f": a cell that begins with %%{magic[1][:20]} is not run; delete that line"
        if found and found[1]:
            return ": it is inside a class, a function or a block; move it to the left edge"
    if any(map(deletes.search, codes)):
        return ": `del` deletes it; remove that line"
    if any(_RUNS.search(code) for code in submission.cells or ()):
        return ": %run has no file to run here; put the file's code into a cell"
    elsewhere = _elsewhere(name, stage, submission)
    if elsewhere:
        return f": it{elsewhere}"
    entries = [entry.name for entry in stage.entry_points]
    own = re.findall(r"^(?:def|class) (\w+)", text.decode("utf-8", "replace"), re.MULTILINE)
    others = [each for each in own if each not in entries]
    if 0 < len(others) <= _FEW_NAMES:
        return f"; it defines {listed(others)}"
    is_empty = not any(code.strip("\ufeff \t\r\n") for code in codes)
    return ": nothing is in it; did you save it?" if is_empty else ": define it as the stub does"
