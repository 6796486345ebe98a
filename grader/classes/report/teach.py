"""What to teach next, on one printed page: the commonest causes, with an example of each. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from grader.classes.report.look import text, verbatim
from grader.classes.report.moved import MistakeMoved, Moved
from grader.classes.report.reasons import UNEXPLAINED
from grader.classes.report.tally import Held, Tally
from grader.show.html import inline_html
from grader.show.screen import count
from grader.types.course import Assignment

Hints = Mapping[str, Sequence[str]]  # the headings of each stage's hints, by slug

_STAGES, _CAUSES, _SHOWN = 6, 2, 5  # stages, causes of one, causes with an example
_CHECKS, _TITLES, _MISTAKES = 3, 4, 2
_EXAMPLE = 6  # lines


def teach(tally: Tally, assignment: Assignment, hints: Hints, moved: Moved | None) -> Iterator[str]:
    """The causes, the checks and what changed. No student is named, so it can be shown in class."""
    yield '<div class="columns">'
    yield from _stages(tally, assignment, hints)
    yield from _checks(tally)
    if moved is not None:
        yield from _moved(moved)
    yield "</div>\n"


def causes_of(tally: Tally, slug: str) -> list[Held]:
    """Why students fail a stage: the most common reasons first, among equals the explained ones."""
    found = [(held, key) for (stage, key), held in tally.causes.items() if stage == slug]
    found.sort(key=lambda one: (-one[0].students, one[1].startswith(UNEXPLAINED)))
    return [held for held, _ in found]


def heading(hints: Hints, slug: str, number: int | None) -> str:
    """The heading of a stage's hint; "" if there is none."""
    headings = hints.get(slug, ())
    return headings[number - 1] if number is not None and 0 < number <= len(headings) else ""


def numbered(hints: Hints, slug: str, number: int | None) -> str:
    """The number and the heading of a stage's hint as HTML; "" if there is none."""
    found = heading(hints, slug, number)
    return f"{number}. {inline_html(found)}" if found else ""


def _stages(tally: Tally, assignment: Assignment, hints: Hints) -> Iterator[str]:
    failing = [stage for stage in assignment.stages if causes_of(tally, stage.slug)]
    failing.sort(key=lambda stage: -tally.stages[stage.slug].failed)
    if not failing:
        yield "<p>Nobody fails a stage because of a mistake in it.</p>\n"
        return
    left = _SHOWN
    for stage in failing[:_STAGES]:
        counts, causes = tally.stages[stage.slug], causes_of(tally, stage.slug)
        yield (
            f'<div class="stage"><h3>{text(stage.title)}: {counts.failed} of {counts.known} fail'
            "</h3>"
        )
        for one in causes[:_CAUSES]:
            yield _cause(one, hints, with_example=left > 0)
            left -= 1
        more = len(causes) - _CAUSES
        yield f"<p>And {count(more, 'other reason')}.</p></div>\n" if more > 0 else "</div>\n"
    if failing[_STAGES:]:
        others = ", ".join(
            f"{text(stage.title)} ({tally.stages[stage.slug].failed})"
            for stage in failing[_STAGES:]
        )
        yield f"<p>Other stages, and how many fail them: {others}.</p>\n"


def _cause(one: Held, hints: Hints, *, with_example: bool) -> str:
    """How many students, what the feedback says, one answer, and the hint to give."""
    parts = [f"<p><strong>{count(one.students, 'student')}</strong>: {inline_html(one.words)}</p>"]
    if with_example and one.example:
        parts.append(verbatim(one.example, _EXAMPLE))
    hint = numbered(hints, one.stage.slug, one.hint)
    if hint:
        parts.append(f"<p>Hint {hint}</p>")
    return f'<div class="reason">{"".join(parts)}</div>'


def _checks(tally: Tally) -> Iterator[str]:
    """The checks that separate strong from weak, and those that everybody passes."""
    apart = []
    for one in tally.checks.values():
        weak, strong = tally.thirds(one)
        if weak is not None and strong is not None and weak > strong:
            apart.append((strong - weak, f"{one.words} ({one.stage.title})", weak, strong))
    if apart:
        yield (
            '<div class="stage"><h3>What separates strong from weak</h3><p>How many of the weakest '
            "and of the strongest third fail it:</p><ul>"
        )
        for _, words, weak, strong in sorted(apart)[:_CHECKS]:
            yield f"<li>{inline_html(words)}: {weak:.0%} and {strong:.0%}</li>"
        yield "</ul></div>\n"
    titles = tally.passed_by_all
    if titles:
        shown = "; ".join(inline_html(title) for title in titles[:_TITLES])
        more = f"; and {len(titles) - _TITLES} more" if len(titles) > _TITLES else ""
        yield f'<div class="stage"><h3>What everybody passes</h3><p>{shown}{more}.</p></div>\n'


def _moved(moved: Moved) -> Iterator[str]:
    """How the class changed since the earlier assignment."""
    yield (
        f'<div class="stage"><h3>Since {text(moved.name)}</h3>'
        f"<p>{count(moved.students, 'student')} in both: median {moved.before:.0%} of the points "
        f"then, {moved.now:.0%} now. {moved.rose} rose by a tenth of the points or more, "
        f"{moved.fell} fell.</p>"
    )
    most = sorted(moved.stages, key=lambda each: -abs(each.now - each.before))[:_STAGES]
    rows = [
        f"<li>{text(each.title)}: {each.before} passed, now {each.now}</li>"
        for each in moved.stages
        if each in most
    ]
    rows += [f"<li>{_fate(each)}</li>" for each in moved.mistakes[:_MISTAKES]]
    yield f"<ul>{''.join(rows)}</ul></div>\n" if rows else "</div>\n"


def _fate(one: MistakeMoved) -> str:
    """What became of a known mistake."""
    then = f"{one.before} had it, {one.still} still. " if one.before else ""
    new = f"{one.new} new." if one.new or not one.before else ""
    return f"{inline_html(one.says)} {then}{new}".strip()
