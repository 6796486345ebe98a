"""Makes an nbgrader course from a course: nbgrader_config.py and source/. Keeps the gradebook.

`configured` is pure; `write_nbgrader_course` writes files.
"""

from __future__ import annotations

import ast
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from grader.classes.nbgrader.assignment import assignment_notebook
from grader.learning.predict.questions import read_predictions
from grader.read.course_file import FILE_NAME
from grader.read.files import write_whole
from grader.read.stubs import keep_copy, read_source
from grader.types.course import Assignment, Course
from grader.types.errors import KitError, unwritable

CONFIG = "nbgrader_config.py"
_BEGIN = "# >>> grade release nbgrader: rewritten each time; put your own settings below <<<"
_END = "# >>> end of what grade release nbgrader has written <<<"
# Our lines, also as older versions of the kit began them.
_OWN = re.compile(rf"^# >>> grade release nbgrader: .*?(?:^{re.escape(_END)}|\Z)", re.M | re.S)
_COURSE = 'os.environ["GRADE_COURSE"] = '
_PLUGINS = "grader.nbgrader"  # nbgrader imports it by this name, and stops if it is missing


@dataclass(frozen=True)
class Released:
    """The `written` files, new or changed, and the copies `kept` of the old ones."""

    written: tuple[Path, ...]
    kept: tuple[Path, ...]


def write_nbgrader_course(root: Path, course: Course, *, kernel: bool) -> Released:
    """Write the configuration and the instructor's notebooks of all assignments into `root`.

    Settings outside our lines stay; a notebook that differs is replaced, and a copy kept. With
    `kernel`, nbgrader runs notebooks in kernels, as it does by default. Raises CourseError before
    writing anything, and KitError if writing fails.
    """
    texts = {
        root / "source" / assignment.name / f"{assignment.name}.ipynb": _notebook(
            course, assignment
        )
        for assignment in course.assignments
    }
    config = root / CONFIG
    written, kept = [], []
    try:
        root.mkdir(parents=True, exist_ok=True)
        old = config.read_text("utf-8") if config.exists() else ""
        texts[config] = configured(old, course, kernel=kernel)
        for file, text in texts.items():
            if file.exists():
                if file.read_text("utf-8") == text:
                    continue
                kept.append(keep_copy(file, root))
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, text)
            written.append(file)
    except OSError as error:
        raise unwritable(error, root) from None
    except UnicodeDecodeError:
        raise KitError(f"{file}: is not UTF-8: move it away first") from None
    return Released(tuple(written), tuple(kept))


def configured_course(root: Path) -> Path | None:
    """The folder of the course that an nbgrader course was made from; None if it is not there."""
    with suppress(OSError, ValueError, SyntaxError):
        text = (root / CONFIG).read_text("utf-8")
        lines = [line for line in text.splitlines() if line.startswith(_COURSE)]
        place = Path(str(ast.literal_eval(lines[-1].removeprefix(_COURSE)))) if lines else None
        return place if place is not None and (place / FILE_NAME).is_file() else None
    return None


def configured(old: str, course: Course, *, kernel: bool) -> str:
    """The configuration with our lines in place of the old ones."""
    own = _settings(course, kernel)
    if not old.strip():
        return f"c = get_config()\n\n{own}"
    found = _OWN.search(old)
    if found is None:
        return f"{old.rstrip()}\n\n{own}"
    return old[: found.start()] + own.removesuffix("\n") + old[found.end() :]


def _settings(course: Course, kernel: bool) -> str:
    """Our lines. They import nothing of the kit: if it were missing, nbgrader would ignore them.

    If a configuration raises, nbgrader only logs it, grades with its own settings and ends with
    exit code 0. If a configured class cannot be imported, nbgrader stops.
    """
    lines = [
        _BEGIN,
        "import os  # noqa: E402",
        "",
        f"c.CourseDirectory.course_id = {course.name!r}",
        "# The course with the checks.",
        f"{_COURSE}{str(course.root)!r}",
        "# Read every submission, however broken it is and whatever its name.",
        f'c.Autograde.exporter_class = "{_PLUGINS}.AnyNotebook"',
        f'c.Autograde.pre_convert_hook = "{_PLUGINS}.find_notebook"',
        "c.OverwriteCells.add_missing_cells = True",
    ]
    if kernel:
        lines += [
            "# A warning in a graded cell costs no points.",
            "c.IgnorePattern.enabled = True",
            'c.IgnorePattern.pattern = r"[\\s\\S]*"',
        ]
        if any(assignment.late for assignment in course.assignments):
            steps = "Execute IgnorePattern ClearMetadataPreprocessor LimitOutput SaveAutoGrades"
            lines += [
                "# As nbgrader's, but the late rule is that of course.toml.",
                "c.Autograde.autograde_preprocessors = [",
                *(f'    "{_step(name)}",' for name in steps.split()),
                f'    "{_PLUGINS}.LatePenalty",',
                f'    "{_step("CheckCellMetadata")}",',
                "]",
            ]
    else:
        lines += [
            "# No kernel starts: the kit grades the notebook in an isolated process and",
            "# writes points and reasons.",
            "c.Autograde.sanitize_preprocessors = []",
            "c.Autograde.autograde_preprocessors = [",
            f'    "{_PLUGINS}.GradeWithEngine",',
            f'    "{_PLUGINS}.SaveVerdict",',
            f'    "{_PLUGINS}.LatePenalty",',
            "]",
        ]
    return "\n".join([*lines, _END]) + "\n"


def _step(name: str) -> str:
    """The import path of a preprocessor that nbgrader uses."""
    package = "nbconvert" if name == "ClearMetadataPreprocessor" else "nbgrader"
    return f"{package}.preprocessors.{name}"


def _notebook(course: Course, assignment: Assignment) -> str:
    solutions = {stage.slug: read_source(stage)[0] for stage in assignment.stages}
    asked = {stage.slug: read_predictions(stage) for stage in assignment.stages}
    questions = {slug: found for slug, found in asked.items() if found is not None}
    data = assignment_notebook(course, assignment, solutions, questions)
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
