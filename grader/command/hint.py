"""`grade hint [STAGE] [N]`: one more hint each time, remembered."""

from __future__ import annotations

import argparse
import re
import sys

from grader.read.course_file import find_stage, locate_course
from grader.read.hints import read_hints
from grader.read.progress import read_progress, update_progress
from grader.types.course import Course, Stage
from grader.types.errors import KitError, ProgressError
from grader.types.progress import Progress
from grader.types.report import Status

_UNWRITTEN = re.compile(rb"^\s*raise NotImplementedError\b", re.MULTILINE)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `grade hint`."""
    parser = commands.add_parser(
        "hint",
        help="the next hint for a stage",
        description="Show the next hint for a stage. How far you are is remembered.",
    )
    parser.add_argument("stage", nargs="?", metavar="STAGE", help="default: where you are now")
    parser.add_argument("number", nargs="?", type=int, metavar="N", help="one you have had before")
    parser.add_argument("--again", action="store_true", help="repeat the last one")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print one hint. It is shown even where it cannot be remembered that it was."""
    from rich.console import Console

    from grader.show.terminal import hint

    course = locate_course(args.course)
    progress, trouble = _recall(course)
    word: str | None = args.stage
    asked: int | None = args.number
    if word is not None and word.isdecimal():  # `grade hint 2`
        asked, word = int(word), None
    stage = find_stage(course, word) if word is not None else current_stage(course, progress)
    hints = read_hints(stage)
    used, total = progress.stage(stage.slug).rungs, len(hints.rungs)
    if asked is not None and not 1 <= asked <= total:
        raise KitError(f"{stage.slug} has hints 1 to {total}, and no hint {asked}")
    number = asked or min(max(1, used if args.again else used + 1), total)
    skips = number > used + 1
    trouble = _remember(course, stage, used if skips else number) or trouble
    if skips and not trouble:
        raise KitError(
            f"hint {number} of {stage.slug} comes after hint {used + 1}: "
            f"type `grade hint {stage.slug}` for that one"
        )
    rung = hints.rungs[number - 1]
    text = f"# {rung.heading}\n\n{rung.text}"
    Console().print(hint(stage.title, number, total, text, slug=stage.slug), end="")
    if trouble:
        print(f"grade: {trouble}", file=sys.stderr)
    return 0


def current_stage(course: Course, progress: Progress) -> Stage:
    """The stage that a learner is at: the first that is not done.

    A graded stage is done if it passed. One that was never graded is done if nothing in its file is
    left to write, but not while it is the one that the last hint was for.
    """
    for stage in course.stages:
        status = progress.stage(stage.slug).status
        if status is None:
            done = stage.slug != progress.last_hint and not _is_unwritten(stage)
        else:
            done = status is Status.PASSED
        if not done:
            return stage
    return course.stages[-1]


def _is_unwritten(stage: Stage) -> bool:
    try:
        return _UNWRITTEN.search(stage.exercise_file.read_bytes()) is not None
    except OSError:
        return True


def _recall(course: Course) -> tuple[Progress, str]:
    """What is remembered, and what went wrong."""
    try:
        found = read_progress(course.root)
    except ProgressError as error:
        return Progress(), str(error)
    return found.progress, found.note


def _remember(course: Course, stage: Stage, rung: int) -> str:
    """Remember that `rung` was shown; what went wrong."""
    try:
        return update_progress(course.root, lambda now: now.with_hint(stage.slug, rung)).note
    except ProgressError as error:
        return str(error)
