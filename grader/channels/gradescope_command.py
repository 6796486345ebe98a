"""`grade release gradescope`: makes the autograder, and grades one upload as it does."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from grader.channels.gradescope import WHEN, refusal, results, run_script, setup_script
from grader.channels.student_copy import zipped
from grader.classes.folder.course_files import (
    read_constraints,
    read_course_files,
    read_engine_files,
)
from grader.classes.folder.uploads import Upload, read_upload
from grader.classes.late import Late, lateness
from grader.command.course import authors_course
from grader.command.output import console, short_path, write_file
from grader.engine import Request, with_engine
from grader.read.course_file import find_assignment
from grader.read.files import write_whole
from grader.read.renamed import with_present_names
from grader.show.workspace import handed_out
from grader.types.course import Assignment, Course, core_of
from grader.types.errors import KitError, SubmissionFileError
from grader.types.report import Outcome, Report
from grader.types.seed import fresh_seed
from grader.types.text import safe

# The packages that the engine imports to grade, besides the course's `requirements`.
_PACKAGES = ("numpy", "pytest", "rich", "tomli; python_version < '3.11'")
_MINUTES = 8.0  # by default Gradescope stops an autograder after 10


def add_options(parser: argparse.ArgumentParser) -> None:
    """Write the zip to upload to Gradescope as an autograder. It holds the whole course, with
    hidden checks and solutions: never give it to a student.
    """
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--out", type=Path, metavar="FILE.zip", help="default: ASSIGNMENT-gradescope.zip"
    )
    what.add_argument(
        "--run",
        dest="upload",
        type=Path,
        metavar="DIR",
        help="grade DIR/submission and write DIR/results/results.json, as the zip's "
        "run_autograder does",
    )
    parser.add_argument(
        "--assignment", metavar="NAME", help="its name in course.toml (default: the only one)"
    )
    parser.add_argument(
        "--hidden",
        choices=tuple(WHEN),
        default=next(iter(WHEN)),
        help="when students see the checks that are not visible: once grades are published "
        "(default), after the due date, or never",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=_MINUTES,
        help=f"time limit for one submission, below Gradescope's own limit (default: {_MINUTES:g})",
    )


def run(args: argparse.Namespace) -> int:
    """Write the zip, or grade as run_autograder; 0 if a results.json was written."""
    course = authors_course(args)
    assignment = find_assignment(course, args.assignment)
    if args.upload is not None:
        return _grade_upload(course, assignment, args)

    files = {
        "setup.sh": setup_script((*course.requirements, *_PACKAGES), assignment.name).encode(),
        "run_autograder": run_script(assignment.name, args.hidden, args.minutes).encode(),
        "constraints.txt": read_constraints(course),
        **dict(read_engine_files()),
        **{f"course/{path}": data for path, data in read_course_files(course)},
    }
    out: Path = args.out or Path(f"{assignment.name}-gradescope.zip")
    write_file(out, zipped(files, executable=("setup.sh", "run_autograder")))
    steps = [
        ("On Gradescope:", "create a Programming Assignment with this zip"),
        ("Points there:", f"{sum(stage.points for stage in core_of(assignment.stages)):g}"),
    ]
    console(args).print(handed_out(short_path(out.parent), [out.name], [], steps), end="")
    return 0


def _grade_upload(course: Course, assignment: Assignment, args: argparse.Namespace) -> int:
    began = time.monotonic()
    target: Path = args.upload / "results" / "results.json"
    target.unlink(missing_ok=True)  # if the grader itself fails, there must be no results
    try:
        upload = read_upload(args.upload / "submission", assignment.stages, assignment.name)
    except SubmissionFileError as error:
        data = refusal(str(error), time.monotonic() - began)
        print(f"refused: {safe(str(error))}")
    else:
        report = _report(course, assignment, upload, 60 * args.minutes)
        print(
            f"{report.score:g} of {report.max_score:g}",
            *map(safe, (*report.notes, *upload.notes)),
            sep="\n",
        )
        try:
            took = time.monotonic() - began
            late = _late(args.upload / "submission_metadata.json", assignment)
            data = results(report, course, args.hidden, took, upload.notes, late)
        except ValueError as error:
            raise KitError(f"wrote no results.json: {error}; {_faults(report)}") from None
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, json.dumps(data, indent=2))
    return 0


def _late(file: Path, assignment: Assignment) -> Late | None:
    """How late a submission is by Gradescope's submission_metadata.json; None if unknown.

    https://gradescope-autograders.readthedocs.io/en/latest/submission_metadata/ has its form. Its
    deadline counts, or else that of course.toml; of a group's extensions the latest. An extension
    is for an email address, because students choose the name that they have there.
    """
    try:
        data = json.loads(file.read_bytes())
        users = [user for user in data.get("users") or () if isinstance(user, dict)]
        names = [str(user["email"]) for user in users if user.get("email")]
        due = (data.get("assignment") or {}).get("due_date")
        when = datetime.fromisoformat(data["created_at"])
        return lateness(assignment, names, when, datetime.fromisoformat(due) if due else None)
    except FileNotFoundError:
        return None
    except (
        OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError
    ) as error:  # fmt: skip
        print(f"{file.name}: does not say when this was submitted: {error!r}")
        return None


def _report(course: Course, assignment: Assignment, upload: Upload, seconds: float) -> Report:
    """The report on the submission, which may take this time at most."""
    least = min(seconds, course.limits.submission_seconds)
    course = replace(course, limits=replace(course.limits, submission_seconds=least))
    submission = with_present_names(upload.submission, course.stages)
    request = Request(submission, assignment.stages, fresh_seed())
    return with_engine(course, request.stages, "cpu", lambda engine: engine.grade(request))


def _faults(report: Report) -> str:
    """The messages of the checks that the grader could not run."""
    return "; ".join(
        f"{check.id}: {check.message.strip()}"
        for stage in report.stages
        for check in stage.checks
        if check.outcome is Outcome.ERROR
    )
