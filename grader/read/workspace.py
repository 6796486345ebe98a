"""Finds the course and the workspace of a command; a file in .grade/ marks a workspace.

Every package of a course puts it into `grader_courses/`, a folder beside the engine that nothing
imports. A workspace knows its course by name, and no command works there for another one.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from grader.read.course_file import FILE_NAME, read_course
from grader.read.files import read_table, write_whole
from grader.read.progress import make_memory_folder, memory_folder
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, KitError, writing
from grader.types.progress import Progress
from grader.types.report import Status
from grader.types.workspace import Workspace

SCHEMA = 1
COURSES = "grader_courses"
_MARK = "workspace.json"
_NAMED = "GRADE_COURSE"  # nbgrader's configuration sets it for its kernels
_UNWRITTEN = re.compile(rb"^[ \t]*raise NotImplementedError\b", re.MULTILINE)


def locate_course(path: Path | None, *, may_be_empty: bool = False) -> Course:
    """The course that a command works on. Raises KitError, also for one that has no stages yet.

    `path` is the course's folder, its course.toml or the name of an installed course; the
    environment's GRADE_COURSE may name it too. Without either, it is the course of the workspace,
    else the nearest course above the working folder, else the one that is installed.
    """
    course = _located(path)
    if not course.stages and not may_be_empty:
        raise KitError(
            f"the course '{course.name}' has no stages yet: `grade new STAGE --title TEXT` adds one"
        )
    return course


def _located(path: Path | None) -> Course:
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
    if str(path) == path.name and not path.exists():
        return installed_course(path.name)
    raise KitError(f"{path}: is not a course: it has no {FILE_NAME}")


def locate_whole_course(path: Path | None, *, may_be_empty: bool = False) -> Course:
    """Like `locate_course`, for commands that need all checks and solutions. Raises KitError."""
    course = locate_course(path, may_be_empty=may_be_empty)
    if course.is_partial:
        raise KitError("this is a student's copy: run this command in the whole course")
    return course


def locate_workspace(course: Path | None) -> Workspace:
    """The workspace that a learner's command works in. Raises KitError.

    It is the nearest folder, from the working folder upwards, that `grade init` made or that holds
    a course. `course` may name another place of the workspace's course, as for `locate_course`, but
    not another course. Without a workspace, that course's folder is one, unless it is installed.
    """
    found = locate_course(course)
    nearest = nearest_root(Path.cwd())
    if nearest is not None and is_workspace(nearest):
        refuse_other_course(nearest, found)
        return Workspace(nearest, found)
    if is_packaged(found) or (course is None and nearest is None):
        raise KitError("this is not a workspace: go to yours, or make one here with `grade init`")
    return Workspace(found.root, found)


def refuse_other_course(root: Path, course: Course) -> None:
    """Raise KitError if `root` is a workspace of another course."""
    name = _name_in_mark(root)
    if name not in (None, course.name):
        raise KitError(
            f"{root} is a workspace of the course '{name}', not of '{course.name}': go to another "
            "folder, or make one with `grade init DIR`"
        )


def mark_workspace(root: Path, course: Course) -> None:
    """Make `root` a workspace for `course`. Raises KitError if it cannot be written."""
    place = None if is_installed(course) else str(course.root)
    version = version_seen(root) if is_workspace(root) else course.version
    about = {"schema": SCHEMA, "course": place, "name": course.name}
    _write_mark(root, {**about, "version": version} if version else about)


def _write_mark(root: Path, about: Mapping[str, object]) -> None:
    with writing(root):
        make_memory_folder(root)
        write_whole(_mark(root), json.dumps(about) + "\n")


def version_seen(root: Path) -> str:
    """The version of the course that the learner has last updated to; "" if unknown."""
    version = read_table(_mark(root)).get("version")
    return version if isinstance(version, str) else ""


def note_version(root: Path, version: str) -> None:
    """Note that the learner has updated to a version. Raises KitError if it cannot be written."""
    about = read_table(_mark(root))
    if about and version_seen(root) != version:
        _write_mark(root, {**about, "version": version})


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
    """The installed course, if it is the only one. Raises KitError."""
    found = _installed_courses()
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise KitError(
            f"{len(found)} courses are installed ({', '.join(sorted(found))}): name yours with "
            f"--course NAME, or with {_NAMED}=NAME in the environment"
        )
    raise KitError(
        f"found no {FILE_NAME} here or above, and no course is installed: go to the course's "
        "folder, or name it with --course"
    )


def installed_course(name: str) -> Course:
    """The installed course of that name. Raises KitError."""
    found = _installed_courses()
    if name not in found:
        known = f" (installed: {', '.join(sorted(found))})" if found else ""
        raise KitError(f"{name}: is neither a course's folder nor an installed course{known}")
    return found[name]


def _installed_courses() -> dict[str, Course]:
    """The installed courses by name. Raises CourseError if the checkout's is faulty.

    A faulty package does not stand in the way of another course.
    """
    found: dict[str, Course] = {}
    for root in installed_roots():
        try:
            course = read_course(root / FILE_NAME)
        except CourseError:
            if root == _CHECKOUT:
                raise
        else:
            found.setdefault(course.name, course)
    return found


def installed_roots() -> list[Path]:
    """The folders of all installed courses.

    A checkout comes first: pip may have left an old course.toml of its course elsewhere.
    """
    folders = [Path(entry, COURSES).resolve() for entry in sys.path if entry]
    files = [file for folder in folders for file in sorted(folder.glob(f"*/{FILE_NAME}"))]
    own = [_CHECKOUT] if (_CHECKOUT / FILE_NAME).is_file() else []
    return own + [file.parent for file in files]


def is_installed(course: Course) -> bool:
    """Whether it is found without its path: it came in a package, or in the engine's checkout."""
    return course.root == _CHECKOUT or is_packaged(course)


def is_packaged(course: Course) -> bool:
    """Whether it came in a package, so that nobody works in its folder."""
    return course.root.parent.name == COURSES


_CHECKOUT = Path(__file__).resolve().parents[2]


def current_stage(workspace: Workspace, progress: Progress) -> Stage:
    """The learner's current stage: the first `in_turn` that is not done.

    A graded stage is done if it passed. A stage without a verdict on its current text is done if
    its file has nothing left to write, unless the last hint was for it, or it was tried and never
    passed.
    """
    stages = in_turn(workspace.course, progress)
    for stage in stages:
        known = progress.stage(stage.slug)
        if known.status is None:
            tried = known.attempts > 0 and known.passed is None
            hinted = stage.slug == progress.last_hint
            done = not tried and not hinted and not _is_unwritten(workspace.file(stage))
        else:
            done = known.status is Status.PASSED
        if not done:
            return stage
    return stages[-1]


def in_turn(course: Course, progress: Progress) -> list[Stage]:
    """The core stages, then the bonus stages: first those that the learner has begun."""

    def turn(stage: Stage) -> tuple[bool, bool]:
        known = progress.stage(stage.slug)
        is_begun = known.attempts > 0 and known.status is not Status.NOT_STARTED
        return stage.bonus, stage.bonus and not is_begun

    return sorted(course.stages, key=turn)


def _is_unwritten(file: Path) -> bool:
    try:
        return _UNWRITTEN.search(file.read_bytes()) is not None
    except OSError:
        return True


def _mark(root: Path) -> Path:
    return memory_folder(root) / _MARK


def course_of(root: Path) -> Course:
    """The course that a workspace's mark names. Raises KitError."""
    mark, data = _mark(root), read_table(_mark(root))
    if has_spoilt_mark(root):
        raise KitError(f"{mark}: is damaged: `grade init` in {root} rewrites it")
    if data.get("schema") != SCHEMA:
        raise KitError(f"{mark}: another version of the kit wrote it: update the kit")
    if data["course"] is not None:
        found = _course_at(Path(data["course"]))
        refuse_other_course(root, found)
        return found
    name, installed = data["name"], _installed_courses()
    if name not in installed:
        raise KitError(
            f"{root} is a workspace of the course '{name}', which is not installed: activate its "
            "Python environment, or install it"
        )
    return installed[name]


def has_spoilt_mark(root: Path) -> bool:
    """Whether the mark of a workspace cannot be read, so that it may be rewritten."""
    data = read_table(_mark(root))
    has_course = isinstance(data.get("course", 0), (str, type(None)))
    return not has_course or not isinstance(data.get("name"), str)


def _name_in_mark(root: Path) -> str | None:
    """The name of the course in a mark; None if there is none."""
    name = read_table(_mark(root)).get("name")
    return name if isinstance(name, str) else None
