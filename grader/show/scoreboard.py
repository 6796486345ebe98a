"""The scoreboard: one line per stage, the total, and footnotes about the run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from grader.show.screen import GAP, MARGIN, SHORTEST_TITLE, Page, amount, count, screen
from grader.types.course import Course, Stage
from grader.types.progress import Progress, StageProgress
from grader.types.report import Outcome, Report, StageResult, Status
from grader.types.text import listed

GRADE_AGAIN = "to grade again"
VISIBLE_PASS = "Your visible checks pass; more checks run on submission."


@screen
def scoreboard(page: Page, report: Report) -> Iterator[Text]:
    """One line per stage (mark, title, slug, bar, points, status) and the total."""
    yield from core_board(report).draw(page)
    yield from bonus_board(report).draw(page)


@screen
def core_board(page: Page, report: Report) -> Iterator[Text]:
    """The heading and the core stages: what is known before the bonus stages have been graded."""
    rows = _rows(report)
    if page.plain:
        yield from page.sentence(f"{page.word(report.whole_name)}.")
        yield from page.sentence(page.word(f"Graded: {report.submission}, on {report.device}."))
        yield from _plain_stages(page, (row for row in rows if not row.bonus))
        return
    yield Text()
    if len(report.stages) != 1:  # the reason of a failure must fit on the same screen as one stage
        yield _heading(page, report)
        yield Text()
    columns = _columns(page, rows)
    for row in rows:
        if not row.bonus:
            yield _stage_line(page, row, columns)


@screen
def bonus_board(page: Page, report: Report) -> Iterator[Text]:
    """The bonus stages and the total, below `core_board`."""
    rows = _rows(report)
    if page.plain:
        yield from _plain_stages(page, (row for row in rows if row.bonus))
        if len(report.stages) > 1:
            yield from _plain_total(page, report)
        yield Text()
        return
    columns = _columns(page, rows)
    later = [row for row in rows if row.bonus and row.look.quiet]
    folded = later if len(later) > _FEW_LATER else ()
    yield from _bonus_lines(page, [row for row in rows if row not in folded], columns)
    settled = (Status.PASSED, Status.NOT_STARTED)
    is_told_below = report.passed and all(stage.status in settled for stage in report.stages)
    if folded and not is_told_below:
        yield Text()
        yield from page.offer(f"{count(len(folded), 'bonus stage')} not started:", "grade list")
    if len(report.stages) > 1:
        yield Text()
        yield _total_line(page, report, columns)
    yield Text()


def known_board(page: Page, course: Course, progress: Progress, here: str) -> Iterator[Text]:
    """The board of what is known without grading again, with the stage `here` in bold."""
    rows = [_known_row(course, stage, progress.stage(stage.slug)) for stage in course.stages]
    columns = _columns(page, rows)
    for row in rows:
        if not row.bonus:
            yield _stage_line(page, row, columns, here)
    yield from _bonus_lines(page, rows, columns, here)


@screen
def footnotes(page: Page, report: Report) -> Iterator[Text]:
    """Facts about the run: skipped checks and the report's notes. May be empty."""
    lines = skipped_lines(report)
    is_begun = any(stage.status is not Status.NOT_STARTED for stage in report.stages)
    above = [stage.why_not_started for stage in report.stages if not is_begun]
    notes = [note for note in report.notes if not any(why and why in note for why in above)]
    if len(report.stages) == 1 and not page.plain:
        course = (report.whole_name,) if report.version else ()
        seed = (note for note in notes if note == f"seed {report.seed}")
        lines.append(", ".join((*course, report.submission, report.device, *seed)))
        notes = [note for note in notes if note != f"seed {report.seed}"]
    lines += notes
    if report.unchanged:
        lines.append(_unchanged(report))
    for line in lines:
        yield from page.wrap(Text(page.word(line), "dim"), MARGIN)
    if len(report.stages) != 1 and lines:
        yield Text()


def skipped_lines(report: Report) -> list[str]:
    """How many checks were skipped, what that cost, and why."""
    skipped: dict[str, int] = {}
    for stage in report.stages:
        for check in stage.checks:
            if check.outcome is Outcome.SKIPPED:
                is_lost = check.score < check.max_score and stage.status is Status.FAILED
                cost = "no points while others fail" if is_lost else "at no cost"
                why = f"{cost}: {check.message.strip()}".removesuffix(": ")
                skipped[why] = skipped.get(why, 0) + 1
    return [f"{count(number)} skipped, {why}" for why, number in skipped.items()]


def _unchanged(report: Report) -> str:
    stages = count(len(report.unchanged), "unchanged stage")
    was, them = ("was", "it") if len(report.unchanged) == 1 else ("were", "them")
    return f"{stages} {was} not rerun; `grade --fresh` reruns {them}"


def standing(of: StageResult | StageProgress, *, is_partial: bool = False) -> str:
    """The word for a stage's status; `is_partial` if only visible checks have run."""
    if is_partial and of.status is Status.PASSED:
        return _VISIBLE.word
    return _look(of).word


def unjudged(known: StageProgress) -> str:
    """The words for a stage without a verdict on its present text."""
    return "needs to be graded again" if known.is_changed else "not graded yet"


def provisional(page: Page, stages: Iterable[StageResult]) -> Iterator[Text]:
    """A note on the stages of a student's copy whose visible checks all pass."""
    results = list(stages)
    unchecked = [page.word(result.slug) for result in results if not result.checks]
    if len(unchecked) < len(results):
        slug = f"{page.word(results[0].slug)}: y" if len(results) == 1 else "Y"
        yield from page.sentence(f"{slug}{VISIBLE_PASS[1:]}", "bold green")
    if unchecked:
        has, it = ("has", "it is") if len(unchecked) == 1 else ("have", "they are")
        line = f"{listed(unchecked)} {has} no visible checks: {it} graded on submission."
        yield from page.sentence(line)


def mark(page: Page, of: Status | StageResult) -> Text:
    """The sign for a stage's status."""
    return _mark(page, _look(of))


def _mark(page: Page, look: _Look) -> Text:
    style = look.colour if look.quiet else f"bold {look.colour}"
    return Text(getattr(page.glyphs, look.glyph), style)


@dataclass(frozen=True)
class _Look:
    """How a stage's status is drawn: its glyph, its word, and the colours of a line."""

    glyph: str
    word: str
    colour: str
    bar: str
    quiet: bool = False


_LOOKS = {
    Status.PASSED: _Look("passed", "passed", "green", "green"),
    Status.FAILED: _Look("failed", "failed", "red", "yellow"),
    Status.NOT_STARTED: _Look("not_started", "not started", "dim", "dim", quiet=True),
    Status.ERROR: _Look("error", "error", "magenta", "magenta"),
}
_WAITING = _Look("waiting", "waiting", "yellow", "yellow")
# For a student's copy: other checks than the visible ones decide, some or all.
_VISIBLE = _Look("passed", "visible ok", "green", "green")
_UNCHECKED = _Look("passed", "unchecked", "yellow", "yellow")
_CHANGED = _Look("not_started", "grade again", "yellow", "yellow")
_STATUS_WIDTH = len("not started")


def _look(of: Status | StageResult | StageProgress) -> _Look:
    if isinstance(of, Status):
        return _LOOKS[of]
    if isinstance(of, StageProgress):
        return _WAITING if of.waits else _LOOKS[of.status or Status.NOT_STARTED]
    if of.caused_by is not None and of.status is Status.FAILED:
        return _WAITING
    if of.is_partial and of.status is Status.PASSED:
        return _VISIBLE if of.checks else _UNCHECKED
    return _LOOKS[of.status]


@dataclass(frozen=True)
class _Row:
    """What a line of the board shows of a stage."""

    title: str
    slug: str
    bonus: bool
    score: float
    max_score: float
    look: _Look


def _rows(report: Report) -> list[_Row]:
    return [
        _Row(stage.title, stage.slug, stage.bonus, stage.score, stage.max_score, _look(stage))
        for stage in report.stages
    ]


def _known_row(course: Course, stage: Stage, known: StageProgress) -> _Row:
    look = _CHANGED if known.is_changed else _look(known)
    if course.is_partial and known.status is Status.PASSED:
        look = _VISIBLE if known.score else _UNCHECKED
    return _Row(stage.title, stage.slug, stage.bonus, known.score, stage.points, look)


@dataclass(frozen=True)
class _Columns:
    """The widths of the scoreboard's columns; 0 leaves a column out."""

    title: int
    slug: int
    bar: int
    score: int
    max_score: int
    status: int

    @property
    def points(self) -> int:
        return self.score + len(" / ") + self.max_score

    @property
    def width(self) -> int:
        columns = (1, self.title, self.slug, self.bar, self.points, self.status)
        return MARGIN + sum(column + GAP for column in columns if column) - GAP


def _columns(page: Page, rows: Sequence[_Row]) -> _Columns:
    """The widest columns that fit: first the bar shrinks, then titles are cut, then left out."""
    scores = [(row.score, row.max_score) for row in rows]
    core = [row for row in rows if not row.bonus]
    scores.append((sum(row.score for row in core), sum(row.max_score for row in core)))
    fixed = {
        "slug": max((cell_len(page.word(row.slug)) for row in rows), default=5),
        "score": max(len(amount(points)) for both in scores for points in both),
        "max_score": max(len(amount(max_score)) for _, max_score in scores),
    }
    title = max((cell_len(page.word(row.title)) for row in rows), default=5)
    choices = [_Columns(title=title, bar=bar, status=_STATUS_WIDTH, **fixed) for bar in _BARS]
    spare = page.width - _Columns(title=0, bar=_BARS[-1], status=_STATUS_WIDTH, **fixed).width - GAP
    if spare >= SHORTEST_TITLE:
        choices.append(_Columns(title=spare, bar=_BARS[-1], status=_STATUS_WIDTH, **fixed))
    choices += [_Columns(title=0, bar=bar, status=_STATUS_WIDTH, **fixed) for bar in (*_BARS, 0)]
    choices.append(_Columns(title=0, bar=0, status=0, **fixed))
    return next((choice for choice in choices if choice.width <= page.width), choices[-1])


_FEW_LATER = 3  # bonus stages that are listed before anything is written in them
_BARS = (14, 13, 12, 11, 10, 9, 8, 7, 6, 5)


def _plain_stages(page: Page, rows: Iterable[_Row]) -> Iterator[Text]:
    """One fact per line, in words."""
    for row in rows:
        what = f"{page.word(row.slug)}: {row.look.word}, "
        what += f"{amount(row.score)} of {amount(row.max_score)} points"
        yield from page.sentence(f"{what}{', bonus' if row.bonus else ''}.")


def _plain_total(page: Page, report: Report) -> Iterator[Text]:
    bonus = f", and {amount(report.bonus)} bonus points" if report.bonus else ""
    what = "Total of visible checks" if report.is_partial else "Total"
    total = f"{what}: {amount(report.score)} of {amount(report.max_score)} points{bonus}."
    yield from page.sentence(total)


def _heading(page: Page, report: Report) -> Text:
    course = page.word(report.whole_name, page.width - MARGIN)
    facts = f"{report.submission}, {report.device}"
    room = page.width - MARGIN - cell_len(course) - 3
    line = Text(" " * MARGIN).append(course, "bold")
    return line.append("   " + page.word(facts, room), "dim") if room > 8 else line


def _bonus_lines(
    page: Page, rows: Sequence[_Row], columns: _Columns, here: str = ""
) -> Iterator[Text]:
    bonus = [row for row in rows if row.bonus]
    if 0 < len(bonus) < len(rows):
        yield Text()
        yield Text(" " * (MARGIN + 1 + GAP)).append("Bonus", "dim")
    for row in bonus:
        yield _stage_line(page, row, columns, here)


def _stage_line(page: Page, row: _Row, columns: _Columns, here: str = "") -> Text:
    look = row.look
    plain = "dim" if look.quiet else ""
    line = Text(" " * MARGIN).append_text(_mark(page, look))
    if columns.title:
        line.append(" " * GAP + page.column(row.title, columns.title), plain)
    slug_style = "bold" if row.slug == here else "dim" if columns.title else plain
    line.append(" " * GAP + page.column(row.slug, columns.slug), slug_style)
    _append_bar(page, line, row.score, row.max_score, columns.bar, look.bar)
    line.append(" " * GAP + _points(row.score, row.max_score, columns), plain)
    if columns.status:
        line.append(" " * GAP).append(look.word, look.colour)
    return line


def _total_line(page: Page, report: Report, columns: _Columns) -> Text:
    line = Text(" " * (MARGIN + 1))
    label = columns.title + GAP + columns.slug if columns.title else columns.slug
    line.append(" " * GAP + page.column("Visible" if report.is_partial else "Total", label), "bold")
    if report.max_score:
        done = report.score >= report.max_score
        colour = "green" if done else "yellow"
        _append_bar(page, line, report.score, report.max_score, columns.bar, colour)
        line.append(" " * GAP + _points(report.score, report.max_score, columns), "bold")
    if report.bonus:
        words = f"+{amount(report.bonus)} bonus"
        if line.cell_len + GAP + len(words) > page.width:
            words = f"+{amount(report.bonus)}"
        line.append(" " * GAP).append(words, "green")
    return line


def _append_bar(
    page: Page, line: Text, score: float, max_score: float, width: int, colour: str
) -> None:
    """A bar that is full only for full points and empty only for none."""
    if not width:
        return
    filled = round(width * score / max_score) if max_score > 0 else 0
    if 0 < score < max_score:
        filled = min(max(filled, 1), width - 1)
    filled = min(max(filled, 0), width)
    line.append(" " * GAP).append(page.glyphs.full * filled, colour)
    line.append(page.glyphs.empty * (width - filled), "dim")


def _points(score: float, max_score: float, columns: _Columns) -> str:
    return f"{amount(score):>{columns.score}} / {amount(max_score):<{columns.max_score}}"
