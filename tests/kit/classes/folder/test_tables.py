"""What other programs read of a class."""

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from grader.classes.folder.tables import cell_text, csv_cell, json_line, score_rows
from grader.classes.folder.types import LedgerEntry, SubmissionRecord, Version
from grader.types.course import Assignment, LateRule, Stage
from grader.types.report import REFUSED, CheckResult, Outcome, Report, StageResult, Status

STAGES = tuple(Stage(slug, slug, 5, False, (), (), Path()) for slug in ("fold", "wings"))
BIRDS = Assignment("birds", STAGES)
RESULT = StageResult("fold", "Fold", Status.PASSED, 2.5, 5, False, ())
REPORT = Report("birds", "ann", "cpu", 2.5, 10, 1, (RESULT,), ("seed 7",))
WHEN = datetime(2026, 1, 5, tzinfo=timezone.utc)
ENTRY = LedgerEntry(
    SubmissionRecord("ann", "c"), Version("e", {"fold": "1"}), 7, "cpu", REPORT, WHEN, 0.5
)


def row(entry: LedgerEntry, assignment: Assignment = BIRDS) -> dict[str, str]:
    names, values = score_rows([entry], assignment)
    return dict(zip(names, values, strict=True))


def test_a_row_has_the_points_in_all_and_in_each_stage() -> None:
    found = row(ENTRY)
    assert (found["student_id"], found["score"], found["max_score"]) == ("ann", "2.5", "10")
    assert (found["bonus"], found["fold"], found["wings"]) == ("1", "2.5", "")
    assert (found["seed"], found["status"]) == ("7", "passed")


@pytest.mark.parametrize(
    "bonus, statuses, says",
    [
        ((False, True), (Status.PASSED, Status.FAILED), "passed"),
        ((False, True), (Status.FAILED, Status.PASSED), "not yet"),
        ((True, True), (Status.PASSED, Status.PASSED), "passed"),
        ((True, True), (Status.PASSED, Status.NOT_STARTED), "not yet"),
    ],
)
def test_bonus_stages_decide_only_where_there_is_no_other(
    bonus: tuple[bool, ...], statuses: tuple[Status, ...], says: str
) -> None:
    stages = tuple(
        replace(RESULT, bonus=is_bonus, status=status)
        for is_bonus, status in zip(bonus, statuses, strict=True)
    )
    assert row(replace(ENTRY, report=replace(REPORT, stages=stages)))["status"] == says


def test_nothing_to_grade_is_no_points_and_what_nobody_knows_an_empty_cell() -> None:
    check = CheckResult(f"fold.{REFUSED}", "Read", Outcome.FAILED, 0, 5, "Not JSON.")
    stages = (replace(RESULT, status=Status.FAILED, score=0, checks=(check,)),)
    unread = replace(ENTRY, report=replace(REPORT, score=0, stages=stages))
    assert (row(unread)["score"], row(unread)["status"]) == ("0", "nothing to grade")
    lost = replace(ENTRY, report=None, record=SubmissionRecord("ann", "", ("Lost.",)))
    found = row(lost)
    assert (found["score"], found["status"], found["notes"]) == ("", "by hand", "Lost.")


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=1+1\x1b[2J", "'=1+1\\x1b[2J"),
        ("\uff1d1+1", "'\uff1d1+1"),
        (" =1+1", "' =1+1"),
        ("\xa0@SUM(1)", "'\xa0@SUM(1)"),
    ],
)
def test_a_name_is_no_formula_of_a_spreadsheet_and_moves_no_cursor(name: str, cell: str) -> None:
    assert row(replace(ENTRY, record=SubmissionRecord(name, "c")))["student_id"] == cell


def test_no_two_names_give_one_cell() -> None:
    names = ["=1", "'=1", "''=1", " =1", "' =1", "'a", "a", "\t1", "-1", "'-1"]
    cells = [csv_cell(name) for name in names]
    assert len(set(cells)) == len(names)
    assert [cell_text(cell) for cell in cells] == names


def test_a_line_of_json_holds_what_the_verdict_depends_on() -> None:
    line = json_line(ENTRY, BIRDS)
    assert line.count("\n") == 1 and line.endswith("\n")
    found = json.loads(line)
    assert (found["student"], found["seed"], found["engine"]) == ("ann", 7, "e")
    assert found["stages"] == {"fold": "1"} and found["report"]["score"] == 2.5
    assert found["notes"] == ["seed 7"]


def test_a_late_submission_loses_a_share_of_its_points_and_both_numbers_are_there() -> None:
    due = datetime(2026, 10, 30, tzinfo=timezone.utc)
    rule = LateRule(per_day=0.1)
    assignment = Assignment("birds", STAGES, due, {"bob": due + timedelta(days=9)}, rule)
    when = due + timedelta(days=2)
    ann, bob = (replace(ENTRY, record=SubmissionRecord(n, "c", (), when)) for n in ("ann", "bob"))
    found = row(ann, assignment)
    assert (found["score"], found["bonus"], found["late_penalty"]) == ("2", "0.8", "0.7")
    assert (found["fold"], found["submitted"]) == ("2.5", "2026-11-01T00:00:00+00:00")
    data = json.loads(json_line(ann, assignment))
    assert (data["late_penalty"], data["seconds_late"]) == (0.7, 2 * 86_400)
    assert data["report"]["score"] == 2.5  # the verdict is about the code
    found = row(bob, assignment)
    assert (found["score"], found["bonus"], found["late_penalty"]) == ("2.5", "1", "0")


def test_without_a_core_stage_the_bonus_stages_are_what_counts() -> None:
    only = replace(RESULT, bonus=True)
    report = replace(REPORT, score=0, max_score=0, bonus=2.5, stages=(only,))
    found = row(replace(ENTRY, report=report))
    assert (found["score"], found["max_score"], found["bonus"]) == ("2.5", "5", "0")
