"""Reads hints/<slug>.md into Hints. `read_hints` reads the disk, `parse_hints` is pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress

from grader.learning.hints.types import SECTIONS, Hints, Rung
from grader.read.faults import author_text
from grader.types.course import Stage
from grader.types.errors import CourseError, KitError
from grader.types.text import trimmed

FEWEST_RUNGS = 4
_SHOWN = 20  # characters of a faulty heading to quote
_TITLE = re.compile(r"# +(\S.*?) *")
_HEADING = re.compile(r"## *(.*?) *")
_RUNG = re.compile(r"(\d+)\. *(\S.*)")
_BREAK = re.compile(r"-{3,} *")  # between a question and its answer
_FENCE = re.compile(r" {0,3}(```|~~~)")


def read_hints(stage: Stage) -> Hints:
    """The hints of `stage`. Raises CourseError naming the file and the fault."""
    place = stage.place(stage.hints_file)
    return parse_hints(author_text(stage.hints_file, place), place)


def open_hints(stage: Stage) -> Hints:
    """The hints that a learner may see: none in an exam. Raises KitError."""
    if stage.is_exam:
        raise KitError(f"{stage.slug} is part of an exam: there are no hints")
    return read_hints(stage)


def open_hints_if_any(stage: Stage) -> Hints | None:
    """The same; None in an exam, and if the file cannot be read, which costs no verdict."""
    with suppress(KitError):
        return open_hints(stage)
    return None


def hint_headings(stage: Stage) -> list[str]:
    """The headings of a stage's hints; none if its file cannot be read, which costs no report."""
    try:
        return [rung.heading for rung in read_hints(stage).rungs]
    except KitError:
        return []


def above_last_rung(stage: Stage) -> str:
    """The text of the hints of `stage` before the last rung. Raises CourseError."""
    place = stage.place(stage.hints_file)
    text = author_text(stage.hints_file, place)
    parse_hints(text, place)
    rungs = [line for line, heading, _ in _blocks(text, place) if _RUNG.fullmatch(heading)]
    return "\n".join(text.splitlines()[: rungs[-1] - 1])


def parse_hints(text: str, place: str) -> Hints:
    """The hints in `text`; `place` is the file's name in errors. Raises CourseError."""
    blocks = list(_blocks(text, place))
    _, title, above = blocks[0]
    if any(above):
        raise CourseError(f"{place}: there is text before hint 1: give it a heading '## 1. ...'")
    rungs: list[Rung] = []
    sections: dict[str, str] = {}
    for line, heading, parts in blocks[1:]:
        at = f"{place}:{line}"
        if not any(parts):
            raise CourseError(f"{at}: '{heading[:_SHOWN]}' has no text")
        rung = _RUNG.fullmatch(heading)
        if rung is None:
            _expect_section(heading, sections, at)
            sections[heading] = "\n\n---\n\n".join(parts)
        elif sections:
            raise CourseError(
                f"{at}: hint {rung[1][:_SHOWN]} comes after the sections: move it before them"
            )
        elif rung[1] != str(len(rungs) + 1):
            raise CourseError(
                f"{at}: hint {rung[1][:_SHOWN]} where hint {len(rungs) + 1} should be: "
                "number them 1, 2, ..."
            )
        else:
            rungs.append(_rung(rung[2], parts, f"{at}: hint {rung[1]}"))
    if len(rungs) < FEWEST_RUNGS:
        raise CourseError(f"{place}: has {len(rungs)} hints: write at least {FEWEST_RUNGS}")
    return Hints(title, tuple(rungs), sections)


def _rung(heading: str, parts: list[str], what: str) -> Rung:
    """A question and its answer, or a whole hint. Raises CourseError beginning with `what`."""
    if len(parts) > 2:
        raise CourseError(f"{what} has {len(parts) - 1} lines '---': keep one, above the answer")
    if not parts[0]:
        raise CourseError(f"{what} has no text above '---': ask the question there")
    if not parts[-1]:
        raise CourseError(f"{what} has no text below '---': write the answer there")
    return Rung(heading, *parts)


def _expect_section(heading: str, before: Collection[str], at: str) -> None:
    """Raise CourseError unless a section may follow those `before` it."""
    if heading not in SECTIONS:
        raise CourseError(
            f"{at}: '{heading[:_SHOWN]}' is neither a hint ('1. A question') nor one of: "
            f"{', '.join(SECTIONS)}"
        )
    if heading in before:
        raise CourseError(f"{at}: '{heading}' appears twice")
    later = [name for name in SECTIONS[SECTIONS.index(heading) + 1 :] if name in before]
    if later:
        raise CourseError(f"{at}: '{heading}' belongs before '{later[0]}'")


def _blocks(text: str, place: str) -> Iterator[tuple[int, str, list[str]]]:
    """The number of each heading's line, the heading and the text below it; the title first.

    A line `---` divides the text into parts.
    """
    lines = text.rstrip().splitlines()
    title = _TITLE.fullmatch(lines[0]) if lines else None
    if title is None:
        raise CourseError(f"{place}:1: the first line must be '# ' and the stage's title")
    start, heading = 1, title[1]
    parts: list[list[str]] = [[]]
    fence, opened = "", 0
    for number, line in enumerate(lines[1:], start=2):
        mark = _FENCE.match(line)
        if mark is not None and fence in ("", mark[1]):
            fence, opened = ("", 0) if fence else (mark[1], number)
        found = None if fence else _HEADING.fullmatch(line)
        if found is not None:
            yield start, heading, [trimmed(part) for part in parts]
            start, heading, parts = number, found[1], [[]]
        elif not fence and _BREAK.fullmatch(line):
            parts.append([])
        else:
            parts[-1].append(line)
    if fence:
        raise CourseError(f"{place}:{opened}: the code block that starts here has no end")
    yield start, heading, [trimmed(part) for part in parts]
