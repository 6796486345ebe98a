"""The course courses/tiny in a folder of its own, where commands are tried and faults planted."""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.command.main import main
from grader.read.course_file import read_course
from grader.types.course import Course
from tests.kit.support.checkout import TINY
from tests.kit.support.files import edit

Capture = pytest.CaptureFixture[str]
Say = Callable[..., tuple[int, str, str]]
Typed = Callable[..., str]


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A copy of the tiny course, to be changed."""
    return copy_tiny(tmp_path / "tiny")


@pytest.fixture
def tiny(course: Course, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the tiny course as the working folder, its stubs untouched."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(course.root)
    return course.root


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRADE_COURSE", raising=False)
    return tmp_path


@pytest.fixture
def say(capsys: Capture) -> Say:
    """Type `grade ...`; the exit code, what was shown and what errors."""

    def type_it(*words: str) -> tuple[int, str, str]:
        code = main(words)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return type_it


@pytest.fixture
def grade(say: Say, capsys: Capture) -> Typed:
    """Type `grade ...`, which goes well and says nothing on stderr; what it shows."""

    def type_it(*words: str) -> str:
        capsys.readouterr()
        code, shown, errors = say(*words)
        assert (code, errors) == (0, ""), (code, errors)
        return shown

    return type_it


@pytest.fixture
def refused(say: Say, capsys: Capture) -> Typed:
    """Type `grade ...`, which only says in one line why it does not work; that line."""

    def type_it(*words: str) -> str:
        capsys.readouterr()
        code, shown, error = say(*words)
        assert (code, shown, error.count("\n")) == (2, "", 1), (code, shown, error)
        return error

    return type_it


@pytest.fixture
def checks_apart() -> Iterator[None]:
    """pytest takes the check files of two courses for one if their paths in them are the same."""
    forget_checks()
    yield
    forget_checks()


def forget_checks() -> None:
    """Let the check files of the next course be imported."""
    for name in [name for name in sys.modules if name.startswith("tests.checks.")]:
        del sys.modules[name]


def copy_tiny(folder: Path, changes: dict[str, str] | None = None) -> Course:
    """A copy of the tiny course as this folder, with `changes` made in its course.toml."""
    shutil.copytree(TINY.root, folder, ignore=shutil.ignore_patterns("__pycache__", ".grade"))
    for old, new in (changes or {}).items():
        edit(folder / "course.toml", old, new)
    return read_course(folder / "course.toml")


def solve(root: Path, *slugs: str) -> None:
    """Put the solutions of these stages, or of all, in the place of the stubs."""
    for file in (root / "solutions").glob("*.py"):
        if not slugs or file.stem in slugs:
            shutil.copy(file, root / "exercises")


def change(course: Course, file: str, old: str, new: str) -> None:
    """Replace the first `old` in a file of the course."""
    edit(course.root / file, old, new)
