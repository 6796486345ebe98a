"""A learner's file is read as it is, replaced only after a copy, and never through a link."""

import os
from pathlib import Path

import pytest

from grader.learning.workspace.exercises import (
    began_from,
    ended_like,
    keep_stub,
    kept_stub,
    read_work,
    text_of,
    write_work,
)
from grader.types.course import Course
from grader.types.errors import KitError
from grader.types.workspace import Workspace
from tests.kit.support.birds import course_of
from tests.kit.support.files import write_files

SOLUTION = "def fold():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION\n"
STUB = 'def fold():\n    raise NotImplementedError("fold is not written yet")\n'


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return course_of(write_files(tmp_path / "course", {"solutions/fold.py": SOLUTION}), "fold")


@pytest.fixture
def mine(tmp_path: Path, course: Course) -> Workspace:
    (tmp_path / "mine").mkdir()
    return Workspace(tmp_path / "mine", course)


def test_a_file_that_is_not_there_is_none(mine: Workspace) -> None:
    assert read_work(mine.file(mine.course.stages[0])) is None


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_text("x = 1\n", encoding="utf-8")
    link.symlink_to(target)
    os.mkfifo(pipe)
    (tmp_path / "big").write_bytes(b"#" * ((1 << 20) + 1))
    for path, why in (
        (link, "is a link"),
        (pipe, "is not a file"),
        (tmp_path, "is not a file"),
        (tmp_path / "big", "is larger than 1 MiB"),
        (target / "x.py", "cannot be read: Not a directory"),
    ):
        with pytest.raises(KitError, match=why) as caught:
            read_work(path)
        assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("data", "written"),
    [
        (b"a\nb\n", b"x\ny\n"),
        (b"", b"x\ny\n"),
        (b"a\r\nb\r\n", b"x\r\ny\r\n"),
        (b"a\r\nb\r\nc\n", b"x\r\ny\r\n"),
        (b"a\r\nb\n", b"x\ny\n"),
        (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfx\ny\n"),
    ],
)
def test_line_ends_and_byte_order_mark_are_kept(data: bytes, written: bytes) -> None:
    assert ended_like(data, "x\ny\n").encode() == written
    assert text_of(written) == "x\ny\n"


def test_what_is_replaced_is_kept_each_time(mine: Workspace) -> None:
    (stage,) = mine.course.stages
    assert write_work(mine, stage, STUB) is None
    for number, work in enumerate((b"one\r\n", b"\xff"), start=1):
        mine.file(stage).write_bytes(work)
        copy = write_work(mine, stage, STUB)
        assert copy == mine.root / ".grade" / "replaced" / f"fold.py-{number}"
        assert copy.read_bytes() == work
        assert mine.file(stage).read_bytes() == STUB.encode()


def test_a_link_is_not_written_through(mine: Workspace, tmp_path: Path) -> None:
    (stage,) = mine.course.stages
    target = tmp_path / "elsewhere.py"
    target.write_text("precious\n", encoding="utf-8")
    mine.exercises.mkdir()
    mine.file(stage).symlink_to(target)
    with pytest.raises(KitError, match="is a link"):
        write_work(mine, stage, STUB)
    assert target.read_text(encoding="utf-8") == "precious\n"


def test_without_a_copy_nothing_is_replaced(mine: Workspace) -> None:
    (stage,) = mine.course.stages
    mine.exercises.mkdir()
    mine.file(stage).write_text("work\n", encoding="utf-8")
    (mine.root / ".grade").write_text("in the way", encoding="utf-8")
    with pytest.raises(KitError, match="cannot be written"):
        write_work(mine, stage, STUB)
    assert mine.file(stage).read_text(encoding="utf-8") == "work\n"


def test_a_workspace_keeps_the_stub_and_a_checkout_takes_the_course_s(
    mine: Workspace, course: Course
) -> None:
    (stage,) = course.stages
    assert kept_stub(mine, stage) is None
    assert began_from(mine, stage) == STUB
    keep_stub(mine, stage, "older\n")
    assert began_from(mine, stage) == "older\n"
    checkout = Workspace(course.root, course)
    keep_stub(checkout, stage, "older\n")
    assert began_from(checkout, stage) == STUB
