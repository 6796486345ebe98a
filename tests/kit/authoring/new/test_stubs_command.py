"""`grade stubs`: writes what is out of step, and says what it left alone."""

from pathlib import Path

from grader.command.main import main
from tests.kit.support.files import edit
from tests.kit.support.tiny import Capture, Typed

BEGUN = "is not the stub: someone worked in it, or the stub's code has changed"
WORK = "def fold(sheet):\n    return sheet / 2\n"


def said(capsys: Capture) -> list[str]:
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out.splitlines()


def test_in_step(birds: Path, capsys: Capture) -> None:
    for words in (["stubs"], ["stubs", "--check"]):
        assert main(words) == 0
        assert said(capsys) == ["All 3 stubs match their solutions."]


def test_absent_and_old(birds: Path, capsys: Capture) -> None:
    fold, wings = birds / "exercises" / "fold.py", birds / "exercises" / "wings.py"
    stub = wings.read_text(encoding="utf-8")
    fold.unlink()
    edit(wings, "Do it", "Did it")
    assert main(["stubs", "--check"]) == 1
    assert said(capsys) == [
        "exercises/fold.py  is missing",
        "exercises/wings.py  is an older stub",
        "`grade stubs` writes missing and outdated stubs.",
    ]
    assert not fold.exists()
    assert main(["stubs"]) == 0
    assert said(capsys) == ["exercises/fold.py  written", "exercises/wings.py  rewritten"]
    assert wings.read_text(encoding="utf-8") == stub
    assert main(["stubs", "--check"]) == 0


def test_work_is_left_alone_unless_forced(birds: Path, capsys: Capture) -> None:
    fold = birds / "exercises" / "fold.py"
    fold.write_text(WORK, encoding="utf-8")
    assert main(["stubs"]) == 1
    assert said(capsys) == [
        f"exercises/fold.py  {BEGUN}",
        "`grade stubs fold --force` replaces the file and keeps a copy in .grade/replaced/.",
    ]
    assert main(["stubs", "--check", "wings"]) == 0
    assert main(["stubs", "wings", "--force"]) == 0
    capsys.readouterr()
    assert fold.read_text(encoding="utf-8") == WORK
    assert main(["stubs", "--force"]) == 0
    assert said(capsys) == [
        "exercises/fold.py  replaced; a copy of the old one is in .grade/replaced/"
    ]
    copy = birds / ".grade" / "replaced" / "fold.py-1"
    assert copy.read_text(encoding="utf-8") == WORK
    assert "NotImplementedError" in fold.read_text(encoding="utf-8")


def test_a_wrong_solution(birds: Path, refused: Typed) -> None:
    (birds / "solutions" / "wings.py").write_text("x = 1\n", encoding="utf-8")
    assert refused("stubs").startswith("grade: solutions/wings.py: has no '### BEGIN")
