"""What is sent to a worker before its turn gives nothing away and changes no verdict."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.engine import Engine, Request, with_engine
from grader.read.course_file import read_course
from grader.run.solutions import solution_files
from grader.types.course import Course
from grader.types.report import Report
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE as ATTENTION
from tests.kit.support.files import write_files
from tests.kit.wrong_answers import WrongAnswer, wrong_answers

_ADDRESS = re.compile(r"0x[0-9a-f]+")
TOML = """
schema = 1
name = "doubling"
title = "Numbers"
preload = ["numpy"]
[limits]
call_seconds = 1
[[stages]]
slug = "doubling"
title = "Numbers"
points = 4
entry_points = { double = "array", negate = "array" }
forbidden = ["math.fsum"]
"""
RIGHT = "def double(x):\n    return 2 * x\n\n\ndef negate(x):\n    return -x\n"
CHECKS = '''
import numpy as np
import pytest
from grader.checking import expect_close

def all_of(submission, x):
    expect_close(submission.double(x), 2 * x, axes="n")
    expect_close(submission.double(x + 1), 2 * x + 2, axes="n")

@pytest.mark.points(1)
@pytest.mark.parametrize("start", [1, 20, 300])
def test_own(submission, start):
    """Doubles, and doubles again"""
    submission.negate(np.arange(4.0) + start)
    submission.negate(np.arange(4.0) + start + 4)

@pytest.mark.points(1)
def test_fed_back(submission):
    """What was doubled is negated"""
    x = np.array([0.1, 0.7, 0.3])
    expect_close(submission.negate(submission.double(x)), -2 * x, axes="n")

@pytest.mark.points(1)
def test_derived(submission):
    """What was negated can be doubled"""
    x = np.array([0.9, 0.2])
    expect_close(submission.double(submission.negate(x) / 8), -x / 4, axes="n")

@pytest.mark.points(1)
def test_last(submission):
    """Doubles the last"""
    expect_close(submission.double(np.array([5.0])), np.array([10.0]), axes="n")
'''
# Gives right answers, and prints the numbers of all requests that wait in this process.
LOOKS = (
    RIGHT
    + """

import gc
import numpy


def _waiting():
    for thing in gc.get_objects():
        if type(thing).__name__ == "Channel":
            thing._socket.setblocking(False)
            try:
                thing._buffer += thing._socket.recv(1 << 20)
            except OSError:
                pass
            data = bytes(thing._buffer)
            return [
                round(float(number), 6)
                for start in range(8)
                for number in numpy.frombuffer(data[start : start + (len(data) - start) // 8 * 8])
                if 0.01 < abs(number) < 1000
            ]


def double(x, double=double):
    print("double", x.tolist(), _waiting())
    return double(x)


def negate(x, negate=negate):
    print("negate", x.tolist(), _waiting())
    return negate(x)
"""
)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    files = {
        "course.toml": TOML,
        "solutions/doubling.py": RIGHT,
        "exercises/doubling.py": RIGHT.replace("2 * x", "1").replace("-x", "1"),
        "tests/checks/test_doubling.py": CHECKS,
    }
    write_files(tmp_path, files)
    return read_course(tmp_path / "course.toml")


def standing(report: Report) -> list[Any]:
    """What a report says of each check."""
    return [
        (check.id, check.outcome, check.score, _ADDRESS.sub("", check.message), check.diagnosis)
        for stage in report.stages
        for check in stage.checks
    ]


def graded(course: Course, sources: list[str], *, ahead: bool) -> list[Report]:
    """The reports on these answers, one after the other."""

    def run(engine: Engine) -> list[Report]:
        right = Submission("right", solution_files(course))
        assert engine.grade(Request(right, course.stages, 1)).passed
        if ahead:
            engine.rehearse(course.stages, 1)
        files = [{"doubling.py": source.encode()} for source in sources]
        return [engine.grade(Request(Submission("s", f), course.stages, 1)) for f in files]

    return with_engine(course, course.stages, "cpu", run)


def waiting(report: Report) -> Iterator[tuple[str, list[float]]]:
    """What was called, and the numbers that waited then."""
    for line in report.stages[0].printed.splitlines():
        called, _, numbers = line.rpartition("[")
        yield called.strip(), [float(n) for n in numbers.strip("]").split(",") if n.strip()]


def test_no_request_that_holds_an_answer_waits_in_the_process(course: Course) -> None:
    [report] = graded(course, [LOOKS], ahead=True)
    seen = dict(waiting(report))
    first = seen["negate [1.0, 2.0, 3.0, 4.0]"]
    assert {5.0, 20.0, 24.0, 303.0, 0.7} <= set(first), "requests are sent ahead"
    fed_back = seen["double [0.1, 0.7, 0.3]"]
    derived = seen["negate [0.9, 0.2]"]
    assert fed_back == [] and derived == [], "the next one depends on this answer"
    assert report.passed


# What it asks next depends on the form of an answer, as it does with the names of parameters.
CHECKS_BY_FORM = '''
import numpy as np
import pytest
from grader.checking import expect_close

@pytest.mark.points(4)
def test_whole(submission):
    """Doubles whole numbers, as such or as others"""
    x = np.arange(4)
    kind = submission.double(x).dtype
    expect_close(submission.negate(x.astype(kind)), -x.astype(kind), axes="n")
'''
# The first answer has another form, so the case starts again and the second answer is thrown away.
CALLS_AT_FIRST = """
import importlib
import sys

calls = []


def call():
    getattr(importlib.import_module("math"), "fsum")([1.0])


def call_later(frame, event, argument):
    if frame.f_code.co_name == "send":
        sys.setprofile(None)
        call()


def double(x):
    calls.append(x)
    return 2.0 * x if len(calls) == 1 else 2 * x


def negate(x):
    if len(calls) == 1:
        CALL
        return ANSWER
    return -x
"""


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        pytest.param("call()", "-x", id="a right answer"),
        pytest.param("call()", "[[0] * 9999] * 20", id="too many values"),
        pytest.param("sys.setprofile(call_later)", "-x", id="after the answer"),
    ],
)
def test_no_forbidden_call_is_hidden_by_an_answer_that_is_thrown_away(
    course: Course, call: str, answer: str
) -> None:
    course.stages[0].check_file.write_text(CHECKS_BY_FORM)
    source = CALLS_AT_FIRST.replace("CALL", call).replace("ANSWER", answer)
    [report] = graded(course, [source], ahead=True)
    assert "calls math.fsum" in report.stages[0].checks[0].message
    assert report.score == 0


WRONG = [
    RIGHT.replace("2 * x", "x"),
    RIGHT.replace("-x", "x[:1]"),
    RIGHT.replace("-x", "1 / 0"),
    RIGHT.replace("return -x", "import os\n    os._exit(3) if x[0] == 24 else None\n    return -x"),
    RIGHT.replace("return -x", "while x[0] == 24: pass\n    return -x"),
    "calls = []\n" + RIGHT.replace("return 2", "calls.append(x)\n    return len(calls) * 2"),
    RIGHT.replace("2 * x", "2 * x if x.size > 1 else x"),
    "import threading, os, time\n"
    + RIGHT.replace(
        "return 2 * x",
        "if x[0] == 5:\n        threading.Timer(0.05, os._exit, [0]).start()\n    return 2 * x",
    ),
    RIGHT,
]


def test_no_verdict_depends_on_it(course: Course) -> None:
    reports = [graded(course, WRONG, ahead=ahead) for ahead in (False, True)]
    for source, one, other in zip(WRONG, *reports, strict=True):
        assert standing(one) == standing(other), source
    assert [report.score for report in reports[0]] == [1, 2, 1, 3, 3, 2, 3, 4, 4]


@pytest.mark.slow
@pytest.mark.parametrize("stage", ATTENTION.assignments[0].stages, ids=lambda stage: stage.slug)
def test_no_wrong_answer_of_a_stage_is_told_anything_else(stage: Any) -> None:
    answers = random.Random(1).sample(wrong_answers(stage.slug), 12)
    files = solution_files(ATTENTION)

    def body(engine: Engine) -> None:
        def told(answer: WrongAnswer) -> list[Any]:
            own = {**files, stage.file_name: answer.source.encode()}
            return standing(engine.grade(Request(Submission("s", own), (stage,), 1)))

        right = Submission("right", files)
        graded = []
        for ahead in (False, True):
            if ahead:
                engine.checks.forget()
                engine.grade(Request(right, (stage,), 1))
                engine.rehearse((stage,), 1)
            graded.append([told(answer) for answer in answers])
        for answer, one, other in zip(answers, *graded, strict=True):
            assert one == other, answer.name

    with_engine(ATTENTION, (stage,), "cpu", body)
