"""`grade [STAGE ...]`: the scoreboard, then why the first failing stage fails."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from dataclasses import replace
from pathlib import Path

from grader.read.course_file import find_stage, locate_course
from grader.read.progress import update_progress
from grader.read.submission import read_submission
from grader.types.course import Course, Stage
from grader.types.errors import ProgressError
from grader.types.progress import Progress
from grader.types.report import Report, Status, to_json

_DEVICES = ("auto", "cpu", "cuda", "mps")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `grade grade`, which is what `grade` itself means."""
    parser = commands.add_parser("grade", prog="grade", description=__doc__)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="only these stages")
    parser.add_argument("--all", action="store_true", help="show every failing check")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--submission",
        type=Path,
        metavar="PATH",
        help="a folder of .py files, one .py or one .ipynb (default: exercises/)",
    )
    parser.add_argument("--device", choices=_DEVICES, default="auto", help="default: auto")
    parser.add_argument("--seed", type=int, help="repeat a run with its seed")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Grade and print; 0 if every core stage that was graded has passed, else 1."""
    from rich.console import Console

    from grader.engine import Request, grade

    course = locate_course(args.course)
    path = args.submission or course.exercises
    request = Request(
        course=course,
        submission=replace(read_submission(path), name=_short(path)),
        stages=chosen_stages(course, args.stages),
        device=args.device,
        seed=secrets.randbelow(1 << 31) if args.seed is None else args.seed,
    )
    with Console(stderr=True).status("starting") as line:  # seen on a terminal only
        report = grade(request, lambda result: line.update(f"{result.slug}: {result.status.value}"))
    trouble = _remember(course, report) if args.submission is None else ""
    if args.json:
        json.dump(to_json(report), sys.stdout, indent=2)
        print()
    else:
        _show(report, args.all, next_file=_next_file(course, report, path))
    if trouble:
        print(f"grade: {trouble}", file=sys.stderr)
    return 0 if report.passed else 1


def chosen_stages(course: Course, slugs: list[str]) -> tuple[Stage, ...]:
    """The stages of these slugs in the course's order, all if none is named. Raises KitError."""
    chosen = {find_stage(course, slug) for slug in slugs}
    return tuple(stage for stage in course.stages if not chosen or stage in chosen)


def _remember(course: Course, report: Report) -> str:
    """Remember where each stage of the learner's own folder stands; what went wrong."""

    def with_statuses(progress: Progress) -> Progress:
        for stage in report.stages:
            progress = progress.with_status(stage.slug, stage.status)
        return progress

    try:
        return update_progress(course.root, with_statuses).note
    except ProgressError as error:
        return str(error)


def _show(report: Report, every: bool, next_file: str | None) -> None:
    from rich.console import Console

    from grader.show.terminal import explanation, footnotes, scoreboard

    Console().print(
        scoreboard(report),
        explanation(report, every=every, next_file=next_file),
        footnotes(report),
        sep="",
        end="",
    )


def _next_file(course: Course, report: Report, path: Path) -> str | None:
    """The file to open next: that of the first stage that is not begun."""
    for result in report.stages:
        if result.status is Status.NOT_STARTED:
            file = path / course.stage(result.slug).file_name if path.is_dir() else path
            return _short(file)
    return None


def _short(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
