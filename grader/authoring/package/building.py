"""Builds the packages of a course, its wheel and its sdist, and the wheel of the kit."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from grader.authoring.verify.author_files import files_of
from grader.channels.project import course_project, kit_project, license_files
from grader.channels.student_copy import nameless_toml
from grader.classes.folder.course_files import read_constraints, read_engine_files
from grader.read.course_file import FILE_NAME
from grader.read.faults import course_place
from grader.read.stubs import read_stub
from grader.types.course import Course
from grader.types.errors import CourseError, KitError, unwritable

_FOLDERS = ("exercises", "hints", "solutions", "tests")
_README = "README.md"
_CONSTRAINTS = "constraints.txt"


def build(course: Course, out: Path) -> list[Path]:
    """Build the packages into the folder `out`: the course's wheel and sdist, and the kit's wheel.

    Raises KitError without hatchling, for a faulty course, and if a file cannot be written.
    """
    try:
        from hatchling.builders.sdist import SdistBuilder
        from hatchling.builders.wheel import WheelBuilder
    except ImportError:
        raise KitError(
            "`grade package` needs hatchling: type `pip install 'course-grader[author]'`"
        ) from None
    files = {**course_files(course), **kit_project(dict(read_engine_files()))}
    try:
        with tempfile.TemporaryDirectory() as folder:
            own, kit = Path(folder, "course"), Path(folder, "kit")
            _write(own, {name: data for name, data in files.items() if not name.startswith("kit/")})
            _write(kit.parent, {name: files[name] for name in files if name.startswith("kit/")})
            builders = (WheelBuilder(str(own)), SdistBuilder(str(own)), WheelBuilder(str(kit)))
            return [Path(next(each.build(directory=str(out.resolve())))) for each in builders]
    except (TypeError, ValueError) as error:  # what hatchling says of a field
        why = " ".join(str(error).split())
        raise CourseError(f"{FILE_NAME}: no package can be built: {why}") from None
    except OSError as error:
        raise unwritable(error, out) from None


def course_files(course: Course) -> dict[str, bytes]:
    """The files of a course's project, by path. Raises CourseError.

    Its exercises are the stubs, even if somebody has worked in the course's own folder.
    """
    if not course.version:
        raise CourseError(f'{FILE_NAME}: a package needs a version: add version = "0.1"')
    files = {FILE_NAME: nameless_toml(course).encode()}
    for stage in course.stages:
        files |= {stage.place(file): file.read_bytes() for file in files_of(stage)}
        files[stage.place(stage.exercise_file)] = read_stub(stage).encode()
    others = (*license_files(course), course.root / _README, course.changes_file)
    files |= {course_place(course, each): each.read_bytes() for each in others if each.is_file()}
    inside = [name for name in _FOLDERS if any(path.startswith(f"{name}/") for path in files)]
    if (course.root / _CONSTRAINTS).is_file():
        files[_CONSTRAINTS] = read_constraints(course)
        inside.append(_CONSTRAINTS)
    readme = _README if _README in files else ""
    return {"pyproject.toml": course_project(course, inside, readme).encode(), **files}


def _write(root: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
