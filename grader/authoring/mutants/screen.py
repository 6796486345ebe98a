"""The screen of `grade verify --mutants`: live mutants as diffs, and the numbers of the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from grader.authoring.mutants.record import equivalent_lines, overlap_lines
from grader.authoring.mutants.types import Fate, MutantsReport, StageTrials
from grader.learning.workspace.diff import diff_line
from grader.show.screen import MARGIN, Page, count, screen

_CAUGHT = (Fate.CAUGHT, Fate.TIMED_OUT, Fate.CRASHED)


@screen
def mutants_screen(page: Page, report: MutantsReport) -> Iterator[Text]:
    """Live mutants first, then what each check alone catches, then the sums."""
    for stage in report.stages:
        yield from _live(page, stage)
    for stage in report.stages:
        yield from _needs(page, stage)
    for stage in report.stages:
        yield from _overlaps(page, stage)
    if not page.plain:
        yield Text()
        head = f"{'stage':<24}{'mutants':>8}{'caught':>8}{'explained':>11}{'live':>6}"
        yield Text(" " * MARGIN).append(head, "dim")
    for stage in report.stages:
        yield from _sums(page, stage)
    yield Text()
    tried = sum(len(stage.trials) for stage in report.stages)
    yield from page.sentence(f"{count(tried, 'mutant')} in {report.seconds:.0f} s.")
    if not report.finished:
        yield from page.sentence("Stopped: these are the results so far.", "bold")
    elif all(stage.is_sound for stage in report.stages):
        yield from page.sentence("Every mutant is caught or explained.")
    if any(stage.count(Fate.LIVE) for stage in report.stages):
        advice = (
            "Make a check fail on each live mutant; `grade suggest STAGE` looks for calls that do. "
            "If the mutant changes nothing that the contract promises, record it with the reason "
            "in tests/mutants/STAGE.toml: --needed prints what to write."
        )
        yield from page.sentence(advice)
    if any(stage.escapes for stage in report.stages):
        advice = (
            "A check no longer catches what tests/mutants/STAGE.toml says it does: fix the check, "
            "or replace the record with what --needed prints."
        )
        yield from page.sentence(advice)
    yield Text()


def _live(page: Page, stage: StageTrials) -> Iterator[Text]:
    for trial in stage.trials:
        if trial.fate is Fate.LIVE:
            yield Text()
            yield from page.sentence(f"{stage.slug}: {trial.id} lives", "bold red")
            yield from _diff(page, trial.diff)
    for escape in stage.escapes:
        yield Text()
        words = f"{stage.slug}: {escape.id} passes the check {_name(escape.check)}"
        yield from page.sentence(words, "bold red")
        yield from page.sentence(escape.says)
        yield from _diff(page, escape.diff)


def _diff(page: Page, diff: str) -> Iterator[Text]:
    for line in diff.splitlines()[2:]:  # after the names of the files
        yield from diff_line(page, line)


def _name(check: str) -> str:
    return check.partition(".")[2]


def _needs(page: Page, stage: StageTrials) -> Iterator[Text]:
    if stage.needs:
        yield Text()
        yield from page.sentence(f"{stage.slug}: what each check alone catches", "bold")
    for need in stage.needs:
        alone = ", ".join(need.only) or "nothing"
        yield from page.wrap(alone, MARGIN, Text(f"{need.check}: "))


def _overlaps(page: Page, stage: StageTrials) -> Iterator[Text]:
    """Records to copy: without a margin and without line breaks."""
    overlaps = {_name(need.check): need.overlap for need in stage.needs if need.overlap}
    live = [trial.record for trial in stage.trials if stage.needs and trial.record]
    if overlaps:
        yield from _to_be_written(page, stage, "")
    for check, overlap in overlaps.items():
        yield from _record(overlap_lines(check, overlap))
    if live:
        yield from _to_be_written(page, stage, ", for mutants that no check has to catch")
    for record in live:
        yield from _record(equivalent_lines(record))


def _to_be_written(page: Page, stage: StageTrials, which: str) -> Iterator[Text]:
    yield Text()
    yield from page.sentence(f"Write this into tests/mutants/{stage.slug}.toml{which}:", "bold")


def _record(lines: Iterable[str]) -> Iterator[Text]:
    yield Text()
    for line in lines:
        yield Text(line, no_wrap=True, overflow="ignore")


def _sums(page: Page, stage: StageTrials) -> Iterator[Text]:
    caught, explained = stage.count(*_CAUGHT), stage.count(Fate.EXPLAINED)
    live = stage.count(Fate.LIVE)
    style = "" if stage.is_sound else "bold red"
    if stage.skipped:
        yield from page.sentence(f"{stage.slug}: no mutants: {stage.skipped}")
    elif page.plain:
        line = f"{stage.slug}: {count(stage.mutants, 'mutant')}, {caught} caught, "
        yield from page.sentence(f"{line}{explained} explained, {live} live")
    else:
        row = f"{stage.slug:<24}{stage.mutants:>8}{caught:>8}{explained:>11}{live:>6}"
        yield Text(" " * MARGIN).append(row, style)
    for problem in stage.problems:
        yield from page.wrap(Text(problem, "bold red"), MARGIN + 2)
