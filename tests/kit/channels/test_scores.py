"""The tables of scores that other systems write."""

import os
import sys
from pathlib import Path

import pytest

from grader.channels.scores import parse_scores
from grader.classes.folder.csv_files import csv_text, parse_table
from grader.classes.folder.tables import csv_cell
from grader.types.errors import KitError


@pytest.mark.parametrize(
    "text, rows, between",
    [
        ("a,b\r\n1,2\r\n", [["a", "b"], ["1", "2"]], ","),
        ("\ufeffa;b\n1,5;2\n", [["a", "b"], ["1,5", "2"]], ";"),
        ('a,b\n"x\ny",2\n\n', [["a", "b"], ["x\ny", "2"]], ","),
        ('a,"x;y;z",b\n1,2,3\n', [["a", "x;y;z", "b"], ["1", "2", "3"]], ","),
        ('"a,\n,,b";c\n1;2\n', [["a,\n,,b", "c"], ["1", "2"]], ";"),
        ("", [], ","),
    ],
)
def test_a_table_of_either_kind(text: str, rows: list[list[str]], between: str) -> None:
    assert parse_table(text, "t.csv") == (rows, between)


EXPORT = (
    "assignment,duedate,timestamp,student_id,last_name,first_name,email,"
    "raw_score,late_submission_penalty,score,max_score\n"
)


def test_the_export_of_nbgrader_which_quotes_nothing() -> None:
    text = EXPORT + "a,,2026-01-01,ada,Byron, Lady,Ada,,9.0,1.0,8.0,10.0\n"
    assert parse_scores(text, None, "x").by_login == {"ada": 8.0}


def test_who_has_handed_nothing_in_has_no_score() -> None:
    text = EXPORT + "a,,,bob,,,,0.0,0.0,0.0,10.0\na,,2026-01-01,cyn,,,,0.0,0.0,0.0,10.0\n"
    found = parse_scores(text, "a", "x")
    assert found.by_login == {"cyn": 0.0}
    assert found.max_score == 10


NO_SCORES = ("inf", "nan", "A-", "1 2")
ADA = "student_id,score\nada,1\n"


@pytest.mark.parametrize(
    ("text", "assignment", "said"),
    [
        *((f"student_id,score\n\n\nada,{s}\n", None, "x:4: .* is not a score") for s in NO_SCORES),
        ("a\n1\n", None, "no columns 'student_id' and 'score'"),
        (ADA, "a", "x: has no assignment 'a': remove --from"),
        (f"{ADA}ada,2\n", None, "x:3: 'ada' is there twice"),
        (
            "assignment,student_id,score\na,ada,1\nb,ada,1\n",
            None,
            "has several assignments: name one with --from: a, b",
        ),
    ],
)
def test_what_is_wrong_is_said(text: str, assignment: str | None, said: str) -> None:
    with pytest.raises(KitError, match=said):
        parse_scores(text, assignment, "x")


def test_points_that_nobody_knows_are_no_score() -> None:
    assert parse_scores("student_id,score\nada,\nbob, \ncyn,0\n", None, "x").by_login == {"cyn": 0}


def test_logins_that_differ_only_by_case_or_spaces_get_no_score_and_stop_nobody() -> None:
    text = "student_id,score\nAda,1\nada,2\n bob,3\nbob ,3\ncyn,4\nDee ,5\ndee,\n"
    found = parse_scores(text, None, "x")
    assert found.by_login == {"cyn": 4, "Dee": 5}
    assert found.unclear == ("Ada", "ada", " bob", "bob ")


def test_a_login_is_read_as_grade_class_wrote_it() -> None:
    logins = ["-ada", "+bob", "@cyn", "'dee'", "="]
    rows = [["student_id", "score"], *([csv_cell(login), "1"] for login in logins)]
    assert list(parse_scores(csv_text(rows), None, "x").by_login) == logins


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of nbgrader's own libraries
def test_what_nbgrader_itself_exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = pytest.importorskip("nbgrader.api")
    from nbgrader.plugins import CsvExportPlugin

    scripts = str(Path(sys.executable).parent)  # nbgrader starts alembic
    monkeypatch.setenv("PATH", scripts + os.pathsep + os.environ["PATH"])
    with api.Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        for name in ("heads", "tails"):
            gradebook.add_assignment(name)
            gradebook.add_student(name[0], first_name="A", last_name="B, C")
            gradebook.add_submission(name, name[0], timestamp="2026-01-02 03:04:05 UTC")
        CsvExportPlugin(to=str(tmp_path / "grades.csv")).export(gradebook)
    found = parse_scores((tmp_path / "grades.csv").read_text(encoding="utf-8"), "heads", "x")
    assert found.by_login == {"h": 0.0}
