"""The screens after a folder of submissions was graded, or regraded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from grader.classes.folder.counted import Counted, all_points, counted, late_of, spread
from grader.classes.folder.types import LedgerEntry
from grader.classes.why.changes import stage_changes
from grader.show.screen import MARGIN, Page, amount, count, framed, screen
from grader.types.course import Assignment, Limits
from grader.types.seed import seeds_named

_LATE_SHOWN = 20


@screen
def class_summary(
    page: Page,
    assignment: Assignment,
    entries: Iterable[LedgerEntry],
    new: int,
    older: int,
    odd: Sequence[str],
    folder: str,
    files: Sequence[str],
    limits: Limits,
) -> Iterator[Text]:
    """The class's points, everything unusual, who came near the limit, and the files of results.

    `new` verdicts came in this run; `older` ones may differ by now.
    """
    tally = _tallied(assignment, entries, limits)
    yield Text()
    graded = f"{count(new, 'submission')} graded" if new else "nothing new to grade"
    seed = f", {seeds_named(tally.seeds)}" if tally.seeds else ""
    in_all = f", {tally.total} in total" if tally.total != new else ""
    yield from page.sentence(f"{page.word(assignment.name)}: {graded}{in_all}{seed}.")
    if points := tally.points:
        left = f", without the {len(tally.unread)} unreadable" if tally.unread else ""
        left += ", before late penalties" if tally.late else ""
        yield from page.sentence(f"Of {amount(tally.most)} points{left}: {spread(points)}.")
    yield from _times(page, assignment, tally.late, tally.timeless, list(tally.missing.values()))
    if tally.layers:
        yield from page.sentence(f"Note: {page.word(tally.layers)}.", "yellow")
    if older:
        verdicts = count(older, "verdict")
        yield from page.sentence(
            f"The course, the kit or a library has changed: {verdicts} may be different now."
        )
        yield from page.offer("To see how:", "grade class --out DIR --regrade")
    for entry in (*tally.lost, *tally.unread):
        notes = (page.word(note) for note in entry.record.notes)
        yield from _listed(page, page.word(entry.student), notes, "bold")
    if tally.unusual:
        yield Text()
        odd_ones = count(tally.unusual, "submission")
        yield from page.sentence(
            f"Graded, but something was unusual: {odd_ones}. See Notes in report.html."
        )
    if tally.slow:
        slowest = sorted(tally.slow, key=lambda each: -each.seconds)
        yield from _listed(
            page,
            f"Used more than half of the {limits.submission_seconds:g} seconds for one submission:",
            (f"{page.word(each.student)}: {each.seconds:.0f} seconds" for each in slowest),
        )
        if limits.is_spent(slowest[0].seconds):
            yield from page.sentence("Where all were used, some checks may not have run.")
            command = "grade class --out DIR --regrade --seconds-per-submission N"
            yield from page.offer("To give more time:", command)
    if odd:
        yield from _listed(page, "Skipped:", (page.word(note) for note in odd))
    written = page.word(", ".join(files))
    yield from _listed(page, f"Written in {page.word(folder)}:", [written])
    yield Text()


@dataclass
class _Tally:
    """What the last verdicts on a class say together; `missing` have an extension and no verdict.

    `layers` names the protections that a machine lacked, and `timeless` names the submissions
    without a time.
    """

    missing: dict[str, str]
    total: int = 0
    points: list[float] = field(default_factory=list)
    most: float = 0.0
    seeds: set[int] = field(default_factory=set)
    late: list[tuple[str, Counted]] = field(default_factory=list)
    timeless: list[str] = field(default_factory=list)
    layers: str = ""
    lost: list[LedgerEntry] = field(default_factory=list)
    unread: list[LedgerEntry] = field(default_factory=list)
    unusual: int = 0
    slow: list[LedgerEntry] = field(default_factory=list)


def _tallied(assignment: Assignment, entries: Iterable[LedgerEntry], limits: Limits) -> _Tally:
    tally = _Tally({name.casefold(): name for name in assignment.extensions})
    for entry in entries:
        tally.total += 1
        tally.missing.pop(entry.student.casefold(), None)
        if limits.is_near(entry.seconds):
            tally.slow.append(entry)
        if entry.is_lost:
            tally.lost.append(entry)
        elif entry.is_refused:
            tally.unread.append(entry)
        elif entry.report is not None:
            found = counted(entry.report, late_of(assignment, entry))
            tally.points.append(found.earned)
            tally.seeds.add(entry.seed)
            tally.unusual += bool(entry.unusual)
            tally.most = max(tally.most, found.most)
            if found.late is not None:
                tally.late.append((entry.student, found))
            if entry.record.submitted is None:
                tally.timeless.append(entry.student)
            tally.layers = next(iter(entry.report.unlocked), tally.layers)
    return tally


def _listed(page: Page, title: str, lines: Iterable[str], style: str = "") -> Iterator[Text]:
    yield Text()
    yield from page.sentence(title, style)
    for line in lines:
        yield from page.wrap(line, MARGIN + 2)


def _times(
    page: Page,
    assignment: Assignment,
    late: Sequence[tuple[str, Counted]],
    timeless: Sequence[str],
    missing: Sequence[str],
) -> Iterator[Text]:
    """Who is late, and why being late may be unknown."""
    if timeless and (assignment.due is not None or assignment.late is not None):
        these = "it does" if len(timeless) == 1 else "they do"
        words = f"No time of arrival is known for {count(len(timeless), 'submission')}"
        who = f": {page.word(', '.join(timeless))}" if len(timeless) <= _LATE_SHOWN else ""
        yield from page.sentence(f"{words}, so {these} not count as late{who}.")
        yield from page.offer(
            "To give the times:", "grade class SUBMISSIONS --out DIR --times FILE.csv"
        )
    if missing:
        names = page.word(", ".join(missing))
        words = f"Extensions for students who are not here: {names}."
        yield from page.sentence(words, "yellow")
    if late:
        yield from page.sentence(f"Late: {count(len(late), 'submission')}.")
    for student, points in late[:_LATE_SHOWN]:
        cost = f": {count(points.penalty, 'point')} less" if points.penalty else ", at no cost"
        line = Text(f"{page.word(student)}, {points.late.span if points.late else ''}{cost}")
        yield from page.wrap(line, MARGIN + 2)
    if late[_LATE_SHOWN:]:
        yield from page.wrap(f"and {len(late) - _LATE_SHOWN} more", MARGIN + 2)


@framed
def differences_screen(
    page: Page, affected: int, found: Sequence[tuple[LedgerEntry, LedgerEntry]]
) -> Iterator[Text]:
    """What a new version of the course changes, student by student."""
    if not affected:
        yield from page.sentence("No verdict can have changed: there is nothing to regrade.")
        return
    if not found:
        yield from page.sentence(f"Regraded {affected}: no points change.")
        return
    yield from page.sentence(f"Regraded {affected}: {count(len(found), 'verdict')} would change:")
    for before, after in found:
        yield Text()
        line = Text(page.word(before.student), "bold")
        line.append(f"  {_points(before)} -> {_points(after)}", "default")
        yield from page.sentence(line)
        for change in stage_changes(before, after):
            yield from page.wrap(page.word(change.words), MARGIN + 2)


def _points(entry: LedgerEntry) -> str:
    """All points of a verdict, or that a person has to give them."""
    return "by hand" if entry.is_lost else amount(all_points(entry))
