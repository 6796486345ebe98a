"""The course: its stages in order, and where each stage's files are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar


@dataclass(frozen=True)
class Limits:
    """What a submission may use. Seconds are wall time, except a worker's `cpu_seconds`.

    On Linux, time in which a worker was ready to run but got no CPU does not count against
    `call_seconds` and `load_seconds`; a call never takes more than four times its limit.
    `stage_seconds` limits all calls and imports of one stage together, `file_mb` one file of a
    worker, `scratch_mb` all its files. `submission_seconds` limits all work for one submission, the
    checker's too: wall time or CPU time, whichever is more.
    """

    call_seconds: float = 3.0
    load_seconds: float = 10.0
    stage_seconds: float = 60.0
    submission_seconds: float = 120.0
    cpu_seconds: int = 120
    memory_mb: int = 2048
    file_mb: int = 16
    scratch_mb: int = 64

    def is_near(self, seconds: float) -> bool:
        """Whether a submission that took `seconds` used more than half of its limit."""
        return seconds > self.submission_seconds / 2

    def is_spent(self, seconds: float) -> bool:
        """Whether a submission that took `seconds` was stopped: checks may not have run."""
        return seconds >= self.submission_seconds


@dataclass(frozen=True)
class EntryPoint:
    """A function or class that the learner writes, and the kind of its result.

    `returns` holds one kind ("tensor", "array", "number", "any") for each value; the result is a
    tuple of values if `is_tuple`. For a class (`is_class`) it is the result of calling the object,
    which is an nn.Module unless it `is_object`.
    If the learner writes tests (`is_fixture`), the name is that of their fixture.
    """

    name: str
    returns: tuple[str, ...]
    is_tuple: bool = False
    is_class: bool = False
    is_fixture: bool = False
    is_object: bool = False

    def asks_for(self, name: str) -> bool:
        """Whether a definition of that name is what the learner must write, or a part of it."""
        if self.is_fixture:
            return name.startswith("test") or "Test" in name
        return name == self.name


class _File:
    """A stage's attribute: the path of a file or folder, which has the `slug` in its name."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, stage: Stage, owner: object) -> Path:
        return stage.root / self._path.format(slug=stage.slug)


@dataclass(frozen=True)
class Stage:
    """One stage: `requires` are slugs of earlier stages whose functions this one calls.

    `visible` names the checks, without "test_", that students get. Calling one of the `forbidden`
    dotted names costs the share `forbidden_cost`, from 0 to 1, of the points. `formula` is LaTeX
    for notebooks. `is_exam` if an assignment that is an exam has it. `formerly` are the slugs that
    it once had, the oldest first.
    """

    slug: str
    title: str
    points: float
    bonus: bool
    requires: tuple[str, ...]
    entry_points: tuple[EntryPoint, ...]
    root: Path
    visible: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    forbidden_cost: float = 1.0
    formula: str = ""
    is_exam: bool = False
    formerly: tuple[str, ...] = ()

    @property
    def cell_name(self) -> str:
        """What its cells in notebooks are called: by its first slug, because gradebooks keep it."""
        return (*self.formerly, self.slug)[0]

    @property
    def fixture(self) -> str:
        """The fixture of the tests that the learner writes; "" if the learner writes no tests."""
        return next((entry.name for entry in self.entry_points if entry.is_fixture), "")

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of its functions: only for these, not for a class, can solutions stand in."""
        return tuple(entry.name for entry in self.entry_points if not entry.is_class)

    def place(self, file: Path) -> str:
        """The name of a course's file in errors: its path from `root` on."""
        return file.relative_to(self.root).as_posix()

    @property
    def file_name(self) -> str:
        """The name of the learner's file."""
        return f"{self.slug}.py"

    solution_file = _File("solutions/{slug}.py")  # the source, the solution between its markers
    exercise_file = _File("exercises/{slug}.py")  # the stub, generated from the solution
    check_file = _File("tests/checks/test_{slug}.py")  # the hidden checks
    hints_file = _File("hints/{slug}.md")  # the ladder of hints
    misconceptions_file = _File("hints/misconceptions/{slug}.py")  # the known wrong answers
    # Right answers in other styles than the solution's, which must get full marks.
    accepted_folder = _File("tests/accepted/{slug}")
    # All others may be missing. The author's records about the solution's mutants.
    mutants_file = _File("tests/mutants/{slug}.toml")
    predictions_file = _File("hints/predictions/{slug}.md")  # questions before writing code
    trace_file = _File("hints/traces/{slug}.py")  # the small example for the trace
    explore_file = _File("hints/explore/{slug}.py")  # the example to play with on a page
    figure_file = _File("hints/figures/{slug}.png")  # a picture of the small example, for notebooks
    finale_file = _File("hints/finale/{slug}.py")  # the programs that train with the learner's code
    finale_text = _File("hints/finale/{slug}.txt")  # the text that these programs learn from
    # What the learner's code shows when every core stage passes.
    certificate_file = _File("hints/certificates/{slug}.py")

    @property
    def shown_files(self) -> tuple[Path, ...]:
        """The optional files that teach beside the hints; students get them too."""
        return (
            *(self.predictions_file, self.trace_file, self.explore_file, self.figure_file),
            *(self.finale_file, self.finale_text),
        )

    @property
    def files(self) -> tuple[Path, ...]:
        """All its files except the accepted answers; some may be missing."""
        return (
            *(self.solution_file, self.exercise_file, self.check_file, self.hints_file),
            *(self.misconceptions_file, self.mutants_file),
            *(*self.shown_files, self.certificate_file),
        )


class _MayBeBonus(Protocol):
    @property
    def bonus(self) -> bool: ...


_Stages = TypeVar("_Stages", bound=_MayBeBonus)


def core_of(stages: Iterable[_Stages]) -> list[_Stages]:
    """The stages, or results of stages, that count: without the bonus, unless all are bonus."""
    every = list(stages)
    return [each for each in every if not each.bonus] or every


@dataclass(frozen=True)
class LateRule:
    """What being late costs: a share of the points, from 0 to 1.

    It is `per_day` for each day begun since the deadline, at most `cap`, and nothing within
    `grace_minutes`.
    """

    per_day: float
    cap: float = 1.0
    grace_minutes: float = 0.0


@dataclass(frozen=True)
class Assignment:
    """Stages, in the course's order, that students submit as one notebook called `name`.

    `due` is the deadline and `extensions` holds later ones by student, all in UTC. In an exam
    (`is_exam`), students see neither reasons of a failure nor hints.
    """

    name: str
    stages: tuple[Stage, ...]
    due: datetime | None = None
    extensions: Mapping[str, datetime] = field(default_factory=dict)
    late: LateRule | None = None
    is_exam: bool = False


@dataclass(frozen=True)
class Course:
    """A course as course.toml describes it; `root` is that file's folder.

    A student's copy (`is_partial`) has only the visible checks and no solutions. With
    `follow_through`, a check that fails only because of an earlier stage still gets its points.

    Its packages say the `authors`, the `license` (an SPDX expression) and the `version`; pip calls
    them `package`, and they need the libraries in `requirements`. A stage needs `accepted_answers`
    right answers in other styles; None means the kit's numbers. `zone` is the time zone of its
    deadlines.
    """

    name: str
    title: str
    root: Path
    preload: tuple[str, ...]
    limits: Limits
    stages: tuple[Stage, ...]
    assignments: tuple[Assignment, ...] = ()
    is_partial: bool = False
    follow_through: bool = False
    authors: tuple[str, ...] = ()
    license: str = ""
    version: str = ""
    package: str = ""
    requirements: tuple[str, ...] = ()
    accepted_answers: int | None = None
    zone: tzinfo | None = None

    @property
    def exercises(self) -> Path:
        """The learner's folder."""
        return self.root / "exercises"

    @property
    def changes_file(self) -> Path:
        """What is new in each version, for learners; it may be missing."""
        return self.root / "hints" / "CHANGES.md"

    @cached_property
    def renamed(self) -> dict[str, str]:
        """The present slug of each stage by every slug that it once had."""
        return {old: stage.slug for stage in self.stages for old in stage.formerly}

    @cached_property
    def _by_slug(self) -> dict[str, Stage]:
        return {stage.slug: stage for stage in self.stages}

    def stage(self, slug: str) -> Stage:
        """The stage of that slug. Raises KeyError."""
        return self._by_slug[slug]

    def required(self, stage: Stage) -> tuple[Stage, ...]:
        """Every stage that `stage` builds on, directly or not, in the course's order."""
        wanted = set(stage.requires)
        for earlier in reversed(self.stages):
            if earlier.slug in wanted:
                wanted.update(earlier.requires)
        return tuple(earlier for earlier in self.stages if earlier.slug in wanted)
