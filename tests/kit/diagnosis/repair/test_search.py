"""The search: what is tried, in what order, and when it gives up."""

from types import SimpleNamespace
from typing import Any

import pytest

from grader.diagnosis.repair.edits.edit import Edit
from grader.diagnosis.repair.places import place_of, search


def edit(new: str, start: int = 0, end: int = 0) -> Edit:
    return Edit("a.py", ((start, end, new),), "this name", "name", start, end, 1.0)


EDITS = [edit("a"), edit("b"), edit("c")]


def tried(helps: Any, passes: Any, has_time: Any) -> Any:
    """What a search finds among these edits."""
    known = {"edits": lambda: EDITS, "helps": helps, "passes": passes, "has_time": has_time}
    candidates: Any = SimpleNamespace(first=["a failing case"], **known)
    return search(candidates)


def test_the_first_edit_with_which_everything_passes_is_found() -> None:
    asked: list[str] = []

    def passes(each: Edit) -> bool:
        asked.append(each.parts[0][2])
        return asked[-1] == "c"

    assert tried(lambda each: each != EDITS[0], passes, lambda: True) == (EDITS[2], False)
    assert asked == ["b", "c"]


def test_nothing_is_found_where_nothing_passes() -> None:
    assert tried(lambda each: True, lambda each: False, lambda: True) == (None, False)


def test_it_gives_up_when_the_time_is_up() -> None:
    times, looked = iter([True, True, False]), []
    found = tried(looked.append, lambda each: True, lambda: next(times))  # which never helps
    assert (found, looked) == ((None, True), EDITS[:2])


def test_a_place_marks_the_expression_in_its_line() -> None:
    text = "def f(x):\n    y = x.sum(1)\n    return y\n"
    at = text.index("1)")
    edit = Edit("a.py", ((at, at + 1, "-1"),), "this axis", "axis", text.index("x."), at + 2, 1.0)
    place = place_of(edit, text)
    assert place.where == (
        "a.py, line 2: this axis\n"
        "    y = x.sum(1)\n"
        "        ^^^^^^^^"
    )  # fmt: skip
    assert place.repaired == "a.py, line 2:\n    y = x.sum(-1)"


def test_of_an_expression_of_several_lines_the_first_is_marked() -> None:
    text = "def f(x):\n    return (\n        x.sum(1)\n    )\n"
    found = Edit("a.py", ((0, 3, "def"),), "this", "name", text.index("return"), len(text) - 1, 1.0)
    assert place_of(found, text).where.splitlines()[1:] == ["    return (", "    ^^^^^^^^"]


def test_the_uses_of_a_renamed_parameter_are_no_further_places() -> None:
    parts = ((6, 7, "y"), (10, 11, "y"))
    for rule, more in (("signature", ""), ("axis", ", and 1 more like it")):
        place = place_of(Edit("a.py", parts, "this", rule, 6, 7, 1.0), "def f(x): x")
        assert place.where.splitlines()[0] == f"a.py, line 1: this{more}"


@pytest.mark.parametrize("before", ["", "y" * 90 + " + "])
def test_a_long_line_is_cut_where_nothing_is_marked(before: str) -> None:
    text = f"a = {before}{'x' * 60}.sum(1) + {'z' * 60}\n"
    start = text.index("x")
    found = Edit("a.py", ((0, 1, "a"),), "this", "name", start, text.index(" + z"), 1.0)
    _, code, caret = place_of(found, text).where.splitlines()
    assert max(len(code), len(caret)) <= 72
    assert code[caret.index("^") : len(caret)].startswith("x" * 56)


def test_before_a_mark_at_the_end_of_a_long_line_stand_whole_words() -> None:
    text = f"    def f(self, {'x, ' * 20}need=False):\n"
    at = text.index("False")
    found = Edit("a.py", ((at, at + 5, "True"),), "this", "default", at, at + 5, 1.0)
    _, code, caret = place_of(found, text).where.splitlines()
    assert code == f"    ... {'x, ' * 16}need=False):"
    assert code[caret.index("^") : len(caret)] == "False"


@pytest.mark.parametrize("after", ["", ".flatten(2) + z"])
def test_what_is_changed_at_the_end_of_a_long_expression_is_shown(after: str) -> None:
    text = f"    y = {'x' * 90}.unsqueeze(2){after}\n"
    start, at = text.index("x"), text.index("2)")
    found = Edit("a.py", ((at, at + 1, "1"),), "the axis", "axis", start, at + 2, 1.0)
    _, code, caret = place_of(found, text).where.splitlines()
    assert max(len(code), len(caret)) <= 72
    assert code[caret.index("^") : len(caret)].endswith("xx.unsqueeze(2)")
    assert code.startswith("    ... x")
