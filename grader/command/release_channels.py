"""`grade release gradescope | github | canvas`: what other systems take."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grader.command.output import console, short_path
from grader.read.course_file import find_assignment
from grader.read.files import write_whole
from grader.read.workspace import locate_whole_course
from grader.show.gradescope import WHEN
from grader.types.course import Assignment, Course, Stage
from grader.types.errors import CourseError, KitError, SubmissionFileError
from grader.types.report import CheckResult, Outcome, Report, StageResult, Status

if TYPE_CHECKING:
    from grader.engine import Engine
    from grader.read.channels import Upload

# What the engine itself imports when it grades; the course's `preload` comes on top.
_PACKAGES = ("numpy", "pytest", "rich", "tomli; python_version < '3.11'")
_MINUTES = 8.0  # Gradescope stops an autograder after 10, unless it is told otherwise
_NAMES_SHOWN = 10


def add_parser(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `grade release gradescope`, `github` and `canvas`."""
    _add_gradescope(kinds)
    _add_github(kinds)
    _add_canvas(kinds)


# --- Gradescope --------------------------------------------------------------------------------


def _add_gradescope(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = kinds.add_parser(
        "gradescope",
        help="an autograder for Gradescope: a zip to upload there",
        description="Write the zip that Gradescope takes as an autograder. It holds the whole "
        "course, hidden checks and solutions too: upload it, and give it to no student.",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--out", type=Path, metavar="FILE.zip", help="default: ASSIGNMENT-gradescope.zip"
    )
    what.add_argument(
        "--run",
        dest="upload",
        type=Path,
        metavar="DIR",
        help="what the zip's run_autograder does: grade DIR/submission and write "
        "DIR/results/results.json",
    )
    parser.add_argument("--assignment", metavar="NAME", help="default: the only one")
    parser.add_argument(
        "--hidden",
        choices=tuple(WHEN),
        default=next(iter(WHEN)),
        help="when students see the checks that are not visible: when grades are published "
        "(the default), after the due date, or never",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=_MINUTES,
        help=f"for one submission; less than Gradescope's own limit (default: {_MINUTES:g})",
    )
    parser.set_defaults(run=_gradescope)


def _gradescope(args: argparse.Namespace) -> int:
    """Write the zip, or grade as run_autograder; 0 if a results.json was written."""
    course = locate_whole_course(args.course)
    assignment = find_assignment(course, args.assignment)
    if args.upload is not None:
        return _grade_upload(course, assignment, args)
    from grader.read.bundle import zipped
    from grader.read.channels import read_constraints, read_course_files, read_engine_files
    from grader.show.gradescope import run_script, setup_script
    from grader.show.workspace import handed_out

    files = {
        "setup.sh": setup_script((*course.preload, *_PACKAGES), assignment.name).encode(),
        "run_autograder": run_script(assignment.name, args.hidden, args.minutes).encode(),
        "constraints.txt": read_constraints(course),
        **dict(read_engine_files()),
        **{f"course/{path}": data for path, data in read_course_files(course)},
    }
    out: Path = args.out or Path(f"{assignment.name}-gradescope.zip")
    _write(out, zipped(files, executable=("setup.sh", "run_autograder")))
    steps = [
        ("On Gradescope:", "a Programming Assignment, Configure Autograder, this zip"),
        ("Its points:", f"{sum(stage.points for stage in assignment.stages if not stage.bonus):g}"),
    ]
    console(args).print(handed_out("", [short_path(out)], [], steps), end="")
    return 0


def _grade_upload(course: Course, assignment: Assignment, args: argparse.Namespace) -> int:
    import json

    from grader.read.channels import read_upload
    from grader.show.gradescope import refusal, results

    began = time.monotonic()
    target: Path = args.upload / "results" / "results.json"
    target.unlink(missing_ok=True)  # there is to be none if the grader itself fails
    try:
        upload = read_upload(args.upload / "submission", assignment.stages, assignment.name)
    except SubmissionFileError as error:
        data = refusal(str(error), time.monotonic() - began)
        print(f"refused: {error}")
    else:
        report, notes = _report(course, assignment, upload, 60 * args.minutes)
        print(f"{report.score:g} of {report.max_score:g}", *report.notes, *notes, sep="\n")
        try:
            data = results(report, course, args.hidden, time.monotonic() - began, notes)
        except ValueError as error:
            raise KitError(f"no results.json, as {error}; {_faults(report)}") from None
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, json.dumps(data, indent=2))
    return 0


def _report(
    course: Course, assignment: Assignment, upload: Upload, seconds: float
) -> tuple[Report, list[str]]:
    """The report and what to tell of the submission; stages that no time is left for get 0."""
    import secrets
    import threading

    from grader.engine import Request, with_engine
    from grader.judge.verdict import judge
    from grader.run.answers import Cancelled

    stages, notes = assignment.stages, list(upload.notes)
    request = Request(upload.submission, stages, secrets.randbelow(1 << 31))
    done: list[StageResult] = []

    def body(engine: Engine) -> Report:
        timer = threading.Timer(seconds, engine.cancel)
        timer.start()
        try:
            return engine.grade(request, done.append)
        except Cancelled:
            late = stages[len(done) :]
            notes.append(
                f"Your code took more than {seconds / 60:g} minutes in all and was stopped: "
                f"{', '.join(stage.slug for stage in late)} got no points."
            )
            rest = [_too_late(stage) for stage in late]
            seed = f"seed {request.seed}"
            return judge(course, upload.submission.name, "cpu", [*done, *rest], [seed])
        finally:
            timer.cancel()

    return with_engine(course, stages, "cpu", body), notes


def _too_late(stage: Stage) -> StageResult:
    check = CheckResult(
        f"{stage.slug}.time",
        "Graded before the time for all stages is over",
        Outcome.TIMEOUT,
        0,
        stage.points,
        "The stages before took all the time that there is for a submission.",
    )
    return StageResult(
        stage.slug, stage.title, Status.FAILED, 0, stage.points, stage.bonus, (check,)
    )


def _faults(report: Report) -> str:
    """What the checks say that the grader could not run."""
    return "; ".join(
        f"{check.id}: {check.message.strip()}"
        for stage in report.stages
        for check in stage.checks
        if check.outcome is Outcome.ERROR
    )


# --- GitHub ------------------------------------------------------------------------------------


def _add_github(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = kinds.add_parser(
        "github",
        help="a repository to give to students on GitHub, graded by a workflow",
        description="Write a folder to push as a template repository: the student's bundle and a "
        "workflow that runs the visible checks. Hidden checks and solutions are not in it.",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: COURSE-github")
    parser.set_defaults(run=_github)


def _github(args: argparse.Namespace) -> int:
    """Write the repository's files; what else is in the folder stays."""
    from grader.read.bundle import bundle_files
    from grader.read.channels import visible_points
    from grader.show.github import IGNORED, WORKFLOW, readme, workflow
    from grader.show.workspace import handed_out

    course = locate_whole_course(args.course)
    out: Path = args.out or Path(f"{course.name}-github")
    files = bundle_files(course)
    points = [
        (stage, visible_points(files[stage.place(stage.check_file)].decode()))
        for stage in course.stages
        if stage.visible
    ]
    if not points:
        raise CourseError("course.toml: no stage has `visible` checks, so there is nothing to run")
    torch = (
        f"torch=={version}" if (version := _pinned(files["constraints.txt"], "torch")) else "torch"
    )
    files["README.md"] = readme(course, files["README.md"].decode()).encode()
    files[WORKFLOW] = workflow(course, points, torch).encode()
    files[".gitignore"] = IGNORED.encode()
    entries = (
        [entry.name for entry in out.iterdir() if entry.name != ".git"] if out.is_dir() else []
    )
    if entries and not (out / WORKFLOW).is_file():
        raise KitError(f"{out}: is not empty: name a new folder with --out")
    for name, data in files.items():
        _write(out / name, data)
    place = shlex.quote(short_path(out))
    push = "git init; git add -A; git commit -m 'The assignment'"
    steps = [("Go there:", f"cd {place}"), ("Make it a repository:", push)]
    shown = [WORKFLOW, f"and {len(files) - 1} other files"]
    console(args).print(handed_out(short_path(out), shown, [], steps), end="")
    return 0


def _pinned(constraints: bytes, name: str) -> str:
    """The version of a package in a constraints file, "" if there is none."""
    for line in constraints.decode().splitlines():
        package, _, version = line.partition("==")
        if package.strip() == name:
            return version.split(";")[0].strip()
    return ""


# --- Canvas ------------------------------------------------------------------------------------


def _add_canvas(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = kinds.add_parser(
        "canvas",
        help="scores as a CSV file that Canvas' gradebook imports",
        description="Put scores into the CSV file that Canvas' gradebook exported, for Canvas to "
        "import. Students are matched by their SIS Login ID.",
    )
    parser.add_argument(
        "--roster", type=Path, required=True, metavar="EXPORT.csv", help="from Canvas' gradebook"
    )
    parser.add_argument(
        "--scores",
        type=Path,
        required=True,
        metavar="SCORES.csv",
        help="from `nbgrader export`, or any table with the columns student_id and score",
    )
    parser.add_argument(
        "--assignment", required=True, metavar="NAME", help="the assignment's name in Canvas"
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="NAME",
        help="the assignment's name in SCORES.csv (default: the only one)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE.csv", help="default: canvas-import.csv")
    parser.set_defaults(run=_canvas)


def _canvas(args: argparse.Namespace) -> int:
    """Write the table and say who got no score, and which score found no student."""
    from grader.read.channels import parse_scores, parse_table, read_text
    from grader.show.canvas import canvas_import, csv_text
    from grader.show.screen import count
    from grader.show.workspace import notices

    text = read_text(args.roster)
    roster, between = parse_table(text)
    scores = parse_scores(read_text(args.scores), args.source, str(args.scores))
    done = canvas_import(roster, scores.by_login, args.assignment)
    out: Path = args.out or Path("canvas-import.csv")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    _write(out, (mark + csv_text(done.rows, between)).encode())
    written = f"Written: {short_path(out)}, with {count(done.given, 'score')} in "
    said = [f"{written}'{done.column}'. In Canvas: Gradebook, Import."]
    said += _listed("No score, so the cell stays as it was:", done.without_score)
    said += _listed("Excused or not assigned in Canvas, so not changed:", done.excused)
    said += _listed("A score, but no such login in Canvas:", done.without_student)
    highest, possible = scores.max_score, _points(done.points_possible)
    if highest is not None and possible is not None and highest != possible:
        said.append(
            f"The scores are out of {highest:g}, but Canvas has {possible:g} points possible and "
            "takes the numbers as they are: change one of the two."
        )
    console(args).print(notices(said), end="")
    return 0


def _listed(what: str, names: Sequence[str]) -> list[str]:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return [f"{what} {', '.join(names[:_NAMES_SHOWN])}{more}."] if names else []


def _points(text: str) -> float | None:
    """Points possible as Canvas writes them, perhaps with a decimal comma."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


# --- files -------------------------------------------------------------------------------------


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
    except OSError as error:
        raise KitError(f"{path}: cannot be written: {error.strerror}") from None
