"""`grade suggest`: what it suggests behaves differently, stands alone and is true."""

import ast
from typing import Any

import numpy as np
import pytest
import torch

from grader.authoring.mutants.types import Mutant
from grader.authoring.suggest.candidates import candidates
from grader.authoring.suggest.examples import examples
from grader.authoring.suggest.inputs import partings, written
from grader.authoring.suggest.suggesting import suggest
from grader.authoring.suggest.types import Call
from grader.authoring.suggest.writing import mistake_of, with_examples, with_mistakes
from grader.authoring.verify.verify import verify
from grader.command.main import main
from grader.read.course_file import read_course
from grader.read.misconceptions import read_misconceptions
from grader.types.course import Course
from tests.kit.support.checkout import TINY
from tests.kit.support.tiny import Capture, Say, Typed, change

_OTHERS = ("moving_average", "roughness")
MISTAKES = "hints/misconceptions/{}.py"


def bare(course: Course, slug: str) -> None:
    """Leave the stage without misconceptions."""
    (course.root / MISTAKES.format(slug)).write_text('"""None yet."""\n', encoding="utf-8")


# --- which changes ---------------------------------------------------------------------------


def test_the_most_natural_changes_come_first_and_only_the_solution_is_changed() -> None:
    source = (TINY.root / "solutions" / "moving_average.py").read_text("utf-8")
    found = list(candidates(source, "moving_average.py", ["moving_average"]))
    assert len({ast.dump(ast.parse(each.mutant.source)) for each in found}) == len(found) > 30
    first, last = ([each.cost for each in some] for some in (found[:10], found[-10:]))
    assert max(first) <= 2 and sum(first) < sum(last)
    before, _, _ = source.partition("    ### BEGIN SOLUTION")
    assert all(each.mutant.source.startswith(before) for each in found)
    assert all(each.function == "moving_average" for each in found)


def test_what_an_author_has_listed_is_not_suggested_again(course: Course) -> None:
    stage = course.stage("roughness")
    listed = suggest(course, stage)
    bare(course, "roughness")
    anew = suggest(course, stage)
    changes = [{mistake.after for mistake in found.mistakes} for found in (listed, anew)]
    upwards = "return max((right - left for left, right in neighbours_in_pairs), default=0.0)"
    assert (upwards.replace("right - left", "(right - left)"),) not in changes[0]
    assert any("abs" not in line for (line, *_) in changes[1] if "max" in line), changes[1]


def test_a_change_of_a_function_that_another_one_calls_is_suggested_once(
    course: Course, grade: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(course.root)
    grade(
        "new",
        "spans",
        "--title",
        "Spans",
        "--function",
        "width(x: int) -> int",
        "--function",
        "area(x: int) -> int",
    )
    solution = course.root / "solutions" / "spans.py"
    width, area, end = solution.read_text("utf-8").split("raise NotImplementedError")
    answers = "return x + 1", "return width(x) * width(x)"
    solution.write_text(f"{width}{answers[0]}{area}{answers[1]}{end}", encoding="utf-8")
    whole = read_course(course.root / "course.toml")
    first = {mistake.after for mistake in suggest(whole, whole.stage("spans")).mistakes}
    grade("suggest", "spans", "--write")
    later = {mistake.after for mistake in suggest(whole, whole.stage("spans")).mistakes}
    assert first and not first & later


# --- what is written of them -------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
@pytest.mark.parametrize(
    "slug", ["smooth", *(pytest.param(slug, marks=pytest.mark.slow) for slug in _OTHERS)]
)
def test_each_one_kept_is_caught_and_gets_its_name(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: Capture, grade: Typed, slug: str
) -> None:
    bare(course, slug)
    monkeypatch.chdir(course.root)
    assert "that behave in a new way" in grade("suggest", slug)
    added = f"hints/misconceptions/{slug}.py: added {slug}_"
    assert grade("suggest", slug, "--write").startswith(added)
    written = read_misconceptions(course.stage(slug))
    assert len(written) >= 5
    [proof] = verify(course, [course.stage(slug)], seeds=(1,)).stages
    assert proof.problems == ()
    assert all(each.named == each.id and each.caught_by for each in proof.misconceptions)
    assert len(proof.todos) == len(written)
    text = (course.root / MISTAKES.format(slug)).read_text("utf-8")
    assert "import moving_average" not in text and "SOLUTION" not in text
    assert main(["suggest", slug, "--write", "99"]) == 2
    told = capsys.readouterr().err
    assert "--write 99: there are " in told


HELPED = '''
from torch import nn
from split import halves

FACTOR = 2


def doubled(x):
    """Twice."""
    return FACTOR * x


class Block(nn.Module):
    """A block."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x):
        return doubled(halves(x))
'''


def test_a_misconception_brings_all_that_it_needs_and_imports_no_stage() -> None:
    sources = {
        "block": HELPED,
        "split": "import math\n\ndef halves(x):\n    return x / math.sqrt(4)\n",
    }
    changed = HELPED.replace("FACTOR * x", "FACTOR + x")
    lines = ("return FACTOR * x",), ("return FACTOR + x",)
    mutant = Mutant("doubled.swap", "doubled", "swap", *lines, changed)
    mistake = mistake_of("block_plus", "Block", mutant, sources)
    text = with_mistakes('"""Known."""\n', [mistake])
    assert "from split" not in text and '"""Twice."""' not in text
    names: dict[str, object] = {}
    exec(text, names)
    block = names["block_plus"]
    assert block(1)(8.0) == 6.0
    assert text.startswith('"""Known."""\n\nimport math\n\nfrom torch import nn\n\nfrom grader.')
    reminder = '"""Known.\n\nTODO: wrong answers that people really give; x.\n"""\n'
    assert with_mistakes(reminder, [mistake]) == text
    assert with_mistakes(text, []).count("import math") == 1


def test_an_example_goes_into_a_docstring_that_has_none(course: Course) -> None:
    assert suggest(course, course.stage("roughness")).examples == ()
    change(course, "solutions/roughness.py", "    >>> roughness([1.0, 4.0, 2.0])\n    3.0\n", "")
    without = (course.root / "solutions/roughness.py").read_text("utf-8")
    found = suggest(course, course.stage("roughness")).examples
    assert [example.lines for example in found] == [(">>> roughness([1.0, 4.0, 2.0])", "3.0")]
    assert '>>> roughness([1.0, 4.0, 2.0])\n    3.0\n    """' in with_examples(without, found)
    one_line = 'def roughness(values):\n    """The largest step."""\n    return 3.0\n'
    assert with_examples(one_line, found).splitlines()[1:] == [
        '    """The largest step.',
        "",
        "    >>> roughness([1.0, 4.0, 2.0])",
        "    3.0",
        '    """',
        "    return 3.0",
    ]


@pytest.mark.parametrize("zeros", [np.zeros((3, 4, 5)), torch.zeros(3, 4, 5)])
def test_an_example_has_short_axes_and_numbers_in_order(zeros: Any) -> None:
    library = "torch" if hasattr(zeros, "new_tensor") else "np"
    [example] = examples([Call("f", {"x": zeros})], lambda name: lambda x: x + 1)
    assert example.lines[:2] == (f">>> x = {library}.arange(8.0).reshape(2, 2, 2)", ">>> f(x)[-1]")


# --- inputs that nobody has tried --------------------------------------------------------------


def test_an_input_that_a_check_lacks_is_named_with_what_it_would_catch(course: Course) -> None:
    text = (course.root / "tests/checks/test_roughness.py").read_text("utf-8")
    before, _, after = text.partition("@pytest.mark.parametrize(")
    _, _, rest = after.partition("\n)\n")
    mark = '@pytest.mark.parametrize("values, expected", [([1.0, 2.0, 4.0], 2.0)])\n'
    (course.root / "tests/checks/test_roughness.py").write_text(before + mark + rest, "utf-8")
    found = suggest(course, course.stage("roughness"))
    caught = {name for parting in found.partings for names in parting.pairs for name in names}
    assert "rough_upwards" in caught, found.partings
    assert [each.call.given["values"] for each in found.partings] == [[], [1.0, 2.0, 4.0] * 2]


def test_a_call_that_a_check_makes_is_no_new_one() -> None:
    def whole(text: str) -> int:
        return len(text)

    def never_none(text: str) -> int:
        return len(text) or 1

    wrong = ("", lambda name: whole, "wrong", lambda name: never_none)
    calls = [Call("f", {"text": "ab"})]
    found = [each.call.given for each in partings(calls, lambda name: whole, [wrong])]
    assert found == [{"text": ""}]
    assert not [*partings([*calls, Call("f", {"text": ""})], lambda name: whole, [wrong])]


def test_the_case_of_a_text_is_varied() -> None:
    def small(text: str) -> str:
        return text.lower()

    wrong = ("", lambda name: small, "wrong", lambda name: lambda text: text)
    [found] = partings([Call("f", {"text": "ab"})], lambda name: small, [wrong])
    assert found.call.given == {"text": "AB"}


def _scaled(x: Any, gain: float = 1.0, shift: float = 0.0) -> Any:
    return x * gain + shift


@pytest.mark.parametrize("zeros", [np.zeros((2, 3)), torch.zeros(2, 3)])
def test_inputs_that_hide_a_mistake_are_varied_and_so_is_what_no_call_gives(zeros: Any) -> None:
    def wrong(function: Any) -> Any:
        return ("", lambda name: _scaled, "wrong", lambda name: function)

    def told(function: Any) -> list[str]:
        found = partings([Call("f", {"x": zeros})], lambda name: _scaled, [wrong(function)])
        return [written(each.call) for each in found]

    library = "torch" if hasattr(zeros, "new_tensor") else "np"
    assert told(lambda x, gain=1.0, shift=0.0: -x * gain + shift) == [f"f(x + {library}.arange(3))"]
    assert told(lambda x, gain=1.0, shift=0.0: x * gain) == ["f(x, shift=0.5)"]


def test_a_solution_that_fails_its_checks_is_told_beside_the_suggestions(
    course: Course, grade: Typed
) -> None:
    change(course, "solutions/roughness.py", "return max", "return min")
    shown = " ".join(grade("suggest", "roughness", "--course", str(course.root)).split())
    said = "Your solution does not pass roughness.values: `grade verify roughness` says why."
    assert said in shown


# --- where it cannot -----------------------------------------------------------------------------


def refused(course: Course, capsys: Capture) -> str:
    assert main(["suggest", "roughness", "--course", str(course.root)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    return line


def test_a_solution_that_is_not_written_is_told(course: Course, capsys: Capture) -> None:
    old = "    return max((abs(right - left) for left, right in neighbours_in_pairs), default=0.0)"
    change(course, "solutions/roughness.py", old, "    raise NotImplementedError  # TODO: this")
    assert "solutions/roughness.py: is not written yet" in refused(course, capsys)


@pytest.mark.parametrize(
    "command", ["suggest", "grade", "grade --submission solutions", "verify --mutants"]
)
@pytest.mark.parametrize("line", ["return (", "raise ValueError(3)"])
def test_a_solution_that_is_broken_is_told(
    course: Course, monkeypatch: pytest.MonkeyPatch, say: Say, command: str, line: str
) -> None:
    monkeypatch.chdir(course.root)
    solution = course.root / "solutions" / "roughness.py"
    solution.write_text(f"{solution.read_text('utf-8')}\n{line}\n", encoding="utf-8")
    (course.root / "exercises" / "roughness.py").write_text("def roughness(values): return 7\n")
    at = solution.read_text("utf-8").count("\n")
    code, shown, error = say(*command.split(), "roughness")
    assert (code, f"solutions/roughness.py:{at}: " in error + shown) == (2, True), (shown, error)


def test_checks_that_call_nothing_are_told(course: Course, capsys: Capture) -> None:
    change(
        course,
        "tests/checks/test_roughness.py",
        "    expect_close",
        "    raise NotImplementedError\n    expect_close",
    )
    said = "tests/checks/test_roughness.py: no check calls the solution yet: write its inputs"
    assert said in refused(course, capsys)
