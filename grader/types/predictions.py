"""Questions that a learner answers before there is any code, and what an answer to one can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Judgement(Enum):
    """What becomes of something typed. What was not understood is asked again, not held wrong."""

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
    """A number, and the way in which somebody wrote it."""

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
        """The answer in words: a choice with what it says."""
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
    """How far somebody came: of `total` questions `done` are over, `first` right at first try."""

    total: int
    done: int = 0
    first: int = 0
