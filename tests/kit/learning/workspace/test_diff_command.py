"""`grade diff`: what the learner has changed, for any file that there may be."""

from pathlib import Path

import pytest

from grader.command.main import main
from tests.kit.support.files import edit
from tests.kit.support.tiny import Capture, Typed


@pytest.fixture
def fold(birds: Path) -> Path:
    return birds / "exercises" / "fold.py"


def work_in(file: Path) -> None:
    edit(file, "raise NotImplementedError", "return len")


def test_what_has_changed(fold: Path, grade: Typed) -> None:
    work_in(fold)
    assert grade("diff", "fold").splitlines() == [
        "--- exercises/fold.py (stub)",
        "+++ exercises/fold.py (now)",
        "@@ -3,4 +3,4 @@",
        "",
        " def fold(sheet: int) -> int:",
        '     """Do it."""',
        '-    raise NotImplementedError("fold is not written yet")',
        '+    return len("fold is not written yet")',
        "",
        "  1 line added, 1 removed.",
    ]


def test_line_ends_and_the_byte_order_mark_are_no_change(fold: Path, grade: Typed) -> None:
    fold.write_bytes(b"\xef\xbb\xbf" + fold.read_bytes().replace(b"\n", b"\r\n"))
    assert grade("diff", "fold") == "  exercises/fold.py is unchanged: it is still the stub.\n"


def test_without_a_stage_it_is_the_current_one(
    birds: Path, fold: Path, grade: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_in(fold)
    monkeypatch.chdir(birds / "exercises")
    assert grade("diff") == "  wings.py is unchanged: it is still the stub.\n"


def test_without_a_stage_where_nothing_can_be_remembered(birds: Path, capsys: Capture) -> None:
    (birds / ".grade").write_text("in the way", encoding="utf-8")
    assert main(["diff"]) == 0
    shown = capsys.readouterr()
    assert "exercises/fold.py is unchanged" in shown.out
    assert shown.err.count("\n") == 1


def test_a_workspace_remembers_the_stub_it_began_from(
    birds: Path, workspace: Path, grade: Typed
) -> None:
    solution = birds / "solutions" / "fold.py"
    edit(solution, "Do it", "Done anew")
    assert "it is still the stub" in grade("diff", "fold")


def test_what_cannot_be_compared(fold: Path, refused: Typed) -> None:
    words = ("diff", "fold")
    fold.write_bytes(b"\xff")
    assert "exercises/fold.py: is not UTF-8" in refused(*words)
    fold.unlink()
    assert "exercises/fold.py is missing: `grade reset fold` restores it" in refused(*words)
    fold.symlink_to(fold.with_name("wings.py"))
    assert "is a link" in refused(*words)
