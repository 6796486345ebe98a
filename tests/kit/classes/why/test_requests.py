"""A table of requests, and names in it that are nobody's."""

from pathlib import Path

import pytest

from grader.classes.folder.csv_files import csv_text
from grader.classes.folder.tables import csv_cell
from grader.classes.why.requests import Asked, close_name, read_requests
from grader.types.errors import KitError

TABLE = "Student;Stage;Words\nada;smooth;why?\n;smooth;nobody\n;;\nADA;;\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_table_in_the_encodings_of_spreadsheets(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_bytes(TABLE.encode(encoding))
    assert read_requests(tmp_path / "a.csv") == [
        Asked("ada", "smooth", "why?"),
        Asked("", "smooth", "nobody"),
        Asked("ADA", "", ""),
    ]


def test_a_name_is_read_as_grade_class_wrote_it(tmp_path: Path) -> None:
    rows = [["student_id"], *([csv_cell(name)] for name in ("=1", "-ada"))]
    (tmp_path / "a.csv").write_text(csv_text(rows), encoding="utf-8")
    assert [asked.student for asked in read_requests(tmp_path / "a.csv")] == ["=1", "-ada"]


def test_a_student_may_write_as_much_as_the_table_holds(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f'student,words\nada,"{"why? " * 40_000}"\nbob,why?\n')
    assert [asked.student for asked in read_requests(tmp_path / "a.csv")] == ["ada", "bob"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "needs the column 'student'"),
        (b"ada,smooth\n", "needs the column 'student'"),
        (b"student\n \n", "has no request below its first row"),
        ("student\n\u00e9\n".encode("latin-1"), "is not UTF-8: export it as CSV"),
        (b'student\n"' + b"x" * 200_000, "a.csv:2: is not CSV"),
    ],
)
def test_what_is_no_table_of_requests_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "a.csv").write_bytes(data)
    with pytest.raises(KitError, match=said):
        read_requests(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("ADA", "did you mean 'Ada'?"),
        (" ada", "did you mean 'Ada'?"),
        ("lovelace", "did you mean 'Ada Lovelace'?"),
        ("Chloe", "did you mean 'Chlo\u00e9 Dupr\u00e9'?"),
        ("bop", "did you mean 'bob'?"),
        ("zed", "scores.csv lists all students"),
        ("", "scores.csv lists all students"),
    ],
)
def test_advice_on_a_name_that_nobody_has(name: str, advice: str) -> None:
    assert close_name(name, ["Ada Lovelace", "Ada", "bob", "Chlo\u00e9 Dupr\u00e9"]) == advice
