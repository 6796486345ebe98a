"""Sizes that do not fit get names that hold in every call that ends there, and only such."""

from collections.abc import Callable

import pytest

from grader.diagnosis.sizes import sizes_that_do_not_fit
from grader.run.error_words import plain_words
from grader.run.facts import Case, CaseFact, Ending

MEETING = "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton "
MEETING += "dimension 2"
RESHAPED = "shape '[{}, -1]' is invalid for input of size {}"
ROWS = "mat1 and mat2 shapes cannot be multiplied (10x{} and {}x8)"
CALL = "Mha(d_model={D}, heads={H})([B={B}, Tq={Tq}, D={D}], [B={B}, Tk={Tk}, D={D}])"
ONE = {"B": 2, "Tq": 5, "Tk": 7, "D": 12, "H": 3}
OTHER = {"B": 3, "Tq": 8, "Tk": 6, "D": 20, "H": 4}


def raised(message: str, call: str, check: str = "one", way: str = "line 3") -> CaseFact:
    text = f"RuntimeError: {message}\n  in words  {plain_words(message)}\n  call      {call}"
    return CaseFact(Case(f"{check} {call} {message}", check), Ending.RAISED, text, way=way)


def told(*cases: CaseFact) -> dict[str, str]:
    found = sizes_that_do_not_fit(cases)
    beginning = "Two sizes do not fit where your code stops: "
    return {check: each.text.removeprefix(beginning) for check, each in found.items()}


@pytest.mark.parametrize(
    "message, numbers, names",
    [
        (MEETING, lambda s: (s["Tk"], s["Tq"]), "Tk and Tq."),
        (ROWS, lambda s: (s["D"] // s["H"], s["D"]), "D / heads and D."),
        (
            RESHAPED,
            lambda s: (s["B"] * s["Tq"] * s["H"], s["B"] * s["Tk"] * s["D"]),
            "B * D * Tk and B * Tq * heads.",
        ),
    ],
)
def test_two_sizes_get_their_names(
    message: str, numbers: Callable[[dict[str, int]], tuple[int, int]], names: str
) -> None:
    cases = [raised(message.format(*numbers(s)), CALL.format(**s)) for s in (ONE, OTHER)]
    assert told(*cases) == {"one": names}


def test_a_size_that_is_a_names_by_chance_gets_none() -> None:
    first = raised(MEETING.format(5, 7), CALL.format(**ONE))
    assert told(first) == {}, "one call proves nothing"
    assert told(first, raised(MEETING.format(8, 9), CALL.format(**OTHER))) == {}
    alike = dict(OTHER, Tq=6)
    twice = [raised(MEETING.format(7, 12), CALL.format(**dict(ONE, Tq=7)))]
    assert told(*twice, raised(MEETING.format(6, 20), CALL.format(**alike))) == {}, "Tq or Tk"


def test_a_check_is_told_what_ends_its_first_failing_case() -> None:
    cases = [raised(MEETING.format(s["Tk"], s["Tq"]), CALL.format(**s)) for s in (ONE, OTHER)]
    unnamed = raised(MEETING.format(3, 2), "Mha(4, 2)([2 x 2 x 4], [2 x 3 x 4])", "two")
    elsewhere = raised(MEETING.format(7, 5), CALL.format(**ONE), "two", "line 9")
    wrong = CaseFact(Case("wrong", "two"), Ending.WRONG, "The output is wrong")
    for case in (elsewhere, wrong):
        assert told(*cases, unnamed, case) == {"one": "Tk and Tq.", "two": "Tk and Tq."}
        assert told(*cases, case, unnamed) == {"one": "Tk and Tq."}
