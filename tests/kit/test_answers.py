"""Answers that the checks were not written against: right ones pass, wrong ones do not.

Why a wrong one fails fits on one screen of 24 lines at 80 columns, and is what somebody has read
and found true: `python -m tests.kit.explained STAGE --write` notes it.

answers/<slug>.diff holds wrong ones and answers/<slug>/ the right code that these were made from.
The right answers in tests/accepted/<slug>/ are graded by `grade verify`.
"""

import re
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from grader.judge.blame import with_calls
from grader.judge.verdict import judge, judge_stage
from grader.read.misconceptions import read_misconceptions
from grader.run.answers import WorkerAnswers
from grader.run.collecting import with_checks
from grader.run.facts import Case, Ending, StageFacts
from grader.run.importing import Import
from grader.run.reader import Reader, SourceReader
from grader.run.session import Checks
from grader.run.solutions import solution_files
from grader.run.under_check import StageUnderCheck
from grader.run.workers import Interpreter
from grader.show.scoreboard import footnotes, scoreboard
from grader.show.terminal import explanation
from grader.types.course import Stage
from grader.types.report import Diagnosis, Outcome, StageResult, Status
from grader.types.submission import Submission
from tests.kit.explained import SEED, Explaining, told
from tests.kit.support.checkout import COURSE
from tests.kit.support.drawn import draw
from tests.kit.wrong_answers import base_files, wrong_answers

OTHER_SEED = 1  # with 20 of them, which takes half an hour, no answer got other points either


@dataclass(frozen=True)
class Answer:
    """What is submitted for one stage: what is wrong with it, and what its author is told."""

    slug: str
    name: str
    source: bytes
    about: str = ""
    told: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Graded:
    """The verdict on an answer, the cases that did not pass, and the reasons that it gives."""

    result: StageResult
    lost: frozenset[Case]
    told: tuple[str, ...]


def _has_class(stage: Stage) -> bool:
    return any(entry.is_class for entry in stage.entry_points)


RIGHT = [
    Answer(stage.slug, file.stem, file.read_bytes())
    for stage in COURSE.stages
    for file in base_files(stage.slug)
]
WRONG = [
    Answer(wrong.slug, wrong.name, wrong.source.encode(), wrong.wrong, wrong.told)
    for stage in COURSE.stages
    for wrong in wrong_answers(stage.slug)
]


def wrong_of(stage: Stage) -> list[Answer]:
    """The wrong answers to a stage."""
    return [answer for answer in WRONG if answer.slug == stage.slug]


@pytest.fixture(scope="module")
def graded(request: pytest.FixtureRequest, interpreter: Interpreter) -> dict[Answer, Graded]:
    """The answers that were asked for, all graded with one set of collected checks."""
    asked: dict[Answer, None] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and item.path == Path(__file__):
            given = item.callspec.params if "graded" in item.fixturenames else {}
            if "answer" in given:
                asked[given["answer"]] = None
            elif "stage" in given:
                asked |= dict.fromkeys(wrong_of(given["stage"]))
    return with_checks(
        COURSE, COURSE.stages, lambda checks: dict(_graded(asked, interpreter, checks))
    )


def facts_of(
    answer: Answer,
    seed: int,
    interpreter: Interpreter,
    checks: Checks,
    *,
    only_random: bool = False,
) -> tuple[Submission, StageFacts]:
    """What was handed in, with solutions of the other stages, and what its checks found out."""
    stage = COURSE.stage(answer.slug)
    files = {**solution_files(COURSE), stage.file_name: answer.source}
    submission = Submission(answer.name, files)
    under_check = StageUnderCheck(
        stage, WorkerAnswers(interpreter, Import(COURSE, stage, submission))
    )
    return submission, checks.run(stage, under_check, seed, "cpu", only_random=only_random)


def lost(facts: StageFacts) -> frozenset[Case]:
    """The cases that did not pass."""
    return frozenset(fact.case for fact in facts.cases if fact.ending is not Ending.PASSED)


def _graded(
    asked: Iterable[Answer], interpreter: Interpreter, checks: Checks
) -> Iterator[tuple[Answer, Graded]]:
    stages = dict.fromkeys(COURSE.stage(answer.slug) for answer in asked)
    explains = {stage.slug: Explaining(stage) for stage in stages}
    for stage in stages:
        if not stage.fixture:
            solution = explains[stage.slug].solution
            checks.rehearse(stage, solution, SEED, "cpu", lambda: True)
    for answer in asked:
        stage = COURSE.stage(answer.slug)
        submission, facts = facts_of(answer, SEED, interpreter, checks)
        reasons = explains[answer.slug].reasons(facts) if answer.told is not None else {}
        reader = SourceReader(Reader(None), submission)
        facts = with_calls(facts, reader.calls(COURSE, stage))

        def place(target: str, stage: Stage = stage, reader: SourceReader = reader) -> str:
            return reader.place(stage, target)

        result = judge_stage(stage, facts, diagnoses=reasons, place=place)
        yield answer, Graded(result, lost(facts), told(reasons.values()))


def _marked(answers: Iterable[Answer], *, are_wrong: bool) -> Iterator[Any]:
    """Those of bonus stages are many and take long, and so do wrong ones but a few functions."""
    for place, answer in enumerate(answers):
        stage = COURSE.stage(answer.slug)
        slow = stage.bonus or (are_wrong and (_has_class(stage) or place % 16 > 0))
        yield pytest.param(answer, marks=[pytest.mark.slow] if slow else [])


def _name(answer: Answer) -> str:
    return f"{answer.slug}-{answer.name}"


NOTED = [param for param in _marked(WRONG, are_wrong=True) if param.values[0].told is not None]


@pytest.mark.parametrize("answer", list(_marked(RIGHT, are_wrong=False)), ids=_name)
def test_a_right_answer_in_another_style_gets_full_marks(
    graded: dict[Answer, Graded], answer: Answer
) -> None:
    result = graded[answer].result
    failed = [f"{c.id}: {c.message}" for c in result.checks if c.score < c.max_score]
    assert not failed
    assert result.status is Status.PASSED


@pytest.mark.parametrize("answer", list(_marked(WRONG, are_wrong=True)), ids=_name)
def test_a_wrong_answer_loses_points(graded: dict[Answer, Graded], answer: Answer) -> None:
    result = graded[answer].result
    assert result.status is Status.FAILED, answer.about
    assert result.score < result.max_score


@pytest.mark.parametrize("answer", NOTED, ids=_name)
def test_a_wrong_answer_is_told_what_was_noted(
    graded: dict[Answer, Graded], answer: Answer
) -> None:
    assert graded[answer].told == answer.told, answer.about


def test_each_answer_has_a_name_of_its_own() -> None:
    assert len({_name(answer) for answer in WRONG}) == len(WRONG)


def test_most_wrong_answers_to_functions_are_noted_and_explained() -> None:
    answers = [answer for answer in WRONG if not COURSE.stage(answer.slug).bonus]
    answers = [answer for answer in answers if not _has_class(COURSE.stage(answer.slug))]
    known = [answer for answer in answers if answer.told is not None]
    assert len(known) >= 0.9 * len(answers)
    assert sum(bool(answer.told) for answer in known) >= 0.7 * len(known)


@pytest.mark.slow
@pytest.mark.parametrize(
    "stage", [stage for stage in COURSE.stages if wrong_of(stage)], ids=lambda stage: stage.slug
)
def test_a_wrong_answer_gets_the_same_points_with_another_seed(
    graded: dict[Answer, Graded], interpreter: Interpreter, stage: Stage
) -> None:
    """Only random cases can end otherwise with another seed, so only they run again.

    Of the answers every sixth will do: what makes a check depend on the seed shows in many.
    """

    def varying(checks: Checks) -> Iterator[str]:
        random = checks.random(stage)
        for answer in wrong_of(stage)[::6]:
            drawn = graded[answer].lost
            fixed = {case.check for case in drawn - random}
            _, facts = facts_of(answer, OTHER_SEED, interpreter, checks, only_random=True)
            if {case.check for case in drawn} != fixed | {case.check for case in lost(facts)}:
                yield answer.name

    assert not with_checks(COURSE, [stage], lambda checks: list(varying(checks)))


# --- the screen that says why --------------------------------------------------------------------

LINES, USUAL = 24, 18
USUAL_OF_BONUS = 20  # the calls of these modules alone take two or three lines
GIVEN_UP = "{}: looked for one small fix for 1 s and found none"
PLACE = "file.py, line 12: the axes of this call\n    x.transpose(1, 2)\n      ^^^^^^"


def lines(stage: StageResult, *notes: str) -> int:
    """How many lines `grade STAGE` prints."""
    report = judge(COURSE, "exercises", "cpu", [stage], ["seed 1234567890", *notes])
    screens = (scoreboard(report), explanation(report), footnotes(report))
    return len("".join(map(draw, screens)).splitlines())


def explained(stage: StageResult, text: str) -> StageResult:
    """The verdict with a reason and a place for each failing check, and two lines printed."""
    found = Diagnosis("x", text, 1, place=PLACE)
    checks = tuple(
        replace(check, diagnosis=found) if check.outcome is Outcome.FAILED else check
        for check in stage.checks
    )
    return replace(stage, checks=checks, printed="one\ntwo")


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(stage, marks=[] if stage.slug == "concat_heads" else [pytest.mark.slow])
        for stage in COURSE.stages
        if wrong_of(stage)
    ],
    ids=lambda stage: stage.slug,
)
def test_why_a_stage_fails_fits_on_one_screen(graded: dict[Answer, Graded], stage: Stage) -> None:
    longest = max((one.says for one in read_misconceptions(stage)), key=len)
    found = [graded[answer].result for answer in wrong_of(stage)]
    note = GIVEN_UP.format(stage.slug)
    assert max(lines(result, note) for result in found) <= LINES
    assert max(lines(explained(result, longest), note) for result in found) <= LINES
    assert statistics.median(map(lines, found)) <= (USUAL_OF_BONUS if stage.bonus else USUAL)


CALL = re.compile(r"(?:F|torch|nn)(\.\w+)|(\.data\b)|(\.\w+\()")


@pytest.mark.parametrize("stage", COURSE.stages, ids=lambda stage: stage.slug)
def test_a_reason_finds_no_call_in_code_that_has_none(stage: Stage) -> None:
    says = {one.id: one.says for one in read_misconceptions(stage)}
    for answer in wrong_of(stage):
        for reason in (says.get(id, "") for id in answer.told or ()):
            fault = re.split(r":|\. |,? as |, like ", reason)[0]  # then it compares, or advises
            calls = {"".join(found) for found in CALL.findall(fault)}
            assert all(call in answer.source.decode() for call in calls), (answer.name, reason)
