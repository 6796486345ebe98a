"""Whose fault a failure is, as tables: what each run of a stage gives, and who is to blame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from grader.judge.blame import NO_BLAME, Blame, find_blame
from grader.judge.verdict import judge_stage
from grader.run.facts import Case, CaseFact, Ending, ForbiddenCall, PlannedCheck, StageFacts
from grader.types.course import Course, EntryPoint, Limits, Stage
from grader.types.report import EARLIER, Diagnosis, Status
from grader.types.submission import Submission

ENDINGS = {
    "P": Ending.PASSED,
    "W": Ending.WRONG,
    "N": Ending.NOT_WRITTEN,
    "S": Ending.SKIPPED,
    "T": Ending.TIMED_OUT,
    "B": Ending.BROKEN,
}
CUT = ForbiddenCall("scissors.cut", "\n  fold.py, line 3")
TEAR = ForbiddenCall("hands.tear")


def stage(slug: str, *requires: str) -> Stage:
    entry = EntryPoint(slug, ("any",))
    return Stage(slug, slug.title(), 10, False, requires, (entry,), Path())


# `bird` builds on `fold` and `wing`, and `wing` on `fold`.
FOLD, WING, BIRD = STAGES = (stage("fold"), stage("wing", "fold"), stage("bird", "wing"))
COURSE = Course("Paper", "Paper", Path(), (), Limits(), STAGES)


def facts(
    endings: str,
    *forbidden: ForbiddenCall,
    in_source: tuple[ForbiddenCall, ...] = (),
    time_is_up: bool = False,
) -> StageFacts:
    """Facts of a stage with one check for each letter."""
    cases = [Case(f"x.{number}", f"x.{number}") for number in range(len(endings))]
    return StageFacts(
        tuple(PlannedCheck(case.check, "A title", 5, (case,)) for case in cases),
        tuple(CaseFact(case, ENDINGS[letter]) for case, letter in zip(cases, endings, strict=True)),
        forbidden=forbidden,
        in_source=in_source,
        time_is_up=time_is_up,
    )


@dataclass
class Runs:
    """What each run gives, by its stage and the earlier ones that are answered: "bird fold wing".

    A run that a table does not have is one too many.
    """

    given: Mapping[str, StageFacts | str]
    asked: list[str] = field(default_factory=list)

    def __call__(self, stage: Stage, answered: Sequence[Stage]) -> StageFacts:
        key = " ".join([stage.slug, *(earlier.slug for earlier in answered)])
        self.asked.append(key)
        found = self.given[key]
        return facts(found) if isinstance(found, str) else found


def blamed(
    given: Mapping[str, StageFacts | str],
    stage: Stage = BIRD,
    course: Course = COURSE,
    source: str = "",
    right: Sequence[str] = (),
) -> tuple[StageFacts, Blame]:
    submission = Submission("x", {"all.py": source.encode()}, script="all.py")
    return find_blame(course, stage, submission, Runs(given), right)


# --- one's own fault, or an earlier stage's ------------------------------------------------------

OWN, OF_FOLD = Blame(is_own=True), Blame(cause="fold")
TIME_IS_UP = facts("PW", time_is_up=True)
FAILS_ALONE = {"bird": "PW", "fold": "PP", "wing": "PP"}
AFTER_FOLD = {"bird": "PW", "fold": "W", "wing": "PP"}


WHOSE: dict[str, Any] = {
    "it passes": ({"bird": "PP"}, NO_BLAME),
    "it is not started": ({"bird": "NN"}, NO_BLAME),
    "the check itself fails": ({"bird": "PB"}, NO_BLAME),
    "no time to find out": ({"bird": TIME_IS_UP}, NO_BLAME),
    "all earlier stages pass": (FAILS_ALONE, OWN),
    "an earlier stage fails and answered it passes": ({**AFTER_FOLD, "bird fold": "PP"}, OF_FOLD),
    "an earlier stage fails but makes no difference": ({**AFTER_FOLD, "bird fold": "PW"}, OWN),
    "no time to find out whether it fails because of an earlier stage": (
        {**AFTER_FOLD, "bird fold": TIME_IS_UP},
        OWN,
    ),
    "an earlier stage is not written": ({**AFTER_FOLD, "fold": "N", "bird fold": "PP"}, OF_FOLD),
    "an earlier stage does not end": (
        {"bird": "TT", "fold": "T", "wing": "PP", "bird fold": "PP"},
        OF_FOLD,
    ),
    "an earlier check itself fails": ({**AFTER_FOLD, "fold": "B", "bird fold": "PP"}, OF_FOLD),
    "what is skipped on this machine is nobody's fault": (
        {**AFTER_FOLD, "bird fold": "PS"},
        OF_FOLD,
    ),
}


@pytest.mark.parametrize("given, blame", WHOSE.values(), ids=WHOSE)
def test_who_is_to_blame(given: Mapping[str, StageFacts | str], blame: Blame) -> None:
    found, said = blamed(given)
    own = given["bird"]
    assert (found, said) == (facts(own) if isinstance(own, str) else own, blame)


@pytest.mark.parametrize(
    "runs, cause",
    [
        # It waits for the first without whose answers it does not pass.
        ({"bird wing": "PW", "bird fold": "PP"}, "fold"),
        ({"bird wing": "PP", "bird fold": "PW"}, "wing"),
        ({"bird wing": "PW", "bird fold": "PW"}, "fold"),
        ({"bird wing": "PP", "bird fold": "PP"}, "fold"),  # either of them is enough
        # A run that was cut short says nothing.
        ({"bird wing": facts("PT", time_is_up=True), "bird fold": "PW"}, "wing"),
        (
            {"bird wing": facts("PT", time_is_up=True), "bird fold": facts("PT", time_is_up=True)},
            "fold",
        ),
    ],
)
def test_of_two_unfinished_stages_one_is_the_cause(
    runs: Mapping[str, StageFacts | str], cause: str
) -> None:
    given = {"bird": "PW", "fold": "W", "wing": "W", "bird fold wing": "PP", **runs}
    assert blamed(given)[1] == Blame(cause=cause)


def test_a_stub_whose_import_fails_is_not_started() -> None:
    found, blame = blamed({"bird": "WW", "fold": "W", "wing": "PP", "bird fold": "NN"})
    assert (found, blame) == (facts("NN"), NO_BLAME)


def test_no_stage_is_run_that_is_known_to_be_right() -> None:
    assert blamed({"bird": "W"}, right=["fold", "wing"])[1] == OWN
    given = {"bird": "W", "wing": "W", "bird wing": "P"}
    assert blamed(given, right=["fold"])[1] == Blame(cause="wing")


def test_a_stage_that_builds_on_none_is_to_blame_itself() -> None:
    runs = Runs({"fold": "W"})
    assert find_blame(COURSE, FOLD, Submission("x", {}), runs)[1] == OWN
    assert runs.asked == ["fold"]


@pytest.mark.parametrize("follow_through", [True, False])
def test_a_stage_that_waits_has_its_points_where_the_course_says_so(follow_through: bool) -> None:
    course = replace(COURSE, follow_through=follow_through)
    given = {"bird": "PW", "fold": "W", "wing": "P", "bird fold": "PP"}
    found, blame = blamed(given, course=course)
    credited = frozenset(["x.0", "x.1"] if follow_through else [])
    assert blame == Blame(cause="fold", credited=credited)
    result = judge_stage(BIRD, found, blame, place=lambda target: "never shown")
    assert (result.status, result.caused_by) == (Status.FAILED, "fold")
    assert result.score == (10 if follow_through else 5)
    assert result.checks[1].message == ""


def told(found: StageFacts, message: str) -> StageFacts:
    return replace(found, cases=tuple(replace(case, message=message) for case in found.cases))


WAITS = "It fails only because fold or wing is not right yet"


@pytest.mark.parametrize(
    "there, alone, counts, message",
    [
        ("W", "P", Ending.RAISED, WAITS),
        ("T", "P", Ending.RAISED, WAITS),
        ("W", "S", Ending.RAISED, WAITS),
        ("W", "W", Ending.WRONG, "alone"),
        ("N", "W", Ending.WRONG, "alone"),
        ("W", "T", Ending.TIMED_OUT, "alone"),
        ("P", "W", Ending.PASSED, "there"),
        ("S", "W", Ending.SKIPPED, "there"),
        ("W", "B", Ending.WRONG, "there"),  # alone the check itself fails
    ],
)
def test_beside_its_own_mistake_a_stage_is_not_told_an_earlier_one_s(
    there: str, alone: str, counts: Ending, message: str
) -> None:
    """The first case fails in any case; the second one is what the table is about."""
    given = {
        "bird": told(facts(f"W{there}"), "there"),
        "fold": "W",
        "wing": "W",
        "bird fold wing": told(facts(f"W{alone}"), "alone"),
    }
    found, blame = blamed(given)
    assert blame == Blame(is_own=True, answered=(FOLD, WING))
    own, second = found.cases
    assert (own.ending, own.message) == (Ending.WRONG, "alone")
    assert (second.ending, second.message) == (counts, message)
    assert (second.way == EARLIER) == (message == WAITS)
    assert judge_stage(BIRD, found, blame).score == (5 if there == "P" else 0)


def test_of_many_earlier_stages_none_is_named() -> None:
    tail = stage("tail", "bird", "fold")
    course = replace(COURSE, stages=(*STAGES, tail))
    given = {"tail": "WW", "fold": "W", "wing": "W", "bird": "W", "tail fold wing bird": "WP"}
    given |= {"bird fold wing": "P", "bird fold": "W", "bird wing": "W"}
    found, _ = blamed(given, tail, course)
    assert found.cases[1].message == "It fails only because an earlier stage is not right yet"


def test_what_fails_only_because_of_an_earlier_stage_may_get_its_points() -> None:
    course = replace(COURSE, follow_through=True)
    given = {"bird": "WWWS", "fold": "W", "wing": "P", "bird fold": "WPTS"}
    found, blame = blamed(given, course=course)
    assert blame.credited == {"x.1"}
    assert [check.score for check in judge_stage(BIRD, found, blame).checks] == [0, 5, 0, 0]


def test_what_never_ran_with_the_courses_functions_gets_no_points_by_them() -> None:
    course = replace(COURSE, follow_through=True)
    alone = facts("PW")
    lost = replace(alone, cases=alone.cases[:1])
    given = {"bird": "WW", "fold": "W", "wing": "P", "bird fold": lost}
    _, blame = blamed(given, course=course)
    assert blame.credited == {"x.0"}


def with_class(one: Stage, *functions: str) -> Stage:
    entries = (
        EntryPoint("Bird", ("any",), is_class=True),
        *(EntryPoint(f, ("any",)) for f in functions),
    )
    return replace(one, entry_points=entries)


@pytest.mark.parametrize(
    "fold, runs, perhaps",
    [
        ((), {"bird": "PW", "fold": "W", "wing": "P"}, "fold"),
        ((), {"bird": "PW", "fold": "W", "wing": "W", "bird wing": "PW"}, "fold"),
        (("fold",), {"bird": "PW", "fold": "W", "wing": "P", "bird fold": "PW"}, "fold"),
        ((), {"bird": "PW", "fold": "P", "wing": "P"}, None),
    ],
)
def test_no_solution_stands_in_for_a_class_which_may_be_at_fault(
    fold: tuple[str, ...], runs: dict[str, str], perhaps: str | None
) -> None:
    course = replace(COURSE, stages=(with_class(FOLD, *fold), WING, BIRD))
    found, blame = blamed(runs, course=course)
    assert (blame.is_own, blame.cause, blame.perhaps) == (True, None, perhaps)
    assert judge_stage(BIRD, found, blame).perhaps == perhaps
    named = {"x.1": Diagnosis("upside_down", "You fold it upside down.", 1)}
    assert judge_stage(BIRD, found, blame, diagnoses=named).perhaps is None


# --- forbidden calls -----------------------------------------------------------------------------


# Whose they are shows a run with the course's own earlier stages.
FORBIDDEN: dict[str, Any] = {
    "an earlier stage's": (facts("PP", CUT), "PP", ()),
    "its own": (facts("PP", CUT), facts("PP", CUT), (CUT,)),
    "another one of its own": (facts("PP", CUT), facts("PP", TEAR), (CUT,)),
    "what passed does not pass without them": (facts("PP", CUT), "PW", (CUT,)),
    "what failed may fail": (facts("PW", CUT), "PW", ()),
    "one in its source that no check met": (facts("PP", in_source=(CUT,)), None, (CUT,)),
    "each name appears once, as the checks met it": (
        facts("PP", CUT, in_source=(ForbiddenCall(CUT.name), TEAR)),
        facts("PP", CUT),
        (CUT, TEAR),
    ),
    "one of each: its own counts": (facts("PP", CUT, in_source=(TEAR,)), "PP", (TEAR,)),
}


@pytest.mark.parametrize("own, alone, forbidden", FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_forbidden_call_counts_where_it_is_made(
    own: StageFacts, alone: StageFacts | str | None, forbidden: tuple[ForbiddenCall, ...]
) -> None:
    given: dict[str, StageFacts | str] = {"bird": own, "fold": "P", "wing": "P"}
    if alone is not None:
        given["bird fold wing"] = alone
    found, blame = blamed(given)
    assert found.forbidden == forbidden
    result = judge_stage(BIRD, found, blame)
    is_right = not forbidden and all(fact.ending is Ending.PASSED for fact in own.cases)
    assert (result.status is Status.PASSED) == is_right
    assert (result.score == 0) == bool(forbidden)


def test_the_first_stage_cannot_blame_an_earlier_one_for_a_forbidden_call() -> None:
    assert blamed({"fold": facts("P", CUT)}, FOLD)[0].forbidden == (CUT,)


def test_a_forbidden_call_of_its_own_keeps_a_stage_from_waiting_for_another() -> None:
    calls = (CUT,)
    given = {
        "bird": facts("PW", in_source=calls),
        "fold": "W",
        "wing": "P",
        "bird fold": facts("PP", in_source=calls),
    }
    assert blamed(given)[1] == Blame(is_own=True, answered=(FOLD,))


@pytest.mark.parametrize("answers", ["PP", "PW"])
def test_a_forbidden_call_that_waits_for_the_courses_functions_is_paid_for(answers: str) -> None:
    """Otherwise code could be wrong on purpose and get its points by the call all the same."""
    course = replace(COURSE, follow_through=True)
    alone = facts(answers, CUT)
    given = {"bird": "WW", "fold": "W", "wing": "P", "bird fold": alone, "bird fold wing": alone}
    found, blame = blamed(given, course=course)
    result = judge_stage(BIRD, found, blame)
    assert (result.status, result.score) == (Status.FAILED, 0)
    assert "calls scissors.cut" in result.checks[0].message


def test_a_forbidden_call_of_an_earlier_stage_costs_nothing_where_another_one_is_wrong() -> None:
    course = replace(COURSE, follow_through=True)
    given = {
        "bird": facts("WW", CUT),
        "fold": "W",
        "wing": "P",
        "bird fold": facts("PP", CUT),
        "bird fold wing": "PP",
    }
    found, blame = blamed(given, course=course)
    assert blame == Blame(cause="fold", credited=frozenset(["x.0", "x.1"]))
    assert judge_stage(BIRD, found, blame).score == 10


def test_an_earlier_stage_with_a_forbidden_call_is_not_finished() -> None:
    given = {"bird": "PW", "fold": "P", "wing": facts("P", in_source=(CUT,)), "bird wing": "PP"}
    assert blamed(given)[1] == Blame(cause="wing")


# --- a student's copy, in which there are only the visible checks and no solutions ----------------

COPY = replace(COURSE, is_partial=True)
WRITTEN = "def fold(a):\n    return a\n\ndef wing(a):\n    return a\n\ndef bird(a):\n    return a\n"
NO_CHECK = StageFacts((), ())


def partial(perhaps: str | None = None, *, is_written: bool | None = None) -> Blame:
    return Blame(is_partial=True, perhaps=perhaps, is_written=is_written)


IN_A_COPY: dict[str, Any] = {
    "it passes": ({"bird": "PP"}, "", partial()),
    "it is not started": ({"bird": "NN"}, "", partial()),
    "its own": ({"bird": "W", "fold": "P", "wing": "P"}, "", partial()),
    "the first that fails": ({"bird": "W", "fold": "W"}, "", partial("fold")),
    "a stub": ({"bird": "W", "fold": "P", "wing": "N"}, "", partial("wing")),
    "not written": ({"bird": "W", "fold": NO_CHECK, "wing": "P"}, "", partial("fold")),
    "unchecked": ({"bird": "W", "fold": NO_CHECK, "wing": "P"}, WRITTEN, partial()),
    "nothing to check": ({"bird": NO_CHECK}, "", partial(is_written=False)),
    "and it is written": ({"bird": NO_CHECK}, WRITTEN, partial(is_written=True)),
    "a forbidden call is its own: nothing can answer for the others": (
        {"bird": facts("P", CUT), "fold": "P", "wing": "P"},
        "",
        partial(),
    ),
}


@pytest.mark.parametrize("given, source, blame", IN_A_COPY.values(), ids=IN_A_COPY)
def test_a_students_copy_only_says_who_may_be_to_blame(
    given: Mapping[str, StageFacts | str], source: str, blame: Blame
) -> None:
    assert blamed(given, course=COPY, source=source)[1] == blame


def test_a_forbidden_call_counts_in_a_students_copy_too() -> None:
    given = {"bird": facts("P", CUT), "fold": "P", "wing": "P"}
    found, blame = blamed(given, course=COPY)
    assert judge_stage(BIRD, found, blame).status is Status.FAILED
