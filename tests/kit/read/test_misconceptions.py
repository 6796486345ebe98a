"""What an author's file of misconceptions may hold, and what it may share with other stages."""

import sys
from pathlib import Path

import pytest

from grader.authoring.verify.author_files import strays
from grader.authoring.verify.memory import base_of
from grader.read.misconceptions import read_misconceptions
from grader.types.course import Course
from grader.types.errors import CourseError
from tests.kit.support.tiny import copy_tiny

SHARED = """
from grader.misconceptions import misconception

def always(value, prefix):
    @misconception(f"{prefix}_always", replaces="roughness", says="Yours is always the same.")
    def constant(values):
        return value
    return [constant]
"""
FILE = """
from _usual import always
from grader.misconceptions import misconception

usual = always(1.0, "rough")

@misconception("rough_own", replaces="roughness", says="You are wrong.")
def own(values):
    return 2.0
"""


@pytest.fixture
def course(tmp_path: Path) -> Course:
    course = copy_tiny(tmp_path / "tiny")
    stage = course.stage("roughness")
    stage.misconceptions_file.write_text(FILE, encoding="utf-8")
    shared(course).write_text(SHARED, encoding="utf-8")
    return course


def shared(course: Course) -> Path:
    return course.root / "hints/misconceptions/_usual.py"


def test_a_list_of_misconceptions_counts_where_it_stands(course: Course) -> None:
    known = read_misconceptions(course.stage("roughness"))
    assert [each.id for each in known] == ["rough_always", "rough_own"]
    assert [each.implementation([]) for each in known] == [1.0, 2.0]


def test_a_class_has_the_name_that_a_learners_has(course: Course) -> None:
    source = FILE.replace("def own(values):\n    return 2.0", "class Own:\n    pass")
    course.stage("roughness").misconceptions_file.write_text(source, encoding="utf-8")
    *_, own = read_misconceptions(course.stage("roughness"))
    assert type(own.implementation()).__name__ == "roughness"


def test_a_shared_module_is_read_each_time_and_not_kept(course: Course) -> None:
    before = sys.path.copy()
    read_misconceptions(course.stage("roughness"))
    shared(course).write_text(SHARED.replace("return value", "return -value"), encoding="utf-8")
    known = read_misconceptions(course.stage("roughness"))
    assert known[0].implementation([]) == -1.0
    assert sys.path == before and "_usual" not in sys.modules


def test_a_fault_in_what_stages_share_is_told_with_its_place(course: Course) -> None:
    shared(course).write_text("import math\n\nmath.nonsense\n", encoding="utf-8")
    with pytest.raises(CourseError) as caught:
        read_misconceptions(course.stage("roughness"))
    assert str(caught.value).startswith("hints/misconceptions/_usual.py:3: AttributeError")


def test_a_module_that_stages_share_belongs_to_the_course(course: Course) -> None:
    assert list(strays(course)) == []


def test_what_every_run_depends_on_includes_what_stages_share(course: Course) -> None:
    stage = course.stage("roughness")
    before = base_of(course, stage, {})
    shared(course).write_text(SHARED + "\n# more\n", encoding="utf-8")
    assert base_of(course, stage, {}) != before
