"""Questions that a learner answers before writing code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """An answer of a `kind`: "shape", "number" or "choice", and how it is written.

    `value` holds the sizes of a tensor's axes, the number, or the letter of a choice.
    """

    kind: str
    value: Any
    text: str


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
        answer = self.answer
        says = f" {self.choices[answer.value]}" if answer.kind == "choice" else ""
        return answer.text + says


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
