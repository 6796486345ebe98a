"""Mutants: small automatic changes of a stage's solution, and what its checks make of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

Change = tuple[str, tuple[str, ...], tuple[str, ...]]  # where, the lines before and after


@dataclass(frozen=True)
class Mutant:
    """One change of a solution: the lines `before` give way to `after`, in the function `where`.

    Its `id` follows from them, so that it stays the same whatever is edited elsewhere.
    """

    id: str
    where: str
    operator: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    source: str = field(repr=False)

    @property
    def change(self) -> Change:
        """What an author's record of it says."""
        return self.where, self.before, self.after


class Fate(Enum):
    """What became of a mutant."""

    CAUGHT = "caught"
    TIMED_OUT = "timed out"  # it used far more time than the solution: caught
    CRASHED = "crashed"  # its process ended: caught
    EXPLAINED = "explained"  # it passes, and a record says why it may
    LIVE = "live"  # it passes, and nobody has said why


@dataclass(frozen=True)
class Trial:
    """A mutant's fate; `caught_by` are checks: the first that failed, or all that did.

    Of a witness they are those that it is a witness of. `diff` shows how a live one differs from
    the solution, and `record` is what explains it, but for the reason.
    """

    id: str
    fate: Fate
    caught_by: tuple[str, ...] = ()
    diff: str = ""
    record: Equivalent | None = None


@dataclass(frozen=True)
class Equivalent:
    """An author's word that the change does nothing that the checks could see, and the reason."""

    where: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    reason: str

    @property
    def change(self) -> Change:
        """What the mutant that is meant does."""
        return self.where, self.before, self.after


@dataclass(frozen=True)
class Overlap:
    """Why there is a check that finds nothing wrong but what other checks catch too.

    `catches` are its witnesses: ids of mutants and misconceptions that it finds wrong by itself.
    """

    reason: str
    catches: tuple[str, ...]


@dataclass(frozen=True)
class Records:
    """What is recorded of a stage's mutants; `overlaps` has the checks by their names."""

    place: str
    equivalent: tuple[Equivalent, ...] = ()
    overlaps: dict[str, Overlap] = field(default_factory=dict)


@dataclass(frozen=True)
class Need:
    """What a check alone catches: removed, it would let these mutants and misconceptions live.

    `overlap` is what its record has to be, if it needs another one than there is.
    """

    check: str
    only: tuple[str, ...]
    overlap: Overlap | None = None


@dataclass(frozen=True)
class Escape:
    """A witness that its check finds wrong no more: a mutant's diff, a misconception's sentence."""

    check: str
    id: str
    diff: str = ""
    says: str = ""


@dataclass(frozen=True)
class StageTrials:
    """What became of a stage's mutants; `trials` are fewer than `mutants` if it was stopped.

    `skipped` says why there are none. `needs` is there if it was asked for. `problems` do not tell
    of live mutants and of `escapes`.
    """

    slug: str
    mutants: int
    trials: tuple[Trial, ...]
    needs: tuple[Need, ...] = ()
    escapes: tuple[Escape, ...] = ()
    problems: tuple[str, ...] = ()
    skipped: str = ""

    def count(self, *fates: Fate) -> int:
        """How many mutants met one of these fates."""
        return sum(trial.fate in fates for trial in self.trials)

    @property
    def is_sound(self) -> bool:
        """Whether every mutant is caught or explained, and nothing else is wrong."""
        return not self.problems and not self.escapes and not self.count(Fate.LIVE)


@dataclass(frozen=True)
class MutantsReport:
    """All stages' trials; not `finished` if somebody stopped it.

    They took so many `seconds`, and `core_seconds` of all processors' time together.
    """

    stages: tuple[StageTrials, ...]
    seconds: float
    core_seconds: float
    finished: bool
