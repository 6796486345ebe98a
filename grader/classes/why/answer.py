"""Runs a student's submission once more, to show how its points come about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grader.checking.inputs import FEW
from grader.classes.folder.types import LedgerEntry
from grader.engine import Engine, Request
from grader.judge.verdict import judge
from grader.learning.repro.reproduced import find_failure, written
from grader.learning.repro.script import is_call
from grader.read.stubs import parameters, read_stub
from grader.run.facts import CaseFact
from grader.run.worker.packing import Unpacker
from grader.types.course import Course, Stage
from grader.types.errors import KitError
from grader.types.report import Report, Status
from grader.types.submission import Submission
from grader.types.text import listed, safe

PRESENT = (
    "The lines to run and their numbers come from the present version, not from the stored one."
)
_CALLS = 3  # the last ones of a failing case, because an earlier answer may be the wrong one
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
        why_not = f"{slug} fails because of {cause}, so look at that stage"
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
        given = tuple(_inputs(fact, read_stub(stage)))
        failure = Failure(stage.slug, check.id, is_notebook=is_notebook)
        try:
            lines = safe(written(stage, request.submission, check, fact, request.seed))
            yield replace(failure, lines=lines, inputs=given if _DRAWS in lines else ())
        except KitError as error:
            yield replace(failure, why_not=safe(str(error)), inputs=given)


def _inputs(fact: CaseFact, stub: str) -> list[tuple[str, str]]:
    """Each tensor or array of more than a few numbers: its names with its shape, and its numbers.

    The `stub` is the stage's, for the names of its parameters. Arguments that a message shows in
    full, because they are small, are left out.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for exchange in [each for each in fact.exchanges if is_call(each)][-_CALLS:]:
        header = exchange.request.header
        unpacker = Unpacker(exchange.request)
        names = _names(header["target"], parameters(stub, bound=True))
        args = unpacker.unpack(header["args"])
        given = {(names[at : at + 1] or [f"input {at + 1}"])[0]: v for at, v in enumerate(args)}
        for name, array in _arrays({**given, **unpacker.unpack(header["kwargs"])}):
            shape = " x ".join(map(str, array.shape))
            known = found.setdefault((shape, str(array)), [])
            known.extend([] if name in known else [name])
    return [(f"{listed(names)} [{shape}]", text) for (shape, text), names in found.items()]


def _names(target: dict[str, Any], known: dict[str, list[str]]) -> list[str]:
    """The parameters of the called function, or of the only class's objects."""
    if "function" in target:
        return known.get(target["function"], [])
    calls = (".forward", ".__call__")
    forwards = [names for code, names in known.items() if code.endswith(calls)]
    return forwards[0] if len(forwards) == 1 else []


def _arrays(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _arrays(each, f"{name} {key}".strip())
    elif isinstance(value, (list, tuple)):
        for at, each in enumerate(value, start=1):
            yield from _arrays(each, f"{name} {at}".strip())
    elif hasattr(value, "dtype") and math.prod(getattr(value, "shape", ())) > FEW:
        yield name, value.detach().cpu() if hasattr(value, "detach") else value
