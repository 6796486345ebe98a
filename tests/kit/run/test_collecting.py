"""pytest collects the checks of any course; one line says what is wrong with a faulty file."""

from pathlib import Path

import pytest

from grader.run.collecting import with_checks
from grader.types.errors import CourseError
from tests.kit.support.checkout import run_python
from tests.kit.support.tiny import copy_tiny


@pytest.mark.parametrize(
    "line, told",
    [
        ("def (", "SyntaxError: invalid syntax"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import no_such", "ModuleNotFoundError: No module named 'no_such'"),
    ],
)
def test_a_check_file_that_cannot_be_imported_is_told_with_its_line(
    tmp_path: Path, line: str, told: str
) -> None:
    course = copy_tiny(tmp_path / "tiny")
    stage = course.stage("moving_average")
    stage.check_file.write_text(f"import pytest\n\n{line}\n", encoding="utf-8")
    with pytest.raises(CourseError) as caught:
        with_checks(course, [stage], lambda checks: None)
    assert str(caught.value) == f"tests/checks/test_moving_average.py:3: {told}"


def test_a_course_may_lie_in_a_folder_of_any_name(tmp_path: Path) -> None:
    course = copy_tiny(tmp_path / "[copy] of a::course, 50% (1)")
    plan = with_checks(course, course.stages, lambda checks: checks.planned)
    assert [*plan] == [stage.slug for stage in course.stages]


def test_no_check_runs_where_python_skips_assertions() -> None:
    line = (
        "from tests.kit.support.checkout import TINY; from grader.run import collecting; "
        "collecting.with_checks(TINY, TINY.stages, print)"
    )
    assert "KitError: Python skips assertions here" in run_python("-O", "-c", line).stderr


def test_a_check_file_that_ends_python_is_named(tmp_path: Path) -> None:
    course = copy_tiny(tmp_path / "tiny")
    course.stages[0].check_file.write_text("raise SystemExit", encoding="utf-8")
    with pytest.raises(CourseError, match=r"moving_average\.py: ends Python while it is imported$"):
        with_checks(course, course.stages, lambda checks: None)
