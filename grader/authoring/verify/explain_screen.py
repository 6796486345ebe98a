"""The screen of `grade verify --explain`: what stays unexplained, then each stage's numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from grader.authoring.verify.explain import Explained, ExplainReport, How, StageExplained
from grader.learning.workspace.diff import diff_line
from grader.show.screen import MARGIN, Page, count, screen

_SHOWN_LINES = 4  # of a mutant's change
_BAD = "bold red"
_WAYS = (How.NAMED, How.SYMPTOM, How.PLACE, How.ERROR, How.NOTHING)


@screen
def explain_screen(page: Page, report: ExplainReport) -> Iterator[Text]:
    """Wrong names, then what nothing explains, then a table, then the shares."""
    for stage in report.stages:
        yield from _wrong_names(page, stage)
    for stage in report.stages:
        yield from _unexplained(page, stage)
    yield Text()
    if not page.plain:
        head = (
            f"{'stage':<22}{'own name':>10}{'mutants':>9}{'named':>6}{'symptom':>8}{'place':>6}"
            f"{'error':>6}{'nothing':>8}"
        )
        yield Text(" " * MARGIN).append(head, "dim")
    for stage in report.stages:
        yield from _sums(page, stage)
    yield Text()
    yield from _shares(page, report)
    if not report.finished:
        yield from page.sentence("Stopped: these are the results so far.", "bold")
    yield Text()


def _wrong_names(page: Page, stage: StageExplained) -> Iterator[Text]:
    for each in stage.misconceptions:
        if each.how is How.WRONG_NAME:
            others = ", ".join(id for id in each.told if id != each.id)
            yield Text()
            words = f"{stage.slug}: WRONG NAME: the misconception {each.id} gets {others}"
            yield from page.sentence(words, _BAD)
            yield from page.wrap(each.change[0], MARGIN + 2)


def _unexplained(page: Page, stage: StageExplained) -> Iterator[Text]:
    """The misconceptions without a name, and the mutants without any reason."""
    for each in stage.misconceptions:
        if each.how not in (How.NAMED, How.WRONG_NAME):
            yield Text()
            what = ", ".join(each.told) or "a learner gets no reason"
            what = "no check fails" if each.how is How.PASSES else what
            words = f"{stage.slug}: the misconception {each.id} is not named: {what}"
            yield from page.sentence(words, "bold")
            yield from page.wrap(each.change[0], MARGIN + 2)
    for each in stage.mutants:
        if each.how is How.NOTHING:
            yield Text()
            yield from page.sentence(f"{stage.slug}: nothing explains {each.id}", "bold")
            for line in each.change[:_SHOWN_LINES]:
                yield from diff_line(page, line)
            if each.message:
                yield from page.wrap(Text(each.message, "dim"), MARGIN + 2)


def _sums(page: Page, stage: StageExplained) -> Iterator[Text]:
    own = sum(each.how is How.NAMED for each in stage.misconceptions)
    known, numbers = len(stage.misconceptions), [_count(stage.mutants, how) for how in _WAYS]
    if page.plain:
        ways = ", ".join(f"{how.value} {n}" for how, n in zip(_WAYS, numbers, strict=True))
        words = f"{own} of {count(known, 'misconception')} get their own name; "
        words += f"{count(len(stage.mutants), 'mutant')}: {ways}"
        yield from page.sentence(f"{stage.slug}: {words}")
        return
    named, symptom, place, error, nothing = numbers
    row = (
        f"{stage.slug:<22}{f'{own} of {known}':>10}{len(stage.mutants):>9}{named:>6}{symptom:>8}"
        f"{place:>6}{error:>6}{nothing:>8}"
    )
    yield Text(" " * MARGIN).append(row, "" if stage.is_sound else _BAD)


def _shares(page: Page, report: ExplainReport) -> Iterator[Text]:
    """The shares of explained mutants, without and with places."""
    mutants = [each for stage in report.stages for each in stage.mutants]
    if mutants:
        told = _count(mutants, How.NAMED, How.SYMPTOM)
        placed = told + _count(mutants, How.PLACE)
        words = (
            f"Of {count(len(mutants), 'mutant')} that checks catch, {_percent(told, mutants)} get "
            f"a name or a symptom, {_percent(placed, mutants)} also counting places. A mutant is "
            "one edit, so its place is easier to find than that of a learner's mistake. For "
            f"{_percent(_count(mutants, How.ERROR), mutants)} there is only Python's error, and "
            f"for {_percent(_count(mutants, How.NOTHING), mutants)} nothing."
        )
        yield from page.sentence(words)
    tried = sum(stage.tried for stage in report.stages)
    there = sum(stage.all_mutants for stage in report.stages)
    words = f"{tried} of {count(there, 'mutant')} tried in {report.seconds:.0f} s"
    yield from page.sentence(words + ("." if tried == there else ": --all tries them all."))


def _count(answers: Sequence[Explained], *ways: How) -> int:
    return sum(each.how in ways for each in answers)


def _percent(some: int, every: Sequence[Explained]) -> str:
    return f"{100 * some / len(every):.0f}%"
