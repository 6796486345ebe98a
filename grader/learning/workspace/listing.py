"""The screen of `grade list`: each stage, what to write, what it needs, and its status."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from grader.show.scoreboard import standing, unjudged
from grader.show.screen import COMMAND, GAP, MARGIN, SHORTEST_TITLE, Page, amount, count, screen
from grader.types.course import Course, Stage
from grader.types.progress import NOTEBOOK, Progress, StageProgress
from grader.types.report import Status


@screen
def listing(page: Page, course: Course, progress: Progress) -> Iterator[Text]:
    """The stages of a course, core stages first, with the learner's progress."""
    core = [stage for stage in course.stages if not stage.bonus]
    bonus = [stage for stage in course.stages if stage.bonus]
    total = count(sum(stage.points for stage in core), "point")
    if course.is_partial:
        total += " on submission"
    yield Text()
    heading = Text().append(page.word(course.title), "bold")
    yield from page.sentence(heading.append(f"   {count(len(core), 'stage')}, {total}", "dim"))
    width = max(cell_len(page.word(stage.slug)) for stage in course.stages)
    for stage in (*core, *bonus):
        number = course.stages.index(stage) + 1  # `grade` accepts it in place of the slug
        if bonus and stage is bonus[0]:
            yield Text()
            yield from page.sentence("Bonus", "bold")
        yield Text()
        known = progress.stage(stage.slug)
        yield from _listed(page, number, stage, width, known, course.is_partial)
    yield from _removed(page, course, progress)
    yield Text()
    yield from page.offer("Check one: ", "grade STAGE")
    yield from page.offer("For a hint:", "grade hint STAGE")
    yield Text()


def _removed(page: Page, course: Course, progress: Progress) -> Iterator[Text]:
    """What the learner has earned in stages that the course no longer has."""
    known = {slug for stage in course.stages for slug in (stage.slug, *stage.formerly)}
    earned = {slug: each for slug, each in progress.stages.items() if slug not in known}
    for slug, each in earned.items():
        if each.best or each.passed:
            facts = [f"best {amount(each.best)}"] if each.best else []
            facts += [f"first passed on {each.passed[:10]}"] if each.passed else []
            yield Text()
            yield from page.sentence(
                page.word(f"No longer in the course: {slug}, {', '.join(facts)}"), "dim"
            )


def _listed(
    page: Page, number: int, stage: Stage, width: int, known: StageProgress, is_partial: bool
) -> Iterator[Text]:
    points = count(stage.points, "point")
    if page.plain:
        kind = "Bonus stage" if stage.bonus else "Stage"
        yield from page.sentence(
            f"{kind} {number}: {page.word(stage.slug)}, {page.word(stage.title)}, {points}."
        )
    else:
        line = Text().append(f"{number:>{MARGIN + 2}}  ", "dim")
        line.append(page.column(stage.slug, width), COMMAND)
        points = f"{'+' if stage.bonus else ''}{points}"
        room = page.width - line.cell_len - GAP - len(points) - GAP
        if room >= SHORTEST_TITLE or cell_len(page.word(stage.title)) <= room:
            line.append(" " * GAP + page.word(stage.title, room))
        yield line.append(" " * (page.width - line.cell_len - len(points)) + points)
    rows = (
        (
            "write",
            [
                f"tests that take {entry.name}" if entry.is_fixture else entry.name
                for entry in stage.entry_points
            ],
        ),
        ("needs", stage.requires),
        ("so far", _so_far(stage, known, is_partial)),
    )
    for label, names in rows:
        if names:
            yield from page.wrap(page.word(", ".join(names)), MARGIN + 4, Text(f"{label}  ", "dim"))


def _so_far(stage: Stage, known: StageProgress, is_partial: bool) -> list[str]:
    """The learner's progress in a stage, in words; empty if it was never graded."""
    if known.status is None and not (known.judged or known.attempts):
        return []
    word = unjudged(known) if known.status is None else standing(known)
    if known.status is Status.PASSED and is_partial:
        word = "visible checks pass" if known.best else "graded on submission"
    facts = [f"{word} in a notebook" if known.is_on(NOTEBOOK) else word]
    if not is_partial and (known.attempts or known.best):
        facts.append(f"best {amount(known.best)} of {amount(stage.points)}")
    if known.passed and not is_partial:
        facts.append(f"first passed on {known.passed[:10]}")
    if known.attempts:
        facts.append(count(known.attempts, "attempt"))
    if known.rungs:
        facts.append(f"up to hint {known.rungs}")
    if known.gave_up:
        facts.append("solution seen before")
    return facts
