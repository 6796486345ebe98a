"""Questions that a learner answers before writing code, and the kinds of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Judgement(Enum):
    """The judgement of a typed answer. One that is not understood is asked again, not wrong."""

    RIGHT = "right"
    WRONG = "wrong"
    NOT_UNDERSTOOD = "not understood"


@dataclass(frozen=True)
class Shape:
    """The sizes of a tensor's axes."""

    sizes: tuple[int, ...]

    def __str__(self) -> str:
        return str(self.sizes)


@dataclass(frozen=True)
class Number:
    """A number, and how it was written."""

    value: float
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Choice:
    """The letter of one of a question's choices."""

    letter: str

    def __str__(self) -> str:
        return f"{self.letter})"


Answer = Shape | Number | Choice


@dataclass(frozen=True)
class Question:
    """One question. `text`, `because` and the choices (by letter) are simple markdown."""

    heading: str
    text: str
    choices: Mapping[str, str]
    answer: Answer
    because: str

    @property
    def solution(self) -> str:
        """The answer in words: a choice with its text."""
        if isinstance(self.answer, Choice):
            return f"{self.answer} {self.choices[self.answer.letter]}"
        return str(self.answer)


@dataclass(frozen=True)
class Predictions:
    """The questions of one stage, in order."""

    title: str
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Tally:
    """The score: `done` of `total` questions are over, `first` were right at the first try."""

    total: int
    done: int = 0
    first: int = 0
