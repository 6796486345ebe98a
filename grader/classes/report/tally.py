"""Counts what a class's verdicts say together: stages, checks, misconceptions. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from grader.classes.report.look import text
from grader.classes.report.reasons import UNLOADED, first_reason
from grader.classes.report.student import LONG_NAME, Person, without
from grader.types.report import Kind, Outcome, StageResult, Status

NAMED = 5  # students that are named with a misconception
_LISTED = 200  # in a list of students
_FEWEST = 9  # students, for thirds of a class


@dataclass
class StageTally:
    """How many submissions stand where in a stage; `totals` are the points of those it decided."""

    passed: int = 0
    failed: int = 0
    waiting: int = 0
    not_started: int = 0
    points: float = 0.0
    totals: list[float] = field(default_factory=list)

    @property
    def known(self) -> int:
        """How many submissions the stage's own checks have decided."""
        return self.passed + self.failed


@dataclass
class Held:
    """A misconception, a first cause or a failing check: how many have it, and the first of them.

    `totals` are the points that these students have in all, `example` is what the first one's
    feedback says, and `hint` the number of the hint about it.
    """

    stage: StageResult
    words: str
    students: int = 0
    first: list[str] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)
    example: str = ""
    hint: int | None = None

    def add(self, person: Person, total: float) -> None:
        """Count a student who has `total` points in all."""
        self.students += 1
        self.totals.append(total)
        if len(self.first) < NAMED:
            self.first.append(person.link)


@dataclass
class Listed:
    """Students with a few words about each."""

    students: int = 0
    lines: list[str] = field(default_factory=list)

    def add(self, person: Person, words: Iterable[str]) -> None:
        """Count a student, and list the first ones."""
        self.students += 1
        if len(self.lines) < _LISTED:
            about = text(person.hidden(" ".join(words)), LONG_NAME)
            self.lines.append(f"<li>{person.link}{': ' if about else ''}{about}</li>")


@dataclass
class Tally:
    """What the verdicts say together; `passed` are titles of checks that somebody passes."""

    students: int = 0
    most: float = 0.0
    seeds: set[int] = field(default_factory=set)
    versions: set[str] = field(default_factory=set)
    scores: list[float] = field(default_factory=list)
    seconds: float = 0.0
    stages: dict[str, StageTally] = field(default_factory=dict)
    checks: dict[tuple[str, str], Held] = field(default_factory=dict)
    passed: dict[tuple[str, str], str] = field(default_factory=dict)
    misconceptions: dict[tuple[str, str], Held] = field(default_factory=dict)
    causes: dict[tuple[str, str], Held] = field(default_factory=dict)
    unlocked: set[str] = field(default_factory=set)
    unread: Listed = field(default_factory=Listed)
    by_hand: Listed = field(default_factory=Listed)
    odd: Listed = field(default_factory=Listed)
    late: Listed = field(default_factory=Listed)
    links: dict[str, str] = field(default_factory=dict)

    @property
    def passed_by_all(self) -> list[str]:
        """The titles of the checks that somebody has reached and nobody fails."""
        return [title for key, title in self.passed.items() if key not in self.checks]

    def thirds(self, held: Held) -> tuple[float | None, float | None]:
        """The shares of the weakest and of the strongest third of the class that have it.

        The thirds are by points, and of them only those count whom the stage's own checks have
        decided. None if there is nobody, or where the class is small or its thirds are alike.
        """
        size = len(self.scores) // 3
        ordered = sorted(self.scores)
        if len(ordered) < _FEWEST or ordered[size - 1] >= ordered[-size]:
            return None, None
        weakest, strongest = ordered[size - 1], ordered[-size]
        known = self.stages[held.stage.slug].totals

        def share(least: float, most: float) -> float | None:
            of = sum(least <= total <= most for total in known)
            return sum(least <= total <= most for total in held.totals) / of if of else None

        return share(ordered[0], weakest), share(strongest, ordered[-1])


def tally_of(people: Iterable[Person], named: Collection[str] = ()) -> Tally:
    """Count everything that the report tells, and collect the links to the students `named`."""
    tally = Tally()
    for person in people:
        if person.entry.student in named:
            tally.links[person.entry.student] = person.link
        entry, report = person.entry, person.report
        tally.students += 1
        if report is None:
            (tally.by_hand if entry.is_lost else tally.unread).add(person, entry.record.notes)
            continue
        points = person.counted
        tally.scores.append(points.earned)
        tally.seeds.add(entry.seed)
        tally.versions.update(filter(None, [report.version]))
        tally.most = max(tally.most, points.most)
        if person.late is not None:
            tally.late.add(person, [person.late.words])
        tally.seconds += entry.seconds
        tally.unlocked.update(report.unlocked)
        if entry.unusual:
            tally.odd.add(person, entry.unusual)
        if any(stage.status is Status.ERROR for stage in report.stages):
            failed = [stage.title for stage in report.stages if stage.status is Status.ERROR]
            tally.by_hand.add(person, [", ".join(failed)])
        for stage in report.stages:
            _count(tally, person, stage, points.earned)
    return tally


def _count(tally: Tally, person: Person, stage: StageResult, total: float) -> None:
    counts = tally.stages.setdefault(stage.slug, StageTally())
    counts.points += stage.score
    if stage.caused_by is None and stage.status in (Status.PASSED, Status.FAILED):
        counts.totals.append(total)
        for check in stage.checks:
            if check.outcome is Outcome.PASSED:
                tally.passed[stage.slug, check.id] = check.title
    if stage.caused_by is not None:
        counts.waiting += 1
    elif stage.status is Status.PASSED:
        counts.passed += 1
    elif stage.status is Status.NOT_STARTED:
        counts.not_started += 1
    elif stage.status is Status.FAILED:
        counts.failed += 1
        reason = first_reason(stage)
        if reason is not None:
            example = without(person.entry.student, "student", reason.example)
            named = reason.check.diagnosis is not None
            named |= reason.key.startswith(("timeout", UNLOADED))
            words = reason.says if named else f"This check fails: {reason.says}"
            new = Held(stage, words, example=example, hint=reason.hint)
            tally.causes.setdefault((stage.slug, reason.key), new).add(person, total)
        found: dict[tuple[str, str], Held] = {}
        for check in stage.checks:
            if check.outcome in (Outcome.FAILED, Outcome.TIMEOUT):
                new = Held(stage, check.title, hint=check.hint)
                tally.checks.setdefault((stage.slug, check.id), new).add(person, total)
            diagnosis = check.diagnosis if check.outcome is Outcome.FAILED else None
            if diagnosis is not None and diagnosis.kind is Kind.NAME:
                example = without(person.entry.student, "student", check.message)
                new = Held(stage, diagnosis.text, example=example, hint=diagnosis.hint)
                key = stage.slug, diagnosis.id
                found[key] = tally.misconceptions.setdefault(key, new)
        for held in found.values():
            held.add(person, total)
