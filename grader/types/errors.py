"""Errors that are told to a person in one line, without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class KitError(Exception):
    """What is wrong, where, and what to do. The command prints it and exits with 2."""


class CourseError(KitError):
    """course.toml or a file of the course is wrong: for the course's author."""


class SubmissionFileError(KitError):
    """The submission cannot be read at all: no such path, not a notebook, too large."""


class ProgressError(KitError):
    """What is remembered of a learner cannot be read or written."""


def close_to(word: str, known: Iterable[str]) -> str:
    """What of all that is `known` may have been meant, in brackets; "" if nothing comes close."""
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""
