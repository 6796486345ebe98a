"""The learner's tests, each thing in a worker of its own: a course about birds tries its eggs."""

import random
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.read.course_file import parse_course
from grader.run.answers import WorkerAnswers
from grader.run.failures import AnswerError, Cancelled, Timeout
from grader.run.importing import Import
from grader.run.local_answers import LocalAnswers
from grader.run.remote import RemoteSubmission
from grader.run.trials import Trial, neutral, trial_of, vocabulary_of
from grader.run.under_check import StageUnderCheck
from grader.run.worker.wire import Frame
from grader.run.workers import Interpreter
from grader.types.errors import KitError
from grader.types.submission import Submission

COURSE = parse_course(
    {
        "schema": 1,
        "name": "birds",
        "title": "Birds",
        "limits": {"load_seconds": 2, "memory_mb": 256},
        "stages": [
            {"slug": "eggs", "title": "Eggs", "points": 1, "entry_points": {"hatch": "tests"}}
        ],
    },
    Path("/nowhere"),
)
STAGE = COURSE.stages[0]
RIGHT = """
class Egg:
    '''An egg.'''

    def __init__(self, size=1):
        self.size = size

    def legs(self):
        # all birds have two
        return 2
"""
WRONG = RIGHT.replace("return 2", "return 3")
SOURCES = {"right": RIGHT, "wrong": WRONG}
OF_AN_EGG = {"given": RIGHT, "name": "Egg", "seed": 1, "whole": False}
LEGLESS = {"target": {"function": "hatch"}, **OF_AN_EGG}
SLOW = "a busy machine (try again), slow code or an endless loop?"
LEGS = "def test_legs(hatch): assert hatch().legs() == 2\n"
ENDLESS = "import time\ndef test_legs(hatch):\n    while True: time.sleep(1)"
Trials = Mapping[str, Trial]
Progress = Callable[[int, int], object]


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    with Interpreter((), COURSE.limits, gpu=False) as interpreter:
        yield interpreter


def tried(
    interpreter: Interpreter, tests: str, sources: Mapping[str, str] = SOURCES
) -> dict[str, Trial]:
    submission = Submission("birds", {"eggs.py": tests.encode()})
    return tried_by(WorkerAnswers(interpreter, Import(COURSE, STAGE, submission)), sources)


def tried_by(
    answers: WorkerAnswers, sources: Mapping[str, str] = SOURCES, *progress: Progress
) -> dict[str, Trial]:
    stage = StageUnderCheck(STAGE, answers, *progress)
    stage.begin(seed=3)
    try:
        return RemoteSubmission(stage).tried("hatch", sources, "Egg")
    finally:
        stage.close()


def verdicts(trials: Trials) -> dict[str, str]:
    return {name: trial.verdict for name, trial in trials.items()}


def test_each_thing_has_its_verdict(interpreter: Interpreter) -> None:
    trials = tried(interpreter, LEGS + "def test_size(hatch): assert hatch(size=4).size == 4")
    assert verdicts(trials) == {"right": "passed", "wrong": "failed"}
    assert trials["wrong"].outcomes == (("test_legs", "failed"),)  # the last that runs
    marked = ["                                 ^^^^^^^^^^^^^^^^^^^"]
    assert trials["wrong"].said.split("\n") == [
        "test_legs",
        "  AssertionError",
        "  eggs.py, line 1, in test_legs",
        "    def test_legs(hatch): assert hatch().legs() == 2",
        *(marked if sys.version_info >= (3, 11) else []),
    ]
    assert (trials["right"].made, trials["right"].said) == (2, "")


@pytest.mark.parametrize(
    "tests, value",
    [pytest.param(ENDLESS, "ended", marks=pytest.mark.slow), ("legs = 2", "nothing")],
)
def test_tests_without_an_end_are_not_like_tests_that_nobody_runs(
    interpreter: Interpreter, tests: str, value: str
) -> None:
    stage = StageUnderCheck(STAGE, Counting(interpreter, tests))
    stage.begin(seed=3)
    trials = RemoteSubmission(stage).tried("hatch", {"right": RIGHT}, "Egg")
    assert verdicts(trials) == {"right": "nothing"}
    (exchange,) = stage.end()
    stage.close()
    assert exchange.reply.header["value"] == value


class Counting(WorkerAnswers):
    """Those of a worker, with a note of the seed of each trial."""

    def __init__(self, interpreter: Interpreter, tests: str) -> None:
        submission = Submission("birds", {"eggs.py": tests.encode()})
        super().__init__(interpreter, Import(COURSE, STAGE, submission))
        self.seeds: list[int] = []

    def tried(self, request: Frame) -> Frame:
        self.seeds.append(request.header["seed"])
        return super().tried(request)


def test_all_are_tried_whatever_the_first_says(interpreter: Interpreter) -> None:
    """One that is not written for some of them is written, and nothing is tried by itself later."""
    sources = {str(n): RIGHT.replace("return 2", f"return {n}") for n in range(4)}
    tests = "def test_legs(hatch):\n    if hatch().legs() < 3:\n        raise NotImplementedError\n"
    answers = Counting(interpreter, tests)
    stage = StageUnderCheck(STAGE, answers)
    submission = RemoteSubmission(stage)
    expected = {name: "passed" if name == "3" else "unwritten" for name in sources}
    stage.begin(seed=3)
    assert verdicts(submission.tried("hatch", sources, "Egg")) == expected
    for name, source in sources.items():
        stage.begin(seed=3)
        assert verdicts(submission.tried("hatch", {name: source}, "Egg")) == {name: expected[name]}
        assert not stage.case.not_written
    stage.close()
    assert len(answers.seeds) == 4


def test_a_stub_is_tried_no_more_than_once_on_each(interpreter: Interpreter) -> None:
    answers = Counting(interpreter, "def test_legs(hatch): raise NotImplementedError")
    stage = StageUnderCheck(STAGE, answers)
    for sources in (SOURCES, {"right": RIGHT}, {"wrong": WRONG}):
        stage.begin(seed=3)
        with pytest.raises(AnswerError, match="Not written yet"):
            RemoteSubmission(stage).tried("hatch", sources, "Egg")
        assert stage.case.not_written
    stage.close()
    assert len(answers.seeds) == 2


def test_what_broke_off_is_not_taken_up_by_a_later_call(interpreter: Interpreter) -> None:
    class Broken(Counting):
        def tried(self, request: Frame) -> Frame:
            super().tried(request)
            raise KitError("the isolated interpreter stopped: run the command again")

    answers = Broken(interpreter, LEGS)
    stage = StageUnderCheck(STAGE, answers)
    stage.begin(seed=3)
    with pytest.raises(KitError):
        RemoteSubmission(stage).tried("hatch", SOURCES, "Egg")
    trials = RemoteSubmission(stage).tried("hatch", {"wrong": WRONG}, "Egg")
    stage.close()
    assert verdicts(trials) == {"wrong": "nothing"}
    assert len(answers.seeds) <= interpreter.at_once


def test_no_seed_comes_twice(interpreter: Interpreter) -> None:
    seeds = []
    for _ in range(2):
        answers = Counting(interpreter, LEGS)
        tried_by(answers)
        seeds += answers.seeds
    assert len(set(seeds)) == 4


def test_several_are_tried_at_once_and_told_in_their_order(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "at_once", 2)
    both_are_there = threading.Barrier(2, timeout=20)

    def number(request: Frame) -> int:
        both_are_there.wait()
        return int(request.header["number"])

    answers = WorkerAnswers(interpreter, Import(COURSE, STAGE, Submission("birds", {})))
    requests = [Frame({"number": n}) for n in range(4)]
    assert list(answers.side_by_side(number, requests)) == [0, 1, 2, 3]


def test_each_trial_that_is_done_is_told(interpreter: Interpreter) -> None:
    told: list[tuple[int, int]] = []
    tried_by(Counting(interpreter, LEGS), SOURCES, lambda *trials: told.append(trials))
    assert told == [(1, 2), (2, 2)]


def test_ctrl_c_ends_what_is_being_tried(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop without an end would otherwise be waited for as long as the limit says."""
    monkeypatch.setattr(interpreter, "at_once", 2)
    course = replace(COURSE, limits=replace(COURSE.limits, load_seconds=10_000))
    loop = Submission("birds", {"eggs.py": ENDLESS.encode()})
    answers = WorkerAnswers(interpreter, Import(course, STAGE, loop))
    ended: list[type[BaseException]] = []

    def tried(request: Frame) -> None:
        if not request.header["target"]:
            while not interpreter.workers:
                time.sleep(0.01)
            raise KeyboardInterrupt
        try:
            answers.tried(request)
        except BaseException as error:
            ended.append(type(error))
            raise

    requests = [Frame({"op": "try", **LEGLESS, "target": {}}), Frame({"op": "try", **LEGLESS})]
    with pytest.raises(KeyboardInterrupt):
        list(answers.side_by_side(tried, requests))
    assert ended == [Cancelled]
    assert not interpreter.workers


def test_what_cannot_be_imported_is_told(interpreter: Interpreter) -> None:
    with pytest.raises(
        AnswerError, match=r"cannot be imported(.*\n)+  It is neither .* without it"
    ):
        tried(interpreter, "import no_such_bird")


@pytest.mark.skipif(sys.platform != "linux", reason="there is no lock elsewhere")
@pytest.mark.parametrize(
    "code",
    [
        "subprocess.run(['ls'])",
        "request.urlopen('http://a.org')",
        "open('a.txt')",
        "open('/a', 'w')",
    ],
)
def test_what_the_lock_refuses_is_told(interpreter: Interpreter, code: str) -> None:
    tests = f"import subprocess\nfrom urllib import request\ndef test_legs(hatch): {code}"
    said = tried(interpreter, tests)["right"].said.split("\n")
    assert (
        said[-1]
        == "  Graded code cannot use programs, the network or data files: write it without them."
    )
    assert f"    def test_legs(hatch): {code}" in said


def test_an_error_in_a_test_comes_in_plain_words_too(interpreter: Interpreter) -> None:
    said = tried(interpreter, "def test_legs(hatch): hatch().legs().dim()")["right"].said
    assert "\n  in words  this is a plain int, and neither a tensor nor a layer\n" in said


def test_a_thing_that_was_made_can_be_pickled(interpreter: Interpreter) -> None:
    again = "pickle.loads(pickle.dumps(hatch(size=4)))"
    tests = f"import pickle\ndef test_size(hatch): assert {again}.size == 4"
    assert verdicts(tried(interpreter, tests)) == {"right": "passed", "wrong": "passed"}


BAD = {
    "an exit": ("import os; os._exit(0)", "ended its Python process"),
    "a crash": ("import ctypes; ctypes.string_at(0)", "segmentation fault"),
    "a loop": ("while True: pass", "No end in"),
    "output": ("print('x' * 1000 * 1000 * 300)", ""),
    "memory": ("'x' * (1 << 30)", ""),
    "another process": ("import os; os.fork()", ""),
    "a huge message": ("raise ValueError('x' * 10_000_000)", ""),
    "a message that hangs": (
        (
            "Bad = type('Bad', (Exception,), {'__str__': lambda self: exec('while 1: pass')}); "
            "raise Bad"
        ),
        "No end in",
    ),
}


@pytest.mark.parametrize(
    "code, why",
    [
        pytest.param(*bad, id=name, marks=[pytest.mark.slow] if "hangs" in name else [])
        for name, bad in BAD.items()
    ],
)
def test_what_goes_wrong_costs_that_trial_alone(
    interpreter: Interpreter, code: str, why: str
) -> None:
    tests = f"def test_legs(hatch):\n    if hatch().legs() != 2:\n        {code}\n"
    trials = tried(interpreter, tests)
    assert trials["right"].verdict == "passed"
    assert (why in trials["wrong"].ended) if why else (trials["wrong"].ended == "")
    assert len(trials["wrong"].said) < 1000
    assert verdicts(tried(interpreter, LEGS)) == {"right": "passed", "wrong": "failed"}


@pytest.mark.slow
def test_a_stage_has_no_more_time_than_it_has(interpreter: Interpreter) -> None:
    sources = {str(n): RIGHT.replace("2", str(n)) for n in range(6)}
    trials = tried(interpreter, ENDLESS, sources)
    assert set(verdicts(trials).values()) == {"nothing"}
    ended = sorted(trial.ended for trial in trials.values())
    assert sum("halved each time" in why for why in ended) >= 4, ended


def test_an_endless_loop_is_told_with_the_time_that_it_had(interpreter: Interpreter) -> None:
    limits = replace(COURSE.limits, stage_seconds=4.2)
    submission = Submission("birds", {"eggs.py": ENDLESS.encode()})
    answers = WorkerAnswers(interpreter, Import(replace(COURSE, limits=limits), STAGE, submission))
    said = [""]
    while "used up" not in said[-1] and len(said) < 60:  # waiting for a CPU does not count
        with pytest.raises(Timeout) as caught:
            answers.tried(Frame({"op": "try", **LEGLESS}))
        said.append(str(caught.value))
    answers.close()
    assert said[1:4] == [
        f"No end in 2 seconds: {SLOW}",
        f"No end in 1 second, the limit of 2 halved each time: {SLOW}",
        f"No end in 0.5 seconds, the limit of 2 halved each time: {SLOW}",
    ]
    assert re.fullmatch(
        r"No end in 0\.\d+ seconds, all that was left of this stage's 4\.2: .*", said[-2]
    )
    assert said[-1] == f"This stage has used up its 4.2 seconds: {SLOW}"


def test_a_conftest_of_the_learners_is_no_conftest(interpreter: Interpreter) -> None:
    files = {
        "eggs.py": LEGS.encode(),
        "conftest.py": b"def pytest_runtest_call(item): assert 0",
        "pytest.ini": b"[pytest]\naddopts = --version",
    }
    answers = WorkerAnswers(interpreter, Import(COURSE, STAGE, Submission("birds", files)))
    assert verdicts(tried_by(answers)) == {"right": "passed", "wrong": "failed"}


def test_each_is_tried_once_a_stage() -> None:
    class Tests:
        tries = 0

        def test_legs(self, hatch: Any) -> None:
            Tests.tries += 1
            assert hatch().legs() == 2

    stage = StageUnderCheck(STAGE, LocalAnswers(lambda name: Tests))
    for _ in range(3):
        stage.begin(seed=1)
        trials = RemoteSubmission(stage).tried("hatch", SOURCES, "Egg")
        assert verdicts(trials) == {"right": "passed", "wrong": "failed"}
        values = [exchange.reply.header["value"] for exchange in stage.end()]
        assert values == ["passed", "failed"]
    assert Tests.tries == 2


def test_the_order_is_another_each_time() -> None:
    def order() -> str:
        seen: list[str] = []

        class Tests:
            def test_legs(self, hatch: Any) -> None:
                seen.append(str(hatch().legs()))

        stage = StageUnderCheck(STAGE, LocalAnswers(lambda name: Tests))
        stage.begin(seed=1)
        sources = {str(n): RIGHT.replace("2", str(n)) for n in range(6)}
        RemoteSubmission(stage).tried("hatch", sources, "Egg")
        return "".join(seen)

    assert len({order() for _ in range(5)}) > 1


LOOKS_UP = """
import sys


def told(value, depth=3):
    "What somebody else's variables say, and what is in them."
    yield value
    if depth and type(value).__module__.startswith("grader"):
        names = [*vars(type(value)), *getattr(value, "__dict__", ())]
        parts = [getattr(value, name, None) for name in names]
    else:
        parts = [*value, *value.values()] if type(value) is dict else ()
    for part in parts if depth else ():
        yield from told(part, depth - 1)


def test_legs(hatch):
    hatch()
    frame, seen = sys._getframe().f_back, []
    while frame:
        seen += [part for value in frame.f_locals.values() for part in told(value)]
        frame = frame.f_back
    texts = [text for text in seen if type(text) is str]
    assert "try" in texts  # the request is there
    assert not [text for text in texts if "class Egg" in text or text == "Egg"]
    servers = [value for value in seen if type(value).__name__ == "_Server"]
    assert servers and not any(s._scratch or s._stopped or s._started for s in servers)
"""


def test_nothing_above_a_test_tells_what_it_is_given(interpreter: Interpreter) -> None:
    tried(interpreter, LEGS)  # so that the server has something to remember
    for trial in tried(interpreter, LOOKS_UP).values():
        assert (trial.verdict, trial.said) == ("passed", "")


def test_what_was_seen_before_is_not_seen_again() -> None:
    words = vocabulary_of([RIGHT, "def of(a): a.wing.song = b.flight()"])
    assert {"wing", "song", "b", "flight"} < words and "a" not in words
    seen = set()
    for number in range(20):
        source = neutral(RIGHT, words, random.Random(number))
        assert "An egg" not in source and "all birds" not in source
        space: dict[str, Any] = {}
        exec(source, space)
        legs = space["Egg"].legs
        assert legs(None) == 2
        assert words <= set(legs.__code__.co_names)  # nobody is known by a word
        seen.add((legs.__code__.co_code, legs.__code__.co_names))
    assert len(seen) == 20


UNUSABLE = {
    "a misspelt fixture": (
        "def test_legs(hach): pass",
        [
            "there is no fixture hach: did you mean hatch?",
            "  eggs.py, line 1, in test_legs",
            "    def test_legs(hach): pass",
        ],
    ),
    "a fixture that is not there": (
        "import pytest\n@pytest.fixture\ndef nest(wood): pass\ndef test_legs(nest): pass",
        [
            "there is no fixture wood; there are hatch and pytest's own",
            "  eggs.py, line 2, in nest",
            "    @pytest.fixture",
        ],
    ),
    "a fixture that needs itself": (
        "import pytest\n@pytest.fixture\ndef nest(nest): pass\ndef test_legs(nest): pass",
        ["the fixture nest needs itself", "  eggs.py, line 2, in nest", "    @pytest.fixture"],
    ),
    "a test that waits": (
        "async def test_legs(hatch): assert hatch().legs() == 2",
        [
            "pytest runs no async test: make it a plain function, def without async",
            "  eggs.py, line 1, in test_legs",
            "    async def test_legs(hatch): assert hatch().legs() == 2",
        ],
    ),
}


@pytest.mark.parametrize("tests, said", UNUSABLE.values(), ids=UNUSABLE)
def test_what_pytest_does_not_take_is_told_with_its_line(
    interpreter: Interpreter, tests: str, said: list[str]
) -> None:
    trial = tried(interpreter, tests, {"right": RIGHT})["right"]
    assert trial.said.split("\n") == ["test_legs", f"  {said[0]}", *said[1:]]


NO_TESTS = {
    "a wrong parametrize": (
        (
            "import pytest\n@pytest.mark.parametrize('n, m', [(1, 2, 3)])\n"
            "def test_legs(hatch, n, m): pass"
        ),
        (
            'pytest cannot collect them: test_legs: in "parametrize" the number of names (2): '
            "['n', 'm'] must be equal to the number of values (3): (1, 2, 3)"
        ),
    ),
    "a class that cannot be made": (
        "class TestEgg:\n    def __init__(self): pass\n    def test_legs(self, hatch): pass",
        "pytest says: cannot collect test class 'TestEgg' because it has a __init__ constructor",
    ),
}


@pytest.mark.parametrize("tests, ended", NO_TESTS.values(), ids=NO_TESTS)
def test_why_there_is_no_test_is_told(interpreter: Interpreter, tests: str, ended: str) -> None:
    trial = tried(interpreter, tests, {"right": RIGHT})["right"]
    assert (trial.verdict, trial.ended) == ("nothing", ended)


def test_a_fixture_of_any_scope_may_take_the_given_one(interpreter: Interpreter) -> None:
    tests = "import pytest\n@pytest.fixture(scope='session')\ndef egg(hatch): return hatch()\n"
    trials = tried(interpreter, f"{tests}def test_legs(egg): assert egg.legs() == 2")
    assert verdicts(trials) == {"right": "passed", "wrong": "failed"}


def test_there_are_all_fixtures_of_pytests(interpreter: Interpreter) -> None:
    tests = """
import logging
def test_legs(hatch, caplog, capsys, monkeypatch, record_property, recwarn, request, tmp_path):
    with caplog.at_level(logging.INFO):
        logging.getLogger("egg").info("is warm")
    assert caplog.messages == ["is warm"]
    record_property("legs", 2)
    print("cheep")
    assert capsys.readouterr().out == "cheep\\n"
    (tmp_path / "egg").write_text("x")
    assert hatch().legs() == 2
"""
    trials = tried(interpreter, tests)
    assert verdicts(trials) == {"right": "passed", "wrong": "failed"}


NONSENSE: list[dict[str, Any]] = [
    {},
    {"outcomes": 3, "made": 1},
    {"outcomes": [["a", "passed"]] * 2000, "made": 1},
    {"outcomes": [["a", "won"]], "made": 1},
    {"outcomes": [["a", ["passed"]]], "made": 1},
    {"outcomes": [["a"]], "made": 1},
    {"outcomes": [["a", "passed"]], "made": "often"},
    {"error": {"type": "OSError", "message": "gone"}},
]


@pytest.mark.parametrize("header", NONSENSE)
def test_what_makes_no_sense_says_nothing(header: dict[str, Any]) -> None:
    assert trial_of(header).verdict == "nothing"


def test_what_a_stranger_says_is_cut_and_made_visible() -> None:
    header = {
        "outcomes": [["test_\x1b[31m" + "x" * 500, "failed"]],
        "made": 1,
        "ended": "",
        "first": {"test": "\x1b", "type": "E\x1b", "message": "word " * 100 + "\x1b", "frames": 3},
    }
    trial = trial_of(header)
    assert "\x1b" not in trial.said + trial.outcomes[0][0]
    assert len(trial.outcomes[0][0]) < 110
    assert trial.said.endswith(" ...")


def test_a_long_word_is_cut_and_a_name_is_one_line() -> None:
    first = {"test": "a\nb", "type": "Bad\n  eggs.py, line 1\r\x85", "message": "x" * 300}
    trial = trial_of({"outcomes": [["a\nb", "failed"]], "made": 1, "first": first})
    assert trial.said == f"a b\n  Bad eggs.py, line 1: {'x' * 196} ..."
    assert trial.outcomes == (("a b", "failed"),)
