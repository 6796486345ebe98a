"""What the author of a wrong answer is told stays what was read and found true.

`python -m tests.kit.explained STAGE --write` notes it anew.
"""

from __future__ import annotations

import pytest
import torch

from grader.run.session import with_checks
from grader.run.workers import Interpreter
from tests.kit.explained import explained, told
from tests.kit.wrong_answers import COURSE, WrongAnswer, wrong_answers

FUNCTIONS = [
    stage.slug
    for stage in COURSE.stages
    if not stage.bonus and not any(entry.is_class for entry in stage.entry_points)
]
NOTED = [
    stage.slug
    for stage in COURSE.stages
    if any(answer.told is not None for answer in wrong_answers(stage.slug))
]
EVERY = 8  # of a stage's answers the quick test takes one in so many


def untold(slug: str, answers: list[WrongAnswer]) -> dict[str, tuple[str, ...]]:
    """What answers are told that is not what was noted, by the answer's name."""
    torch.set_num_threads(1)
    stage = COURSE.stage(slug)
    with Interpreter(COURSE.preload, COURSE.limits, gpu=False) as interpreter:
        return with_checks(
            COURSE,
            [stage],
            lambda checks: {
                answer.name: told(reasons)
                for answer, reasons in explained(slug, answers, interpreter, checks)
                if told(reasons) != answer.told
            },
        )


def noted(slug: str) -> list[WrongAnswer]:
    return [answer for answer in wrong_answers(slug) if answer.told is not None]


@pytest.mark.parametrize("slug", FUNCTIONS)
def test_a_wrong_answer_is_told_what_was_noted(slug: str) -> None:
    assert untold(slug, noted(slug)[::EVERY]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("slug", NOTED)
def test_every_wrong_answer_is_told_what_was_noted(slug: str) -> None:
    assert untold(slug, noted(slug)) == {}


def test_most_wrong_answers_to_functions_are_noted_and_explained() -> None:
    answers = [answer for slug in FUNCTIONS for answer in wrong_answers(slug)]
    known = [answer for answer in answers if answer.told is not None]
    assert len(known) >= 0.9 * len(answers)
    assert sum(bool(answer.told) for answer in known) >= 0.7 * len(known)
