"""`grade solution`: for whoever has passed, or says so aloud."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.command.main import main
from grader.read.progress import read_progress, update_progress
from grader.types.progress import Progress, StageProgress
from grader.types.report import Status
from tests.kit.tiny import Capture

CODE = "return sheet // 2"


@pytest.fixture(autouse=True)
def sections(birds: Path) -> None:
    with open(birds / "hints" / "fold.md", "a", encoding="utf-8") as file:
        file.write("\n## Why it is written this way\nIt is short.\n")


def standing(folder: Path, **what: object) -> None:
    update_progress(folder, lambda now: Progress({"fold": StageProgress(**what)}))  # type: ignore[arg-type]


def refused(capsys: Capture, *words: str) -> str:
    assert main(["solution", "fold", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert CODE not in shown.err
    return shown.err


def shown(capsys: Capture, *words: str) -> str:
    assert main(["solution", "fold", *words]) == 0
    found = capsys.readouterr()
    assert found.err == ""
    assert "def fold(sheet: int) -> int:\n      return sheet // 2\n" in found.out
    assert "Why it is written this way\n  It is short." in found.out
    assert "SOLUTION" not in found.out
    assert "Do it." not in found.out  # the docstring
    return found.out


@pytest.mark.parametrize("status", [None, *Status])
def test_before_it_has_passed_it_is_closed(
    birds: Path, capsys: Capture, status: Status | None
) -> None:
    if status is not None:
        standing(birds, status=status, best=39.0)
    error = refused(capsys)
    assert error.count("\n") == 1
    assert "`grade hint fold`" in error
    assert "--give-up" in error


@pytest.mark.parametrize("status", [None, Status.FAILED, Status.PASSED])
def test_once_passed_it_is_open_for_good(
    birds: Path, capsys: Capture, status: Status | None
) -> None:
    standing(birds, status=status, passed="2026-01-01")
    assert "before passing" not in shown(capsys)
    shown(capsys, "--give-up")
    assert not read_progress(birds).progress.stage("fold").gave_up


def test_giving_up_is_remembered(birds: Path, capsys: Capture) -> None:
    standing(birds, status=Status.FAILED, best=20.0, rungs=3)
    assert "before passing; `grade` remembers that" in " ".join(shown(capsys, "--give-up").split())
    assert read_progress(birds).progress.stage("fold") == StageProgress(
        status=Status.FAILED, best=20.0, rungs=3, gave_up=True
    )
    assert "before passing" in shown(capsys)
    assert main(["solution", "wings"]) == 2  # of the others nothing is opened


def test_what_cannot_be_remembered_is_not_shown(birds: Path, capsys: Capture) -> None:
    (birds / ".grade").write_text("in the way", encoding="utf-8")
    assert "so " in refused(capsys)
    assert refused(capsys, "--give-up").count("\n") == 1


def test_a_spoilt_memory_opens_nothing(birds: Path, capsys: Capture) -> None:
    (birds / ".grade").mkdir()
    (birds / ".grade" / "progress.json").write_text("{", encoding="utf-8")
    error = refused(capsys)
    assert "it is kept as progress.json.corrupt-1" in error
    assert "opens when you pass" in error


def test_a_fault_of_the_course_is_no_surrender(birds: Path, capsys: Capture) -> None:
    (birds / "solutions" / "fold.py").write_text("x = 1\n", encoding="utf-8")
    assert "solutions/fold.py: has no '### BEGIN" in refused(capsys, "--give-up")
    assert not (birds / ".grade").exists()
