"""Writes what a class's results hold for people and for other programs."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from grader.classes.folder.csv_files import csv_text
from grader.classes.folder.ledger import Ledger, open_ledger
from grader.classes.folder.renamed import removed_stages
from grader.classes.folder.settings import ASSIGNMENT, SKIPPED
from grader.classes.folder.students import Found
from grader.classes.folder.tables import csv_cell, json_line, score_rows
from grader.classes.folder.types import LedgerEntry
from grader.classes.folder.unexplained import unexplained
from grader.classes.for_author.failures import unexplained_failures
from grader.classes.for_author.hints import hint_use, read_progresses
from grader.classes.for_author.types import Lessons
from grader.classes.for_author.writing import markdown, to_json
from grader.classes.report.findings import COLUMNS, findings
from grader.classes.report.moved import Moved, moved
from grader.classes.report.page import class_report
from grader.classes.report.similarity import Given, similar
from grader.classes.report.student import is_short_number
from grader.classes.report.types import Similar
from grader.command.output import complain, status_line, write_file
from grader.learning.hints.ladder import hint_headings
from grader.read.files import write_pieces
from grader.read.stubs import read_solution, read_stub
from grader.show.junit import junit
from grader.types.course import Assignment, Course
from grader.types.errors import KitError
from grader.types.submission import Submission
from grader.types.text import safe_data

_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)\s*(\.|$)", re.IGNORECASE)
_NAME_CAP = 180  # of the 255 bytes that a file's name may have; a digest takes 64


def write_results(
    args: argparse.Namespace, ledger: Ledger, course: Course, assignment: Assignment
) -> list[str]:
    """Rewrite the files that other programs read; returns their names."""
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
            skipped=json.loads(ledger.fact(SKIPPED) or "[]"),
            anonymous=args.anonymous,
            zone=course.zone,
        ),
    }
    try:
        if args.junit:
            (out / "junit").mkdir(exist_ok=True)
            named = file_names(ledger.students())
            for entry in ledger.latest():
                if entry.report is not None:
                    name = f"junit/{named[entry.student]}.xml"
                    write_pieces(out / name, [junit(entry.report)])
        for name, text in pieces.items():
            write_pieces(out / name, text)
    except OSError as error:
        raise KitError(
            f"{error.filename or out}: cannot be written: {error.strerror}; no verdict is lost: "
            "fix that and rerun the command"
        ) from None
    return [*pieces, *(["junit/"] if args.junit else [])]


def _moved(folder: Path, ledger: Ledger, course: Course) -> Moved | None:
    """How the class changed since the results in another folder; None if no student is in both."""
    with open_ledger(folder, create=False, course=course) as earlier:
        name = earlier.fact(ASSIGNMENT) or folder.name
        found = moved(name, earlier.latest(), ledger.latest())
    if found is None:
        complain(f"--since {folder}: no student is in both, so the report does not compare them")
    return found


def write_lessons(
    args: argparse.Namespace, ledger: Ledger, course: Course, students: Sequence[Found]
) -> list[str]:
    """Write what the class teaches the course's author; returns the names of the files."""
    progresses = read_progresses(students)
    headings = {stage.slug: hint_headings(stage) for stage in course.stages}
    lessons = Lessons(
        len(ledger.students()),
        unexplained_failures(ledger, course),
        hint_use(course, ledger.latest(), progresses, headings),
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
    given = [Given(stage, read_stub(stage), read_solution(stage)) for stage in assignment.stages]

    def again(student: str) -> Submission:
        entry = ledger.latest_of(student)
        assert entry is not None
        return ledger.submission(entry)

    def submissions() -> Iterator[tuple[str, Submission]]:
        for entry in ledger.latest():
            if not entry.is_refused:
                yield entry.student, ledger.submission(entry)

    with status_line(args) as tell:
        tell("comparing the answers")
        return similar(given, submissions(), again)


def _shuffled(ledger: Ledger) -> Callable[[], Iterator[LedgerEntry]]:
    """The current verdicts in a random order, the same at each call, that hides the names."""
    students = ledger.students()
    secrets.SystemRandom().shuffle(students)
    return lambda: filter(None, map(ledger.latest_of, students))


def file_names(students: Iterable[str]) -> dict[str, str]:
    """The start of a file's name for each student.

    It is unique however long the students' names are, also on a file system that ignores case.
    It is never a name that Windows reserves, such as CON.
    """
    names = {student: quote(student, safe=" @+") for student in students}
    taken = Counter(map(str.lower, names.values()))
    for student, name in names.items():
        if len(name) > _NAME_CAP or taken[name.lower()] > 1 or _DEVICE.match(name):
            digest = hashlib.sha256(student.encode("utf-8", "surrogateescape")).hexdigest()
            names[student] = f"{name[:_NAME_CAP]}!{digest}"  # nothing that is quoted has a "!"
    return names
