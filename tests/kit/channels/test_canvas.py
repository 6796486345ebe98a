"""Scores in the table that Canvas exported.

The tables are written as lib/gradebook_exporter.rb of instructure/canvas-lms writes them, and what
is demanded of the result is what its lib/gradebook_importer.rb reads.
"""

from __future__ import annotations

import csv
import io

import pytest

from grader.channels.canvas import canvas_import
from grader.channels.points import PointsImport
from grader.classes.folder.tables import csv_text
from grader.types.errors import KitError

HEADER = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
NO_FIVE = ["", "", "", ""]
ROSTER = [
    [*HEADER, "Notes", "Heads (77)", "Heads (78)", "Essay (1) (80)", "Final Score"],
    ["", *NO_FIVE, "", "Manual Posting", "", "", ""],
    ["    Points Possible", *NO_FIVE, "", "100", "5", "10", "(read only)"],
    ["Byron, Ada", "11", "s1", "Ada@X.org", "A and B", "shy", "", "", "9", "80"],
    ['="=HYPERLINK(1)"', "12", "s2", "bob", "A", "", "3", "", "", ""],
    ["@SUM, +1", "13", "s3", "cyn", "A", "", "EX", "", "", ""],
    ["Dee", "14", "s4", "dee", "A", "", "N/A", "", "", ""],
    ["Student, Test", "15", "", "b41c", "A", "", "", "", "", ""],
]
SCORES = {"ada@x.org": 87.456, "bob": 0, "cyn": 50, "zed": 1}


def done(assignment: str = "Heads (77)", **scores: float) -> PointsImport:
    return canvas_import(ROSTER, scores or SCORES, assignment)


def test_only_the_students_columns_and_the_chosen_one_are_there_in_canvas_order() -> None:
    assert [list(row) for row in done().rows] == [
        [*HEADER, "Heads (77)"],
        ["", *NO_FIVE, "Manual Posting"],
        ["    Points Possible", *NO_FIVE, "100"],
        ["Byron, Ada", "11", "s1", "Ada@X.org", "A and B", "87.46"],
        ['="=HYPERLINK(1)"', "12", "s2", "bob", "A", "0"],
        ["@SUM, +1", "13", "s3", "cyn", "A", "EX"],
        ["Dee", "14", "s4", "dee", "A", "N/A"],
        ["Student, Test", "15", "", "b41c", "A", ""],
    ]


def test_who_has_no_score_and_which_score_has_no_student_is_told() -> None:
    found = done()
    assert found.given == 2
    assert found.without_score == ("Student, Test (b41c)",)
    assert found.excused == ("@SUM, +1 (cyn)", "Dee (dee)")
    assert found.without_student == ("zed",)
    assert (found.column, found.points_possible) == ("Heads (77)", "100")


def test_a_name_that_is_no_login_may_end_in_canvas_own_number() -> None:
    found = done(byronada_11=7.0, bob=5.0, x_12=6.0, y_99=1.0)
    assert [row[-1] for row in found.rows[3:5]] == ["7", "5"]
    assert found.without_student == ("x_12", "y_99")


def test_nobody_gets_points_by_a_number_that_several_names_end_in() -> None:
    found = done(byronada_11=7.0, eve_1_x_11=0.0)
    assert found.given == 0
    assert found.without_student == ("byronada_11", "eve_1_x_11")


def test_a_login_is_taken_for_no_number() -> None:
    roster = [*ROSTER, ["Eve", "16", "s6", "eve_14", "A", "", "", "", "", ""]]
    found = canvas_import(roster, {"eve_14": 3.0}, "Heads (78)")
    assert [row[-1] for row in found.rows[-3:]] == ["", "", "3"]


def test_no_student_is_ever_dropped_and_a_cell_without_a_score_stays() -> None:
    found = done("Essay (1)", nobody=1.0)
    assert [row[0] for row in found.rows[2:]] == [row[0] for row in ROSTER[3:]]
    assert found.column == "Essay (1) (80)"
    assert found.rows[2][-1] == "9"


def test_a_row_that_says_nothing_of_the_chosen_assignment_is_left_out() -> None:
    assert done("Heads (78)").rows[1][0] == "    Points Possible"


def test_names_reach_the_file_as_canvas_gave_them() -> None:
    text = csv_text(done().rows)
    assert '"=""=HYPERLINK(1)"""' in text
    assert [tuple(row) for row in csv.reader(io.StringIO(text))] == list(done().rows)
    assert csv_text([["Byron, Ada", "1;2"]], ";") == 'Byron, Ada;"1;2"\n'


@pytest.mark.parametrize(
    "header, columns",
    [
        (["Student", "ID", "SIS Login ID", "Section"], 4),
        (["\ufeffStudent", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Section"], 6),
        (["LastName", "FirstName", "ID", "SIS Login ID", "Section"], 5),
        (["Student", "ID", "SIS User ID", "SIS Login ID", "Root Account", "Section"], 6),
    ],
)
def test_the_columns_about_students_that_canvas_knows(header: list[str], columns: int) -> None:
    place = header.index("SIS Login ID")
    row = ["x"] * len(header)
    row[place] = "ada"
    table = [[*header, "Heads (77)"], [*row, ""]]
    rows = canvas_import(table, {"ada": 7}, "Heads").rows
    assert rows[0] == (*(name.removeprefix("\ufeff") for name in header), "Heads (77)")
    assert rows[1][columns] == "7"


def test_short_rows_are_students_too() -> None:
    rows = canvas_import([[*HEADER, "Heads (77)"], ["Ada", "1", "", "ada"]], {"ada": 7}, "Heads")
    assert rows.rows[1] == ("Ada", "1", "", "ada", "", "7")


@pytest.mark.parametrize(
    "roster, scores, assignment, fault",
    [
        ([], {}, "Heads", "is not a gradebook exported from Canvas"),
        ([["Student", "ID", "Section"]], {}, "Heads", "lacks 'ID', 'SIS Login ID' or 'Section'"),
        (ROSTER, {}, "Heads", r"has several: name one of 'Heads \(77\)', 'Heads \(78\)'"),
        (ROSTER, {}, "Esay (1)", "no such column; did you mean 'Essay \\(1\\)'"),
        (ROSTER, {}, "Final Score", "the roster has no such column; it has: Heads, Heads, Essay"),
        ([HEADER], {}, "Heads", "create the assignment in Canvas and export again"),
        ([*ROSTER, ROSTER[4]], {"bob": 1}, "Heads (77)", "has the login 'bob' twice"),
    ],
)
def test_what_is_wrong_is_said(
    roster: list[list[str]], scores: dict[str, float], assignment: str, fault: str
) -> None:
    with pytest.raises(KitError, match=fault):
        canvas_import(roster, scores, assignment)
