"""One folder a situation: what a learner hands in, and the whole report on it.

situations/<name>/ holds files that replace some of the solutions (or the stubs), or one notebook,
and expected.txt: what the real engine reports on every stage that has not passed, without times.

REWRITE_GOLDENS=1 python -m pytest tests/kit/test_situations.py    rewrites every report.
"""

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, takewhile
from pathlib import Path
from textwrap import wrap
from typing import Any

import pytest

from grader.engine import Engine, Request
from grader.read.submission import read_submission
from grader.run.collecting import with_checks
from grader.run.session import Checks
from grader.run.workers import Interpreter
from grader.types.report import CheckResult, Report, StageResult, Status
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE, ROOT

FOLDER = Path(__file__).parent / "situations"
SEED = 4
LINUX = sys.platform == "linux"
SHORT = {"call_seconds": 1.5, "load_seconds": 1.5}  # where a loop is to be waited for

MASKING = ("masking", "concat_heads")
THREE = ("split_heads", "scaled_scores", "concat_heads")
MODULE = ("multi_head_attention", "concat_heads")


@dataclass(frozen=True)
class Situation:
    """What is handed in, and which stages are graded.

    The files replace some `over` solutions or stubs, but for those that it is `without`; or a
    notebook or file is handed in `alone`.
    """

    name: str
    stages: tuple[str, ...] = ("scaled_scores", "concat_heads")
    over: str = "solutions"
    alone: str | None = None
    without: tuple[str, ...] = ()
    short: bool = False
    within: float = 20.0
    linux: bool = False
    slow: bool = False  # another one that is much like it is graded in the quick tests


LOOP: dict[str, Any] = {"short": True, "within": 40.0}
NOTEBOOK: dict[str, Any] = {"stages": THREE, "alone": "attention.ipynb"}
# Nothing but a lock keeps these from harming the machine.
BOMB: dict[str, Any] = {"linux": True}
SPECIAL: Mapping[str, Mapping[str, Any]] = {
    "endless_loop_in_a_function": {"stages": MASKING, **LOOP},
    "endless_loop_at_import": {**LOOP, "slow": True},
    "missing_file": {"without": ("scaled_scores.py",)},
    "misspelt_file": {"without": ("scaled_scores.py",)},
    "fork_bomb": BOMB,
    "thread_bomb": BOMB,
    "memory_bomb": BOMB,
    "memory_bomb_in_python": {**BOMB, "slow": True},
    "big_file": BOMB,
    "deletes_files": BOMB,
    "notebook": {**NOTEBOOK, "stages": ("concat_heads", "split_heads", "scaled_scores")},
    "notebook_with_a_cell_that_ends_it": NOTEBOOK,
    "notebook_with_a_cell_that_never_ends": {**NOTEBOOK, **LOOP, "slow": True},
    "notebook_with_an_answer_that_never_ends": {**NOTEBOOK, **LOOP, "slow": True},
    "single_file": {"stages": THREE, "alone": "everything.py"},
    "half_written": {"stages": MASKING, "over": "stubs"},
    "module_before_split_heads": {"stages": MODULE, "within": 40, "slow": True},
    "one_wrong_line_in_split_heads": {"stages": ("split_heads", *MODULE), "within": 40},
    "two_earlier_stages_wrong": {"stages": MODULE, "within": 60, "slow": True},
    "patches_torch_softmax": {"stages": ("scaled_scores", "softmax")},
    "misspelt_forward": {"stages": MODULE},
}
TABLE = [
    Situation(path.name, **SPECIAL.get(path.name, {}))
    for path in sorted(FOLDER.iterdir())
    if path.is_dir()
]


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
    folder = FOLDER / situation.name
    if situation.alone is not None:
        return replace(read_submission(folder / situation.alone), name=situation.name)
    base = read_submission(COURSE.exercises if situation.over == "stubs" else ROOT / "solutions")
    files = {**base.files, **read_submission(folder).files}
    kept = {name: data for name, data in files.items() if name not in situation.without}
    return Submission(situation.name, kept)


@pytest.fixture(
    params=[pytest.param(s, marks=[pytest.mark.slow] if s.slow else []) for s in TABLE],
    ids=lambda situation: situation.name,
)
def situation(request: pytest.FixtureRequest) -> Situation:
    found: Situation = request.param
    if found.linux and not LINUX:
        pytest.skip("only Linux locks the worker")
    return found


def test_the_whole_report(graded: Mapping[str, Graded], situation: Situation) -> None:
    file = FOLDER / situation.name / "expected.txt"
    report = graded[situation.name].report
    text = "\n".join(line for stage in report.stages for line in _lines(stage)) + "\n"
    if os.environ.get("REWRITE_GOLDENS"):
        file.write_text(text, encoding="utf-8", newline="\n")
    assert file.read_text(encoding="utf-8") == text


def test_nothing_of_ours_is_told(graded: Mapping[str, Graded], situation: Situation) -> None:
    for stage in graded[situation.name].report.stages:
        for text in [stage.printed, *(check.message for check in stage.checks)]:
            assert not re.search(
                r"site-packages|grader|tests/|<string>|test_\w+\.py|/solutions", text
            )
            assert re.search(r"[\x00-\x08\x0b-\x1f\x7f\u200b\u202e]", text) is None
            assert len(text) < 5000


def test_it_takes_no_longer_than_this(graded: Mapping[str, Graded], situation: Situation) -> None:
    assert graded[situation.name].seconds < situation.within


def test_what_is_special_has_a_folder() -> None:
    assert SPECIAL.keys() <= {situation.name for situation in TABLE}


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
    """What is reported on a stage, unless all of it has passed.

    Checks in a row stand together if the same is said of them but for the sizes in the call. If an
    earlier stage is the cause, a learner sees what is said only with --all: the first will do.
    """
    cause = f", caused by {stage.caused_by}" if stage.caused_by else ""
    yield f"{stage.slug}: {stage.status.value}, {stage.score:g} of {stage.max_score:g}{cause}"
    before: list[str] = []
    checks = stage.checks if stage.status is not Status.PASSED else ()
    for (kind, _), group in groupby(checks, partial(_said, is_seen=not cause)):
        alike = list(group)
        points = (f"{c.id.partition('.')[2]} {c.score:g}/{c.max_score:g}" for c in alike)
        text = f"{kind}: {', '.join(points)}"
        yield from wrap(text, 96, initial_indent="  ", subsequent_indent=" " * 6)
        if not (cause and before):
            message = _lasting(alike[0].message).splitlines()
            yield from _indented(_only_new(message, before))
            before = message or before
    if stage.printed:
        yield "  printed:"
        text = stage.printed
        shown = text if len(text) <= 400 else f"{text[:400]} [...] {text[-12:]}"
        yield from _indented(_lasting(shown).splitlines())


def _said(check: CheckResult, *, is_seen: bool) -> tuple[str, str]:
    name = f", {check.diagnosis.id}" if check.diagnosis else ""
    any_call = re.sub(r"(?m)^( +(?:call +\w+|here )).*", r"\1", _lasting(check.message))
    return check.outcome.value + name, any_call if is_seen else ""


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
