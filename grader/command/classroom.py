"""`grade class`: grades all that a class has handed in, and defends every point of it."""

from __future__ import annotations

import argparse
import hashlib
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from grader.command.grade import DEVICES, lanes
from grader.command.output import console, progress_bar, short_path, status_line
from grader.read.course_file import find_assignment
from grader.read.workspace import locate_whole_course
from grader.types.course import Assignment, Course
from grader.types.errors import KitError
from grader.types.gradebook import Graded

if TYPE_CHECKING:
    from grader.folder_class import Grader
    from grader.read.ledger import Ledger
    from grader.types.ledger import Entry
    from grader.types.similarity import Similar
    from grader.types.submission import Submission

_NAME_CAP = 200  # of the 255 bytes that a file's name may have
_SEED = "seed"  # under this name the ledger keeps what a class is graded with


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say what `grade class` is and takes."""
    parser.description = (
        "Grade a folder with a folder, notebook or .py file for each student. All "
        "verdicts, old ones too, are kept in the results; run again it goes on where it stopped "
        "and grades what is new. With --nbgrader: grade submitted/ of an nbgrader course and write "
        "autograded/ and the gradebook, so that nbgrader goes on from there."
    )
    parser.add_argument(
        "what", nargs="?", metavar="SUBMISSIONS", help="the folder; with --nbgrader the assignment"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the results are kept")
    parser.add_argument("--assignment", metavar="NAME", help="default: the only one")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--regrade",
        action="store_true",
        help="grade again, after a change of the course or the kit, whose verdict may change; "
        "shows all differences before they count",
    )
    what.add_argument(
        "--why", metavar="STUDENT", help="show how a student's points came about, exactly"
    )
    what.add_argument("--nbgrader", type=Path, metavar="DIR", help="the nbgrader course")
    parser.add_argument(
        "--yes", action="store_true", help="have the differences of --regrade count unasked"
    )
    parser.add_argument("--junit", action="store_true", help="write JUnit XML for each student too")
    parser.add_argument(
        "--similar", action="store_true", help="list in report.html which answers are alike"
    )
    parser.add_argument(
        "--anonymous", action="store_true", help="number the students in report.html"
    )
    parser.add_argument(
        "--force", action="store_true", help="with --nbgrader: also those that are graded already"
    )
    parser.add_argument(
        "--device",
        choices=DEVICES,
        default="cpu",
        help="default: cpu; with a GPU one is graded at a time, with no limit on memory",
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="so many at a time (default: one a processor core)"
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="grade on a Dask cluster: its scheduler, tcp://host:8786"
    )
    parser.add_argument("--seed", type=int, help="what the checks draw their inputs from")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do what is asked; 0 unless somebody has to look at it."""
    course = locate_whole_course(args.course)
    if args.nbgrader is not None:
        return _nbgrader(args, course)
    if args.similar and args.anonymous:
        raise KitError("--similar names students: leave --anonymous out")
    if args.similar and find_spec("rapidfuzz") is None:
        raise KitError("--similar needs a library: type `pip install rapidfuzz`")
    if args.out is None:
        raise KitError("grade class: say with --out DIR where the results are to be kept")
    if args.why is not None:
        return _why(args, course)
    if args.regrade:
        return _regrade(args, course)
    return _grade(args, course)


def _grade(args: argparse.Namespace, course: Course) -> int:
    """Grade what is new in a folder."""
    from grader.folder_class import FolderClass
    from grader.read.class_folder import read_students
    from grader.read.ledger import open_ledger
    from grader.read.versions import read_version
    from grader.show.classroom import class_summary

    if args.what is None:
        raise KitError("grade class: name the folder with the submissions")
    assignment = find_assignment(course, args.assignment)
    students, odd = read_students(Path(args.what), assignment)
    with open_ledger(args.out, create=True) as ledger:
        kept = ledger.fact(_SEED)
        seed = args.seed if args.seed is not None else int(kept or secrets.randbelow(1 << 31))
        ledger.note(_SEED, str(seed))
        version = read_version(course)
        work = FolderClass(assignment, version, ledger)
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
            )
        files = _write_results(args, ledger, course, assignment)
        older = sum(1 for _ in work.affected())
        summary = class_summary(assignment.name, ledger.latest(), new, older, odd, files)
        console(args).print(summary, end="")
        return 1 if any(entry.is_lost for entry in ledger.latest()) else 0


def _regrade(args: argparse.Namespace, course: Course) -> int:
    """Grade again what may get another verdict, show what differs, and ask."""
    from grader.folder_class import FolderClass, differences
    from grader.read.ledger import open_ledger
    from grader.read.versions import read_version
    from grader.show.classroom import differences_screen

    assignment = find_assignment(course, args.assignment)
    with open_ledger(args.out, create=False) as ledger:
        work = FolderClass(assignment, read_version(course), ledger)
        affected = sum(1 for _ in work.affected())
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
            print("Nothing has changed; the results are as they were.")
            return 1
        ledger.accept()
        _write_results(args, ledger, course, assignment)
        if found:
            print(f"Written; the verdicts before stay in {short_path(args.out)}.")
        return 0


def _with_grader(
    args: argparse.Namespace,
    course: Course,
    assignment: Assignment,
    seed: int,
    body: Callable[[Grader], None],
) -> None:
    """Run `body` with what grades: this machine, or the cluster that was named."""
    from grader.cluster import graded_on_cluster
    from grader.engine import with_engine
    from grader.folder_class import graded_here

    stages = assignment.stages
    if args.dask is not None:
        body(lambda jobs: graded_on_cluster(args.dask, course, stages, args.device, jobs))
        return
    at_once = lanes(args.jobs)
    with_engine(
        course,
        stages,
        args.device,
        lambda engine: body(lambda jobs: graded_here(engine, jobs, stages, seed, at_once)),
    )


def _write_results(
    args: argparse.Namespace, ledger: Ledger, course: Course, assignment: Assignment
) -> list[str]:
    """Write what other programs read, all of it anew; the names of the files."""
    from grader.read.files import write_pieces
    from grader.show.canvas import csv_text
    from grader.show.class_report import class_report
    from grader.show.class_tables import json_line, score_rows
    from grader.show.junit import junit

    out: Path = args.out
    rows = score_rows(ledger.latest(), assignment.stages)
    entries = _shuffled(ledger) if args.anonymous else ledger.latest
    alike = _similar(args, ledger, assignment) if args.similar else None
    pieces = {
        "scores.csv": (csv_text([row], quotes_all=True) for row in rows),
        "results.jsonl": map(json_line, ledger.latest()),
        "report.html": class_report(
            course.title, assignment, entries, alike, anonymous=args.anonymous
        ),
    }
    try:
        if args.junit:
            (out / "junit").mkdir(exist_ok=True)
            for entry in ledger.latest():
                if entry.report is not None:
                    name = f"junit/{_file_name(entry.student)}.xml"
                    write_pieces(out / name, [junit(entry.report)])
        for name, text in pieces.items():
            write_pieces(out / name, text)
    except OSError as error:
        raise KitError(
            f"{error.filename or out}: cannot be written: {error.strerror}; no verdict is lost: "
            "mend that and type the same again"
        ) from None
    return [short_path(out / name) for name in pieces]


def _similar(args: argparse.Namespace, ledger: Ledger, assignment: Assignment) -> Similar:
    """Which answers are alike beyond what the stages bring about."""
    from grader.read.stubs import read_solution, read_stub
    from grader.similarity import Given, similar

    given = [Given(stage, read_stub(stage), read_solution(stage)) for stage in assignment.stages]

    def again(student: str) -> Submission | None:
        entry = ledger.latest_of(student)
        return None if entry is None else ledger.submission(entry.hand_in.content, student)

    def handed_in() -> Iterator[tuple[str, Submission]]:
        for entry in ledger.latest():
            submission = ledger.submission(entry.hand_in.content, entry.student)
            if submission is not None:
                yield entry.student, submission

    with status_line(args) as tell:
        tell("comparing the answers")
        return similar(given, handed_in(), again)


def _shuffled(ledger: Ledger) -> Callable[[], Iterator[Entry]]:
    """The verdicts that count in an order that tells nothing of the names, the same every time."""
    students = ledger.students()
    secrets.SystemRandom().shuffle(students)
    return lambda: filter(None, map(ledger.latest_of, students))


def _file_name(student: str) -> str:
    """A student's name as the name of a file, and nobody else's, however long it is."""
    name = quote(student, safe=" @+")
    if len(name) <= _NAME_CAP:
        return name
    digest = hashlib.sha256(student.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{name[:_NAME_CAP]}!{digest[:32]}"  # nothing that is quoted has a "!"


def _agreed() -> bool:
    if not sys.stdin.isatty():
        print("grade: nobody can be asked here; --yes has the differences count", file=sys.stderr)
        return False
    try:
        return input("Shall these points count? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _why(args: argparse.Namespace, course: Course) -> int:
    """Show a student's verdicts, and come to the last one again."""
    from grader.engine import with_engine
    from grader.folder_class import Job, graded
    from grader.read.ledger import open_ledger
    from grader.read.versions import read_version
    from grader.show.classroom import history, replay_outcome
    from grader.show.terminal import explanation, footnotes, scoreboard

    with open_ledger(args.out, create=False) as ledger:
        entries = list(ledger.history(args.why))
        if not entries:
            known = ledger.students()
            raise KitError(f"--why {args.why}: has no verdict here; {_close(args.why, known)}")
        last = entries[-1]
        console(args).print(history(entries), end="")
        submission = ledger.submission(last.hand_in.content, last.student)
    if last.report is None or submission is None:
        return 0
    report = last.report
    stages = [stage for stage in course.stages if stage.slug in last.version.stages]
    stages = [stage for stage in stages if stage.slug in {each.slug for each in report.stages}]
    is_same_version = last.version == read_version(course)
    if is_same_version:
        job = Job(last.hand_in, submission, last.seed)
        report, _ = with_engine(
            course, stages, last.device, lambda engine: graded(engine, job, stages)
        )
    shown = scoreboard(report), explanation(report, every=True), footnotes(report)
    console(args).print(*shown, replay_outcome(last, report, is_same_version), sep="", end="")
    return 0


def _close(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    folded = {each.casefold(): each for each in known}
    close = [each for key, each in folded.items() if name.casefold() in key][:1]
    close = close or [folded[key] for key in get_close_matches(name.casefold(), folded, n=1)]
    return f"did you mean '{close[0]}'?" if close else "scores.csv names all who have"


def _nbgrader(args: argparse.Namespace, course: Course) -> int:
    """Grade and print what was odd and a summary; 0 unless somebody has to look at a cell."""
    from grader.classroom import NbgraderClass
    from grader.engine import with_engine
    from grader.show.classroom import summary

    if args.what is None:
        raise KitError("grade class: name the assignment: grade class --nbgrader DIR ASSIGNMENT")
    work = NbgraderClass(args.nbgrader.resolve(), args.what, course)
    students = work.students(force=args.force)
    seed = secrets.randbelow(1 << 31) if args.seed is None else args.seed
    results: list[Graded] = []
    if students:
        with progress_bar(args, work.assignment, len(students)) as advance:

            def tell(result: Graded) -> None:
                results.append(result)
                advance()

            with_engine(
                course,
                work.stages,
                args.device,
                lambda engine: work.grade(engine, students, seed, lanes(args.jobs), tell),
            )
    console(args).print(summary(args.what, results, seed), end="")
    return 1 if any(result.points is None for result in results) else 0
