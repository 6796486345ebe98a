"""Why a stage fails, on one screen: what to fix first in full, the rest in a line each. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from grader.show.screen import MARGIN, Page, amount, count
from grader.types.report import (
    EARLIER,
    Cause,
    CheckResult,
    Diagnosis,
    Kind,
    Outcome,
    Report,
    StageResult,
    Status,
    Way,
)
from grader.types.text import is_of_warnings, is_unloaded, listed, what_it_did

ROOM = 18  # lines: with the scoreboard of one stage and the footnotes, 24
LINES_WITH_ALL = 400
NOT_YOURS = "The grader itself failed here. This is not your mistake: please report it."
TOO_SLOW = "This ran out of time and was stopped."

_NARROW = 60  # columns: below, only the command that is needed most is offered
_BODY = MARGIN + 2  # where a check's message stands
_FEW_TITLES = 3  # of the other checks that a cause fails
_UNBROKEN = "\ue000"  # stands for a space while lines are broken: "(and 3 more)" stays whole
# How many lines the message, the titles of the checks that fail with it, the other causes and what
# was printed may take: the first that fits. People read a short screen, so more is shown only in a
# tall terminal.
_WIDER = ((20, 12, 6, 8), (10, 6, 6, 5), (10, 3, 3, 5))
_SHORTEST = tuple((lines, 1, 1, 0) for lines in range(8, 0, -1))
_TIGHTER = ((10, 1, 3, 5), (10, 1, 2, 3), (9, 1, 2, 2), *_SHORTEST)


@dataclass(frozen=True)
class NextSteps:
    """What a learner may type next.

    `file` is that of the first stage that is not started. `then` are sentences and commands for
    when the whole core passes. `traced` are the slugs of the stages that `grade trace` can show,
    and `missing` of those whose file `grade reset` can restore. `repro` is the command that shows a
    failing check as plain lines, without the check's name.
    """

    file: str | None = None
    then: Sequence[tuple[str, str]] = ()
    traced: Collection[str] = ()
    missing: Collection[str] = ()
    repro: str | None = None


def failing_stage(
    page: Page, report: Report, stage: StageResult, steps: NextSteps
) -> Iterator[Text]:
    """Why a stage fails and what to do next, on one screen."""
    if stage.caused_by is not None:
        yield from _fix_earlier(page, report, stage, stage.caused_by)
        yield Text()
        return
    below = [*_waiting(page, report, stage), *_next(page, report, stage, steps)]
    below = [Text(), *below] if below else []
    if len(report.stages) > 1 or not below:
        below.append(Text())
    yield from first_failure(page, report, stage, ROOM - len(below))
    yield from below


def first_failure(page: Page, report: Report, stage: StageResult, room: int) -> list[Text]:
    """Why a stage fails, in at most `room` lines."""
    if stage.caused_by is not None:
        return list(_fix_earlier(page, report, stage, stage.caused_by))[:room]
    causes = stage.causes
    lines: list[Text] = []
    sizes = (*_WIDER, *_TIGHTER) if room > ROOM else _TIGHTER
    for message, titles, others, printed in sizes:
        lines = [*page.sentence(_stage_heading(page, stage)), *_perhaps(page, stage)]
        if causes:
            lines += _explained(page, stage, message, titles)
            lines += _rest(page, stage, causes[1:], others, cut=titles == 1)
        if stage.printed.strip():
            lines += _printed(page, stage, printed)
        if len(lines) <= room:
            return lines
    more = list(page.offer("More:", f"grade {stage.slug} --all"))
    return [*lines[: max(0, room - len(more))], *more][:room]


def every_failure(page: Page, stage: StageResult) -> list[Text]:
    """All failing checks of a stage with their whole messages, and what its code printed."""
    lines: list[Text] = []
    shown: set[str] = set()  # diagnoses and places, each shown only once
    for cause in stage.causes:
        for group in _same_message(cause):
            lines += [*_whole(page, group, shown), Text()]
    if stage.printed.strip():
        lines += [*_printed(page, stage, LINES_WITH_ALL), Text()]
    return lines or list(page.sentence("No check fails."))


def every_failing_stage(
    page: Page, report: Report, stage: StageResult, steps: NextSteps | None
) -> Iterator[Text]:
    """Everything known about why a stage fails, and with `steps` the next command to type."""
    if stage.caused_by is not None:
        to_learner = steps is not None
        yield from _fix_earlier(page, report, stage, stage.caused_by, to_learner=to_learner)
        yield Text()
    yield from page.sentence(_stage_heading(page, stage, every=True))
    yield from _perhaps(page, stage)
    yield Text()
    yield from every_failure(page, stage) if stage.causes or stage.printed.strip() else ()
    following = list(_next(page, report, stage, steps)) if steps else []
    if following:
        yield from [*following, Text()]


def printed_by(page: Page, stage: StageResult) -> Iterator[Text]:
    """Everything that a stage's code printed."""
    if stage.printed.strip():
        yield from _printed(page, stage, LINES_WITH_ALL)
        yield Text()


# --- the first cause ---------------------------------------------------------------------------


def _explained(page: Page, stage: StageResult, limit: int, titles: int) -> Iterator[Text]:
    """The first cause in full, on one of its checks, and the titles of the others."""
    cause = stage.causes[0]
    check = cause.show
    text, title, lost = essence(check), check.title, check.max_score - check.score
    unloaded = is_unloaded(text)
    if unloaded:
        title, _, text = text.partition("\n")
        title, lost = page.word(title, limit * (page.width - _BODY)), cause.lost
    yield from _title(page, check.outcome, title, lost)
    yield from _outcome(page, check)
    if check.diagnosis is not None:
        yield from _reason(page, check.diagnosis, 4)
    if text.strip():
        style = "dim" if check.outcome is Outcome.ERROR else ""
        lines, left = page.verbatim(text, _BODY, style, limit=limit)
        yield from lines[:-1] if left and len(lines) > 1 else lines
        if left and len(lines) > 1:
            yield from page.offer(f"  {page.glyphs.more} more:", f"grade {stage.slug} --all")
    if cause.others and not unloaded:
        yield from _also(page, cause, titles)


def _reason(page: Page, found: Diagnosis, limit: int) -> Iterator[Text]:
    """Why a check fails, and the place of the mistake if it is known."""
    yield from page.wrap(page.inline(found.text), _BODY, Text(found.opening, "bold yellow"))
    if found.place:
        yield from page.verbatim(found.place, _BODY, limit=limit)[0]


def _outcome(page: Page, check: CheckResult) -> Iterator[Text]:
    if check.outcome is Outcome.ERROR:
        yield from page.wrap(Text(NOT_YOURS, "magenta"), _BODY)
    elif check.outcome is Outcome.TIMEOUT:
        yield from page.wrap(Text(TOO_SLOW, "yellow"), _BODY)


def _also(page: Page, cause: Cause, limit: int) -> Iterator[Text]:
    """The other checks of a cause, with as many of their titles as fit into `limit` lines."""
    first = [check.title.replace("\n", " ").strip() for check in cause.others[:_FEW_TITLES]]
    more = len(cause.others) - len(first)
    titles = "; ".join([*first, f"and {more} more"] if more else first)
    line = others_line(cause)
    if page.width < _NARROW:
        yield from page.wrap(line, _BODY)
        return
    whole = list(page.wrap(page.inline(f"{line}: {titles}"), _BODY))
    if len(whole) > limit:
        line = page.word(f"{line}: {titles}", page.width - _BODY)
        whole = [Text(" " * _BODY).append_text(page.inline(line))]
    yield from whole


def others_line(cause: Cause) -> str:
    """How many other checks fail because of the same mistake, and the points that they lost."""
    how = "for the same reason" if cause.show.diagnosis else "in the same way"
    verb = "fails" if len(cause.others) == 1 else "fail"
    lost = cause.lost - (cause.show.max_score - cause.show.score)
    points = f" (-{amount(lost)})" if lost > 0 else ""
    return f"{count(len(cause.others), 'more check')} {verb} {how}{points}"


_PART = re.compile(r"\n(?=  \S)")  # a labelled value, a frame or a row of a matrix
_FRAME = re.compile(r"  (?!look at )\S.*, line \d+")
_LOOK_AT = "  look at "
_IN_WORDS = "  in words "
_PLACE = re.compile(r"\(\S+, line \d+\)|\b__init__\b")
_CALL = re.compile(r"\n  call {2,}")
_CODE = re.compile(r" *(\d+) +(.*)")
_LOOP = re.compile(r" *\d+ +(while|for) ")
_RETURN = re.compile(r" *\d+ +([^#]*: *)?(return|yield)\b")
_RETURNS_NAMES = re.compile(r" *\d+ +return +(?!None|True|False)\(?[a-z_]\w*(, *\w+)*\)? *(#.*)?$")


def essence(check: CheckResult) -> str:
    """A message without unnecessary code: only the last two frames stay.

    Of the lines that may hold the mistake, one stays: the loop's if the code did not end, else the
    one that returns an answer. Only numbers stay if none or several do: which of those ran is not
    known. They stay, too, if that one returns mere names, or if an error was expected: the mistake
    is above it. None stays if a diagnosis names the mistake, or says where it is: that line would
    lead away from it. A name also replaces what an exception means in plain words.
    """
    found = check.diagnosis
    is_named = found is not None and found.kind is Kind.NAME
    is_told = is_named or (found is not None and bool(found.place or _PLACE.search(found.text)))
    parts = _PART.split(check.message.strip("\n"))
    frames = [part for part in parts if _FRAME.match(part)]
    kept = []
    for part in parts:
        if part in frames[:-2] or (is_named and part.startswith(_IN_WORDS)):
            continue
        if part.startswith(_LOOK_AT):
            if is_told:
                continue
            if check.way.startswith(Way.NO_ERROR.value):
                part = part.partition("\n")[0]
            part = _one_line(part, check.outcome is Outcome.TIMEOUT)
        kept.append(part)
    return "\n".join(kept)


def _one_line(place: str, is_endless: bool) -> str:
    """The line to look at first, among those where an answer is made."""
    where, *code = place.split("\n")
    if len(code) > 1:
        loops = [line for line in code if _LOOP.match(line)] if is_endless else []
        code = loops[:1] or [line for line in code if _RETURN.match(line)]
    if len(code) > 1:
        numbers = listed([line.split()[0] for line in code])
        return f"{where.partition(', line')[0]}, lines {numbers}, which return"
    says_little = ", lines " in where and code and _RETURNS_NAMES.match(code[0])
    line = _CODE.match(code[0]) if code and not says_little else None
    return f"{where.partition(', line')[0]}, line {line[1]}: {line[2]}" if line else where


# --- the rest ----------------------------------------------------------------------------------


def _rest(
    page: Page, stage: StageResult, causes: Sequence[Cause], limit: int, *, cut: bool
) -> Iterator[Text]:
    """The title of each further cause, at most `limit` of them; with `cut`, each on one line."""
    shown = causes if len(causes) <= limit else causes[: max(0, limit - 1)]
    for cause in shown:
        check, title = cause.show, cause.show.title
        more = f" (and {len(cause.others)} more)" if cause.others else ""
        if check.way == EARLIER and cause.others:
            more, number = "", count(len(cause.checks), "check")
            title = check.message.replace("It fails", f"{number} fail", 1)
        if is_unloaded(check.message):
            title, more = check.message.partition("\n")[0], ""
        yield from _title(page, check.outcome, title, cause.lost, more, cut=cut)
    left = sum(len(cause.checks) for cause in causes[len(shown) :])
    if left:
        words = f"{count(left, 'more check')} {'fails' if left == 1 else 'fail'}:"
        yield from page.offer(words, f"grade {stage.slug} --all")


def _title(
    page: Page,
    outcome: Outcome,
    title: str,
    lost: float,
    more: str | None = None,
    *,
    cut: bool = False,
) -> Iterator[Text]:
    """A check's title, then `more`, with the points it lost; with `cut` on one line."""
    title = title.replace("\n", " ").strip()
    if page.plain:
        what = "The grader failed at" if outcome is Outcome.ERROR else "Failed"
        points = f" Lost: {count(lost, 'point')}." if lost > 0 else ""
        text = f"{what}: {title}{more or ''}"
        stop = "" if text.endswith(("?", ".")) else "."
        yield from page.sentence(page.inline(f"{text}{stop}{points}"))
        return
    points = f"-{amount(lost)}" if lost > 0 else ""
    mark, colour = (page.glyphs.failed, "red")
    if outcome is Outcome.ERROR:
        mark, colour = (page.glyphs.error, "magenta")
    indent = MARGIN + 2
    room = max(8, page.width - indent - len(points) - 1)
    if more is not None:
        title = page.word(title, max(8, room - len(more))) if cut else title
        drawn = page.inline(title + more.replace(" ", _UNBROKEN).replace(_UNBROKEN, " ", 1))
    else:
        drawn = page.inline(title, "bold")
    for number, part in enumerate(drawn.wrap(page.console, room, overflow="fold")):
        part.rstrip()
        part.plain = part.plain.replace(_UNBROKEN, " ")
        line = Text(" " * MARGIN).append(mark if not number else " ", f"bold {colour}").append(" ")
        line.append_text(part)
        if not number:
            line.append(" " * (page.width - line.cell_len - len(points)) + points, colour)
        yield line


def _same_message(cause: Cause) -> list[list[CheckResult]]:
    """The checks of a cause in groups with the same message."""
    groups: dict[str, list[CheckResult]] = {}
    for check in cause.checks:
        groups.setdefault(check.message.strip(), []).append(check)
    return list(groups.values())


def _whole(page: Page, group: Sequence[CheckResult], shown: set[str]) -> Iterator[Text]:
    """The checks that share a message, and all of the message."""
    check = group[0]
    if is_unloaded(check.message):  # no check ran, so their titles say nothing about this code
        title, _, rest = check.message.partition("\n")
        lost = sum(each.max_score - each.score for each in group)
        yield from _title(page, check.outcome, title, lost)
        yield from page.verbatim(rest, _BODY, limit=LINES_WITH_ALL)[0] if rest else ()
        return
    for each in group:
        yield from _title(page, each.outcome, each.title, each.max_score - each.score)
    yield from _outcome(page, check)
    found = check.diagnosis
    if found is not None and found.id in shown:
        yield from page.wrap(Text("The same mistake as above", "dim"), _BODY)
    elif found is not None:
        shown.add(found.id)
        yield from _reason(page, found, LINES_WITH_ALL)
    says, look, place = _without_known_frames(check.message, shown).partition(f"\n{_LOOK_AT}")
    if says.strip():
        style = "dim" if check.outcome is Outcome.ERROR else ""
        message = says if place in shown else says + look + place
        shown.add(place)
        lines, left = page.verbatim(message, _BODY, style, limit=LINES_WITH_ALL)
        yield from lines
        yield from _left_out(page, left)


def _without_known_frames(message: str, shown: set[str]) -> str:
    """The message, of whose frames only the last stays if they are `shown` already; adds them."""
    parts = _PART.split(message)
    frames = [part for part in parts if _FRAME.match(part)]
    way = "\n".join(frames)
    if way in shown:
        parts = [part for part in parts if part not in frames[:-1]]
    shown.add(way)
    return "\n".join(parts)


def _printed(page: Page, stage: StageResult, limit: int) -> Iterator[Text]:
    warned = is_of_warnings(stage.printed)
    if limit <= 0:
        much = count(len(stage.printed.strip().split("\n")), "warning" if warned else "line")
        did = f"{'caused' if warned else 'printed'} {much}"
        yield from page.offer(f"Your code {did}:", f"grade {stage.slug} --all")
        return
    did = f"{what_it_did(stage.printed)}{'' if warned else ','}"
    yield from page.sentence(f"Your code {did} in {page.word(stage.slug)}:", "dim")
    text = stage.printed.strip("\n")
    lines, left = page.verbatim(text, _BODY, gutter=True, limit=limit + 1)
    if left:  # the last line says how many more there are
        lines, left = page.verbatim(text, _BODY, gutter=True, limit=limit)
    yield from lines
    yield from _left_out(page, left)


def _left_out(page: Page, left: int) -> Iterator[Text]:
    if left:
        yield Text(" " * _BODY + f"{page.glyphs.more} {count(left, 'more line')}", "dim")


# --- around it ---------------------------------------------------------------------------------


def _stage_heading(page: Page, stage: StageResult, *, every: bool = False) -> Text:
    checks = [check for check in stage.checks if check.outcome is not Outcome.SKIPPED]
    bad = [check for check in checks if check.outcome is not Outcome.PASSED]
    name = Text(page.word(stage.slug), "bold")
    if not bad:
        if stage.status is Status.ERROR:
            return name.append(": ").append(NOT_YOURS)
        return name.append(" does not pass yet")
    if all(check.outcome is Outcome.ERROR for check in bad):
        return name.append(f": the grader could not finish {len(bad)} of {count(len(checks))}")
    verb = "does" if len(bad) == 1 else "do"
    first = ". Fix this first:" if len(stage.causes) > 1 and not every else ":"
    return name.append(f": {len(bad)} of {count(len(checks))} {verb} not pass yet{first}")


def _fix_earlier(
    page: Page, report: Report, stage: StageResult, cause: str, *, to_learner: bool = True
) -> Iterator[Text]:
    why, advice = why_it_waits(report, stage)
    yield from page.sentence(page.inline(why))
    if stage.score == stage.max_score:
        yield from page.sentence(
            "You still get its points: with the course's version of that stage it passes."
        )
    if to_learner:
        yield from page.offer(f"{advice} that one first:", f"grade {page.word(cause)}")


def why_it_waits(report: Report, stage: StageResult) -> tuple[str, str]:
    """Why a stage waits for an earlier one, in simple markdown, and what to do with that one."""
    before = {earlier.slug: earlier.status for earlier in report.stages}.get(stage.caused_by or "")
    this, that = f"**{stage.slug}**", f"**{stage.caused_by}**"
    if before is Status.NOT_STARTED:
        return f"{this} fails because it uses {that}, which is not written yet.", "Write"
    if before is Status.FAILED:
        return f"{this} fails because {that} does.", "Fix"
    return f"{this} fails because {that} is not right yet.", "Fix"


def perhaps_earlier(stage: StageResult) -> str:
    """The earlier stage to fix first, if it is uncertain whether it is the cause; "" if none is."""
    if stage.perhaps is None:
        return ""
    return f"It uses **{stage.perhaps}**, which does not pass yet: that may be why, so begin there."


def _perhaps(page: Page, stage: StageResult) -> Iterator[Text]:
    if words := perhaps_earlier(stage):
        yield from page.sentence(page.inline(words))


def _waiting(page: Page, report: Report, stage: StageResult) -> Iterator[Text]:
    waiting = [later.slug for later in report.stages if later.caused_by == stage.slug]
    if waiting:
        verb = "fails" if len(waiting) == 1 else "fail"
        yield from page.sentence(page.word(f"{listed(waiting)} {verb} because of {stage.slug}."))


def _next(page: Page, report: Report, stage: StageResult, steps: NextSteps) -> Iterator[Text]:
    """The next command to type."""
    if stage.slug in steps.missing:
        yield from page.offer("If the file is lost:", f"grade reset {stage.slug}")
        return
    theirs = (Outcome.FAILED, Outcome.TIMEOUT)
    first = next((cause.show for cause in stage.causes if cause.show.outcome in theirs), None)
    if first is not None and stage.caused_by is None:
        if not stage.is_exam and not is_unloaded(first.message):  # no hint is about that
            yield from page.offer("For a hint:         ", f"grade hint {stage.slug}")
        # Without a call, nothing of the learner's ran; a narrow screen needs the lines.
        if _CALL.search(first.message) and page.width >= _NARROW:
            if stage.slug in steps.traced:
                yield from page.offer("To see each step:   ", f"grade trace {stage.slug}")
            if steps.repro and report.device == "cpu":  # what a GPU alone shows would pass there
                yield from page.offer("To run it yourself: ", f"{steps.repro} {first.id}")
