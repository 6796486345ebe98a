"""What the results of a class keep of the commands that made them."""

from __future__ import annotations

import argparse
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from grader.classes.folder.ledger import FILE, Ledger, open_ledger
from grader.classes.nbgrader.course import configured_course
from grader.command.output import complain
from grader.read.course_file import FILE_NAME, assignment_named, find_assignment
from grader.read.workspace import (
    installed_course,
    is_installed,
    is_workspace,
    locate_whole_course,
    nearest_root,
)
from grader.types.course import Assignment, Course
from grader.types.errors import KitError

# The names of its facts in the ledger.
SEED, SECONDS = "seed", "seconds per submission"
COURSE, PLACE, ASSIGNMENT = "course", "course's folder", "assignment"
SKIPPED = "skipped"


def course_of(args: argparse.Namespace) -> Course:
    """The course of --course, else the one that has graded the results in --out. Raises KitError.

    Without results it is the course of the nbgrader course whose submissions are named. If that is
    unknown or no longer there, it is found as for every command.
    """
    if args.course is not None:
        return locate_whole_course(args.course)
    place, of = _graded_with(args.out), f"has graded {args.out}"
    if place is None and args.what is not None and args.why is None:
        place, of = configured_course(Path(args.what).resolve().parent), f"is that of {args.what}"
    if place is None:
        return locate_whole_course(None)
    here = nearest_root(Path.cwd())
    if here is not None and not here.samefile(place) and not is_workspace(here):
        complain(
            f"the course in {place} {of}, so it is used and not the one in this folder; to use "
            "another, add --course"
        )
    return locate_whole_course(place)


def _graded_with(out: Path) -> Path | None:
    """The folder of the course that has graded the results in `out`; None if it is not there.

    An installed course is found by its name, because its folder may be that of an older version.
    """
    if not (out / FILE).is_file():
        return None
    with open_ledger(out, create=False) as ledger:
        place, name = ledger.fact(PLACE), ledger.fact(COURSE)
    if place is None or name is None:
        return None
    with suppress(KitError, ValueError):
        place = json.loads(place)
        root = Path(place) if place else installed_course(name).root
        if (root / FILE_NAME).is_file():
            return root
        complain(f"{out}: the course that graded it is no longer in {root}: name it with --course")
    return None


def expect_assignment(course: Course, ledger: Ledger, assignment: Assignment, out: Path) -> None:
    """Note the assignment of these results. Raises KitError if they are of another one."""
    expect_course(course, ledger, out)
    before = ledger.fact(ASSIGNMENT) or ""
    if before != assignment.name and assignment_named(course, before):
        raise KitError(
            f"{out}: has the results of '{before}': choose another --out for '{assignment.name}'"
        )
    ledger.note(COURSE, course.name)
    place = "" if is_installed(course) else str(course.root)
    ledger.note(PLACE, json.dumps(place))  # a path need not be text that SQLite stores
    ledger.note(ASSIGNMENT, assignment.name)


def expect_course(course: Course, ledger: Ledger, out: Path) -> None:
    """Raise KitError if the results are of another course."""
    before = ledger.fact(COURSE)
    if before not in (None, course.name):
        raise KitError(
            f"{out}: has the results of the course '{before}': choose another --out for "
            f"'{course.name}', or another --course"
        )


def assignment_of(args: argparse.Namespace, course: Course, ledger: Ledger) -> Assignment:
    """The assignment that was asked for, or else that of the results. Raises KitError."""
    expect_course(course, ledger, args.out)
    kept = ledger.fact(ASSIGNMENT) or ""
    known = kept if assignment_named(course, kept) else None
    return find_assignment(course, args.assignment or known)


def limited(args: argparse.Namespace, course: Course, ledger: Ledger | None = None) -> Course:
    """The course with --seconds-per-submission, or with that of the results if they keep one."""
    kept = None if ledger is None else ledger.fact(SECONDS)
    seconds = args.seconds_per_submission or (kept and float(kept))
    if not seconds:
        return course
    return replace(course, limits=replace(course.limits, submission_seconds=seconds))


def keep_limit(args: argparse.Namespace, ledger: Ledger) -> None:
    """Note --seconds-per-submission with the results, for every later run."""
    if args.seconds_per_submission:
        ledger.note(SECONDS, str(args.seconds_per_submission))
