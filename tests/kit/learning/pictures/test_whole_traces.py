"""Traces of whole submissions: what every step holds, and how a trace that cannot go on ends.

This redraws all goldens:
REWRITE_GOLDENS=1 python -m pytest tests/kit/learning/pictures/test_whole_traces.py
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from grader.learning.pictures.compare import compare as compare_traces
from grader.learning.pictures.heatmap import heatmap_screen
from grader.learning.pictures.trace import trace_screen
from grader.learning.pictures.tracer import trace
from grader.learning.pictures.types import Trace, TracedHeatmap, TracedStep
from grader.read.course_file import read_course
from grader.read.submission import read_submission
from grader.run.solutions import solution_files
from grader.run.workers import Interpreter
from grader.tracing import Curves
from grader.types.course import Course
from grader.types.errors import CourseError
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE, TINY, run_python
from tests.kit.support.drawn import compare_with, draw

compare = partial(compare_with, Path(__file__).parent / "goldens")
TRACED = [stage for stage in COURSE.stages if stage.trace_file.is_file()]
IMPATIENT = replace(COURSE, limits=replace(COURSE.limits, call_seconds=0.5))

VIEW_ONLY = b"""
def split_heads(x, num_heads):
    B, T, D = x.shape
    print("sizes", B, T, D)
    return x.view(B, num_heads, T, D // num_heads)
"""
NO_TRANSPOSE = b"""
def split_heads(x, num_heads):
    B, T, D = x.shape
    return x.view(B, T, num_heads, D // num_heads)
"""
THREE_AXES = b"""
def split_heads(x, num_heads):
    return x
"""
RAISES = b"""
def concat_heads(x):
    B, H, T, d_k = x.shape
    return x.transpose(1, 2).view(B, T, H * d_k)
"""
LOOPS = b"""
def concat_heads(x):
    while True:
        pass
"""
GIVES_NONE = b"""
def concat_heads(x):
    x.transpose(1, 2)
"""
NOT_A_SQUARE = b"""
import torch

def scaled_scores(q, k):
    return torch.zeros(3)
"""


def changed(**files: bytes) -> Submission:
    """The solutions with these files in place of theirs."""
    changes = {f"{slug}.py": code for slug, code in files.items()}
    return Submission("changed", solution_files(COURSE) | changes)


One = Callable[..., Trace]


@pytest.fixture(scope="module")
def solved(one: One) -> Mapping[str, Trace]:
    """The trace of every stage's solution."""
    submission = Submission("solutions", solution_files(COURSE))
    return {stage.slug: one(stage.slug, submission) for stage in TRACED}


@pytest.fixture(scope="module")
def one(interpreter: Interpreter) -> One:
    """The trace of one stage of a submission."""

    def run(slug: str, submission: Submission, course: Course = COURSE) -> Trace:
        return trace(course, course.stage(slug), submission, interpreter)

    return run


def steps(trace: Trace) -> dict[str, TracedStep]:
    return {part.name: part for part in trace.parts if isinstance(part, TracedStep)}


def axes(step: TracedStep) -> str:
    return " ".join(f"{axis.name}={axis.size}" for axis in step.axes)


# --- the solutions ---------------------------------------------------------------------------


def test_every_core_stage_has_a_trace(solved: Mapping[str, Trace]) -> None:
    assert set(solved) >= {stage.slug for stage in COURSE.stages if not stage.bonus}


def test_the_solutions_come_to_the_end_and_every_shape_fits(solved: Mapping[str, Trace]) -> None:
    for found in solved.values():
        assert found.stop is None and found.to_fix is None and found.printed == ""
        assert [step.misfit for step in steps(found).values() if step.misfit] == []


def test_the_module_is_compared_with_its_parts(solved: Mapping[str, Trace]) -> None:
    found = solved["multi_head_attention"]
    made = steps(found)
    for name in ("output", "weights"):
        of_module = made[f"{name} of your module"]
        assert axes(of_module) == axes(made[name])
        for block, same in zip(of_module.blocks, made[name].blocks, strict=True):
            for row, other in zip(block.rows, same.rows, strict=True):
                assert row == pytest.approx(other, abs=1e-5)
    assert isinstance(found.parts[-1], TracedHeatmap)
    weights = made["weights"]
    for (_, shown), block in zip(found.heatmap.panels, weights.blocks, strict=True):
        for row, same in zip(shown, block.rows, strict=True):
            assert row == pytest.approx(same)


# Of each kind of picture, one is compared exactly: signs, curves, tables with a heatmap.
DRAWN = ("masking", "memory_benchmark", "softmax")


@pytest.mark.parametrize("slug", [stage.slug for stage in TRACED])
def test_screens(solved: Mapping[str, Trace], slug: str) -> None:
    found = solved[slug]
    screens = {slug: draw(trace_screen(found))}
    if found.heatmap is not None:
        screens[f"{slug}_heatmap"] = draw(heatmap_screen(found.heatmap))
    for name, drawn in screens.items():
        assert max(map(len, drawn.splitlines())) <= 80
        if slug in DRAWN:
            compare(name, drawn)


# --- what is not right yet -------------------------------------------------------------------


def test_stubs_stop_at_their_first_function(one: One) -> None:
    # Not the committed ones, which the course's developers may have worked in.
    from grader.read.stubs import read_stub

    files = {stage.file_name: read_stub(stage).encode() for stage in COURSE.stages}
    submission = Submission("stubs", files)
    found = [one(stage.slug, submission) for stage in TRACED]
    stopped = {trace.slug: trace.stop and trace.stop.function for trace in found}
    assert stopped == stopped | {
        "split_heads": "split_heads",
        "scaled_scores": "scaled_scores",
        "masking": "causal_mask",
        "softmax": "attention_weights",
        "concat_heads": "concat_heads",
        "multi_head_attention": "split_heads",
        "grouped_query": "split_heads",
        "rope": "rope_angles",
        "half_precision": "scaled_scores",
    }
    assert all(trace.stop is not None and trace.stop.not_written for trace in found)
    whole = next(trace for trace in found if trace.slug == "multi_head_attention")
    assert list(steps(whole)) == ["x", "q", "k", "v"]
    assert whole.to_fix == "split_heads"
    compare("stub", draw(trace_screen(found[0])))


def test_with_view_alone_the_tokens_are_seen_to_be_mixed(one: One) -> None:
    found = one("split_heads", changed(split_heads=VIEW_ONLY))
    heads = steps(found)["heads"]
    assert heads.blocks[0].rows == ((10, 11, 12), (13, 14, 15), (20, 21, 22), (23, 24, 25))
    assert heads.misfit == "" and found.stop is None
    assert found.printed == "sizes 1 4 6"
    compare("view_only", draw(trace_screen(found)))


def test_a_shape_that_does_not_fit_is_shown_as_it_is(one: One) -> None:
    found = one("split_heads", changed(split_heads=NO_TRANSPOSE))
    heads = steps(found)["heads"]
    assert axes(heads) == "=1 =4 =2 =3"
    assert heads.misfit == ("The axes should be B=1 H=2 T=4 d_k=3, but the shape is [1, 4, 2, 3].")
    assert len(heads.blocks) == 4
    assert found.stop is None and found.to_fix == "split_heads"
    compare("no_transpose", draw(trace_screen(found)))
    fewer = steps(one("split_heads", changed(split_heads=THREE_AXES)))["heads"]
    assert fewer.misfit == "The axes should be B=1 H=2 T=4 d_k=3, but the shape is [1, 4, 6]."
    assert len(fewer.blocks[0].rows) == 4


def test_a_later_failure_points_to_the_step_that_did_not_fit(one: One) -> None:
    found = one("multi_head_attention", changed(split_heads=THREE_AXES))
    assert steps(found)["q heads"].misfit
    assert found.to_fix == "split_heads"
    assert found.stop is not None


def test_code_that_raises(one: One) -> None:
    found = one("concat_heads", changed(concat_heads=RAISES))
    assert list(steps(found)) == ["heads"]
    assert found.stop is not None and not found.stop.not_written
    assert (found.stop.function, found.stop.slug) == ("concat_heads", "concat_heads")
    assert found.stop.message.startswith("RuntimeError: view size is not compatible")
    assert "concat_heads.py, line 4, in concat_heads" in found.stop.message
    drawn = draw(trace_screen(found))
    assert "The trace ends here: concat_heads gave no usable result." in drawn
    assert "grade hint concat_heads" in drawn


@pytest.mark.parametrize(
    "code, said",
    [
        (GIVES_NONE, "concat_heads(...) returned None: is a `return` missing?"),
        (LOOPS, ": a busy machine (try again), slow code or an endless loop?"),
        (b"def concat(x): ...", "does not define concat_heads"),
        (b"def concat_heads(x:", "concat_heads.py cannot be imported. SyntaxError"),
    ],
    ids=["none", "loop", "missing", "syntax"],
)
def test_no_answer(code: bytes, said: str, one: One) -> None:
    stop = one("concat_heads", changed(concat_heads=code), IMPATIENT).stop
    assert stop is not None and stop.function == "concat_heads"
    assert said in stop.message


def test_a_function_of_an_earlier_stage_can_stop_it(one: One) -> None:
    found = one("multi_head_attention", changed(concat_heads=RAISES))
    assert found.stop is not None and found.stop.slug == "concat_heads"
    assert list(steps(found))[-1] == "context"


def test_an_answer_that_the_example_cannot_go_on_with(one: One) -> None:
    found = one("multi_head_attention", changed(scaled_scores=NOT_A_SQUARE))
    assert steps(found)["scores"].misfit
    assert found.to_fix == "scaled_scores"
    assert found.stop is not None
    shown = draw(trace_screen(found))
    assert "Traceback" not in shown


W_K_TWICE = ("multi_head_attention", b"self.w_q(query)", b"self.w_k(query)")
NO_W_O = ("multi_head_attention", b"self.w_o(concat_heads(context))", b"concat_heads(context)")
ROPE_ON_V = ("rope", b"weights @ v)", b"weights @ self.turn(v))")
KEYS_FIRST = ("fused_qkv", b"(mha.w_q, mha.w_k, mha.w_v)", b"(mha.w_k, mha.w_q, mha.w_v)")
REPEATED = (
    "valid_lens",
    b"valid_lens.repeat_interleave(self.num_heads, dim=0)",
    b"valid_lens.repeat(self.num_heads, 1)",
)


@pytest.mark.parametrize(
    "edit, step",
    [
        (W_K_TWICE, "weights of your module"),
        (NO_W_O, "output of your module"),
        (ROPE_ON_V, "output"),
        (KEYS_FIRST, "w_qkv.weight of fuse"),
        (REPEATED, "output"),
    ],
)
def test_a_mistake_in_a_module_makes_a_step_wrong(
    one: One, solved: Mapping[str, Trace], edit: tuple[str, bytes, bytes], step: str
) -> None:
    slug, right, wrong = edit
    code = solution_files(COURSE)[f"{slug}.py"]
    assert code.count(right) == 1
    found = one(slug, changed(**{slug: code.replace(right, wrong)}))
    first = compare_traces(found, solved[slug], None).first_wrong
    assert first is not None and first.name == step
    assert found.stop is None


# --- another course, without torch -----------------------------------------------------------


def test_another_course(one: One) -> None:
    found = one("smooth", Submission("solutions", solution_files(TINY)), TINY)
    made = steps(found)
    assert {name: axes(step) for name, step in made.items()} == {
        "values": "days=5",
        "once": "pairs=4",
        "twice": "triples=3",
        "largest": "",
    }
    assert made["twice"].blocks[0].rows == ((2.75, 3.75, 3.0),)
    assert made["largest"].blocks[0].rows == ((3.75,),)
    assert found.parts[-1] == "That was all."
    assert found.heatmap is not None
    compare("tiny", draw(trace_screen(found)) + draw(heatmap_screen(found.heatmap)))
    stubs = one("smooth", read_submission(TINY.exercises), TINY)
    assert stubs.stop is not None and stubs.stop.function == "moving_average"


NEVER_LOADED = f"""
import sys
from pathlib import Path
from grader.learning.pictures.tracer import trace
from grader.read.course_file import read_course
from grader.read.submission import read_submission
from grader.run.device import cpu_interpreter
course = read_course(Path({str(TINY.root / "course.toml")!r}))
submission = read_submission(course.root / "solutions")
with cpu_interpreter(course) as interpreter:
    print(trace(course, course.stage("smooth"), submission, interpreter).stop)
print(sorted({{"torch", "pytest", "matplotlib"}} & set(sys.modules)))
"""


def test_another_course_never_loads_torch() -> None:
    assert run_python("-c", NEVER_LOADED).stdout == "None\n[]\n"


# --- the author's own mistakes ---------------------------------------------------------------


@pytest.fixture
def author(tmp_path: Path, one: One) -> Callable[[str], Trace]:
    """The trace that a course of one stage has with this in its file."""
    (tmp_path / "course.toml").write_text(
        'schema = 1\nname = "one"\ntitle = "One"\npreload = ["numpy"]\n'
        '[[stages]]\nslug = "first"\ntitle = "First"\npoints = 100\n'
        'entry_points = { first = "array" }\n',
        encoding="utf-8",
    )
    (tmp_path / "hints" / "traces").mkdir(parents=True)
    file = tmp_path / "hints" / "traces" / "first.py"
    submission = Submission("one", {"first.py": b"def first(x):\n    return x + 1\n"})

    def run(body: str) -> Trace:
        top = "import numpy as np\nfrom grader.tracing import Curves, Heatmap, Step\n\n"
        file.write_text(f"{top}def trace(submission):\n    {body}\n", encoding="utf-8")
        return one("first", submission, read_course(tmp_path / "course.toml"))

    return run


@pytest.mark.parametrize(
    "body, said",
    [
        ("yield 3", "trace yields 3: yield a text, Step, Heatmap or Curves"),
        ("yield Step('x', np.zeros(2), 'T=two')", "'T=two' among the axes is not like 'H=2'"),
        ("yield submission.second(1)", "neither the stage nor one that it requires has 'second'"),
        ("yield 1 / 0", "first.py:5: ZeroDivisionError"),
    ],
)
def test_the_author_is_told(author: Callable[[str], Trace], body: str, said: str) -> None:
    with pytest.raises(CourseError) as error:
        author(body)
    assert str(error.value).startswith("hints/traces/first.py:")
    assert said in str(error.value)


def test_after_an_answer_a_failure_is_the_answers(author: Callable[[str], Trace]) -> None:
    found = author("yield Step('y', submission.first(np.zeros(2)) @ np.zeros(3))")
    assert found.stop is not None and found.stop.function == "first"
    assert found.stop.message.startswith("The example cannot continue with this result: ValueError")


def test_curves_of_the_learners_numbers(author: Callable[[str], Trace]) -> None:
    found = author(
        "yield Curves('Growth', [1, 2], {'own': submission.first(np.ones(2))}, 'n', 'bytes', "
        "guides={'n': [1, 2]})"
    )
    curves = found.picture
    assert isinstance(curves, Curves)
    assert curves.curves == {"own": [2.0, 2.0]} and [*curves.guides] == ["n"]
    assert found.heatmap is None
    assert "● own   across: n" in draw(trace_screen(found))


CURVE = "Curves('Growth', [1, 2], {'own': X}, 'n', 'bytes')"
NEEDS = "The curve 'own' needs 2 numbers above 0, but these are "


@pytest.mark.parametrize(
    "picture, numbers, said",
    [
        (
            *("Heatmap('Map', X, ['a'], ['b'], ['c'], 'r', 'c')", "np.zeros((1, 2))"),
            "The heatmap 'Map' needs the shape [1, 1, 1], but this is [1, 2].",
        ),
        (CURVE, "[1.0]", f"{NEEDS}1.0."),
        (CURVE, "[1, 0]", f"{NEEDS}1, 0."),
        (CURVE, "[1, float('nan')]", f"{NEEDS}1, nan."),
    ],
)
def test_what_is_no_picture_is_not_drawn(
    author: Callable[[str], Trace], picture: str, numbers: str, said: str
) -> None:
    found = author(f"submission.first(np.ones(2)); yield {picture.replace('X', numbers)}")
    assert found.picture is None and found.stop is not None and found.stop.message == said


def test_what_a_trace_gives_can_be_handed_over(author: Callable[[str], Trace]) -> None:
    found = author(
        "source = 'import numpy as np\\ndef f(x): return x'\n    "
        "given = submission.given(source, 'f')\n    "
        "yield type(given).__name__\n    "
        "yield Step('y', submission.first(np.zeros(2)))"
    )
    assert found.stop is None
    assert found.parts[0] == "RemoteObject"


def test_an_axis_keeps_its_size_and_the_axis_1_has_one_place(
    author: Callable[[str], Trace],
) -> None:
    found = author(
        "yield Step('a', np.zeros((2, 1)), 'T 1'); "
        "yield Step('b', np.zeros((3, 1)), 'T 1'); "
        "yield Step('c', np.zeros((2, 3)), 'T 1'); "
        "yield Step('d', np.zeros(2), 'T', labels={'T': ['x', 'y', 'z']})"
    )
    assert [step.misfit for step in steps(found).values()] == [
        "",
        "The axes should be T=2 1, but the shape is [3, 1].",
        "The axes should be T=2 1, but the shape is [2, 3].",
        "",
    ]
    assert steps(found)["d"].axes[0].labels == ()
    assert found.to_fix is None  # no function of the learner's is to blame


def test_of_a_large_tensor_the_beginning_is_kept(author: Callable[[str], Trace]) -> None:
    found = author("yield Step('big', np.zeros((9, 40, 50)), 'A B C')")
    big = steps(found)["big"]
    assert [axis.size for axis in big.axes] == [9, 40, 50]
    assert (len(big.blocks), len(big.blocks[0].rows), len(big.blocks[0].rows[0])) == (8, 16, 16)
    drawn = draw(trace_screen(found))
    assert "Only 2048 of its 18000 numbers are shown." in drawn
    assert max(map(len, drawn.splitlines())) <= 80
    assert "It has no numbers." in draw(
        trace_screen(author("yield Step('none', np.zeros((0, 2)), 'A B')"))
    )
