"""What the report says of a class beyond its verdicts: similar answers, unexplained failures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Alike:
    """Students whose answers to one stage, given by slug, share code that few others wrote.

    `share` is the part of that code that is equal, 1.0 for all; groups of more than two students
    share all of it. `size` is the number of equal tokens. `excerpts` are the first two's lines.
    """

    stage: str
    students: tuple[str, ...]
    share: float
    size: int
    excerpts: tuple[str, str]


@dataclass(frozen=True)
class Similar:
    """The similar answers, most similar first in each stage; `left_out` counts the unlisted pairs.

    Only code that at most `rare` students wrote was compared, and none that is too long, hard to
    parse or not in UTF-8: the students who have such code are `unread`.
    """

    alike: tuple[Alike, ...]
    rare: int
    left_out: int = 0
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unexplained:
    """Students who fail a stage in one way that no known mistake explains.

    `says` is what the feedback says of it: a symptom, or the title of a check. `place` is where the
    first student's answer goes wrong, "" if that is not known, and `example` the message on it.
    `hint` is the number of the hint about it.
    """

    stage: str
    says: str
    students: tuple[str, ...]
    place: str = ""
    example: str = ""
    hint: int | None = None
