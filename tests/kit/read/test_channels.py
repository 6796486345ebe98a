"""What of an upload counts, and the tables of scores that other systems write."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from grader.read.channels import chosen, parse_scores, parse_table, visible_points
from grader.types.course import Stage
from grader.types.errors import KitError

STAGES = tuple(Stage(slug, slug, 1, False, (), (), Path()) for slug in ("fold", "left_wing"))


@pytest.mark.parametrize(
    "names, counted, noted",
    [
        (["fold.py", "helper.py"], ["fold.py", "helper.py"], 0),
        (["birds/exercises/fold.py", "birds/setup.py"], ["fold.py"], 0),
        (["fold.py", "old/fold.py", "old/left_wing.py"], ["fold.py", "left_wing.py"], 0),
        (["fold.py", "old/fold.py"], ["fold.py", "old/fold.py"], 0),
        (["Fold (2).py", "left-wing - Copy.py"], ["fold.py", "left_wing.py"], 2),
        (["Copy of Left Wing.py", "fold copy 2.py"], ["fold.py", "left_wing.py"], 2),
        (["fold.py", "fold (1).py"], ["fold (1).py", "fold.py"], 0),
    ],
)
def test_the_folder_with_most_stages_counts(
    names: list[str], counted: list[str], noted: int
) -> None:
    upload = chosen({name: name.encode() for name in names}, STAGES)
    assert upload is not None and upload.submission.is_folder
    assert sorted(upload.submission.files) == counted
    assert len(upload.notes) == noted


def test_a_wrong_name_is_told() -> None:
    upload = chosen({"Left-Wing.py": b"x", "fold.py": b""}, STAGES)
    assert upload is not None
    assert upload.notes == ("Left-Wing.py was taken for left_wing.py.",)
    assert upload.submission.files["left_wing.py"] == b"x"


def test_one_file_alone_may_hold_all() -> None:
    upload = chosen({"hw/all.py": b"x"}, STAGES)
    assert upload is not None
    assert (upload.submission.script, upload.submission.files) == ("all.py", {"all.py": b"x"})


@pytest.mark.parametrize("names", [[], ["a.py", "b.py"]])
def test_where_no_file_is_a_stages_there_is_nothing(names: list[str]) -> None:
    assert chosen(dict.fromkeys(names, b""), STAGES) is None


def test_the_points_of_checks_are_read_from_their_marks() -> None:
    source = """
import pytest
@pytest.mark.points(2)
@pytest.mark.parametrize("n", [1, 2])
def test_one(n): ...
@pytest.mark.points(0.5, stand_in="one")
def test_two(): ...
def helper(): ...
"""
    assert visible_points(source) == 2.5


@pytest.mark.parametrize(
    "text, rows, between",
    [
        ("a,b\r\n1,2\r\n", [["a", "b"], ["1", "2"]], ","),
        ("\ufeffa;b\n1,5;2\n", [["a", "b"], ["1,5", "2"]], ";"),
        ('a,b\n"x\ny",2\n\n', [["a", "b"], ["x\ny", "2"]], ","),
        ("", [], ","),
    ],
)
def test_a_table_of_either_kind(text: str, rows: list[list[str]], between: str) -> None:
    assert parse_table(text) == (rows, between)


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


def test_a_score_that_is_no_number_is_refused() -> None:
    for score in ("", "inf", "nan", "A-"):
        with pytest.raises(KitError, match=r"x:2: .* is no score"):
            parse_scores(f"student_id,score\nada,{score}\n", None, "x")


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
