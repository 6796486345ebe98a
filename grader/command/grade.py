"""`grade [STAGE ...]`: the scoreboard, then why the first failing stage fails."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from dataclasses import replace
from pathlib import Path

from grader.command.output import console, short_path, status_line
from grader.read.course_file import find_stage
from grader.read.files import write_whole
from grader.read.progress import remember_results
from grader.read.submission import read_submission
from grader.read.workspace import locate_course, locate_workspace
from grader.types.course import Course, Stage
from grader.types.errors import KitError, ProgressError
from grader.types.report import Report, Status, to_json
from grader.types.submission import Submission
from grader.types.workspace import Workspace

DEVICES = ("auto", "cpu", "cuda", "mps")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say what `grade grade` is and takes."""
    parser.description = __doc__
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="only these stages")
    parser.add_argument("--all", action="store_true", help="show every failing check")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="also write the report to FILE as JUnit XML"
    )
    parser.add_argument(
        "--submission",
        type=Path,
        metavar="PATH",
        help="a folder of .py files, one .py or one .ipynb (default: exercises/)",
    )
    parser.add_argument("--device", choices=DEVICES, default="auto", help="default: auto")
    parser.add_argument("--seed", type=int, help="repeat a run with its seed")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Grade and print; 0 if every core stage that was graded has passed, else 1."""
    from grader.engine import Request, grade

    if args.submission is None:
        workspace = locate_workspace(args.course)
        course, path = workspace.course, workspace.exercises
    else:
        workspace, course, path = None, locate_course(args.course), args.submission
    submission = replace(read_submission(path), name=short_path(path))
    seed = secrets.randbelow(1 << 31) if args.seed is None else args.seed
    request = Request(submission, chosen_stages(course, args.stages), seed)
    with status_line(args) as tell:
        report = grade(
            course,
            request,
            args.device,
            lambda result: tell(f"{result.slug}: {result.status.value}"),
        )
    trouble = _remember(workspace, report, submission) if workspace else ""
    if args.junit is not None:
        _write_junit(args.junit, report)
    if args.json:
        json.dump(to_json(report), sys.stdout, indent=2)
        print()
    else:
        from grader.show.terminal import explanation, footnotes, scoreboard

        next_file = _next_file(course, report, path)
        shown = explanation(report, every=args.all, next_file=next_file)
        console(args).print(scoreboard(report), shown, footnotes(report), sep="", end="")
    if trouble:
        print(f"grade: {trouble}", file=sys.stderr)
    return 0 if report.passed else 1


def chosen_stages(course: Course, slugs: list[str]) -> tuple[Stage, ...]:
    """The stages of these slugs in the course's order, all if none is named. Raises KitError."""
    chosen = {find_stage(course, slug) for slug in slugs}
    return tuple(stage for stage in course.stages if not chosen or stage in chosen)


def lanes(jobs: int | None) -> int:
    """How many processes work at a time: so many `jobs`, or one a processor core that is ours."""
    if jobs:
        return max(1, jobs)
    ours = getattr(os, "sched_getaffinity", None)  # Linux alone tells them
    return len(ours(0)) if ours is not None else os.cpu_count() or 1


def _write_junit(file: Path, report: Report) -> None:
    """Raises KitError where that fails."""
    from grader.show.junit import junit

    try:
        write_whole(file, junit(report))
    except OSError as error:
        raise KitError(f"--junit {file}: cannot be written: {error.strerror}") from None


def _remember(workspace: Workspace, report: Report, submission: Submission) -> str:
    """Remember how each stage of the learner's own folder was graded; what went wrong."""
    try:
        return remember_results(workspace.root, report.stages, submission).note
    except ProgressError as error:
        return str(error)


def _next_file(course: Course, report: Report, path: Path) -> str | None:
    """The file to open next: that of the first stage that is not begun."""
    for result in report.stages:
        if result.status is Status.NOT_STARTED:
            file = path / course.stage(result.slug).file_name if path.is_dir() else path
            return short_path(file)
    return None
