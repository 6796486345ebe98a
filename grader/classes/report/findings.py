"""What a class's verdicts say together, as rows of a table for other programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from grader.classes.folder.types import LedgerEntry
from grader.classes.report.student import Person
from grader.classes.report.tally import Held, Tally, tally_of
from grader.classes.report.types import Unexplained

COLUMNS = (
    *("kind", "stage", "id", "says", "students", "of"),
    *("weakest_third", "strongest_third", "hint"),
)


def findings(
    entries: Iterable[LedgerEntry], unexplained: Sequence[Unexplained]
) -> Iterator[dict[str, Any]]:
    """A row for each misconception, other failure and failing check, the most students first.

    `of` counts the submissions that the stage's own checks have decided; the shares of the weakest
    and the strongest third of the class are None where they say nothing.
    """
    tally = tally_of(Person(number, entry, True) for number, entry in enumerate(entries, start=1))
    yield from _rows(tally, "misconception", tally.misconceptions)
    for one in unexplained:
        of = tally.stages[one.stage].known if one.stage in tally.stages else 0
        yield _row("other failure", one.stage, "", one.says, len(one.students), of)
    yield from _rows(tally, "check", tally.checks)


def _rows(tally: Tally, kind: str, found: dict[tuple[str, str], Held]) -> Iterator[dict[str, Any]]:
    for (slug, name), held in sorted(found.items(), key=lambda item: -item[1].students):
        of = tally.stages[slug].known
        shares = tally.thirds(held)
        yield _row(kind, slug, name, held.words, held.students, of, *shares, held.hint)


def _row(*values: Any) -> dict[str, Any]:
    """The values by column; those that are missing at the end are None."""
    rounded = [round(value, 3) if isinstance(value, float) else value for value in values]
    return dict.fromkeys(COLUMNS) | dict(zip(COLUMNS, rounded, strict=False))
