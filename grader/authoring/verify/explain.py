"""Shows how well a course explains wrong answers: its misconceptions, and mutants of its solutions.

A misconception should get its own name. A mutant is a mistake that nobody listed. It is graded as a
learner's submission is, with a second for the search of its place.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True)
class _Job:
    """A wrong answer: the `mutant`, or the misconception with this id; `change` is its mistake."""

    id: str
    change: tuple[str, ...]
    mutant: Mutant | None = None


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
            jobs = [_Job(each.id, (each.says,)) for each in known[slug].misconceptions]
            jobs += [_Job(each.id, _diff(each), each) for each in sample]
            found: dict[_Job, Explained] = {}
            progress(slug, 0, len(jobs))
            work = partial(_Explaining, course, stage, known[slug])
            try:
                with closing(all_graded(engine, jobs, lanes, [stage], SEED, work)) as graded:
                    for job, result in graded:
                        if isinstance(result, LaneLost):
                            result = Explained(job.id, How.NOTHING, (), job.change, str(result))
                        found[job] = result
                        progress(slug, len(found), len(jobs))
            except KeyboardInterrupt:
                finished = False
            done.append(_stage(slug, jobs, found, len(mutants[slug])))
            if not finished:
                break
        return ExplainReport(tuple(done), time.monotonic() - begun, finished)

    return with_engine(course, stages, "cpu", body)


def _diff(mutant: Mutant) -> tuple[str, ...]:
    """A mutant's change: the lines of the solution, and those in their place."""
    return (*(f"- {line}" for line in mutant.before), *(f"+ {line}" for line in mutant.after))


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
    slug: str, jobs: Sequence[_Job], found: Mapping[_Job, Explained], all_mutants: int
) -> StageExplained:
    """The results in the order of the jobs."""
    mutants = [found[job] for job in jobs if job in found and job.mutant]
    return StageExplained(
        slug,
        tuple(found[job] for job in jobs if job in found and not job.mutant),
        tuple(each for each in mutants if each.how is not How.PASSES),
        len(mutants),
        all_mutants,
    )


class _Explaining:
    """Explains the wrong answers of one stage, with one engine."""

    def __init__(self, course: Course, stage: Stage, known: Known, engine: Engine) -> None:
        self._course = course
        self._stage = stage
        self._known = known
        self._engine = engine

    def __call__(self, job: _Job) -> Explained:
        """How a wrong answer is explained."""
        if job.mutant is not None:
            return self._mutant(job, job.mutant)
        (mistake,) = (each for each in self._known.misconceptions if each.id == job.id)
        return self._misconception(job, mistake)

    def _mutant(self, job: _Job, mutant: Mutant) -> Explained:
        """Grade a mutant as a learner's submission, and look for the place of its mistake."""
        files = {**solution_files(self._course), self._stage.file_name: mutant.source.encode()}
        request = Request(Submission(mutant.id, files), (self._stage,), SEED)
        (result,) = self._engine.with_place(request, self._engine.grade(request)).stages
        if result.status is Status.PASSED:
            return Explained(job.id, How.PASSES, (), job.change)
        fine = (Outcome.PASSED, Outcome.SKIPPED)
        failing = [check for check in result.checks if check.outcome not in fine]
        reasons = [check.diagnosis for check in failing if check.diagnosis is not None]
        message = next((check.message for check in failing if check.message), "")
        return _explained(job, reasons, message)

    def _misconception(self, job: _Job, mistake: Misconception) -> Explained:
        """Run the checks against a misconception, which is no submission, in this process."""
        solution = local_solutions(self._course, self._stage)
        engine = self._engine
        runs = CheckRuns(self._course, self._stage, engine.interpreter, engine.checks)
        try:
            facts = runs.local(mistake.among(solution), SEED)
        except Hangs as error:
            return _explained(job, (), f"hangs: {error}")
        failing = [fact for fact in facts.cases if fact.ending in (Ending.WRONG, Ending.RAISED)]
        if not failing:
            return Explained(job.id, How.PASSES, (), job.change)
        reasons = diagnose(facts, self._known, solution).values()
        return _explained(job, list(reasons), failing[0].message, mistake.id)


def _explained(
    job: _Job, reasons: Sequence[Diagnosis], message: str, own_name: str = ""
) -> Explained:
    """How a wrong answer with these reasons is explained; `own_name` is that of a misconception."""
    kinds = {reason.kind for reason in reasons}
    names = {reason.id for reason in reasons if reason.kind is Kind.NAME}
    if own_name and names - {own_name}:
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
    return Explained(job.id, how, told, job.change, message.partition("\n")[0])
