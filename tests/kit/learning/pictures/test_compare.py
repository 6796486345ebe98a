"""Which numbers of a trace are marked: those that differ from the solution's, and those changed."""

from dataclasses import replace

from grader.learning.pictures.compare import compare
from grader.learning.pictures.types import Axis, Block, Rows, Trace, TracedStep

NAN, INF = float("nan"), float("inf")


def step(rows: Rows, name: str = "weights") -> TracedStep:
    return TracedStep(name, (Axis("T", len(rows)), Axis("D", len(rows[0]))), (Block((), rows),))


def trace(*parts: TracedStep | str) -> Trace:
    return Trace("fold", "Fold", parts)


def wrong(mine: TracedStep, right: TracedStep) -> set[tuple[int, int, int]] | None:
    """The places that are marked as wrong; None if the step is taken as right."""
    (found,) = compare(trace(mine), trace(right), None).steps
    assert found is not None
    return None if found.right is None else set(found.wrong)


def test_numbers_that_differ_are_wrong_and_rounding_is_not() -> None:
    assert wrong(step(((1.0, 2.0),)), step(((1.001, 3.0),))) == {(0, 0, 1)}
    assert wrong(step(((1.0, 2e-5),)), step(((1.0, 0.0),))) is None


def test_infinities_nan_and_booleans_are_compared_as_they_are() -> None:
    assert wrong(step(((NAN, INF, -INF),)), step(((NAN, INF, INF),))) == {(0, 0, 2)}
    assert wrong(step(((NAN,),)), step(((0.0,),))) == {(0, 0, 0)}
    assert wrong(step(((True, False),)), step(((True, True),))) == {(0, 0, 1)}
    assert wrong(step(((1.0,),)), step(((True,),))) is None


def test_other_axes_are_wrong_as_a_whole() -> None:
    assert wrong(step(((1.0, 2.0),)), step(((1.0,), (2.0,)))) == set()


def test_what_right_answers_differ_in_is_not_compared() -> None:
    assert wrong(step(((1.0,),)), replace(step(((9.0,),)), compare=False)) is None


def test_a_step_is_held_against_the_one_of_its_name_and_place_alone() -> None:
    right = trace("A word.", step(((1.0,),)), step(((2.0,),), "output"))
    other = compare(trace("Another.", step(((7.0,),), "scores"), step(((7.0,),))), right, None)
    assert other.first_wrong is None
    longer = compare(trace("A word.", step(((7.0,),))), right, None)
    assert longer.first_wrong is not None and longer.steps[0] is None


def test_the_first_wrong_step_is_the_first_in_order() -> None:
    mine = trace(step(((1.0,),), "x"), step(((7.0,),), "scores"), step(((8.0,),)))
    right = trace(step(((1.0,),), "x"), step(((2.0,),), "scores"), step(((3.0,),)))
    found = compare(mine, right, None)
    assert found.first_wrong is not None and found.first_wrong.name == "scores"
    assert compare(right, right, None).first_wrong is None


def test_what_the_last_save_changed_is_marked_apart_from_what_is_wrong() -> None:
    now, before = trace(step(((1.0, 5.0),))), trace(step(((1.0, 4.0),)))
    found = compare(now, now, before)
    assert found.any_changed and found.first_wrong is None
    assert found.steps[0] is not None and found.steps[0].changed == {(0, 0, 1)}
    assert not compare(now, None, None).is_compared
