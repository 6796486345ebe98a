"""One folder a situation: what a learner hands in, and the whole report on it.

situations/<name>/ holds files that replace some of the solutions (or the stubs), or one notebook,
and expected.txt: what the real engine reports on every stage that has not passed, without times.

REWRITE_GOLDENS=1 python -m pytest tests/kit/test_situations.py    writes every report anew.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from grader.engine import Engine, Request
from grader.read.submission import read_submission
from grader.run.session import Checks, with_checks
from grader.run.workers import Interpreter
from grader.types.report import Outcome, Report, StageResult, Status
from grader.types.submission import Submission
from tests.kit.checkout import COURSE, ROOT

SITUATIONS = Path(__file__).parent / "situations"
SEED = 4
LINUX = sys.platform == "linux"
SHORT = {"call_seconds": 1.5, "load_seconds": 1.5}  # where a loop is to be waited for

SCORES = ("scaled_scores", "concat_heads")
MASKING = ("masking", "concat_heads")
THREE = ("split_heads", "scaled_scores", "concat_heads")
MODULE = ("multi_head_attention", "concat_heads")


@dataclass(frozen=True)
class Situation:
    """What is handed in, which stages are graded (first the one that it is about), what is said.

    `says` must be in one of that stage's messages each, `prints` in what is shown of its prints.
    `keeps` are the checks of that stage that are passed all the same; None: every one of them.
    """

    name: str
    stages: tuple[str, ...] = SCORES
    says: tuple[str, ...] = ()
    prints: tuple[str, ...] = ()
    keeps: tuple[str, ...] | None = ()
    over: str = "solutions"
    alone: str | None = None
    without: tuple[str, ...] = ()
    short: bool = False
    within: float = 20.0
    linux: bool = False


PASSES: dict[str, Any] = {"keeps": None}
LOOP: dict[str, Any] = {"short": True, "within": 40.0}
# Nothing but a lock keeps these from harming the machine.
BOMB: dict[str, Any] = {"linux": True}

TABLE = (
    Situation(
        "endless_loop_in_a_function",
        MASKING,
        ("a busy machine (try again) or an endless loop?", "while rows < seq_len:"),
        keeps=("padding_values", "numbers"),
        **LOOP,
    ),
    Situation(
        "endless_loop_at_import",
        says=("a busy machine (try again) or an endless loop? (while it was imported)",),
        **LOOP,
    ),
    Situation("exit_at_import", says=("scaled_scores.py cannot be imported", "sys.exit()")),
    Situation("exit_in_a_function", says=("sys.exit()", "scaled_scores.py, line 5")),
    Situation("os_exit_in_a_function", says=("os._exit",)),
    Situation("os_exit_at_import", says=("os._exit", "while it was imported")),
    Situation("segfault", says=("a segmentation fault",)),
    Situation("syntax_error", says=("SyntaxError", "scaled_scores.py, line 5", "never closed")),
    Situation("indentation_error", says=("IndentationError", "scaled_scores.py, line 6")),
    Situation(
        "missing_file", says=("There is no file scaled_scores.py",), without=("scaled_scores.py",)
    ),
    Situation(
        "misspelt_file",
        says=("There is no file scaled_scores.py; did you name it SCALED_SCORE.py?",),
        without=("scaled_scores.py",),
    ),
    Situation("missing_function", says=("scaled_scores.py does not define scaled_scores",)),
    Situation(
        "misspelt_function",
        says=("define scaled_scores; it defines scaled_score: rename",),
    ),
    Situation("not_a_function", says=("scaled_scores.py is neither a function nor a class",)),
    Situation("wrong_arity", says=("takes 1 positional argument but 2 were given",)),
    Situation(
        "wrong_parameter_name",
        says=("unexpected keyword argument 'k'", "scaled_scores(k=["),
        keeps=("shape", "values"),
    ),
    Situation("returns_none", says=("returned None: is a `return` missing?", "a torch.Tensor")),
    Situation("returns_numpy_array", says=("returned a numpy array of shape", "a torch.Tensor")),
    Situation("returns_list", says=("returned a list of 2", "a torch.Tensor")),
    Situation("returns_float", says=("returned float ", "a torch.Tensor")),
    Situation("returns_tuple", says=("returned a tuple of 2", "a torch.Tensor")),
    Situation("returns_tensor_subclass", **PASSES),
    Situation("returns_parameter", says=("No gradient reaches q",), keeps=("shape", "values")),
    Situation("nan_values", says=("holds NaN at B=0, H=0, Tq=0, Tk=0",), keeps=("shape",)),
    Situation(
        "error_in_a_helper",
        says=("IndexError", "scaled_scores.py, line 5", "helpers.py, line 2", "helpers.py, line 6"),
    ),
    Situation("prints_10_mb", prints=("scores scores", "\n... and more"), **PASSES),
    Situation(
        "prints_markup_and_escapes",
        prints=("[bold red]red[/bold red]", r"\x1b[31m", r"\u202egnp.exe", r"\u200b"),
        **PASSES,
    ),
    Situation(
        "raises_markup_and_escapes",
        says=("[bold red]red[/bold red] [/]", r"\x1b[31mred\x1b[2J", r"\u202egnp.exe"),
    ),
    Situation("fork_bomb", says=("PermissionError", "scaled_scores.py, line 6"), **BOMB),
    Situation("thread_bomb", says=("can't start new thread", "scaled_scores.py, line 7"), **BOMB),
    Situation("memory_bomb", says=("can't allocate memory", "scaled_scores.py, line 5"), **BOMB),
    Situation("memory_bomb_in_python", says=("MemoryError", "scaled_scores.py, line 2"), **BOMB),
    Situation(
        "endless_recursion", says=("RecursionError", "scaled_scores.py, line 2", "over and over")
    ),
    Situation("big_file", says=("File too large", "scaled_scores.py, line 7"), **BOMB),
    Situation("deletes_files", **BOMB, **PASSES),
    Situation(
        "notebook",
        ("concat_heads", "split_heads", "scaled_scores"),
        says=("concat_heads is not defined", "SyntaxError", "cell 8"),
        prints=("working on it",),
        alone="attention.ipynb",
    ),
    Situation("notebook_with_a_cell_that_ends_it", THREE, alone="attention.ipynb", **PASSES),
    Situation(
        "notebook_with_a_cell_that_never_ends", THREE, alone="attention.ipynb", **LOOP, **PASSES
    ),
    Situation(
        "notebook_with_an_answer_that_never_ends", THREE, alone="attention.ipynb", **LOOP, **PASSES
    ),
    Situation("single_file", THREE, alone="everything.py", **PASSES),
    Situation("half_written", MASKING, ("Not written yet",), keeps=("causal",), over="stubs"),
    Situation("module_before_split_heads", MODULE, within=40),
    Situation("one_wrong_line_in_split_heads", ("split_heads", *MODULE), ("at B=",), within=40),
    Situation("two_earlier_stages_wrong", MODULE, within=60),
    Situation("crlf_and_bom", **PASSES),
    Situation("dataclass_in_a_submission", **PASSES),
    Situation("imports_in_any_order", **PASSES),
    Situation("prints_at_import", prints=("hello from the module",), **PASSES),
    Situation(
        "warnings",
        prints=(
            "scaled_scores.py, line 6: FutureWarning: an old way of doing things",
            "UserWarning: scores may be large",
            "scaled_scores.py, line 11: UserWarning: The use of `x.T`",
        ),
        **PASSES,
    ),
    Situation("patches_torch_softmax", ("scaled_scores", "softmax"), **PASSES),
    Situation("replaces_tensor_eq", says=("is wrong at B=0",), keeps=("shape",)),
    Situation("misspelt_forward", MODULE, ('missing the required "forward" function',)),
)
CAUSED_BY = {
    "module_before_split_heads": "split_heads",
    "one_wrong_line_in_split_heads": "split_heads",
    "two_earlier_stages_wrong": "split_heads",
}


@dataclass(frozen=True)
class Graded:
    report: Report
    seconds: float


@pytest.fixture(scope="module")
def graded(request: pytest.FixtureRequest, interpreter: Interpreter) -> Mapping[str, Graded]:
    """The report on each situation that is asked for, all from one set of collected checks."""
    asked = [getattr(item, "callspec", None) for item in request.session.items]
    names = {spec.params["situation"].name for spec in asked if spec and "situation" in spec.params}

    def body(checks: Checks) -> dict[str, Graded]:
        _must_be_locked(interpreter)
        return {
            situation.name: _graded(situation, interpreter, checks)
            for situation in TABLE
            if situation.name in names and (LINUX or not situation.linux)
        }

    return with_checks(COURSE, [s for s in COURSE.stages if not s.bonus], body)


def _must_be_locked(interpreter: Interpreter) -> None:
    """Do not let a bomb loose where the lock does not hold."""
    if LINUX and interpreter.missing_layers:
        pytest.skip(f"missing on this machine: {', '.join(interpreter.missing_layers)}")


def _graded(situation: Situation, interpreter: Interpreter, checks: Checks) -> Graded:
    limits = replace(COURSE.limits, **SHORT) if situation.short else COURSE.limits
    course = replace(COURSE, limits=limits)
    stages = tuple(course.stage(slug) for slug in situation.stages)
    request = Request(_submission(situation), stages, SEED)
    start = time.monotonic()
    report = Engine(course, "cpu", interpreter, checks).grade(request)
    return Graded(report, time.monotonic() - start)


def _submission(situation: Situation) -> Submission:
    folder = SITUATIONS / situation.name
    if situation.alone is not None:
        return replace(read_submission(folder / situation.alone), name=situation.name)
    base = read_submission(COURSE.exercises if situation.over == "stubs" else ROOT / "solutions")
    files = {**base.files, **read_submission(folder).files}
    kept = {name: data for name, data in files.items() if name not in situation.without}
    return Submission(situation.name, kept)


def _about(situation: Situation, report: Report) -> StageResult:
    return next(stage for stage in report.stages if stage.slug == situation.stages[0])


def _name(situation: Situation) -> str:
    return situation.name


each = pytest.mark.parametrize("situation", TABLE, ids=_name)


def _skip_elsewhere(situation: Situation) -> None:
    if situation.linux and not LINUX:
        pytest.skip("only Linux locks the worker")


@each
def test_it_costs_its_own_checks_and_the_message_helps(
    graded: Mapping[str, Graded], situation: Situation
) -> None:
    _skip_elsewhere(situation)
    report = graded[situation.name].report
    about = _about(situation, report)
    outcomes = [check.outcome for stage in report.stages for check in stage.checks]
    assert Outcome.ERROR not in outcomes
    assert len(outcomes) == sum(len(stage.checks) for stage in report.stages)
    lost = [check for check in about.checks if check.outcome in (Outcome.FAILED, Outcome.TIMEOUT)]
    messages = "\n\n".join(check.message for check in lost)
    for text in situation.says:
        assert text in messages
    for text in situation.prints:
        assert text in about.printed
    if situation.keeps is None:
        assert about.status is Status.PASSED, messages
    else:
        assert about.status is Status.FAILED
        kept = [check.id for check in about.checks if check.outcome is Outcome.PASSED]
        for name in situation.keeps:
            assert any(name in check for check in kept), (name, kept)
    assert about.caused_by == CAUSED_BY.get(situation.name) or len(situation.stages) == 3


@each
def test_later_stages_are_still_judged(graded: Mapping[str, Graded], situation: Situation) -> None:
    _skip_elsewhere(situation)
    report = graded[situation.name].report
    wanted = Status.NOT_STARTED if situation.over == "stubs" else Status.PASSED
    others = [stage for stage in report.stages if stage.slug != situation.stages[0]]
    assert others
    for stage in others:
        if stage.caused_by is None:
            assert stage.status is wanted, stage.checks
            assert stage.printed == "" or situation.alone


@each
def test_nothing_of_ours_is_told(graded: Mapping[str, Graded], situation: Situation) -> None:
    _skip_elsewhere(situation)
    for stage in graded[situation.name].report.stages:
        for text in [stage.printed, *(check.message for check in stage.checks)]:
            assert not re.search(
                r"site-packages|grader|tests/|<string>|test_\w+\.py|/solutions", text
            )
            assert re.search(r"[\x00-\x08\x0b-\x1f\x7f\u200b\u202e]", text) is None
            assert len(text) < 5000


@each
def test_it_takes_no_longer_than_this(graded: Mapping[str, Graded], situation: Situation) -> None:
    _skip_elsewhere(situation)
    assert graded[situation.name].seconds < situation.within


@each
def test_the_whole_report(graded: Mapping[str, Graded], situation: Situation) -> None:
    _skip_elsewhere(situation)
    file = SITUATIONS / situation.name / "expected.txt"
    report = graded[situation.name].report
    text = "\n".join(line for stage in report.stages for line in _lines(stage)) + "\n"
    if os.environ.get("REWRITE_GOLDENS"):
        file.write_text(text, encoding="utf-8", newline="\n")
    assert file.read_text(encoding="utf-8") == text


def test_every_folder_is_in_the_table_once() -> None:
    folders = sorted(path.name for path in SITUATIONS.iterdir() if path.is_dir())
    assert folders == sorted(situation.name for situation in TABLE)


# Of the numbers in a message only whole ones are the same on every processor, and of the words of
# Python and torch only those that no version changes.
_VARYING: Sequence[tuple[str, str]] = (
    (r"-?\d+\.\d+(e[+-]?\d+)?|\d+e[+-]\d+", "#"),
    (r"by up to [^)]+", "by up to #"),
    (r"\n +\^+(?=\n|$)", ""),  # what Python knows of the place in a line grows with each version
    (r"(?<=\S) +", " "),
    (r"\[ ", "["),
    (r"The use of `x\.T`.*", "The use of `x.T` ..."),
    (r"\[enforce fail at [^]]*\] err == 0\. ", ""),
    (r"maximum recursion depth exceeded.*", "maximum recursion depth exceeded"),
)


def _lines(stage: StageResult) -> Iterator[str]:
    """What is reported on a stage, check by check unless all of it has passed."""
    cause = f", caused by {stage.caused_by}" if stage.caused_by else ""
    yield f"{stage.slug}: {stage.status.value}, {stage.score:g} of {stage.max_score:g}{cause}"
    before: list[str] = []
    for check in stage.checks if stage.status is not Status.PASSED else ():
        name = f", {check.diagnosis.id}" if check.diagnosis else ""
        yield f"  {check.id}: {check.outcome.value}, {check.score:g} of {check.max_score:g}{name}"
        message = _lasting(check.message).splitlines()
        yield from _indented(_only_new(message, before))
        before = message
    if stage.printed:
        yield "  printed:"
        yield from _indented(_lasting(stage.printed[:400]).splitlines())


def _only_new(message: list[str], before: list[str]) -> list[str]:
    """A message with "as above" for the first and the last lines that stood in the one before."""
    start = _shared(message, before)
    rest = message[start:]
    end = _shared(rest[::-1], before[start:][::-1])
    above = ["as above"]
    return above[:start] + rest[: len(rest) - end] + above[:end]


def _shared(lines: list[str], others: list[str]) -> int:
    pairs = zip(lines, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}".rstrip() for line in lines)


def _lasting(text: str) -> str:
    for pattern, instead in _VARYING:
        text = re.sub(pattern, instead, text)
    return text
