"""Reads the checks that pytest has collected: their cases, points, titles and marks."""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from grader.run.facts import Case, PlannedCheck
from grader.types.course import Stage
from grader.types.errors import CourseError, close_to

_MOST = 1e9  # points: as many as a stage may have
_FIXTURES = ("submission", "seed", "device", "rand")


def planned_checks(stage: Stage, items: Mapping[Case, Any]) -> Iterator[PlannedCheck]:
    """The plan of each check, from its cases. Raises CourseError for all faulty ones at once."""
    cases: dict[str, list[Case]] = {}
    first: dict[str, Any] = {}
    for case, item in items.items():
        cases.setdefault(case.check, []).append(case)
        first.setdefault(case.check, item)
    faults = []
    for item in first.values():
        if fault := _fault(item):
            line = item.function.__code__.co_firstlineno
            faults.append(f"{stage.place(stage.check_file)}:{line}: {fault}")
    if faults:
        raise CourseError("\n".join(faults))
    for check, item in first.items():
        marker = item.get_closest_marker("points")
        points = marker.args[0]
        doc = item.function.__doc__.strip()
        stand_in = marker.kwargs.get("stand_in")
        yield PlannedCheck(
            id=check,
            title=doc.splitlines()[0],
            points=points,
            cases=tuple(cases[check]),
            stand_in=stand_in and f"{stage.slug}.{stand_in}",
            hint=marker.kwargs.get("hint"),
            pays=tuple(name for pays in item.iter_markers("pays") for name in pays.args),
        )


def is_random(item: pytest.Item) -> bool:
    """Whether a case draws by the run's seed; all others draw the same inputs in every run."""
    return item.get_closest_marker("random") is not None


def seed_of(case: Case, item: pytest.Item, seed: int) -> int:
    """The seed of a case in a run with this seed."""
    words = f"{seed}:{case.id}" if is_random(item) else case.id
    return zlib.crc32(words.encode())


def _fault(item: Any) -> str:
    """The author's mistake in how a check is written, "" if there is none."""
    name = getattr(item, "originalname", item.name)
    there = {*_FIXTURES, *item._fixtureinfo.name2fixturedefs, "request"}
    there.update(getattr(getattr(item, "callspec", None), "params", ()))
    for fixture in item.fixturenames:
        if fixture not in there:
            return f"there is no fixture '{fixture}'{close_to(fixture, there)}"
    marker = item.get_closest_marker("points")
    if marker is None or not marker.args:
        names = [mark.name for mark in item.iter_markers() if mark.name != "points"]
        close = difflib.get_close_matches("points", names, n=1)
        advice = f"write 'points' for '{close[0]}'" if close else "add @pytest.mark.points(1)"
        return f"{name} has no points: {advice}"
    points = marker.args[0]
    if type(points) not in (int, float) or not 0 < points <= _MOST:
        return f"{name}: points are a number above 0 and at most 1e9, not {points!r:.20}"
    hint = marker.kwargs.get("hint")
    if hint is not None and (type(hint) is not int or hint < 1):
        return f"{name}: hint is the number of a hint, not {hint!r}"
    for skip in item.iter_markers("skip"):
        if str(skip.kwargs.get("reason")).startswith("got empty parameter set"):  # pytest's words
            return f"{name} has no case: its parametrize lists no values"
    for pays in item.iter_markers("pays"):
        if not (pays.args and pays.kwargs.get("because")):
            return f'{name}: write @pytest.mark.pays("zeros", because="...") with a reason'
    return (
        "" if (item.function.__doc__ or "").strip() else f"{name} has no title: write a docstring"
    )


def case_of(stage: Stage, item: pytest.Item) -> Case:
    """The case that a collected item is."""
    name = getattr(item, "originalname", item.name)
    check = f"{stage.slug}.{name.removeprefix('test_')}"
    return Case(f"{check}{item.name[len(name) :]}", check)
