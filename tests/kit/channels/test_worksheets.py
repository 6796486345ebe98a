"""Scores in the tables that Moodle and Blackboard exported.

What is demanded of the result is what assignfeedback_offline/importgradeslib.php of Moodle reads,
and what Blackboard's help on "Work offline" asks for: quotes around each cell between commas, and
none between tabs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.channels.worksheets import blackboard_import, moodle_import
from grader.command.main import main
from grader.types.errors import KitError
from tests.kit.support.tiny import Capture

WORKSHEET = [
    [
        *("Identifier", "Full name", "ID number", "Email address", "Status", "Grade"),
        *("Maximum Grade", "Grade can be changed", "Last modified (grade)", "Feedback comments"),
    ],
    ["Participant 71", "=Ada", "s1", "Ada@x.org", "", "", "100.00", "Yes", "-", ""],
    ["Participant 72", "Bob", "s2", "bob@x.org", "", "3.00", "100.00", "Yes", "Monday, 2026", "Hi"],
    ["Participant 73", "Cyn", "", "cyn@x.org", "", "", "100.00", "No", "-", ""],
    ["Participant 74", "Dee", "s4", "", "", "9", "100.00", "Yes", "-", ""],
]
HEADS = "Heads [Total Pts: 5 Score] |77"
BOOK = [
    ["Last Name", "First Name", "Username", "Student ID", HEADS, "A [x] |8"],
    ["Byron", "Ada", "ada", "s1", "", "1"],
    ["Doe", "@Bob", "bob", "s2", "4", "2"],
    ["Doe", "Cyn", "cyn", "", "", ""],
]


def test_moodle_gets_the_columns_that_it_reads_and_only_students_with_a_score() -> None:
    scores = {"ada@x.org": 87.456, "S2": 0.0, "cyn@x.org": 1.0, "zed": 5.0}
    found = moodle_import(WORKSHEET, scores)
    assert [list(row) for row in found.rows] == [
        ["Identifier", "Grade", "Last modified (grade)"],
        ["Participant 71", "87.46", "-"],
        ["Participant 72", "0", "Monday, 2026"],
    ]
    assert (found.given, found.points_possible) == (2, "100.00")
    assert found.excused == ("Cyn (Participant 73)",)
    assert found.without_score == ("Dee (Participant 74)",)
    assert found.without_student == ("zed",)


def test_moodle_knows_the_names_of_its_own_downloads() -> None:
    found = moodle_import(WORKSHEET, {"Ada_71": 1.0, "Dee Doe_74": 2.0, "Eve_99": 3.0})
    assert [row[:2] for row in found.rows[1:]] == [("Participant 71", "1"), ("Participant 74", "2")]
    assert found.without_student == ("Eve_99",)


def test_blackboard_gets_the_username_and_the_one_column() -> None:
    found = blackboard_import(BOOK, {"ADA": 4.5, "s2": 5.0, "zed": 1.0}, "Heads")
    assert list(found.rows) == [("Username", HEADS), ("ada", "4.5"), ("bob", "5")]
    assert found.points_possible == "5" and found.without_student == ("zed",)
    assert found.without_score == ("Cyn Doe (cyn)",)
    assert blackboard_import(BOOK, {"ada": 1.0}, HEADS).column == HEADS


def test_blackboard_knows_the_names_of_its_own_downloads() -> None:
    book = [*BOOK, ["Lee", "Sam", "x_ada", "s5", "", ""]]
    names = {"Home_work_ada": 1.0, "Home_work_x_ada": 2.0, "a_cyn": 3.0, "b_cyn": 4.0, "bob": 5.0}
    found = blackboard_import(book, names, "Heads")
    assert list(found.rows[1:]) == [("ada", "1"), ("bob", "5"), ("x_ada", "2")]
    assert found.without_student == ("a_cyn", "b_cyn")


@pytest.mark.parametrize("fill", [moodle_import, blackboard_import])
def test_a_table_from_elsewhere_is_refused(fill: object) -> None:
    assert callable(fill)
    for table in ([], [[]], [["Student", "ID"]], [["Username"]], [["Username", "a", "a"]]):
        with pytest.raises(KitError, match=r"the roster: |has no such column"):
            fill(table, {"ada": 1.0}, "Heads")


@pytest.mark.parametrize(
    ("assignment", "said"), [("Hands", "did you mean 'Heads'"), ("B", "it has: Heads, A")]
)
def test_a_column_that_is_not_there_is_named(assignment: str, said: str) -> None:
    with pytest.raises(KitError, match=said):
        blackboard_import(BOOK, {}, assignment)
    twice = [[*BOOK[0], "Heads [y] |9"]]
    with pytest.raises(KitError, match="has several: name one of 'Heads "):
        blackboard_import(twice, {}, "Heads")


def test_one_score_for_two_students_is_refused() -> None:
    with pytest.raises(KitError, match="'ada' is the name of two students"):
        blackboard_import([*BOOK, ["", "", "x", "ADA", "", ""]], {"ada": 1.0}, "Heads")


def test_the_command_reads_blackboards_wide_tabs_and_says_where_to_upload(
    tmp_path: Path, capsys: Capture
) -> None:
    roster, scores, out = (tmp_path / name for name in ("book.xls", "scores.csv", "out.csv"))
    roster.write_text("\n".join("\t".join(row) for row in BOOK), encoding="utf-16")
    scores.write_text("student_id,score,max_score\nada,4,10\n", encoding="utf-8")
    words = ["--roster", str(roster), "--scores", str(scores), "--out", str(out)]
    assert main(["release", "blackboard", *words, "--assignment", "Heads"]) == 0
    assert out.read_text("utf-8").splitlines()[1] == "ada\t4"
    said = " ".join(capsys.readouterr().out.split())
    assert "with 1 score in 'Heads [Total Pts: 5 Score] |77'. In Blackboard: the gradebook" in said
    assert "out of 10, but Blackboard has 5 points possible" in said
    roster.write_text("\n".join(",".join(row) for row in BOOK), encoding="utf-8")
    assert main(["release", "blackboard", *words, "--assignment", "Heads"]) == 0
    assert out.read_text("utf-8").splitlines()[1] == '"ada","4"'
    roster.write_text("Identifier,Grade,Last modified (grade)\nParticipant 7,,-\n", "utf-8")
    scores.write_text("student_id,score\nada_7,4\n", encoding="utf-8")
    assert main(["release", "moodle", *words]) == 0
    assert out.read_text("utf-8").splitlines()[1] == "Participant 7,4,-"
