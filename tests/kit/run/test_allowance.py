"""How long an answer may take: what a busy machine takes from a worker is not counted."""

import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy
import pytest

from grader.run.allowance import Allowance, Due, Patience, Waited
from grader.run.answers import WorkerAnswers
from grader.run.budget import Budget
from grader.run.failures import Timeout
from grader.run.importing import Import
from grader.run.remote import RemoteSubmission
from grader.run.under_check import StageUnderCheck
from grader.run.workers import Interpreter, Worker
from grader.types.course import Limits
from grader.types.submission import Submission
from tests.kit.support.checkout import TINY

LIMIT = 0.6  # seconds


class Clock:
    """A clock that a test sets, and how long the worker has waited by then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.waited = 100.0, 7.0
        monkeypatch.setattr("grader.run.allowance.time.monotonic", lambda: self.now)

    def due(self, most: float = 60) -> Due:
        return Due(3, most, Waited(lambda: self.waited))

    def set(self, passed: float, waited: float) -> None:
        self.now, self.waited = 100 + passed, 7 + waited


@pytest.mark.parametrize(
    "passed, waited, due",
    [
        pytest.param(0, 0, 3, id="at first"),
        pytest.param(1, 1, 3, id="nobody looks before it has come"),
        pytest.param(3, 0, 3, id="it worked, or slept, all the time"),
        pytest.param(3, 1, 4, id="it waited for one second"),
        pytest.param(5, 4, 7, id="and goes on to wait"),
        pytest.param(30, 25, 12, id="four times the limit is the end"),
    ],
)
def test_the_time_that_a_worker_waits_is_added(
    monkeypatch: pytest.MonkeyPatch, passed: float, waited: float, due: float
) -> None:
    clock = Clock(monkeypatch)
    moment = clock.due()
    clock.set(passed, waited)
    assert moment() == 100 + due


def test_no_answer_is_waited_for_longer_than_the_submission_has_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    short, long = clock.due(most=2), clock.due(most=4)
    assert (short(), long()) == (102, 103)
    clock.set(3.5, 3)
    assert (short(), long()) == (102, 104)


def test_what_a_worker_waited_costs_its_stage_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    due = clock.due()
    clock.set(2.5, 1.5)
    assert due.used == 1
    clock.set(3, 2)
    assert due() == 105
    clock.waited = 0  # it has ended: nobody says any more how long it has waited
    assert due.used == 1


def test_after_each_time_out_the_next_answer_is_waited_for_half_as_long() -> None:
    patience = Patience(3)
    said = [str(patience.end("No answer")).partition(":")[0] for _ in range(4)]
    assert said == [
        "No answer in 3 seconds",
        *(f"No answer in {n}, the limit of 3 halved each time" for n in ("1.5 seconds",)),
        "No answer in 0.75 seconds, the limit of 3 halved each time",
        "No answer in 0.5 seconds, the limit of 3 halved each time",
    ]


def test_a_stage_has_one_allowance_for_all_its_calls() -> None:
    allowance = Allowance(replace(Limits(), stage_seconds=5), Budget())
    allowance.spend(4)
    allowance.expect_some()
    allowance.spend(2)
    with pytest.raises(Timeout, match="used up its 5 seconds"):
        allowance.expect_some()


# --- a worker ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def interpreter() -> Interpreter:
    with Interpreter((), TINY.limits, gpu=False) as interpreter:
        yield interpreter


def answered(interpreter: Interpreter, seconds: float) -> float:
    """How long a call was waited for that sleeps so long. Raises Timeout."""
    limits = replace(TINY.limits, call_seconds=LIMIT)
    stage = TINY.stages[0]
    name = stage.entry_points[0].name
    source = (
        f"import time\ndef {name}(values, width):\n    time.sleep({seconds})\n    return values\n"
    )
    submission = Submission("x", {stage.file_name: source.encode()})
    answers = WorkerAnswers(interpreter, Import(replace(TINY, limits=limits), stage, submission))
    under_check = StageUnderCheck(stage, answers)
    under_check.begin(1)
    try:
        began = time.monotonic()
        getattr(RemoteSubmission(under_check), name)(numpy.ones(3), 1)
        return time.monotonic() - began
    finally:
        under_check.close()


def test_a_call_that_sleeps_is_ended_at_its_limit(interpreter: Interpreter) -> None:
    with pytest.raises(Timeout, match=f"No answer in {LIMIT} seconds"):
        answered(interpreter, 60)


def test_a_slow_answer_on_a_busy_machine_is_waited_for(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine gives the worker no time at all: all that passes is spent on waiting."""
    monkeypatch.setattr(Worker, "waited_seconds", lambda self: time.monotonic())
    assert answered(interpreter, 2 * LIMIT) >= 2 * LIMIT
    began = time.monotonic()
    with pytest.raises(Timeout):
        answered(interpreter, 60)
    assert time.monotonic() - began >= 4 * LIMIT


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says so")
def test_the_kernel_says_how_long_a_process_has_waited(interpreter: Interpreter) -> None:
    worker = interpreter.start()
    me = Worker(worker.channel, os.getpid(), "", interpreter)
    worker.end()
    assert worker.waited_seconds() == 0, "it has ended"
    before, cores = me.waited_seconds(), os.sched_getaffinity(0)
    rival = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for pid in (0, rival.pid):
            os.sched_setaffinity(pid, {min(cores)})
        end = time.monotonic() + 30
        while me.waited_seconds() - before < 0.1 and time.monotonic() < end:
            sum(range(10_000))
    finally:
        rival.kill()
        rival.wait()
        os.sched_setaffinity(0, cores)
    assert me.waited_seconds() - before >= 0.1
