"""Which hints students opened: their workspaces' progress, where they submitted that too.

A student can write anything into that file, so it decides no points, and only numbers are taken.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from grader.classes.folder.students import Found
from grader.classes.folder.types import LedgerEntry
from grader.classes.for_author.types import HintUse
from grader.classes.report.teach import Hints, heading
from grader.read.progress import memory_folder, parse_progress, progress_file
from grader.read.submission import regular_bytes
from grader.types.course import Course
from grader.types.errors import SubmissionFileError
from grader.types.progress import Progress
from grader.types.report import Status

_LARGEST = 1 << 20  # bytes
_FOLDERS = 50  # of one student


def read_progresses(students: Iterable[Found]) -> dict[str, Progress]:
    """The progress of each student whose submission has one, by student. Never raises."""
    found = {student.student: _progress(student.path) for student in students}
    return {student: progress for student, progress in found.items() if progress is not None}


def _progress(folder: Path) -> Progress | None:
    """The progress in a submitted workspace, or in one a level below."""
    for root in _roots(folder):
        try:
            if not os.path.islink(memory_folder(root)):
                return parse_progress(json.loads(regular_bytes(progress_file(root), _LARGEST)))
        except (SubmissionFileError, ValueError, RecursionError):
            continue
    return None


def _roots(folder: Path) -> Iterator[Path]:
    if not os.path.isdir(folder) or os.path.islink(folder):
        return
    yield folder
    try:
        inner = sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError:
        return
    yield from inner[:_FOLDERS]


def hint_use(
    course: Course, entries: Iterable[LedgerEntry], progresses: dict[str, Progress], headings: Hints
) -> tuple[HintUse, ...]:
    """The hints after which somebody still fails the stage, those that helped least first.

    `headings` are those of each stage's hints. Only the highest hint that a student opened
    is known.
    """
    passed: Counter[tuple[str, int]] = Counter()
    failed: Counter[tuple[str, int]] = Counter()
    for entry in entries:
        progress = progresses.get(entry.student)
        if progress is None or entry.report is None:
            continue
        for old, new in course.renamed.items():
            progress = progress.renamed(old, new)
        for stage in entry.report.stages:
            number = progress.stage(stage.slug).rungs
            if number and stage.caused_by is None:
                counts = {Status.PASSED: passed, Status.FAILED: failed}.get(stage.status)
                if counts is not None:
                    counts[stage.slug, number] += 1
    order = sorted(
        failed, key=lambda key: (-failed[key] / (failed[key] + passed[key]), -failed[key])
    )
    return tuple(
        HintUse(slug, number, heading(headings, slug, number), passed[slug, number], many)
        for slug, number in order
        for many in [failed[slug, number]]
    )
