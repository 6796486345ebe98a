"""Whose function answers: the learner's, a swapped one, or the course's for one not yet written."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from grader.learning.explore.example import read_explore
from grader.learning.explore.explorer import Explorer
from grader.read.stubs import read_stub
from grader.run.solutions import solution_files
from grader.run.workers import Interpreter
from grader.types.errors import KitError
from grader.types.submission import Submission
from tests.kit.support.checkout import TINY

SMOOTH = TINY.stage("smooth")
START = ["1 2 6", 1, 0]  # a width of 2, once
SOLVED = Submission("solved", solution_files(TINY))
STUBS = Submission("stubs", {s.file_name: read_stub(s).encode() for s in TINY.stages})
ALL_ZERO = b"import numpy\ndef moving_average(values, width):\n    return numpy.zeros(2)\n"


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    with Interpreter(TINY.preload, TINY.limits, gpu=False) as found:
        yield found


@pytest.fixture(scope="module")
def explorer(interpreter: Interpreter) -> Explorer:
    return Explorer(TINY, SMOOTH, read_explore(SMOOTH), interpreter)


def rows(run: dict[str, Any]) -> dict[str, list[float]]:
    return {part["name"]: part["blocks"][0]["rows"][0] for part in run["parts"][:4]}


def test_the_learners_functions_compute_it(explorer: Explorer) -> None:
    changed = replace(SOLVED, files={**SOLVED.files, "moving_average.py": ALL_ZERO})
    run = explorer.run(changed, START, "")
    assert rows(run)["once"] == [0, 0]
    assert run["whose"] == {"moving_average": "yours", "smooth": "yours"}
    assert run["parts"][-1] == "That was all."
    assert rows(explorer.run(SOLVED, ["4 8", 0, 1], ""))["once"] == [4, 8]


TALKS = b"\nimport os\nprint(os.getpid())\n"
ENDS = b"""
solution = moving_average
def moving_average(values, width):
    return solution(values, width) if width > 1 else __import__("os")._exit(0)
"""


def test_a_submission_is_imported_once_for_all_of_its_runs(explorer: Explorer) -> None:
    name = "moving_average.py"
    talks, ends = (
        replace(SOLVED, files={**SOLVED.files, name: SOLVED.files[name] + more})
        for more in (TALKS, ENDS)
    )
    first, second = explorer.run(talks, START, ""), explorer.run(talks, ["1 2 6", 0, 1], "")
    assert first["printed"] == second["printed"] != ""
    assert rows(explorer.run(ends, START, ""))["once"] == [1.5, 4]
    assert "ended its Python process" in explorer.run(ends, ["1 2 6", 0, 0], "")["stop"]["message"]
    assert rows(explorer.run(ends, START, ""))["once"] == [1.5, 4]
    assert explorer.run(talks, START, "")["printed"] != first["printed"]


def test_what_is_not_written_is_the_courses_own(explorer: Explorer) -> None:
    run = explorer.run(STUBS, START, "")
    assert rows(run)["smooth"] == [1.5, 4] and run["stop"] is None
    assert run["whose"] == {"moving_average": "course", "smooth": "course"}


def test_a_students_copy_has_none_so_it_stops(interpreter: Interpreter) -> None:
    partial = Explorer(replace(TINY, is_partial=True), SMOOTH, read_explore(SMOOTH), interpreter)
    run = partial.run(STUBS, START, "")
    assert (run["stop"]["function"], run["stop"]["not_written"]) == ("moving_average", True)
    assert not any(swap["id"].startswith("course.") for swap in partial.swaps)


def test_a_known_mistake_can_be_swapped_in(explorer: Explorer) -> None:
    run = explorer.run(SOLVED, ["1 2 6", 1, 1], "smooth_once")
    assert rows(run)["smooth"] == [1.5, 4]
    assert run["whose"] == {"moving_average": "yours", "smooth": "swapped"}
    assert rows(explorer.run(SOLVED, ["1 2 6", 1, 1], ""))["smooth"] == [2.75]
    [swap] = [swap for swap in explorer.swaps if swap["id"] == "smooth_once"]
    assert (swap["function"], swap["label"]) == ("smooth", "smooth once")
    assert swap["says"].startswith("You average once")


def test_the_courses_own_can_be_swapped_in(explorer: Explorer) -> None:
    broken = replace(SOLVED, files={**SOLVED.files, "moving_average.py": ALL_ZERO})
    run = explorer.run(broken, START, "course.moving_average")
    assert rows(run)["once"] == [1.5, 4]


def test_code_that_raises_ends_the_steps_with_the_kits_words(explorer: Explorer) -> None:
    lines = (b"def moving_average(values, width):", b"print('\\u202ehere')", b"return values + no")
    raises = b"\n    ".join(lines)
    broken = replace(SOLVED, files={**SOLVED.files, "moving_average.py": raises})
    run = explorer.run(broken, START, "")
    assert run["stop"]["function"] == "moving_average" and run["printed"] == r"\u202ehere"
    assert "moving_average.py, line 3" in run["stop"]["message"]
    assert "Traceback" not in run["stop"]["message"]
    assert [part["name"] for part in run["parts"]] == ["values"]


def test_a_swapped_function_that_raises_is_named_though_nothing_is_written(
    explorer: Explorer,
) -> None:
    run = explorer.run(STUBS, ["1", 1, 0], "course.moving_average")  # wider than the numbers
    assert run["stop"]["function"] == "moving_average"
    assert run["stop"]["message"].startswith("ValueError: width=2")
    assert not run["stop"]["not_written"]


def test_what_json_cannot_hold_is_a_word(explorer: Explorer) -> None:
    run = explorer.run(SOLVED, START, "")
    assert rows(run)["odd"] == ["nan", "inf"]
    json.dumps(run, allow_nan=False)


@pytest.mark.parametrize(
    "settings, swap, said",
    [
        (["1"], "", "there are 3 controls"),
        (["1", 2, 0], "", "Width: there is no such value"),
        (["1", -1, 0], "", "Width: there is no such value"),
        (["1", True, 0], "", "Width: there is no such value"),
        (["1", "1", 0], "", "Width: there is no such value"),
        (["1" * 201, 1, 0], "", "Numbers: type at most 200 characters"),
        ([1, 1, 0], "", "Numbers: type at most 200 characters"),
        (START, "smooth_thrice", "unknown swap 'smooth_thrice'"),
        (START, "course.open", "unknown swap 'course.open'"),
    ],
)
def test_other_settings_are_refused(
    explorer: Explorer, settings: list[Any], swap: str, said: str
) -> None:
    with pytest.raises(KitError) as error:
        explorer.run(SOLVED, settings, swap)
    assert said in str(error.value)
