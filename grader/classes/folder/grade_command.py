"""Grades a folder of submissions, or regrades what may get another verdict."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from grader.classes.alone import alone
from grader.classes.folder.cluster import graded_on_cluster
from grader.classes.folder.grading import FolderClass, Grader, differences, graded_here
from grader.classes.folder.ledger import open_ledger
from grader.classes.folder.results import write_lessons, write_results
from grader.classes.folder.screen import class_summary, differences_screen
from grader.classes.folder.settings import (
    SEED,
    SKIPPED,
    assignment_of,
    expect_assignment,
    keep_limit,
    limited,
)
from grader.classes.folder.students import read_students
from grader.classes.folder.times import read_times
from grader.classes.folder.unexplained import look_for_examples
from grader.classes.folder.versions import read_version
from grader.classes.grading import with_locked_engine
from grader.classes.progress_bar import progress_bar
from grader.command.grade import lanes
from grader.command.output import complain, console, short_path
from grader.engine import Engine
from grader.read.course_file import find_assignment
from grader.types.course import Assignment, Course
from grader.types.errors import KitError
from grader.types.seed import fresh_seed
from grader.types.text import listed, safe_line

_NAMED = 5  # students to name in one sentence


def grade(args: argparse.Namespace, course: Course) -> int:
    """Grade the new submissions in a folder."""
    if args.what is None:
        raise KitError("name the folder with the submissions: `grade class SUBMISSIONS --out DIR`")
    if Path(args.what).resolve() in (args.out.resolve(), *args.out.resolve().parents):
        raise KitError(
            f"--out {args.out}: is inside {args.what}, where it would count as a student: choose "
            "another folder"
        )
    assignment = find_assignment(course, args.assignment)
    times = None if args.times is None else read_times(args.times, course.zone, assignment.name)
    if args.since is not None:
        with open_ledger(args.since, create=False):  # finds a wrong folder before the work
            pass
    students, odd = read_students(Path(args.what), assignment, times)
    with open_ledger(args.out, create=True, course=course) as ledger, alone(args.out):
        expect_assignment(course, ledger, assignment, args.out)
        gone = sorted({*ledger.students()} - {one.student for one in students})
        if gone:
            names = listed([safe_line(name) for name in gone], most=_NAMED)
            odd.append(f"Not in {args.what}, with the verdict from before: {names}.")
        kept = ledger.fact(SEED)
        seed = args.seed if args.seed is not None else int(kept or fresh_seed())
        ledger.note(SEED, str(seed))
        ledger.note(SKIPPED, json.dumps(odd))
        keep_limit(args, ledger)
        course = limited(args, course, ledger)
        version = read_version(course)
        work = FolderClass(course, assignment, version, ledger)
        new = 0
        with progress_bar(args, assignment.name, len(students)) as advance:

            def tell(is_new: bool) -> None:
                nonlocal new
                new += is_new
                advance()

            _with_grader(
                args,
                course,
                assignment,
                seed,
                lambda grader: work.grade(students, seed, grader, tell),
                lambda engine: look_for_examples(engine, ledger, course, version),
            )
        files = write_results(args, ledger, course, assignment)
        if args.for_author:
            files += write_lessons(args, ledger, course, students)
        older = sum(1 for _ in work.affected())
        results = short_path(args.out), files, course.limits
        summary = class_summary(assignment, ledger.latest(), new, older, odd, *results)
        console(args).print(summary, end="")
        return 1 if any(entry.is_lost for entry in ledger.latest()) else 0


def regrade(args: argparse.Namespace, course: Course) -> int:
    """Regrade what may get another verdict, show the differences, and ask."""
    with open_ledger(args.out, create=False, course=course) as ledger, alone(args.out):
        assignment = assignment_of(args, course, ledger)
        course = limited(args, course, ledger)
        work = FolderClass(course, assignment, read_version(course), ledger)
        affected = sum(1 for _ in work.affected())
        if affected and not (args.yes or sys.stdin.isatty()):
            complain(
                "--regrade: there is no terminal to ask on, so the differences are only shown; "
                "to accept them, add --yes"
            )
        if affected:
            with progress_bar(args, assignment.name, affected) as advance:
                _with_grader(
                    args,
                    course,
                    assignment,
                    0,
                    lambda grader: work.regrade(grader, lambda is_new: advance()),
                )
        found = list(differences(ledger))
        console(args).print(differences_screen(affected, found), end="")
        if not affected:
            return 0
        if found and not (args.yes or _agreed()):
            ledger.forget_proposed()
            print("Not accepted: the results stay as they were.")
            return 1
        ledger.accept()
        keep_limit(args, ledger)
        write_results(args, ledger, course, assignment)
        if found:
            print(f"Written. {short_path(args.out)} also keeps the earlier verdicts.")
        return 0


def _with_grader(
    args: argparse.Namespace,
    course: Course,
    assignment: Assignment,
    seed: int,
    body: Callable[[Grader], None],
    after: Callable[[Engine], None] = lambda engine: None,
) -> None:
    """Run `body` with a grader: this machine, or the cluster of --dask.

    `after` runs on this machine only, when `body` has ended.
    """
    stages = assignment.stages
    if args.dask is not None:
        cluster = partial(graded_on_cluster, unlocked=args.unlocked)
        body(lambda jobs: cluster(args.dask, course, stages, args.device, jobs))
        return
    at_once = lanes(args.jobs)

    def run_here(engine: Engine) -> None:
        body(lambda jobs: graded_here(engine, jobs, stages, seed, at_once))
        after(engine)

    with_locked_engine(course, stages, args.device, run_here, unlocked=args.unlocked)


def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return input("Accept these points? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
