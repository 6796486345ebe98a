"""Answers that are alike are shown side by side, and nothing there accuses anybody."""

import re

from grader.classes.report.similar import similar_answers
from grader.classes.report.types import Alike, Similar

TITLES = {"fold": "Fold a sheet", "fly": "Let it fly"}
EVIL = '<script>alert(1)</script>\x1b\u202e"'


def alike(*students: str, stage: str = "fold", share: float = 0.9, size: int = 40) -> Alike:
    return Alike(stage, students, share, size, (f"by {students[0]}", f"by {students[1]}"))


def html(similar: Similar | None) -> str:
    return "".join(similar_answers(similar, TITLES, lambda name: f'<a href="#s1">{len(name)}</a>'))


def text(similar: Similar | None) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", html(similar)))


def test_a_pair_is_shown_with_its_stage_its_share_and_both_excerpts() -> None:
    said = text(Similar((alike("ann", "bob"),), 3))
    assert "A place to look, never a verdict." in said and "at most 3 students" in said
    assert "ann , bob : Fold a sheet 90%" in said
    assert "90% alike, 40 tokens of Python." in said
    assert "by ann" in said and "by bob" in said


def test_who_is_alike_in_more_stages_comes_first() -> None:
    once = alike("cas", "dan", size=900)
    twice = alike("ann", "bob"), alike("ann", "bob", stage="fly", share=1.0)
    said = text(Similar((once, *twice), 3))
    assert said.index("ann") < said.index("cas")
    assert "ann , bob : Fold a sheet 90%, Let it fly 100%" in said


def test_of_a_larger_group_all_are_named_and_two_are_quoted() -> None:
    said = text(Similar((alike("ann", "bob", "cas", share=1.0),), 3))
    assert "ann , bob , cas : Fold a sheet 100%" in said
    assert "by bob" in said and "by cas" not in said


def test_what_is_left_out_is_counted() -> None:
    many = tuple(alike(f"a{n}", f"b{n}") for n in range(120))
    page = Similar(many, 10, left_out=7)
    assert html(page).count("<details>") == 100
    assert "And 27 less similar pairs." in text(page)


def test_nothing_alike_and_nothing_compared_are_two_things() -> None:
    assert "No two answers are more alike" in text(Similar((), 3))
    assert "Not compared this time." in text(None) and "--similar" in text(None)


def test_nothing_of_a_strangers_is_markup() -> None:
    evil = Alike(EVIL, (EVIL, EVIL * 99), 1.0, 40, (EVIL, "line\n" * 9000))
    page = html(Similar((evil,), 3))
    assert "<script" not in page and "\x1b" not in page and "\u202e" not in page
    assert len(page) < 10_000


def test_who_was_not_compared_is_named() -> None:
    said = text(Similar((), 3, 0, tuple(f"{n}" for n in range(105))))
    assert "Not compared: 1 , 1 ," in said
    assert " and 5 more. Some of their code is very long" in said
