"""Makes the student's copy of a course: stubs, engine, hints and the visible checks.

`partial_toml`, `student_project` and `zipped` are pure; the other functions read files.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path

from grader.channels.engine_files import engine_files
from grader.channels.leaks import leaks, secret_lines
from grader.channels.visible_checks import visible_checks
from grader.read.course_file import FILE_NAME
from grader.read.faults import course_place, course_text
from grader.read.progress import memory_folder
from grader.read.stubs import read_stub
from grader.read.workspace import installed_folder, is_kits_own
from grader.types.course import Course, Stage
from grader.types.errors import CourseError
from grader.types.resources import filled, resource

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same files give the same zip
_TABLES = (
    *("[build-system]", "[project]", "[project.optional-dependencies]"),
    *("[project.scripts]", "[tool.hatch.version]"),
)


def student_files(course: Course) -> dict[str, bytes]:
    """Every file of the student's copy by its path.

    Raises CourseError for a faulty course, and if a file gives away a secret line.
    """
    files = {FILE_NAME: partial_toml(course_text(course, course.root / FILE_NAME)).encode()}
    files |= _kit_files(course)
    for stage in course.stages:
        files |= stage_files(course, stage)
    found = leaks(files, secret_lines(course, course.stages))
    if found:
        raise CourseError(str(found[0]))
    return files | engine_files()


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
        stage.hints_file: course_text(course, stage.hints_file),
    }
    for file in stage.shown_files:
        if file.is_file() and file != stage.figure_file:
            texts[file] = course_text(course, file)
    files = {course_place(course, file): text.encode() for file, text in texts.items()}
    if stage.figure_file.is_file():
        files[course_place(course, stage.figure_file)] = stage.figure_file.read_bytes()
    return files


def partial_toml(text: str) -> str:
    """The course.toml of a student's copy, with all comments."""
    text = re.sub(r"^partial\s*=.*\n", "", text, flags=re.MULTILINE)
    note = "# A student's copy: the checks that are `visible`, and no solutions.\n"
    return f"{note}partial = true\n\n{text}"


def student_project(text: str, course: Course) -> str:
    """The kit's pyproject.toml without the parts that only its development needs.

    A course that does not use the libraries of the kit's own course does not install them.
    """
    kept = []
    for table in re.split(r"^(?=\[)", text, flags=re.MULTILINE):
        name = table.partition("\n")[0].strip()
        if name in _TABLES:
            kept.append(re.sub(r"(\n#.*)+\s*\Z", "", table).rstrip())  # comments on the next one
        if name == "[project.optional-dependencies]":
            extra = re.search(r"^notebook = \[[^]]*\]$", table, re.MULTILINE)
            kept[-1] = f"{name}\n{extra[0]}" if extra else name
    project = "\n\n".join([*kept, resource(__package__, "templates/student_wheel.toml")])
    changes = {"description": _quoted(course.title)}
    if not is_kits_own(course):
        names = [f"{{ name = {_quoted(name)} }}" for name in course.authors]
        changes |= {"authors": f"[{', '.join(names)}]", "license-files": '["LICENSE*"]'}
        project = re.sub(r"^license = .*\n", "", project, flags=re.M)
        shown = [file for stage in course.stages for file in stage.shown_files]
        draws = any(file.suffix == ".py" and file.is_file() for file in shown)
        unused = {"torch": "torch" in course.preload, "matplotlib": draws}
        for library in (name for name, is_used in unused.items() if not is_used):
            project = re.sub(rf'^    "{library}\b.*\n', "", project, flags=re.M)
    for key, value in changes.items():
        line = f"{key} = {value}".replace("\\", r"\\")
        project = re.sub(rf"^{key} = .*$", line, project, flags=re.M)
    return project


def _quoted(text: str) -> str:
    """`text` as a TOML string, which has the form of a JSON string."""
    return json.dumps(text, ensure_ascii=False)


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


def _kit_files(course: Course) -> dict[str, bytes]:
    """The files that pip needs, and a README for students."""
    project, pins, licence = (
        course_text(course, _kit_folder() / name)
        for name in ("pyproject.toml", "constraints.txt", "LICENSE")
    )
    first = course.stages[0]
    readme = filled(
        __package__,
        "templates/student_readme.md",
        title=course.title,
        name=course.name,
        first=first.file_name,
    )
    return {
        "README.md": readme.encode(),
        "pyproject.toml": student_project(project, course).encode(),
        "constraints.txt": pins.encode(),
        **_licences(course, licence),
    }


def _licences(course: Course, of_kit: str) -> dict[str, bytes]:
    """The course's own licence, if it has one, and that of the grader."""
    if is_kits_own(course):
        return {"LICENSE": of_kit.encode()}
    own = course.root / "LICENSE"
    files = {"LICENSE": course_text(course, own).encode()} if own.is_file() else {}
    return {**files, "LICENSE-grader": of_kit.encode()}


def _kit_folder() -> Path:
    """The folder of the kit's project files: its checkout, or beside the installed course."""
    checkout = installed_folder().parent
    return checkout if (checkout / "constraints.txt").is_file() else installed_folder() / "kit"
