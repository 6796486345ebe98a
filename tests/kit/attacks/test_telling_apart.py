"""Tests that try to tell right modules from wrong ones by anything but what they do.

What one report says of a right module may be known to whoever tries again.
"""

import sys

import pytest

from grader.judge.verdict import judge_stage
from grader.run.answers import WorkerAnswers
from grader.run.collecting import with_checks
from grader.run.importing import Import
from grader.run.session import Checks
from grader.run.under_check import StageUnderCheck
from grader.run.workers import Interpreter
from grader.types.report import StageResult
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE

STAGE = next(stage for stage in COURSE.stages if stage.fixture)
FIXTURE = STAGE.fixture
TRIES = 3
MOST = 4  # points of 20: what a test gets that makes a module and looks at nothing, and one more

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks the worker")

PRELUDE = """
import gc, glob, hashlib, inspect, linecache, os, re, sys, tempfile, time
import torch

def code(module):
    "All code of a module's class and of what it uses."
    found, pending = [], list(vars(type(module)).values())
    pending += list(getattr(type(module).forward, "__globals__", {}).values())
    while pending:
        thing = pending.pop()
        thing = getattr(thing, "__func__", thing)
        if hasattr(thing, "__code__") and thing.__code__ not in found:
            found.append(thing.__code__)
    return found

"""
GUESSES = {
    "its source": "return 'one that' in inspect.getsource(type(m))",
    "its lines": "return any('given' in name for name in linecache.cache)",
    "its names": "return (type(m).__name__, type(m).__module__) != ('Attention', 'given')",
    "files of its code": "return any(c.co_filename != '<given>' for c in code(m))",
    "its documents": "return bool(type(m).__dict__.get('__doc__'))",
    "texts in memory": (
        "texts = [t for d in gc.get_objects() if type(d) is dict for t in d.values()]\n"
        "    return any(w in t for t in texts if type(t) is str for w in ('spoilt', 'one that'))"
    ),
    "the order, by a file": "n = len(os.listdir('.')); open(f'mark{n}', 'w').close(); return n > 5",
    "the order, by the process": "return (os.getpid() - os.getppid()) % 64 > 10",
    "the clock": "return time.time() % 3 > 1",
    "the address of things": "return id(m) >> 12 & 1",
    "how long its code is": "return sum(len(c.co_code) for c in code(m)) < 9500",
    "no square root in it": "return not any('sqrt' in c.co_names for c in code(m))",
    "no mask in it": "return not any('masked_fill' in c.co_names for c in code(m))",
    "odd words in it": "return any(w in c.co_names for c in code(m)"
    " for w in ('detach', 'flip', 'rand_like', 'ones_like'))",
    "how many attributes": "return len(vars(m)) != len(vars(torch.nn.Module())) + 2",
}


def attack(guess: str) -> str:
    """Tests that fail where the guess says so."""
    body = f"{PRELUDE}\ndef is_wrong(m):\n    {guess}\n"
    return f"{body}\ndef test_it({FIXTURE}):\n    assert not is_wrong({FIXTURE}(12, 3))\n"


def grade(interpreter: Interpreter, *sources: str) -> list[StageResult]:
    def body(checks: Checks) -> list[StageResult]:
        results = []
        for source in sources:
            submission = Submission("attack", {STAGE.file_name: source.encode()})
            answers = WorkerAnswers(interpreter, Import(COURSE, STAGE, submission))
            facts = checks.run(STAGE, StageUnderCheck(STAGE, answers), 7, "cpu")
            results.append(judge_stage(STAGE, facts))
        return results

    return with_checks(COURSE, [STAGE], body)


@pytest.mark.slow
@pytest.mark.parametrize("guess", GUESSES.values(), ids=GUESSES)
def test_looks_tell_nothing(interpreter: Interpreter, guess: str) -> None:
    for _ in range(TRIES):  # chance may help once
        [result] = grade(interpreter, attack(guess))
        if result.score <= MOST:
            return
    raise AssertionError([check.message for check in result.checks])


SEEN = "return hashlib.md5(b''.join(sorted(c.co_code for c in code(m)))).hexdigest()"


@pytest.mark.slow
def test_what_a_report_said_of_a_right_module_is_of_no_use_next_time(
    interpreter: Interpreter,
) -> None:
    def tells(known: set[str]) -> str:
        source = f"{PRELUDE}\ndef looks(m):\n    {SEEN}\n\ndef test_it({FIXTURE}):\n"
        return source + (
            f"    seen = looks({FIXTURE}(12, 3))\n    assert seen in {known!r}, f'SEEN {{seen}}'\n"
        )

    known: set[str] = set()
    for _ in range(3):
        [result] = grade(interpreter, tells(known))
        said = " ".join(check.message for check in result.checks)
        known |= {word for word in said.split() if len(word) == 32}
    assert known  # it was told
    [result] = grade(interpreter, tells(known))
    assert result.score <= MOST


FORGED = f"""
def test_it({FIXTURE}, request):
    {FIXTURE}(12, 3)
    for plugin in request.config.pluginmanager.get_plugins():
        if hasattr(plugin, "outcomes"):
            plugin.outcomes.update({{"test_won": RESULT}})
"""


@pytest.mark.slow
def test_a_result_that_is_made_up_is_worth_nothing(interpreter: Interpreter) -> None:
    made_up = [FORGED.replace("RESULT", each) for each in ("'caught'", "3")]
    right = STAGE.solution_file.read_text(encoding="utf-8")
    *verdicts, honest = grade(interpreter, *made_up, right)
    assert all(verdict.score <= MOST for verdict in verdicts)
    assert honest.score == honest.max_score


def test_what_they_print_and_say_of_a_wrong_module_is_not_told(interpreter: Interpreter) -> None:
    source = f"def test_it({FIXTURE}):\n    m = {FIXTURE}(12, 3)\n    print('PRINTED')\n"
    source += "    x = m.w_q.weight.new_ones(1, 2, 12)\n"
    source += "    assert m(x, x, x)[1].dim() == 4, 'TOLD'\n"
    [result] = grade(interpreter, source)
    told = " ".join(check.message for check in result.checks) + result.printed
    assert "PRINTED" not in told and "TOLD" not in told
