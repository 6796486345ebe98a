"""What a class gets wrong, as rows for other programs."""

from grader.classes.report.findings import COLUMNS, findings
from grader.classes.report.moved import MistakeMoved, Moved, StageMoved
from grader.classes.report.types import Unexplained
from tests.kit.classes.report.test_page import CLASS

HINTS = {"fold": ["Which side?", "How often?", "Which way is up?"]}
OTHER = Unexplained("fold", "It is too large.", ("bob",), "bob.py, line 3", "bob got 3", 2)


def test_a_row_for_each_misconception_other_failure_and_check_without_names() -> None:
    rows = list(findings(CLASS, [OTHER], HINTS))
    assert all(tuple(row) == COLUMNS for row in rows)
    assert [(row["kind"], row["stage"], row["students"], row["of"]) for row in rows] == [
        ("misconception", "fold", 2, 3),
        ("other failure", "fold", 1, 3),
        ("check", "fold", 2, 3),
        ("check that nobody fails", "fold", 0, 3),
        ("check that nobody fails", "fly", 0, 1),
    ]
    assert "bob" not in str(rows)
    known, other, *_ = rows
    assert (known["hint"], known["hint_heading"]) == (3, "Which way is up?")
    assert known["example"] == "it tears"
    assert (other["hint_heading"], other["example"]) == ("How often?", "student got 3")


def test_rows_on_what_moved_since_an_assignment_before() -> None:
    moved = Moved(
        "week-1",
        2,
        0.4567,
        0.5,
        1,
        0,
        stages=(StageMoved("fold", "Fold a sheet", 1, 2),),
        mistakes=(MistakeMoved("fold", "You fold it upside down.", 2, 1, 3),),
    )
    rows = [row for row in findings(CLASS, [], HINTS, moved) if "since" in row["kind"]]
    assert [(row["kind"], row["of"], row["before"], row["now"]) for row in rows] == [
        ("points since week-1", 2, 0.457, 0.5),
        ("passed since week-1", 2, 1, 2),
        ("misconception since week-1", 2, 2, 4),
    ]
