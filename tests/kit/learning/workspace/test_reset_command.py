"""`grade reset`: the stub is back, the work is kept, and no other stage is touched."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.command.main import main
from grader.read.progress import read_progress, update_progress
from grader.types.progress import Progress, StageProgress
from grader.types.report import Status
from tests.kit.support.files import edit
from tests.kit.support.tiny import Capture, Typed

Reset = Callable[[], list[str]]
WORK = b"def fold(sheet):\r\n    return sheet / 2 # \xff\r\n"


@pytest.fixture(params=["checkout", "workspace"])
def mine(request: pytest.FixtureRequest, birds: Path) -> Path:
    """The learner's folder: the course's own or one of `grade init`; also the working folder."""
    return birds if request.param == "checkout" else request.getfixturevalue("workspace")


@pytest.fixture
def reset_fold(grade: Typed) -> Reset:
    """Type `grade reset fold`; the lines that are shown."""
    return lambda: [line.strip() for line in grade("reset", "fold").splitlines()]


def test_the_stub_is_back_and_the_work_is_kept(mine: Path, reset_fold: Reset) -> None:
    fold, wings = (mine / "exercises" / f"{slug}.py" for slug in ("fold", "wings"))
    stub = fold.read_bytes()
    wings.write_bytes(WORK)
    for number in (1, 2):
        fold.write_bytes(WORK)
        assert reset_fold() == [
            "exercises/fold.py is the original stub again.",
            f"Your version is in .grade/replaced/fold.py-{number}. Your progress stays.",
        ]
        assert fold.read_bytes() == stub
        assert (mine / ".grade" / "replaced" / f"fold.py-{number}").read_bytes() == WORK
    assert wings.read_bytes() == WORK


def test_nothing_to_do(mine: Path, reset_fold: Reset) -> None:
    fold = mine / "exercises" / "fold.py"
    windows = fold.read_bytes().replace(b"\n", b"\r\n")
    fold.write_bytes(windows)
    (said,) = reset_fold()
    assert said.endswith("is still the stub: there is nothing to reset.")
    assert fold.read_bytes() == windows
    assert not (mine / ".grade" / "replaced").exists()


def test_a_missing_file_comes_back(mine: Path, reset_fold: Reset) -> None:
    fold = mine / "exercises" / "fold.py"
    stub = fold.read_bytes()
    fold.unlink()
    assert reset_fold() == ["exercises/fold.py is the original stub again."]
    assert fold.read_bytes() == stub


def test_progress_stays(mine: Path, reset_fold: Reset) -> None:
    passed = StageProgress(status=Status.PASSED, best=40.0, attempts=3, passed="2026-01-01")
    update_progress(mine, lambda now: Progress({"fold": passed}))
    (mine / "exercises" / "fold.py").write_bytes(WORK)
    reset_fold()
    assert read_progress(mine).progress.stage("fold") == passed


def test_a_workspace_goes_back_to_the_stub_it_began_from(
    birds: Path, workspace: Path, reset_fold: Reset
) -> None:
    fold, solution = Path("exercises/fold.py"), birds / "solutions" / "fold.py"
    stub = fold.read_bytes()
    fold.write_bytes(WORK)
    edit(solution, "Do it", "Done anew")
    reset_fold()
    assert fold.read_bytes() == stub


@pytest.mark.parametrize("words", [["reset", "fond"], ["reset", "fold", "wings"], ["reset"]])
def test_exactly_one_stage(birds: Path, capsys: Capture, words: list[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err != ""
