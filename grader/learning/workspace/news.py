"""What is new in a course since a learner last updated: parts of its hints/CHANGES.md."""

from __future__ import annotations

import re
from pathlib import Path

from grader.read.faults import author_text
from grader.types.errors import CourseError

# The heading of a version, as Keep a Changelog has it: "## 1.2" or "## [1.2] - 2026-10-01".
_HEADING = re.compile(r"##\s+\[?v?(\d+(?:\.\d+)*)\]?(?![\w.])")


def read_news(file: Path, seen: str, present: str) -> str:
    """The changes in a file after the version `seen`; "" if there are none, or there is no file."""
    if not present or seen == present or not file.is_file():
        return ""
    try:
        return news(author_text(file, file.name), seen, present)
    except CourseError:  # the author's fault, which stops no learner
        return ""


def news(text: str, seen: str, present: str) -> str:
    """The sections on versions after `seen`, up to the `present` one; pure.

    If nobody knows what was seen (""), only the section on the present version.
    """
    sections: list[str] = []
    is_new = False
    for line in text.splitlines():
        heading = _HEADING.match(line)
        if heading is not None or line.startswith("## "):
            of = _number(heading[1]) if heading is not None else ()
            after = _number(seen) if seen else None
            is_new = of == _number(present) or (after is not None and after < of < _number(present))
        if is_new:
            sections.append(line)
    return "\n".join(sections).strip()


def _number(version: str) -> tuple[int, ...]:
    """A version to compare: 1.10 comes after 1.9, and 1.0 is 1."""
    parts = [int(part) for part in version.split(".") if part]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)
