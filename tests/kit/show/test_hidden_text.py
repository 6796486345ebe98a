"""No channel hands on a character that hides or turns text, whoever has chosen the text."""

import json
import os
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

from grader.channels import gradescope
from grader.classes.folder.csv_files import csv_text
from grader.classes.folder.ledger import open_ledger
from grader.classes.folder.screen import class_summary, differences_screen
from grader.classes.folder.students import read_student, read_students
from grader.classes.folder.tables import json_line, score_rows
from grader.classes.folder.types import LedgerEntry, SubmissionRecord, Version
from grader.classes.nbgrader import feedback as grade_cells
from grader.classes.nbgrader.screen import summary
from grader.classes.nbgrader.types import Graded
from grader.classes.report import page as class_report
from grader.classes.why.answer import Answer, Failure
from grader.classes.why.page import answer_page
from grader.classes.why.requests import Asked, Decision, Verdict, decision_rows
from grader.classes.why.screen import decisions_screen, failure_screen, history
from grader.learning.notebook import screen as notebook
from grader.read.course_file import parse_course
from grader.show import html, junit, scoreboard, terminal
from grader.show.screen import Screen
from grader.types.course import Course, Limits
from grader.types.report import (
    CheckResult,
    Diagnosis,
    Outcome,
    Report,
    StageResult,
    Status,
    from_json,
    to_json,
)
from grader.types.text import safe
from tests.kit.support.drawn import draw
from tests.kit.support.tiny import Typed

LETTERS = (
    *("\x1b[31m", "\x9b31m"),  # escape codes, of which the second has eight bits
    *"\0\a\r\x7f\x85",  # a null, a bell, a carriage return, delete, a next line
    *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",  # which turn text, and back
    *"\u200e\u200f\u061c",  # marks: left to right, right to left, an Arabic letter
    *"\u200b\u200d\u2060\xad\ufeff",  # what has no width
    *"\u2028\u2029",  # separators of lines and paragraphs
    *("\U000e0041", "\ud800", "\udcff"),  # a tag, half a character, a byte that is no UTF-8
)
COURSE_DATA = {
    "schema": 1,
    "name": "birds",
    "title": "Birds",
    "stages": [{"slug": "fold", "title": "Fold", "points": 5, "entry_points": {"fold": "number"}}],
}


def course() -> Course:
    return parse_course(COURSE_DATA, Path())


BIRDS = course().assignments[0]


def entry(letter: str) -> LedgerEntry:
    """A verdict with the letter in every text that a student or their code can choose."""
    said = f"a{letter}b"
    check = CheckResult(
        "fold.x", said, Outcome.FAILED, 0, 2, f"{said}\n  got  {said}", Diagnosis("half", said, 1)
    )
    late = CheckResult("fold.y", said, Outcome.TIMEOUT, 0, 1, said)
    none = CheckResult("fold.z", said, Outcome.SKIPPED, 0, 1, said)
    error = CheckResult("fold.e", said, Outcome.ERROR, 0, 1, said)
    stage = StageResult("fold", "Fold", Status.FAILED, 1, 5, False, (check, late, none), None, said)
    broken = StageResult("tail", "Tail", Status.ERROR, 0, 5, False, (error,), None, said)
    report = Report("birds", said, "cpu", 1, 10, 0, (stage, broken), (said,))
    when = datetime(2026, 1, 5, tzinfo=timezone.utc)
    return LedgerEntry(
        SubmissionRecord(said, "c", (said,)), Version("e", {"fold": "1"}), 7, "cpu", report, when
    )


def drawn(screen: Screen) -> str:
    return draw(screen, 100, color_system=None)


def report_of(letter: str) -> Report:
    report = entry(letter).report
    assert report is not None
    return report


def _gradescope(letter: str) -> str:
    report = report_of(letter)
    report = Report(**{**vars(report), "stages": report.stages[:1]})
    told = [f"a{letter}b"]
    found = gradescope.results(report, course(), next(iter(gradescope.WHEN)), 1, told)
    return "".join(_strings(found))


def _strings(data: object) -> list[str]:
    """Every text in JSON data, as whoever parses it gets it."""
    if isinstance(data, dict):
        return [text for pair in data.items() for each in pair for text in _strings(each)]
    if isinstance(data, list):
        return [text for each in data for text in _strings(each)]
    return [data] if isinstance(data, str) else []


def _page(letter: str) -> str:
    entries = [entry(letter), entry(letter)]
    return "".join(
        class_report.class_report("Birds", course().assignments[0], lambda: iter(entries))
    )


def _difference(letter: str) -> str:
    before, after = entry(letter), entry("")
    return drawn(differences_screen(1, [(before, after)]))


def _cells(letter: str) -> str:
    stage = report_of(letter).stages[0]
    shown = grade_cells.unreadable_verdict([("fold", "fold-code", 5.0)], [f"a{letter}b"])
    return grade_cells.comment(stage) + repr(shown).replace("\\\\", "\\")


def failure(letter: str) -> Failure:
    """A failing check whose every text has the letter in it."""
    word = f"a{letter}b"
    return Failure(word, word, why_not=word, inputs=((word, word),))


def decision(letter: str) -> Decision:
    """A decision on a request whose every text has the letter in it."""
    word = f"a{letter}b"
    return Decision(Asked(word, word, word), Verdict.CHECK, word)


CHANNELS: dict[str, Callable[[str], str]] = {
    "results.jsonl": lambda letter: json_line(entry(letter), BIRDS),
    "results.jsonl, parsed": lambda x: "".join(_strings(json.loads(json_line(entry(x), BIRDS)))),
    "--json, parsed": lambda letter: "".join(_strings(to_json(report_of(letter)))),
    "scores.csv": lambda x: csv_text([*score_rows([entry(x)], BIRDS)], quotes_all=True),
    "report.html": _page,
    "junit": lambda letter: junit.junit(report_of(letter)),
    "gradescope": _gradescope,
    "gradescope, refused": lambda x: "".join(_strings(gradescope.refusal(f"a{x}b", 1))),
    "the page of a verdict": lambda letter: html.verdict_html(report_of(letter), {}),
    "the page of a scoreboard": lambda letter: html.scoreboard_html(report_of(letter), {}),
    "nbgrader's feedback": lambda x: grade_cells.feedback_html(
        report_of(x), report_of(x).stages[0]
    ),
    "nbgrader's comment": _cells,
    "a notebook's text": lambda letter: drawn(notebook.verdict(report_of(letter), {})),
    "the scoreboard": lambda letter: drawn(scoreboard.scoreboard(report_of(letter))),
    "why a stage fails": lambda x: drawn(terminal.explanation(report_of(x), every=True)),
    "the notes": lambda letter: drawn(scoreboard.footnotes(report_of(letter))),
    "the class": lambda x: drawn(
        class_summary(BIRDS, [entry(x)], 1, 0, [f"a{x}b is a link."], x, [f"a{x}b"], Limits())
    ),
    "a class of nbgrader's": lambda x: drawn(
        summary("birds", [Graded(f"a{x}b", 1, 2, (f"a{x}b",))], 7)
    ),
    "a regrade": _difference,
    "--why": lambda letter: drawn(history([entry(letter), entry(letter)], ["birds"])),
    "--why of a stage": lambda x: drawn(failure_screen(failure(x))),
    "--why as a page": lambda x: "".join(
        answer_page("birds", Answer([entry(x)] * 2, report_of(x), True, (failure(x),)))
    ),
    "the decisions": lambda x: drawn(decisions_screen([decision(x)], f"a{x}b", f"a{x}c")),
    "decisions.csv": lambda x: csv_text(list(decision_rows([decision(x)]))),
}


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
def test_nothing_hidden_is_handed_on(channel: Callable[[str], str]) -> None:
    shown = {ascii(letter): channel(letter) for letter in LETTERS}
    assert {name: text for name, text in shown.items() if safe(text) != text} == {}
    "".join(shown.values()).encode()


@pytest.mark.parametrize("letter", LETTERS, ids=ascii)
def test_the_ledger_keeps_any_text_and_hands_on_none_that_is_hidden(
    letter: str, tmp_path: Path
) -> None:
    report = report_of(letter)
    with open_ledger(tmp_path, create=True) as ledger:
        ledger.add(LedgerEntry(**{**vars(entry("")), "report": report}), None)
        (found,) = ledger.latest()
    assert from_json(to_json(report)).stages == found.report.stages
    assert all(safe(text) == text for text in _strings(to_json(found.report)))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
@pytest.mark.parametrize("letter", [*LETTERS, "\n", "\t"], ids=ascii)
def test_a_student_is_called_by_a_name_that_can_be_seen(letter: str, tmp_path: Path) -> None:
    if letter in ("\0", "\ud800"):
        pytest.skip("no file can have such a name")
    for name in (f"a{letter}b", f"a{letter}c.py", f"a{letter}d.txt", f"e{letter}_7_8_fold.py"):
        (tmp_path / name).mkdir() if "." not in name else (tmp_path / name).write_text("")
    os.symlink(tmp_path, tmp_path / f"a{letter}l")
    students, odd = read_students(tmp_path, course().assignments[0])
    names = [found.student for found in students]
    assert len(names) >= 3
    for text in [*names, *odd]:
        assert safe(text) == text and not {"\n", "\t"} & set(text)
    for found in students:
        record, _ = read_student(found, course().assignments[0])
        assert all(safe(note) == note for note in record.notes)


@pytest.mark.parametrize("letter", LETTERS, ids=ascii)
def test_an_error_on_the_terminal_hides_nothing(letter: str, refused: Typed) -> None:
    if letter == "\0":
        pytest.skip("no word of a command line can hold it")
    said = refused("--course", f"a{letter}b").removesuffix("\n")
    assert safe(said) == said
