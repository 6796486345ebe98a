"""What a class teaches its author, as Markdown and as JSON data. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from grader.classes.for_author.types import HintUse, Lessons, Seen
from grader.show.screen import count
from grader.types.text import listed, safe, safe_data

_CHECKS = 8  # that are named
_NO_HINTS = (
    "Nothing is known about hints. Only a learner's own folder holds which hints they opened, in "
    "`.grade/progress.json`: ask students to submit the whole folder that `grade init` made, not "
    "only `exercises/`."
)


def to_json(lessons: Lessons) -> Any:
    """The lessons as data for `json.dumps`; all texts are `safe`."""
    return safe_data(asdict(lessons))


def markdown(title: str, lessons: Lessons) -> Iterator[str]:
    """The lessons as a page to copy from: a misconception for each failure, hints to rewrite."""
    yield f"# {title}: what {count(lessons.students, 'student')} teach its author\n\n"
    yield (
        "Without names. Every answer below is a student's own: run it as you would run a "
        "stranger's code.\n\n"
    )
    yield "## Failures that no known mistake explains\n\n"
    if not lessons.failures:
        yield "None.\n\n"
    else:
        yield (
            "Copy a block into the stage's file in hints/misconceptions/, give it a name and a "
            "sentence, and type `grade verify`. Those without a symptom come first, errors "
            "last.\n\n"
        )
    for number, seen in enumerate(lessons.failures, start=1):
        yield from _failure(number, seen)
    yield "## Hints that did not help\n\n"
    yield from _hints(lessons)


def _failure(number: int, seen: Seen) -> Iterator[str]:
    yield f"### {number}. {seen.stage}: {count(seen.students, 'student')}\n\n"
    yield f"{'Symptom' if seen.has_symptom else 'Check'}: {_line(seen.says)}\n\n"
    yield f"- fails: {_checks(seen, seen.failing)}\n"
    yield f"- passes: {_checks(seen, seen.passing) or 'nothing'}\n\n"
    if seen.message.strip():
        yield _fenced(seen.message, "text")
    if seen.code:
        yield _fenced(misconception_of(seen), "python")
    else:
        yield "No short answer can be quoted.\n\n"


def _checks(seen: Seen, ids: Sequence[str]) -> str:
    names = [name.removeprefix(f"{seen.stage}.") for name in ids]
    return listed(names, most=_CHECKS)


def misconception_of(seen: Seen) -> str:
    """The code of a failure as an entry of hints/misconceptions/."""
    marked = (
        f'@misconception(\n    "{seen.name}",\n    replaces="{seen.entry}",\n'
        '    says="TODO: what this code does, and what it should do.",\n)'
    )
    lines = seen.code.split("\n")
    openings = tuple(f"{kind} {seen.name}" for kind in ("def", "class", "async def"))
    place = next(number for number, line in enumerate(lines) if line.startswith(openings))
    while place and lines[place - 1].startswith("@"):
        place -= 1
    return "\n".join([*lines[:place], marked, *lines[place:]])


def _hints(lessons: Lessons) -> Iterator[str]:
    if not lessons.asked:
        yield f"{_NO_HINTS}\n"
        return
    submitted = f"{lessons.asked} of {count(lessons.students, 'student')}"
    yield f"From the folders of {submitted}, which tell the highest hint that was opened.\n\n"
    if not lessons.hints:
        yield "Nobody who opened a hint fails its stage.\n"
        return
    yield "| stage | hint | still fail | pass |\n|---|---|---|---|\n"
    for use in lessons.hints:
        yield f"| {use.stage} | {_hint(use)} | {use.failed} | {use.passed} |\n"


def _hint(use: HintUse) -> str:
    heading = _line(use.heading).replace("|", "\\|")
    return f"{use.number}. {heading}" if heading else str(use.number)


def _line(text: str) -> str:
    return " ".join(safe(text).split())


def _fenced(text: str, kind: str) -> str:
    """A block of code, with a fence that the text does not hold."""
    text = safe(text).strip("\n")
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{kind}\n{text}\n{fence}\n\n"
