"""The results of `grade verify` for a course's stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# Called with the slug of a stage, how many of its steps are done, and how many there are.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class ToleranceProof:
    """The room of one tolerance of a check on both sides, as shares of the tolerance.

    `right` is the largest share of a right answer. `wrong` is that of the misconception `nearest`
    to passing, None if none differs by finite numbers. It `is_exceeded` if a misconception is well
    beyond it. The `faint` ones are barely beyond it, and no other check catches them.
    """

    check: str
    tolerance: str
    is_usual: bool
    right: float
    wrong: float | None
    nearest: str | None
    is_exceeded: bool = False
    faint: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckProof:
    """A check: the misconceptions that it catches, and its seconds for a right answer."""

    id: str
    title: str
    catches: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class MisconceptionProof:
    """The result for one misconception: the checks that caught it, and the diagnosed name.

    `same_as` are the ids of misconceptions that answer every request of the checks identically.
    """

    id: str
    caught_by: tuple[str, ...]
    named: str | None
    same_as: tuple[str, ...]


@dataclass(frozen=True)
class Todo:
    """A line that an author still has to write."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@dataclass(frozen=True)
class StageProof:
    """The proof of one stage; `problems` is empty if it is sound.

    `seeds` is how often the solution ran; `accepted` names the answers in other styles that got
    full points. `notes` are not faults, but worth a look. `skipped` says of
    each check that could not run why.
    """

    slug: str
    seeds: int = 0
    checks: tuple[CheckProof, ...] = ()
    misconceptions: tuple[MisconceptionProof, ...] = ()
    accepted: tuple[str, ...] = ()
    tolerances: tuple[ToleranceProof, ...] = ()
    problems: tuple[str, ...] = ()
    todos: tuple[Todo, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether there is nothing to fix and nothing left to write."""
        return not self.problems and not self.todos


@dataclass(frozen=True)
class CourseProof:
    """The proofs of some stages or the whole course, and its `strays`: files of no stage."""

    course: str
    stages: tuple[StageProof, ...]
    strays: tuple[str, ...] = ()
    is_whole: bool = True

    @property
    def is_sound(self) -> bool:
        """Whether everything is proven."""
        return not self.strays and all(stage.is_sound for stage in self.stages)
