"""Finds the course and the workspace of a command; a file in .grade/ marks a workspace."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from grader.read.course_file import FILE_NAME, read_course
from grader.read.files import write_whole
from grader.read.progress import make_memory_folder, memory_folder
from grader.types.course import Course, Stage
from grader.types.errors import KitError, unwritable
from grader.types.progress import Progress
from grader.types.report import Status
from grader.types.workspace import Workspace

SCHEMA = 1
_MARK = "workspace.json"
_NAMED = "GRADE_COURSE"  # nbgrader's configuration sets it for its kernels
_UNWRITTEN = re.compile(rb"^\s*raise NotImplementedError\b", re.MULTILINE)


def locate_course(path: Path | None) -> Course:
    """The course that a command works on. Raises KitError.

    `path` is the course's folder or its course.toml; the environment's GRADE_COURSE may name it
    too. Without either, it is the course of the workspace, else the nearest course above the
    working folder, else the course that came with this package.
    """
    if path is None and os.environ.get(_NAMED):
        path = Path(os.environ[_NAMED])
    if path is not None:
        return _course_at(path)
    nearest = nearest_root(Path.cwd())
    if nearest is None:
        return own_course()
    return course_of(nearest) if is_workspace(nearest) else read_course(nearest / FILE_NAME)


def _course_at(path: Path) -> Course:
    try:
        file = path / FILE_NAME if path.is_dir() else path
        if file.name == FILE_NAME and file.is_file():
            return read_course(file)
    except OSError as error:  # the name is too long, or reading is not permitted
        raise KitError(f"{path}: is not a course: {error.strerror}") from None
    raise KitError(f"{path}: is not a course: it has no {FILE_NAME}")


def locate_whole_course(path: Path | None) -> Course:
    """Like `locate_course`, for commands that need all checks and solutions. Raises KitError."""
    course = locate_course(path)
    if course.is_partial:
        raise KitError("this is a student's copy: run this command in the whole course")
    return course


def locate_workspace(course: Path | None) -> Workspace:
    """The workspace that a learner's command works in. Raises KitError.

    It is the nearest folder, from the working folder upwards, that `grade init` made or that holds
    a course. `course` replaces the workspace's own course, as for `locate_course`; without a
    workspace, that course's folder is one, unless it is the installed course.
    """
    found = locate_course(course)
    nearest = nearest_root(Path.cwd())
    if nearest is not None and is_workspace(nearest):
        return Workspace(nearest, found)
    if found.root == installed_folder() or (course is None and nearest is None):
        raise KitError("this is not a workspace: go to yours, or make one here with `grade init`")
    return Workspace(found.root, found)


def mark_workspace(root: Path, course: Course) -> None:
    """Make `root` a workspace for `course`. Raises KitError if it cannot be written."""
    is_own = course.root in (installed_folder(), installed_folder().parent)
    mark = {"schema": SCHEMA, "course": None if is_own else str(course.root)}
    try:
        make_memory_folder(root)
        write_whole(_mark(root), json.dumps(mark) + "\n")
    except OSError as error:
        raise unwritable(error, root) from None


def nearest_root(start: Path) -> Path | None:
    """The nearest workspace or course folder, from `start` upwards."""
    for folder in (start, *start.parents):
        if is_workspace(folder) or (folder / FILE_NAME).is_file():
            return folder
    return None


def is_workspace(root: Path) -> bool:
    """Whether `grade init` made `root` a workspace."""
    return _mark(root).is_file()


def own_course() -> Course:
    """The course that came with this package: its checkout's or the installed one. KitError."""
    for folder in (installed_folder().parent, installed_folder()):
        if (folder / FILE_NAME).is_file():
            return read_course(folder / FILE_NAME)
    raise KitError(
        f"found no {FILE_NAME} here or above: go to the course's folder, or name it with --course"
    )


def installed_folder() -> Path:
    """The folder of a course installed with this package, beside the package."""
    return Path(__file__).resolve().parents[2] / "grader_course"


def is_kits_own(course: Course) -> bool:
    """Whether it is the course that the kit brings, installed or in a checkout."""
    return course.root in (installed_folder(), installed_folder().parent)


def current_stage(workspace: Workspace, progress: Progress) -> Stage:
    """The learner's current stage: the first that is not done.

    A graded stage is done if it passed. A stage without a verdict on its current text is done if
    its file has nothing left to write, unless the last hint was for it, or it was tried and never
    passed.
    """
    for stage in workspace.course.stages:
        known = progress.stage(stage.slug)
        if known.status is None:
            tried = known.attempts > 0 and known.passed is None
            hinted = stage.slug == progress.last_hint
            done = not tried and not hinted and not _is_unwritten(workspace.file(stage))
        else:
            done = known.status is Status.PASSED
        if not done:
            return stage
    return workspace.course.stages[-1]


def _is_unwritten(file: Path) -> bool:
    try:
        return _UNWRITTEN.search(file.read_bytes()) is not None
    except OSError:
        return True


def _mark(root: Path) -> Path:
    return memory_folder(root) / _MARK


def course_of(root: Path) -> Course:
    """The course that a workspace's mark names. Raises KitError."""
    mark = _mark(root)
    try:
        data = json.loads(mark.read_bytes())
    except (OSError, ValueError, RecursionError):
        data = None
    course = data.get("course") if isinstance(data, dict) else data
    if not isinstance(data, dict) or not isinstance(course, (str, type(None))):
        raise KitError(f"{mark}: is damaged: `grade init` in {root} rewrites it")
    if data.get("schema") != SCHEMA:
        raise KitError(f"{mark}: another version of the kit wrote it: update the kit")
    return own_course() if course is None else locate_course(Path(course))
