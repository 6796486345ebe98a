"""What an instructor sees of deadlines, of other assignments, and of those before."""

import shutil
from pathlib import Path

import pytest

from grader.command.main import main
from tests.kit.classes.folder_class import (
    NO_ERROR,
    ONE_TOO_FEW,
    RIGHT,
    class_of,
    grade_class,
    gradebook,
    hand_in,
    results_of,
    rows,
)
from tests.kit.support.files import edit
from tests.kit.support.tiny import Capture, Typed, copy_tiny

TERMS = """timezone = "Europe/Berlin"
[[assignments]]
name = "averages"
stages = ["moving_average", "smooth"]
due = 2026-10-24T23:59:00
late = { per_day = 0.1, cap = 0.5, grace_minutes = 15 }
extensions = { dan = 2026-10-26T23:59:00, zoe = 2026-10-26T23:59:00 }
"""
TIMES = """student,submitted
ann,2026-10-24 23:59
bob,2026-10-25 00:10
cas,2026-10-25 23:58
dan,2026-10-25 23:58
"""


@pytest.fixture
def course(tmp_path: Path) -> Path:
    return copy_tiny(tmp_path / "course", {"[limits]": f"{TERMS}[limits]"}).root


def test_the_late_rule_takes_points_off_and_the_verdict_stays(
    course: Path, tmp_path: Path, grade: Typed
) -> None:
    submissions, out, table = (tmp_path / name for name in ("class", "out", "times.csv"))
    right = dict.fromkeys(("ann", "bob", "dan", "eve"), RIGHT)
    hand_in(submissions, **right, cas=NO_ERROR)
    table.write_text(TIMES, encoding="utf-8")
    words = [*class_of(course, out), str(submissions)]
    told = " ".join(grade(*words, "--times", str(table)).split())
    assert "for 1 submission, so it does not count as late: eve." in told
    assert "Extensions for students who are not here: zoe." in told
    assert "Late: 2 submissions. bob, 11 minutes, at no cost" in told
    assert "before late penalties: median" in told
    # 24 hours after the deadline it is 22:59 there: it is the second day that has begun.
    assert "cas, 1 day 59 minutes: 1.8 points less" in told
    found = gradebook(out)
    assert {name: row["score"] for name, row in found.items()} == {
        **dict.fromkeys(("ann", "bob", "dan", "eve"), "10"),
        "cas": "7.2",
    }
    assert (found["cas"]["late_penalty"], found["cas"]["moving_average"]) == ("1.8", "5")
    verdicts = [line["report"]["score"] for line in results_of(out).values()]
    assert verdicts == [10, 10, 9, 10, 10]
    page = (out / "report.html").read_text("utf-8")
    assert "7.2 (1.8 less: late)" in page and "Late (2)" in page
    # The times stay known, and an extension counts at once, with nothing graded again.
    edit(course / "course.toml", "dan =", "cas =")
    told = " ".join(grade(*words).split())
    assert "nothing new to grade" in told and "dan, 1 day 59 minutes: 2 points less" in told
    assert (gradebook(out)["cas"]["score"], gradebook(out)["dan"]["score"]) == ("9", "8")
    told = " ".join(grade(*class_of(course, out), "--why", "dan").split())
    assert "came late by 1 day 59 minutes, which costs 20% of its points: 8 of 10 points" in told
    page = (out / "why" / "dan.html").read_text("utf-8")
    assert "<strong>8</strong> of 10" in page and "late by 1 day 59 minutes" in page
    assert "2026-10-25 23:58:00 CET" in page and "2026-10-24 23:59:00 CEST" in page
    table.write_text("student\ndan\n", encoding="utf-8")
    grade(*class_of(course, out), "--requests", str(table))
    decision = rows(out / "decisions.csv")[0]["reason"]
    assert "which costs 20% of its points; the points here are those before." in decision


def test_a_new_time_of_submission_grades_nothing_even_after_a_change_of_the_course(
    course: Path, tmp_path: Path, grade: Typed
) -> None:
    submissions, out, table = (tmp_path / name for name in ("class", "out", "times.csv"))
    hand_in(submissions, ann=RIGHT, cas=NO_ERROR)
    words = [*class_of(course, out), str(submissions)]
    grade(*words)
    before = results_of(out)
    checks = course / "tests" / "checks" / "test_moving_average.py"
    edit(checks, "(5, 2)", "(6, 2)")
    table.write_text(TIMES, encoding="utf-8")
    told = " ".join(grade(*words, "--times", str(table)).split())
    assert "nothing new to grade" in told and "2 verdicts may be different now" in told
    assert gradebook(out)["cas"]["late_penalty"] == "1.8"
    after = results_of(out)
    assert after["cas"]["submitted"] == "2026-10-25T22:58:00+00:00"
    for name in before:
        assert before[name] == {
            **after[name],
            **{key: before[name][key] for key in ("number", "submitted", "seconds_late")},
            "late_penalty": 0,
        }
    told = " ".join(grade(*class_of(course, out), "--why", "cas").split())
    assert "Changed: the time of submission is 2026-10-25 23:58:00 CET." in told


def test_two_assignments_do_not_share_results(course: Path, tmp_path: Path, refused: Typed) -> None:
    submissions, out = tmp_path / "class", tmp_path / "out"
    hand_in(submissions, ann=RIGHT)
    toml = course / "course.toml"
    other = '[[assignments]]\nname = "first"\nstages = ["moving_average"]\n[limits]'
    edit(toml, "[limits]", other)
    words = class_of(course, out)
    assert main([*words, str(submissions), "--assignment", "first"]) == 0
    assert main([*words, "--regrade"]) == 0  # the results say which assignment they are of
    said = refused(*words, str(submissions), "--assignment", "averages")
    assert "has the results of 'first': choose another --out for 'averages'" in said
    edit(toml, '"smoothing"', '"sewing"')
    for more in ([str(submissions), "--assignment", "first"], ["--regrade"], ["--why", "ann"]):
        said = refused(*words, *more)
        assert (
            "has the results of the course 'smoothing': choose another --out for 'sewing'" in said
        )


def test_results_are_answered_for_by_the_course_that_graded_them(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    out = tmp_path / "out"
    hand_in(tmp_path / "class", ann=ONE_TOO_FEW)
    assert grade_class(course, out, tmp_path / "class") == 0
    other = Path(shutil.copytree(course, tmp_path / "other"))
    edit(other / "tests" / "checks" / "test_moving_average.py", "def ", "# Another.\ndef ")
    monkeypatch.chdir(other)
    why = ["class", "--out", str(out), "--why", "ann"]
    assert main(why) == 0
    said = capsys.readouterr()
    assert "every check gave the same result" in said.out and "add --course" in said.err
    assert main([*why, "--course", "."]) == 0
    assert "every check gave the same result" not in capsys.readouterr().out
    shutil.rmtree(course)  # moved
    assert main(why) == 0
    assert f"is no longer in {course}: name it with --course" in capsys.readouterr().err


def test_an_installed_course_is_found_by_its_name(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    out, newer = tmp_path / "out", copy_tiny(tmp_path / "newer")
    monkeypatch.setattr("grader.classes.folder.settings.is_installed", lambda _: True)
    hand_in(tmp_path / "class", ann=ONE_TOO_FEW)
    assert grade_class(course, out, tmp_path / "class") == 0
    named = {"smoothing": newer}
    monkeypatch.setattr("grader.classes.folder.settings.installed_course", named.__getitem__)
    monkeypatch.chdir(course)
    assert main(["class", "--out", str(out), "--why", "ann"]) == 0
    assert f"the course in {newer.root} has graded" in capsys.readouterr().err


def test_a_report_compares_with_an_assignment_before(
    course: Path, tmp_path: Path, capsys: Capture
) -> None:
    before, out = tmp_path / "before", tmp_path / "out"
    hand_in(tmp_path / "week-1", ann=ONE_TOO_FEW, bob=RIGHT, cas=ONE_TOO_FEW)
    hand_in(tmp_path / "week-2", ann=RIGHT, bob=ONE_TOO_FEW, cas=ONE_TOO_FEW)
    words = ["class", "--course", str(course)]
    assert main([*words, str(tmp_path / "week-1"), "--out", str(before)]) == 0
    again = [*words, str(tmp_path / "week-2"), "--out", str(out), "--since"]
    assert main([*again, str(tmp_path / "elsewhere")]) == 2  # before any work
    assert "has no results yet" in capsys.readouterr().err and not (out / "scores.csv").exists()
    assert main([*again, str(before)]) == 0
    page = (out / "report.html").read_text("utf-8")
    assert "3 students in both: median 10% of the points then, 10% now." in page
    assert "1 rose by a tenth of the points or more, 1 fell" in page
    found = {row["kind"]: row for row in rows(out / "findings.csv")}
    mistake = found["misconception since averages"]
    assert (mistake["before"], mistake["now"], mistake["of"]) == ("2", "2", "3")
    known = found["misconception"]
    assert known["hint_heading"] and "expected" in known["example"]
