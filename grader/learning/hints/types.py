"""The hints of one stage: a ladder from a question to nearly the answer, and what follows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

LEARNT = "Learnt"
SECTIONS = (LEARNT, "Why it is written this way", "Read next")  # may follow the last rung


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
    """A stage's hints. `sections` holds by heading what learners read after passing."""

    title: str
    rungs: tuple[Rung, ...]
    sections: Mapping[str, str] = field(default_factory=dict)

    @property
    def learnt(self) -> str:
        """What was learnt in the stage; may be ""."""
        return self.sections.get(LEARNT, "")
