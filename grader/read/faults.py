"""One-line messages about faults in an author's files: place and fault."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from grader.types.course import Course, Stage
from grader.types.errors import CourseError, close_to, located


def author_text(file: Path, place: str) -> str:
    """The text of an author's file, called `place` in errors. Raises CourseError."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CourseError(f"{place}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CourseError(f"{place}: is not UTF-8: save it as UTF-8") from None


def author_module(stage: Stage, file: Path) -> ModuleType:
    """An author's file of a stage, imported; it may import `shared_files`. Raises CourseError."""
    spec = importlib.util.spec_from_file_location(f"{file.parent.name}_{stage.slug}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    shared = shared_files(file)
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        places = {str(each): stage.place(each) for each in (file, *shared)}
        raise CourseError(fault_of(error, places)) from error
    finally:
        sys.path.remove(str(file.parent))
        for each in file.parent.glob("*.py"):  # a stage has that name, or a file of another course
            if getattr(sys.modules.get(each.stem), "__file__", None) == str(each):
                del sys.modules[each.stem]
    return module


def shared_files(file: Path) -> list[Path]:
    """The modules beside an author's file that several stages share: their names begin with _."""
    return sorted(file.parent.glob("_[a-z]*.py"))


def fault_of(error: BaseException, places: Mapping[str, str]) -> str:
    """An error in an author's file as one line; see `located`."""
    return located(error, places, sys.modules)


def undefined(error: AttributeError) -> str:
    """The message for an entry point that an author's file does not define."""
    close = close_to(str(error.name), dir(error.obj))
    return f"does not define '{error.name}', which course.toml names{close}"


def course_text(course: Course, file: Path) -> str:
    """The text of a course's file. Raises CourseError with the file's path in the course."""
    return author_text(file, course_place(course, file))


def course_place(course: Course, file: Path) -> str:
    """A file's path in the course; its whole path if it is elsewhere."""
    is_inside = file.is_relative_to(course.root)
    return (file.relative_to(course.root) if is_inside else file).as_posix()
