"""A course is proven as long as no file of its author changes."""

from pathlib import Path

import pytest

from grader.channels.proven import is_proven, remember_proven
from tests.kit.support.tiny import copy_tiny

CHANGES = (
    *("course.toml", "solutions/smooth.py", "hints/smooth.md", "tests/checks/test_smooth.py"),
    *("hints/misconceptions/smooth.py", "tests/accepted/smooth/new.py"),
)


@pytest.mark.parametrize("file", CHANGES)
def test_a_proof_holds_until_a_file_changes(tmp_path: Path, file: str) -> None:
    root = tmp_path / "tiny"
    course = copy_tiny(root)
    assert not is_proven(course)
    remember_proven(course)
    assert is_proven(course)
    (root / "exercises" / "smooth.py").write_text("", encoding="utf-8")
    assert is_proven(course), "a learner's file"
    with open(root / file, "a", encoding="utf-8") as opened:
        opened.write("\n")
    assert not is_proven(course)
