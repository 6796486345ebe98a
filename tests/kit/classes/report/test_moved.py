"""How a class moved from one assignment to the next, student by student."""

from dataclasses import replace

from grader.classes.folder.types import LedgerEntry
from grader.classes.report.moved import MistakeMoved, StageMoved, moved
from grader.types.report import Diagnosis, Outcome, Status
from tests.kit.classes.report.test_page import FLY, FOLD, LOST, UNREAD, check, entry, stage

GOOD = check("hold", Outcome.PASSED)
WITH_NAME = replace(check("hold", Outcome.FAILED, "it tears"), diagnosis=None)


def fold(student: str, passes: bool, points: float, mistake: str = "") -> LedgerEntry:
    """A verdict on folding, with so many of 15 points."""
    named = replace(WITH_NAME, diagnosis=Diagnosis(mistake, f"You {mistake}.")) if mistake else GOOD
    status = Status.PASSED if passes else Status.FAILED
    found = entry(student, stage(FOLD, status, named))
    assert found.report is not None
    return replace(found, report=replace(found.report, score=points, max_score=15))


BEFORE = [
    fold("Ann", False, 9, "tear"),
    fold("bob", False, 12, "tear"),
    fold("cas", True, 15),
    fold("dan", True, 15),
    fold("una", True, 15),  # UNREAD now
    LOST,
]
NOW = [
    fold("ann", False, 12, "tear"),
    fold("bob", True, 10.5),
    fold("cas", False, 9, "fly"),
    fold("eve", True, 15),
    UNREAD,
]


def test_who_rose_who_fell_and_what_became_of_the_mistakes() -> None:
    found = moved("week-1", BEFORE, NOW)
    assert (found.name, found.students) == ("week-1", 3)  # Ann is ann
    assert (found.before, found.now) == (0.8, 0.7)
    assert (found.rose, found.fell) == (1, 2)  # from 12 to 10.5 of 15 is a tenth
    assert found.fallen == (("cas", 1, 0.6), ("bob", 0.8, 0.7))
    assert found.stages == (StageMoved("fold", FOLD.title, 1, 1),)
    assert found.mistakes == (
        MistakeMoved("fold", "You tear.", 2, 1, 0),
        MistakeMoved("fold", "You fly.", 0, 0, 1),
    )


def test_of_stages_in_one_assignment_only_nothing_is_said() -> None:
    later = [entry("ann", stage(FLY, Status.PASSED, check("fly", Outcome.PASSED)))]
    found = moved("week-1", BEFORE, later)
    assert (found.students, found.stages, found.mistakes) == (1, (), ())
    assert moved("week-1", BEFORE, [fold("zoe", True, 15)]) is None
