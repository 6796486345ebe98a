"""Calls that a stage forbids: seen when they are made, and only then; they cost what they should.

The stages are those of the real course, or of the tiny one, with rules of their own. Ways to hide a
call from the grader are in attacks/.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from grader.authoring.verify.verify import verify
from grader.engine import Engine, Request, with_engine
from grader.run.collecting import with_checks
from grader.run.session import Checks
from grader.run.solutions import solution_files
from grader.run.worker.wire import Channel, Deadline, Frame
from grader.run.workers import Interpreter
from grader.types.course import Course
from grader.types.report import Outcome, Report, StageResult, Status
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE, TINY
from tests.kit.support.tiny import copy_tiny

SEED = 5

MHA = "torch.nn.MultiheadAttention"
FUNCTION = "torch.nn.functional.multi_head_attention_forward"
SDPA = "torch.nn.functional.scaled_dot_product_attention"
RULES = (
    *(MHA, FUNCTION, SDPA, "torch.nn.Tanh", "torch.einsum", "torch.bmm", "math.fsum"),
    *("functools.reduce", "numpy.convolve", "torch.ops.aten._softmax", "torch.no_such.function"),
    "torch.no_such_function",
)


def ruled(course: Course, slug: str, names: tuple[str, ...], cost: float = 1.0) -> Course:
    """The course with rules for one of its stages."""
    stages = [
        replace(stage, forbidden=names, forbidden_cost=cost) if stage.slug == slug else stage
        for stage in course.stages
    ]
    return replace(course, stages=tuple(stages))


def engine_of(course: Course, engine: Engine) -> Engine:
    """The same warm engine, for the course with other rules."""
    return Engine(course, "cpu", engine.interpreter, engine.checks)


# --- what is seen ------------------------------------------------------------------------------

JOINS = """{before}
import torch
from torch import nn
import torch.nn.functional as F

x = torch.ones(2, 3, 4)

def concat_heads(x):
    B, H, T, d_k = x.shape
    heads, x = x, x.float()
    {use}
    return heads.transpose(1, 2).reshape(B, T, H * d_k)
"""


@dataclass(frozen=True)
class Use:
    """What concat_heads does by the way, and what of it is to be seen: the name and the line."""

    use: str
    seen: str | None
    line: str | None = "concat_heads.py, line 11, in concat_heads"
    before: str = ""


TABLE = {
    "a class": Use("nn.MultiheadAttention(4, 2)", MHA),
    "by another name": Use("A(4, 2)", MHA, before="from torch.nn import MultiheadAttention as A"),
    "by another path": Use("nn.modules.activation.MultiheadAttention(4, 2)", MHA),
    "inside another class": Use("nn.TransformerEncoderLayer(4, 2)", MHA),
    "a method": Use(
        "mha(*[torch.ones(2, 3, 4)] * 3)",
        MHA,
        before="from torch.nn import MultiheadAttention\nmha = MultiheadAttention(4, 2)",
        line="concat_heads.py, line 12, in concat_heads",
    ),
    "derived": Use(
        "Mine(4, 2)",
        MHA,
        before="from torch import nn\nclass Mine(nn.MultiheadAttention): pass",
        line="concat_heads.py, line 12, in concat_heads",
    ),
    "a class without a constructor": Use("nn.Tanh()", "torch.nn.Tanh"),
    "a function": Use("F.multi_head_attention_forward(*[None] * 13)", FUNCTION),
    "a function of torch in C": Use("F.scaled_dot_product_attention(x, x, x)", SDPA),
    "what it is underneath": Use("torch._C._nn.scaled_dot_product_attention(x, x, x)", SDPA),
    "its operation": Use("torch.ops.aten.scaled_dot_product_attention(x, x, x)", SDPA),
    "its operation's overload": Use(
        "torch.ops.aten.scaled_dot_product_attention.default(x, x, x)", SDPA
    ),
    "without gradients": Use(
        "with torch.inference_mode(): F.scaled_dot_product_attention(*[torch.ones(2, 3, 4)] * 3)",
        SDPA,
    ),
    "not made of others": Use("torch.bmm(x[0], x[0].mT)", "torch.bmm"),
    "a part of what is allowed": Use("x @ x.mT", None),
    "an operation of that name": Use("x.softmax(-1)", "torch.ops.aten._softmax"),
    "a function of Python in C": Use("import math; math.fsum([B])", "math.fsum"),
    "taken before": Use("fsum([B])", "math.fsum", before="from math import fsum"),
    "its part in C": Use("import _functools; _functools.reduce(min, [B])", "functools.reduce"),
    "a function of numpy": Use("numpy.polymul([1], [1])", "numpy.convolve", before="import numpy"),
    "loaded again": Use(
        "importlib.reload(numeric).convolve([1], [1])",
        "numpy.convolve",
        before="import importlib; import numpy._core.numeric as numeric",
    ),
    "within another": Use("torch.einsum('ij->j', x[0, 0])", "torch.einsum"),
    # The checks do not reach these.
    "in a branch": Use("B > 99 and nn.MultiheadAttention(4, 2)", MHA),
    # These are no calls, or nobody's business.
    "a comment": Use("pass  # nn.MultiheadAttention(4, 2)", None),
    "a string": Use("'nn.MultiheadAttention(4, 2)'", None),
    "a question": Use("isinstance(x, nn.MultiheadAttention)", None),
    "a look": Use("nn.MultiheadAttention, F.multi_head_attention_forward", None),
    "an annotation": Use("mha: nn.MultiheadAttention = None", None),
    "a comparison on import": Use(
        "pass", None, before="import torch\nmha = torch.nn.MultiheadAttention(4, 2)"
    ),
    "a function of its own": Use(
        "scaled_dot_product_attention(x)", None, before="def scaled_dot_product_attention(x): pass"
    ),
}


@pytest.fixture(scope="module")
def results(interpreter: Interpreter) -> Mapping[str, StageResult]:
    """The verdicts on concat_heads, by the table's keys."""
    course = ruled(COURSE, "concat_heads", RULES)
    stage = course.stage("concat_heads")

    def body(checks: Checks) -> dict[str, StageResult]:
        engine, found = Engine(course, "cpu", interpreter, checks), {}
        for name, use in TABLE.items():
            source = JOINS.format(use=use.use, before=use.before)
            submission = Submission(name, {stage.file_name: source.encode()})
            report = engine.grade(Request(submission, (stage,), SEED))
            found[name] = report.stages[0]
        return found

    return with_checks(course, [stage], body)


@pytest.mark.parametrize("name", TABLE)
def test_a_call_is_seen_and_still_works(results: Mapping[str, StageResult], name: str) -> None:
    use, result = TABLE[name], results[name]
    first, *others = result.checks
    if use.seen is None:
        assert (result.status, result.score) == (Status.PASSED, result.max_score)
        return
    assert (first.id, first.title) == ("concat_heads.forbidden-call", f"Written without {use.seen}")
    assert f"Your code calls {use.seen}: " in first.message
    assert use.line and use.line in first.message
    assert (result.status, result.score) == (Status.FAILED, 0)
    if "None" not in use.use:
        assert {check.outcome for check in others} == {Outcome.PASSED}


# --- whose call it is, and what it costs ---------------------------------------------------------

RIGHT = solution_files(TINY)
AVERAGE = b"""
import numpy as np

def moving_average(values, width):
    if not 1 <= width <= len(values):
        raise ValueError("does not fit")
    return np.convolve(values, np.ones(width) / width, "valid")
"""
CONVOLVES = {**RIGHT, "moving_average.py": AVERAGE}
SMOOTH = b"""
import numpy as np

def smooth(values, width, times=1):
    for _ in range(times):
        values = np.convolve(values, np.ones(width) / width, "valid")
    return values
"""
CONVOLVE = ("numpy.convolve",)

Grade = Callable[..., Report]


def grading(body: Callable[[Grade], None]) -> None:
    """Give `body` a function that grades files or cells of the tiny course, by given rules."""

    def work(engine: Engine) -> None:
        def grade(
            files: Mapping[str, bytes], *slugs: str, cost: float = 1.0, cells: tuple[str, ...] = ()
        ) -> Report:
            course = TINY
            for slug in slugs:
                course = ruled(course, slug, CONVOLVE, cost)
            submission = Submission("mine", files, cells=cells or None)
            return engine_of(course, engine).grade(Request(submission, course.stages, SEED))

        body(grade)

    with_engine(TINY, TINY.stages, "cpu", work)


def standing(report: Report) -> dict[str, float]:
    return {stage.slug: stage.score for stage in report.stages}


def test_a_call_costs_its_own_stage() -> None:
    def body(grade: Grade) -> None:
        full = {"moving_average": 6, "smooth": 4, "roughness": 2}
        assert standing(grade(CONVOLVES)) == full
        half = grade(CONVOLVES, "moving_average", cost=0.5)
        assert standing(half) == {**full, "moving_average": 3}
        assert half.stages[0].status is Status.FAILED
        assert standing(grade(CONVOLVES, "moving_average")) == {**full, "moving_average": 0}
        # What the earlier stage does is judged by its own rules alone.
        assert standing(grade(CONVOLVES, "smooth")) == full
        assert standing(grade(CONVOLVES, "moving_average", "smooth")) == {
            **full,
            "moving_average": 0,
        }
        # Nor is a file that nothing imports.
        assert standing(grade({**CONVOLVES, "first_try.py": SMOOTH}, "smooth")) == full
        own = {**CONVOLVES, "smooth.py": SMOOTH}
        assert standing(grade(own, "smooth")) == {**full, "smooth": 0}
        assert standing(grade(own, "moving_average", "smooth")) == {
            **full,
            "moving_average": 0,
            "smooth": 0,
        }

    grading(body)


def test_an_earlier_stage_is_no_place_to_hide() -> None:
    again = b"    for _ in range(times - 1): values = moving_average(values, width)\n    return"
    hidden = AVERAGE.replace(b"(values, width)", b"(values, width, times=1)", 1)
    hidden = hidden.replace(b"    return", again)
    calls_it = b"""
from moving_average import moving_average

def smooth(values, width, times=1):
    return moving_average(values, width, times) if times else values
"""

    def body(grade: Grade) -> None:
        files = {**RIGHT, "moving_average.py": hidden, "smooth.py": calls_it}
        assert standing(grade(files))["smooth"] == 4
        assert standing(grade(files, "smooth"))["smooth"] == 0

    grading(body)


def test_the_same_answers_by_a_forbidden_call_are_another_thing() -> None:
    """What is known of the replies of one submission never speaks for another one's calls."""
    honest = AVERAGE.replace(b"np.convolve(", b"mine(") + b"\nmine = lambda *a: np.array("
    honest += b"np.correlate(*a))\n"
    files = {**RIGHT, "moving_average.py": honest}
    hidden = AVERAGE.replace(b"np.convolve", b"getattr(np, 'con' + 'volve')")

    def body(grade: Grade) -> None:
        for _ in range(2):
            assert grade(files, "moving_average").score == 10
            assert grade({**RIGHT, "moving_average.py": hidden}, "moving_average").score == 4
        assert grade({**RIGHT, "moving_average.py": hidden}).score == 10

    grading(body)


@pytest.mark.parametrize("follow_through", [False, True])
def test_what_follows_an_earlier_fault_is_not_forgiven_a_call(follow_through: bool) -> None:
    """Neither one that the checks reach nor one that merely stands there."""
    course = replace(ruled(TINY, "smooth", CONVOLVE), follow_through=follow_through)
    wrong = b"def moving_average(values, width):\n    return values + 1\n"
    own = RIGHT["smooth.py"].decode().replace("    ### BEGIN SOLUTION\n", "    {}\n")
    answers = {
        "pass": (4 if follow_through else 0, "moving_average"),
        "np.convolve(values, values)": (0, None),
        "width > 1e9 and np.convolve(values, values)": (0, None),
    }

    def work(engine: Engine) -> None:
        for line, told in answers.items():
            files = {**RIGHT, "moving_average.py": wrong, "smooth.py": own.format(line).encode()}
            request = Request(Submission("mine", files), course.stages, SEED)
            stage = engine_of(course, engine).grade(request).stages[1]
            assert (stage.score, stage.caused_by) == told

    with_engine(course, course.stages, "cpu", work)


def test_in_a_notebook_only_what_the_stage_runs_counts() -> None:
    cells = ("import numpy as np", *(RIGHT[f"{s.slug}.py"].decode() for s in TINY.stages))
    cells = tuple(cell.replace("from moving_average import", "# ") for cell in cells)
    compare = "theirs = np.convolve(np.ones(5), np.ones(2))\nmine = moving_average(np.ones(5), 2)"
    calls = SMOOTH.decode()

    def body(grade: Grade) -> None:
        slugs = ("moving_average", "smooth", "roughness")
        full = {"moving_average": 6, "smooth": 4, "roughness": 2}
        assert standing(grade({}, *slugs, cells=(*cells, compare))) == full
        report = grade({}, *slugs, cells=(*cells, calls))
        assert standing(report) == {**full, "smooth": 0}
        assert "\n  code cell 5, line 6, in smooth\n" in report.stages[1].checks[0].message
        # The worker, which goes on to other stages, knows whose rules hold.
        assert standing(grade({}, "moving_average", cells=(*cells, calls))) == full
        late = grade({}, "smooth", cells=(cells[0], AVERAGE.decode(), *cells[2:3], calls))
        assert standing(late)["moving_average"] == 6 and standing(late)["smooth"] == 0

    grading(body)


def test_nobody_else_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a stage forbids nothing the worker is not told of any name."""
    sent = []
    original = Channel.send

    def send(self: Channel, frame: Frame, deadline: Deadline | None = None) -> None:
        told = (frame.header, frame.aside)
        sent.extend(each["forbidden"] for each in told if "forbidden" in each)
        original(self, frame, deadline)

    monkeypatch.setattr(Channel, "send", send)
    grading(lambda grade: grade(RIGHT) and None)
    assert sent and not any(sent)


# --- the author's proof --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, problem",
    [
        ("numpy.convlove", "numpy has no 'convlove' (did you mean 'convolve'?)"),
        (
            "collections.OrderedDict.fromkeys",
            "calls of collections.OrderedDict.fromkeys cannot be noticed: forbid another name",
        ),
    ],
    ids=["a name that does not exist", "a call that nothing sees"],
)
def test_verify_proves_that_every_forbidden_call_is_seen(
    tmp_path: Path, name: str, problem: str
) -> None:
    rule = f'slug = "roughness"\nforbidden = ["numpy.convolve", "{name}", "math.fsum"]\n'
    course = copy_tiny(tmp_path / "tiny", {'slug = "roughness"\n': rule})
    (proof,) = verify(course, course.stages[2:], seeds=(1,)).stages
    assert list(proof.problems) == [f"course.toml: stage 'roughness': forbidden: {problem}"]


def test_verify_tells_of_a_solution_that_calls_what_is_forbidden(tmp_path: Path) -> None:
    rule = 'slug = "roughness"\nforbidden = ["itertools.pairwise"]\n'
    course = copy_tiny(tmp_path / "tiny", {'slug = "roughness"\n': rule})
    assert "pairwise(" in course.stages[2].solution_file.read_text(encoding="utf-8")
    (proof,) = verify(course, course.stages[2:], seeds=(1,)).stages
    assert any("the solution fails roughness.forbidden-call" in text for text in proof.problems)


def test_the_kits_own_calls_are_no_calls_of_the_learner(tmp_path: Path) -> None:
    rule = 'slug = "roughness"\nforbidden = ["builtins.sorted"]\n'  # the worker sorts, too
    course = copy_tiny(tmp_path / "tiny", {'slug = "roughness"\n': rule})
    sorts = course.stages[2].accepted_folder / "sorted_steps.py"
    (proof,) = verify(course, course.stages[2:], seeds=(1,)).stages
    told = "a right answer calls builtins.sorted, which is forbidden"
    assert list(proof.problems) == [f"{course.stages[2].place(sorts)}: {told}"]


def test_the_course_says_in_the_stub_what_it_forbids() -> None:
    for stage in COURSE.stages:
        stub = " ".join(stage.exercise_file.read_text(encoding="utf-8").split())
        for said in ("nn.MultiheadAttention", "a function that does its work"):
            assert said in stub or not stage.forbidden, (stage.slug, said)
    core = COURSE.stage("multi_head_attention")
    assert core.forbidden[:2] == (MHA, FUNCTION)
    assert FUNCTION in core.exercise_file.read_text(encoding="utf-8")  # the others refer to it
