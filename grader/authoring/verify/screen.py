"""The screen of `grade verify`: each stage's tables, then the problems, then a summary.

A screen reader gets one fact per line, without line breaks or cuts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from grader.authoring.verify.types import (
    CourseProof,
    MisconceptionProof,
    StageProof,
    ToleranceProof,
)
from grader.show.screen import MARGIN, Page, count, screen

_SLOWEST = 5
_HEAD = "bold"
_BAD = "bold red"


@screen
def proof_screen(page: Page, proof: CourseProof) -> Iterator[Text]:
    """Tables for every stage, and a summary that starts with the problems."""
    for stage in proof.stages:
        yield from _stage(page, stage)
    yield Text()
    yield from _wrong(page, proof)
    for stage in proof.stages:
        yield from _sum(page, stage)
    yield from _slowest(page, proof)
    yield Text()
    yield from _verdict(page, proof)
    yield Text()


def summary(page: Page, proof: CourseProof) -> Iterator[Text]:
    """What to fix, to write and to look at, and the verdict."""
    yield from _wrong(page, proof)
    for stage in proof.stages:
        yield from _sum(page, stage)
    yield Text()
    yield from _verdict(page, proof)


def _verdict(page: Page, proof: CourseProof) -> Iterator[Text]:
    if proof.is_sound:
        some = "This stage is" if len(proof.stages) == 1 else "These stages are"
        what = "The course is" if proof.is_whole else some
        yield from page.sentence(f"{what} proven.", "bold green")
        yield from page.sentence(_unproven(proof), "dim")
    else:
        unsound = sum(not stage.is_sound for stage in proof.stages)
        words = [f"fix {unsound} of {count(len(proof.stages), 'stage')}"] if unsound else []
        strays = len(proof.strays)
        words += [f"rename or remove {count(strays, 'stray file')}"] if strays else []
        yield from page.sentence(f"Not proven: {', '.join(words)}.", _BAD)


def _unproven(proof: CourseProof) -> str:
    """What these runs cannot show."""
    skipped = [why for stage in proof.stages for why in stage.skipped]
    words = "Not tried: small changes of the solutions (`grade verify --mutants`)"
    if skipped:
        whys = "; ".join(dict.fromkeys(skipped))
        words += f", and {count(len(skipped), 'check')} that this machine skips ({whys})"
    return f"{words}."


# --- a stage's tables ------------------------------------------------------------------------


def _stage(page: Page, stage: StageProof) -> Iterator[Text]:
    if stage.misconceptions:
        yield Text()
        yield from page.sentence(f"{stage.slug}: misconceptions", _HEAD)
        rows = [_mistake(stage, each) for each in stage.misconceptions]
        yield from _table(page, ("misconception", "caught by", "named"), (44, 12, 16), rows)
    if stage.tolerances:
        yield Text()
        yield from page.sentence(f"{stage.slug}: tolerances", _HEAD)
        titles = ("check", "rtol / atol", "right", "nearest wrong")
        rows = [_tolerance(stage, each) for each in stage.tolerances]
        yield from _table(page, titles, (25, 16, 7, 28), rows)


def _mistake(stage: StageProof, mistake: MisconceptionProof) -> tuple[str, ...]:
    named = "yes" if mistake.named == mistake.id else mistake.named or "no"
    return mistake.id, f"{len(mistake.caught_by)} of {len(stage.checks)}", named


def _tolerance(stage: StageProof, proof: ToleranceProof) -> tuple[str, ...]:
    check = proof.check.removeprefix(f"{stage.slug}.")
    wrong = "-" if proof.wrong is None else f"{_times(proof.wrong)} {proof.nearest}"
    tolerance = proof.tolerance.removeprefix("rtol=").replace(", atol=", " / ")
    return check, tolerance, _percent(proof.right), wrong


def _percent(share: float) -> str:
    return "<0.01%" if 0 < share < 1e-4 else f"{100 * share:.2g}%"


def _times(share: float) -> str:
    return f"{share:.1f}x" if share < 10 else f"{share:.0f}x" if share < 1e4 else f"{share:.0e}x"


def _table(
    page: Page, titles: Sequence[str], widths: Sequence[int], rows: Sequence[Sequence[str]]
) -> Iterator[Text]:
    if page.plain:
        for row in rows:
            first, *others = row
            pairs = zip(titles[1:], others, strict=True)
            facts = ", ".join(f"{title} {cell}" for title, cell in pairs)
            yield from page.sentence(f"{first}: {facts}")
        return
    for number, row in enumerate([titles, *rows]):
        cells = [page.column(cell, width) for cell, width in zip(row[:-1], widths, strict=False)]
        room = max(8, page.width - MARGIN - sum(widths[:-1]) - len(cells))
        line = " ".join([*cells, page.word(row[-1], room)])
        yield Text(" " * MARGIN).append(line, "dim" if number == 0 else "")


# --- the summary -----------------------------------------------------------------------------


def _wrong(page: Page, proof: CourseProof) -> Iterator[Text]:
    """What to look at, what to write, and last, where it stays in view, what to fix."""
    for stage in proof.stages:
        for note in stage.notes:
            yield from page.wrap(note, MARGIN, Text("note: ", "dim"))
    for stage in proof.stages:
        for todo in stage.todos:
            yield from page.wrap(str(todo), MARGIN, Text(f"{stage.slug}: to do: ", "yellow"))
    for stage in proof.stages:
        for problem in stage.problems:
            yield from page.wrap(Text(problem, "red"), MARGIN, Text(f"{stage.slug}: ", _BAD))
    for stray in proof.strays:
        yield from page.sentence(stray, "red")
    if proof.strays or any(s.problems or s.todos or s.notes for s in proof.stages):
        yield Text()


def _sum(page: Page, stage: StageProof) -> Iterator[Text]:
    known = stage.misconceptions
    caught = sum(bool(mistake.caught_by) for mistake in known)
    named = sum(mistake.named == mistake.id for mistake in known)
    state = "ok" if stage.is_sound else "NOT OK"
    line = (
        f"{len(stage.checks)} checks, {stage.seeds} seeds, {len(stage.accepted)} accepted, "
        f"{caught} of {len(known)} caught"
    )
    line += "" if named == len(known) else f", {named} named"
    if page.plain:
        yield from page.sentence(f"{stage.slug}: {state}: {line}")
    else:
        title = Text(f"{state:<7}{stage.slug:<22} ", "" if stage.is_sound else _BAD)
        yield from page.wrap(line, MARGIN, title)


def _slowest(page: Page, proof: CourseProof) -> Iterator[Text]:
    """The checks that take the longest."""
    checks = sorted((c for s in proof.stages for c in s.checks), key=lambda c: -c.seconds)
    if checks:
        yield Text()
        yield from page.sentence("The slowest checks, for a right answer:")
    for check in checks[:_SLOWEST]:
        yield from page.wrap(check.id, MARGIN, Text(f"{check.seconds:6.3f} s  "))
