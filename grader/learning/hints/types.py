"""The hints of one stage: a ladder from a question to nearly the answer, and what follows it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

# What may follow the last rung, in this order, and the field of Hints that it fills.
SECTIONS = {"Learnt": "learnt", "Why it is written this way": "why", "Read next": "read_next"}


class Part(Enum):
    """What of a hint to show."""

    QUESTION = "the question"
    ANSWER = "the answer"
    WHOLE = "both"


@dataclass(frozen=True)
class Rung:
    """One hint; `text` and `answer` are simple markdown.

    `text` is the question if there is an answer, and otherwise the whole hint.
    """

    heading: str
    text: str
    answer: str = ""

    def shown(self, part: Part) -> str:
        """The heading and this part of the text, as markdown."""
        texts = {
            Part.QUESTION: [self.text],
            Part.ANSWER: [self.answer or self.text],
            Part.WHOLE: [self.text, *(["**The answer**", self.answer] if self.answer else [])],
        }[part]
        return "\n\n".join([self.heading, *texts]).rstrip()


@dataclass(frozen=True)
class Hints:
    """A stage's hints. Learners read `learnt`, `why` and `read_next` after passing; may be ""."""

    title: str
    rungs: tuple[Rung, ...]
    learnt: str = ""
    why: str = ""
    read_next: str = ""

    @property
    def sections(self) -> list[tuple[str, str]]:
        """What learners read after passing, each with its heading."""
        found = ((heading, getattr(self, name)) for heading, name in SECTIONS.items())
        return [(heading, text) for heading, text in found if text]
