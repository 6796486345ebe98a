"""Shows how well a course explains wrong answers: its misconceptions, and mutants of its solutions.

A misconception should get its own name. A mutant is a mistake that nobody listed. It is graded as a
learner's submission is, with a second for the search of its place.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import pairwise

from grader.authoring.mutants.making import mutants_of
from grader.authoring.mutants.record import read_records
from grader.authoring.mutants.types import Mutant
from grader.authoring.verify.runs import CheckRuns, Hangs
from grader.authoring.verify.types import Progress
from grader.classes.grading import all_graded
from grader.diagnosis.comparison.diagnose import diagnose
from grader.engine import Engine, Request, with_engine
from grader.misconceptions import Known, Misconception
from grader.read.misconceptions import read_known
from grader.run.facts import Ending
from grader.run.lanes import LaneLost
from grader.run.solutions import local_solutions, solution_files
from grader.types.course import Course, Stage
from grader.types.report import Diagnosis, Kind, Outcome, Status
from grader.types.submission import Submission

SEED = 1
SAMPLE = 40  # mutants of a stage, unless all are wanted: about a minute on two cores

_Wrong = Mutant | Misconception  # a wrong answer
_RAISED = re.compile(r"[A-Z][\w.]*(?:Error|Exception)\b")  # how a message of raised code begins


class How(Enum):
    """How a wrong answer is explained, by the strongest of its reasons."""

    NAMED = "named"
    WRONG_NAME = "wrong name"  # a misconception that gets the name of another one
    SYMPTOM = "symptom"
    PLACE = "place"
    ERROR = "error"  # only Python's own: its type, its message and the line that raised it
    NOTHING = "nothing"
    PASSES = "passes"  # no check fails


@dataclass(frozen=True)
class Explained:
    """How one wrong answer is explained.

    `told` are the ids of its reasons. `change` shows the mistake: the lines of a mutant, or the
    sentence of a misconception. `message` is what its first failing check says.
    """

    id: str
    how: How
    told: tuple[str, ...]
    change: tuple[str, ...]
    message: str = ""


@dataclass(frozen=True)
class StageExplained:
    """The results of one stage; `mutants` are the tried ones that a check catches.

    `tried` of its `all_mutants` have run.
    """

    slug: str
    misconceptions: tuple[Explained, ...]
    mutants: tuple[Explained, ...]
    tried: int
    all_mutants: int

    @property
    def is_sound(self) -> bool:
        """Whether no misconception gets the name of another one."""
        return all(each.how is not How.WRONG_NAME for each in self.misconceptions)


@dataclass(frozen=True)
class ExplainReport:
    """The results of all stages; not `finished` if the run was stopped."""

    stages: tuple[StageExplained, ...]
    seconds: float
    finished: bool


def explain(
    course: Course,
    stages: Sequence[Stage],
    *,
    lanes: int = 1,
    every: bool = False,
    progress: Progress = lambda slug, done, total: None,
) -> ExplainReport:
    """Grade the wrong answers of these stages, `lanes` at once, and see how each is explained.

    A stage with more than `SAMPLE` mutants has that many tried, spread evenly; with `every` all
    are. `progress` is called with the stage, the number of finished answers and the total. Ctrl-C
    ends the run and keeps the results so far. Raises KitError if a file of the course is missing
    or malformed, or a solution does not pass.
    """
    known = {stage.slug: read_known(stage) for stage in stages}
    mutants = {stage.slug: _unrecorded(stage) for stage in stages}

    def body(engine: Engine) -> ExplainReport:
        begun, finished, done = time.monotonic(), True, []
        for stage in stages:
            slug = stage.slug
            sample = mutants[slug] if every else _sampled(mutants[slug])
            wrong = (*known[slug].misconceptions, *sample)
            numbers = range(len(wrong))  # sent to the lanes, where no misconception can be sent
            found: dict[int, Explained] = {}
            progress(slug, 0, len(wrong))
            work = partial(_explaining, stage, known[slug], wrong)
            try:
                with closing(all_graded(engine, numbers, lanes, [stage], SEED, work)) as graded:
                    for number, result in graded:
                        if isinstance(result, LaneLost):
                            result = _explained(wrong[number], How.NOTHING, str(result))
                        found[number] = result
                        progress(slug, len(found), len(wrong))
            except KeyboardInterrupt:
                finished = False
            done.append(_stage(slug, wrong, found, len(mutants[slug])))
            if not finished:
                break
        return ExplainReport(tuple(done), time.monotonic() - begun, finished)

    return with_engine(course, stages, "cpu", body)


def _unrecorded(stage: Stage) -> tuple[Mutant, ...]:
    """The mutants of a stage, without those that are recorded as equivalent to the solution."""
    if stage.fixture:  # its solution is a test
        return ()
    equivalent = {record.change for record in read_records(stage).equivalent}
    return tuple(mutant for mutant in mutants_of(stage) if mutant.change not in equivalent)


def _sampled(mutants: Sequence[Mutant]) -> list[Mutant]:
    """`SAMPLE` of the mutants, one drawn from each of as many equal parts; all if there are fewer.

    The draw is always the same.
    """
    count = min(SAMPLE, len(mutants))
    draw = random.Random(SEED)
    ends = [at * len(mutants) // count for at in range(count + 1)] if count else []
    return [mutants[draw.randrange(first, last)] for first, last in pairwise(ends)]


def _stage(
    slug: str, wrong: Sequence[_Wrong], found: Mapping[int, Explained], all_mutants: int
) -> StageExplained:
    """The results in the order of the wrong answers."""
    results = [(wrong[number], found[number]) for number in sorted(found)]
    mutants = [each for one, each in results if isinstance(one, Mutant)]
    return StageExplained(
        slug,
        tuple(each for one, each in results if isinstance(one, Misconception)),
        tuple(each for each in mutants if each.how is not How.PASSES),
        len(mutants),
        all_mutants,
    )


def _explaining(
    stage: Stage, known: Known, wrong: Sequence[_Wrong], engine: Engine
) -> Callable[[int], Explained]:
    """A function that says, with one engine, how the wrong answer of a number is explained."""

    def explained(number: int) -> Explained:
        one = wrong[number]
        if isinstance(one, Mutant):
            return _mutant(engine, stage, one)
        return _misconception(engine, stage, known, one)

    return explained


def _mutant(engine: Engine, stage: Stage, mutant: Mutant) -> Explained:
    """Grade a mutant as a learner's submission, and look for the place of its mistake."""
    files = {**solution_files(engine.course), stage.file_name: mutant.source.encode()}
    request = Request(Submission(mutant.id, files), (stage,), SEED)
    (result,) = engine.with_place(request, engine.grade(request)).stages
    if result.status is Status.PASSED:
        return _explained(mutant, How.PASSES)
    fine = (Outcome.PASSED, Outcome.SKIPPED)
    failing = [check for check in result.checks if check.outcome not in fine]
    reasons = [check.diagnosis for check in failing if check.diagnosis is not None]
    message = next((check.message for check in failing if check.message), "")
    return _by_reasons(mutant, reasons, message)


def _misconception(engine: Engine, stage: Stage, known: Known, mistake: Misconception) -> Explained:
    """Run the checks against a misconception, which is no submission, in this process."""
    solution = local_solutions(engine.course, stage)
    runs = CheckRuns(engine.course, stage, engine.interpreter, engine.checks)
    try:
        facts = runs.local(mistake.among(solution), SEED)
    except Hangs as error:
        return _by_reasons(mistake, (), f"hangs: {error}")
    failing = [fact for fact in facts.cases if fact.ending in (Ending.WRONG, Ending.RAISED)]
    if not failing:
        return _explained(mistake, How.PASSES)
    reasons = diagnose(facts, known, solution).values()
    return _by_reasons(mistake, [*reasons], failing[0].message)


def _by_reasons(wrong: _Wrong, reasons: Sequence[Diagnosis], message: str) -> Explained:
    """How a wrong answer with these reasons is explained."""
    kinds = {reason.kind for reason in reasons}
    names = {reason.id for reason in reasons if reason.kind is Kind.NAME}
    if isinstance(wrong, Misconception) and names - {wrong.id}:
        how = How.WRONG_NAME
    elif names:
        how = How.NAMED
    elif Kind.SYMPTOM in kinds:
        how = How.SYMPTOM
    elif any(reason.place for reason in reasons):
        how = How.PLACE
    else:
        how = How.ERROR if _RAISED.match(message) else How.NOTHING
    told = tuple(dict.fromkeys(reason.id for reason in reasons))
    return _explained(wrong, how, message.partition("\n")[0], told)


def _explained(wrong: _Wrong, how: How, message: str = "", told: tuple[str, ...] = ()) -> Explained:
    """This explanation of a wrong answer, with its mistake."""
    if isinstance(wrong, Misconception):
        return Explained(wrong.id, how, told, (wrong.says,), message)
    lines = *(f"- {line}" for line in wrong.before), *(f"+ {line}" for line in wrong.after)
    return Explained(wrong.id, how, told, lines, message)
