"""`grade reset`: the stub is back, the work is kept, and no other stage is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.command.main import main
from grader.read.progress import read_progress, update_progress
from grader.types.progress import Progress, StageProgress
from grader.types.report import Status
from tests.kit.tiny import Capture

WORK = b"def fold(sheet):\r\n    return sheet / 2 # \xff\r\n"


@pytest.fixture(params=["checkout", "workspace"])
def mine(
    request: pytest.FixtureRequest, birds: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The learner's folder: the course's own or one of `grade init`; also the working folder."""
    if request.param == "checkout":
        return birds
    assert main(["init", "mine"]) == 0
    capsys.readouterr()
    monkeypatch.chdir(birds / "mine")
    return birds / "mine"


def reset(capsys: Capture, slug: str) -> list[str]:
    assert main(["reset", slug]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return [line.strip() for line in shown.out.splitlines()]


def test_the_stub_is_back_and_the_work_is_kept(mine: Path, capsys: Capture) -> None:
    fold, wings = (mine / "exercises" / f"{slug}.py" for slug in ("fold", "wings"))
    stub = fold.read_bytes()
    wings.write_bytes(WORK)
    for number in (1, 2):
        fold.write_bytes(WORK)
        assert reset(capsys, "fold") == [
            "exercises/fold.py is the original stub again.",
            f"Your version is in .grade/replaced/fold.py-{number}. Your progress stays.",
        ]
        assert fold.read_bytes() == stub
        assert (mine / ".grade" / "replaced" / f"fold.py-{number}").read_bytes() == WORK
    assert wings.read_bytes() == WORK


def test_nothing_to_do(mine: Path, capsys: Capture) -> None:
    fold = mine / "exercises" / "fold.py"
    windows = fold.read_bytes().replace(b"\n", b"\r\n")
    fold.write_bytes(windows)
    (said,) = reset(capsys, "fold")
    assert said.endswith("is still the stub: there is nothing to reset.")
    assert fold.read_bytes() == windows
    assert not (mine / ".grade" / "replaced").exists()


def test_a_missing_file_comes_back(mine: Path, capsys: Capture) -> None:
    fold = mine / "exercises" / "fold.py"
    stub = fold.read_bytes()
    fold.unlink()
    assert reset(capsys, "fold") == ["exercises/fold.py is the original stub again."]
    assert fold.read_bytes() == stub


def test_progress_stays(mine: Path, capsys: Capture) -> None:
    passed = StageProgress(status=Status.PASSED, best=40.0, attempts=3, passed="2026-01-01")
    update_progress(mine, lambda now: Progress({"fold": passed}))
    (mine / "exercises" / "fold.py").write_bytes(WORK)
    reset(capsys, "fold")
    assert read_progress(mine).progress.stage("fold") == passed


def test_a_workspace_goes_back_to_the_stub_it_began_from(
    birds: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["init", "mine"])
    capsys.readouterr()
    monkeypatch.chdir(birds / "mine")
    fold, solution = Path("exercises/fold.py"), birds / "solutions" / "fold.py"
    stub = fold.read_bytes()
    fold.write_bytes(WORK)
    solution.write_bytes(solution.read_bytes().replace(b"Do it", b"Done anew"))
    reset(capsys, "fold")
    assert fold.read_bytes() == stub


def test_a_link_is_refused(mine: Path, capsys: Capture) -> None:
    fold, target = mine / "exercises" / "fold.py", mine / "elsewhere.py"
    target.write_bytes(WORK)
    fold.unlink()
    fold.symlink_to(target)
    assert main(["reset", "fold"]) == 2
    assert "is a link" in capsys.readouterr().err
    assert target.read_bytes() == WORK
    assert fold.is_symlink()


def test_where_no_copy_can_be_kept_nothing_is_replaced(birds: Path, capsys: Capture) -> None:
    fold = birds / "exercises" / "fold.py"
    fold.write_bytes(WORK)
    (birds / ".grade").write_text("in the way", encoding="utf-8")
    assert main(["reset", "fold"]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert fold.read_bytes() == WORK


@pytest.mark.parametrize("words", [["reset", "fond"], ["reset", "fold", "wings"], ["reset"]])
def test_exactly_one_stage(birds: Path, capsys: Capture, words: list[str]) -> None:
    try:
        code = main(words)
    except SystemExit as stopped:  # argparse's own
        code = stopped.code
    assert code == 2
    assert capsys.readouterr().err != ""
