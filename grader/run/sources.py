"""The sources of a submission as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grader.types.course import Stage
from grader.types.submission import EXERCISES, Submission
from grader.types.text import imported_modules, safe_line

_MOST_LIBRARIES = 200


def stage_sources(submission: Submission, stage: Stage) -> Iterator[tuple[str, str]]:
    """Names and texts of the sources that may define a stage; among cells the last one wins."""
    if submission.cells is not None:
        numbered = list(enumerate(submission.cells, start=1))
        for number, cell in reversed(numbered):
            lines = cell.split("\n")
            if lines[0].lstrip().startswith("%%"):
                lines[0] = ""
            yield cell_name(number), "\n".join(lines)
        return
    name = submission.script or stage.file_name
    yield name, _text(submission.files.get(name, b""))


def all_sources(submission: Submission) -> Iterator[tuple[str, str]]:
    """Names and texts of all sources; a cell starts with its first line as typed."""
    if submission.cells is not None:
        for number, cell in enumerate(submission.cells, start=1):
            yield cell_name(number), cell
        return
    for name, data in submission.files.items():
        yield name, _text(data)


def imported_sources(submission: Submission, stage: Stage) -> Iterator[tuple[str, str]]:
    """Names and texts of the sources of a stage, and of the submission's files that they import."""
    return ((name, text) for name, text, _ in _with_imports(submission, stage))


def libraries(submission: Submission, stage: Stage) -> list[str]:
    """The full names of the modules that a stage's code may import, except the submission's."""
    own = set(map(_module, submission.files))
    found = dict.fromkeys(each for *_, named in _with_imports(submission, stage) for each in named)
    return [name for name in found if name.partition(".")[0] not in own][:_MOST_LIBRARIES]


def _with_imports(submission: Submission, stage: Stage) -> Iterator[tuple[str, str, list[str]]]:
    """Those of `imported_sources`, each with the names of the modules that it imports."""
    unread: dict[str, list[tuple[str, str]]] = {}
    for name, data in submission.files.items():
        unread.setdefault(_module(name), []).append((name, _text(data)))
    unread.pop(_module(submission.script or stage.file_name), None)
    pending = list(stage_sources(submission, stage))
    for name, text in pending:  # each name is looked at once: a student may write a million
        named = imported_modules(text)
        yield name, text, named
        for each in named:
            pending += unread.pop(each.partition(".")[0], [])


def _module(file: str) -> str:
    """The name of the module, or of the package, that a file is in."""
    return file.partition("/")[0].removesuffix(".py")


def definition(name: str) -> re.Pattern[str]:
    """What finds where a text defines a name, outside any function or class; None is no answer."""
    return re.compile(rf"^(async +def|def|class) +{name}\b|^{name} *[:=](?! *None\b)", re.MULTILINE)


def defined_elsewhere(submission: Submission, stage: Stage, name: str) -> Iterator[tuple[str, str]]:
    """Names and texts of the files, but the stage's own, in or near a folder that define a name."""
    if not submission.is_folder:
        return
    others = [each for each in all_sources(submission) if each[0] != stage.file_name]
    others = [(file, text) for file, text in others if file.endswith(".py")]
    for file, text in [*others, *((file, _text(data)) for file, data in submission.near.items())]:
        if definition(name).search(text):
            yield file, text


def to_move(submission: Submission, stage: Stage, file: str) -> str:
    """Where something was found, `file` of a folder or near it, and where to move it."""
    if file in submission.near:
        return f"{safe_line(file)}, outside {EXERCISES}; move it to {EXERCISES}/{stage.file_name}"
    return f"{safe_line(file)}; move it to {stage.file_name}"


def cell_name(number: int) -> str:
    """The name that `all_sources` gives a cell; the first cell has number 1."""
    return f"code cell {number}"


def _text(data: bytes) -> str:
    text = data.decode("utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")  # as Python reads it
