"""One-line messages about faults in an author's files: place and fault."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from grader.types.course import Course
from grader.types.errors import CourseError, close_to

_NOT_THERE = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")


def author_text(file: Path, place: str) -> str:
    """The text of an author's file, called `place` in errors. Raises CourseError."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CourseError(f"{place}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CourseError(f"{place}: is not UTF-8: save it as UTF-8") from None


def fault_of(error: BaseException, places: Mapping[str, str]) -> str:
    """An error in an author's file as one line: place and fault.

    `places` maps the interpreter's names of files to names for people; the message names the last
    of these files in the traceback.
    """
    place, words = "", str(error)
    traceback = error.__traceback__
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if name in places:
            place = f"{places[name]}:{traceback.tb_lineno}: "
        traceback = traceback.tb_next
    if isinstance(error, SyntaxError) and error.filename is not None and error.filename in places:
        place, words = f"{places[error.filename]}:{error.lineno}: ", error.msg
    first = words.strip().partition("\n")[0]
    unmet = _NOT_THERE.match(first)
    if unmet:  # replaces Python's own advice, which is there from 3.12 on, and its path
        first = unmet[0] + close_to(unmet[1], dir(sys.modules.get(unmet[2])))
    return f"{place}{type(error).__name__}{': ' if first else ''}{first}"


def undefined(error: AttributeError) -> str:
    """The message for an entry point that an author's file does not define."""
    close = close_to(str(error.name), dir(error.obj))
    return f"does not define '{error.name}', which course.toml names{close}"


def course_text(course: Course, file: Path) -> str:
    """The text of a course's file. Raises CourseError with the file's path in the course."""
    return author_text(file, course_place(course, file))


def course_place(course: Course, file: Path) -> str:
    """A file's path in the course; its whole path if it is elsewhere."""
    is_inside = file.is_relative_to(course.root)
    return (file.relative_to(course.root) if is_inside else file).as_posix()
