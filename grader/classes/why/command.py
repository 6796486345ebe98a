"""Shows why a student has these points, and decides requests to look again."""

from __future__ import annotations

import argparse
import shlex

from grader.classes.folder.counted import late_of
from grader.classes.folder.csv_files import csv_text
from grader.classes.folder.ledger import open_ledger
from grader.classes.folder.results import file_names
from grader.classes.folder.settings import assignment_of, expect_course, limited
from grader.classes.folder.students import student_name
from grader.classes.folder.versions import read_version
from grader.classes.grading import with_locked_engine
from grader.classes.late import Late
from grader.classes.progress_bar import progress_bar
from grader.classes.why.answer import Answer, replayed, stored, with_present_failures
from grader.classes.why.page import answer_page
from grader.classes.why.requests import (
    Verdict,
    close_name,
    decided,
    decision_rows,
    graded_stages,
    read_requests,
)
from grader.classes.why.screen import (
    decisions_screen,
    every_reason,
    failure_screen,
    history,
    overview,
    replay_outcome,
)
from grader.command.grade import lanes
from grader.command.output import console, short_path, write_file
from grader.engine import Engine
from grader.read.files import free_name
from grader.show.scoreboard import footnotes, scoreboard
from grader.types.course import Course
from grader.types.errors import KitError, writing


def why(args: argparse.Namespace, course: Course) -> int:
    """Show a student's verdicts, run the last one again, and write the page for the student."""
    student = student_name(args.why)
    with open_ledger(args.out, create=False, course=course) as ledger:
        expect_course(course, ledger, args.out)
        entries = list(ledger.history(student))
        if not entries:
            known = ledger.students()
            raise KitError(f"--why {student}: no such student here; {close_name(student, known)}")
        last = entries[-1]
        course = limited(args, course, ledger)
        has_report = last.report is not None and not last.report.refusal
        submission = ledger.submission(last) if has_report else None
        late = late_of(assignment_of(args, course, ledger), last)
        name = file_names(ledger.students())[last.student]
    stages = graded_stages(course, last, args.what)
    console(args).print(
        history(entries, [stage.slug for stage in stages], late, course.zone), end=""
    )
    if submission is None:
        return 0
    answer = stored(course, entries, stages)
    is_same_version = last.version == read_version(course)
    if is_same_version or args.what:
        code, check = submission, (args.what or "").partition(".")[2]

        def body(engine: Engine) -> Answer:
            if is_same_version:
                return replayed(engine, entries, code, stages, check)
            return with_present_failures(engine, answer, code, stages, check)

        answer = with_locked_engine(course, stages, last.device, body, unlocked=args.unlocked)
    _show_answer(args, course, answer, late, name)
    return 0


def _show_answer(
    args: argparse.Namespace, course: Course, answer: Answer, late: Late | None, name: str
) -> None:
    """Write the page, and print why the stages have their points."""
    report, student = answer.report, answer.entries[-1].student
    folder = args.out / "why" / (report.stages[0].slug if args.what else "")
    file = folder / f"{name}.html"
    write_file(
        file, "".join(answer_page(course.title, answer, late, course.zone))
    )  # first: a pager may end early
    command = f"grade class --out {shlex.quote(short_path(args.out))} --why={shlex.quote(student)}"
    why = every_reason(report) if args.what else overview(report, command)
    console(args).print(scoreboard(report), why, footnotes(report), sep="", end="")
    for failure in answer.failures if args.what else ():
        console(args).print(failure_screen(failure), end="")
        if failure.lines:
            print(f"\n{failure.lines}")  # with no line broken, so that it can be copied
    console(args).print(replay_outcome(answer), end="")
    print(f"  For the student: {short_path(file)}")


def decide(args: argparse.Namespace, course: Course) -> int:
    """Regrade what students ask for, and write a verdict with its reason on each request."""
    requests = read_requests(args.requests)
    with open_ledger(args.out, create=False, course=course) as ledger:
        assignment = assignment_of(args, course, ledger)
        course = limited(args, course, ledger)
        version, at_once = read_version(course), lanes(args.jobs)
        with progress_bar(args, assignment.name, len(requests)) as advance:
            decisions = with_locked_engine(
                course,
                assignment.stages,
                args.device,
                lambda engine: decided(
                    engine, ledger, version, assignment, requests, at_once, advance
                ),
                unlocked=args.unlocked,
            )
    file = args.out / "decisions.csv"
    text = csv_text(list(decision_rows(decisions)), quotes_all=True)
    earlier = ""
    with writing(file):
        if file.is_file() and file.read_bytes() != text.encode():
            kept = free_name(file)
            file.replace(kept)
            earlier = short_path(kept)
        write_file(file, text)
    console(args).print(decisions_screen(decisions, short_path(file), earlier), end="")
    return 0 if all(each.verdict is Verdict.STANDS for each in decisions) else 1
