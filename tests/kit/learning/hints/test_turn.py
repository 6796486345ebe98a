"""Which hint is next: the one about the mistake, an answer that is due, or a new question."""

import pytest

from grader.learning.hints.turn import Turn, chosen_turn, last_turn, next_turn
from grader.learning.hints.types import Hints, Part, Rung
from grader.types.progress import Advice, Progress, StageProgress

ASKING = Hints("Fold", tuple(Rung(f"Step {n}?", "Try it.", "So.") for n in range(1, 5)))
TELLING = Hints("Fold", tuple(Rung(f"Step {n}", "Like this.") for n in range(1, 5)))
Q, A, W = Part.QUESTION, Part.ANSWER, Part.WHOLE


def walked(hints: Hints, now: Progress, presses: int) -> list[tuple[int, Part]]:
    """What the next presses show."""
    shown = []
    for _ in range(presses):
        turn = next_turn(hints, now.stage("fold"))
        shown.append((turn.number, turn.part))
        now = turn.remembered(now, "fold")
    return shown


def test_a_question_then_its_answer_then_the_next_hint() -> None:
    both = [(number, part) for number in range(1, 5) for part in (Q, A)]
    assert walked(ASKING, Progress(), 10) == [*both, (4, W), (4, W)]


def test_a_hint_without_an_answer_is_whole() -> None:
    assert walked(TELLING, Progress(), 5) == [(1, W), (2, W), (3, W), (4, W), (4, W)]
    some = Hints("Fold", (*ASKING.rungs[:2], *TELLING.rungs[2:]))
    assert walked(some, Progress(), 5) == [(1, Q), (1, A), (2, Q), (2, A), (3, W)]


def test_after_progress_of_an_older_version_comes_the_next_question() -> None:
    assert walked(ASKING, Progress({"fold": StageProgress(rungs=2)}), 2) == [(3, Q), (3, A)]


@pytest.mark.parametrize(("rungs", "asked", "after"), [(0, 0, 4), (2, 2, 4), (4, 4, 4), (4, 0, 4)])
def test_the_hint_about_the_mistake_asks_first_and_answers_next(
    rungs: int, asked: int, after: int
) -> None:
    known = StageProgress(rungs, asked=asked, advice=Advice(3, "uneven", "You fold at a third."))
    assert next_turn(ASKING, known) == Turn(3, Q, "You fold at a third.")
    assert next_turn(TELLING, known) == Turn(3, W, "You fold at a third.")
    shown = walked(ASKING, Progress({"fold": known}), 3)
    assert shown == [(3, Q), (3, A), (after, Q if rungs < 4 else W)]


def test_the_question_is_repeated_for_the_mistake_that_it_is_about() -> None:
    known = StageProgress(2, asked=2, advice=Advice(2, "torn", "You tear the sheet."))
    assert walked(ASKING, Progress({"fold": known}), 3) == [(2, Q), (2, A), (3, Q)]


def test_the_last_one_again_as_far_as_it_was_shown() -> None:
    assert last_turn(ASKING, StageProgress()) == Turn(1, Q)
    assert last_turn(ASKING, StageProgress(2, asked=2)) == Turn(2, Q)
    assert last_turn(ASKING, StageProgress(4, asked=2)) == Turn(2, Q)
    assert last_turn(ASKING, StageProgress(2)) == Turn(2, W)
    assert last_turn(TELLING, StageProgress()) == Turn(1, W)


def test_a_chosen_one_is_whole_if_it_was_seen() -> None:
    known = StageProgress(2, asked=2)
    assert [chosen_turn(ASKING, known, n) for n in (1, 2, 3)] == [Turn(1), Turn(2), Turn(3, Q)]
    assert chosen_turn(ASKING, StageProgress(gave_up=True), 3) == Turn(3)


def test_an_earlier_one_seen_again_leaves_the_answer_due() -> None:
    now = Turn(3, Q).remembered(Progress(), "fold")
    assert walked(ASKING, Turn(1).remembered(now, "fold"), 1) == [(3, A)]
    assert walked(ASKING, Turn(3).remembered(now, "fold"), 1) == [(4, Q)]


def test_a_course_with_fewer_hints_than_were_seen() -> None:
    known = StageProgress(rungs=9, asked=9)
    assert next_turn(ASKING, known) == last_turn(ASKING, known) == Turn(4)
