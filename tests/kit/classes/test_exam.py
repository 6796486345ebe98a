"""In an exam students see what is wrong, but neither why nor a hint; instructors see everything."""

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from grader.channels.gradescope import results
from grader.channels.student_copy import student_files, zipped
from grader.classes.nbgrader.feedback import notebook_verdict
from grader.command.main import main
from grader.types.course import Course
from grader.types.report import Report, from_json, to_json
from tests.kit.classes.folder_class import class_of, results_of
from tests.kit.support.files import write_files
from tests.kit.support.tiny import Capture, Typed, copy_tiny

pytestmark = pytest.mark.usefixtures("checks_apart")

EXAM = """[[assignments]]
name = "exam"
stages = ["moving_average"]
exam = true
[limits]"""
ADDS_UP = """
import numpy as np

def moving_average(values, width):
    if not 1 <= width <= len(values):
        raise ValueError("does not fit")
    return np.convolve(values, np.ones(width), mode="valid")
"""
WHY, HINT = "You add the neighbours up", "grade hint"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    visible = 'slug = "moving_average"\nvisible = ["values"]'
    monkeypatch.setenv("NO_COLOR", "1")
    return copy_tiny(tmp_path / "whole", {"[limits]": EXAM, 'slug = "moving_average"': visible})


def test_a_students_copy_tells_what_is_wrong_and_no_more(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    zipfile.ZipFile(io.BytesIO(zipped(student_files(course), "copy"))).extractall(tmp_path)
    monkeypatch.chdir(tmp_path / "copy")
    assert main(["grade", "moving_average"]) == 1
    assert HINT not in capsys.readouterr().out
    Path("exercises/moving_average.py").write_text(ADDS_UP, encoding="utf-8")
    assert main(["grade", "moving_average"]) == 1
    said = capsys.readouterr().out
    assert "expected" in said and "got" in said and "look at" not in said
    # A symptom would say that every value is too large by one factor.
    assert HINT not in said and "times" not in said and WHY not in said
    assert main(["hint", "moving_average"]) == 2
    assert "moving_average is part of an exam: there are no hints" in capsys.readouterr().err
    assert main(["hint", "smooth"]) == 0
    assert main(["solution", "moving_average"]) == 2
    assert HINT not in capsys.readouterr().err


def test_the_instructor_sees_why_and_students_get_no_more_by_any_channel(
    course: Course, tmp_path: Path, grade: Typed
) -> None:
    write_files(tmp_path / "class" / "ann", {"moving_average.py": ADDS_UP})
    out = tmp_path / "out"
    words = class_of(course.root, out)
    assert main([*words, str(tmp_path / "class")]) == 0
    assert WHY in (out / "report.html").read_text("utf-8")
    assert WHY in (out / "findings.csv").read_text("utf-8")
    assert WHY in grade(*words, "--why", "ann")
    handed = (out / "why" / "ann.html").read_text("utf-8")
    assert "expected" in handed and WHY not in handed and "look at" not in handed
    report = from_json(results_of(out)["ann"]["report"])
    assert WHY in json.dumps(to_json(report)) and report.stages[0].is_exam
    assert _told(report, course).isdisjoint({WHY, HINT})
    stages = tuple(replace(stage, is_exam=False) for stage in report.stages)
    assert _told(replace(report, stages=stages), course) == {WHY, HINT}


def test_a_page_tells_no_reason_of_a_stage_that_became_an_exam_after_it_was_graded(
    course: Course, tmp_path: Path, grade: Typed
) -> None:
    write_files(tmp_path / "class" / "ann", {"moving_average.py": ADDS_UP})
    words = class_of(course.root, tmp_path / "out")
    settings = course.root / "course.toml"
    text = settings.read_text("utf-8")
    before = text.replace("exam = true\n[limits]", "[limits]\nfile_mb = 9")
    settings.write_text(before, encoding="utf-8")
    grade(*words, str(tmp_path / "class"))
    settings.write_text(text, encoding="utf-8")
    assert "stored verdict" in grade(*words, "--why", "ann")
    assert WHY not in (tmp_path / "out" / "why" / "ann.html").read_text("utf-8")


def _told(report: Report, course: Course) -> set[str]:
    """What Gradescope and nbgrader's feedback both tell of the reason."""
    there = json.dumps(results(report, course, "published", 1))
    feedback = repr(notebook_verdict(report, {"moving_average": ("x", "x-code")}))
    return {word for word in (WHY, HINT) if word in there and word in feedback} | {
        word for word in (WHY, HINT) if report.stages[0].is_exam and word in there + feedback
    }
