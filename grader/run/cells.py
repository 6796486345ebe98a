"""Which of the cells that ran in a notebook are the submission, and in what order. Pure.

All of them are, each in its newest version, as in the notebook that will be submitted. Only if
these would not finish are the cells dropped that no graded code needs.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from grader.run.worker.names import ANY, names_of
from grader.types.course import Course, Stage

# What changes a name of another cell: an attribute or item, setattr(NAME, @decorator(NAME) and
# class NAME(NAME).
_CHANGED = re.compile(
    r"^(?:(\w+)[.\[][^\n=(]*=(?!=)|setattr\((\w+)\b|@[\w.]+\((\w+)\b|class +(\w+)\((?=\4\b))",
    re.MULTILINE,
)
_EXTENDED = re.compile(r"^class +(\w+)\((?=\1\b)", re.MULTILINE)
_GRADED = re.compile(r"\s*%%grade[ \t]+(\w+)")


@dataclass(frozen=True)
class Cell:
    """A cell as it was typed, and the number that the notebook shows beside it.

    `id` is the notebook's own id of the cell, if the kernel knows it; `seconds` is how long it ran.
    """

    number: int
    source: str
    id: str | None = None
    seconds: float = 0.0

    @property
    def slug(self) -> str | None:
        """The stage that it is graded for, if it begins with `%%grade STAGE`."""
        found = _GRADED.match(self.source)
        return found[1] if found else None


@dataclass(frozen=True)
class Names:
    """The global names that a cell defines, those it imports, and those it needs.

    ANY is among the first two if the cell may define or import names that its text does not show.
    """

    own: frozenset[str] = frozenset()
    imported: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()


@lru_cache(maxsize=10_000)
def names_in(source: str) -> Names:
    """The names in a cell, which this process parses: use it only for the learner's own cell."""
    return Names(*map(frozenset, names_of(source)))


NamesOf = Callable[[str], Names]


def replayed(
    course: Course, stages: Sequence[Stage], cells: Sequence[Cell], graded: int | None = None
) -> list[Cell]:
    """All cells in the order to run them: the newest version of each, in the place of the first.

    `cells` are in the order in which they ran. The cell numbered `graded` comes last, and only it
    defines what its stages ask for: no older definition counts, unless the cell adds to that.
    """
    cells = _without_old_tests(course, cells)
    newest = {cell.id or cell.number: cell for cell in cells}  # in the order of the first versions
    rest = [cell for cell in newest.values() if cell.number != graded]
    last = [cell for cell in cells if cell.number == graded]
    if not last:
        return rest
    added = _changers(last)
    entries = [entry for stage in stages for entry in stage.entry_points]
    asked = [entry.name for entry in entries if entry.name not in added]
    forget = "\n".join(f"{name} = None; del {name}" for name in asked)
    return [*rest, Cell(0, forget), *last]


def submitted(
    course: Course,
    stages: Sequence[Stage],
    cells: Sequence[Cell],
    graded: int | None = None,
    names: NamesOf = names_in,
) -> list[Cell]:
    """The cells that define what `stages` and those before them ask for, and all that these need.

    A cell that sets an attribute of what they need, such as a class's `forward`, belongs to them;
    one that sets an option of a library does not, as it may train a model beside.

    `cells` are in the order in which they ran. `graded` is the number of the cell with which its
    stage is graded: only it defines what that stage asks for, unless it adds to an older definition
    of that. A new version of a cell takes the place of the old one, and the cells of stages are in
    the order of the course.
    """
    cells = _without_old_tests(course, cells)
    wanted: set[str] = set()
    for stage in stages:
        for asked in (stage, *course.required(stage)):
            wanted |= _asked_for(asked, cells, names)
    known: set[str] = set()
    taken = {cell for cell in cells if cell.number == graded}
    for cell in taken:
        wanted |= names(cell.source).needed
        own = [stage for stage in stages if stage.slug == cell.slug]
        entries = [entry for stage in own for entry in stage.entry_points]
        new = wanted - _changers([cell]).keys()
        known |= {name for name in new if any(entry.asks_for(name) for entry in entries)}
    taken |= {cell for cell in cells if ANY in names(cell.source).imported}
    wanted |= set().union(*(names(cell.source).needed for cell in taken))
    definer = _definers(cells, names)
    changers, written = _changers(cells), defined(cells, names)
    hiding = [cell for cell in cells if ANY in names(cell.source).own]
    # A student chooses how many names and cells there are, so each is looked at once.
    while new := wanted - known:
        known |= new
        found = {definer[name] for name in new if name in definer}
        found.update(cell for name in new & written for cell in changers.get(name, ()))
        if not all(name in definer or hasattr(builtins, name) for name in new):
            found.update(hiding)
        wanted = set().union(*(names(cell.source).needed for cell in found - taken))
        taken |= found
    return _in_order(course, cells, [cell for cell in cells if cell in taken], names)


def needed(
    course: Course, stage: Stage, cells: Sequence[str], names: NamesOf = names_in
) -> tuple[str, ...]:
    """The cells of a notebook, with those that `stage` does not need replaced by empty ones.

    Nothing if no cell defines what the stage asks for.
    """
    numbered = [Cell(number, source) for number, source in enumerate(cells)]
    if not _asked_for(stage, numbered, names) <= defined(numbered, names):
        return ()
    if stage.fixture and not has_tests(stage, numbered, names):
        return ()
    kept = {cell.number for cell in submitted(course, [stage], numbered, names=names)}
    return tuple(cell.source if cell.number in kept else "" for cell in numbered)


def defined(cells: Sequence[Cell], names: NamesOf = names_in) -> frozenset[str]:
    """The names that the cells define."""
    return frozenset().union(*(names(cell.source).own for cell in cells))


def may_define(name: str, cells: Sequence[Cell], names: NamesOf = names_in) -> bool:
    """Whether a cell defines or imports a name, or may do so in a way that its text hides."""
    for cell in cells:
        found = names(cell.source)
        there = found.own | found.imported
        if name in there or (ANY in there and _speaks_of(name, cell)):
            return True
    return False


def has_tests(stage: Stage, cells: Sequence[Cell], names: NamesOf = names_in) -> bool:
    """Whether the cells hold tests, and one of them mentions the fixture that `stage` gives."""
    there = defined(cells, names)
    return any(
        any(map(entry.asks_for, there)) and any(_speaks_of(entry.name, cell) for cell in cells)
        for entry in stage.entry_points
        if entry.is_fixture
    )


def _asked_for(stage: Stage, cells: Sequence[Cell], names: NamesOf) -> set[str]:
    """The names that a stage asks for; if it asks for tests, all tests and their own fixtures."""
    asked: set[str] = set()
    for entry in stage.entry_points:
        if not entry.is_fixture:
            asked.add(entry.name)
            continue
        for cell in cells:
            own = names(cell.source).own
            tests = set(filter(entry.asks_for, own))
            is_aid = _speaks_of(entry.name, cell) or _speaks_of("fixture", cell)
            asked |= tests or (own if is_aid else set())
    return asked


def _speaks_of(name: str, cell: Cell) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", cell.source) is not None


def _without_old_tests(course: Course, cells: Sequence[Cell]) -> Sequence[Cell]:
    """The cells without earlier versions that were graded for their tests.

    Otherwise a test that is no longer in the new version would still count.
    """
    slugs = {stage.slug for stage in course.stages if stage.fixture}
    newest: dict[str | None, Cell] = {cell.slug: cell for cell in cells if cell.slug in slugs}
    return [cell for cell in cells if newest.get(cell.slug, cell) is cell]


def _definers(cells: Sequence[Cell], names: NamesOf) -> dict[str, Cell]:
    """The cell that defines each name: the last that defines it, else the first that imports it.

    A cell with `class NAME(NAME)` only extends what an earlier one defines.
    """
    definer: dict[str, Cell] = {}
    for cell in reversed(cells):
        definer.update(dict.fromkeys(names(cell.source).imported, cell))
    for cell in cells:
        extended = definer.keys() & set(_EXTENDED.findall(cell.source))
        definer.update(dict.fromkeys(names(cell.source).own - extended, cell))
    return definer


def _changers(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """The cells that change what a name stands for, by its text."""
    changers: dict[str, list[Cell]] = {}
    for cell in cells:
        for name in {next(filter(None, each.groups())) for each in _CHANGED.finditer(cell.source)}:
            changers.setdefault(name, []).append(cell)
    return changers


def _in_order(
    course: Course, cells: Sequence[Cell], taken: list[Cell], names: NamesOf
) -> list[Cell]:
    order = {cell: place for place, cell in enumerate(cells)}
    places: dict[Cell, int] = {}
    latest: dict[str, int] = {}  # the last place so far of a cell that defines a name
    for cell in taken:
        own = names(cell.source).own
        versions = [
            order[other] for other in cells[: order[cell]] if set() < names(other.source).own <= own
        ]
        after = [latest[name] for name in own if name in latest]
        place = places[cell] = max([min([*versions, order[cell]]), *after])
        latest.update(dict.fromkeys(own, place))
    ordered = sorted(taken, key=lambda cell: (places[cell], order[cell]))
    slugs = [stage.slug for stage in course.stages]
    slots = [slot for slot, cell in enumerate(ordered) if cell.slug in slugs]
    staged = sorted(
        (ordered[slot] for slot in slots), key=lambda cell: slugs.index(cell.slug or "")
    )
    for slot, cell in zip(slots, staged, strict=True):
        ordered[slot] = cell
    return ordered
