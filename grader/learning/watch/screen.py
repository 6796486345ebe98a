"""The screen of `grade watch`: as many lines as the terminal has, with the keys on the last."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from grader.command.grade import afterwards
from grader.learning.hints.screen import aftermath, rung
from grader.learning.hints.types import Part
from grader.learning.pictures.trace import trace_screen
from grader.learning.watch.state import (
    DiffShown,
    HintShown,
    KeysShown,
    NotesShown,
    Phase,
    Standing,
    TraceShown,
    Watching,
)
from grader.learning.workspace.diff import diff
from grader.show.failure import every_failure, first_failure
from grader.show.scoreboard import GRADE_AGAIN, VISIBLE_PASS, known_board, mark, standing
from grader.show.screen import COMMAND, GAP, MARGIN, Page, Screen, amount, count, screen
from grader.types.course import Stage, core_of
from grader.types.progress import StageProgress
from grader.types.report import Outcome, StageResult, Status

_KEYS = (
    ("h", "hint", "a question about what fails; again for its answer, then the next hint"),
    ("a", "all", "every failing check of this stage"),
    ("e", "edit", "your file in your editor"),
    ("t", "trace", "your code on a small example, wrong numbers beside the right ones"),
    ("l", "list", "every stage and its points"),
    ("d", "diff", "what you have changed in the file"),
    ("r", "rerun", "grade again, with other random inputs"),
    ("w", "why", "after a stage passes: why its solution is written this way"),
    ("q", "quit", "stop watching; your progress is kept"),
    ("?", "keys", "this list"),
)
_SCROLLING = "The arrows, j, k, Page Up and Page Down scroll. Esc goes back."
_ENDLESS = 1000  # lines for output without a terminal, where no key can be pressed
_SLOW = 1.0  # seconds
_FEWEST_LINES = 10  # a terminal with fewer lines scrolls


@screen
def watch_screen(page: Page, state: Watching, height: int) -> Iterator[Text]:
    """The current state in `height` lines."""
    height = max(height, _FEWEST_LINES)
    top = [*_heading(page, state), _changed(page, state)]
    if state.success is not None:
        top += [*_success(page, state), Text()]
    if not isinstance(state.panel, Standing):  # which needs the lines, and shows the stage itself
        top += [*_stage(page, state), Text()]
    bottom = [*_notice(page, state), _keys(page, state)]
    room = max(1, height - len(top) - len(bottom) - 1)
    body = _body(page, state, room)
    below = [Text()] * (room - len(body))
    yield from [*top, *body, *below, Text(), *bottom][:height]


def news(before: Watching | None, state: Watching) -> Screen | None:
    """The lines to print for `state` after those for `before`; None if nothing is new."""
    is_same = before is not None and (before.report, before.success, before.notice) == (
        state.report,
        state.success,
        state.notice,
    )
    if before is not None and state.phase is not Phase.WAITING:
        return None
    if before is not None and is_same and not any(_others(before, state)):
        return None
    return _news(before, state)


def _heading(page: Page, state: Watching) -> Iterator[Text]:
    course, result = state.workspace.course, _result(state)
    core = core_of(course.stages)
    known: dict[Stage, StageProgress | StageResult] = {
        stage: state.progress.stage(stage.slug) for stage in course.stages
    }
    if result is not None and state.phase is Phase.JUDGING:  # its line shows the old verdict
        known[state.stage] = result
    done = sum(known[stage].status is Status.PASSED for stage in core)
    score = sum(known[stage].score for stage in core)
    facts = f"{done} of {count(len(core), 'stage')}, {amount(score)} of "
    facts += f"{count(sum(stage.points for stage in core), 'point')}"
    if course.is_partial:
        facts = f"visible checks: {done} of {count(len(core), 'stage')}"
    bonus = sum(known[stage].score for stage in course.stages if stage not in core)
    if bonus and not course.is_partial:
        facts += f", +{amount(bonus)} bonus"
    line = Text(" " * MARGIN).append(page.word(course.title), "bold")
    if line.cell_len + GAP + len(facts) > page.width:
        yield from page.sentence(facts, "dim")
        return
    yield line.append(" " * (page.width - line.cell_len - len(facts)) + facts, "dim")


def _changed(page: Page, state: Watching) -> Text:
    """How many stages are to be graded again; an empty line if none."""
    known = [state.progress.stage(stage.slug) for stage in state.workspace.course.stages]
    changed = sum(each.is_changed for each in known)
    if not changed:
        return Text()
    words = f"{count(changed, 'stage')} {GRADE_AGAIN}"
    return Text(" " * (page.width - len(words)) + words, "yellow")


def _success(page: Page, state: Watching) -> Iterator[Text]:
    success = state.success
    if success is None:
        return
    line = Text(page.word(success.stage.slug), "bold green")
    if not state.workspace.course.is_partial:
        line.append(f" passes: {count(success.points, 'point')}.", "not bold green")
    elif success.points:
        line.append(f": y{VISIBLE_PASS[1:]}", "not bold green")
    else:
        line.append(": its checks run on submission; none is visible.", "not bold default")
    yield from page.wrap(line, MARGIN, mark(page, Status.PASSED).append(" "))
    if state.panel is None:  # which needs the lines
        if success.learnt:
            yield from page.markdown(success.learnt, MARGIN + 2)
        if success.stage != state.stage and not success.stage.bonus:
            yield from _afterwards(page, state)


def _stage(page: Page, state: Watching) -> Iterator[Text]:
    stage, result = state.stage, _result(state)
    doing = {
        Phase.STARTING: "starting: loading the libraries",
        Phase.JUDGING: f"grading, {state.seconds:.0f} s" if _is_slow(state) else "grading",
        Phase.WAITING: f"{state.seconds:.2f} s" if result else "",
    }[state.phase]
    if state.trials is not None:
        doing = "module {} of {}".format(*state.trials)
    sign = mark(page, result or Status.NOT_STARTED).append(" ")
    line = Text(" " * MARGIN).append_text(sign)
    line.append(page.word(stage.title), "bold").append("  " + page.word(stage.slug), "dim")
    facts = Text()
    if result is not None:
        points = f"{amount(result.score)} / {amount(result.max_score)}"
        facts.append(f"{points}  ").append(standing(result))
    if line.cell_len + GAP + facts.cell_len > page.width:
        yield from page.wrap(Text(page.word(stage.title), "bold"), MARGIN, sign)
        line = Text(" " * (MARGIN + 2)).append(page.word(stage.slug), "dim")
    if line.cell_len + GAP + facts.cell_len > page.width:
        yield line
        line = Text(" " * MARGIN)
    line.append(" " * GAP).append_text(facts)
    line.rstrip()
    if page.width - line.cell_len - GAP >= len(doing):
        line.append(" " * (page.width - line.cell_len - len(doing)) + doing, "dim")
    yield line
    file = Text(" " * (MARGIN + 2)).append(page.word(_file(state)), COMMAND)
    if result is not None and result.status is not Status.NOT_STARTED:
        passing, signs = _checks(page, result)
        if file.cell_len + GAP + passing.cell_len > page.width:
            yield file
            file = Text(" " * MARGIN)
        file.append(" " * GAP).append_text(passing)
        if file.cell_len + GAP + signs.cell_len <= page.width:
            file.append(" " * GAP).append_text(signs)
    yield file


def _checks(page: Page, result: StageResult) -> tuple[Text, Text]:
    """How many checks pass, and a sign for each, in order."""
    glyphs = page.glyphs
    signs = {
        Outcome.PASSED: (glyphs.passed, "green"),
        Outcome.FAILED: (glyphs.failed, "bold red"),
        Outcome.TIMEOUT: (glyphs.failed, "bold red"),
        Outcome.ERROR: (glyphs.error, "bold magenta"),
        Outcome.SKIPPED: (glyphs.not_started, "dim"),
    }
    judged = [check for check in result.checks if check.outcome is not Outcome.SKIPPED]
    passing = sum(check.outcome is Outcome.PASSED for check in judged)
    drawn = Text()
    for check in result.checks:
        drawn.append(*signs[check.outcome])
    return Text(f"{passing} of {count(len(judged))} pass", "dim"), drawn


def _body(page: Page, state: Watching, room: int) -> list[Text]:
    panel = state.panel
    if panel is None and state.phase is Phase.JUDGING and _is_slow(state):
        if state.trials is None:
            words = "Your code takes a while: is the machine busy, or is there an endless loop?"
            return list(page.sentence(words))[:room]
        result = _result(state)
        if result is None or result.status is Status.NOT_STARTED:
            words = "Your tests run on right and wrong modules, one after the other."
            return list(page.sentence(words))[:room]
    if panel is None:
        return _verdict(page, state, room)
    if isinstance(panel, HintShown):
        lines = list(rung(page, state.stage.title, panel.hints, panel.turn))
        is_last = panel.turn.number == len(panel.hints.rungs)
        more = "This was the last one." if is_last else "Press h again for the next hint."
        if panel.turn.part is Part.QUESTION:
            more = "Press h again for the answer."
        lines += [Text(), *page.sentence(more, "dim")]
    elif isinstance(panel, DiffShown):
        lines = list(diff(panel.name, panel.stub, panel.now).draw(page))
    elif isinstance(panel, NotesShown):
        lines = [*page.sentence(panel.hints.title, "bold"), Text()]
        lines += aftermath(panel.hints).draw(page)
    elif isinstance(panel, KeysShown):
        lines = list(_every_key(page, state))
    elif isinstance(panel, TraceShown):
        lines = list(_traced(page, panel))
    elif isinstance(panel, Standing):
        course = state.workspace.course
        lines = list(known_board(page, course, state.progress, state.stage.slug))
    else:
        result = _result(state)
        if result is None or result.status is Status.NOT_STARTED:
            return _verdict(page, state, room)
        lines = every_failure(page, result)
    return _scrolled(page, lines, state.scroll, room)


def _traced(page: Page, panel: TraceShown) -> Iterator[Text]:
    if panel.trace is None:
        yield from page.sentence("Running the example on your code.", "dim")
        return
    whole = trace_screen(panel.trace, panel.right, panel.before, wrong_first=True)
    yield from list(whole.draw(page))[1:]


def _scrolled(page: Page, lines: list[Text], scroll: int, room: int) -> list[Text]:
    """The part that fits, with a line that says how to see the rest."""
    while lines and not lines[-1].plain.strip():
        lines.pop()
    if len(lines) <= room:
        return lines
    shown = room - 1
    start = min(scroll, len(lines) - shown)
    left = len(lines) - start - shown
    what = f"{count(left, 'more line')} below" if left else "the end"
    part = lines[start : start + shown]
    line = f"{page.glyphs.more} {what}: arrows, Page Up and Down scroll"
    if MARGIN + len(line) > page.width:
        line = f"{page.glyphs.more} {what}: j, k scroll"
    return [*part, Text(" " * MARGIN + line, "dim")]


def _verdict(page: Page, state: Watching, room: int) -> list[Text]:
    result, report = _result(state), state.report
    if result is None or report is None:
        return list(page.sentence("Each time you save, the stage is graded again."))[:room]
    if result.status in (Status.FAILED, Status.ERROR):
        return first_failure(page, report, result, room)
    if result.status is Status.NOT_STARTED:
        return list(_how_to_begin(page, state, keys=room < _ENDLESS))[:room]
    return list(_all_done(page, state))[:room]


def _how_to_begin(page: Page, state: Watching, *, keys: bool) -> Iterator[Text]:
    result = _result(state)
    why = result.why_not_started if result is not None else ""
    yield from page.sentence(page.word(why) if why else "Nothing is written here yet.")
    yield Text()
    opening = Text("Open ").append(page.word(_file(state)), COMMAND)
    steps = (
        opening.append(", or press e." if keys else "."),
        Text("Put your code in place of ").append("raise NotImplementedError", "cyan").append("."),
        Text("Save. Stuck? Press h." if keys else "Save."),
    )
    for number, step in enumerate(steps, start=1):
        yield from page.wrap(step, MARGIN + 2, Text(f"{number}  "))


def _all_done(page: Page, state: Watching) -> Iterator[Text]:
    stages = state.workspace.course.stages
    known = {stage: state.progress.stage(stage.slug) for stage in stages}
    all_pass = all(each.status is Status.PASSED for s, each in known.items() if not s.bonus)
    if state.workspace.course.is_partial:
        if all_pass:
            yield from page.sentence(f"In every stage y{VISIBLE_PASS[1:]}", "bold green")
        return
    if all_pass:
        core = core_of(stages)
        done = f"All {count(len(core), 'stage')} pass. Well done!"
        if len(core) == 1:
            done = "The only stage passes. Well done!"
        yield from page.sentence(done, "bold green")
        offers = afterwards(state.workspace.course)
        left = sum(each.status is not Status.PASSED for each in known.values())
        if left:
            offers.append((f"For bonus points, {count(left, 'more stage')}:", "grade list"))
        yield from page.offers(offers)
        yield Text()
    yield from page.offer("Why it is written this way:", f"grade solution {state.stage.slug}")


def _afterwards(page: Page, state: Watching) -> Iterator[Text]:
    """What to type when the whole core passes; nothing before."""
    course = state.workspace.course
    known = [state.progress.stage(stage.slug) for stage in core_of(course.stages)]
    if all(each.status is Status.PASSED for each in known):
        yield from page.offers(afterwards(course))


def _notice(page: Page, state: Watching) -> Iterator[Text]:
    if state.notice:
        yield from page.wrap(Text(page.clean(state.notice), "yellow"), MARGIN)


def _keys(page: Page, state: Watching) -> Text:
    """As many keys with their words as fit; the last ones always, for `?` shows the others."""
    keys = _keys_of(state)
    for last in range(len(keys) - 2, -1, -1):
        for gap in ("   ", "  "):
            line = Text(" " * MARGIN)
            for key, word, _ in (*keys[:last], *keys[-2:]):
                line.append(key, COMMAND).append(f" {word}{gap}", "dim")
            line.rstrip()
            if line.cell_len <= page.width:
                return line
    return line


def _keys_of(state: Watching) -> list[tuple[str, str, str]]:
    """The keys that do something in this stage: some have no trace."""
    has_trace = state.stage.trace_file.is_file()
    return [each for each in _KEYS if has_trace or each[1] != "trace"]


def _every_key(page: Page, state: Watching) -> Iterator[Text]:
    for key, _, what in _keys_of(state):
        yield from page.wrap(what, MARGIN, Text(f"{key}  ", COMMAND))
    yield Text()
    yield from page.sentence(_SCROLLING, "dim")


def _is_slow(state: Watching) -> bool:
    return state.seconds >= _SLOW


def _result(state: Watching) -> StageResult | None:
    return state.report.stages[0] if state.report is not None else None


def _file(state: Watching) -> str:
    return f"{state.workspace.exercises.name}/{state.stage.file_name}"


@screen
def _news(page: Page, before: Watching | None, state: Watching) -> Iterator[Text]:
    if before is None:
        line = f"Watching {_file(state)}. Each save grades the stage. Press Ctrl-C to stop."
        yield from page.sentence(page.word(line))
        return
    if state.success is not None and state.success != before.success:
        yield from _success(page, state)
    yield from _notice(page, state)
    for stage in _others(before, state):
        known = state.progress.stage(stage.slug)
        if known.status is not None:
            is_partial = state.workspace.course.is_partial
            word = standing(known, is_partial=is_partial)
            yield from _line(page, stage, word, known.score, stage.points)
    result, report = _result(state), state.report
    if result is None or report is None or report == before.report:
        return
    if result.status is Status.PASSED:
        yield from _all_done(page, state)
        return
    yield from _line(page, state.stage, standing(result), result.score, result.max_score)
    yield from _verdict(page, state, _ENDLESS)
    is_own = result.status is not Status.ERROR and result.caused_by is None
    if is_own and not (result.is_exam or state.notice):
        hint = f"grade hint {page.word(state.stage.slug)}"
        yield from page.offer("For a hint, in another terminal:", hint)


def _others(before: Watching, state: Watching) -> Iterator[Stage]:
    """The other started stages whose verdict has changed since `before`."""
    for stage in state.workspace.course.stages:
        old, new = before.progress.stage(stage.slug), state.progress.stage(stage.slug)
        is_news = (old.status, old.score) != (new.status, new.score)
        is_quiet = new.status in (None, Status.NOT_STARTED)
        is_shown = stage == state.stage or (state.success and stage == state.success.stage)
        if is_news and not is_quiet and not is_shown:
            yield stage


def _line(page: Page, stage: Stage, word: str, score: float, most: float) -> Iterator[Text]:
    points = f"{amount(score)} of {count(most, 'point')}"
    yield from page.sentence(f"{page.word(stage.slug)}: {word}, {points}.")
