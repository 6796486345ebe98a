"""The sources of a submission as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grader.types.course import Stage
from grader.types.submission import Submission


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


def definition(name: str) -> re.Pattern[str]:
    """What finds where a text defines a name, outside any function or class."""
    return re.compile(rf"^(async +def|def|class) +{name}\b|^{name} *[:=]", re.MULTILINE)


def defined_elsewhere(submission: Submission, stage: Stage, name: str) -> Iterator[tuple[str, str]]:
    """Names and texts of a folder's Python files, but the stage's own, that define a name."""
    for file, text in all_sources(submission) if submission.is_folder else ():
        is_other = file != stage.file_name and file.endswith(".py")
        if is_other and definition(name).search(text):
            yield file, text


def cell_name(number: int) -> str:
    """The name that `all_sources` gives a cell; the first cell has number 1."""
    return f"code cell {number}"


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
