"""A course is proven as long as no file of its author changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grader.read.course_file import read_course
from grader.read.proven import is_proven, remember_proven

ROOT = Path(__file__).parents[3]
TINY = ROOT / "tests" / "kit" / "courses" / "tiny"
CHANGES = (
    *("course.toml", "solutions/smooth.py", "hints/smooth.md", "tests/checks/test_smooth.py"),
    *("hints/misconceptions/smooth.py", "tests/accepted/smooth/new.py"),
)


@pytest.mark.parametrize("file", CHANGES)
def test_a_proof_holds_until_a_file_changes(tmp_path: Path, file: str) -> None:
    root = tmp_path / "tiny"
    shutil.copytree(TINY, root, ignore=shutil.ignore_patterns("__pycache__", ".grade"))
    course = read_course(root / "course.toml")
    assert not is_proven(course)
    remember_proven(course)
    assert is_proven(course)
    (root / "exercises" / "smooth.py").write_text("", encoding="utf-8")
    assert is_proven(course), "a learner's file"
    with open(root / file, "a", encoding="utf-8") as opened:
        opened.write("\n")
    assert not is_proven(course)
