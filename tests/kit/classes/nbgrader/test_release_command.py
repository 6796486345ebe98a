"""`grade release nbgrader` says what to type next."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.command.main import main
from tests.kit.support.files import edit
from tests.kit.support.tiny import copy_tiny

TWO = """[[assignments]]
name = "first"
stages = ["moving_average"]

[[assignments]]
name = "second"
stages = ["roughness"]

"""


def test_every_assignment_has_its_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = tmp_path / "course"
    copy_tiny(course)
    edit(course / "course.toml", "[limits]", TWO + "[limits]")
    words = ["release", "nbgrader", "--course", str(course), "--course-dir", str(tmp_path / "nb")]
    assert main(words) == 0
    said = capsys.readouterr().out
    for name in ("first", "second"):
        assert f"nbgrader generate_assignment {name}\n" in said
        assert f"nbgrader release_assignment {name}\n" in said
