"""A newer course comes into a workspace: stubs anew, work merged or left, nothing ever lost."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.learning.workspace import update
from grader.learning.workspace.exercises import keep_stub
from grader.learning.workspace.scaffold import make_workspace
from grader.learning.workspace.update import Update, gone_stages, update_workspace
from grader.types.errors import CourseError
from grader.types.workspace import Workspace
from tests.kit.support.birds import course_of

SOLUTION = '''"""Paper birds."""

import math


def fold(sheet: int) -> int:
    """Halve the sheet.

    It is made of paper.
    """
    ### BEGIN SOLUTION
    return sheet // 2
    ### END SOLUTION


SIZE = 4  # given
'''
STUB = SOLUTION.replace(
    "    ### BEGIN SOLUTION\n    return sheet // 2\n    ### END SOLUTION\n",
    '    raise NotImplementedError("fold is not written yet")\n',
)
RAISE = 'raise NotImplementedError("fold is not written yet")'
MINE = STUB.replace(RAISE, "return sheet >> 1")


class Files:
    """A course of one stage that can change, and the workspace of a learner of it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "course"
        (self.root / "solutions").mkdir(parents=True)
        self.workspace = Workspace(folder / "mine", course_of(self.root, "fold"))
        self.solution("fold", SOLUTION)
        make_workspace(self.workspace.root, self.workspace.course, None)
        self.file = self.workspace.exercises / "fold.py"
        self.base = self.workspace.root / ".grade" / "stubs" / "fold.py"

    def solution(self, slug: str, text: str) -> str:
        """Change a solution; the new stub."""
        (self.root / "solutions" / f"{slug}.py").write_text(text, encoding="utf-8")
        return text.replace(
            SOLUTION[SOLUTION.index("    ### BEG") : SOLUTION.index("\n\n\nSIZE")], f"    {RAISE}"
        )

    def update(self) -> Update:
        (done,) = update_workspace(self.workspace)
        return done.update

    def replaced(self) -> list[str]:
        folder = self.workspace.root / ".grade" / "replaced"
        return [file.read_bytes().decode() for file in sorted(folder.glob("*"))]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def edited(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        text = text.replace(old, new)
    return text


CUT, FIVE = ("Halve", "Cut"), ("SIZE = 4", "SIZE = 5")
PAPER = (("sheet: int", "paper: int"), ("return sheet", "return paper"))
# The learner's file, what changes in the course, and what becomes of the file.
UPDATES = {
    "nothing new": (edited(MINE, ("paper", "notes of mine")), [], Update.NONE),
    "a stub that nobody has touched": (STUB, [FIVE], Update.RENEWED),
    "work": (MINE, [CUT, FIVE], Update.MERGED),
    "a note in a stub": (edited(STUB, ("math", "math  # what for?")), [CUT], Update.MERGED),
    "a note in the way": (edited(STUB, ("Halve", "(do I?) Halve")), [CUT], Update.RENEWED),
    "no Python yet": (edited(MINE, ("return sheet", "return (sheet")), [FIVE], Update.MERGED),
    "the same line": (edited(MINE, *PAPER), [("sheet: int", "page: int")], Update.LEFT),
}


@pytest.mark.parametrize("work, changes, update", UPDATES.values(), ids=UPDATES)
def test_what_becomes_of_a_file(
    files: Files, work: str, changes: list[tuple[str, str]], update: Update
) -> None:
    files.file.write_text(work, encoding="utf-8")
    stub = files.solution("fold", edited(SOLUTION, *changes))
    (done,) = update_workspace(files.workspace)
    assert done.update is update
    after = {Update.MERGED: edited(work, *changes), Update.RENEWED: stub}.get(update, work)
    assert files.file.read_text(encoding="utf-8") == after
    assert files.base.read_text(encoding="utf-8") == stub
    assert files.replaced() == ([] if after == work else [work])
    assert (done.beside is not None) is (update is Update.LEFT)
    if done.beside is not None:
        assert done.beside == files.workspace.root / ".grade" / "new" / "fold.py"
        assert done.beside.read_text(encoding="utf-8") == stub
    assert files.update() is Update.NONE


def test_what_was_python_stays_so(files: Files) -> None:
    """Neither change touches the other, but the brackets do not match any more."""
    given = STUB + "BOTH = (\n    1,\n    2,\n    3,\n)\n"
    work = given.replace("BOTH = (", "BOTH = [").replace("\n)\n", "\n]\n")
    keep_stub(files.workspace, files.workspace.course.stages[0], given)
    files.file.write_text(work, encoding="utf-8")
    files.solution("fold", SOLUTION + "BOTH = (\n    1,\n    2) + (\n    3,\n)\n")
    assert files.update() is Update.LEFT
    assert files.file.read_text(encoding="utf-8") == work


def test_windows_line_ends_stay(files: Files) -> None:
    files.file.write_bytes(MINE.replace("\n", "\r\n").encode())
    files.solution("fold", SOLUTION.replace("SIZE = 4", "SIZE = 5"))
    assert files.update() is Update.MERGED
    assert files.file.read_bytes() == MINE.replace("= 4", "= 5").replace("\n", "\r\n").encode()


def test_a_missing_file_comes_back(files: Files) -> None:
    files.file.unlink()
    assert files.update() is Update.ADDED
    assert files.file.read_text(encoding="utf-8") == STUB


def test_what_cannot_be_merged_is_left(files: Files, tmp_path: Path) -> None:
    new = SOLUTION.replace("SIZE = 4", "SIZE = 5")
    files.file.write_bytes(b"x = '\xe9'\n")
    files.solution("fold", new)
    (done,) = update_workspace(files.workspace)
    assert done.update is Update.LEFT
    assert done.why.endswith("is not UTF-8")
    assert files.file.read_bytes() == b"x = '\xe9'\n"

    target = tmp_path / "elsewhere.py"
    target.write_text(MINE, encoding="utf-8")
    files.file.unlink()
    files.file.symlink_to(target)
    files.solution("fold", new.replace("Halve", "Cut"))
    (done,) = update_workspace(files.workspace)
    assert done.update is Update.LEFT
    assert "is a link" in done.why
    assert files.file.is_symlink()
    assert target.read_text(encoding="utf-8") == MINE


def test_without_the_stub_it_began_from_work_is_left(files: Files) -> None:
    files.base.unlink()
    files.file.write_text(MINE, encoding="utf-8")
    assert files.update() is Update.LEFT
    assert files.file.read_text(encoding="utf-8") == MINE
    assert files.update() is Update.NONE


def test_a_new_stage_appears_and_a_gone_one_stays(files: Files) -> None:
    files.file.write_text(MINE, encoding="utf-8")
    files.solution("wings", SOLUTION.replace("fold", "wings"))
    newer = Workspace(files.workspace.root, course_of(files.root, "wings"))
    assert [done.update for done in update_workspace(newer)] == [Update.ADDED]
    assert (newer.exercises / "wings.py").is_file()
    assert gone_stages(newer) == [files.file]
    assert files.file.read_text(encoding="utf-8") == MINE
    files.file.unlink()
    assert gone_stages(newer) == []


def test_a_wrong_course_changes_nothing(files: Files) -> None:
    files.solution("wings", "x = 1\n")
    files.solution("fold", SOLUTION.replace("SIZE = 4", "SIZE = 5"))
    newer = Workspace(files.workspace.root, course_of(files.root, "fold", "wings"))
    with pytest.raises(CourseError):
        update_workspace(newer)
    assert files.file.read_text(encoding="utf-8") == STUB


def test_no_line_is_put_in_twice(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merged once more, what is merged already would come out as another text."""
    given = STUB + "b = 2\na = 1\n"
    keep_stub(files.workspace, files.workspace.course.stages[0], given)
    files.file.write_text(STUB + "c = 3\nb = 2\na = 1\n", encoding="utf-8")
    files.solution("fold", SOLUTION + "b = 2\nb = 2\na = 1\n")
    with monkeypatch.context() as patch:
        patch.setattr(update, "keep_stub", interrupted)
        with pytest.raises(KeyboardInterrupt):
            files.update()
    merged = files.file.read_text(encoding="utf-8")
    assert merged == STUB + "c = 3\nb = 2\nb = 2\na = 1\n"
    assert files.update() is Update.NONE
    assert files.file.read_text(encoding="utf-8") == merged
    assert len(files.replaced()) == 1


def interrupted(*args: object) -> None:
    raise KeyboardInterrupt


STEPS = ("write_work", "keep_stub", "write_whole", "read_work")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("work", [STUB, MINE, MINE.replace("SIZE = 4", "SIZE = 9")])
def test_stopped_at_any_step_and_done_again_it_ends_well(
    files: Files, monkeypatch: pytest.MonkeyPatch, step: str, after: bool, work: str
) -> None:
    def stopping(real: Callable[..., object]) -> Callable[..., object]:
        def stopped(*args: object) -> object:
            if after:
                real(*args)
            raise KeyboardInterrupt

        return stopped

    files.file.write_text(work, encoding="utf-8")
    stub = files.solution("fold", SOLUTION.replace("SIZE = 4", "SIZE = 5"))
    with monkeypatch.context() as patch:
        patch.setattr(update, step, stopping(getattr(update, step)))
        try:
            files.update()
        except KeyboardInterrupt:
            pass
        else:
            assert step in ("write_work", "write_whole")  # not every case takes every step
    assert work in (files.file.read_text(encoding="utf-8"), *files.replaced())
    files.update()
    wanted = {STUB: stub, MINE: stub.replace(RAISE, "return sheet >> 1")}.get(work, work)
    assert files.file.read_text(encoding="utf-8") == wanted
    assert files.base.read_text(encoding="utf-8") == stub
    assert files.update() is Update.NONE
