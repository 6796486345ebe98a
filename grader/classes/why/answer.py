"""Runs a student's submission once more, to show how its points come about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from grader.classes.folder.types import LedgerEntry
from grader.classes.why.inputs import inputs
from grader.engine import Engine, Request
from grader.judge.verdict import judge
from grader.learning.repro.reproduced import find_failure, written
from grader.read.stubs import read_stub
from grader.types.course import Course, Stage
from grader.types.errors import KitError
from grader.types.report import Report, Status
from grader.types.submission import Submission
from grader.types.text import safe

PRESENT = (
    "The lines of torch and their numbers come from the present version, not from the stored one."
)
_DRAWS = "torch.Generator()"  # in lines that draw some numbers instead of writing them out


@dataclass(frozen=True)
class Failure:
    """A failing check without the kit: plain `lines`, or `why_not` if there are none.

    `inputs` are the names and the numbers of what the student's code was given, unless the lines
    have all of them. `is_notebook` says that the lines are for a notebook, not a folder of files.
    """

    slug: str
    check: str = ""
    lines: str = ""
    why_not: str = ""
    inputs: tuple[tuple[str, str], ...] = ()
    is_notebook: bool = False


@dataclass(frozen=True)
class Answer:
    """A report on some stages, from a run just now if this `is_same_version`, else the stored one.

    `entries` are all verdicts on the student, oldest first.
    """

    entries: Sequence[LedgerEntry]
    report: Report
    is_same_version: bool
    failures: tuple[Failure, ...] = ()


def stored(course: Course, entries: Sequence[LedgerEntry], stages: Sequence[Stage]) -> Answer:
    """What the ledger says of these stages; the last entry must have a report."""
    report = entries[-1].report
    assert report is not None
    exams = {stage.slug: stage.is_exam for stage in stages}
    kept = [
        replace(stage, is_exam=stage.is_exam or exams[stage.slug])
        for stage in report.stages
        if stage.slug in exams
    ]
    part = judge(course, report.submission, report.device, kept, report.notes)
    return Answer(entries, part, is_same_version=False)


def replayed(
    engine: Engine,
    entries: Sequence[LedgerEntry],
    submission: Submission,
    stages: Sequence[Stage],
    check: str = "",
) -> Answer:
    """What running these stages with the last verdict's seed gives, with nothing left out.

    `check` is the name of the check to show if there is one stage; "" means the first to fix.
    Raises KitError if there is no such check, or it passes.
    """
    entry = entries[-1]
    request = Request(replace(submission, name=entry.student), tuple(stages), entry.seed)
    report = engine.with_place(request, engine.grade(request))
    failing = {s.slug: s.caused_by for s in report.stages if s.status is Status.FAILED}
    own = [s for s in stages if check or failing.get(s.slug, "") is None]
    failures = tuple(_failures(engine, request, own, check))
    if len(stages) == 1 and not own and failing:
        [(slug, cause)] = failing.items()
        why_not = f"{slug} fails only because of {cause}, so look at that stage"
        failures = (Failure(slug, why_not=why_not),)
    return Answer(entries, report, is_same_version=True, failures=failures)


def with_present_failures(
    engine: Engine, answer: Answer, submission: Submission, stages: Sequence[Stage], check: str
) -> Answer:
    """A stored answer with the failures that the present course and kit find."""
    slug = stages[0].slug
    try:
        failures = replayed(engine, answer.entries, submission, stages, check).failures
    except KitError as error:
        failures = (Failure(slug, why_not=safe(str(error))),)
    none = Failure(slug, why_not=f"{slug} does not fail in the present version")
    return replace(answer, failures=failures or (none,))


def _failures(
    engine: Engine, request: Request, stages: Sequence[Stage], name: str
) -> Iterator[Failure]:
    for stage in stages:
        facts = engine.facts(replace(request, stages=(stage,)))
        is_notebook = request.submission.cells is not None
        try:
            check, fact = find_failure(stage, facts, name, request.seed)
        except KitError as error:
            if name:
                raise
            yield Failure(stage.slug, why_not=safe(str(error)))
            continue
        given = tuple(inputs(fact, read_stub(stage)))
        failure = Failure(stage.slug, check.id, is_notebook=is_notebook)
        try:
            lines = safe(written(stage, request.submission, check, fact, request.seed))
            yield replace(failure, lines=lines, inputs=given if _DRAWS in lines else ())
        except KitError as error:
            yield replace(failure, why_not=safe(str(error)), inputs=given)
