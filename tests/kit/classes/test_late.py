"""What being late costs: the deadline, the student's extension, grace, days begun, the cap."""

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from grader.classes.late import lateness
from grader.read.deadlines import in_utc
from grader.types.course import Assignment, LateRule

BERLIN = ZoneInfo("Europe/Berlin")
RULE = LateRule(per_day=0.1, cap=0.25, grace_minutes=10)
DUE = datetime(2026, 10, 24, 21, 59, tzinfo=timezone.utc)  # 23:59 in Berlin


def after(seconds: float, **more: object) -> tuple[float, str] | None:
    """The share that a submission costs so long after the deadline, and how late it is."""
    found = lateness(
        Assignment("a", (), due=DUE, late=RULE, **more),
        ["ada"],
        DUE + timedelta(seconds=seconds),
    )
    return found and (found.share, found.words.partition(",")[0])


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-1, None),
        (0, None),
        (0.5, (0, "late by 1 second")),
        (600, (0, "late by 10 minutes")),
        (601, (0.1, "late by 10 minutes 1 second")),
        (86_400, (0.1, "late by 1 day")),
        (86_401, (0.2, "late by 1 day 1 second")),
        (3 * 86_400, (0.25, "late by 3 days")),
        (1000 * 86_400, (0.25, "late by 1000 days")),
    ],
)
def test_grace_days_begun_and_cap(seconds: float, expected: object) -> None:
    assert after(seconds) == expected


def test_a_day_has_24_hours_when_the_clocks_change() -> None:
    # From the 24th, 23:59, to the 25th, 23:59, in Berlin, there are 25 hours.
    same_clock = datetime(2026, 10, 25, 23, 59, tzinfo=BERLIN)
    found = lateness(Assignment("a", (), due=DUE, late=RULE), ["ada"], same_clock)
    assert found is not None and (found.seconds, found.share) == (25 * 3600, 0.2)
    # The hour that comes twice: an assignment that is due in it may come at the end of the second.
    due = in_utc(datetime(2026, 10, 25, 2, 30), BERLIN)  # noqa: DTZ001
    assignment = Assignment("a", (), due=due, late=LateRule(1))
    first, second = (datetime(2026, 10, 25, 2, 45, tzinfo=BERLIN, fold=fold) for fold in (0, 1))
    assert lateness(assignment, ["ada"], first) is None
    found = lateness(assignment, ["ada"], second)
    assert found is not None and (found.seconds, found.share) == (900, 1)


def test_an_extension_is_for_its_student_alone() -> None:
    later = {"Ada": DUE + timedelta(days=2)}
    assert after(86_401, extensions=later) is None
    assert after(2 * 86_400 + 601, extensions=later) == (0.1, "late by 10 minutes 1 second")
    assert after(86_401, extensions={"bob": DUE + timedelta(days=2)}) is not None
    assert after(86_401, extensions={**later, "ADA": DUE + timedelta(hours=1)}) is None


def test_the_deadline_of_another_program_counts_instead_and_an_extension_if_it_is_later() -> None:
    own = Assignment("a", (), due=DUE, extensions={"ada": DUE + timedelta(days=2)}, late=RULE)
    when = DUE + timedelta(days=1)
    assert lateness(own, ["bob"], when, DUE + timedelta(days=1)) is None
    assert lateness(own, ["ada"], when, DUE - timedelta(days=5)) is None
    assert lateness(own, ["bob"], when, DUE - timedelta(days=5)) is not None


def test_nobody_is_late_by_an_unknown_time_or_deadline() -> None:
    assert lateness(Assignment("a", (), due=DUE, late=RULE), ["ada"], None) is None
    assert lateness(Assignment("a", (), late=RULE), ["ada"], DUE) is None


def test_what_it_says_and_costs() -> None:
    assignment = Assignment("a", (), due=DUE, late=LateRule(per_day=1 / 3))
    found = lateness(assignment, ["ada"], DUE + timedelta(hours=1, minutes=2, seconds=3))
    assert found.words == "late by 1 hour 2 minutes, which costs 33.33% of its points"
    assert found.penalty(91) == 30.33
    without = lateness(Assignment("a", (), due=DUE), ["ada"], DUE + timedelta(days=1))
    assert (without.words, without.penalty(91)) == ("late by 1 day, which costs nothing", 0)
