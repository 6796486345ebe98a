"""No submission costs more than `submission_seconds`, whatever it does and however it is graded.

The folders are those of ../costly.py, the course is the tiny one with a small budget.
"""

import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from grader.classes.grading import all_graded
from grader.engine import Engine, Request, grade, with_engine
from grader.read.course_file import read_course
from grader.run.solutions import solution_files
from grader.types.report import Outcome, Report, Status
from grader.types.submission import Submission
from tests.kit.classes.costly import costly
from tests.kit.support.checkout import TINY as WHOLE
from tests.kit.support.files import write_files

SECONDS = 3.0
MORE = 3.0  # seconds that a busy machine may add to one step
MEBIBYTES = 700  # that the checker's memory may grow by: a few times an array at its cap
TINY = replace(WHOLE, limits=replace(WHOLE.limits, submission_seconds=SECONDS))
RIGHT = solution_files(TINY)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks the worker")

COSTLY = costly(TINY)
QUICK = ("keys of one hash", "sleeps almost as long as it may")


@dataclass(frozen=True)
class Cost:
    """What grading one submission took."""

    report: Report
    wall: float
    processor: float  # seconds of this process and of the workers
    mebibytes: float  # by which the most memory that this process ever had has grown


def graded(names: list[str]) -> dict[str, Cost]:
    """What each of these folders costs, graded by one engine, and that an honest one passes."""

    def body(engine: Engine) -> dict[str, Cost]:
        found = {name: measured(engine, COSTLY[name]) for name in names}
        honest = engine.grade(Request(Submission("honest", RIGHT), TINY.stages[:1], 1))
        assert honest.score == honest.max_score
        return found

    return with_engine(TINY, TINY.stages, "cpu", body)


def measured(engine: Engine, submission: Submission) -> Cost:
    def processor() -> float:
        return time.process_time() + engine.interpreter.processor_seconds()

    def most() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    start, used, before = time.monotonic(), processor(), most()
    report = engine.grade(Request(submission, TINY.stages, 1))
    return Cost(report, time.monotonic() - start, processor() - used, most() - before)


def expect_bounded(cost: Cost) -> None:
    assert cost.wall < SECONDS + MORE
    assert cost.processor < SECONDS + MORE * (os.cpu_count() or 1)
    assert cost.mebibytes < MEBIBYTES
    checks = [check for stage in cost.report.stages for check in stage.checks]
    assert len(checks) >= 7, "every planned check has its result"
    assert not [check for check in checks if check.outcome is Outcome.ERROR]
    assert all(len(check.message) < 11_000 for check in checks)
    assert cost.report.score <= 1  # who raises the right error everywhere gets one check's points


@pytest.mark.slow
@pytest.mark.parametrize("name", COSTLY)
def test_no_known_folder_costs_more_than_it_may(name: str) -> None:
    expect_bounded(graded([name])[name])


@pytest.mark.slow
def test_a_notebook_whose_cells_need_thousands_of_names_costs_no_more_than_it_may() -> None:
    def cell(number: int, names: int = 90) -> str:
        first, then = number * names, (number + 1) * names
        return "\n".join(f"n{first + i:x} = n{then + i:x}" for i in range(names))

    asked = "def moving_average(values, width):\n    return n0\n\nsmooth = moving_average\n"
    cells = ("import os\nos._exit(0)\n", *map(cell, range(490)), asked)
    evil = Submission("many names", {}, cells=cells)
    expect_bounded(with_engine(TINY, TINY.stages, "cpu", lambda engine: measured(engine, evil)))


SLEEPS = COSTLY["sleeps almost as long as it may"].files


@pytest.mark.slow
def test_what_has_its_verdict_keeps_it_and_the_rest_says_which_limit_it_met() -> None:
    files = {**SLEEPS, "moving_average.py": RIGHT["moving_average.py"]}
    report = grade(TINY, Request(Submission("mixed", files), TINY.stages, 1))
    average, smooth, roughness = report.stages
    assert average.status is Status.PASSED and average.score == average.max_score
    assert smooth.status is roughness.status is Status.FAILED
    (last,) = roughness.checks
    assert last.outcome is Outcome.TIMEOUT
    assert last.message.startswith("Not checked: your submission has used up all of its 3 seconds.")
    assert any("submission_seconds in course.toml" in note for note in report.notes)
    assert report.seconds >= SECONDS


@pytest.mark.slow
def test_no_forbidden_call_is_overlooked_for_want_of_time() -> None:
    """All checks pass, and there is nothing left of the budget when they have."""
    stage = replace(TINY.stages[0], forbidden=("numpy.convolve",))
    course = replace(
        TINY, stages=(stage, *TINY.stages[1:]), limits=replace(TINY.limits, submission_seconds=2.0)
    )
    slow = (
        "import time\nimport numpy\nleft = [11]\n\n"
        "def moving_average(values, width):\n    ### BEGIN SOLUTION\n"
        "    left[0] -= 1\n    if not left[0]:\n        time.sleep(1.9)\n"
    )
    never = "    if width == 99:\n        numpy.convolve(values, values)\n"
    right = RIGHT["moving_average.py"].decode().partition("### BEGIN SOLUTION\n")[2]
    code = f"import numpy as np\n{slow}{never}{right}".encode()
    request = Request(Submission("sly", {stage.file_name: code}), (stage,), 1)
    assert grade(course, request).score == 0


def test_a_source_too_long_to_search_for_forbidden_calls_is_told() -> None:
    stage = replace(TINY.stages[0], forbidden=("numpy.convolve",))
    code = RIGHT["moving_average.py"] + b"# Never by numpy.convolve.\n" + b"#" * (1 << 18)
    request = Request(Submission("sly", {stage.file_name: code}), (stage,), 1)
    notes = grade(replace(TINY, stages=(stage, *TINY.stages[1:])), request).notes
    assert "takes too long to search: a forbidden call" in notes[-1]


FED_BACK = {
    "course.toml": """
schema = 1
name = "scaling"
title = "Scale"
preload = ["numpy"]
[[stages]]
slug = "scaling"
title = "Scale"
points = 1
entry_points = { scale = "array", scaled = "array" }
""",
    "solutions/scaling.py": """
def scale(x):
    return 1 / abs(x).max(keepdims=True)


def scaled(x, by):
    return x * by
""",
    "exercises/scaling.py": "def scale(x):\n    return x\n\n\ndef scaled(x, by):\n    return x\n",
    "tests/checks/test_scaling.py": '''
import pytest
from grader.checking import expect_close

@pytest.mark.points(1)
def test_passed_on(submission, rand):
    """What is scaled is 1 at most"""
    x = rand(n=1000)
    by = submission.scale(x)
    expect_close(submission.scaled(x, by), x / abs(x).max(), axes="n")
''',
}
# With a thousand numbers the solution would make a gigabyte of this.
PASSED_ON = """
import numpy as np


def scale(x):
    return np.ones((125_000, 1), np.uint8)


def scaled(x, by):
    return 2 * x
"""


def test_an_answer_that_the_check_passes_on_costs_the_checker_nothing(tmp_path: Path) -> None:
    course = read_course(write_files(tmp_path, FED_BACK) / "course.toml")
    right = Submission("right", solution_files(course))
    hostile = Submission("hostile", {"scaling.py": PASSED_ON.encode()})

    def body(engine: Engine) -> float:
        assert engine.grade(Request(right, course.stages, 1)).score == 1
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert engine.grade(Request(hostile, course.stages, 1)).score == 0
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024

    assert with_engine(course, course.stages, "cpu", body) < MEBIBYTES


OF_ANYTHING = {
    "course.toml": """
schema = 1
name = "counting"
title = "Count"
preload = ["numpy"]
[[stages]]
slug = "counting"
title = "Count"
points = 1
entry_points = { count = "any" }
""",
    "solutions/counting.py": "def count(n):\n    return list(range(n))\n",
    "exercises/counting.py": "def count(n):\n    return n\n",
    "tests/checks/test_counting.py": '''
import pytest
from grader.checking import expect_equal

@pytest.mark.points(1)
def test_numbers(submission):
    """All numbers are there"""
    expect_equal(submission.count(100), list(range(100)), "the numbers", ordered=False)
''',
}
# Each took minutes or hours to compare or to write out.
ANYTHING = {
    "one large array, in every place": "[np.zeros(100 << 20, np.int8)] * 10_000",
    "many large arrays": "[np.zeros(1 << 20, np.int8)] * 120",
    "thousands of small arrays": "[np.zeros(1000, np.int8)] * 10_000",
    "an array of many short axes": "np.zeros([3] * 16, np.int8)",
    "an object of such an array": "Held(np.zeros([3] * 16, np.int8))",
}
HELD = "import numpy as np\nclass Held:\n    def __init__(self, held): self.held = held\n"


def test_no_comparison_of_what_an_author_does_not_expect_takes_long(tmp_path: Path) -> None:
    course = read_course(write_files(tmp_path, OF_ANYTHING) / "course.toml")

    def body(engine: Engine) -> None:
        for name, answer in ANYTHING.items():
            code = f"{HELD}def count(n):\n    return {answer}\n".encode()
            used = time.process_time()
            report = engine.grade(
                Request(Submission(name, {"counting.py": code}), course.stages, 1)
            )
            assert report.score == 0 and time.process_time() - used < MORE, name

    with_engine(course, course.stages, "cpu", body)


def test_the_budget_holds_in_a_thread_too() -> None:
    """`grade watch` grades in one, where no timer of the system could interrupt it."""
    found: list[Report] = []

    def body(engine: Engine) -> None:
        found.append(engine.grade(Request(COSTLY[QUICK[1]], TINY.stages, 1)))

    thread = threading.Thread(target=with_engine, args=(TINY, TINY.stages, "cpu", body))
    thread.start()
    thread.join()
    assert SECONDS <= found[0].seconds < SECONDS + MORE


@pytest.mark.slow
def test_a_worker_with_many_threads_has_no_more_processor_time() -> None:
    """The system ends it in the middle of a call when the submission has no more left."""
    limits = replace(TINY.limits, call_seconds=60, submission_seconds=2.0)
    code = COSTLY["is busy almost as long as it may"].files["roughness.py"]
    files = {"roughness.py": code.replace(b"busy(1.9)", b"busy(50)")}
    request = Request(Submission("busy", files), TINY.stages[2:], 1)
    start = os.times()
    grade(replace(TINY, limits=limits), request)
    end = os.times()
    assert end.children_user - start.children_user < 2 + MORE + 2  # and the interpreter's start


def test_a_class_is_graded_in_time_whatever_one_of_it_does() -> None:
    """In lanes each submission has a budget of its own."""
    jobs = [COSTLY[QUICK[0]], Submission("honest", RIGHT), COSTLY[QUICK[1]]]
    stages = TINY.stages[:2]

    def work(engine: Engine) -> Callable[[Submission], Report]:
        return lambda job: engine.grade(Request(job, stages, 1))

    def body(engine: Engine) -> list[tuple[Submission, Any]]:
        return list(all_graded(engine, jobs, 2, stages, 1, work))

    found = {job.name: report for job, report in with_engine(TINY, stages, "cpu", body)}
    assert found["honest"].score == found["honest"].max_score
    for name in QUICK:
        assert found[name].seconds < SECONDS + MORE and found[name].score == 0
