"""The screens after a class was graded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import mean, median

from rich.text import Text

from grader.classes.folder.types import LedgerEntry, VerdictChange
from grader.classes.nbgrader.types import Graded
from grader.show.screen import MARGIN, Page, amount, count, screen
from grader.types.course import Limits
from grader.types.report import Report


@screen
def summary(page: Page, assignment: str, results: Sequence[Graded], seed: int) -> Iterator[Text]:
    """How many submissions were graded, their points, and everything unusual."""
    yield Text()
    if not results:
        name = page.word(assignment)
        yield from page.sentence(Text(f"Nothing new to grade in {name}; --force regrades all."))
        yield Text()
        return
    yield from page.sentence(
        Text(f"{page.word(assignment)}: {count(len(results), 'submission')} graded, seed {seed}.")
    )
    known = [result.points for result in results if result.points is not None]
    if known:
        most = amount(results[0].max_points)
        words = f"Of {most} points: median {amount(median(known))}, mean {amount(mean(known))}, "
        yield from page.sentence(Text(f"{words}from {amount(min(known))} to {amount(max(known))}."))
    for result in results:
        odd = list(result.notes)
        if result.points is None:
            odd.append("The grader itself failed: set these points by hand.")
        if odd:
            yield Text()
            yield from page.sentence(Text(page.word(result.student), "bold"))
            for note in odd:
                yield from page.wrap(Text(page.word(note)), MARGIN + 2)
    yield Text()


@screen
def class_summary(
    page: Page,
    assignment: str,
    entries: Iterable[LedgerEntry],
    new: int,
    older: int,
    odd: Sequence[str],
    files: Sequence[str],
    limits: Limits,
) -> Iterator[Text]:
    """The class's points, everything unusual, who came near the limit, and the result files.

    `new` verdicts came in this run; `older` ones may differ by now.
    """
    points: list[float] = []
    total, lost, unread, slow = 0, [], [], []
    most, layers = 0.0, ""
    for entry in entries:
        total += 1
        if limits.is_near(entry.seconds):
            slow.append(entry)
        if entry.is_lost:
            lost.append(entry)
        elif entry.is_refused:
            unread.append(entry)
        elif entry.report is not None:
            points.append(entry.report.score)
            most = max(most, entry.report.max_score)
            layers = next(iter(entry.report.unlocked), layers)
    yield Text()
    graded = f"{count(new, 'submission')} graded" if new else "nothing new to grade"
    yield from page.sentence(Text(f"{page.word(assignment)}: {graded}, {total} in total."))
    if points:
        words = f"Of {amount(most)} points: median {amount(median(points))}, mean "
        words += f"{amount(mean(points))}, from {amount(min(points))} to {amount(max(points))}."
        yield from page.sentence(Text(words))
    if layers:
        yield from page.sentence(Text(f"Note: {page.word(layers)}.", "yellow"))
    if older:
        verdicts = count(older, "verdict")
        yield from page.sentence(
            Text(f"The course or the kit has changed since: {verdicts} may be different now.")
        )
        yield from page.offer("To see how:", "grade class --out DIR --regrade")
    for entry in (*lost, *unread):
        yield Text()
        yield from page.sentence(Text(page.word(entry.student), "bold"))
        for note in entry.record.notes:
            yield from page.wrap(Text(page.word(note)), MARGIN + 2)
    if slow:
        yield Text()
        seconds = f"{limits.submission_seconds:g} seconds"
        yield from page.sentence(Text(f"Used more than half of the {seconds} for one submission:"))
        for entry in sorted(slow, key=lambda each: -each.seconds):
            line = Text(f"{page.word(entry.student)}: {entry.seconds:.0f} seconds")
            yield from page.wrap(line, MARGIN + 2)
    if odd:
        yield Text()
        yield from page.sentence(Text("Skipped:"))
        for note in odd:
            yield from page.wrap(Text(page.word(note)), MARGIN + 2)
    yield Text()
    for file in files:
        yield from page.sentence(Text(f"Written: {page.word(file)}"))
    yield Text()


@screen
def differences_screen(page: Page, affected: int, found: Sequence[VerdictChange]) -> Iterator[Text]:
    """What a new version of the course changes, student by student."""
    yield Text()
    if not affected:
        yield from page.sentence(Text("No verdict can have changed: there is nothing to regrade."))
        yield Text()
        return
    if not found:
        yield from page.sentence(Text(f"Regraded {affected}: no points change."))
        yield Text()
        return
    changed = f"Regraded {affected}: {count(len(found), 'verdict')} would change:"
    yield from page.sentence(Text(changed))
    for each in found:
        yield Text()
        line = Text(page.word(each.before.student), "bold")
        line.append(f"  {_points(each.before)} -> {_points(each.after)}", "default")
        yield from page.sentence(line)
        for text in _stage_differences(each):
            yield from page.wrap(Text(page.word(text)), MARGIN + 2)
    yield Text()


def _points(entry: LedgerEntry) -> str:
    if entry.is_lost:
        return "by hand"
    return amount(0 if entry.report is None else entry.report.score + entry.report.bonus)


def _stage_differences(each: VerdictChange) -> Iterator[str]:
    """Each stage that changes, with the checks that newly pass or newly fail."""
    before, after = each.before.report, each.after.report
    if before is None or after is None:
        return
    old = {stage.slug: stage for stage in before.stages}
    for stage in after.stages:
        was = old.get(stage.slug)
        scores = {} if was is None else {check.id: check.score for check in was.checks}
        worth = {} if was is None else {check.id: check.max_score for check in was.checks}
        now = {check.id: check.score for check in stage.checks}
        kept = {check.id for check in stage.checks if check.score and scores.get(check.id)}
        gained = [name for name, score in now.items() if score > scores.get(name, 0)]
        lost = [name for name, score in scores.items() if score > now.get(name, 0)]
        gained, lost = ([name for name in names if name not in kept] for names in (gained, lost))
        other = [c.id for c in stage.checks if c.max_score != worth.get(c.id, c.max_score)]
        if gained or lost or other:
            had = "-" if was is None else f"{amount(was.score)} of {amount(was.max_score)}"
            parts = [f"{stage.slug}: {had} -> {amount(stage.score)} of {amount(stage.max_score)}"]
            for word, names in (("gained", gained), ("lost", lost), ("other points for", other)):
                if names:
                    short = ", ".join(name.removeprefix(f"{stage.slug}.") for name in names)
                    parts.append(f"{word} {short}")
            yield "; ".join(parts)


@screen
def history(page: Page, entries: Sequence[LedgerEntry]) -> Iterator[Text]:
    """All verdicts on a student, oldest first."""
    yield Text()
    yield from page.sentence(Text(page.word(entries[-1].student), "bold"))
    for entry in entries:
        engine = f"engine {entry.version.engine}"
        points = "points by hand" if entry.is_lost else f"{_points(entry)} points"
        line = f"{entry.when}: {points}, seed {entry.seed}, {engine}"
        yield from page.wrap(Text(page.word(line)), MARGIN + 2)
        for note in entry.record.notes:
            yield from page.wrap(Text(page.word(note)), MARGIN + 4)
    yield Text()


@screen
def replay_outcome(
    page: Page, entry: LedgerEntry, report: Report, is_same_version: bool
) -> Iterator[Text]:
    """Whether regrading gave the current verdict again."""
    if not is_same_version:
        yield from page.sentence(
            Text(
                "This is the stored verdict. The course or the kit has changed since, so it cannot "
                "be replayed here: --regrade shows what this version gives."
            )
        )
    elif entry.report is not None and outcomes(report) == outcomes(entry.report):
        words = f"Regraded just now with seed {entry.seed}: every check gave the same result."
        yield from page.sentence(Text(words, "green"))
    else:
        kept = {} if entry.report is None else outcomes(entry.report)
        now = outcomes(report)
        names = sorted(name for name in kept.keys() | now.keys() if kept.get(name) != now.get(name))
        words = f"Regraded just now with seed {entry.seed}, these checks gave other results: "
        yield from page.sentence(Text(words + page.word(", ".join(names)), "red"))
        yield from page.sentence(Text("Does the answer use random numbers or depend on time?"))

    yield Text()


def outcomes(report: Report) -> dict[str, str]:
    """How each check ended."""
    return {check.id: check.outcome.value for stage in report.stages for check in stage.checks}
