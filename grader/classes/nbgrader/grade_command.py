"""Grades an assignment of an nbgrader course."""

from __future__ import annotations

import argparse

from grader.classes.alone import alone
from grader.classes.folder.settings import limited
from grader.classes.grading import with_locked_engine
from grader.classes.nbgrader.gradebook import keep_seed
from grader.classes.nbgrader.grading import NbgraderClass
from grader.classes.nbgrader.screen import summary
from grader.classes.nbgrader.types import Graded
from grader.classes.progress_bar import progress_bar
from grader.command.grade import lanes
from grader.command.output import console
from grader.types.course import Course
from grader.types.errors import KitError


def grade(args: argparse.Namespace, course: Course) -> int:
    """Grade, print notes and a summary; 0 unless a person has to look at something."""
    if args.what is None:
        raise KitError("name the assignment: `grade class --nbgrader DIR ASSIGNMENT`")
    course = limited(args, course)
    work = NbgraderClass(args.nbgrader.resolve(), args.what, course)
    students = work.students(force=args.force)
    seed = keep_seed(args.nbgrader.resolve(), args.what, args.seed)
    results: list[Graded] = []
    if students:
        with progress_bar(args, work.assignment, len(students)) as advance, alone(work.memory):

            def tell(result: Graded) -> None:
                results.append(result)
                advance()

            with_locked_engine(
                course,
                work.stages,
                args.device,
                lambda engine: work.grade(engine, students, seed, lanes(args.jobs), tell),
                unlocked=args.unlocked,
            )
    shown = summary(args.what, results, seed, work.others, work.skipped)
    console(args).print(shown, end="")
    return 1 if work.skipped or any(result.points is None for result in results) else 0
