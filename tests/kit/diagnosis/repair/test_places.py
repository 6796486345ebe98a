"""The engine points at the expression of a learner's whose smallest edit makes the stage pass."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar
from unittest.mock import Mock

import pytest

from grader.diagnosis.repair.edits.edit import Edit
from grader.diagnosis.repair.places import Place, find_place, with_diagnosis
from grader.diagnosis.reserve import NOT_EVERY_CHECK, PERHAPS_NOT_EVERY_CHECK
from grader.engine import Engine, Request
from grader.run.collecting import with_checks
from grader.run.failures import Cancelled
from grader.run.workers import Interpreter
from grader.types.report import Diagnosis, Kind, Report
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE

Result = TypeVar("Result")
STAGE = COURSE.stage("split_heads")
DETACHED = """\
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    return x.detach().view(B, T, num_heads, -1).transpose(1, 2)
"""
RIGHT = DETACHED.replace(".detach()", "")
CELLS = ("%matplotlib inline\nprint('é')", f"# mine\n!ls\n{DETACHED}", "while True: pass")
LOOPS = f"n = 3\n{DETACHED}".replace(
    "    return", "    while n != 3:\n        pass\n    return"
).replace(".detach()", ".new_zeros(x.shape)")
# Right at first, wrong after some calls: with any edit what fails first passes by itself.
KEEPS = DETACHED.replace(".detach()", "[:, : 99 - 99 * (len(calls) > 20)]").replace(
    "    B, T", "    calls.append(0)\n    B, T"
)
ONES = DETACHED.replace("x.detach()", "(x @ torch.eye(D, dtype=x.dtype))")
NEEDS_MATH = RIGHT.replace("-1)", "D // math.gcd(D, num_heads))")
# What another cell does, and where it is pointed at.
BESIDE = {
    "a device": (
        ("import torch", "torch.set_default_device('meta')", ONES),
        "code cell 2, line 1: this statement",
    ),
    "a context": (
        ("import torch", ONES, "x = 1", "cast = torch.autocast('cpu')\ncast.__enter__()\nx = 2"),
        "code cell 4, line 2: this statement",
    ),
    "a name of a module": (
        ("import math\nimport torch", NEEDS_MATH, "n = 5\nmath = 3\nn = 6\nprint(n)"),
        "code cell 3, line 2: this statement",
    ),
    "a name that is deleted": (
        ("import math", NEEDS_MATH, "print(1)\ndel math"),
        "code cell 3, line 2: this statement",
    ),
    "a loop": (
        (
            "import math",
            NEEDS_MATH,
            "while False:\n    pass\nfor math in range(3):\n    print(math)",
        ),
        "code cell 3, line 3: this block",
    ),
    "another definition": (
        (RIGHT, "def split_heads(x):\n    return x"),
        "code cell 2, line 1: this definition, which replaces an earlier one",
    ),
}
SECONDS = 60.0  # far more than it takes: the machine may be busy

FILE = Submission("file", {STAGE.file_name: DETACHED.encode()})
NO_ERROR = DETACHED.replace('        raise ValueError("uneven")\n', "        pass\n")
SUBMISSIONS = {
    "two ways to fail": Submission(
        "two ways to fail", {STAGE.file_name: DETACHED.replace(".detach()", ".abs()").encode()}
    ),
    "two mistakes": Submission("two mistakes", {STAGE.file_name: NO_ERROR.encode()}),
    "file": FILE,
    "windows": Submission("windows", {STAGE.file_name: DETACHED.replace("\n", "\r\n").encode()}),
    "notebook": Submission("notebook", {}, cells=CELLS[:2]),
    **{name: Submission(name, {}, cells=cells) for name, (cells, _) in BESIDE.items()},
    "right": Submission("right", {STAGE.file_name: RIGHT.encode()}),
    "keeps": Submission("keeps", {STAGE.file_name: f"calls = []\n{KEEPS}".encode()}),
    "latin": Submission(
        "latin",
        {"a.py": b"", STAGE.file_name: f"{RIGHT}name = 'caf\xe9'\n".encode("latin-1")},
    ),
    "overwritten": Submission(
        "overwritten",
        {},
        cells=(RIGHT, "import torch\nx = torch.ones(1, 2, 4)\nsplit_heads = split_heads(x, 2)"),
    ),
    "loops": Submission("loops", {STAGE.file_name: LOOPS.encode()}),
}


def with_engine(interpreter: Interpreter, body: Callable[[Engine], Result]) -> Result:
    return with_checks(
        COURSE, [STAGE], lambda checks: body(Engine(COURSE, "cpu", interpreter, checks))
    )


@pytest.fixture(scope="module")
def reports(interpreter: Interpreter) -> dict[str, Report]:
    """Each submission's report with the place that was found; one with no time for it."""

    def body(engine: Engine) -> dict[str, Report]:
        found = {}
        for name, submission in SUBMISSIONS.items():
            request = Request(submission, (STAGE,), 1)
            report = engine.grade(request)
            found[name] = engine.with_place(request, report, SECONDS)
        request = Request(FILE, (STAGE,), 1)
        found["no time"] = engine.with_place(request, engine.grade(request), 0.0)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("grader.engine.VALUE_SECONDS", SECONDS)
        return with_engine(interpreter, body)


def place(report: Report) -> Diagnosis:
    """What every failing check is told."""
    failing = [check for check in report.stages[0].checks if check.score < check.max_score]
    [found] = {check.diagnosis for check in failing}
    assert found is not None
    return found


@pytest.mark.parametrize("name, line", [("file", 5), ("windows", 5), ("notebook", 7)])
def test_it_points_at_the_call_that_is_too_much(
    reports: dict[str, Report], name: str, line: int
) -> None:
    found = place(reports[name])
    source = "code cell 2" if name == "notebook" else "split_heads.py"
    first, code, caret = found.place.splitlines()
    assert first.startswith(f"{source}, line {line}: ")
    assert "detach" in first
    assert code[caret.index("^") : len(caret)] == ".detach()"
    assert found.repair.endswith("    return x.view(B, T, num_heads, -1).transpose(1, 2)")
    assert found.kind is Kind.SYMPTOM  # what the numbers tell stays beside the place


@pytest.mark.parametrize("name", BESIDE)
def test_what_another_cell_does_is_pointed_at(reports: dict[str, Report], name: str) -> None:
    found = reports[name].stages[0].causes[0].show.diagnosis
    assert found is not None and found.place.startswith(BESIDE[name][1])


def test_an_edit_that_only_makes_a_cell_fail_repairs_nothing(reports: dict[str, Report]) -> None:
    [cause] = reports["overwritten"].stages[0].causes
    found = cause.show.diagnosis
    assert found is None or "statement, which is not needed" in found.place


def test_of_two_mistakes_the_place_of_the_first_is_shown(reports: dict[str, Report]) -> None:
    stage = reports["two mistakes"].stages[0]
    first, *others = stage.causes
    assert others
    assert "detach, without which 1 failing check passes" in first.show.diagnosis.place
    assert not any(cause.show.diagnosis.place for cause in others if cause.show.diagnosis)


@pytest.mark.parametrize(("asks_little", "also"), [(True, ""), (True, "values"), (False, "")])
def test_an_edit_that_only_makes_a_shape_right_is_no_place(asks_little: bool, also: str) -> None:
    candidates = Mock(
        asks_little=asks_little,
        edits=lambda: [Edit("x.py", ((0, 1, "z"),), "this name", "name", 0, 1, 1.0)],
        text=lambda source: "y.view(2)",
        also_passing=lambda edit: frozenset([also] if also else []),
    )
    found, _ = find_place(candidates)
    assert (found is None) is (asks_little and not also)


def test_without_time_to_try_every_check_it_says_at_least(reports: dict[str, Report]) -> None:
    stage = reports["two mistakes"].stages[0]
    place = Place("x.py, line 1: this call, which is not needed", "", at_least=True)
    first = with_diagnosis(stage, stage.causes[0], place).causes[0].show
    assert first.diagnosis.place.endswith("without which at least 1 failing check passes")


@pytest.mark.parametrize(
    ("reserve", "said"),
    [
        (PERHAPS_NOT_EVERY_CHECK, "You detach x."),
        (NOT_EVERY_CHECK, "One small change makes every check of this stage pass:"),
    ],
)
def test_a_place_that_explains_every_check_leaves_nothing_open(
    reports: dict[str, Report], reserve: str, said: str
) -> None:
    stage = reports["two mistakes"].stages[0]
    text = "You detach x." + reserve
    named = tuple(replace(check, diagnosis=Diagnosis("detach", text)) for check in stage.checks)
    stage = replace(stage, checks=named)
    failing = frozenset(check.id for check in stage.causes[0].checks)
    place = Place("x.py, line 1: this call", "", also=failing)
    told = with_diagnosis(stage, stage.causes[0], place).causes[0].show.diagnosis
    assert told is not None and told.text == said


def test_what_fails_in_another_way_by_the_same_mistake_gets_the_place_too(
    reports: dict[str, Report],
) -> None:
    failing = [c for c in reports["two ways to fail"].stages[0].checks if c.score < c.max_score]
    assert len({check.way for check in failing}) > 1
    assert all(check.diagnosis and "abs" in check.diagnosis.place for check in failing)
    assert len(reports["two ways to fail"].stages[0].causes) == 1


def test_the_verdict_is_the_same(reports: dict[str, Report]) -> None:
    file = reports["file"]
    lost = [check.id for check in file.stages[0].checks if check.score < check.max_score]
    assert lost == ["split_heads.gradients"]
    assert not any("one small fix" in note for note in file.notes)


def test_a_stage_that_passes_has_no_place(reports: dict[str, Report]) -> None:
    assert reports["right"].passed
    assert not any(check.diagnosis for check in reports["right"].stages[0].checks)


def test_what_passes_by_itself_has_no_place(reports: dict[str, Report]) -> None:
    stage = reports["keeps"].stages[0]
    failing = [check.diagnosis for check in stage.checks if check.score < check.max_score]
    assert failing
    assert all(found and not found.place for found in failing)
    assert all("keeps something" in found.text for found in failing if found)


def test_a_file_that_would_be_right_in_utf_8_has_no_place(reports: dict[str, Report]) -> None:
    checks = reports["latin"].stages[0].checks
    assert all("not saved as UTF-8" in check.message for check in checks)
    assert not any(check.diagnosis for check in checks)


def test_without_time_it_gives_up_and_says_so(reports: dict[str, Report]) -> None:
    found = [check.diagnosis for check in reports["no time"].stages[0].checks]
    assert not any(each.place for each in found if each)
    assert any("one small fix" in note for note in reports["no time"].notes)


def test_edits_that_never_end_do_not_keep_it_from_the_right_one(reports: dict[str, Report]) -> None:
    assert "new_zeros" in place(reports["loops"]).place


def test_the_next_submission_does_not_get_the_worker_of_the_search(
    interpreter: Interpreter,
) -> None:
    """As in `grade watch`, where a worker is prepared before the place is looked for."""
    hopeless = Submission(
        "none", {STAGE.file_name: b"def split_heads(x, num_heads):\n    return x\n"}
    )

    def body(engine: Engine) -> tuple[Report, Report]:
        request = Request(hopeless, (STAGE,), 1)
        report = engine.grade(request)
        for _ in range(2):  # at first the prepared worker becomes the one that reads
            engine.interpreter.prepare()
            looked = engine.with_place(request, report, SECONDS)
        return looked, engine.grade(Request(SUBMISSIONS["right"], (STAGE,), 1))

    looked, following = with_engine(interpreter, body)
    assert not any(check.diagnosis.place for check in looked.stages[0].checks if check.diagnosis)
    assert following.passed


def test_a_search_can_be_cancelled(interpreter: Interpreter) -> None:
    def body(engine: Engine) -> None:
        request = Request(FILE, (STAGE,), 1)
        report = engine.grade(request)
        over = threading.Event()

        def cancel() -> None:
            while not over.wait(0.005):
                engine.cancel()

        other = threading.Thread(target=cancel)
        other.start()
        try:
            with pytest.raises(Cancelled):
                engine.with_place(request, report, SECONDS)
        finally:
            over.set()
            other.join()

    with_engine(interpreter, body)
