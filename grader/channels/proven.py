"""Remembers in `.grade/proven` that `grade verify` has proven the course as its files are now."""

from __future__ import annotations

from contextlib import suppress

from grader.read.dependencies import proof_digest
from grader.read.files import write_whole
from grader.read.progress import make_memory_folder, memory_folder
from grader.read.workspace import is_installed, is_packaged
from grader.types.course import Course

_FILE = "proven"


def remember_proven(course: Course) -> None:
    """Note that the whole course is proven. An installed course keeps no note."""
    if is_packaged(course):
        return
    with suppress(OSError):
        write_whole(make_memory_folder(course.root) / _FILE, proof_digest(course))


def is_proven(course: Course) -> bool:
    """Whether the course is as it was when it was proven.

    An installed course was proven before it was published, so it needs a note only to be doubted.
    """
    try:
        noted = (memory_folder(course.root) / _FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return is_installed(course)
    return noted == proof_digest(course)
