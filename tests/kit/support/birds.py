"""A small course about paper birds, in a folder of its own, where the commands are tried."""

from pathlib import Path

import pytest

from grader.command.main import main
from grader.read.course_file import parse_course
from grader.types.course import Course
from tests.kit.support.files import write_files

TOML = """
schema = 1
name = "paper-birds"
title = "Paper birds"

[[stages]]
slug = "fold"
title = "Fold a sheet"
points = 40
entry_points = { fold = "number" }

[[stages]]
slug = "wings"
title = "Two wings"
points = 60
requires = ["fold"]
entry_points = { left_wing = "number", right_wing = "number" }

[[stages]]
slug = "nest"
title = "A nest"
points = 5
bonus = true
entry_points = { Nest = "object -> number" }
"""
SOLUTION = '''"""Stage: {slug}."""


def {slug}(sheet: int) -> int:
    """Do it."""
    ### BEGIN SOLUTION
    return sheet // 2
    ### END SOLUTION
'''


def course_of(root: Path, *slugs: str) -> Course:
    """A course of stages with a function each, whose files are not there yet."""
    stages = [
        {"slug": slug, "title": slug.title(), "points": 1, "entry_points": {slug: "number"}}
        for slug in slugs
    ]
    return parse_course({"schema": 1, "name": "birds", "title": "Birds", "stages": stages}, root)


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the course, with its stubs written; it is also the working folder."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    files = {"course.toml": TOML}
    for slug in ("fold", "wings", "nest"):
        solution = SOLUTION.format(slug=slug)
        files[f"solutions/{slug}.py"] = solution
        before, after = solution.split("    ### BEGIN SOLUTION")[0], f"{slug} is not written yet"
        files[f"exercises/{slug}.py"] = f'{before}    raise NotImplementedError("{after}")\n'
        rungs = "".join(f"## {n}. Step {n}\nDo step {n} of {slug}.\n\n" for n in range(1, 6))
        learnt = "## Learnt\nSheets have two sides.\n"
        files[f"hints/{slug}.md"] = f"# {slug}\n\n{rungs}{learnt}"
    monkeypatch.chdir(write_files(tmp_path, files))
    return tmp_path


@pytest.fixture
def workspace(birds: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A learner's folder for that course, as `grade init` makes it; also the working folder."""
    assert main(["init", "mine"]) == 0
    monkeypatch.chdir(birds / "mine")
    return birds / "mine"
