"""How a class's understanding changed since an earlier assignment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from statistics import median

from grader.classes.folder.counted import counted
from grader.classes.folder.types import LedgerEntry
from grader.types.report import Kind, Status

_MUCH = 0.1  # of all points: a smaller change says nothing


@dataclass(frozen=True)
class StageMoved:
    """A stage of both assignments: how many of the `students` in both passed it then, and now."""

    stage: str
    title: str
    before: int
    now: int


@dataclass(frozen=True)
class MistakeMoved:
    """A known mistake in a stage of both: how many students had it, and what became of it.

    Of those who had it `before`, `still` have it. `new` did not have it then and do now.
    """

    stage: str
    says: str
    before: int
    still: int
    new: int


@dataclass(frozen=True)
class Moved:
    """The `students` whose code was graded in both, by the share of all points they earned.

    `before` and `now` are the medians of these shares. So many `rose` or `fell` by a tenth of all
    points or more; `fallen` are those who fell, the most first, with both shares.
    """

    name: str
    students: int
    before: float
    now: float
    rose: int
    fell: int
    fallen: tuple[tuple[str, float, float], ...] = ()
    stages: tuple[StageMoved, ...] = ()
    mistakes: tuple[MistakeMoved, ...] = ()


@dataclass
class _Class:
    """Where the students of a class stand: by student, and what stages and mistakes are called."""

    shares: dict[str, float] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    passed: dict[str, set[str]] = field(default_factory=dict)
    held: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    says: dict[tuple[str, str], str] = field(default_factory=dict)


def moved(name: str, before: Iterable[LedgerEntry], now: Iterable[LedgerEntry]) -> Moved | None:
    """Compare two classes' verdicts student by student; None if no student is in both.

    `name` is what the earlier assignment is called.
    """
    old, new = _class(before), _class(now)
    both = old.shares.keys() & new.shares.keys()
    if not both:
        return None
    shares = [(new.names[key], old.shares[key], new.shares[key]) for key in sorted(both)]
    # Rounded, because 0.8 - 0.7 is a little less than a tenth.
    fallen = [one for one in shares if round(one[1] - one[2], 6) >= _MUCH]
    stages = [slug for slug in new.titles if slug in old.titles]
    return Moved(
        name=name,
        students=len(both),
        before=median(was for _, was, _ in shares),
        now=median(share for _, _, share in shares),
        rose=sum(round(share - was, 6) >= _MUCH for _, was, share in shares),
        fell=len(fallen),
        fallen=tuple(sorted(fallen, key=lambda one: one[2] - one[1])),
        stages=tuple(
            StageMoved(slug, new.titles[slug], *(len(of.passed[slug] & both) for of in (old, new)))
            for slug in stages
        ),
        mistakes=tuple(_mistakes(old, new, both, stages)),
    )


def _mistakes(
    old: _Class, new: _Class, both: Set[str], stages: Sequence[str]
) -> Iterator[MistakeMoved]:
    """The known mistakes of these stages: first those that most still have, then new ones."""
    found = []
    for key, says in (old.says | new.says).items():
        had, has = (of.held.get(key, set()) & both for of in (old, new))
        if key[0] in stages and (had or has):
            found.append(MistakeMoved(key[0], says, len(had), len(had & has), len(has - had)))
    yield from sorted(found, key=lambda one: (-one.still, -one.new))


def _class(entries: Iterable[LedgerEntry]) -> _Class:
    found = _Class()
    for entry in entries:
        points = counted(entry.report)
        if entry.report is None or entry.is_refused or not points.most:
            continue
        student = entry.student.casefold()
        found.shares[student] = points.earned / points.most
        found.names[student] = entry.student
        for stage in entry.report.stages:
            found.titles.setdefault(stage.slug, stage.title)
            passed = found.passed.setdefault(stage.slug, set())
            if stage.status is Status.PASSED:
                passed.add(student)
            for check in stage.checks:
                named = check.diagnosis
                if named is not None and named.kind is Kind.NAME:
                    found.held.setdefault((stage.slug, named.id), set()).add(student)
                    found.says.setdefault((stage.slug, named.id), named.text)
    return found
