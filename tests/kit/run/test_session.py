"""Checks are run again and again: what is known is not judged twice, and nothing is mixed up."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.read.course_file import read_course
from grader.run.answers import WorkerAnswers
from grader.run.collecting import with_checks
from grader.run.conversation import Conversation
from grader.run.facts import CaseFact, Ending, StageFacts
from grader.run.failures import LoadError, WrongReturn
from grader.run.importing import Import
from grader.run.session import Checks, _ending, _way
from grader.run.solutions import solution_files
from grader.run.transcripts import Key, Transcripts
from grader.run.under_check import StageUnderCheck
from grader.run.worker.wire import Frame
from grader.run.workers import Interpreter
from grader.types.course import Stage
from grader.types.submission import Submission
from tests.kit.support.checkout import TINY
from tests.kit.support.files import write_files
from tests.kit.support.tiny import copy_tiny

STAGE = TINY.stage("moving_average")
RIGHT = solution_files(TINY)["moving_average.py"]
WRONG = b"""
import numpy as np

def moving_average(values, width):
    if not 1 <= width <= len(values):
        raise ValueError("does not fit")
    return np.convolve(values, np.ones(width), "valid")
"""
OTHER_WORDS = WRONG.replace(b"does not fit", b"too wide")
PRINTS = RIGHT.replace(b"    ### BEGIN SOLUTION", b"    print('hello')")
DIES = b"import os\n\ndef moving_average(values, width):\n    os._exit(3)\n"

DRAWS = """
import random

import numpy as np
import pytest


@pytest.mark.random
@pytest.mark.points(6)
def test_values(submission):
    'It is a matter of chance'
    submission.moving_average(np.ones(3), 2)
    assert False, f"{random.random()} {np.random.rand()}"
"""
GIVES = """
import pytest


@pytest.mark.points(6)
def test_given(submission):
    'It is called with what the check made'
    submission.moving_average(submission.given("def f(): pass", "f"), 2)
"""
PREPARES = """
import numpy
import pytest


@pytest.fixture
def found(submission):
    found = {found}
    assert len(found) == 3, "not three"
    return found


@pytest.mark.points(6)
def test_found(found):
    'It is prepared'
"""
SPOILS = b"""
import grader.run.worker.bench as bench

def made(*about):
    raise OSError("no")

bench.made = made
"""
DRAWS_AT_IMPORT = """
import random

import numpy as np
import pytest

DRAWN = f"{random.random()} {np.random.rand()}"


@pytest.mark.points(6)
def test_values(submission):
    'It compares with what was drawn'
    submission.moving_average(np.ones(3), 2)
    assert False, DRAWN
"""
WARNS = """
import warnings

import numpy as np
import pytest


@pytest.mark.points(6)
def test_values(submission):
    'What a library thinks of the answer'
    submission.moving_average(np.ones(3), 2)
    warnings.warn("an odd answer", stacklevel=1)
"""

Grade = Callable[..., StageFacts]
Grading = Callable[[Callable[["Counting", Grade], None]], None]


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    with Interpreter(TINY.preload, TINY.limits, gpu=False) as interpreter:
        yield interpreter


def facts_of(
    checks: Checks, interpreter: Interpreter, stage: Stage, source: bytes, seed: int = 1
) -> StageFacts:
    """What the checks of a stage meet in this answer to it."""
    course = replace(TINY, stages=(stage,))
    submission = Submission("mine", {stage.file_name: source})
    answers = WorkerAnswers(interpreter, Import(course, stage, submission))
    return checks.run(stage, StageUnderCheck(stage, answers), seed, "cpu")


class Counting(Checks):
    """Counts how many cases pytest has run."""

    runs = 0

    def _error(self, item: pytest.Item) -> BaseException | None:
        self.runs += 1
        return super()._error(item)


@pytest.fixture
def grading(interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch) -> Grading:
    """Runs a body with the checks of the stage and a function that grades an answer to it."""
    monkeypatch.setattr("grader.run.collecting.Checks", Counting)

    def run(body: Callable[[Counting, Grade], None]) -> None:
        def work(checks: Checks) -> None:
            assert isinstance(checks, Counting)
            body(checks, partial(facts_of, checks, interpreter, STAGE))

        with_checks(TINY, [STAGE], work)

    return run


def timeless(facts: StageFacts) -> list[CaseFact]:
    return [replace(fact, seconds=0) for fact in facts.cases]


def test_the_same_answers_are_not_judged_again(grading: Grading) -> None:
    def body(checks: Counting, grade: Grade) -> None:
        for source in (RIGHT, WRONG):
            once = grade(source)
            runs = checks.runs
            again = grade(source + b"\n# another file with the same answers\n")
            assert checks.runs == runs
            assert timeless(again) == timeless(once)
            assert [f.number for f in again.cases] == [f.number for f in once.cases]

    grading(body)


def test_what_is_known_of_others_changes_no_verdict(grading: Grading) -> None:
    alone: dict[bytes, list[CaseFact]] = {}
    sources = (RIGHT, WRONG, OTHER_WORDS, DIES, PRINTS)
    for each in sources:
        grading(lambda checks, grade, each=each: alone.update({each: timeless(grade(each))}))

    def body(checks: Counting, grade: Grade) -> None:
        for source in (*sources, *reversed(sources)):
            assert timeless(grade(source)) == alone[source]
        assert grade(PRINTS).printed.startswith("hello")

    grading(body)
    assert any(fact.ending is Ending.WRONG for fact in alone[WRONG])
    assert all(fact.ending is Ending.PASSED for fact in alone[PRINTS])
    assert alone[WRONG] != alone[OTHER_WORDS]


def test_another_seed_gives_other_inputs_to_random_cases_alone(grading: Grading) -> None:
    def body(checks: Counting, grade: Grade) -> None:
        first, second = (grade(RIGHT, seed) for seed in (1, 2))
        pairs = zip(first.cases, second.cases, strict=True)
        other = {one.case for one, two in pairs if one.exchanges != two.exchanges}
        assert other == checks.random(STAGE) and len(other) == 1

    grading(body)


def test_a_check_that_no_longer_asks_what_it_did_is_run_from_its_beginning(
    grading: Grading, monkeypatch: pytest.MonkeyPatch
) -> None:
    def body(checks: Counting, grade: Grade) -> None:
        once = timeless(grade(RIGHT))
        original = Transcripts.follow

        def reseeded(frame: Frame) -> Frame:
            return Frame({**frame.header, "seed": 99}, frame.data)

        def another(self: Transcripts, key: Key, ask: Callable[..., Frame]) -> None:
            original(self, key, lambda frame, known: ask(reseeded(frame), known))

        monkeypatch.setattr(Transcripts, "follow", another)
        assert timeless(grade(RIGHT)) == once

    grading(body)


TWO = """
schema = 1
name = "two"
title = "Two functions"
preload = []

[[stages]]
slug = "pair"
title = "One and two"
points = 1
entry_points = { first = "number", second = "number" }
"""
BOTH = """
import pytest

@pytest.mark.points(1)
def test_both(submission):
    \"""The first gives 1, the second 2\"""
    assert submission.first() == 1
    assert submission.second() == 2
"""


# A check that says by itself what it means that there is no answer.
CATCHES = BOTH.replace(
    "    assert submission.second() == 2",
    "    try:\n        second = submission.second()\n    except Exception:\n        second = 0\n"
    "    assert second == 2, 'there is no second'",
)
DIES_SECOND = b"def second():\n    import os\n    os._exit(3)\n"


@pytest.mark.parametrize(
    ("check", "lacking", "ending"),
    [
        pytest.param(BOTH, b"", Ending.RAISED, id="an entry point"),
        pytest.param(CATCHES, DIES_SECOND, Ending.WRONG, id="an answer"),
    ],
)
def test_what_one_submission_lacks_another_may_have(
    tmp_path: Path, check: str, lacking: bytes, ending: Ending
) -> None:
    write_files(tmp_path, {"tests/checks/test_pair.py": check, "course.toml": TWO})
    course = read_course(tmp_path / "course.toml")
    stage = course.stage("pair")
    first = b"def first():\n    return 1\n"
    second = b"def second():\n    return 2\n"

    def body(checks: Checks) -> list[Ending]:
        sources = (first + lacking, first + second, first + lacking)
        facts = [facts_of(checks, interpreter, stage, source) for source in sources]
        return [each.cases[0].ending for each in facts]

    with Interpreter(course.preload, course.limits, gpu=False) as interpreter:
        endings = with_checks(course, [stage], body)
    assert endings == [ending, Ending.PASSED, ending]


# As with CUDA: after one call with an index that is too large, every call fails.
LOSES_CUDA = """
lost = False

def first():
    return 1

def second():
    global lost
    lost = True
    return error()

def error():
    raise RuntimeError("CUDA error: device-side assert triggered")

def third():
    return error() if lost else 3
"""
EACH = """
import pytest

@pytest.mark.points(10)
@pytest.mark.parametrize("name, value", [("first", 1), ("second", 2), ("third", 3)])
def test_both(submission, name, value):
    "It counts"
    assert getattr(submission, name)() == value
"""


def test_a_process_that_has_lost_cuda_serves_no_other_case(tmp_path: Path) -> None:
    course = TWO.replace('second = "number"', 'second = "number", third = "number"')
    write_files(tmp_path, {"tests/checks/test_pair.py": EACH, "course.toml": course})
    course_read = read_course(tmp_path / "course.toml")
    stage = course_read.stage("pair")

    def body(checks: Checks) -> list[Ending]:
        facts = facts_of(checks, interpreter, stage, LOSES_CUDA.encode())
        return [case.ending for case in facts.cases]

    with Interpreter(course_read.preload, course_read.limits, gpu=False) as interpreter:
        interpreter.gpu = True  # starting one for a GPU takes seconds
        endings = with_checks(course_read, [stage], body)
    assert endings == [Ending.PASSED, Ending.RAISED, Ending.PASSED]


def test_a_right_answer_that_came_too_late_is_held_against_nobody_else(
    grading: Grading, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = Conversation.exchange

    def late(*args: Any, **kwargs: Any) -> Frame:
        reply = exchange(*args, **kwargs)
        reply.left = 1e-9
        return reply

    def body(checks: Counting, grade: Grade) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(Conversation, "exchange", late)
            assert Ending.PASSED not in [fact.ending for fact in grade(RIGHT).cases]
        assert {fact.ending for fact in grade(RIGHT).cases} == {Ending.PASSED}

    grading(body)


def test_what_a_check_draws_by_itself_is_the_same_under_the_same_seed(
    interpreter: Interpreter, tmp_path: Path
) -> None:
    course = copy_tiny(tmp_path / "tiny")
    stage = course.stage("moving_average")
    stage.check_file.write_text(DRAWS, encoding="utf-8")

    def body(checks: Checks) -> list[str]:
        told = []
        for seed in (1, 1, 2):
            checks.forget()
            told.append(facts_of(checks, interpreter, stage, RIGHT, seed).cases[0].message)
        return told

    first, again, other = with_checks(course, [stage], body)
    assert first == again != other


def first_fact(text: str, folder: Path, interpreter: Interpreter, more: bytes = b"") -> CaseFact:
    """How a right answer, with `more` code, does in the first case of a check file of this text."""
    course = copy_tiny(folder)
    stage = course.stage("moving_average")
    stage.check_file.write_text(text, encoding="utf-8")

    facts = with_checks(
        course, [stage], lambda all: facts_of(all, interpreter, stage, RIGHT + more)
    )
    return facts.cases[0]


def test_a_warning_in_a_check_shows_none_of_its_lines(
    interpreter: Interpreter, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    assert first_fact(WARNS, tmp_path / "tiny", interpreter).ending is Ending.PASSED
    assert not recwarn


@pytest.mark.parametrize("record_cap", [0, 1 << 20])
def test_who_spoils_what_a_check_gives_fails_and_the_check_is_not_broken(
    interpreter: Interpreter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_cap: int
) -> None:
    monkeypatch.setattr("grader.run.under_check._RECORD_CAP", record_cap)
    fact = first_fact(GIVES, tmp_path / "tiny", interpreter, SPOILS)
    assert fact.ending is Ending.WRONG and "OSError: no" in fact.message


@pytest.mark.parametrize(
    ("found", "ending"),
    [("submission.moving_average(numpy.ones(3), 2)", Ending.WRONG), ("[2.0]", Ending.BROKEN)],
)
def test_what_prepares_a_check_is_broken_unless_it_rejects_an_answer(
    interpreter: Interpreter, tmp_path: Path, found: str, ending: Ending
) -> None:
    checks = PREPARES.format(found=found)
    assert first_fact(checks, tmp_path / "tiny", interpreter).ending is ending


def test_what_a_check_file_draws_at_its_import_is_the_same_in_every_run(
    interpreter: Interpreter, tmp_path: Path
) -> None:
    drawn = [first_fact(DRAWS_AT_IMPORT, tmp_path / each, interpreter).message for each in "ab"]
    assert drawn[0] == drawn[1] != ""


def test_an_error_after_one_of_the_learners_code_fails_in_its_way() -> None:
    error = RuntimeError("the check has no use for it")
    error.__context__ = WrongReturn("None")
    assert _way(error) == WrongReturn.way
    assert _way(ValueError()) == _way(None) == ""


def test_a_missing_name_is_said_without_the_call_of_another_function() -> None:
    stage: Any = SimpleNamespace(case=SimpleNamespace(not_written=False, last_call="fold(3)"))
    assert _ending(LoadError("wings.py does not define turn"), stage) == (
        Ending.RAISED,
        "wings.py does not define turn",
    )
