"""Students' requests to be regraded: a table of them in, a verdict with its reason on each out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from unicodedata import combining, normalize

from grader.classes.folder.counted import late_of
from grader.classes.folder.csv_files import parse_table, read_text
from grader.classes.folder.ledger import Ledger
from grader.classes.folder.tables import cell_text, csv_cell
from grader.classes.folder.types import LedgerEntry, Version
from grader.classes.grading import all_graded
from grader.classes.nbgrader.feedback import comment
from grader.classes.why.changes import outcomes
from grader.engine import Engine, Request
from grader.read.course_file import find_stage
from grader.run.lanes import LaneLost
from grader.show.screen import amount
from grader.types.course import Assignment, Course, Stage
from grader.types.errors import KitError, close_to
from grader.types.report import Report, StageResult, Status
from grader.types.text import headline

_STUDENT = ("student", "student_id")  # names of that column; the second is that of scores.csv
_OTHER = (
    "The same code gave other results than before: does it use random numbers, the time or a "
    "library that was missing?"
)
_CHANGED = "The course or the kit has changed since; --regrade makes these points count"
_SAME_NOW = "The course or the kit has changed since, but no points change"


class Verdict(str, Enum):
    """What becomes of a request. CHECK means that a person has to look."""

    STANDS = "stands"
    CHANGES = "changes"
    CHECK = "check"


@dataclass(frozen=True)
class Asked:
    """One request: a student, a stage ("" for all) and the student's own words."""

    student: str
    stage: str
    words: str


@dataclass(frozen=True)
class Decision:
    """The verdict on a request: `points` of the stages before and `now`, None if unknown."""

    asked: Asked
    verdict: Verdict
    reason: str
    seed: int | None = None
    points: float | None = None
    now: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class _Job:
    """The stages of a verdict that a request asks to run again."""

    entry: LedgerEntry
    stages: tuple[Stage, ...]


def read_requests(file: Path) -> list[Asked]:
    """The requests in a CSV file with the columns student, stage and words. Raises KitError."""
    rows, _ = parse_table(read_text(file), str(file))
    header = [name.strip().lower() for name in rows[0]] if rows else []
    student = next((name for name in _STUDENT if name in header), None)
    if student is None:
        raise KitError(
            f"{file}: needs the column 'student' in its first row; 'stage', 'words' are optional"
        )
    records = (dict(zip(header, row, strict=False)) for row in rows[1:])
    asked = [
        Asked(
            normalize("NFC", cell_text(each.get(student, ""))),  # as `grade class` names students
            each.get("stage", "").strip(),
            each.get("words", "").strip(),
        )
        for each in records
        if any(map(str.strip, each.values()))
    ]
    if not asked:
        raise KitError(f"{file}: has no request below its first row")
    return asked


def graded_stages(course: Course, entry: LedgerEntry, word: str | None) -> list[Stage]:
    """The stage that a word such as softmax or softmax.values names; all graded ones without.

    Raises KitError for a stage that the verdict does not have.
    """
    graded = [stage.slug for stage in entry.report.stages] if entry.report is not None else []
    if not word:
        return [stage for stage in course.stages if stage.slug in graded]
    stage = find_stage(course, word.partition(".")[0] or word)
    if graded and stage.slug not in graded:
        raise KitError(f"'{stage.slug}' was not graded; choose one of {', '.join(graded)}")
    return [stage]


def close_name(name: str, known: Iterable[str]) -> str:
    """Advice on a student's name that is not in the ledger."""
    folded = {_plain(each): each for each in known}
    word = _plain(name).strip()
    close = [key for key in folded if word and word in key]
    close = [word] if word in folded else close or get_close_matches(word, folded, n=1)
    return f"did you mean '{folded[close[0]]}'?" if close else "scores.csv lists all students"


def _plain(name: str) -> str:
    """A name in small letters without accents."""
    return "".join(each for each in normalize("NFKD", name.casefold()) if not combining(each))


def decided(
    engine: Engine,
    ledger: Ledger,
    version: Version,
    assignment: Assignment,
    requests: Sequence[Asked],
    lanes: int,
    advance: Callable[[], None],
) -> list[Decision]:
    """A decision on each request; every run uses the verdict's own seed and reruns everything.

    However often a student asks for the same stages, they run once.
    Nothing in the ledger changes. Raises KitError if the course's solutions do not pass in the
    stages of the `assignment`.
    """
    found = [_looked_up(engine.course, ledger, asked) for asked in requests]
    wanted = {(job.entry.student, job.stages): job for job in found if isinstance(job, _Job)}
    runs: dict[tuple[str, tuple[Stage, ...]], Report | LaneLost] = {}
    for _ in range(len(requests) - len(wanted)):
        advance()

    def work(lane: Engine) -> Callable[[_Job], Report]:
        return lambda job: lane.grade(_request(ledger, job))

    stages = assignment.stages
    with closing(all_graded(engine, wanted.values(), lanes, stages, 0, work)) as graded:
        for job, result in graded:
            runs[job.entry.student, job.stages] = result
            advance()
    return [
        _compared(asked, job.entry, runs[job.entry.student, job.stages], version, assignment)
        if isinstance(job, _Job)
        else job
        for asked, job in zip(requests, found, strict=True)
    ]


def _request(ledger: Ledger, job: _Job) -> Request:
    named = replace(ledger.submission(job.entry), name=job.entry.student)
    return Request(named, job.stages, job.entry.seed)


def decision_rows(decisions: Sequence[Decision]) -> Iterator[list[str]]:
    """A header row, then a row for each decision; no spreadsheet runs a cell as a formula."""
    yield [
        *("student", "stage", "words", "verdict"),
        *("points", "points_now", "max_points", "seed", "reason"),
    ]
    for each in decisions:
        asked = each.asked
        points = ["" if p is None else amount(p) for p in (each.points, each.now, each.most)]
        seed = "" if each.seed is None else str(each.seed)
        words = [csv_cell(word) for word in (asked.student, asked.stage, asked.words)]
        yield [*words, each.verdict.value, *points, seed, csv_cell(each.reason)]


def _looked_up(course: Course, ledger: Ledger, asked: Asked) -> _Job | Decision:
    """What to run for a request, or the decision if there is nothing to run."""
    name = asked.student.strip()  # unless a folder's name really ends with a space
    entry = ledger.latest_of(asked.student) or ledger.latest_of(name)
    if not name:
        return Decision(asked, Verdict.CHECK, "this row names no student")
    if entry is None:
        close = close_name(asked.student, ledger.students())
        return Decision(asked, Verdict.CHECK, f"no such student here; {close}")
    notes = " ".join(entry.record.notes)
    if entry.report is None:
        return Decision(asked, Verdict.CHECK, notes, entry.seed)
    if entry.report.refusal:
        return Decision(asked, Verdict.STANDS, notes, entry.seed, 0, 0, entry.report.max_score)
    try:
        stages = graded_stages(course, entry, asked.stage)
        _expect_check(entry.report, stages, asked.stage)
    except KitError as error:
        return Decision(asked, Verdict.CHECK, str(error), entry.seed)
    return _Job(entry, tuple(stages))


def _expect_check(report: Report, stages: Sequence[Stage], word: str) -> None:
    """Raise KitError if a word such as softmax.values names a check that the verdict lacks."""
    name = word.partition(".")[2]
    slugs = {stage.slug for stage in stages}
    checks = [check.id for stage in report.stages if stage.slug in slugs for check in stage.checks]
    known = {check.partition(".")[2] for check in checks}
    if name and name not in known:
        [slug] = slugs
        raise KitError(f"{slug} has no check '{name}'{close_to(name, known)}")


def _compared(
    asked: Asked,
    entry: LedgerEntry,
    now: Report | LaneLost,
    version: Version,
    assignment: Assignment,
) -> Decision:
    """The decision by what the run just now gave, beside the verdict in the ledger."""
    if isinstance(now, LaneLost):
        why = f"the grader failed on this submission ({now}): set these points by hand"
        return Decision(asked, Verdict.CHECK, why, entry.seed)
    assert entry.report is not None
    slugs = {stage.slug for stage in now.stages}
    before = [stage for stage in entry.report.stages if stage.slug in slugs]
    points = sum(stage.score for stage in before)
    reasons = [*(_reason(stage, asked.stage) for stage in now.stages), *entry.record.notes]
    late = late_of(assignment, entry)
    if late is not None:
        before_that = "; the points here are those before" if late.share else ""
        reasons.append(f"The submission came {late.words}{before_that}")
    verdict = Verdict.STANDS
    if entry.version != version:
        same = [s.score for s in before] == [s.score for s in now.stages]
        verdict = Verdict.STANDS if same else Verdict.CHANGES
        reasons.append(_SAME_NOW if same else _CHANGED)
    elif outcomes(entry.report, now) != outcomes(now, now):
        verdict = Verdict.CHECK
        reasons.append(_OTHER)
    if any(stage.status is Status.ERROR for stage in now.stages):
        verdict = Verdict.CHECK
    total, most = sum(s.score for s in now.stages), sum(s.max_score for s in now.stages)
    reason = " ".join(each if each.endswith("?") else f"{each.rstrip('.')}." for each in reasons)
    return Decision(asked, verdict, reason, entry.seed, points, total, most)


def _reason(stage: StageResult, word: str) -> str:
    """Why a stage has its points, on one line, with a check's message.

    The check is the one that `word` names, such as softmax.values, else the one to fix first.
    """
    listed = comment(stage).replace(":\n\n- ", ": ").replace("\n- ", "; ")
    words = f"{stage.slug}: {listed}".replace(")\n\n", "). ")
    first = next((check for check in stage.checks if check.id == word), None)
    if first is None and stage.status is Status.FAILED and stage.caused_by is None:
        first = stage.causes[0].show
    if first is not None:
        message = headline(first.message)
        words += f" {first.id}: {message}" if message not in words else ""
    return " ".join(words.split())
