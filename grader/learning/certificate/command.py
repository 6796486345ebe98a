"""`grade certificate`: what your finished module can do, the way there, and a page to keep."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

from grader.command.grade import afterwards
from grader.command.output import console, status_line
from grader.learning.pictures.files import KINDS, write_figure
from grader.learning.pictures.types import Trace
from grader.read.progress import recall_present
from grader.read.submission import read_submission
from grader.read.workspace import locate_workspace
from grader.show.screen import count
from grader.types.course import Course, core_of
from grader.types.errors import KitError
from grader.types.progress import Progress
from grader.types.report import Status
from grader.types.workspace import Workspace


def add_options(parser: argparse.ArgumentParser) -> None:
    """When every core stage passes: show what your own code can do and how you got there, and write
    a certificate.
    """
    parser.add_argument("--name", default="", help="the name to write on the certificate")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("certificate.svg"),
        metavar="FILE",
        help="a .svg or .png file (default: certificate.svg)",
    )
    parser.add_argument(
        "--with-way", action="store_true", help="write your attempts and hints on it too"
    )


def run(args: argparse.Namespace) -> int:
    """Print and write a certificate; 1 if a core stage does not pass yet. Raises KitError."""
    if args.out.suffix.removeprefix(".") not in KINDS:
        raise KitError(f"--out {args.out}: end the certificate's name with .svg or .png")
    workspace = locate_workspace(args.course)
    course, progress = workspace.course, recall_present(workspace).progress
    if course.is_partial:
        raise KitError("this copy has only the visible checks: your instructor gives the points")
    known = {stage.slug: progress.stage(stage.slug) for stage in core_of(course.stages)}
    left = {slug: each for slug, each in known.items() if each.status is not Status.PASSED}
    if left:
        from grader.learning.certificate.screen import too_early

        console(args).print(too_early(left), end="")
        return 1
    with status_line(args):
        shown = _shown(workspace)
    from grader.learning.certificate.screen import Certificate, certificate_screen

    passed = ((stage, progress.stage(stage.slug)) for stage in course.stages)
    passing = tuple(each for each in passed if each[1].status is Status.PASSED)
    today = datetime.now().astimezone().date().isoformat()
    certificate = Certificate(course.title, args.name, today, passing, shown)
    console(args).print(certificate_screen(certificate, _offers(course, progress)), end="")
    from grader.learning.certificate.drawing import certificate_figure, description

    figure = certificate_figure(certificate, with_way=args.with_way)
    write_figure(figure, args.out, f"Certificate: {course.title}", description(certificate))
    print(f"  written: {args.out}")
    return 0


def _shown(workspace: Workspace) -> Trace:
    """What the learner's code does in the author's file; nothing if there is none."""
    from grader.learning.pictures.tracer import trace
    from grader.run.device import cpu_interpreter

    course = workspace.course
    stage = next((s for s in reversed(course.stages) if s.certificate_file.is_file()), None)
    if stage is None:
        return Trace(course.stages[0].slug, course.title, ())
    submission = read_submission(workspace.exercises, is_own=True)
    with cpu_interpreter(course) as interpreter:
        return trace(course, stage, submission, interpreter, stage.certificate_file)


def _offers(course: Course, progress: Progress) -> list[tuple[str, str]]:
    """What to do next."""
    left = [s for s in course.stages if progress.stage(s.slug).status is not Status.PASSED]
    offers = [offer for offer in afterwards(course) if offer[1] != "grade certificate"]
    if any(stage.explore_file.is_file() for stage in course.stages):
        offers.append(("Play with your code on a page:", "grade explore"))
    if left:
        offers.append((f"For bonus points, {count(len(left), 'more stage')}:", "grade list"))
    return offers
