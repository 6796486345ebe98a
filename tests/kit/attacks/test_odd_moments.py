"""A forbidden call is seen, too, with an answer that cannot be sent, and after an answer."""

from pathlib import Path

import pytest

from grader.engine import Request, grade
from grader.read.course_file import read_course
from grader.types.submission import Submission
from tests.kit.support.files import write_files

TOML = """
schema = 1
name = "doubling"
title = "Numbers"
preload = ["numpy"]
[[stages]]
slug = "doubling"
title = "Numbers"
points = 4
entry_points = { double = "array", negate = "array" }
forbidden = ["math.fsum"]
"""
CHECKS = '''
import numpy as np
import pytest
from grader.checking import expect_close

@pytest.mark.points(2)
def test_negates(submission):
    """Negates"""
    expect_close(submission.negate(np.arange(4.0)), -np.arange(4.0), axes="n")

@pytest.mark.points(2)
def test_doubles(submission):
    """Doubles"""
    expect_close(submission.double(np.arange(4.0)), 2 * np.arange(4.0), axes="n")
'''
RIGHT = "def double(x):\n    return 2 * x\n\n\ndef negate(x):\n    return -x\n"
CALLS = """
import importlib
import sys


def call():
    getattr(importlib.import_module("math"), "fsum")([1.0])


def call_later(frame, event, argument):
    if frame.f_code.co_name == "send":
        sys.setprofile(None)
        call()


def double(x):
    return 2 * x


def negate(x):
    CALL
    return ANSWER
"""


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        pytest.param("call()", "[[0] * 9999] * 20", id="too many values"),
        pytest.param("sys.setprofile(call_later)", "-x", id="after the answer"),
    ],
)
def test_no_forbidden_call_is_lost(tmp_path: Path, call: str, answer: str) -> None:
    files = {
        "course.toml": TOML,
        "solutions/doubling.py": RIGHT,
        "exercises/doubling.py": RIGHT.replace("2 * x", "1").replace("-x", "1"),
        "tests/checks/test_doubling.py": CHECKS,
    }
    write_files(tmp_path, files)
    course = read_course(tmp_path / "course.toml")
    source = CALLS.replace("CALL", call).replace("ANSWER", answer)
    submission = Submission("s", {"doubling.py": source.encode()})
    report = grade(course, Request(submission, course.stages, 1))
    assert "calls math.fsum" in report.stages[0].checks[0].message
    assert report.score == 0
