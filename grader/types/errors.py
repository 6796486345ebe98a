"""Errors that people see as one line, without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


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
