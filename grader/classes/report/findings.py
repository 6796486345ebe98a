"""What a class's verdicts say together, as rows of a table for other programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from grader.classes.folder.types import LedgerEntry
from grader.classes.report.moved import Moved
from grader.classes.report.student import Person, without
from grader.classes.report.tally import Held, Tally, tally_of
from grader.classes.report.teach import Hints, heading
from grader.classes.report.types import Unexplained

COLUMNS = (
    *("kind", "stage", "id", "says", "students", "of", "weakest_third", "strongest_third"),
    *("hint", "hint_heading", "example", "before", "now"),
)


def findings(
    entries: Iterable[LedgerEntry],
    unexplained: Sequence[Unexplained],
    hints: Hints,
    moved: Moved | None = None,
) -> Iterator[dict[str, Any]]:
    """A row for each misconception, other failure and check, the most students first.

    `of` counts the submissions that the stage's own checks have decided; the shares of the weakest
    and the strongest third of the class are None where they say nothing. Then rows about what
    `moved` have a number `before` and `now`. `hints` are the headings of each stage's hints.
    """
    tally = tally_of(Person(number, entry, True) for number, entry in enumerate(entries, start=1))
    yield from _rows(tally, "misconception", tally.misconceptions, hints)
    for one in unexplained:
        yield _row(
            kind="other failure",
            stage=one.stage,
            says=one.says,
            students=len(one.students),
            of=tally.stages[one.stage].known if one.stage in tally.stages else 0,
            hint=one.hint,
            hint_heading=heading(hints, one.stage, one.hint),
            example=without(one.students[0], "student", one.example),
        )
    yield from _rows(tally, "check", tally.checks, hints)
    for (slug, name), title in tally.passed.items():
        if (slug, name) not in tally.checks:
            yield _row(
                kind="check that nobody fails",
                stage=slug,
                id=name,
                says=title,
                students=0,
                of=tally.stages[slug].known,
            )
    if moved is not None:
        yield from _moved(moved)


def _rows(
    tally: Tally, kind: str, found: dict[tuple[str, str], Held], hints: Hints
) -> Iterator[dict[str, Any]]:
    for (slug, name), held in sorted(found.items(), key=lambda item: -item[1].students):
        weakest, strongest = tally.thirds(held)
        yield _row(
            kind=kind,
            stage=slug,
            id=name,
            says=held.words,
            students=held.students,
            of=tally.stages[slug].known,
            weakest_third=weakest,
            strongest_third=strongest,
            hint=held.hint,
            hint_heading=heading(hints, slug, held.hint),
            example=held.example,
        )


def _moved(moved: Moved) -> Iterator[dict[str, Any]]:
    """A row for the points, for each stage, and for each known mistake."""
    of, points = moved.students, "the median share of all points"
    rows: list[tuple[str, str, str, int, float, float]] = [
        ("points", "", points, of, moved.before, moved.now),
        *(("passed", one.stage, one.title, one.now, one.before, one.now) for one in moved.stages),
    ]
    for one in moved.mistakes:
        have = one.still + one.new
        rows.append(("misconception", one.stage, one.says, have, one.before, have))
    for kind, stage, says, students, before, now in rows:
        told = {"kind": f"{kind} since {moved.name}", "stage": stage, "says": says}
        yield _row(**told, students=students, of=of, before=before, now=now)


def _row(**values: Any) -> dict[str, Any]:
    """The values by column; those that are missing are None, and an empty text is too."""
    known = {key: value for key, value in values.items() if value != ""}
    rounded = {k: round(v, 3) if isinstance(v, float) else v for k, v in known.items()}
    return dict.fromkeys(COLUMNS) | rounded
