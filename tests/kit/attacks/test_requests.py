"""What reaches a learner's process must not tell which check asks, nor what it expects."""

import ast
import inspect
import io
import sys
import tokenize
from collections.abc import Iterator
from typing import Any

import pytest

from grader.judge.verdict import judge_stage
from grader.run.answers import WorkerAnswers
from grader.run.collecting import with_checks
from grader.run.facts import StageFacts
from grader.run.importing import Import
from grader.run.local_answers import LocalAnswers
from grader.run.session import Checks
from grader.run.solutions import local_solutions
from grader.run.under_check import StageUnderCheck
from grader.run.workers import Interpreter
from grader.types.course import Stage
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE

# Every part of a request; `measured` is taken off before it is sent.
PARTS = (
    *("op", "target", "args", "kwargs", "seed", "parameters", "differentiate", "arrays"),
    *("before", "call", "gradients", "measured", "given", "name"),
)
TARGETS = {"function", "object", "method", "given", "name", "probe"}
METHODS = {"named_parameters", "named_buffers", "state_dict", "load_state_dict", "train", "eval"}
NEUTRAL = {"attention", "Called", "MultiHeadAttention", "room", "forward", "__init__"}


def facts_of(stage: Stage) -> StageFacts:
    """What the stage's checks ask the course's own solution."""

    def body(checks: Checks) -> StageFacts:
        answers = LocalAnswers(local_solutions(COURSE, stage))
        return checks.run(stage, StageUnderCheck(stage, answers), 11, "cpu")

    return with_checks(COURSE, [stage], body)


def texts(value: Any) -> Iterator[str]:
    """Every string in a request's part, names of keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from texts([key, part])
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from texts(part)


def names_in(source: str) -> set[str]:
    """The functions and classes of a source, which has no comment and no docstring."""
    tree = ast.parse(source)
    words = tokenize.generate_tokens(io.StringIO(source).readline)
    assert not [word.string for word in words if word.type == tokenize.COMMENT]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found = [node for node in ast.walk(tree) if isinstance(node, documented)]
    assert not [node for node in found if ast.get_docstring(node)]
    return {node.name for node in found if not isinstance(node, ast.Module)}


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(
            stage, id=stage.slug, marks=[pytest.mark.slow] if stage.requires or stage.bonus else []
        )
        for stage in COURSE.stages
        if not stage.fixture  # what tests are given is looked through in test_telling_apart.py
    ],
)
def test_no_request_tells_which_check_asks(stage: Stage) -> None:
    facts = facts_of(stage)
    assert judge_stage(stage, facts).score == stage.points
    entries = {entry.name for entry in stage.entry_points}
    find = local_solutions(COURSE, stage)
    parameters = {
        name
        for entry in entries
        for function in (find(entry), getattr(find(entry), "forward", None))
        if function is not None
        for name in inspect.signature(function).parameters
    }
    checks = {fact.case.check.partition(".")[2] for fact in facts.cases} - parameters
    for fact in facts.cases:
        for exchange in fact.exchanges:
            header = exchange.request.header
            assert set(header) <= set(PARTS)
            target = header.get("target", {})
            assert set(target) <= TARGETS
            assert target.get("function", next(iter(entries))) in entries
            assert target.get("method", "to") in METHODS | {"to"}
            if "given" in target:
                assert names_in(target["given"]) <= NEUTRAL
            said = [*texts(header.get("kwargs")), *texts(header.get("args"))]
            assert not checks & set(said)


GUESSES = {
    "its name": """
    import re
    found = re.findall(r"[0-9]+", attention.__name__ + str(attention.__doc__))
    return int(found[0]) << 20 if found else 0
""",
    "the largest number in it": """
    numbers = [n for n in attention.__code__.co_consts if type(n) is int]
    return max(numbers, default=0)
""",
    "the order of the calls": """
    known = [3, 0, 3, 4, 8, 3, 2, 1, 9, 5, 6, 2, 6, 3, 6, 0, 3]
    seen.append(1)
    return known[len(seen) % len(known)] << 20
""",
    "what it was the last time": "    return 3 << 20\n",
}
GUESS = "seen = []\ndef peak_bytes(attention, seq_len, d_model=64, num_heads=4, device='cpu'):\n"
FIT = """
def growth_exponent(seq_lens, sizes):
    import statistics, math
    return statistics.linear_regression(
        [math.log(n) for n in seq_lens], [math.log(n) for n in sizes]
    ).slope
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks the worker")
@pytest.mark.parametrize("guess", [pytest.param(g, id=name) for name, g in GUESSES.items()])
def test_what_takes_memory_is_not_told_by_its_looks(interpreter: Interpreter, guess: str) -> None:
    stage = COURSE.stage("memory_benchmark")
    source = GUESS + guess + FIT

    def body(checks: Checks) -> StageFacts:
        submission = Submission("guess", {stage.file_name: source.encode()})
        answers = WorkerAnswers(interpreter, Import(COURSE, stage, submission))
        return checks.run(stage, StageUnderCheck(stage, answers), 4, "cpu")

    facts = with_checks(COURSE, [stage], body)
    paid = {check.id for check in judge_stage(stage, facts).checks if check.score}
    assert paid <= {"memory_benchmark.exponent", "memory_benchmark.fit", "memory_benchmark.kind"}
