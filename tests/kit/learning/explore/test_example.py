"""hints/explore/<slug>.py: what is wrong with it, and what the course's own computes."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from grader.learning.explore.example import read_explore, start_of
from grader.run.solutions import local_solutions
from grader.tracing import Control, Step
from grader.types.course import Stage
from grader.types.errors import CourseError
from tests.kit.support.checkout import COURSE

MODULE = COURSE.stage("multi_head_attention")
EXAMPLE = read_explore(MODULE)
CONTROL = "from grader.tracing import Control\ndef explore(submission): yield 'x'\nCONTROLS = "


@pytest.mark.parametrize(
    "text, said",
    [
        ("def explore(", ":1: SyntaxError"),
        ("explore = 3", "has no function explore(submission, ...)"),
        (CONTROL + "(3,)", "CONTROLS: 3 is not a Control with values"),
        (CONTROL + "(Control('a', 'A', ()),)", "is not a Control with values"),
        (CONTROL + "(Control('a', 'A', (1,), start=2),)", "'a' starts with none of its values"),
    ],
)
def test_faults(tmp_path: Path, text: str, said: str) -> None:
    stage = Stage("first", "First", 1, False, (), (), tmp_path)
    stage.explore_file.parent.mkdir(parents=True)
    stage.explore_file.write_text(text, encoding="utf-8")
    with pytest.raises(CourseError) as error:
        read_explore(stage)
    assert str(error.value).startswith("hints/explore/first.py:")
    assert said in str(error.value)


def test_a_control_starts_with_its_first_value() -> None:
    assert start_of(Control("a", "A", (3, 4))) == 3
    assert start_of(Control("a", "A", (3, 4), start=4)) == 4


# --- the course's own --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def solutions() -> SimpleNamespace:
    found: dict[str, Any] = {}
    for stage in (*COURSE.required(MODULE), MODULE):
        find = local_solutions(COURSE, stage)
        found |= {entry.name: find(entry.name) for entry in stage.entry_points}
    return SimpleNamespace(**found)


SENTENCES = ("the birds sing at dawn", "", "one", "a b c d e f g h i j")
MASKS, HEADS = (control.values for control in EXAMPLE.controls[1:3])
CASES = (
    *itertools.product(SENTENCES, MASKS, [2], [8]),
    *itertools.product(SENTENCES[:1], MASKS[:1], HEADS, [1]),
)


@pytest.mark.parametrize("sentence, mask, heads, scale", CASES)
def test_the_numbers_are_those_of_torch(
    solutions: SimpleNamespace, sentence: str, mask: str, heads: int, scale: float
) -> None:
    parts = list(EXAMPLE.function(solutions, sentence, mask, heads, scale))
    steps = {part.name: part.tensor for part in parts if isinstance(part, Step)}
    assert {name for part in parts for name in getattr(part, "behind", ())} <= steps.keys()
    q, k, v = (steps[f"{name} heads"] for name in "qkv")
    T = q.shape[2]
    assert min(8, len(sentence.split()) or 1) == T
    blocked = torch.zeros(T, T, dtype=torch.bool)
    if "causal" in mask:
        blocked = torch.ones(T, T, dtype=torch.bool).triu(1)
    if "padding" in mask and T > 1:
        blocked[:, -1] = True
    context = torch.nn.functional.scaled_dot_product_attention(
        *(q, k, v), attn_mask=~blocked, scale=scale / q.shape[-1] ** 0.5
    )
    assert torch.allclose(steps["context"], context, atol=1e-5)
    assert torch.allclose(steps["output of the module"], steps["output"], atol=1e-5)
    assert (steps["weights"][..., blocked] == 0).all()
    assert "NaN" not in str(parts[-1]) and "nan" not in str(parts[-1])


def test_the_softmax_saturates_and_its_gradient_vanishes(solutions: SimpleNamespace) -> None:
    start = [start_of(control) for control in EXAMPLE.controls]
    parts = EXAMPLE.function(solutions, *start)
    [table] = [part.tensor for part in parts if getattr(part, "name", "") == "saturation"]
    largest, gradient = table.T
    assert (largest.diff() > 0).all() and largest[-1] > 0.9
    assert gradient[-1] < gradient[0] / 3
