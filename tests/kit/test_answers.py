"""Answers that the checks were not written against: right ones pass, wrong ones do not.

tests/accepted/<slug>/ and answers/wrong/<slug>/ hold replacements for one stage's file, in many
styles. The first line of a wrong one says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.engine import with_calls
from grader.judge.verdict import judge_stage
from grader.read.author_files import accepted_files
from grader.read.course_file import read_course
from grader.run.answers import WorkerAnswers
from grader.run.reader import Reader, SourceReader
from grader.run.remote import StageUnderCheck
from grader.run.session import Checks, with_checks
from grader.run.solutions import solution_files
from grader.run.workers import Interpreter
from grader.types.course import Stage
from grader.types.report import StageResult, Status
from grader.types.submission import Submission

ROOT = Path(__file__).parents[2]
ANSWERS = Path(__file__).parent / "answers"
COURSE = read_course(ROOT / "course.toml")
RIGHT = [file for stage in COURSE.stages for file in accepted_files(stage)]
WRONG = sorted(ANSWERS.glob("wrong/*/*.py"))
SEED = 20


@pytest.fixture(scope="module")
def verdicts(request: pytest.FixtureRequest) -> dict[Path, StageResult]:
    """The verdicts on the answers that were asked for, all from one set of collected checks."""
    asked = [
        item.callspec.params["answer"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == Path(__file__)
    ]
    torch.set_num_threads(1)  # as the engine does: two processes take turns here
    with Interpreter(COURSE.preload, COURSE.limits, gpu=False) as interpreter:
        return with_checks(
            COURSE, COURSE.stages, lambda checks: dict(_graded(asked, interpreter, checks))
        )


def _graded(
    asked: Iterable[Path], interpreter: Interpreter, checks: Checks
) -> Iterator[tuple[Path, StageResult]]:
    solutions = solution_files(COURSE)
    for answer in asked:
        stage = COURSE.stage(answer.parent.name)
        files = {**solutions, stage.file_name: answer.read_bytes()}
        submission = Submission(answer.stem, files)
        answers = WorkerAnswers(interpreter, COURSE, stage, submission)
        facts = checks.run(stage, StageUnderCheck(stage, answers), SEED, "cpu")
        facts = with_calls(facts, SourceReader(Reader(None), submission).calls(COURSE, stage))
        yield answer, judge_stage(stage, facts)


def _has_class(stage: Stage) -> bool:
    return any(entry.is_class for entry in stage.entry_points)


def _marked(answers: Iterable[Path], *, modules: bool) -> Iterator[Any]:
    """Those of bonus stages, and of `modules` too, are many and take long."""
    for answer in answers:
        stage = COURSE.stage(answer.parent.name)
        slow = stage.bonus or (modules and _has_class(stage))
        yield pytest.param(answer, marks=[pytest.mark.slow] if slow else [])


def _name(answer: Path) -> str:
    return f"{answer.parent.name}-{answer.stem}"


@pytest.mark.parametrize("answer", list(_marked(RIGHT, modules=False)), ids=_name)
def test_a_right_answer_in_another_style_gets_full_marks(
    verdicts: dict[Path, StageResult], answer: Path
) -> None:
    result = verdicts[answer]
    failed = [f"{c.id}: {c.message}" for c in result.checks if c.score < c.max_score]
    assert not failed
    assert result.status is Status.PASSED


@pytest.mark.parametrize("answer", list(_marked(WRONG, modules=True)), ids=_name)
def test_a_wrong_answer_loses_points(verdicts: dict[Path, StageResult], answer: Path) -> None:
    result = verdicts[answer]
    assert result.status is Status.FAILED, answer.read_text(errors="replace").splitlines()[0]
    assert result.score < result.max_score
