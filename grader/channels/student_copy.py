"""Makes the student's copy of a course: stubs, engine, hints and the visible checks.

`partial_toml` and `zipped` are pure; the other functions read files.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Collection, Mapping

from grader.channels.leaks import leaks, secret_lines
from grader.channels.project import (
    course_project,
    install_torch,
    kit_project,
    learners_files,
    license_files,
)
from grader.channels.visible_checks import visible_checks
from grader.classes.folder.course_files import read_constraints
from grader.read.course_file import FILE_NAME, course_of_text
from grader.read.faults import course_place, course_text
from grader.read.progress import memory_folder
from grader.read.stubs import read_stub
from grader.types.course import Course, Stage
from grader.types.errors import CourseError
from grader.types.resources import filled

# A table of its own, one in a line, or a dotted key.
_EXTENSIONS = re.compile(
    r"^[ \t]*\[assignments\.extensions\].*\n(?:(?!\s*\[).*\n)*"
    r"|^[ \t]*extensions\s*(?:=\s*\{.*|\..*)\n",
    re.MULTILINE,
)
_CPU_BUILD = """\
# Only on Linux without an NVIDIA GPU. It downloads 200 MB instead of several GB:
{}
"""
_INIT = """\
grade init ../{0}
cd ../{0}
"""
_EXAM = """

A stage that is part of an exam has no hints: `grade` says there what is wrong, but not why."""
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same files give the same zip


def student_files(course: Course, *, is_repository: bool = False) -> dict[str, bytes]:
    """Every file of the student's copy by its path, where students work in a folder of their own.

    They work in the copy itself if it `is_repository`, and its README says so.
    Raises CourseError for a faulty course, and if a file gives away a secret line.
    """
    files = {FILE_NAME: partial_toml(nameless_toml(course)).encode()}
    files |= _project(course, is_repository)
    if course.changes_file.is_file():
        text = course_text(course, course.changes_file)
        files[course_place(course, course.changes_file)] = text.encode()
    for stage in course.stages:
        files |= stage_files(course, stage)
    found = leaks(files, secret_lines(course, course.stages))
    if found:
        raise CourseError(str(found[0]))
    return files | kit_project(learners_files())


def stage_files(course: Course, stage: Stage) -> dict[str, bytes]:
    """The files of one stage. Raises CourseError.

    They hold the stub twice, as in a workspace: a student may change the one in exercises/.
    """
    stub = read_stub(stage)
    pristine = memory_folder(course.root) / "stubs" / stage.file_name
    texts = {
        stage.exercise_file: stub,
        pristine: stub,
        stage.check_file: visible_checks(course_text(course, stage.check_file), stage),
    }
    if not stage.is_exam:
        texts[stage.hints_file] = course_text(course, stage.hints_file)
    files = {file: text.encode() for file, text in texts.items()}
    files |= {file: file.read_bytes() for file in stage.shown_files if file.is_file()}
    return {course_place(course, file): data for file, data in files.items()}


def nameless_toml(course: Course) -> str:
    """The text of course.toml without the students who have more time. Raises CourseError."""
    toml = course.root / FILE_NAME
    text = _EXTENSIONS.sub("", course_text(course, toml))
    if any(each.extensions for each in course_of_text(text, toml).assignments):
        raise CourseError(
            f"{FILE_NAME}: this copy must not name the students with extensions: write each "
            "extension as a line of a table [assignments.extensions]"
        )
    return text


def partial_toml(text: str) -> str:
    """The course.toml of a student's copy, with all comments."""
    text = re.sub(r"^partial\s*=.*\n", "", text, flags=re.MULTILINE)
    note = "# A student's copy: the checks that are `visible`, and no solutions.\n"
    return f"{note}partial = true\n\n{text}"


def zipped(files: Mapping[str, bytes], top: str = "", executable: Collection[str] = ()) -> bytes:
    """The files as a zip, in a folder `top` unless that is ""; some are `executable`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(f"{top}/{name}" if top else name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if name in executable else 0o100644) << 16
            archive.writestr(info, files[name])
    return buffer.getvalue()


# --- what makes it installable -----------------------------------------------------------------


def _project(course: Course, is_repository: bool) -> dict[str, bytes]:
    """The files that pip needs, and a README for students."""
    first = course.stages[0]
    constraints = read_constraints(course)
    torch = install_torch(course, constraints)
    readme = filled(
        __package__,
        "templates/student_readme.md",
        title=course.title,
        folder="" if is_repository else "make a folder to work in, anywhere you like, and ",
        init="" if is_repository else _INIT.format(course.name),
        also="" if is_repository else "You can also work in this folder's own `exercises/`; ",
        first=first.file_name,
        torch=_CPU_BUILD.format(torch) if torch else "",
        exam=_EXAM if any(stage.is_exam for stage in course.stages) else "",
    )
    if is_repository:
        readme += filled(__package__, "templates/github_readme.md", first=first.file_name)
    licenses = {file.name: file.read_bytes() for file in license_files(course)}
    return {
        "README.md": readme.encode(),
        "pyproject.toml": course_project(course, ("exercises", "hints", "tests/checks")).encode(),
        "constraints.txt": constraints,
        **licenses,
    }
