"""Which edits of a submission are tried, and in which order."""

import pytest

from grader.diagnosis.repair import places
from grader.diagnosis.repair.candidates import Candidates, asks_little, lines_near
from grader.engine import Engine, Request
from grader.run.collecting import with_checks
from grader.run.session import Checks
from grader.run.solutions import solution_files
from grader.run.workers import Interpreter
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE

STAGE = COURSE.stage("multi_head_attention")
RIGHT = "weights @ v  #"
WRONG = "weights @ v + weights.mean()  #"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", set()),
        ("Your forward gets q right (a.py, line 3). None equals what comes next.", {3, 4, 5}),
        (
            "It gets q right (a.py, line 3), but not k. In a.py, line 6, it is twice that",
            {3, 4, 5, 6},
        ),
        ("It gets q right (a.py, line 9), but not k. In a.py, line 6, it is twice that", {6}),
        ("It gets q right (a.py, line 1), but not k. In a.py, line 30", {*range(22, 31)}),
        ("In data.py, line 3, and b.py, line 4", set()),
    ],
)
def test_a_text_tells_between_which_lines_to_look(text: str, lines: set[int]) -> None:
    assert lines_near("a.py", [text]) == lines


@pytest.mark.parametrize(
    ("cause", "others", "expected"),
    [
        ({"shape"}, 0, False),
        ({"shape"}, 1, True),
        ({"shape", "values"}, 2, False),
        ({"shape", "itself"}, 3, True),
        ({"values"}, 3, False),
    ],
)
def test_few_checks_that_a_shape_passes_ask_little(
    cause: set[str], others: int, expected: bool
) -> None:
    assert asks_little(cause, {"shape"}, others) is expected


def test_edits_near_the_first_wrong_value_are_tried_first(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = solution_files(COURSE)
    text = files[STAGE.file_name].decode().replace(RIGHT, WRONG)
    wrong = Submission("wrong", {**files, STAGE.file_name: text.encode()})
    tried: list[int] = []

    def find_place(candidates: Candidates) -> tuple[None, bool]:
        tried.extend(text.count("\n", 0, edit.start) + 1 for edit in candidates.edits())
        return None, False

    def body(checks: Checks) -> None:
        engine, request = Engine(COURSE, "cpu", interpreter, checks), Request(wrong, (STAGE,), 1)
        engine.with_place(request, engine.grade(request))

    monkeypatch.setattr(places, "find_place", find_place)
    with_checks(COURSE, [*COURSE.required(STAGE), STAGE], body)
    line = text[: text.index(WRONG)].count("\n") + 1
    assert line in tried[:5]
