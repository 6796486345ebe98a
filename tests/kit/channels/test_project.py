"""What pip reads of a course: it names what the course says of itself, and nothing of this one."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.channels.project import course_project, library, package_folder
from grader.channels.student_copy import student_files
from grader.classes.folder.course_files import KIT, read_constraints
from grader.types.course import Course
from tests.kit.support.checkout import COURSE, ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def toml(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def project(course: Course) -> dict[str, Any]:
    return tomllib.loads(course_project(course, ("exercises", "hints")))


def test_a_course_that_says_nothing_names_its_title_and_its_libraries(course: Course) -> None:
    about = project(course)["project"]
    assert {**about, "dependencies": 0} == {
        "name": "smoothing",
        "version": "0",
        "description": course.title,
        "requires-python": toml(ROOT / "pyproject.toml")["project"]["requires-python"],
        "dependencies": 0,
        "optional-dependencies": {"notebook": ["course-grader[notebook]"]},
    }
    kit, *others = about["dependencies"]
    assert library(kit) == "course-grader" and others == ["numpy"]


def test_a_course_says_once_who_wrote_it_and_what_it_needs(course: Course) -> None:
    (course.root / "LICENSE").write_text("Mine", encoding="utf-8")
    about = project(
        replace(
            course,
            title='Paper "birds"',
            authors=('Ada "A"', "Bo"),
            license="MIT",
            version="1.2",
            package="Paper-Birds.Course",
            requirements=("torch>=2.9", "scipy; python_version < '3.12'"),
        )
    )["project"]
    assert about["authors"] == [{"name": 'Ada "A"'}, {"name": "Bo"}]
    assert (about["name"], about["version"]) == ("Paper-Birds.Course", "1.2")
    assert (about["license"], about["license-files"]) == ("MIT", ["LICENSE"])
    assert about["dependencies"][1:] == ["torch>=2.9", "scipy; python_version < '3.12'"]
    assert about["description"] == 'Paper "birds"'


def test_the_folder_of_a_course_begins_as_the_name_of_its_dist_info(course: Course) -> None:
    course = replace(course, package="Paper-Birds.Course")
    assert package_folder(course) == "paper_birds_course"
    wheel = project(course)["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["sources"] == {"": "grader_courses/paper_birds_course"}
    assert wheel["only-include"] == ["course.toml", "exercises", "hints"]


def test_the_copy_of_a_course_of_plain_python_names_neither_this_course_nor_torch(
    course: Course,
) -> None:
    files = student_files(replace(course, preload=(), requirements=()))
    own = b"".join(files[name] for name in ("pyproject.toml", "README.md", "kit/pyproject.toml"))
    said = re.sub(rb"^#.*\n", b"", own, flags=re.M)
    assert re.search(rb"torch|matplotlib|attention", said) is None
    assert "LICENSE" not in files
    (course.root / "LICENSE").write_text("Mine", encoding="utf-8")
    assert student_files(course)["LICENSE"] == b"Mine"


def test_the_kits_project_is_this_ones_without_the_course() -> None:
    whole, kit = toml(ROOT / "pyproject.toml")["project"], toml(KIT / "pyproject.toml")["project"]
    for key in ("name", "requires-python", "scripts", "license"):
        assert kit[key] == whole[key]
    assert sorted([*kit["dependencies"], *COURSE.requirements]) == sorted(whole["dependencies"])
    extras = whole["optional-dependencies"]
    assert kit["optional-dependencies"] == {name: extras[name] for name in extras if name != "dev"}
    assert (KIT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_constraints_are_the_courses_own_or_the_kits_in_one_file(course: Course) -> None:
    kits = (KIT / "constraints.txt").read_bytes()
    assert read_constraints(course) == kits
    (course.root / "more.txt").write_bytes(b"rich==14.0\n")
    (course.root / "constraints.txt").write_bytes(b"numpy==2.0\n-c more.txt\n")
    assert read_constraints(course) == b"numpy==2.0\nrich==14.0\n"
    assert read_constraints(COURSE) == kits
