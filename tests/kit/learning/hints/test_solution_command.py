"""`grade solution`: for whoever has passed, or says so aloud."""

from pathlib import Path

import pytest

from grader.command.main import main
from grader.read.progress import read_progress, update_progress
from grader.types.progress import Progress, StageProgress
from grader.types.report import Status
from tests.kit.support.tiny import Say, Typed

CODE = "return sheet // 2"


@pytest.fixture(autouse=True)
def sections(birds: Path) -> None:
    with open(birds / "hints" / "fold.md", "a", encoding="utf-8") as file:
        file.write("\n## Why it is written this way\nIt is short.\n")


def standing(folder: Path, **what: object) -> None:
    update_progress(folder, lambda now: Progress({"fold": StageProgress(**what)}))


@pytest.fixture
def closed(refused: Typed) -> Typed:
    """Type `grade solution fold ...`, which does not show it; why not."""

    def type_it(*words: str) -> str:
        error = refused("solution", "fold", *words)
        assert CODE not in error
        return error

    return type_it


@pytest.fixture
def shown(grade: Typed) -> Typed:
    """Type `grade solution fold ...`, which shows it."""

    def type_it(*words: str) -> str:
        found = grade("solution", "fold", *words)
        assert "def fold(sheet: int) -> int:\n      return sheet // 2\n" in found
        assert "Why it is written this way\n  It is short." in found
        assert "SOLUTION" not in found
        assert "Do it." not in found  # the docstring
        return found

    return type_it


@pytest.mark.parametrize("status", [None, *Status])
def test_before_it_has_passed_it_is_closed(
    birds: Path, closed: Typed, status: Status | None
) -> None:
    if status is not None:
        standing(birds, status=status, best=39.0)
    error = closed()
    assert "`grade hint fold`" in error
    assert "--give-up" in error


@pytest.mark.parametrize("status", [None, Status.FAILED, Status.PASSED])
def test_once_passed_it_is_open_for_good(birds: Path, shown: Typed, status: Status | None) -> None:
    standing(birds, status=status, passed="2026-01-01")
    assert "before passing" not in shown()
    shown("--give-up")
    assert not read_progress(birds).progress.stage("fold").gave_up


def test_giving_up_is_remembered(birds: Path, shown: Typed) -> None:
    standing(birds, status=Status.FAILED, best=20.0, rungs=3)
    assert "before passing; `grade` remembers that" in " ".join(shown("--give-up").split())
    assert read_progress(birds).progress.stage("fold") == StageProgress(
        status=Status.FAILED, best=20.0, rungs=3, gave_up=True
    )
    assert "before passing" in shown()
    assert main(["solution", "wings"]) == 2  # of the others nothing is opened


def test_what_cannot_be_remembered_is_not_shown(birds: Path, closed: Typed) -> None:
    (birds / ".grade").write_text("in the way", encoding="utf-8")
    assert "so " in closed()
    closed("--give-up")


def test_a_spoilt_memory_opens_nothing(birds: Path, say: Say) -> None:
    (birds / ".grade").mkdir()
    (birds / ".grade" / "progress.json").write_text("{", encoding="utf-8")
    code, shown, error = say("solution", "fold")
    assert code == 2 and CODE not in shown + error
    assert "it is kept as progress.json.corrupt-1" in error
    assert "when the stage passes" in error


def test_a_fault_of_the_course_is_no_surrender(birds: Path, closed: Typed) -> None:
    (birds / "solutions" / "fold.py").write_text("x = 1\n", encoding="utf-8")
    assert "solutions/fold.py: has no '### BEGIN" in closed("--give-up")
    assert not (birds / ".grade").exists()
