"""A folder of a class's submissions, with all that strangers may put there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from grader.read.class_folder import Found, read_hand_in, read_students
from grader.read.course_file import read_course
from grader.types.errors import KitError

COURSE = read_course(Path(__file__).parents[1] / "courses" / "tiny" / "course.toml")
ASSIGNMENT = COURSE.assignments[0]
NAME = ASSIGNMENT.name


def test_each_folder_notebook_and_file_is_a_students(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "bob.ipynb").write_text("{}")
    (tmp_path / "cas.py").write_text("")
    found, odd = read_students(tmp_path, ASSIGNMENT)
    assert [(one.student, one.path.name) for one in found] == [
        ("ann", "ann"),
        ("bob", "bob.ipynb"),
        ("cas", "cas.py"),
    ]
    assert odd == []


def test_in_an_nbgrader_tree_the_assignments_folder_counts(tmp_path: Path) -> None:
    (tmp_path / "ann" / NAME).mkdir(parents=True)
    (tmp_path / "ann" / "other").mkdir()
    found, _ = read_students(tmp_path, ASSIGNMENT)
    assert found == [Found("ann", tmp_path / "ann" / NAME)]


@pytest.mark.skipif(os.name == "nt", reason="no links and pipes")
def test_links_pipes_and_other_files_are_nobodys(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / NAME).symlink_to(tmp_path)
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / ".hidden").mkdir()
    found, odd = read_students(tmp_path, ASSIGNMENT)
    assert found == [Found("ann", tmp_path / "ann")]
    assert [line.split()[0] for line in odd] == ["link", "notes.txt", "pipe.py"]


def test_two_of_one_name_are_two_students(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann.ipynb").write_text("{}")
    found, _ = read_students(tmp_path, ASSIGNMENT)
    assert [one.student for one in found] == ["ann", "ann.ipynb"]


@pytest.mark.skipif(os.name != "posix", reason="names are text")
def test_a_name_that_is_no_text_can_be_written_down(tmp_path: Path) -> None:
    try:
        os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    except OSError:
        pytest.skip("this file system takes text alone")
    found, _ = read_students(tmp_path, ASSIGNMENT)
    assert found[0].student == "\\xff" and found[0].path.is_dir()
    (tmp_path / "\\xff").mkdir()  # who is called so takes nobody's place
    found, _ = read_students(tmp_path, ASSIGNMENT)
    assert len({one.student for one in found}) == len({one.path for one in found}) == 2


@pytest.mark.parametrize(
    "name", [b"al\xfel.py", b"al\xfe\x1b[2J.ipynb", b"moving-average\n\x1b.py"]
)
def test_nor_can_a_files_name_end_the_run(tmp_path: Path, name: bytes) -> None:
    try:
        with open(os.fsencode(tmp_path) + b"/" + name, "w") as file:
            file.write(json.dumps({"cells": []}))
    except OSError:
        pytest.skip("this file system takes text alone")
    hand_in, submission = read_hand_in(Found("ann", tmp_path), COURSE, ASSIGNMENT)
    assert submission is not None
    for text in (*submission.files, submission.script or "", *hand_in.notes):
        text.encode()
    assert "\x1b" not in "".join(hand_in.notes)


def test_a_single_submission_is_no_class(tmp_path: Path) -> None:
    (tmp_path / "smooth.py").write_text("")
    with pytest.raises(KitError, match="is one submission"):
        read_students(tmp_path, ASSIGNMENT)


@pytest.mark.parametrize("name", ["nothing", "here"])
def test_a_folder_without_students_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "here").mkdir()
    with pytest.raises(KitError):
        read_students(tmp_path / name, ASSIGNMENT)


def notebook(*cells: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]})


def test_the_same_answers_have_the_same_content_wherever_they_lie(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / f"{NAME}.ipynb").write_text(notebook("x = 1"))
    (tmp_path / "bob.ipynb").write_text(notebook("x = 1"))
    (ann, _), (bob, submission) = (
        read_hand_in(Found(name, tmp_path / path), COURSE, ASSIGNMENT)
        for name, path in (("ann", "ann"), ("bob", "bob.ipynb"))
    )
    assert ann.content == bob.content and ann.notes == ()
    assert submission is not None and submission.cells == ("x = 1",)


@pytest.mark.parametrize(
    "trap", ["x = " + "-" * 50_000 + "1", "if x: pass\n" + "elif x: pass\n" * 3000]
)
def test_a_file_that_no_parser_can_read_is_begun(tmp_path: Path, trap: str) -> None:
    (tmp_path / ASSIGNMENT.stages[0].file_name).write_text(trap)
    (tmp_path / f"{NAME}.ipynb").write_text(json.dumps({"cells": []}))
    _, submission = read_hand_in(Found("ann", tmp_path), COURSE, ASSIGNMENT)
    assert submission is not None and submission.is_folder


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "nothing to grade"),
        ({f"{NAME}.ipynb": "no JSON"}, "not a notebook"),
        ({"essay.txt": "x"}, "nothing to grade"),
    ],
)
def test_what_cannot_be_graded_says_why(tmp_path: Path, files: dict[str, str], said: str) -> None:
    folder = tmp_path / "ann"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    hand_in, submission = read_hand_in(Found("ann", folder), COURSE, ASSIGNMENT)
    assert submission is None and hand_in.content == ""
    assert said in hand_in.notes[0] and str(tmp_path) not in hand_in.notes[0]
