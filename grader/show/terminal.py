"""The report as a learner reads it in the terminal: a scoreboard, then the next small step.

Everything here is pure: data in, something rich can print out. Whoever calls it owns the console.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from grader.show.screen import (
    COMMAND,
    GAP,
    MARGIN,
    SHORTEST_TITLE,
    Page,
    Screen,
    amount,
    count,
)
from grader.types.report import CheckResult, Outcome, Report, StageResult, Status

SHOWN_IN_FULL = 4  # failing checks explained without --all
MESSAGE_LINES = 20
PRINTED_LINES = 8
LINES_WITH_ALL = 400
NOT_YOURS = "The grader itself failed here. This is not your mistake: please report it."
TOO_SLOW = "This ran out of time and was stopped."
VISIBLE_PASS = "Your visible checks pass; more checks run on submission."

_BODY = MARGIN + 4  # where a check's message stands


def scoreboard(report: Report) -> Screen:
    """One line a stage (mark, title, slug, bar, points, status) and the total."""
    return Screen(lambda page: _scoreboard(page, report))


def explanation(report: Report, *, every: bool = False, next_file: str | None = None) -> Screen:
    """Why the first failing stage fails and what to do next; with `every`, all failing stages.

    `next_file` is the file of the first stage that is not started, as the learner would type it.
    """
    return Screen(lambda page: _explanation(page, report, every, next_file))


def first_failure(page: Page, report: Report, stage: StageResult, room: int) -> list[Text]:
    """Why a stage fails, in at most `room` lines; its message is cut before its diagnosis is."""
    if stage.caused_by is not None:
        return list(_mend_first(page, report, stage, stage.caused_by))[:room]
    groups = failures(stage)
    if not groups:
        return list(page.sentence(_stage_heading(page, stage)))[:room]
    rest = sum(len(group) for group in groups[1:])
    above = list(_perhaps(page, stage))
    below = [Text(" " * _BODY + f"and {count(rest, 'more failing check')}", "dim")] if rest else []
    lines: list[Text] = []
    for limit in range(MESSAGE_LINES, 0, -1):
        lines = [*above, *_group_explained(page, stage, groups[0], False, set(), limit), *below]
        if len(lines) <= room:
            break
    if stage.printed.strip():
        left = min(PRINTED_LINES, room - len(lines) - 3)
        if left > 0:
            lines += [Text(), *_printed(page, stage, left)]
        else:
            much = count(len(stage.printed.strip().split("\n")), "line")
            lines = [*lines[: room - 1], Text(" " * _BODY + f"Your code printed {much}", "dim")]
    return lines[:room]


def every_failure(page: Page, stage: StageResult) -> list[Text]:
    """All failing checks of a stage and what its code printed."""
    lines: list[Text] = []
    said: set[str] = set()
    for group in failures(stage):
        lines += [*_group_explained(page, stage, group, True, said, LINES_WITH_ALL), Text()]
    if stage.printed.strip():
        lines += _printed(page, stage, LINES_WITH_ALL)
    return lines or list(page.sentence(Text("No check fails.")))


def standing(of: Status | StageResult, *, is_partial: bool = False) -> str:
    """The word for where a stage stands; `is_partial` if visible checks alone have said so."""
    if is_partial and of is Status.PASSED:
        return _VISIBLE.word
    return _look(of).word


def provisional(page: Page, stages: Iterable[StageResult]) -> Iterator[Text]:
    """What it means that nothing visible is wrong with these stages of a student's copy."""
    results = list(stages)
    unchecked = [page.word(result.slug) for result in results if not result.checks]
    if len(unchecked) < len(results):
        slug = f"{page.word(results[0].slug)}: y" if len(results) == 1 else "Y"
        yield from page.sentence(Text(f"{slug}{VISIBLE_PASS[1:]}", "bold green"))
    if unchecked:
        has, it = ("has", "it is") if len(unchecked) == 1 else ("have", "they are")
        line = f"{_and(unchecked)} {has} no visible checks: {it} graded on submission."
        yield from page.sentence(Text(line))


def mark(page: Page, of: Status | StageResult) -> Text:
    """The sign for where a stage stands."""
    look = _look(of)
    style = look.colour if look.quiet else f"bold {look.colour}"
    return Text(getattr(page.glyphs, look.glyph), style)


def footnotes(report: Report) -> Screen:
    """The quiet facts about the run: skipped checks and the report's notes. May be empty."""
    return Screen(lambda page: _footnotes(page, report))


# --- the scoreboard ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Look:
    """How the standing of a stage is drawn: its glyph, its word, and the colours of a line."""

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
# Of a student's copy: more checks than the visible ones decide, or all of them.
_VISIBLE = _Look("passed", "visible ok", "green", "green")
_UNCHECKED = _Look("passed", "unchecked", "yellow", "yellow")
_STATUS_WIDTH = len("not started")


def _look(of: Status | StageResult) -> _Look:
    if isinstance(of, Status):
        return _LOOKS[of]
    if of.caused_by is not None and of.status is Status.FAILED:
        return _WAITING
    if of.is_partial and of.status is Status.PASSED:
        return _VISIBLE if of.checks else _UNCHECKED
    return _LOOKS[of.status]


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


def _columns(page: Page, report: Report) -> _Columns:
    """The roomiest columns that fit: first the bar shrinks, then titles are cut, then left out."""
    scores = [(stage.score, stage.max_score) for stage in report.stages]
    scores.append((report.score, report.max_score))
    fixed = {
        "slug": max((cell_len(page.word(stage.slug)) for stage in report.stages), default=5),
        "score": max(len(amount(points)) for both in scores for points in both),
        "max_score": max(len(amount(max_score)) for _, max_score in scores),
    }
    title = max((cell_len(page.word(stage.title)) for stage in report.stages), default=5)
    choices = [_Columns(title=title, bar=bar, status=_STATUS_WIDTH, **fixed) for bar in _BARS]
    spare = page.width - _Columns(title=0, bar=_BARS[-1], status=_STATUS_WIDTH, **fixed).width - GAP
    if spare >= SHORTEST_TITLE:
        choices.append(_Columns(title=spare, bar=_BARS[-1], status=_STATUS_WIDTH, **fixed))
    choices += [_Columns(title=0, bar=bar, status=_STATUS_WIDTH, **fixed) for bar in (*_BARS, 0)]
    choices.append(_Columns(title=0, bar=0, status=0, **fixed))
    return next((choice for choice in choices if choice.width <= page.width), choices[-1])


_BARS = (14, 13, 12, 11, 10, 9, 8, 7, 6, 5)


def _scoreboard(page: Page, report: Report) -> Iterator[Text]:
    if page.plain:
        yield from _plain_scoreboard(page, report)
        return
    columns = _columns(page, report)
    core = [stage for stage in report.stages if not stage.bonus]
    bonus = [stage for stage in report.stages if stage.bonus]
    yield Text()
    yield _heading(page, report)
    yield Text()
    for stage in core:
        yield _stage_line(page, stage, columns)
    if core and bonus:
        yield Text()
        yield Text(" " * (MARGIN + 1 + GAP)).append("Bonus", "dim")
    for stage in bonus:
        yield _stage_line(page, stage, columns)
    if len(report.stages) > 1:
        yield Text()
        yield _total_line(page, report, columns)
    yield Text()


def _plain_scoreboard(page: Page, report: Report) -> Iterator[Text]:
    """One fact a line, in words."""
    yield from page.sentence(Text(f"{page.word(report.course)}."))
    yield from page.sentence(Text(page.word(f"Graded: {report.submission}, on {report.device}.")))
    for stage in report.stages:
        what = f"{page.word(stage.slug)}: {_look(stage).word}, "
        what += f"{amount(stage.score)} of {amount(stage.max_score)} points"
        yield from page.sentence(Text(f"{what}{', bonus' if stage.bonus else ''}."))
    if len(report.stages) > 1:
        bonus = f", and {amount(report.bonus)} bonus points" if report.bonus else ""
        what = "Total of visible checks" if report.is_partial else "Total"
        total = f"{what}: {amount(report.score)} of {amount(report.max_score)} points{bonus}."
        yield from page.sentence(Text(total))
    yield Text()


def _heading(page: Page, report: Report) -> Text:
    course = page.word(report.course, page.width - MARGIN)
    facts = f"{report.submission}, {report.device}"
    room = page.width - MARGIN - cell_len(course) - 3
    line = Text(" " * MARGIN).append(course, "bold")
    return line.append("   " + page.word(facts, room), "dim") if room > 8 else line


def _stage_line(page: Page, stage: StageResult, columns: _Columns) -> Text:
    look = _look(stage)
    plain = "dim" if look.quiet else ""
    line = Text(" " * MARGIN).append_text(mark(page, stage))
    if columns.title:
        line.append(" " * GAP + page.column(stage.title, columns.title), plain)
    slug_style = "dim" if columns.title else plain
    line.append(" " * GAP + page.column(stage.slug, columns.slug), slug_style)
    _append_bar(page, line, stage.score, stage.max_score, columns.bar, look.bar)
    line.append(" " * GAP + _points(stage.score, stage.max_score, columns), plain)
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
        line.append(" " * GAP).append(f"+{amount(report.bonus)} bonus", "green")
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


# --- the explanation ---------------------------------------------------------------------------


def _explanation(page: Page, report: Report, every: bool, next_file: str | None) -> Iterator[Text]:
    failing = [stage for stage in report.stages if stage.status in (Status.FAILED, Status.ERROR)]
    if not report.stages:
        yield from page.sentence(Text("There is no stage to grade here."))
        yield Text()
    elif failing:
        for stage in failing if every else failing[:1]:
            yield from _stage_explained(page, report, stage, every)
    elif all(stage.status is Status.NOT_STARTED for stage in report.stages):
        yield from _welcome(page, report, next_file)
    elif report.passed:
        yield from _congratulation(page, report)
    else:
        yield from _next_stage(page, report, next_file)
    if every:
        for stage in report.stages:
            if stage.status is Status.PASSED and stage.printed.strip():
                yield from _printed(page, stage, LINES_WITH_ALL)
                yield Text()


def _stage_explained(page: Page, report: Report, stage: StageResult, every: bool) -> Iterator[Text]:
    if stage.caused_by is not None:
        yield from _mend_first(page, report, stage, stage.caused_by)
        yield Text()
        if not every:
            return
    yield from page.sentence(Text(style="bold").append_text(_stage_heading(page, stage)))
    yield from _perhaps(page, stage)
    yield Text()
    said: set[str] = set()  # diagnoses already shown: one sentence need not be read four times
    groups = failures(stage)
    shown = groups if every else groups[:SHOWN_IN_FULL]
    for group in shown:
        limit = LINES_WITH_ALL if every else MESSAGE_LINES
        yield from _group_explained(page, stage, group, every, said, limit)
        yield Text()
    left_out = sum(len(group) for group in groups[len(shown) :])
    if left_out:
        yield from page.offer(
            f"{count(left_out, 'more failing check')}:", f"grade {stage.slug} --all"
        )
        yield Text()
    if stage.printed.strip():
        yield from _printed(page, stage, LINES_WITH_ALL if every else PRINTED_LINES)
        yield Text()
    waiting = [later.slug for later in report.stages if later.caused_by == stage.slug]
    if waiting and not every:
        wait, need, own = (
            ("waits", "needs", "its") if len(waiting) == 1 else ("wait", "need", "their")
        )
        sentence = f"{_and(waiting)} {wait} for {stage.slug} and {need} no change of {own} own."
        yield from page.sentence(Text(page.word(sentence)))
    theirs = any(check.outcome in (Outcome.FAILED, Outcome.TIMEOUT) for check in stage.checks)
    if theirs and stage.caused_by is None:
        yield from page.offer("For a hint:", f"grade hint {stage.slug}")
        yield Text()
    elif waiting and not every:
        yield Text()


def _mend_first(page: Page, report: Report, stage: StageResult, cause: str) -> Iterator[Text]:
    standing = {earlier.slug: earlier.status for earlier in report.stages}.get(cause)
    this, that = page.word(stage.slug), page.word(cause)
    if standing is Status.NOT_STARTED:
        why, advice = " fails only because it uses {}, which is not written yet.", "Write"
    elif standing is Status.FAILED:
        why, advice = " fails only because {} does.", "Mend"
    else:
        why, advice = " fails only because {} is not right yet.", "Mend"
    before, after = why.split("{}")
    line = Text().append(this, "bold").append(before).append(that, "bold").append(after)
    yield from page.sentence(line)
    if stage.score == stage.max_score:
        yield from page.sentence(
            Text("Its points count all the same: it is right with the course's.")
        )
    yield from page.offer(f"{advice} that one first:", f"grade {that}")


def _perhaps(page: Page, stage: StageResult) -> Iterator[Text]:
    """The earlier stage to mend first, where it cannot be known that it is the cause."""
    if stage.perhaps is not None:
        earlier = page.word(stage.perhaps)
        line = Text("It uses ").append(earlier, "bold").append(", which does not pass yet: ")
        yield from page.sentence(line.append("that may be why, so begin there."))


def _stage_heading(page: Page, stage: StageResult) -> Text:
    checks = [check for check in stage.checks if check.outcome is not Outcome.SKIPPED]
    bad = [check for check in checks if check.outcome is not Outcome.PASSED]
    name = Text(page.word(stage.slug))
    if not bad:
        if stage.status is Status.ERROR:
            return name.append(": ").append(NOT_YOURS)
        return name.append(" does not pass yet")
    if all(check.outcome is Outcome.ERROR for check in bad):
        return name.append(f": the grader could not finish {len(bad)} of {count(len(checks))}")
    verb = "does" if len(bad) == 1 else "do"
    return name.append(f": {len(bad)} of {count(len(checks))} {verb} not pass yet")


def failures(stage: StageResult) -> list[list[CheckResult]]:
    """The failing checks in order, those that failed for the very same reason together."""
    groups: dict[Any, list[CheckResult]] = {}
    for check in stage.checks:
        if check.outcome not in (Outcome.PASSED, Outcome.SKIPPED):
            reason = (check.outcome, check.message.strip(), check.diagnosis)
            groups.setdefault(reason, []).append(check)
    return list(groups.values())


def _group_explained(
    page: Page,
    stage: StageResult,
    group: list[CheckResult],
    every: bool,
    said: set[str],
    limit: int,
) -> Iterator[Text]:
    """One reason and the checks that fail for it; at most `limit` lines of its message."""
    yield from _titles(page, stage, group, every)
    check = group[0]
    if check.outcome is Outcome.ERROR:
        yield from page.wrap(Text(NOT_YOURS, "magenta"), _BODY)
    elif check.outcome is Outcome.TIMEOUT:
        yield from page.wrap(Text(TOO_SLOW, "yellow"), _BODY)
    if check.message.strip():
        style = "dim" if check.outcome is Outcome.ERROR else ""
        lines, left_out = page.verbatim(check.message, _BODY, style, limit=limit)
        yield from lines
        yield from _left_out(page, left_out, _BODY, f"grade {stage.slug} --all", every)
    if check.diagnosis is not None:
        if check.diagnosis.id in said:
            yield from page.wrap(Text("Likely: the same as above", "dim"), _BODY)
        else:
            said.add(check.diagnosis.id)
            yield Text()
            diagnosis = page.inline(check.diagnosis.text)
            yield from page.wrap(diagnosis, _BODY, Text("Likely: ", "bold yellow"))


def _titles(
    page: Page, stage: StageResult, group: list[CheckResult], every: bool
) -> Iterator[Text]:
    """The title of each check of the group with the points it lost; long groups are counted."""
    judged = [check for check in stage.checks if check.outcome is not Outcome.SKIPPED]
    if len(group) > SHOWN_IN_FULL and not every:
        if len(group) == len(judged):
            yield from _title(
                page, group[0].outcome, f"All {len(group)} checks, for the same reason", group
            )
            return
        kept = SHOWN_IN_FULL - 1
    else:
        kept = len(group)
    for check in group[:kept]:
        yield from _title(page, check.outcome, check.title, [check])
    if group[kept:]:
        more = count(len(group) - kept, "more check")
        yield from _title(page, group[0].outcome, f"{more}, for the same reason", group[kept:])


def _title(page: Page, outcome: Outcome, title: str, checks: list[CheckResult]) -> Iterator[Text]:
    lost = sum(check.max_score - check.score for check in checks)
    if page.plain:
        what = "The grader failed at" if outcome is Outcome.ERROR else "Failed"
        points = f" Lost: {count(lost, 'point')}." if lost > 0 else ""
        yield from page.sentence(page.inline(f"{what}: {title.strip()}.{points}"))
        return
    points = f"-{amount(lost)}" if lost > 0 else ""
    mark, colour = (page.glyphs.failed, "red")
    if outcome is Outcome.ERROR:
        mark, colour = (page.glyphs.error, "magenta")
    indent = MARGIN + 2
    room = max(8, page.width - indent - len(points) - 1)
    drawn = page.inline(title.replace("\n", " ").strip(), "bold")
    for number, part in enumerate(drawn.wrap(page.console, room, overflow="fold")):
        part.rstrip()
        line = Text(" " * MARGIN).append(mark if not number else " ", f"bold {colour}").append(" ")
        line.append_text(part)
        if not number:
            line.append(" " * (page.width - line.cell_len - len(points)) + points, colour)
        yield line


def _printed(page: Page, stage: StageResult, limit: int) -> Iterator[Text]:
    yield from page.sentence(Text(f"Your code printed, in {page.word(stage.slug)}:", "dim"))
    lines, left_out = page.verbatim(stage.printed.strip("\n"), _BODY - 2, gutter=True, limit=limit)
    yield from lines
    every = limit == LINES_WITH_ALL
    yield from _left_out(page, left_out, _BODY - 2, f"grade {stage.slug} --all", every)


def _left_out(page: Page, left: int, indent: int, command: str, every: bool) -> Iterator[Text]:
    if left:
        line = Text().append(f"{page.glyphs.more} {count(left, 'more line')}", "dim")
        if not every:
            line.append(": ").append(page.word(command))
        yield from page.wrap(line, indent)


def _welcome(page: Page, report: Report, next_file: str | None) -> Iterator[Text]:
    slug = page.word(report.stages[0].slug)
    greeting = "Welcome! Nothing is written yet, so here is how to begin."
    if len(report.stages) == 1:
        greeting = f"Nothing is written in {slug} yet."
    where = Text("Open ").append(
        page.word(next_file) if next_file else f"the file of {slug}", COMMAND
    )
    yield from page.sentence(Text(greeting))
    yield Text()
    steps = (
        where.append(" and read what it asks for."),
        Text("Put your code in place of ").append("raise NotImplementedError", "cyan").append("."),
        Text("Save the file and type ").append("grade", COMMAND).append(" again."),
    )
    for number, step in enumerate(steps, start=1):
        yield from page.wrap(step, MARGIN + 2, Text(f"{number}  "))
    yield Text()
    yield from page.offer("For a hint:", f"grade hint {slug}")
    yield Text()


def _next_stage(page: Page, report: Report, next_file: str | None) -> Iterator[Text]:
    """Something passes and nothing fails: only untouched stages are left."""
    core = [stage for stage in report.stages if not stage.bonus] or list(report.stages)
    done = sum(stage.status is Status.PASSED for stage in core)
    coming = next(stage for stage in core if stage.status is Status.NOT_STARTED)
    slug = page.word(coming.slug)
    so_far = f"{done} of {count(len(core), 'stage')} done."
    if report.is_partial:
        so_far = f"{done} of {count(len(core), 'stage')} so far. {VISIBLE_PASS}"
    yield from page.sentence(
        Text(f"{so_far} Next comes ").append(slug, "bold").append("."),
    )
    yield Text()
    if next_file:
        yield from page.offer("Open:      ", next_file)
    yield from page.offer("Then type: ", f"grade {slug}")
    yield from page.offer("For a hint:", f"grade hint {slug}")
    yield Text()


def _congratulation(page: Page, report: Report) -> Iterator[Text]:
    if report.is_partial:
        yield from provisional(page, [s for s in report.stages if s.status is Status.PASSED])
    else:
        yield from page.sentence(_praise(page, report))
    untouched = [stage for stage in report.stages if stage.status is Status.NOT_STARTED]
    if untouched:
        is_left = f"For bonus points, {count(len(untouched), 'more stage')}:"
        yield from page.offer(is_left, "grade list")
    elif len(report.stages) == 1:
        yield from page.offer("To see where you stand:", "grade")
    yield Text()


def _praise(page: Page, report: Report) -> Text:
    core = [stage for stage in report.stages if not stage.bonus]
    stages = core or list(report.stages)
    score, max_score = (report.score, report.max_score) if core else (report.bonus, report.bonus)
    points = f"{amount(score)} of {amount(max_score)} points."
    if len(stages) == 1:
        return Text().append(page.word(stages[0].slug), "bold").append(f" passes: {points}")
    line = Text().append(f"All {len(stages)} stages pass", "bold green").append(f": {points}")
    return line.append(" Well done!")


def _footnotes(page: Page, report: Report) -> Iterator[Text]:
    skipped: dict[str, int] = {}
    for stage in report.stages:
        for check in stage.checks:
            if check.outcome is Outcome.SKIPPED:
                skipped[check.message.strip()] = skipped.get(check.message.strip(), 0) + 1
    lines = [
        f"{count(number)} skipped, at no cost" + (f": {reason}" if reason else "")
        for reason, number in skipped.items()
    ]
    lines += report.notes
    for line in lines:
        yield from page.wrap(Text(page.word(line), "dim"), MARGIN)
    if lines:
        yield Text()


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
