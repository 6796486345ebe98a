"""What is said when a class was graded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import mean, median

from rich.text import Text

from grader.show.screen import MARGIN, Page, Screen, amount, count
from grader.types.gradebook import Graded
from grader.types.ledger import Difference, Entry
from grader.types.report import UNLOCKED, Report


def summary(assignment: str, results: Sequence[Graded], seed: int) -> Screen:
    """How many were graded, their points, and everything that was odd."""
    return Screen(lambda page: _summary(page, assignment, results, seed))


def _summary(page: Page, assignment: str, results: Sequence[Graded], seed: int) -> Iterator[Text]:
    yield Text()
    if not results:
        name = page.word(assignment)
        yield from page.sentence(Text(f"Nothing new to grade in {name}; --force grades again."))
        yield Text()
        return
    yield from page.sentence(
        Text(f"{page.word(assignment)}: {count(len(results), 'submission')} graded, seed {seed}.")
    )
    known = [result.points for result in results if result.points is not None]
    if known:
        most = amount(results[0].max_points)
        said = f"Of {most} points: median {amount(median(known))}, mean {amount(mean(known))}, "
        yield from page.sentence(Text(f"{said}from {amount(min(known))} to {amount(max(known))}."))
    for result in results:
        odd = list(result.notes)
        if result.points is None:
            odd.append("The grader itself failed: give these points by hand.")
        if odd:
            yield Text()
            yield from page.sentence(Text(page.word(result.student), "bold"))
            for note in odd:
                yield from page.wrap(Text(page.word(note)), MARGIN + 2)
    yield Text()


def class_summary(
    assignment: str,
    entries: Iterable[Entry],
    new: int,
    older: int,
    odd: Sequence[str],
    files: Sequence[str],
) -> Screen:
    """How the class stands, what was odd, and where the results are.

    `new` verdicts came in this run; `older` may come out otherwise by now.
    """
    return Screen(lambda page: _class_summary(page, assignment, entries, new, older, odd, files))


def _class_summary(
    page: Page,
    assignment: str,
    entries: Iterable[Entry],
    new: int,
    older: int,
    odd: Sequence[str],
    files: Sequence[str],
) -> Iterator[Text]:
    points: list[float] = []
    total, lost, unread = 0, [], []
    most, layers = 0.0, ""
    for entry in entries:
        total += 1
        if entry.is_lost:
            lost.append(entry)
        elif entry.report is None:
            unread.append(entry)
        else:
            points.append(entry.report.score)
            most = max(most, entry.report.max_score)
            layers = next((n for n in entry.report.notes if n.startswith(UNLOCKED)), layers)
    yield Text()
    graded = f"{count(new, 'submission')} graded" if new else "nothing new to grade"
    yield from page.sentence(Text(f"{page.word(assignment)}: {graded}, {total} in all."))
    if points:
        said = f"Of {amount(most)} points: median {amount(median(points))}, "
        said += f"mean {amount(mean(points))}, from {amount(min(points))} to {amount(max(points))}."
        yield from page.sentence(Text(said))
    if layers:
        yield from page.sentence(Text(f"Note: {page.word(layers)}.", "yellow"))
    if older:
        verdicts = count(older, "verdict")
        yield from page.sentence(
            Text(f"The course or the kit has changed since: {verdicts} may come out otherwise.")
        )
        yield from page.offer("To see how:", "grade class --out DIR --regrade")
    for entry in (*lost, *unread):
        yield Text()
        yield from page.sentence(Text(page.word(entry.student), "bold"))
        for note in entry.hand_in.notes:
            yield from page.wrap(Text(page.word(note)), MARGIN + 2)
    if odd:
        yield Text()
        yield from page.sentence(Text("Not looked at:"))
        for line in odd:
            yield from page.wrap(Text(page.word(line)), MARGIN + 2)
    yield Text()
    for file in files:
        yield from page.sentence(Text(f"Written: {page.word(file)}"))
    yield Text()


def differences_screen(affected: int, found: Sequence[Difference]) -> Screen:
    """What a new version of the course changes, student by student."""
    return Screen(lambda page: _differences(page, affected, found))


def _differences(page: Page, affected: int, found: Sequence[Difference]) -> Iterator[Text]:
    yield Text()
    if not affected:
        yield from page.sentence(Text("No verdict can have changed: nothing to grade again."))
        yield Text()
        return
    if not found:
        yield from page.sentence(Text(f"{count(affected, 'verdict')} again: no points change."))
        yield Text()
        return
    changed = f"{count(len(found), 'verdict')} of {affected} graded again would change:"
    yield from page.sentence(Text(changed))
    for each in found:
        yield Text()
        line = Text(page.word(each.before.student), "bold")
        line.append(f"  {_points(each.before)} -> {_points(each.after)}", "default")
        yield from page.sentence(line)
        for text in _stage_differences(each):
            yield from page.wrap(Text(page.word(text)), MARGIN + 2)
    yield Text()


def _points(entry: Entry) -> str:
    if entry.is_lost:
        return "by hand"
    return amount(0 if entry.report is None else entry.report.score + entry.report.bonus)


def _stage_differences(each: Difference) -> Iterator[str]:
    """Each stage that changes, with the checks that are passed now or no longer."""
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


def history(entries: Sequence[Entry]) -> Screen:
    """All verdicts on a student, the oldest first."""
    return Screen(lambda page: _history(page, entries))


def _history(page: Page, entries: Sequence[Entry]) -> Iterator[Text]:
    yield Text()
    yield from page.sentence(Text(page.word(entries[-1].student), "bold"))
    for entry in entries:
        engine = f"engine {entry.version.engine}"
        points = "points by hand" if entry.is_lost else f"{_points(entry)} points"
        said = f"{entry.when}: {points}, seed {entry.seed}, {engine}"
        yield from page.wrap(Text(page.word(said)), MARGIN + 2)
        for note in entry.hand_in.notes:
            yield from page.wrap(Text(page.word(note)), MARGIN + 4)
    yield Text()


def replay_outcome(entry: Entry, report: Report, is_same_version: bool) -> Screen:
    """Whether grading again has come to the verdict that counts."""
    return Screen(lambda page: _replay_outcome(page, entry, report, is_same_version))


def _replay_outcome(
    page: Page, entry: Entry, report: Report, is_same_version: bool
) -> Iterator[Text]:
    if not is_same_version:
        said = (
            "This is the verdict that was kept. The course or the kit has changed since, so it "
            "cannot be replayed here: --regrade shows what this version gives."
        )
        yield from page.sentence(Text(said))
    elif entry.report is not None and outcomes(report) == outcomes(entry.report):
        said = f"Graded again just now, with seed {entry.seed}: every check came out the same."
        yield from page.sentence(Text(said, "green"))
    else:
        kept = {} if entry.report is None else outcomes(entry.report)
        now = outcomes(report)
        names = sorted(name for name in kept.keys() | now.keys() if kept.get(name) != now.get(name))
        said = f"Graded again just now, with seed {entry.seed}, these checks came out otherwise: "
        yield from page.sentence(Text(said + page.word(", ".join(names)), "red"))
        yield from page.sentence(Text("Does the answer draw numbers or depend on time?"))
    yield Text()


def outcomes(report: Report) -> dict[str, str]:
    """How each check ended."""
    return {check.id: check.outcome.value for stage in report.stages for check in stage.checks}
