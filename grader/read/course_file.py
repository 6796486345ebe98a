"""course.toml -> Course. `read_course` touches the disk, `parse_course` is pure."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from grader.types.course import Course, EntryPoint, Limits, Stage
from grader.types.errors import CourseError, KitError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAME = "course.toml"
SCHEMA = 1
# Words that `grade` takes for commands, so no stage may bear them.
RESERVED = frozenset(
    {
        *("all", "diff", "grade", "heatmap", "hint", "init", "list", "notebook", "predict"),
        *("reset", "serve", "solution", "stubs", "trace", "update", "verify", "watch"),
    }
)
_COURSE_KEYS = frozenset({"schema", "name", "title", "preload", "limits", "stages"})
_STAGE_KEYS = frozenset({"slug", "title", "points", "bonus", "requires", "entry_points"})
_KINDS = frozenset({"tensor", "array", "number", "any"})
_SLUG = re.compile(r"[a-z][a-z0-9_]*")
_RETURNS = re.compile(r"(?P<module>module\s*->\s*)?(?P<tuple>\(.*\)|\w+)")


def find_stage(course: Course, word: str) -> Stage:
    """The stage of that slug or number. Raises KitError, naming what comes close."""
    slugs = [stage.slug for stage in course.stages]
    if word in slugs:
        return course.stage(word)
    if word.isdecimal() and 1 <= int(word) <= len(slugs):
        return course.stages[int(word) - 1]
    close = difflib.get_close_matches(word, [*slugs, *sorted(RESERVED - {"all"})], n=1)
    advice = f"did you mean '{close[0]}'?" if close else "`grade list` shows them all"
    raise KitError(f"there is no stage '{word}'; {advice}")


def read_course(file: Path) -> Course:
    """The course that `file` describes. Raises CourseError."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CourseError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CourseError(f"{file}: is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise CourseError(f"{file}: is not TOML: {error}") from None
    return parse_course(data, file.parent.resolve())


def parse_course(data: Mapping[str, Any], root: Path) -> Course:
    """The course of the data of a course.toml. Raises CourseError naming place and fault."""
    place = FILE_NAME
    _only(data, _COURSE_KEYS, place)
    if data.get("schema") != SCHEMA:
        raise CourseError(f"{place}: 'schema' must be {SCHEMA}, not {data.get('schema')!r}")
    stages: list[Stage] = []
    tables = _get(data, "stages", list, place)
    for number, table in enumerate(tables, start=1):
        if not isinstance(table, dict):
            raise CourseError(f"{place}: stage {number} is not a table")
        stages.append(_stage(table, number, tuple(stages), root))
    if not stages:
        raise CourseError(f"{place}: has no [[stages]]")
    return Course(
        name=_get(data, "name", str, place),
        title=_get(data, "title", str, place),
        root=root,
        preload=_strings(data, "preload", place),
        limits=_limits(data.get("limits", {}), place),
        stages=tuple(stages),
    )


def _stage(table: Mapping[str, Any], number: int, before: tuple[Stage, ...], root: Path) -> Stage:
    slug = _get(table, "slug", str, f"{FILE_NAME}: stage {number}")
    place = f"{FILE_NAME}: stage '{slug}'"
    _only(table, _STAGE_KEYS, place)
    if not _SLUG.fullmatch(slug) or slug in RESERVED:
        raise CourseError(f"{place}: a slug is a lower-case Python name and no command's name")
    if slug in sys.stdlib_module_names:
        raise CourseError(f"{place}: the slug is the name of a module of Python's own library")
    if slug in {stage.slug for stage in before}:
        raise CourseError(f"{place}: the slug is used twice")
    points = _get(table, "points", (int, float), place)
    if isinstance(points, bool) or not points > 0:
        raise CourseError(f"{place}: 'points' must be more than 0, not {points!r}")
    requires = _strings(table, "requires", place)
    for required in requires:
        if required not in {stage.slug for stage in before}:
            raise CourseError(f"{place}: requires '{required}', which is no earlier stage")
    entry_points = _get(table, "entry_points", dict, place)
    if not entry_points:
        raise CourseError(f"{place}: 'entry_points' is empty, so there is nothing to write")
    return Stage(
        slug=slug,
        title=_get(table, "title", str, place),
        points=points,
        bonus=_get(table, "bonus", bool, place, default=False),
        requires=requires,
        entry_points=tuple(_entry(name, text, place) for name, text in entry_points.items()),
        root=root,
    )


def _entry(name: str, text: Any, place: str) -> EntryPoint:
    match = _RETURNS.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise CourseError(
            f"{place}: entry point '{name}': {text!r} is not like 'tensor', '(tensor, tensor)' or "
            "'module -> tensor'"
        )
    is_tuple = match["tuple"].startswith("(")
    kinds = tuple(kind.strip() for kind in match["tuple"].strip("()").split(","))
    for kind in kinds:
        if kind not in _KINDS:
            raise CourseError(f"{place}: entry point '{name}': {_unknown('kind', kind, _KINDS)}")
    return EntryPoint(name, kinds, is_tuple, match["module"] is not None)


def _limits(table: Any, place: str) -> Limits:
    if not isinstance(table, dict):
        raise CourseError(f"{place}: 'limits' is not a table")
    names = frozenset(field.name for field in fields(Limits))
    _only(table, names, f"{place}: limits")
    for name, value in table.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            raise CourseError(f"{place}: limits: '{name}' must be more than 0, not {value!r}")
    return Limits(**table)


def _strings(table: Mapping[str, Any], key: str, place: str) -> tuple[str, ...]:
    values = _get(table, key, list, place, default=[])
    if not all(isinstance(value, str) for value in values):
        raise CourseError(f"{place}: '{key}' must be a list of strings")
    return tuple(values)


def _get(table: Mapping[str, Any], key: str, kind: Any, place: str, default: Any = None) -> Any:
    value = table.get(key, default)
    if value is None:
        raise CourseError(f"{place}: '{key}' is missing")
    if not isinstance(value, kind):
        wanted = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise CourseError(f"{place}: '{key}' must be {wanted}, not {value!r}")
    return value


def _only(table: Mapping[str, Any], allowed: frozenset[str], place: str) -> None:
    for key in table:
        if key not in allowed:
            raise CourseError(f"{place}: {_unknown('key', key, allowed)}")


def _unknown(what: str, word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f"unknown {what} '{word}'" + (f" (did you mean '{close[0]}'?)" if close else "")
