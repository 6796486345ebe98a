"""`grade preview`: what others will see of a stage, in the terminal and as one page."""

import html
import re
from itertools import groupby
from pathlib import Path

import pytest

from grader.authoring.preview.parts import preview
from grader.command.main import main
from grader.read.misconceptions import read_misconceptions
from grader.types.course import Course
from tests.kit.support.tiny import Capture, Typed

GROUPS = ["Stub", "First screen", "Failure screens", "Hints", "Notebook", "Class report"]


def words(text: str) -> str:
    """The text of a screen or a page on one line."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", text)))


def test_every_part_is_there_in_the_order_in_which_people_meet_it(course: Course) -> None:
    for stage in course.stages:
        parts = list(preview(course, stage))
        assert [group for group, _ in groupby(parts, key=lambda part: part.group)] == GROUPS
        assert "not yet" not in [part.title for part in parts]


def test_each_misconception_has_the_screen_that_tells_its_sentence(
    course: Course, monkeypatch: pytest.MonkeyPatch, grade: Typed
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = grade("preview", "roughness", "--course", str(course.root))
    assert max(map(len, shown.splitlines())) <= 80
    assert "Nothing is written in roughness yet." in shown
    assert "1. Look at the example" in shown and "%%grade roughness" in shown
    _, *screens = shown.split("Failure screens: ")
    known = read_misconceptions(course.stage("roughness"))
    assert len(screens) == len(known)
    for screen, mistake in zip(screens, known, strict=True):
        assert screen.startswith(mistake.id) and f"Likely: {mistake.says}" in words(screen)


def test_a_misconception_that_no_check_catches_has_no_screen(course: Course, grade: Typed) -> None:
    with open(course.stage("roughness").check_file, "a", encoding="utf-8") as file:
        file.write("\n\ndef expect_close(*_, **__):\n    pass\n")
    shown = words(grade("preview", "roughness", "--course", str(course.root)))
    assert "No check catches this, so it has no such screen: `grade verify roughness`" in shown
    for mistake in read_misconceptions(course.stage("roughness")):
        assert mistake.says not in shown


def test_the_page_is_whole_and_needs_no_other_file(
    course: Course, tmp_path: Path, grade: Typed
) -> None:
    file = tmp_path / "deep" / "preview.html"
    command = ["preview", "moving_average", "--course", str(course.root), "--out", str(file)]
    assert grade(*command) == f"written: {file}\n"
    page = file.read_text("utf-8")
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page)
    assert all(f"<h2>{group}</h2>" in page for group in GROUPS)
    for mistake in read_misconceptions(course.stage("moving_average")):
        # Once on the mistake's screen, and once or more in the class report.
        assert words(html.unescape(page)).count(words(mistake.says.replace("`", ""))) >= 2
    assert "Of 6 points" in html.unescape(page)


def test_a_part_that_is_not_written_yet_says_so_and_the_others_are_there(course: Course) -> None:
    (course.root / "hints/roughness.md").write_text("Nothing.", encoding="utf-8")
    (course.root / "hints/misconceptions/roughness.py").write_text("", encoding="utf-8")
    parts = {part.group: part for part in preview(course, course.stage("roughness"))}
    assert list(parts) == GROUPS
    missing = [group for group, part in parts.items() if part.title == "not yet"]
    assert missing == ["Failure screens", "Hints", "Class report"]


def test_a_solution_that_cannot_be_imported_is_told_in_a_line(
    course: Course, capsys: Capture
) -> None:
    solution = course.root / "solutions/roughness.py"
    solution.write_text(f"import numpyy\n{solution.read_text('utf-8')}", encoding="utf-8")
    for command in ("preview", "suggest"):
        main([command, "roughness", "--course", str(course.root)])
        captured = capsys.readouterr()
        told = words(captured.out + captured.err)
        assert "solutions/roughness.py:1: ModuleNotFoundError: No module named 'numpyy'" in told
        assert "Traceback" not in told
