"""`grade class --for-author`: what a class teaches the author of its course, without names."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.kit.classes.folder_class import ONE_TOO_FEW, RIGHT, class_of, grade_class, hand_in
from tests.kit.support.tiny import Typed, copy_tiny

MEDIAN = '''"""ann's notes."""
import numpy as np
UNUSED = 1


def windows(values, width):
    return [values[i : i + width] for i in range(len(values) - width + 1)]


def moving_average(values, width):
    """Wrote this: ann."""
    if not 1 <= width <= len(values):
        raise ValueError("ann")  # ann says so
    return np.array([np.median(each) for each in windows(values, width)])
'''
SHORT = MEDIAN.replace("UNUSED = 1\n", "").replace("windows(values, width)])", "W(values, width)])")
SHORT = SHORT.replace("def windows", "def W").replace('raise ValueError("ann")', "raise ValueError")
RAISES = RIGHT.replace("np.ones(width)", "np.one(width)")


@pytest.fixture
def course(tmp_path: Path) -> Path:
    return copy_tiny(tmp_path / "course").root


def lessons(course: Path, submissions: Path, out: Path, *more: str) -> dict[str, Any]:
    assert grade_class(course, out, submissions, "--for-author", *more) == 0
    found: dict[str, Any] = json.loads((out / "for-author.json").read_text("utf-8"))
    return found


def test_failures_that_nothing_explains_with_the_shortest_code_and_no_name(
    course: Path, tmp_path: Path
) -> None:
    submissions, out = tmp_path / "class", tmp_path / "out"
    known = ONE_TOO_FEW  # the mistake
    hand_in(submissions, ann=MEDIAN, bob=SHORT, cas=RAISES, dan=known, eve=RIGHT)
    hand_in(submissions, gil=f"```\n{RIGHT}", hal=RIGHT.replace("moving_average", "average"))
    (submissions / "fay.ipynb").write_text("<html>", "utf-8")
    found = lessons(course, submissions, out, "--seed", "5")
    median, error = found["failures"]
    assert (median["stage"], median["students"], median["has_symptom"]) == (
        *("moving_average", 2, False),
    )
    assert "moving_average.values" in median["failing"] and median["entry"] == "moving_average"
    assert "expected" in median["message"]
    assert "AttributeError" in error["message"]
    code = median["code"]
    assert "def W(" in code and "UNUSED" not in code and "#" not in code  # the shorter of the two
    assert "def moving_average_1(values, width):" in code and '"""' not in code
    assert "not a notebook" not in (out / "findings.csv").read_text("utf-8")
    text = (out / "for-author.md").read_text("utf-8")
    for name in ("ann", "bob", "cas", "dan", "eve"):
        assert not re.search(rf"\b{name}\b", text + json.dumps(found)), name
    assert "Nothing is known about hints." in text and found["asked"] == 0


def test_other_words_are_another_failure(course: Path, tmp_path: Path) -> None:
    raising = "def moving_average(values, width):\n    raise {}\n"
    errors = ("KeyError(1)", "KeyError(2)", "OSError(1)")
    for number, error in enumerate(errors):
        hand_in(tmp_path / "class", **{f"student{number}": raising.format(error)})
    failures = lessons(course, tmp_path / "class", tmp_path / "out")["failures"]
    assert [each["students"] for each in failures] == [2, 1]


@pytest.mark.slow
def test_a_failure_becomes_a_misconception(course: Path, tmp_path: Path, grade: Typed) -> None:
    submissions, out = tmp_path / "class", tmp_path / "out"
    hand_in(submissions, ann=MEDIAN)
    lessons(course, submissions, out, "--seed", "5")
    text = (out / "for-author.md").read_text("utf-8")
    block = next(part for part in text.split("```python\n") if "moving_average_1" in part)
    block = block.partition("\n```")[0].replace("TODO: what this code does", "You take medians")
    file = course / "hints" / "misconceptions" / "moving_average.py"
    file.write_text(file.read_text("utf-8") + f"\n\n{block}\n", encoding="utf-8")
    assert grade_class(course, out, "--regrade") == 0
    shown = grade(*class_of(course, out), "--why", "ann", "moving_average")
    assert "Likely: You take medians" in " ".join(shown.split())
    assert lessons(course, submissions, out)["failures"] == []


def progress(folder: Path, **rungs: int) -> None:
    memory = folder / ".grade"
    memory.mkdir()
    stages = {slug: {"rungs": number} for slug, number in rungs.items()}
    text = json.dumps({"schema": 1, "last_hint": None, "stages": stages})
    (memory / "progress.json").write_text(text, encoding="utf-8")


def test_hints_after_which_the_stage_still_fails(course: Path, tmp_path: Path) -> None:
    submissions, out = tmp_path / "class", tmp_path / "out"
    hand_in(submissions, ann=ONE_TOO_FEW, bob=RIGHT, cas=ONE_TOO_FEW)
    progress(submissions / "ann", moving_average=2, smooth=1)
    progress(submissions / "bob", moving_average=2)
    progress(submissions / "cas", moving_average=3)
    shutil.copytree(submissions / "ann", submissions / "dan" / "mine")  # a workspace in a folder
    (submissions / "eve" / ".grade").mkdir(parents=True)
    shutil.copy(submissions / "bob" / "smooth.py", submissions / "eve")
    (submissions / "eve" / ".grade" / "progress.json").write_text("[" * 100_000)
    file = submissions / "ann" / ".grade"
    hand_in(submissions, fay=ONE_TOO_FEW, gus=ONE_TOO_FEW)  # their progress is a neighbour's
    (submissions / "fay" / ".grade").symlink_to(file)
    (submissions / "gus" / ".grade").mkdir()
    (submissions / "gus" / ".grade" / "progress.json").symlink_to(file / "progress.json")
    found = lessons(course, submissions, out)
    assert found["asked"] == 4
    # smooth fails only because of the stage before it, so its hint is not to blame.
    assert [
        (use["stage"], use["number"], use["failed"], use["passed"]) for use in found["hints"]
    ] == [("moving_average", 3, 1, 0), ("moving_average", 2, 2, 1)]
    text = (out / "for-author.md").read_text("utf-8")
    assert re.search(r"\| moving_average \| 2\. \S.* \| 2 \| 1 \|", text)
