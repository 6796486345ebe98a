"""Fewer checks of a stage, where many submissions are to be graded."""

from collections.abc import Collection
from dataclasses import replace

from grader.run.session import Checks


def leave_few(checks: Checks, slug: str, kept: Collection[str]) -> None:
    """Leave these checks of a stage, with their first case each."""
    planned = [
        replace(check, cases=check.cases[:1])
        for check in checks.planned[slug]
        if check.id.removeprefix(f"{slug}.") in kept
    ]
    cases = {check.cases[0].id for check in planned}
    checks.planned[slug] = tuple(planned)
    items = checks._items[slug].items()
    checks._items[slug] = {case: item for case, item in items if case.id in cases}
