"""What is wrong with an author's own file, in a line: where, and what."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from grader.types.errors import CourseError, close_to

_NOT_THERE = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")


def author_text(file: Path, place: str) -> str:
    """The text of an author's file, which an error calls `place`. Raises CourseError."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CourseError(f"{place}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CourseError(f"{place}: is not UTF-8: have your editor save it so") from None


def fault_of(error: BaseException, places: Mapping[str, str]) -> str:
    """An error of an author's file in a line: where, and what.

    `places` says how to call a file, by the name that the interpreter has for it; the last of them
    that the error went through is named.
    """
    place, said = "", str(error)
    traceback = error.__traceback__
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if name in places:
            place = f"{places[name]}:{traceback.tb_lineno}: "
        traceback = traceback.tb_next
    if isinstance(error, SyntaxError) and error.filename is not None and error.filename in places:
        place, said = f"{places[error.filename]}:{error.lineno}: ", error.msg
    first = said.strip().partition("\n")[0]
    unmet = _NOT_THERE.match(first)
    if unmet:  # Python's own advice, from 3.12 on, says the same; its path says nothing
        first = unmet[0] + close_to(unmet[1], dir(sys.modules.get(unmet[2])))
    return f"{place}{type(error).__name__}{': ' if first else ''}{first}"


def undefined(error: AttributeError) -> str:
    """What is said of an entry point that an author's file does not define."""
    close = close_to(str(error.name), dir(error.obj))
    return f"defines no '{error.name}', which course.toml names{close}"
