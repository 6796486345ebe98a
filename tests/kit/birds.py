"""A small course about paper birds, in a folder of its own, where the commands are tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.command.main import main

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
entry_points = { Nest = "module -> number" }
"""
SOLUTION = '''"""Stage: {slug}."""


def {slug}(sheet: int) -> int:
    """Do it."""
    ### BEGIN SOLUTION
    return sheet // 2
    ### END SOLUTION
'''


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the course, with its stubs written; it is also the working folder."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    folders = [tmp_path / name for name in ("solutions", "exercises", "hints")]
    for folder in folders:
        folder.mkdir()
    (tmp_path / "course.toml").write_text(TOML, encoding="utf-8")
    for slug in ("fold", "wings", "nest"):
        solution = SOLUTION.format(slug=slug)
        (folders[0] / f"{slug}.py").write_text(solution, encoding="utf-8")
        before, after = solution.split("    ### BEGIN SOLUTION")[0], f"{slug} is not written yet"
        stub = f'{before}    raise NotImplementedError("{after}")\n'
        (folders[1] / f"{slug}.py").write_text(stub, encoding="utf-8")
        rungs = "".join(f"## {n}. Step {n}\nDo step {n} of {slug}.\n\n" for n in range(1, 6))
        learnt = "## Learnt\nSheets have two sides.\n"
        (folders[2] / f"{slug}.md").write_text(f"# {slug}\n\n{rungs}{learnt}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def workspace(birds: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A learner's folder for that course, as `grade init` makes it; also the working folder."""
    assert main(["init", "mine"]) == 0
    monkeypatch.chdir(birds / "mine")
    return birds / "mine"
