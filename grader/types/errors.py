"""Errors that people see as one line, without a traceback."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_NOT_THERE = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")


class KitError(Exception):
    """What is wrong, where, and what to do. The command prints it and exits with 2."""


class CourseError(KitError):
    """course.toml or a file of the course is wrong: for the course's author."""


class SubmissionFileError(KitError):
    """The submission cannot be graded: a link, not a notebook, too large. It gets no points."""


class NoSubmissionError(SubmissionFileError):
    """There is no submission at the path, so the person has to type another one."""


class ProgressError(KitError):
    """The learner's progress cannot be read or written."""


def close_to(word: str, known: Iterable[str]) -> str:
    """A suggestion in brackets: the known word closest to `word`; "" if none is close."""
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def located(error: BaseException, places: Mapping[str, str], modules: Mapping[str, object]) -> str:
    """An error in an author's file as one line: place and fault.

    `places` maps the interpreter's names of files to names for people; the message names the last
    of these files in the traceback. `modules` are those that are imported, by name.
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
        first = unmet[0] + close_to(unmet[1], dir(modules.get(unmet[2])))
    return f"{place}{type(error).__name__}{': ' if first else ''}{first}"


def no_library(name: str, why: object) -> CourseError:
    """The CourseError for a library of `preload` that cannot be imported."""
    return CourseError(
        f"course.toml: preload: '{name}' cannot be imported: {why}: correct the name, or install it"
    )


def unwritable(error: OSError, place: Path | str) -> KitError:
    """The KitError for a file that cannot be written; `place` is its name if the error has none."""
    return KitError(f"{error.filename or place}: cannot be written: {error.strerror}")


@contextmanager
def writing(place: Path | str) -> Iterator[None]:
    """A block that writes files; an OSError in it becomes `unwritable`."""
    try:
        yield
    except OSError as error:
        raise unwritable(error, place) from None
