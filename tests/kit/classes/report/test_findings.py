"""What a class gets wrong, as rows for other programs."""

from __future__ import annotations

from grader.classes.report.findings import COLUMNS, findings
from grader.classes.report.types import Unexplained
from tests.kit.classes.report.test_page import CLASS


def test_a_row_for_each_misconception_other_failure_and_check_without_names() -> None:
    other = Unexplained("fold", "It is too large.", ("bob",), "bob.py, line 3")
    rows = list(findings(CLASS, [other]))
    assert all(tuple(row) == COLUMNS for row in rows)
    assert [(row["kind"], row["stage"], row["students"], row["of"]) for row in rows] == [
        ("misconception", "fold", 2, 3),
        ("other failure", "fold", 1, 3),
        ("check", "fold", 2, 3),
    ]
    assert "bob" not in str(rows)
