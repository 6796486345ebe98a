"""Which executed cells are the submission: what is needed, in its newest version, in order."""

from dataclasses import replace

import pytest

from grader.run.cells import Cell, defined, has_tests, may_define, needed, replayed, submitted
from grader.types.course import EntryPoint
from tests.kit.support.checkout import TINY

# moving_average, then smooth, which calls it, then roughness.


def chosen(*sources: str, graded: int | None = None, only: str = "") -> list[int]:
    """The numbers of the cells submitted for all stages or one; the first is number 1."""
    cells = [Cell(number, source) for number, source in enumerate(sources, start=1)]
    stages = [stage for stage in TINY.stages if only in ("", stage.slug)]
    return [cell.number for cell in submitted(TINY, stages, cells, graded)]


AVERAGE = "def moving_average(values, width):\n    return values"
SMOOTH = "def smooth(values):\n    return moving_average(values, 3)"


def test_cells_that_try_things_out_are_left_out() -> None:
    assert chosen(AVERAGE, "moving_average([1, 2], 2)", "x = 3\nwhile True: pass", SMOOTH) == [1, 4]


def test_the_newest_definition_counts_in_the_place_of_the_first() -> None:
    assert chosen(AVERAGE, SMOOTH, AVERAGE + "  # better") == [3, 2]


def test_a_newer_definition_never_runs_before_an_older_one_of_the_same_name() -> None:
    both = "def smooth(values):\n    return values\nSIZE = 3"
    newest = f"{AVERAGE}\ndef smooth(values):\n    return SIZE"
    assert chosen(AVERAGE, both, newest) == [2, 3]


@pytest.mark.parametrize(
    "helper",
    [
        "SIZE = 3",
        "def SIZE(): pass",
        "class SIZE: pass",
        "import os as SIZE",
        "from os import path as SIZE",
        "%matplotlib inline\nSIZE = 4",
        "if True:\n    SIZE = 5",
    ],
)
def test_what_a_definition_needs_comes_along(helper: str) -> None:
    needy = "def moving_average(values, width):\n    return [v * SIZE for v in values]"
    assert chosen("OTHER = 1", helper, needy) == [2, 3]


@pytest.mark.parametrize(
    "change, belongs",
    [
        ("moving_average.steps = 3", True),
        ("moving_average.steps[0] += 3", True),
        ("setattr(moving_average, 'steps', 3)", True),
        ("@add_to(moving_average)\ndef steps(): pass", True),
        ("other.steps = 3", False),
        ("moving_average.steps == 3", False),
        ("moving_average.run(width=3)", False),
        ("x = moving_average.steps", False),
    ],
)
def test_what_changes_a_definition_comes_along(change: str, belongs: bool) -> None:
    assert chosen(AVERAGE, "x = 1", change, SMOOTH) == [1, *[3] * belongs, 4]


def test_an_option_of_a_library_brings_no_cell_that_trains() -> None:
    average = "def moving_average(values, width):\n    return torch.tensor(values)"
    training = "torch.backends.cudnn.benchmark = True\nwhile True: pass"
    assert chosen("import torch", average, training, SMOOTH) == [1, 2, 4]


def test_what_is_needed_is_followed_to_its_end() -> None:
    needy = "def moving_average(values):\n    return one(values)"
    assert chosen("three = 1", "def two(): return three", "one = lambda v: two()", needy) == [
        *(1, 2, 3, 4)
    ]


def test_a_local_name_needs_nothing_from_another_cell() -> None:
    assert chosen("values = slow()", "width = 3", AVERAGE) == [3]


def test_an_import_is_taken_from_where_it_stands_first_and_not_from_an_experiment() -> None:
    needy = "def moving_average(values):\n    return np.mean(values)"
    assert chosen("import numpy as np", needy, "import numpy as np\nslow()") == [1, 2]


def test_an_entry_point_may_be_assigned() -> None:
    source = "moving_average = partial(helper, 2)"
    assert chosen("from functools import partial", "def helper(): pass", source) == [1, 2, 3]


def test_the_graded_cell_belongs_to_it_whatever_it_holds() -> None:
    broken = "%%grade smooth\ndef smooth(:"
    assert chosen(AVERAGE, broken, graded=2, only="smooth") == [1, 2]
    assert chosen(AVERAGE, broken) == [1]
    assert chosen("%%grade smooth\n", graded=1, only="smooth") == [1]


def test_a_graded_stage_is_not_answered_by_an_older_cell() -> None:
    typo = "%%grade smooth\ndef smoth(values):\n    return moving_average(values, 3)"
    older = f"%%grade smooth\n{SMOOTH}"
    assert chosen(AVERAGE, SMOOTH, older, typo, graded=4, only="smooth") == [1, 4]
    assert chosen(AVERAGE, SMOOTH, older, typo, only="smooth") == [1, 3]


def test_a_graded_cell_may_add_to_what_an_older_cell_defines() -> None:
    more = "%%grade smooth\nsmooth.width = 3"
    assert chosen(AVERAGE, SMOOTH, more, graded=3, only="smooth") == [1, 2, 3]
    chain = replayed(TINY, [TINY.stage("smooth")], [Cell(1, SMOOTH), Cell(2, more)], 2)
    exec("\n".join(cell.source for cell in chain).replace("%%", "#"), names := {})
    assert names["smooth"].width == 3


def test_a_class_may_be_extended_under_its_own_name() -> None:
    base, more = "class smooth: pass", "class smooth(smooth): width = 3"
    assert chosen(base, "x = 1", more, only="smooth") == [1, 3]
    assert chosen(base, more, more, only="smooth") == [1, 2, 3]
    assert chosen(base, f"%%grade smooth\n{more}", graded=2, only="smooth") == [1, 2]
    assert chosen("class smooth(smoother): pass", base, only="smooth") == [2]


def test_only_what_the_stages_ask_for_is_taken() -> None:
    later = "def roughness(values):\n    return smooth(values)"
    assert chosen(AVERAGE, SMOOTH, later, only="smooth") == [1, 2]
    assert chosen(AVERAGE, SMOOTH, later, only="moving_average") == [1]
    assert chosen(AVERAGE, SMOOTH, later, only="roughness") == [1, 2, 3]


def test_graded_cells_stand_in_the_order_of_the_course_wherever_they_ran() -> None:
    late = f"%%grade smooth\n{SMOOTH}"
    early = f"%%grade moving_average\n{AVERAGE}"
    assert chosen(late, early) == [2, 1]
    assert chosen(late, f"SIZE = 1\n{AVERAGE}", early, "def roughness(v): return SIZE") == [
        *(3, 2, 1, 4)
    ]


def test_a_definition_outside_a_graded_cell_supersedes_it_if_it_is_newer() -> None:
    assert chosen(f"%%grade moving_average\n{AVERAGE}", AVERAGE) == [2]
    assert chosen(AVERAGE, f"%%grade moving_average\n{AVERAGE}") == [2]


def test_the_stage_of_a_cell_is_that_of_its_first_line() -> None:
    assert Cell(1, "%%grade smooth\nx = 1").slug == "smooth"
    assert Cell(1, "\n%%grade  smooth \nx = 1").slug == "smooth"
    assert Cell(1, "%%grade\nx = 1").slug is None
    assert Cell(1, "x = 1\n%%grade smooth").slug is None


def test_what_cells_define() -> None:
    cells = [Cell(1, f"import os\n{AVERAGE}\nx = 1"), Cell(2, "broken("), Cell(3, "!ls")]
    assert defined(cells) == {"moving_average", "x"}


# --- tests that the learner writes ---------------------------------------------------------------

TESTS = replace(TINY.stages[2], entry_points=(EntryPoint("make_bird", (), is_fixture=True),))
BIRDS = replace(TINY, stages=(*TINY.stages[:2], TESTS))
WINGS = "def test_wings(make_bird):\n    assert make_bird().wings == PAIR"


def chosen_tests(*sources: str, graded: int | None = None) -> list[int]:
    cells = [Cell(number, source) for number, source in enumerate(sources, start=1)]
    return [cell.number for cell in submitted(BIRDS, [TESTS], cells, graded)]


def test_tests_are_taken_with_what_they_need() -> None:
    fixture = "@pytest.fixture\ndef bird(make_bird): return make_bird()"
    test = "def test_song(bird): assert bird.song"
    cells = ("import pytest", "PAIR = 2", "print(3)", fixture, WINGS, AVERAGE, test)
    assert chosen_tests(*cells) == [1, 2, 4, 5, 7]


def test_tests_of_a_cell_that_was_graded_anew_no_longer_count() -> None:
    old = f"%%grade {TESTS.slug}\n{WINGS}\ndef test_old(make_bird): assert 0"
    new = f"%%grade {TESTS.slug}\n{WINGS}"
    assert chosen_tests("PAIR = 2", old, new) == [1, 3]
    assert chosen_tests("PAIR = 2", old, new, graded=3) == [1, 3]
    assert chosen_tests(old, "x = 1", "PAIR = 2") == [1, 3]


def test_the_graded_cell_is_not_joined_by_other_tests() -> None:
    graded = f"%%grade {TESTS.slug}\n{WINGS}"
    assert chosen_tests("PAIR = 2", "def test_other(make_bird): pass", graded, graded=3) == [1, 3]


def test_whether_there_are_tests() -> None:
    def found(*sources: str) -> bool:
        return has_tests(TESTS, [Cell(number, source) for number, source in enumerate(sources)])

    assert found(WINGS)
    assert found("class SongTest: pass", "x = make_bird")
    assert not found("def test_mine(): pass")  # of something else
    assert not found("make_bird = 3")
    assert needed(BIRDS, TESTS, ("def test_mine(): pass",)) == ()
    assert needed(BIRDS, TESTS, ("y = 1", "PAIR = 2", WINGS)) == ("", "PAIR = 2", WINGS)


# --- all cells, each in its newest version -------------------------------------------------------


def all_of(*cells: Cell, graded: int | None = None, only: str = "") -> list[int]:
    stages = [stage for stage in TINY.stages if only in ("", stage.slug)]
    return [cell.number for cell in replayed(TINY, stages, cells, graded)]


def test_all_cells_are_replayed_in_the_order_in_which_they_ran() -> None:
    assert all_of(Cell(1, "x = 1"), Cell(2, AVERAGE), Cell(3, "x = 2"), Cell(4, AVERAGE)) == [
        *(1, 2, 3, 4)
    ]


def test_the_newest_version_of_a_cell_takes_the_place_of_its_first() -> None:
    cells = [Cell(1, "x = 1", "a"), Cell(2, "y = x", "b"), Cell(3, "x = 2", "a"), Cell(4, "z = 1")]
    assert all_of(*cells) == [3, 2, 4]


def test_the_graded_cell_comes_last_and_no_older_definition_answers_for_it() -> None:
    cells = [Cell(1, SMOOTH, "a"), Cell(2, AVERAGE, "b"), Cell(3, "%%grade smooth\noops", "a")]
    chosen = replayed(TINY, [TINY.stage("smooth")], cells, 3)
    assert [cell.number for cell in chosen] == [2, 0, 3]
    names: dict[str, object] = {"smooth": 1, "moving_average": 2}
    exec(chosen[1].source, names)
    assert "smooth" not in names and "moving_average" in names


def test_tests_of_a_cell_that_was_graded_anew_are_not_replayed() -> None:
    old, new = f"%%grade {TESTS.slug}\nx = 1", f"%%grade {TESTS.slug}\nx = 2"
    cells = [Cell(1, old), Cell(2, "y = 1"), Cell(3, new)]
    assert [cell.number for cell in replayed(BIRDS, [TESTS], cells)] == [2, 3]


@pytest.mark.parametrize("hidden", ["exec('SIZE = 3')", "globals()['SI' + 'ZE'] = 3"])
def test_a_name_that_no_cell_defines_may_come_from_one_that_hides_names(hidden: str) -> None:
    needy = "def moving_average(values, width):\n    return [v * SIZE for v in values]"
    assert chosen("OTHER = 1", hidden, needy) == [2, 3]
    assert chosen("SIZE = 3", hidden, needy, only="moving_average") == [1, 3]


@pytest.mark.parametrize(
    "star", ["from numpy import *", "try:\n    from numpy import *\nfinally: pass"]
)
def test_a_star_import_always_comes_along(star: str) -> None:
    needy = "def moving_average(values, width):\n    return sum(values)"
    assert chosen("OTHER = 1", star, needy) == [2, 3]


@pytest.mark.parametrize(
    "source, is_there",
    [
        ("smooth = 1", True),
        ("from mine import smooth", True),
        ("exec('def smooth(v): pass')", True),
        ("from mine import *\nsmooth", True),
        ("exec('x = 1')", False),
        ("smooth([1])", False),
    ],
)
def test_whether_a_cell_may_define_a_name(source: str, is_there: bool) -> None:
    assert may_define("smooth", [Cell(1, source)]) is is_there
