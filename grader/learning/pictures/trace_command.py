"""`grade trace [STAGE]`: runs your own code on a small example, step by step."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from grader.command.grade import add_submission
from grader.command.output import console, short_path, status_line
from grader.judge.places import is_begun
from grader.learning.pictures.files import KINDS, write_figure, write_picture
from grader.learning.pictures.types import Trace, TracedStep
from grader.read.course_file import find_stage
from grader.read.stubs import read_stub
from grader.read.submission import expect_code, read_submission
from grader.read.workspace import locate_course, locate_workspace
from grader.types.course import Course, Stage
from grader.types.errors import KitError
from grader.types.submission import Submission


def add_options(parser: argparse.ArgumentParser) -> None:
    """Run your own code on a small example and show the tensors of every step."""
    parser.add_argument(
        "stage", nargs="?", metavar="STAGE", help="default: the last stage that you have written"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="also write its picture to a .png or .svg file"
    )
    add_submission(parser)


def run(args: argparse.Namespace) -> int:
    """Print a trace; 0 if it ran to the end, else 1. Raises KitError."""
    from grader.learning.pictures.trace import trace_screen
    from grader.learning.pictures.tracer import right_trace, trace
    from grader.run.device import cpu_interpreter

    if args.out is not None and args.out.suffix.removeprefix(".") not in KINDS:
        raise KitError(f"--out {args.out}: end the picture's name with .png or .svg")
    course, submission = chosen_submission(args)
    stages = stages_to_try(course, submission, args.stage)
    with status_line(args), cpu_interpreter(course) as interpreter:
        for stage in stages:  # if nothing is written yet, this ends with the first stage
            found = trace(course, stage, submission, interpreter)
            if found.stop is None or not found.stop.not_written:
                break
        right = right_trace(course, found, interpreter)
    console(args).print(trace_screen(found, right), end="")
    if args.out is not None:
        _write(found, args.out)
        print(f"  written: {args.out}")
    return 0 if found.stop is None else 1


def _write(trace: Trace, file: Path) -> None:
    """Write the trace's own picture, or else its first and last step. Raises KitError."""
    if trace.picture is not None:
        write_picture(trace.picture, file)
        return
    names = [part.name for part in trace.parts if isinstance(part, TracedStep) and part.blocks]
    if not names:
        raise KitError(f"the trace of {trace.slug} drew no picture, so none was written")

    from grader.learning.pictures.drawing import steps_figure

    words = f"Tables of numbers: {names[0]}, then {names[-1]}."
    write_figure(steps_figure(trace), file, trace.title, words)


def chosen_submission(args: argparse.Namespace) -> tuple[Course, Submission]:
    """The course and the learner's code: from --submission, else from their folder."""
    if args.submission is None:
        workspace = locate_workspace(args.course)
        course, path = workspace.course, workspace.exercises
    else:
        course, path = locate_course(args.course), args.submission
    read = read_submission(path, is_own=args.submission is None)
    return course, replace(expect_code(read, path), name=short_path(path))


def stages_to_try(course: Course, submission: Submission, word: str | None) -> tuple[Stage, ...]:
    """The named stage, or those with a trace that are begun, the last one first. Raises KitError.

    A stub can fail for another reason than being a stub: it may import a file that is broken.
    """
    traced = tuple(stage for stage in course.stages if stage.trace_file.is_file())
    if word is None:
        if not traced:
            raise KitError("no stage of this course has a trace")
        begun = (stage for stage in traced[::-1] if is_begun(submission, stage, read_stub(stage)))
        return tuple(begun) or traced[:1]
    stage = find_stage(course, word)
    if stage not in traced:
        others = ", ".join(other.slug for other in traced) or "none"
        raise KitError(f"{stage.slug} has no trace; stages with a trace: {others}")
    return (stage,)
