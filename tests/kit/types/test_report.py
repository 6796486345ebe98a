"""Why a stage fails: which checks share a cause, in what order, and which hint speaks to it."""

from dataclasses import replace
from typing import Any

from grader.types.report import (
    EARLIER,
    FORBIDDEN,
    CheckResult,
    Diagnosis,
    Outcome,
    StageResult,
    Status,
)


def check(name: str, way: str = "values, f", **more: Any) -> CheckResult:
    outcome = more.pop("outcome", Outcome.FAILED)
    return CheckResult(name, f"It {name}", outcome, 0, 2, f"message of {name}", way=way, **more)


def causes(*checks: CheckResult) -> list[list[str]]:
    """The checks of each cause by their names, those that are shown first."""
    return [[each.id for each in cause.checks] for cause in result(*checks).causes]


def result(*checks: CheckResult) -> StageResult:
    return StageResult("fold", "Fold", Status.FAILED, 0, 8, False, checks)


def test_checks_that_fail_in_one_way_share_a_cause() -> None:
    passed = check("passes", outcome=Outcome.PASSED)
    found = causes(check("a"), passed, check("b", "shape, f"), check("c"), check("d", "values, g"))
    assert found == [["a", "c"], ["b"], ["d"]]
    assert result(check("a"), check("c")).causes[0].lost == 4


def test_where_the_way_is_not_known_the_messages_tell() -> None:
    assert causes(check("a", ""), check("b", "")) == [["a"], ["b"]]


def test_the_main_idea_comes_before_an_edge_case() -> None:
    late = check("refuses", "no error, f"), check("gradients", "gradient, f")
    assert causes(*late, check("values")) == [["values"], ["gradients"], ["refuses"]]
    called = check("written without", FORBIDDEN)
    assert causes(check("values"), called)[0] == ["written without"]
    ours = check("broken", "", outcome=Outcome.ERROR)
    assert causes(ours, *late)[-1] == ["broken"]


def test_a_small_input_is_shown_but_not_a_single_number() -> None:
    sizes = {"large": 48, "one": 1, "small": 6, "smaller": 4}
    assert causes(*(check(name, size=size) for name, size in sizes.items()))[0][0] == "small"
    shapes = check("large", "shape, f", size=48), check("small", "shape, f", size=6)
    assert causes(*shapes)[0][0] == "large", "of a shape the author's first example tells more"


def test_one_diagnosis_is_one_cause_and_so_is_one_place() -> None:
    named = Diagnosis("thirds", "You fold in thirds.", 3)
    symptom = Diagnosis("symptom:turned", "It is turned.", place="fold.py, line 2")
    placed = Diagnosis("place:", "Here:", place="fold.py, line 2")
    one, other = check("a", size=4, diagnosis=named), check("b", "shape, f", diagnosis=named)
    assert causes(one, check("c"), other) == [["a", "b"], ["c"]]
    both = check("a", diagnosis=placed), check("b", "shape, f", diagnosis=symptom)
    assert causes(*both) == [["b", "a"]], "what says most is shown"


def test_in_an_exam_a_message_says_what_is_wrong_and_no_more() -> None:
    parts = [
        "NameError: sheet",
        "  in words  nothing here is called sheet",
        "  fold.py, line 2, in fold",
        "    return sheet",
        "  call      fold(4)",
        "  look at   fold.py, lines 1 to 2, in fold",
        "       1  # no sheet",
        "       2  return sheet",
    ]
    exam = replace(result(replace(check("a"), message="\n".join(parts))), is_exam=True)
    (told,) = exam.for_students.checks
    assert told.message.split("\n") == [parts[0], *parts[2:5]]


def test_a_hint_follows_the_failure() -> None:
    named = Diagnosis("thirds", "You fold in thirds.", 3)
    assert result(check("a", hint=2), check("b", diagnosis=named)).advised == Diagnosis(
        "a", 'the check "It a" fails. message of a', 2
    )
    torn = replace(check("a", hint=2), message="SyntaxError: '('\n  fold.py, line 2")
    assert result(torn).advised == Diagnosis("a", """the check "It a" fails. SyntaxError: '('""", 2)
    unloaded = replace(torn, message="fold.py cannot be imported. SyntaxError")
    assert result(unloaded).advised is None, "no hint is about that"
    assert result(check("a", diagnosis=named, hint=2)).advised is named
    assert result(check("a")).advised is None
    assert result(check("a", EARLIER, hint=2)).advised is None
