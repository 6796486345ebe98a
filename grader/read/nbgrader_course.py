"""An nbgrader course made from a course: nbgrader_config.py and source/. Never loses a gradebook.

`configured` is pure; `write_nbgrader_course` writes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from grader.read.files import write_whole
from grader.read.notebook import assignment_notebook
from grader.read.predictions import read_predictions
from grader.read.stubs import keep_copy, read_source
from grader.types.course import Assignment, Course
from grader.types.errors import KitError

CONFIG = "nbgrader_config.py"
_BEGIN = "# >>> grade release nbgrader: written anew each time; your own settings go below <<<"
_END = "# >>> end of what grade release nbgrader has written <<<"
_PLUGINS = "grader.nbgrader"  # imported by nbgrader itself, which then fails where it is missing


@dataclass(frozen=True)
class Released:
    """What was done to each file: `written` are new or changed; `kept` are copies of the old."""

    written: tuple[Path, ...]
    kept: tuple[Path, ...]


def write_nbgrader_course(root: Path, course: Course, *, kernel: bool) -> Released:
    """Write the configuration and the instructor's notebooks of all assignments into `root`.

    What stands in the configuration outside our lines stays; a notebook that differs is replaced
    and a copy kept. With `kernel` nbgrader runs notebooks in kernels, as it does by itself. Raises
    CourseError before anything is written, KitError where that fails.
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
        raise KitError(f"{error.filename or root}: cannot be written: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KitError(f"{file}: is not UTF-8: move it away first") from None
    return Released(tuple(written), tuple(kept))


def configured(old: str, course: Course, *, kernel: bool) -> str:
    """The configuration with our lines in place of those of the last time."""
    own = _settings(course, kernel)
    before, begin, rest = old.partition(_BEGIN)
    if not begin:
        return f"c = get_config()\n\n{own}" if not old.strip() else f"{old.rstrip()}\n\n{own}"
    _, _, after = rest.partition(_END)
    return before + own.removesuffix("\n") + after


def _settings(course: Course, kernel: bool) -> str:
    """Our lines. They import nothing of ours: were it missing, nbgrader would go on without them.

    Of a configuration that raises, nbgrader tells in its log, grades with its own settings and
    ends with exit code 0; a class that cannot be imported stops it.
    """
    lines = [
        _BEGIN,
        "import os  # noqa: E402",
        "",
        f"c.CourseDirectory.course_id = {course.name!r}",
        "# Where the checks are.",
        f'os.environ["GRADE_COURSE"] = {str(course.root)!r}',
        "# Whatever is handed in can be read, however broken, and whatever it is called.",
        f'c.Autograde.exporter_class = "{_PLUGINS}.AnyNotebook"',
        f'c.Autograde.pre_convert_hook = "{_PLUGINS}.find_notebook"',
        "c.OverwriteCells.add_missing_cells = True",
    ]
    if kernel:
        lines += [
            "# A warning in a cell that grades is no mistake.",
            "c.IgnorePattern.enabled = True",
            'c.IgnorePattern.pattern = r"[\\s\\S]*"',
        ]
    else:
        lines += [
            "# No kernel starts: the course's own grader judges the notebook in an isolated",
            "# process and writes down points and reasons.",
            "c.Autograde.sanitize_preprocessors = []",
            "c.Autograde.autograde_preprocessors = [",
            f'    "{_PLUGINS}.GradeWithEngine",',
            f'    "{_PLUGINS}.SaveVerdict",',
            '    "nbgrader.preprocessors.AssignLatePenalties",',
            "]",
        ]
    return "\n".join([*lines, _END]) + "\n"


def _notebook(course: Course, assignment: Assignment) -> str:
    solutions = {stage.slug: read_source(stage)[0] for stage in assignment.stages}
    asked = {stage.slug: read_predictions(stage) for stage in assignment.stages}
    questions = {slug: found for slug, found in asked.items() if found is not None}
    data = assignment_notebook(course, assignment, solutions, questions)
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
