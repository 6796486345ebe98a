"""A solution on the screen: all of its code, and no line of code is broken."""

import io
import textwrap

import pytest
from rich.console import Console

from grader.learning.hints.screen import solution
from grader.read.stubs import read_solution
from grader.types.course import Stage
from tests.kit.support.checkout import COURSE


def drawn(stage: Stage, code: str, width: int, *, gave_up: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(solution(stage, code, gave_up=gave_up), soft_wrap=True, end="")
    return str(console.file.getvalue())


@pytest.mark.parametrize("stage", COURSE.stages, ids=[stage.slug for stage in COURSE.stages])
def test_all_of_the_code_is_shown(stage: Stage) -> None:
    code = read_solution(stage)
    heading, shown = drawn(stage, code, 60).strip("\n").split("\n", 1)
    assert heading == f"  {stage.title}   one solution"
    assert statements(textwrap.dedent(shown)) == statements(code)


def statements(code: str) -> list[str]:
    """The lines of code without the comments that have a line of their own."""
    return [line for line in code.strip().splitlines() if not line.strip().startswith("#")]


def test_a_long_comment_stays_one() -> None:
    words = " ".join(f"word{n}" for n in range(20))
    text = drawn(COURSE.stages[0], f"if x:\n    # {words}\n    y = 1\n", 40)
    lines = [line for line in text.splitlines() if "word" in line]
    assert len(lines) > 3
    assert all(line.startswith("      # word") for line in lines)
    assert " ".join(line.strip(" #") for line in lines) == words


def test_who_gave_up_is_told_that_it_is_remembered() -> None:
    assert "remembers" in drawn(COURSE.stages[0], "x = 1\n", 80, gave_up=True)
    assert "remembered" not in drawn(COURSE.stages[0], "x = 1\n", 80)
