"""`grade verify` on a small course in which one fault after the other is planted."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.authoring.verify.author_files import not_required, strays, twin_titles
from grader.authoring.verify.types import StageProof
from grader.authoring.verify.verify import verify
from grader.command.main import main
from grader.read.course_file import read_course
from grader.read.stubs import read_stub
from grader.run.lanes import can_fork
from grader.types.course import Course
from tests.kit.support.checkout import TINY, run_python
from tests.kit.support.files import write_files
from tests.kit.support.tiny import Capture, Say, Typed, change

Plant = Callable[[Course], object]
SEEDS = (1, 2)
CHECKS = "tests/checks/test_roughness.py"
TRACE = "hints/traces/roughness.py"
TRACING = """\
import numpy as np
from grader.tracing import Step


def trace(submission):
    jumps = submission.roughness(np.array([1.0, 2.0, 4.0]))
    {}
"""
PAGE = """\
from grader.tracing import Control
CONTROLS = [Control("days", "Days", (7, 14))]


def explore(submission, days):
    yield nothing
"""
MISTAKES = "hints/misconceptions/roughness.py"
SOLUTION = "solutions/roughness.py"
HINTS, STUB = "hints/roughness.md", "exercises/roughness.py"
ACCEPTED = "tests/accepted/roughness/sorted_steps.py"
UNPAID = """

def test_{0}(submission):
    'It is {0}'
    assert submission.roughness([1.0]) == 0, "It is not 0"
"""
PAID = UNPAID.replace("\ndef", "\n@pytest.mark.points(1)\ndef")
RENAMED = 'replaces="roughness"', 'replaces="rough"'
SLUG = 'slug = "roughness"'
CHANCE = """

calls = []


@pytest.mark.points(2)
def test_values(submission):
    'It is a matter of chance'
    calls.append(submission.roughness([2.0]))
    assert len(calls) not in (1, 2), "It is not"
"""
REFUSAL = """

@pytest.mark.points(1)
def test_refusal(submission):
    'Words are no numbers'
    from grader.checking import expect_raises

    with expect_raises(TypeError, "Words are no numbers"):
        submission.roughness(["a", "b"])
"""
HANG = """while True:
        try:
            values[1] / 0
        except Exception:
            pass
"""
IDLE = """

@pytest.mark.points(1)
def test_{}(submission):
    'There may be one step alone'
    assert submission.roughness([1.0, 2.5]) == 1.5, "It is not 1.5"
"""
SHARES = """

seen = []


@pytest.mark.points(0.5)
def test_first(submission):
    'The step of two numbers'
    seen.append(1)
    expect_close(submission.roughness([1.0, 3.0]), 2.0, axes="")


@pytest.mark.points(0.5)
def test_second(submission):
    'The step of three numbers'
    assert seen, "nothing was seen"
    expect_close(submission.roughness([1.0, 3.0, 6.0]), 3.0, axes="")
"""
ASKS_NOTHING = """

@pytest.mark.points(1)
@pytest.mark.pays("zeros", "ones", because="it says so")
def test_more(submission):
    'It can be called'
    submission.roughness([1.0])
"""
RETURN = "    return max((abs(right - left) for left, right in neighbours_in_pairs), default=0.0)"
TWO_CLASSES = "".join(
    f"""

class {name}:
    @pytest.mark.points(1)
    def test_more(self, submission: Any) -> None:
        \"\"\"More\"\"\"
        assert submission.roughness([1.0]) == 0, "One value has no step"
"""
    for name in ("TestOne", "TestOther")
)
VALUE = "max((abs(right-left) for left,right in neighbours_in_pairs), default = 0.0)"
MARK = "    ### BEGIN SOLUTION\n"
SLIP = """

@misconception("slip", replaces="roughness", says="You slip.", hint=1)
def slip(values):
    return mx(values)
"""
TWIN = """

@misconception("rough_twin", replaces="roughness", says="You look at the range.", hint=9)
def rough_twin(values):
    return max(values) - min(values) if values else 0.0
"""
HARMLESS = """

@misconception("harmless", replaces="roughness", says="You are right.", hint=1)
def harmless(values):
    return max((abs(b - a) for a, b in pairwise(values)), default=0.0)
"""
PAYS = '@pytest.mark.pays("zeros", because="it is short")\ndef test_values'
BORROWS = """

@misconception("borrowed", replaces="roughness", says="You smooth first.", hint=1)
def borrowed(values):
    from smooth import smooth

    return sum(values) if smooth else 0.0
"""
NEAR = """

@misconception("nearly", replaces="roughness", says="You round.", hint=1)
def nearly(values):
    return max((abs(b - a) for a, b in pairwise(values)), default=0.0) * (1 + 1.5e-9)
"""
FAR = NEAR.replace("1.5e-9", "0.5")


def example(course: Course, old: str, new: str) -> None:
    """Change an example in the solution and in its stub."""
    for file in (SOLUTION, "exercises/roughness.py"):
        change(course, file, old, new)


def append(course: Course, file: str, text: str) -> None:
    path = course.root / file
    path.parent.mkdir(exist_ok=True)
    with open(path, "a", encoding="utf-8") as opened:
        opened.write(text)


def changed(file: str, old: str, new: str) -> Plant:
    return lambda course: change(course, file, old, new)


def appended(file: str, text: str) -> Plant:
    return lambda course: append(course, file, text)


def proven(course: Course, slug: str = "roughness") -> StageProof:
    """The proof of one stage."""
    [proof] = verify(course, [course.stage(slug)], seeds=SEEDS).stages
    return proof


# --- a course that is sound --------------------------------------------------------------------


def test_a_sound_course_is_proven_whole(course: Course) -> None:
    proof = verify(course, course.stages, seeds=SEEDS)
    assert proof.is_sound, proof
    assert proof.course == "smoothing" and proof.strays == ()
    first, second, bonus = proof.stages
    assert [len(stage.accepted) for stage in proof.stages] == [6, 6, 3]
    assert all(stage.seeds == len(SEEDS) for stage in proof.stages)
    values = next(check for check in first.checks if check.id == "moving_average.values")
    assert "average_sum" in values.catches and values.seconds > 0
    [room] = first.tolerances
    assert (room.check, room.tolerance) == ("moving_average.values", "rtol=1e-09, atol=1e-10")
    assert 0 < room.right < 0.01 and room.wrong is not None and room.wrong > 1e6
    assert second.notes == () == bonus.notes


def test_several_stages_at_once_come_to_the_same(course: Course) -> None:
    append(course, MISTAKES, HARMLESS)
    told: list[tuple[str, int, int]] = []
    proofs = [
        verify(course, course.stages, lambda *what: told.append(what), SEEDS, lanes=lanes)
        for lanes in (1, 3)
    ]
    one, several = (
        [
            replace(stage, checks=tuple(replace(check, seconds=0) for check in stage.checks))
            for stage in proof.stages
        ]
        for proof in proofs
    )
    assert several == one and not proofs[1].is_sound
    assert told[-4:] == [("stages", done, 3) for done in range(4)]


@pytest.mark.skipif(not can_fork("cpu"), reason="no fork on this system")
def test_a_process_that_ends_costs_its_own_stage(course: Course) -> None:
    append(course, MISTAKES, SLIP.replace("mx(values)", "__import__('os')._exit(9)"))
    proof = verify(course, course.stages, seeds=SEEDS, lanes=2)
    problems = {stage.slug: stage.problems for stage in proof.stages if stage.problems}
    assert problems == {"roughness": ("the process that was doing it has ended: exit code 9",)}


def test_a_check_that_no_misconception_fails_is_a_note(course: Course) -> None:
    append(course, CHECKS, IDLE.format("more"))
    change(course, CHECKS, "points(2)", "points(1)")
    proof = proven(course)
    assert proof.is_sound
    shows = "`grade verify --mutants` shows whether it catches a mutant"
    assert proof.notes == (f"roughness.more catches no misconception: {shows}",)


def test_one_note_names_all_checks_that_catch_nothing(course: Course) -> None:
    for name in ("one", "other"):
        append(course, CHECKS, IDLE.format(name))
    change(course, "course.toml", "points = 2", "points = 4")
    notes = proven(read_course(course.root / "course.toml")).notes
    shows = "`grade verify --mutants` shows whether they catch a mutant"
    assert notes == (f"roughness.one and roughness.other catch no misconception: {shows}",)


# --- faults that are told once, in a line -------------------------------------------------------

FAULTS: dict[str, tuple[Any, ...]] = {
    "an absent solution": (
        lambda c: (c.root / SOLUTION).unlink(),
        f"{SOLUTION}: is missing: write it",
    ),
    "absent files": (
        lambda c: [(c.root / file).unlink() for file in (HINTS, MISTAKES, STUB)],
        f"{HINTS}: is missing: write it",
        f"{MISTAKES}: is missing: write it",
        f"{STUB}: is missing: run grade stubs",
    ),
    "an old stub": (
        appended(STUB, "# mine\n"),
        f"{STUB}: does not match the solution: run grade stubs",
    ),
    "a stub that was edited by hand": (
        changed(STUB, "raise", "return 1\n    raise"),
        "does not match the solution: run grade stubs roughness --force",
    ),
    "a solution that is no Python": (
        changed(SOLUTION, RETURN, "    return max((("),
        f"{SOLUTION}:14: SyntaxError: '(' was never closed",
    ),
    "a solution that cannot be imported": (
        changed(SOLUTION, "from itertools", "from itertool"),
        f"{SOLUTION}:3: ModuleNotFoundError: No module named 'itertool'",
    ),
    "a solution that imports a stage by its folder": (
        appended(SOLUTION, "from exercises.smooth import smooth\n"),
        "No module named 'exercises.smooth': write `from STAGE import ...`, without the folder",
    ),
    "several at once": (
        lambda c: [
            append(c, SOLUTION, "nonsense\n"),
            change(c, HINTS, "## 2", "## 7"),
            append(c, MISTAKES, "def (\n"),
            append(c, ACCEPTED, ")\n"),
        ],
        f"{SOLUTION}:16: NameError: name 'nonsense' is not defined",
        "hint 7 where hint 2 should be",
        f"{MISTAKES}:38: SyntaxError: ",
        f"{ACCEPTED}:4: SyntaxError: unmatched ')'",
    ),
    "a solution under another name": (
        changed(SOLUTION, "def roughness", "def rough"),
        f"{SOLUTION}: does not define 'roughness', which course.toml names",
    ),
    "a solution that fails many checks": (
        lambda c: [
            change(c, SOLUTION, "default=0.0", "default=1.0"),
            change(c, "course.toml", "points = 2\nbonus", "points = 5\nbonus"),
            *(append(c, CHECKS, PAID.format(name)) for name in ("one", "two", "three")),
        ],
        "the solution fails roughness.values: The largest step is wrong, expected 0, got 1",
        "the solution fails roughness.one: It is not 0: see grade",
        "the solution fails 2 more checks: two and three",
    ),
    "a solution that hangs": (
        changed(SOLUTION, RETURN, f"    while len(values) > 4:\n        pass\n{RETURN}"),
        "the solution hangs: roughness is stopped after 0.9 s (seed 1)",
    ),
    "a solution that hangs when it is imported": (
        appended(SOLUTION, "\n\nwhile True:\n    pass\n"),
        ": Stopped: did not end within 0.9 s",
    ),
    "a misconception that hangs": (
        appended(MISTAKES, SLIP.replace("return mx(values)", HANG)),
        f"{MISTAKES}: the misconception slip hangs: roughness is stopped after 0.9 s (seed 1)",
    ),
    "a file of misconceptions that hangs when it is imported": (
        appended(MISTAKES, "while True: pass\n"),
        f"{MISTAKES}:38: Stopped: did not end within 0.9 s",
    ),
    "a check that hangs": (
        changed(CHECKS, "    expect_close", "    while True: pass\n    expect_close"),
        f"{CHECKS}:24: Stopped: did not end within 3 s",
    ),
    "a file of checks that hangs when it is imported": (
        appended(CHECKS, "while True: pass\n"),
        f"{CHECKS}:25: Stopped: did not end within 0.9 s",
    ),
    "a marker that is forgotten": (
        changed(SOLUTION, "    ### END SOLUTION\n", ""),
        f"{SOLUTION}:12: this solution has no '### END SOLUTION': write it below",
    ),
    "a solution that begins twice": (
        changed(SOLUTION, RETURN, f"{MARK}{RETURN}"),
        f"{SOLUTION}:14: a solution starts inside the one from line 12: end that one with '### E",
    ),
    "a check that is no Python": (
        changed(CHECKS, "def test_values(", "def test_values(("),
        f"{CHECKS}:22: SyntaxError: ",
    ),
    "checks that cannot be imported": (
        changed(CHECKS, "import expect_close", "import expect_near"),
        "name 'expect_near' from 'grader.checking' (did you mean 'expect_",
    ),
    "a check without points": (
        changed(CHECKS, "@pytest.mark.points(2)\n", ""),
        f"{CHECKS}:12: test_values has no points: add @pytest.mark.points(1",
    ),
    "points that are a text": (
        changed(CHECKS, "points(2)", 'points("2")'),
        f"{CHECKS}:12: test_values: points are a number above 0 and at most 1e9, not '2'",
    ),
    "points that are nothing": (
        changed(CHECKS, "points(2)", "points(0)"),
        f"{CHECKS}:12: test_values: points are a number above 0 and at most 1e9, not 0",
    ),
    "points beyond all numbers": (
        changed(CHECKS, "points(2)", "points(10**400)"),
        "points are a number above 0 and at most 1e9, not 1000",
    ),
    "a fixture with a slip": (
        changed(CHECKS, "submission: Any", "submision: Any"),
        "test_roughness.py:12: there is no fixture 'submision' (did you mean 'submission'?)",
    ),
    "two checks of one name in two classes": (
        appended(CHECKS, TWO_CLASSES),
        f"{CHECKS}: two classes have a check test_more: rename one",
    ),
    "a check without a title": (
        changed(CHECKS, '    """The largest step between neighbours, up or down"""', ""),
        f"{CHECKS}:12: test_values has no title: write a docstring",
    ),
    "a check with a long title": (
        changed(CHECKS, "up or down", "up or down" + " and up or down" * 5),
        "test_values: its title has 122 characters: use at most 72",
    ),
    "an assert without a message": (
        appended(CHECKS, "def expect_flat(x):\n    assert x == 0\n"),
        ": this assert tells the learner nothing: add a message after a comma",
    ),
    "a check with a full stop": (
        changed(CHECKS, "up or down", "up or down."),
        "test_values: its title ends with a full stop: remove it",
    ),
    "a bug in a check": (
        changed(CHECKS, "expected, axes", "expected + None, axes"),
        f"{CHECKS}:24: TypeError: unsupported operand type(s) for +",
    ),
    "a check that refuses the solution": (
        changed(CHECKS, "4.0, 2.0], 3.0)", "4.0, 2.0], 2.5)"),
        "wrong, expected 2.5, got 3: see grade roughness --submission solutions --seed 1",
    ),
    "a check that pays for always raising": (
        lambda c: (change(c, CHECKS, "points(2)", "points(1)"), append(c, CHECKS, REFUSAL)),
        "roughness.refusal pays for an answer that is always TypeError: first make a call",
    ),
    "a check that declares what it does not pay for": (
        changed(CHECKS, "@pytest", '@pytest.mark.pays("ones", because="why")\n@pytest'),
        "test_roughness.py:23: roughness.values does not pay for ones: remove that from its mark",
    ),
    "a check that pays without a reason": (
        changed(CHECKS, "@pytest", '@pytest.mark.pays("ones")\n@pytest'),
        'test_roughness.py:12: test_values: write @pytest.mark.pays("zeros", because="...") with',
    ),
    "points that do not add up": (
        changed(CHECKS, "points(2)", "points(1)"),
        "test_roughness.py: its checks are worth 1 points, but course.toml says 2: change one",
    ),
    "malformed hints": (
        changed(HINTS, "## 2.", "## 5."),
        f"{HINTS}:6: hint 5 where hint 2 should be: number them 1, 2, ...",
    ),
    "a rung that gives the solution away": (
        changed(HINTS, "Count before", f"{RETURN}\n\nCount before"),
        f"{HINTS}:7: gives away {SOLUTION}:14",
    ),
    "a rung that gives a value away": (
        changed(HINTS, "Count before", f"Try `{VALUE}`.\n\nCount before"),
        f"{HINTS}:7: gives away {SOLUTION}:14",
    ),
    "a stub that gives a value away": (
        changed(SOLUTION, "    >>> roughness", f"    {VALUE}\n\n    >>> roughness"),
        f"{STUB}: does not match",
        f"{STUB}:9: gives away {SOLUTION}:16",
    ),
    "a stub that gives the solution away": (
        changed(SOLUTION, "    >>> roughness", f"{RETURN}\n\n    >>> roughness"),
        f"{STUB}: does not match",
        f"{STUB}:9: gives away {SOLUTION}:16",
    ),
    "malformed questions": (
        appended("hints/predictions/roughness.md", "nothing"),
        "hints/predictions/roughness.md:",
    ),
    "malformed questions and a trace that cannot run": (
        lambda c: (
            append(c, "hints/predictions/roughness.md", "nothing"),
            append(c, TRACE, "def trace(submission):\n    yield Stpe()\n"),
        ),
        "hints/predictions/roughness.md:",
        "hints/traces/roughness.py:2: NameError: name 'Stpe' is not defined",
    ),
    "a malformed trace": (
        appended("hints/traces/roughness.py", "raise ValueError('no')"),
        "hints/traces/roughness.py:1: ValueError: no",
    ),
    "a trace that cannot run": (
        appended(TRACE, "def trace(submission):\n    yield Stpe()\n"),
        "hints/traces/roughness.py:2: NameError: name 'Stpe' is not defined",
    ),
    "a trace with other axes than its tensor": (
        appended(TRACE, TRACING.format("yield Step('jumps', jumps, 'T')")),
        f"{TRACE}: step 'jumps': The axes should be T, but the shape is [].",
    ),
    "a trace that cannot end": (
        appended(TRACE, TRACING.format("yield jumps.nothing")),
        f"{TRACE}: The example cannot continue with this result: AttributeError: ",
    ),
    "an exploration that cannot run": (
        appended("hints/explore/roughness.py", PAGE),
        "hints/explore/roughness.py:6: NameError: name 'nothing' is not defined",
    ),
    "a malformed finale": (
        appended("hints/finale/roughness.py", "PROGRAMS = ["),
        "hints/finale/roughness.py: PROGRAMS cannot be read: '[' was never closed",
    ),
    "malformed records of mutants": (
        appended("tests/mutants/roughness.toml", "[[equal]]"),
        "tests/mutants/roughness.toml: unknown key 'equal'",
    ),
    "misconceptions that cannot be imported": (
        appended(MISTAKES, "nonsense\n"),
        f"{MISTAKES}:38: NameError: name 'nonsense' is not defined",
    ),
    "a misconception with a slip": (
        appended(MISTAKES, SLIP),
        f"{MISTAKES}: the misconception slip is broken rather than caught: NameError: ",
    ),
    "a misconception with another signature": (
        appended(MISTAKES, SLIP.replace("slip(values)", "slip(values, width)")),
        f"{MISTAKES}: the misconception slip is broken: it cannot be called as roughness(val",
    ),
    "two functions of one name": (
        appended(MISTAKES, SLIP.replace("slip(v", "rough_range(v").replace("mx", "min")),
        "misconceptions/roughness.py:41: rough_range hides the one in line 26: rename one",
    ),
    "no misconception": (
        lambda c: (c.root / MISTAKES).write_text("", encoding="utf-8"),
        f"{MISTAKES}: has no misconception: mark one with @misconcep",
    ),
    "a misconception that says much": (
        changed(MISTAKES, "You look", "You look" * 40),
        "'rough_upwards': says has 365 characters: use 300 at most",
    ),
    "a misspelt keyword": (
        changed(MISTAKES, "hint=1", "hnit=1"),
        "got an unexpected keyword argument 'hnit' (did you mean 'hint'?)",
    ),
    "two that are one": (
        appended(MISTAKES, TWIN.replace("hint=9", "hint=2")),
        "roughness.py: rough_range behaves exactly like rough_twin: remove one",
    ),
    "a comparison the wrong way round": (
        changed(
            CHECKS,
            "    expect_close(submission.roughness(values), expected, axes",
            "    found = submission.roughness(values)\n"
            "    expect_close(float(expected), found, axes",
        ),
        "test_roughness.py:25: test_values: the learner's value comes first, then the right one",
    ),
    "a call behind one that raises": (
        appended(
            CHECKS,
            "    with pytest.raises(TypeError):\n"
            "        submission.roughness()\n"
            "        submission.roughness(1, 2)\n",
        ),
        "what comes after the call in line 26 never runs, because the call raises: give each",
    ),
    "a check without a case": (
        changed(CHECKS, "    [\n", "    [][:0] and [\n"),
        "test_roughness.py:12: test_values has no case: its parametrize lists no values",
    ),
    "a hint that is not there": (
        appended(MISTAKES, SLIP.replace("mx(values)", "-1.0").replace("=1)", "=9)")),
        f"{MISTAKES}: the misconception slip points to hint 9, but there are only 4 hints",
    ),
    "a misconception that is right": (
        appended(MISTAKES, HARMLESS),
        "misconceptions/roughness.py: no check catches harmless: every call of a check gives the",
    ),
    "a wide tolerance": (
        appended(MISTAKES, NEAR),
        "the tolerance rtol=1e-09, atol=1e-10 is wide: nearly is hardly beyond it, and no other",
    ),
    "a far too wide tolerance": (
        lambda c: [
            change(c, CHECKS, "what=", "atol=1e6, what="),
            append(c, MISTAKES, FAR + FAR.replace("nearly", "almost").replace("0.5", "0.9")),
        ],
        "rough_from_the_first and 2 more: a wrong result goes unnoticed in roughness.values: com",
        "roughness.values passes for any answer: compare all values with a reference, for inputs",
        "the tolerance rtol=1e-09, atol=1e+06 is wide: right answers use 0 of it, and no misconc",
        "the tolerance rtol=0, atol=1e+06 is wide: right answers use 0 of it, and no misconception",
    ),
    "too few accepted answers": (
        lambda c: (c.root / "tests/accepted/roughness/by_index.py").unlink(),
        "tests/accepted/roughness/: has 2 of 3 right answers: write 1 more",
    ),
    "an accepted answer that is refused": (
        changed("tests/accepted/roughness/numpy_diff.py", "return", "return 1 +"),
        "tests/accepted/roughness/numpy_diff.py: a right answer fails roughness.values: The",
    ),
    "an accepted answer that hangs": (
        appended(ACCEPTED, "\n\ndef roughness(values):\n    " + HANG),
        f"{ACCEPTED}: hangs: roughness is stopped after 0.9 s (seed",
    ),
    "an accepted answer twice": (
        lambda c: shutil.copy(c.root / ACCEPTED, c.root / ACCEPTED.replace("sorted", "still_sor")),
        f"roughness/still_sor_steps.py: repeats {ACCEPTED}: rem",
    ),
    "a check that is a matter of chance": (
        lambda c: (c.root / CHECKS).write_text(f"import pytest{CHANCE}", encoding="utf-8"),
        "test_roughness.py:7: roughness.values gives different verdicts (seed 1): make",
    ),
    "a wrong example": (
        lambda c: example(c, "    3.0", "    4.0"),
        f"{SOLUTION}:9: the example `roughness([1.0, 4.0, 2.0])` gives 3.0, not 4.0",
    ),
    "an example that raises": (
        lambda c: example(c, "2.0])\n", "2.0], 3)\n"),
        f"{SOLUTION}:9: the example `roughness([1.0, 4.0, 2.0], 3)` raises TypeError: rough",
    ),
    "an example that an accepted answer cannot run": (
        lambda c: [
            example(c, "([1.0, 4.0, 2.0])", "(values=[1.0, 4.0, 2.0])"),
            change(c, ACCEPTED, "values):", "steps):\n    values = steps"),
        ],
        f"{ACCEPTED}: a right answer fails in {SOLUTION}:9: the example `roughness(values=",
    ),
    "an example that hangs": (
        lambda c: example(c, "    >>> ", "    >>> while True: pass\n    >>> "),
        f"{SOLUTION}:9: the example `while True: pass` raises Stopped: did not end within 0.9 s",
    ),
    "a check that imports a solution": (
        changed(CHECKS, "    expect_close", "    import moving_average\n    expect_close"),
        f"{CHECKS}:24: a check uses a solution: write a reference of its own",
    ),
    "a check whose file imports a solution": (
        changed(CHECKS, "import pytest\n", "import moving_average\nimport pytest\n"),
        "7: a check uses a solution: write a reference of its own",
    ),
    "a check that imports from solutions/": (
        changed(
            CHECKS,
            "    expect_close",
            "    if False: from solutions.moving_average import x\n    expect_close",
        ),
        f"{CHECKS}:24: a check uses a solution: write a reference of its own",
    ),
    "a stub that does something": (
        changed(SOLUTION, "    ### END SOLUTION\n", "    ### END SOLUTION\n    return 0\n"),
        f"{STUB}: does not match the solution: run grade stubs roughness --force",
        "'failed' instead of 'not started': put all that a function does between the markers",
    ),
    "a check that reads a solution": (
        changed(CHECKS, "    expect_close", "    str('../solutions/x.py')\n    expect_close"),
        f"{CHECKS}:24: a check uses a solution: write a reference of its own",
    ),
    "a misconception that imports a solution": (
        appended(MISTAKES, BORROWS),
        f"{MISTAKES}:42: a misconception uses a solution: write here what it uses",
    ),
    "a check that finds solutions": (
        changed(
            CHECKS, "    expect_close", "    assert 'solutions', 'solutions/'\n    expect_close"
        ),
    ),
    "a check that asserts nothing, and says that it may": (
        lambda c: [append(c, CHECKS, ASKS_NOTHING), change(c, CHECKS, "points(2)", "points(1)")],
        f"{CHECKS}:29: roughness.more passes for any answer: compare all values",
    ),
    "checks that share state": (
        lambda c: [append(c, CHECKS, SHARES), change(c, CHECKS, "points(2)", "points(1)")],
        f"{CHECKS}:38: roughness.second passes only after another check has run: let each",
    ),
    "an accepted answer that cannot be imported": (
        appended(ACCEPTED, "\nnonsense\n"),
        f"{ACCEPTED}:5: NameError: name 'nonsense' is not defined",
    ),
    "checks without points": (
        appended(CHECKS, "".join(UNPAID.format(name) for name in ("one", "other"))),
        f"{CHECKS}:27: test_one has no points: add @pytest.mark.points(1)",
        f"{CHECKS}:32: test_other has no points: add @pytest.mark.points(1)",
    ),
    "misconceptions of no entry point": (
        lambda c: change(c, MISTAKES, *RENAMED) or change(c, MISTAKES, *RENAMED),
        f"{MISTAKES}: 'rough_upwards' replaces rough, which is not an entry point",
        f"{MISTAKES}: 'rough_range' replaces rough, which is not an entry point",
    ),
    "intermediate values without torch": (
        appended(
            MISTAKES,
            "\nfrom grader.misconceptions import values\n\n\n@values(of='roughness')\n"
            "def steps(values):\n    yield 'the first', values\n",
        ),
        f"{MISTAKES}: delete @values, or add torch to `preload`: only tensors are recorded",
    ),
    "broken answers beside a broken check": (
        lambda c: [
            append(c, CHECKS, UNPAID.format("one")),
            append(c, MISTAKES, "nonsense\n"),
            append(c, ACCEPTED, "nonsense\n"),
        ],
        f"{CHECKS}:27: test_one has no points: add @pytest.mark.points(1)",
        f"{MISTAKES}:38: NameError: name 'nonsense' is not defined",
        f"{ACCEPTED}:4: NameError: name 'nonsense' is not defined",
    ),
    "a long question": (
        changed(HINTS, "Count before", "Think.\n" * 12 + "---\nCount before"),
        f"{HINTS}: the question of hint 2 has 12 lines: use at most 11",
    ),
    "a hint that is a text": (
        changed(MISTAKES, "hint=1", 'hint="1"'),
        f"{MISTAKES}:10: ValueError: 'rough_upwards': hint is the number of a hint, not '1'",
    ),
    "an entry point of another kind": (
        changed("course.toml", 'roughness = "number"', 'roughness = "array"'),
        "the solution fails roughness.values: roughness(...) returned float 3.0",
    ),
    "a visible check that is not there": (
        changed("course.toml", SLUG, f'{SLUG}\nvisible = ["valeus"]'),
        "stage 'roughness': visible: there is no check 'valeus' (did you mean 'values'?)",
    ),
    "a forbidden name that is not there": (
        changed("course.toml", SLUG, f'{SLUG}\nforbidden = ["numpy.absolutee", "numpy.sum"]'),
        "forbidden: numpy has no 'absolutee' (did you mean 'absolute'?)",
    ),
    "parameters that a check does not take": (
        changed(CHECKS, '"values, expected"', '"value, expected"'),
        f"cannot be collected: In {CHECKS}::test_values: function uses no",
    ),
    "a check of another name, with a mark": (
        lambda c: [
            change(c, CHECKS, "submission.roughness", "submission.rough"),
            change(c, CHECKS, "def test_values", PAYS),
        ],
        f"{CHECKS}:25: AttributeError: rough is not an entry point of stage roughness (in rou",
    ),
    "a check of another name": (
        changed(CHECKS, "submission.roughness", "submission.rough"),
        f"{CHECKS}:24: AttributeError: rough is not an entry point of stage roughness (in rou",
    ),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestAssertRewriteWarning")  # of this pytest
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=[pytest.mark.slow] if at % 6 or "hangs" in fault else [])
        for at, fault in enumerate(FAULTS)
    ],
)
def test_a_fault_is_told_once_and_nothing_else(course: Course, fault: str) -> None:
    plant, *told = FAULTS[fault]
    plant(course)
    course = read_course(course.root / "course.toml")
    if "hangs" in fault:
        limits = replace(course.limits, call_seconds=0.4, load_seconds=0.9, stage_seconds=3)
        course = replace(course, limits=limits)
    problems = proven(course).problems
    assert len(problems) == len(told), problems
    for problem, words in zip(problems, told, strict=True):
        assert words in problem


def test_a_solution_imports_what_the_stage_requires_alone(course: Course) -> None:
    change(course, "course.toml", 'requires = ["moving_average"]\n', "")
    course = read_course(course.root / "course.toml")
    (problem,) = proven(course, "smooth").problems
    said = "imports moving_average: add it to the stage's `requires` in course.toml"
    assert problem == f"solutions/smooth.py:5: {said}"


def test_an_import_by_an_old_slug_names_the_new_one(course: Course) -> None:
    change(course, "course.toml", 'slug = "roughness"', 'slug = "roughness"\nformerly = "jumps"')
    append(course, SOLUTION, "from jumps import roughness\n")
    course = read_course(course.root / "course.toml")
    assert "No module named 'jumps': it is now roughness" in proven(course).problems[0]


@pytest.mark.parametrize(
    "old, new, told",
    [
        (
            "import moving_average\n",
            "import moving_average, half\n",
            "half from moving_average: add it",
        ),
        ("import numpy as np\n", "import numpy, torch\n", "torch: add the library to `preload`"),
    ],
)
def test_a_solution_imports_what_every_learner_has(
    course: Course, old: str, new: str, told: str
) -> None:
    change(course, "solutions/smooth.py", old, new)
    append(
        course, "solutions/moving_average.py", "def half(x: float) -> float:\n    return x / 2\n"
    )
    found = dict(not_required(course, course.stages))
    assert [stage.slug for stage in found] == ["smooth"]
    assert f"imports {told}" in "".join(found.values())


def test_a_misspelt_mark_is_told_and_not_warned_of(course: Course) -> None:
    change(course, CHECKS, "mark.points", "mark.point")
    done = grade("roughness", "--course", course.root, "--plain")
    said = "test_roughness.py:12: test_values has no points: write 'points' for 'point'"
    assert said in done.stdout and not done.stderr


def test_one_broken_file_leaves_the_other_stages_alone(course: Course) -> None:
    change(course, "tests/checks/test_smooth.py", "import numpy as np", "import numpyy as np")
    change(course, SOLUTION, "from itertools", "from itertool")
    proof = verify(course, course.stages, seeds=SEEDS)
    assert [stage.is_sound for stage in proof.stages] == [True, False, False]
    assert [len(stage.problems) for stage in proof.stages] == [0, 1, 1]
    assert proof.stages[1].problems[0] == (
        "tests/checks/test_smooth.py:7: ModuleNotFoundError: No module named 'numpyy'"
    )


def test_a_broken_solution_is_told_where_it_is_and_not_where_it_is_needed(course: Course) -> None:
    change(course, "solutions/moving_average.py", "import numpy as np", "import numpyy as np")
    proof = verify(course, course.stages, seeds=SEEDS)
    assert [stage.problems for stage in proof.stages] == [
        ("solutions/moving_average.py:3: ModuleNotFoundError: No module named 'numpyy'",),
        ("not run: it needs solutions/moving_average.py",),
        (),
    ]


def test_a_bare_assert_says_nothing_to_a_learner(course: Course) -> None:
    room = 'expected, axes="", what="the largest step"'
    change(course, CHECKS, f"expect_close(submission.roughness(values), {room})", "assert bare")
    change(course, CHECKS, "assert bare", "assert submission.roughness(values) == expected")
    change(course, ACCEPTED, "return steps", "return 1 + steps")
    # pytest would put words into the assert of a check that it runs within itself.
    told = json.loads(grade("roughness", "--course", course.root, "--json").stdout)
    bare, refused, problem = told["stages"][0]["problems"]
    assert bare.startswith("tests/checks/test_roughness.py:24: this assert tells the learner noth")
    said = "a right answer fails roughness.values: AssertionError in "
    assert refused == f"{ACCEPTED}: {said}tests/checks/test_roughness.py:24"
    assert problem.startswith(
        "tests/checks/test_roughness.py:24: AssertionError (for rough_upwards): "
    )
    assert problem.endswith("roughness.values has no message for the learner")


BY_LUCK = """

@pytest.mark.points(1)
{mark}
def test_chance(submission: Any, rand: Any) -> None:
    'Ten numbers have their largest step'
    values = list(map(float, {draw}))
    expect_close(submission.roughness(values), max(map(abs, np.diff(values))), axes="")
"""
CLAMPED = """

@misconception("clamped", replaces="roughness", says="You cut large steps off.", hint=1)
def clamped(values):
    return min(max((abs(b - a) for a, b in pairwise(values)), default=0.0), 3.0)
"""


MARK_RANDOM, ANY_SEED = "@pytest.mark.random", "np.random.default_rng().normal(size=10)"
NO_SEED = "roughness.chance uses different inputs each time: make them with rand"
LUCK = "the misconception clamped gets 0 or 1 points depending on the seed: give roughness.chance"


@pytest.mark.parametrize(
    "mark, draw, told",
    [
        (MARK_RANDOM, "rand(n=10)", LUCK),
        ("", "rand(n=10)", ""),  # the inputs do not follow the seed
        ("", ANY_SEED, NO_SEED),
        (MARK_RANDOM, ANY_SEED, NO_SEED),
    ],
)
def test_a_mistake_that_shows_with_some_seeds_only_is_told(
    course: Course, mark: str, draw: str, told: str
) -> None:
    """It shows only where two of ten numbers are far apart."""
    change(course, CHECKS, "import pytest\n", "import numpy as np\nimport pytest\n")
    change(course, "course.toml", "points = 2", "points = 3")
    append(course, CHECKS, BY_LUCK.format(mark=mark, draw=draw))
    append(course, MISTAKES, CLAMPED)
    course = read_course(course.root / "course.toml")
    [proof] = verify(course, [course.stage("roughness")], seeds=range(1, 21), per_answer=20).stages
    said = "\n".join(proof.problems)
    assert told in said and bool(told) == bool(said)


def test_a_check_that_does_not_compare_each_time_is_told(course: Course) -> None:
    turn = "    TURNS.append(1)\n    if len(TURNS) % 3:\n        return\n"
    change(course, CHECKS, "    expect_close", f"{turn}    expect_close")
    append(course, CHECKS, "\n\nTURNS = []\n")
    said = "roughness.values uses different inputs each time: make them with rand"
    assert any(said in problem for problem in proven(course).problems)


def test_what_the_author_prints_is_not_shown(course: Course, capfd: Capture) -> None:
    change(course, SOLUTION, "    return max", "    print('here')\n    return max")
    change(course, CHECKS, "    expect_close", "    print('there')\n    expect_close")
    proven(course)
    assert capfd.readouterr() == ("", "")


def test_a_seed_that_a_check_does_not_bear_is_named(course: Course) -> None:
    change(course, CHECKS, "@pytest.mark.points(2)", "@pytest.mark.random\n@pytest.mark.points(2)")
    change(course, CHECKS, "submission: Any, values", "submission: Any, seed: int, values")
    change(course, CHECKS, "    expect_close", "    assert seed % 2, 'odd'\n    expect_close")
    [proof] = verify(course, [course.stages[2]], seeds=range(1, 9)).stages
    assert any("of 8 seeds, first" in problem for problem in proof.problems), proof.problems


def test_a_check_that_the_stub_passes_tests_nothing(course: Course) -> None:
    more = '''

@pytest.mark.points(1)
def test_free(submission):
    """It is free"""
'''
    append(course, CHECKS, more)
    change(course, CHECKS, "points(2)", "points(1)")
    said = "roughness.free passes on the original stub: it does not test the learner's code"
    assert proven(course).problems == (f"tests/checks/test_roughness.py:28: {said}",)


# --- what is to be written yet, and what does not belong -----------------------------------------


def test_to_dos_are_listed_by_file_and_line_until_they_are_done(course: Course) -> None:
    change(course, SOLUTION, MARK, "    # todo: say why\n" + MARK)
    change(course, "hints/roughness.md", "Count before", "Todo: write. Count before")
    change(course, CHECKS, "import pytest", "import pytest  # TODO sort the todos")
    change(course, MISTAKES, '"""Known', '"""A todo list of TODOS. Known')
    shutil.copy(course.root / SOLUTION, course.root / "exercises/roughness.py")
    course = read_course(course.root / "course.toml")
    stub = read_stub(course.stages[2])
    (course.root / "exercises/roughness.py").write_text(stub, encoding="utf-8")
    proof = proven(course)
    assert proof.problems == () and not proof.is_sound
    assert [str(todo).partition(": ")[0] for todo in proof.todos] == [
        "solutions/roughness.py:12",
        "tests/checks/test_roughness.py:7",
        "hints/roughness.md:7",
    ]
    assert proof.todos[0].text == "# todo: say why"
    assert proven(course, "smooth").todos == ()


def test_what_to_fix_stands_below_what_is_to_be_written(course: Course) -> None:
    change(course, "hints/roughness.md", "Count before", "Todo: write. Count before")
    change(course, CHECKS, "points(2)", "points(3)")
    said = grade("roughness", "--course", course.root, "--plain").stdout
    assert 0 < said.find("to do: hints/roughness.md") < said.find("points") < said.find("NOT OK")


def test_files_of_no_stage_are_named(course: Course) -> None:
    files = [
        *("exercises/notes.txt", "hints/explore/rough.py", "hints/misconceptions/rough.py"),
        *("hints/predictions/rough.md", "hints/rough.md", "hints/traces/rough.py"),
        *("solutions/old.py", "tests/accepted/roughness/notes.md", "tests/checks/test_rough.py"),
        "tests/mutants/rough.toml",
    ]
    below = ["tests/accepted/rough/a.py", "tests/checks/more/test_a.py"]
    passing = ["solutions/__pycache__/a.pyc", "hints/.DS_Store"]
    write_files(course.root, dict.fromkeys([*files, *below, *passing], ""))
    shutil.copy(TINY.root.parents[2] / "checks" / "conftest.py", course.root / "tests/checks")
    named = sorted([*files, "tests/accepted/rough/", "tests/checks/more/"])
    assert [stray.partition(":")[0] for stray in strays(course)] == named


def test_two_stages_of_one_title_are_named(course: Course) -> None:
    twin = replace(course.stage("roughness"), title=course.stage("smooth").title)
    both = replace(course, stages=(course.stage("smooth"), twin))
    [(stage, said)] = twin_titles(both, both.stages)
    assert (stage, said) == (
        twin,
        "course.toml: stage 'roughness': has the title of 'smooth': give it another",
    )


def test_fixtures_that_the_grader_does_not_read_are_named(course: Course) -> None:
    (course.root / "tests/checks/conftest.py").write_text("import pytest\n", encoding="utf-8")
    [stray] = strays(course)
    assert stray.startswith("tests/checks/conftest.py: the grader never reads it: move its fix")


# --- the command ---------------------------------------------------------------------------------


def grade(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "grader", "verify", *words)


def test_the_screen_begins_its_summary_with_what_is_wrong(
    course: Course, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    change(course, CHECKS, "points(2)", "points(1)")
    code, shown, errors = say("verify", "roughness", "--course", str(course.root))
    assert code == 1 and errors == ""
    lines = [line.strip() for line in shown.splitlines() if line.strip()]
    assert "roughness: tolerances" in lines
    said = "roughness: tests/checks/test_roughness.py: its checks are worth 1 points,"
    assert any(line.startswith(said) for line in lines), lines
    assert lines[-1] == "Not proven: fix 1 of 1 stage."
    assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.parametrize("words", ["verify smooth", "suggest smooth", "preview smooth", "package"])
def test_outside_of_all_courses_an_authors_command_says_which_one_it_takes(
    course: Course, say: Say, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str
) -> None:
    monkeypatch.setenv("GRADE_COURSE", str(course.root))
    monkeypatch.chdir(tmp_path)
    assert f"so this takes the one in {course.root}; to take" in say(*words.split())[2]


def test_a_tolerance_fits_in_its_column(course: Course, say: Say) -> None:
    shown = say("verify", "moving_average", "--course", str(course.root))[1]
    [row] = [line for line in shown.splitlines() if "1e-09" in line]
    assert row.split()[:4] == ["values", "1e-09", "/", "1e-10"]


def test_plain_and_json_say_the_same(course: Course, say: Say) -> None:
    words = ("verify", "roughness", "--course", str(course.root))
    code, shown, _ = say(*words, "--plain")
    assert code == 0
    lines = [line.strip() for line in shown.splitlines()]
    assert "rough_range: caught by 1 of 1, named yes" in lines
    proven_at = lines.index("This stage is proven.")
    missing = "Not tried: small changes of the solutions (`grade verify --mutants`)."
    assert lines[proven_at + 1] == missing
    told = json.loads(say(*words, "--json")[1])
    assert told["course"] == "smoothing" and told["sound"] is True and told["strays"] == []
    [stage] = told["stages"]
    assert stage["slug"] == "roughness" and stage["seeds"] == 20
    assert [m["named"] for m in stage["misconceptions"]] == [
        m["id"] for m in stage["misconceptions"]
    ]
    assert stage["tolerances"][0]["nearest"] == "rough_range"


@pytest.mark.parametrize("when", [1, 4, 7])
def test_ctrl_c_ends_it_wherever_it_is(course: Course, when: int) -> None:
    def progress(slug: str, done: int, total: int) -> None:
        assert 0 < done <= total
        if done == when:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(course, [course.stages[2]], progress, seeds=SEEDS)


def test_ctrl_c_within_an_answer_is_no_answer(course: Course) -> None:
    append(course, MISTAKES, SLIP.replace("return mx(values)", "raise KeyboardInterrupt"))
    with pytest.raises(KeyboardInterrupt):
        proven(course)


@pytest.mark.parametrize("command", ["", "verify", "suggest roughness"])
def test_a_library_that_is_not_there_is_told(
    course: Course, refused: Typed, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    change(course, "course.toml", 'preload = ["numpy"]', 'preload = ["nunpy"]')
    monkeypatch.chdir(course.root)
    assert "course.toml: preload: 'nunpy' cannot be imported: Mod" in refused(*command.split())


def test_a_wrong_command_is_2(course: Course, capsys: Capture) -> None:
    assert main(["verify", "rough", "--course", str(course.root)]) == 2
    (course.root / "course.toml").write_text("nonsense", encoding="utf-8")
    assert main(["verify", "--course", str(course.root)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
