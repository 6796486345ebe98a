"""Whose fault it is that a stage does not pass. Pure: the caller passes how to run a stage.

A stage that fails as submitted is run again with the course's own earlier stages. If it
passes then, an earlier stage is at fault, else the stage itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from grader.judge.places import is_written
from grader.judge.status import OUTCOMES, deciding_facts, status
from grader.run.facts import FINE, Case, CaseFact, Ending, ForbiddenCall, StageFacts
from grader.types.course import Course, Stage
from grader.types.report import EARLIER, Outcome, Status
from grader.types.submission import Submission
from grader.types.text import listed

# The facts on a stage of the submission, with the functions of these earlier stages answered by the
# course's own solutions. It may be asked the same thing again.
Run = Callable[[Stage, Sequence[Stage]], StageFacts]


@dataclass(frozen=True)
class Blame:
    """Whose fault it is that a stage does not pass; the empty one says nothing about it.

    `cause` is the slug of the earlier stage that alone is at fault. If it `is_own`, the mistake is
    in the stage itself, and shows with the course's own functions for the `answered` stages, which
    do not pass. The checks whose ids are `credited` get their points although they fail. `perhaps`
    is the slug of an earlier stage that may be at fault. That stays uncertain for a class, which no
    solution can stand in for, and in a student's copy, which `is_partial`. In such a copy,
    `is_written` says all that is known of a stage without a visible check.
    """

    cause: str | None = None
    is_own: bool = False
    answered: tuple[Stage, ...] = ()
    credited: frozenset[str] = frozenset()
    is_partial: bool = False
    perhaps: str | None = None
    is_written: bool | None = None


NO_BLAME = Blame()
_FEW = 2  # earlier stages that a sentence names


def find_blame(
    course: Course, stage: Stage, submission: Submission, run: Run, right: Collection[str] = ()
) -> tuple[StageFacts, Blame]:
    """The facts that the verdict on a stage is about, and whose fault it is if it does not pass.

    Stages whose slugs are in `right` are known to pass and are not run. Raises what `run` does.
    """
    if course.is_partial:
        return _find_partial_blame(course, stage, submission, run)
    facts = _own_facts(course, stage, run)
    if status(facts) is not Status.FAILED or facts.time_is_up:
        return facts, NO_BLAME
    unfinished = [
        earlier
        for earlier in course.required(stage)
        if earlier.slug not in right
        and status(_own_facts(course, earlier, run)) is not Status.PASSED
    ]
    answered = [earlier for earlier in unfinished if earlier.functions]
    with_class = (one.slug for one in unfinished if len(one.functions) < len(one.entry_points))
    perhaps = next(with_class, None)
    if answered:
        alone = _own_facts(course, stage, run, answered)
        if status(alone) is Status.NOT_STARTED:  # a stub that imports a broken file
            return alone, NO_BLAME
        # It may make such calls only if the earlier stages are right.
        facts = with_calls(facts, alone.forbidden)
        credited = _credited(alone) if course.follow_through else frozenset()
        if status(alone) is Status.PASSED:
            cause = _cause(stage, answered, run)
            return facts, Blame(cause=cause.slug, credited=credited)
        # Alike if the earlier stages make no difference, as for code that does not use them.
        one, other = (
            {fact.case: (fact.ending, fact.message) for fact in found.cases}
            for found in (facts, alone)
        )
        if not alone.time_is_up and one != other:
            blame = Blame(is_own=True, answered=tuple(answered), credited=credited)
            return _own_mistakes(facts, alone, answered), replace(blame, perhaps=perhaps)
    return facts, Blame(is_own=True, perhaps=perhaps)


def _credited(alone: StageFacts) -> frozenset[str]:
    """The ids of the checks that pass with the course's own earlier stages.

    One that is skipped passes with the whole stage.
    """
    fine = FINE if status(alone) is Status.PASSED else (Ending.PASSED,)
    decided = zip(alone.planned, deciding_facts(alone), strict=True)
    return frozenset(planned.id for planned, fact in decided if fact.ending in fine)


def _own_mistakes(facts: StageFacts, alone: StageFacts, unfinished: Sequence[Stage]) -> StageFacts:
    """The facts with the reasons that remain with the course's own `unfinished` stages.

    What fails still fails, but as it does there. A case that passes there says why it fails here.
    """
    slugs = [stage.slug for stage in unfinished]
    earlier = listed(slugs, "or") if len(slugs) <= _FEW else "an earlier stage"
    waits = f"It fails only because {earlier} is not right yet"
    there = {fact.case: fact for fact in alone.cases}

    def reason(fact: CaseFact) -> CaseFact:
        other = there.get(fact.case)
        if fact.ending in FINE or other is None or OUTCOMES[other.ending] is Outcome.ERROR:
            return fact
        if other.ending in FINE:
            return CaseFact(fact.case, Ending.RAISED, waits, fact.seconds, way=EARLIER)
        return replace(other, seconds=fact.seconds)

    return replace(facts, cases=tuple(map(reason, facts.cases)))


def _find_partial_blame(
    course: Course, stage: Stage, submission: Submission, run: Run
) -> tuple[StageFacts, Blame]:
    """As `find_blame` where there are no solutions: nothing can answer for an earlier stage."""
    facts = _own_facts(course, stage, run)
    if not facts.planned:
        return facts, Blame(is_partial=True, is_written=is_written(submission, stage))
    perhaps = None
    if status(facts) is Status.FAILED:
        for earlier in course.required(stage):
            found = _own_facts(course, earlier, run)
            passes = status(found) is Status.PASSED
            if not (passes if found.planned else is_written(submission, earlier)):
                perhaps = earlier.slug
                break
    return facts, Blame(is_partial=True, perhaps=perhaps)


def with_calls(facts: StageFacts, found: Sequence[ForbiddenCall]) -> StageFacts:
    """The facts with the forbidden calls `found` in the source that no check has reached."""
    seen = {call.name for call in facts.forbidden}
    more = tuple(call for call in found if call.name not in seen)
    return replace(facts, forbidden=facts.forbidden + more)


def _own_facts(
    course: Course, stage: Stage, run: Run, answered: Sequence[Stage] = ()
) -> StageFacts:
    """What a stage does, without the forbidden calls of earlier stages."""
    facts = run(stage, answered)
    if facts.forbidden and _calls_come_from_earlier(course, stage, facts, run):
        facts = replace(facts, forbidden=())
    return with_calls(facts, facts.in_source)


def _calls_come_from_earlier(course: Course, stage: Stage, facts: StageFacts, run: Run) -> bool:
    """Whether the forbidden calls are an earlier stage's, which is judged by its own rules.

    Then with the course's own earlier stages there are none, and what passed still passes.
    """
    earlier = course.required(stage)
    if not earlier or course.is_partial:
        return False
    alone = run(stage, earlier)
    return not alone.forbidden and _passed(facts) <= _passed(alone)


def _passed(facts: StageFacts) -> set[Case]:
    return {fact.case for fact in facts.cases if fact.ending is Ending.PASSED}


def _cause(stage: Stage, unfinished: Sequence[Stage], run: Run) -> Stage:
    """The earlier stage to fix first, for a stage that passes with all `unfinished` answered.

    It is the first of those without whose answers the stage does not pass.
    """
    if len(unfinished) > 1:
        for earlier in unfinished:
            others = [other for other in unfinished if other is not earlier]
            facts = run(stage, others)
            if status(facts) is not Status.PASSED and not facts.time_is_up:
                return earlier
    return unfinished[0]
