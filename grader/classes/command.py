"""`grade class`: grades every submission of a class, and can justify every point later."""

from __future__ import annotations

import argparse
import hashlib
import json
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from grader.classes.alone import alone
from grader.classes.nbgrader.types import Graded
from grader.command.grade import DEVICES, lanes
from grader.command.output import (
    complain,
    console,
    progress_bar,
    short_path,
    status_line,
    write_file,
)
from grader.read.course_file import assignment_named, find_assignment
from grader.read.workspace import locate_whole_course
from grader.types.course import Assignment, Course
from grader.types.errors import KitError
from grader.types.seed import fresh_seed

if TYPE_CHECKING:
    from grader.classes.folder.grading import Grader
    from grader.classes.folder.ledger import Ledger
    from grader.classes.folder.students import Found
    from grader.classes.folder.types import LedgerEntry
    from grader.classes.late import Late
    from grader.classes.report.moved import Moved
    from grader.classes.report.types import Similar
    from grader.classes.why.answer import Answer
    from grader.engine import Engine
    from grader.types.submission import Submission

_NAME_CAP = 180  # of the 255 bytes that a file's name may have; a digest takes 64
_NOT_WITH_NBGRADER = (
    *("out", "assignment", "times", "junit", "since", "for_author", "similar", "anonymous"),
    *("yes", "dask"),
)
# Under these names the ledger keeps what a class is graded with, and in what.
_SEED, _SECONDS = "seed", "seconds per submission"
_COURSE, _ASSIGNMENT = "course", "assignment"
_SKIPPED = "skipped"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Grade a folder that holds one folder, notebook or .py file for each student. --out keeps
    every verdict, old ones too. Rerun the command at any time: it continues where it stopped and
    grades only new submissions. With --nbgrader: grade submitted/ of an nbgrader course and write
    autograded/ and the gradebook; nbgrader continues from there.
    """
    parser.add_argument(
        "what",
        nargs="?",
        metavar="SUBMISSIONS",
        help="the folder; with --nbgrader: the assignment; with --why: a stage",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder for the results")
    parser.add_argument("--assignment", metavar="NAME", help="default: the only one")
    parser.add_argument(
        "--times",
        type=Path,
        metavar="CSV",
        help="a CSV file that says when students submitted (student, submitted), for the deadline "
        "in course.toml; Moodle's grading worksheet and nbgrader's export are such files",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--regrade",
        action="store_true",
        help="after a change to the course or the kit: regrade every submission whose verdict "
        "may change, and show all differences before they count",
    )
    what.add_argument(
        "--why",
        metavar="STUDENT",
        help="show how a student's points came about, and write a page for the student; add a "
        "stage for the numbers, such as --why ann softmax",
    )
    what.add_argument(
        "--requests",
        type=Path,
        metavar="CSV",
        help="a CSV file of requests (student, stage, words): regrade each, and write the verdicts "
        "with reasons to decisions.csv",
    )
    what.add_argument("--nbgrader", type=Path, metavar="DIR", help="the nbgrader course")
    parser.add_argument(
        "--yes", action="store_true", help="accept the differences of --regrade without asking"
    )
    parser.add_argument(
        "--junit", action="store_true", help="also write JUnit XML for each student"
    )
    parser.add_argument(
        "--since",
        type=Path,
        metavar="DIR",
        help="the folder with the results of an earlier assignment of this class: the report shows "
        "how the class changed since then",
    )
    parser.add_argument(
        "--for-author",
        action="store_true",
        help="also write for-author.md and .json, without names: the failures that nothing "
        "explains, each with the shortest code that shows it, and the hints that did not help",
    )
    parser.add_argument(
        "--similar", action="store_true", help="list similar answers in report.html"
    )
    parser.add_argument(
        "--anonymous", action="store_true", help="show numbers instead of names in report.html"
    )
    parser.add_argument(
        "--force", action="store_true", help="with --nbgrader: also regrade finished submissions"
    )
    parser.add_argument(
        "--device",
        choices=DEVICES,
        default="cpu",
        help="default: cpu; with a GPU, submissions are graded one at a time, without a memory "
        "limit",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="how many submissions to grade at once (default: one per CPU core)",
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="grade on a Dask cluster; ADDRESS is its scheduler, such as tcp://host:8786",
    )
    parser.add_argument(
        "--seconds-per-submission",
        type=_seconds,
        metavar="N",
        help="time limit for grading one submission (default: submission_seconds in course.toml); "
        "--out keeps the number",
    )
    parser.add_argument("--seed", type=int, help="seed of the checks' random inputs")
    parser.add_argument(
        "--unlocked",
        action="store_true",
        help="grade even if this machine cannot fully lock submissions in; one could then change "
        "another's points, and every report says so",
    )


def _seconds(word: str) -> float:
    """A number of seconds that was typed."""
    try:
        seconds = float(word)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {word!r}")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Run what the options ask for; 0 unless a person has to look at something."""
    course = locate_whole_course(args.course)
    if args.nbgrader is not None:
        for option in _NOT_WITH_NBGRADER:
            if getattr(args, option):
                raise KitError(
                    f"--{option.replace('_', '-')} does not work with --nbgrader: remove it"
                )
        return _nbgrader(args, course)
    if args.force:
        raise KitError("--force works only with --nbgrader: to regrade here, type --regrade")
    if args.similar and args.anonymous:
        raise KitError("--similar shows names: remove --anonymous")
    if args.similar and find_spec("rapidfuzz") is None:
        raise KitError("--similar needs rapidfuzz: type `pip install rapidfuzz`")
    if args.out is None:
        raise KitError("name a folder for the results with --out DIR")
    if args.times is not None and (args.why or args.requests or args.regrade):
        raise KitError(
            "--times counts only when a folder is graded: type `grade class SUBMISSIONS --out DIR "
            "--times FILE.csv` first"
        )
    if args.what is not None and (args.requests or args.regrade):
        option = "--requests" if args.requests else "--regrade"
        raise KitError(f"{option} reads the submissions that --out keeps: remove '{args.what}'")
    if args.why is not None:
        return _why(args, course)
    if args.requests is not None:
        return _requests(args, course)
    if args.regrade:
        return _regrade(args, course)
    return _grade(args, course)


def _grade(args: argparse.Namespace, course: Course) -> int:
    """Grade the new submissions in a folder."""
    from grader.classes.folder.grading import FolderClass
    from grader.classes.folder.ledger import open_ledger
    from grader.classes.folder.students import read_students
    from grader.classes.folder.times import read_times
    from grader.classes.folder.unexplained import look_for_examples
    from grader.classes.folder.versions import read_version
    from grader.classes.screen import class_summary

    if args.what is None:
        raise KitError("name the folder with the submissions")
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
        _expect_assignment(course, ledger, assignment, args.out)
        kept = ledger.fact(_SEED)
        seed = args.seed if args.seed is not None else int(kept or fresh_seed())
        ledger.note(_SEED, str(seed))
        ledger.note(_SKIPPED, json.dumps(odd))
        _keep_limit(args, ledger)
        course = _limited(args, course, ledger)
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
        files = _write_results(args, ledger, course, assignment)
        if args.for_author:
            files += _write_lessons(args, ledger, course, students)
        older = sum(1 for _ in work.affected())
        results = short_path(args.out), files, course.limits
        summary = class_summary(assignment, ledger.latest(), new, older, odd, *results)
        console(args).print(summary, end="")
        return 1 if any(entry.is_lost for entry in ledger.latest()) else 0


def _expect_assignment(course: Course, ledger: Ledger, assignment: Assignment, out: Path) -> None:
    """Note the assignment of these results. Raises KitError if they are of another one."""
    _expect_course(course, ledger, out)
    before = ledger.fact(_ASSIGNMENT) or ""
    if before != assignment.name and assignment_named(course, before):
        raise KitError(
            f"{out}: has the results of '{before}': choose another --out for '{assignment.name}'"
        )
    ledger.note(_COURSE, course.name)
    ledger.note(_ASSIGNMENT, assignment.name)


def _expect_course(course: Course, ledger: Ledger, out: Path) -> None:
    """Raise KitError if the results are of another course."""
    before = ledger.fact(_COURSE)
    if before not in (None, course.name):
        raise KitError(
            f"{out}: has the results of the course '{before}': choose another --out for "
            f"'{course.name}', or another --course"
        )


def _assignment_of(args: argparse.Namespace, course: Course, ledger: Ledger) -> Assignment:
    """The assignment that was asked for, or else that of the results. Raises KitError."""
    _expect_course(course, ledger, args.out)
    kept = ledger.fact(_ASSIGNMENT) or ""
    known = kept if assignment_named(course, kept) else None
    return find_assignment(course, args.assignment or known)


def _limited(args: argparse.Namespace, course: Course, ledger: Ledger | None = None) -> Course:
    """The course with --seconds-per-submission, or with that of the results if they keep one."""
    kept = None if ledger is None else ledger.fact(_SECONDS)
    seconds = args.seconds_per_submission or (kept and float(kept))
    if not seconds:
        return course
    return replace(course, limits=replace(course.limits, submission_seconds=seconds))


def _keep_limit(args: argparse.Namespace, ledger: Ledger) -> None:
    """Note --seconds-per-submission with the results, for every later run."""
    if args.seconds_per_submission:
        ledger.note(_SECONDS, str(args.seconds_per_submission))


def _regrade(args: argparse.Namespace, course: Course) -> int:
    """Regrade what may get another verdict, show the differences, and ask."""
    from grader.classes.folder.grading import FolderClass, differences
    from grader.classes.folder.ledger import open_ledger
    from grader.classes.folder.versions import read_version
    from grader.classes.screen import differences_screen

    with open_ledger(args.out, create=False, course=course) as ledger, alone(args.out):
        assignment = _assignment_of(args, course, ledger)
        course = _limited(args, course, ledger)
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
            print("Nothing changed: the results are as before.")
            return 1
        ledger.accept()
        _keep_limit(args, ledger)
        _write_results(args, ledger, course, assignment)
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
    from grader.classes.folder.cluster import graded_on_cluster
    from grader.classes.folder.grading import graded_here
    from grader.classes.grading import with_locked_engine

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


def _write_results(
    args: argparse.Namespace, ledger: Ledger, course: Course, assignment: Assignment
) -> list[str]:
    """Rewrite the files that other programs read; returns their names."""
    from grader.classes.folder.renamed import removed_stages
    from grader.classes.folder.tables import csv_cell, csv_text, json_line, score_rows
    from grader.classes.folder.unexplained import unexplained
    from grader.classes.report.findings import COLUMNS, findings
    from grader.classes.report.page import class_report
    from grader.classes.report.student import is_short_number
    from grader.learning.hints.ladder import hint_headings
    from grader.read.files import write_pieces
    from grader.show.junit import junit
    from grader.types.text import safe_data

    out: Path = args.out
    removed = removed_stages(ledger.latest(), course)
    shown = replace(assignment, stages=(*assignment.stages, *removed))
    rows = score_rows(ledger.latest(), shown)
    entries = _shuffled(ledger) if args.anonymous else ledger.latest
    alike = _similar(args, ledger, assignment) if args.similar else None
    short = next(filter(is_short_number, (entry.student for entry in ledger.latest())), None)
    if args.anonymous and short is not None:
        complain(
            f"--anonymous: '{short}' is a name and a number that messages need, so it stays in "
            "them: look through report.html before you show it"
        )
    headings = {stage.slug: hint_headings(stage) for stage in assignment.stages}
    others = unexplained(ledger)
    moved = None if args.since is None else _moved(args.since, ledger, course)
    found = list(findings(ledger.latest(), others, headings, moved))
    cells = [["" if v is None else csv_cell(str(v)) for v in row.values()] for row in found]
    pieces = {
        "scores.csv": (csv_text([row], quotes_all=True) for row in rows),
        "results.jsonl": (json_line(entry, assignment) for entry in ledger.latest()),
        "findings.csv": [csv_text([list(COLUMNS), *cells], quotes_all=True)],
        "findings.json": [json.dumps(safe_data(found), indent=1)],
        "report.html": class_report(
            course.title,
            shown,
            entries,
            others,
            alike,
            hints=headings,
            moved=moved,
            skipped=json.loads(ledger.fact(_SKIPPED) or "[]"),
            anonymous=args.anonymous,
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
            "fix that and rerun the command"
        ) from None
    return list(pieces)


def _moved(folder: Path, ledger: Ledger, course: Course) -> Moved | None:
    """How the class changed since the results in another folder; None if no student is in both."""
    from grader.classes.folder.ledger import open_ledger
    from grader.classes.report.moved import moved

    with open_ledger(folder, create=False, course=course) as earlier:
        name = earlier.fact(_ASSIGNMENT) or folder.name
        found = moved(name, earlier.latest(), ledger.latest())
    if found is None:
        complain(f"--since {folder}: no student is in both, so the report does not compare them")
    return found


def _write_lessons(
    args: argparse.Namespace, ledger: Ledger, course: Course, students: Sequence[Found]
) -> list[str]:
    """Write what the class teaches the course's author; returns the names of the files."""
    from grader.classes.for_author.failures import unexplained_failures
    from grader.classes.for_author.hints import hint_use, read_progresses
    from grader.classes.for_author.types import Lessons
    from grader.classes.for_author.writing import markdown, to_json
    from grader.learning.hints.ladder import hint_headings

    progresses = read_progresses(students)
    headings = {stage.slug: hint_headings(stage) for stage in course.stages}
    lessons = Lessons(
        len(ledger.students()),
        unexplained_failures(ledger, course),
        hint_use(course, ledger.latest(), progresses, lambda slug: headings.get(slug, ())),
        len(progresses),
    )
    files = {
        "for-author.md": "".join(markdown(course.title, lessons)),
        "for-author.json": json.dumps(to_json(lessons), indent=1) + "\n",
    }
    for name, text in files.items():
        write_file(args.out / name, text)
    return list(files)


def _similar(args: argparse.Namespace, ledger: Ledger, assignment: Assignment) -> Similar:
    """The answers that are more alike than the stages themselves explain."""
    from grader.classes.report.similarity import Given, similar
    from grader.read.stubs import read_solution, read_stub

    given = [Given(stage, read_stub(stage), read_solution(stage)) for stage in assignment.stages]

    def again(student: str) -> Submission | None:
        entry = ledger.latest_of(student)
        return None if entry is None else ledger.submission(entry.record.content, student)

    def submissions() -> Iterator[tuple[str, Submission]]:
        for entry in ledger.latest():
            submission = ledger.submission(entry.record.content, entry.student)
            if submission is not None:
                yield entry.student, submission

    with status_line(args) as tell:
        tell("comparing the answers")
        return similar(given, submissions(), again)


def _shuffled(ledger: Ledger) -> Callable[[], Iterator[LedgerEntry]]:
    """The current verdicts in a random order, the same at each call, that hides the names."""
    students = ledger.students()
    secrets.SystemRandom().shuffle(students)
    return lambda: filter(None, map(ledger.latest_of, students))


def _file_name(student: str) -> str:
    """A file name for a student: unique, however long the student's name is."""
    name = quote(student, safe=" @+")
    if len(name) <= _NAME_CAP:
        return name
    digest = hashlib.sha256(student.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{name[:_NAME_CAP]}!{digest}"  # nothing that is quoted has a "!"


def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return input("Accept these points? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _why(args: argparse.Namespace, course: Course) -> int:
    """Show a student's verdicts, run the last one again, and write the page for the student."""
    from grader.classes.folder.counted import late_of
    from grader.classes.folder.grading import UNSURE
    from grader.classes.folder.ledger import open_ledger
    from grader.classes.folder.versions import read_version
    from grader.classes.grading import with_locked_engine
    from grader.classes.why.answer import replayed, stored, with_present_failures
    from grader.classes.why.requests import close_name, graded_stages
    from grader.classes.why.screen import history

    with open_ledger(args.out, create=False, course=course) as ledger:
        _expect_course(course, ledger, args.out)
        entries = list(ledger.history(args.why))
        if not entries:
            known = ledger.students()
            raise KitError(f"--why {args.why}: no such student here; {close_name(args.why, known)}")
        last = entries[-1]
        course = _limited(args, course, ledger)
        submission = ledger.submission(last.record.content, last.student)
        late = late_of(_assignment_of(args, course, ledger), last)
    stages = graded_stages(course, last, args.what)
    console(args).print(history(entries, [stage.slug for stage in stages], late), end="")
    if last.report is None or last.report.refusal:
        return 0
    if submission is None:
        raise KitError(UNSURE.format(student=args.why))
    answer = stored(course, entries, stages)
    is_same_version = last.version == read_version(course)
    if is_same_version or args.what:
        code, check = submission, (args.what or "").partition(".")[2]

        def body(engine: Engine) -> Answer:
            if is_same_version:
                return replayed(engine, entries, code, stages, check)
            return with_present_failures(engine, answer, code, stages, check)

        answer = with_locked_engine(course, stages, last.device, body, unlocked=args.unlocked)
    _show_answer(args, course, answer, late)
    return 0


def _show_answer(
    args: argparse.Namespace, course: Course, answer: Answer, late: Late | None
) -> None:
    """Print why the stages have their points, and write the page."""
    from grader.classes.why.page import answer_page
    from grader.classes.why.screen import failure_screen, replay_outcome
    from grader.show.scoreboard import footnotes, scoreboard
    from grader.show.terminal import explanation

    report, student = answer.report, answer.entries[-1].student
    shown = scoreboard(report), explanation(report, every=True), footnotes(report)
    console(args).print(*shown, sep="", end="")
    for failure in answer.failures if args.what else ():
        console(args).print(failure_screen(failure), end="")
        if failure.lines:
            print(f"\n{failure.lines}")  # with no line broken, so that it can be copied
    console(args).print(replay_outcome(answer), end="")
    folder = args.out / "why" / (report.stages[0].slug if args.what else "")
    file = folder / f"{_file_name(student)}.html"
    write_file(file, "".join(answer_page(course.title, answer, late)))
    print(f"  For the student: {short_path(file)}")
    if answer.failures and not args.what:
        slug = answer.failures[0].slug
        print(f"  To see the inputs too, add a stage to the command, such as {slug}")


def _requests(args: argparse.Namespace, course: Course) -> int:
    """Regrade what students ask for, and write a verdict with its reason on each request."""
    from grader.classes.folder.ledger import open_ledger
    from grader.classes.folder.tables import csv_text
    from grader.classes.folder.versions import read_version
    from grader.classes.grading import with_locked_engine
    from grader.classes.why.requests import Verdict, decided, decision_rows, read_requests
    from grader.classes.why.screen import decisions_screen

    requests = read_requests(args.requests)
    with open_ledger(args.out, create=False, course=course) as ledger:
        assignment = _assignment_of(args, course, ledger)
        course = _limited(args, course, ledger)
        version, at_once = read_version(course), lanes(args.jobs)
        with progress_bar(args, assignment.name, len(requests)) as advance:
            decisions = with_locked_engine(
                course,
                assignment.stages,
                args.device,
                lambda engine: decided(
                    engine, ledger, version, assignment.stages, requests, at_once, advance
                ),
                unlocked=args.unlocked,
            )
    file = args.out / "decisions.csv"
    write_file(file, csv_text(list(decision_rows(decisions)), quotes_all=True))
    console(args).print(decisions_screen(decisions, short_path(file)), end="")
    return 0 if all(each.verdict is Verdict.STANDS for each in decisions) else 1


def _nbgrader(args: argparse.Namespace, course: Course) -> int:
    """Grade, print notes and a summary; 0 unless a person has to look at a cell."""
    from grader.classes.grading import NbgraderClass, with_locked_engine
    from grader.classes.nbgrader.gradebook import keep_seed
    from grader.classes.screen import summary

    if args.what is None:
        raise KitError("name the assignment: `grade class --nbgrader DIR ASSIGNMENT`")
    course = _limited(args, course)
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
    console(args).print(summary(args.what, results, seed, work.others), end="")
    return 1 if any(result.points is None for result in results) else 0
