"""What `grade verify` has proven of a course's stages."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Comparison:
    """One comparison of an answer with what is expected, as a check made it.

    `share` is the largest difference in parts of the tolerance: up to 1 it passes; infinite where
    no finite number tells it. `kind` is how it was compared, `tolerance` how much was allowed,
    which `is_usual` if it is no more than a dtype has where the author says nothing.
    """

    kind: str
    tolerance: str
    share: float
    is_usual: bool = False


@dataclass(frozen=True)
class ToleranceProof:
    """The room of one tolerance of a check, on both sides; shares are parts of the tolerance.

    `right` is the largest that a right answer takes. `wrong` is that of the misconception that
    comes `nearest` to passing, None if none differs by finite numbers. It `is_exceeded` if one is
    well beyond it; of the `faint` ones nothing else tells, and they are not.
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
    """A check: the misconceptions that it catches, and the seconds that a right answer takes."""

    id: str
    title: str
    catches: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class MisconceptionProof:
    """What became of one misconception: the checks that caught it, and the name it was given.

    `same_as` are the ids of those that answer every request of the checks exactly as this one does.
    """

    id: str
    caught_by: tuple[str, ...]
    named: str | None
    same_as: tuple[str, ...]


@dataclass(frozen=True)
class Todo:
    """A line that an author has yet to write."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@dataclass(frozen=True)
class StageProof:
    """What was proven of one stage; `problems` is empty if all is well.

    `seeds` is how often the solution was run, `accepted` names the answers in other styles that got
    full marks. `notes` are no fault, but worth a look.
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

    @property
    def is_sound(self) -> bool:
        """Whether there is nothing to mend and nothing left to write."""
        return not self.problems and not self.todos


@dataclass(frozen=True)
class CourseProof:
    """The proofs of some stages, and the `strays`: files that belong to no stage."""

    course: str
    stages: tuple[StageProof, ...]
    strays: tuple[str, ...] = field(default=())

    @property
    def is_sound(self) -> bool:
        """Whether all is proven."""
        return not self.strays and all(stage.is_sound for stage in self.stages)
