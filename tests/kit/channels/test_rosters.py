"""Scores in the tables that Canvas, Moodle and Blackboard exported.

Canvas' tables are written as lib/gradebook_exporter.rb of instructure/canvas-lms writes them. What
is demanded of the result is what its lib/gradebook_importer.rb reads,
assignfeedback_offline/importgradeslib.php of Moodle, and what Blackboard's help on "Work offline"
asks for: quotes around each cell between commas, and none between tabs.
"""

import csv
import io
from pathlib import Path

import pytest

from grader.channels.rosters import PointsImport, blackboard_import, canvas_import, moodle_import
from grader.classes.folder.csv_files import csv_text
from grader.command.main import main
from grader.types.errors import KitError
from tests.kit.support.tiny import Capture

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
    assert found.locked == ("@SUM, +1 (cyn)", "Dee (dee)")
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
        (["Student", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Section"], 6),
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
    assert rows[0] == (*header, "Heads (77)")
    assert rows[1][columns] == "7"


def test_short_rows_are_students_too() -> None:
    rows = canvas_import([[*HEADER, "Heads (77)"], ["Ada", "1", "", "ada"]], {"ada": 7}, "Heads")
    assert rows.rows[1] == ("Ada", "1", "", "ada", "", "7")


@pytest.mark.parametrize(
    "roster, scores, assignment, fault",
    [
        ([], {}, "Heads", "is not a gradebook exported from Canvas"),
        ([["Student", "ID", "Section"]], {}, "Heads", "its first row lacks 'SIS Login ID'"),
        (ROSTER, {}, "Heads", r"has several: name one of 'Heads \(77\)', 'Heads \(78\)'"),
        (ROSTER, {}, "Esay (1)", "no such column; did you mean 'Essay \\(1\\)'"),
        (ROSTER, {}, "Final Score", "the roster has no such column; it has: Heads, Heads, Essay"),
        ([HEADER], {}, "Heads", "create the assignment in Canvas and export again"),
        ([*ROSTER, ROSTER[4]], {"bob": 1}, "Heads (77)", "'bob' is the name of two students"),
    ],
)
def test_what_is_wrong_is_said(
    roster: list[list[str]], scores: dict[str, float], assignment: str, fault: str
) -> None:
    with pytest.raises(KitError, match=fault):
        canvas_import(roster, scores, assignment)


# --- Moodle and Blackboard ----

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
    assert found.locked == ("Cyn (Participant 73)",)
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
