"""Mutants: small automatic changes of a stage's solution, and the results of its checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

Change = tuple[str, tuple[str, ...], tuple[str, ...]]  # where, the lines before and after


@dataclass(frozen=True)
class Mutant:
    """One change of a solution: in the function `where`, the lines `after` replace `before`.

    The `id` depends only on these, so it survives edits elsewhere.
    """

    id: str
    where: str
    operator: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    source: str = field(repr=False)

    @property
    def change(self) -> Change:
        """The change, as an author's record has it."""
        return self.where, self.before, self.after


class Fate(Enum):
    """The result for a mutant."""

    CAUGHT = "caught"
    TIMED_OUT = "timed out"  # it used far more time than the solution: caught
    CRASHED = "crashed"  # its process ended: caught
    EXPLAINED = "explained"  # it passes, and a record says why that is right
    LIVE = "live"  # it passes, and no record explains it


@dataclass(frozen=True)
class MutantTrial:
    """A mutant's fate; `caught_by` is the first check that failed, or all of them.

    For a witness, `caught_by` holds the checks that record it. `diff` shows how a live mutant
    differs from the solution; `record` is a record for it that lacks only the reason.
    """

    id: str
    fate: Fate
    caught_by: tuple[str, ...] = ()
    diff: str = ""
    record: Equivalent | None = None


@dataclass(frozen=True)
class Equivalent:
    """An author's record that the change has no effect that a check could see, with the reason."""

    where: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    reason: str

    @property
    def change(self) -> Change:
        """The change of the recorded mutant."""
        return self.where, self.before, self.after


@dataclass(frozen=True)
class Overlap:
    """The reason for a check that catches nothing that other checks don't catch too.

    `catches` are its witnesses: ids of mutants and misconceptions that it catches.
    """

    reason: str
    catches: tuple[str, ...]


@dataclass(frozen=True)
class Records:
    """The records of a stage's mutants; the keys of `overlaps` are names of checks."""

    place: str
    equivalent: tuple[Equivalent, ...] = ()
    overlaps: dict[str, Overlap] = field(default_factory=dict)


@dataclass(frozen=True)
class Need:
    """What only this check catches: without it, these mutants and misconceptions would live.

    `overlap` is the record that the check needs, if it has none or a wrong one.
    """

    check: str
    only: tuple[str, ...]
    overlap: Overlap | None = None


@dataclass(frozen=True)
class Escape:
    """A witness that its check no longer catches: a mutant's diff or a misconception's sentence."""

    check: str
    id: str
    diff: str = ""
    says: str = ""


@dataclass(frozen=True)
class StageTrials:
    """The results for a stage's mutants; there are fewer `trials` than `mutants` after a stop.

    `skipped` says why there are none. `needs` is filled on request. `problems` does not include
    live mutants and `escapes`.
    """

    slug: str
    mutants: int
    trials: tuple[MutantTrial, ...]
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
    """The results of all stages; not `finished` if the run was stopped."""

    stages: tuple[StageTrials, ...]
    seconds: float
    finished: bool
