"""Reads course.toml into a Course. `read_course` reads the disk, `parse_course` is pure."""

from __future__ import annotations

import builtins
import difflib
import keyword
import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from datetime import tzinfo
from pathlib import Path
from typing import Any

from grader.read import deadlines
from grader.read.faults import author_text
from grader.types.course import Assignment, Course, EntryPoint, Limits, Stage, core_of
from grader.types.errors import CourseError, KitError, close_to

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAME = "course.toml"
SCHEMA = 1
# Commands of `grade`, which no stage may have as its slug.
RESERVED = frozenset(
    {
        *("all", "certificate", "class", "diff", "explore", "finale", "grade", "heatmap", "help"),
        *("hint", "init", "list", "new", "notebook", "package", "predict", "preview", "release"),
        *("repro", "reset", "serve", "solution", "stubs", "suggest", "trace", "update", "verify"),
        "watch",
    }
)
# Modules that the kit itself loads where the learner's files are imported.
_KITS_OWN = frozenset({"grader", "references"})
_COURSE_KEYS = frozenset(
    {
        *("schema", "name", "title", "preload", "limits", "partial", "follow_through"),
        *("stages", "assignments", "authors", "license", "version", "package", "requirements"),
        *("accepted_answers", "timezone"),
    }
)
_STAGE_KEYS = frozenset(
    {
        *("slug", "title", "points", "bonus", "requires", "entry_points", "visible"),
        *("forbidden", "forbidden_cost", "formula", "formerly"),
    }
)
_ASSIGNMENT_KEYS = frozenset({"name", "stages", "exam"}) | deadlines.KEYS
_HOMES = {
    "at the top, above all tables": _COURSE_KEYS,
    "in a [[stages]] table": _STAGE_KEYS,
    "in an [[assignments]] table": _ASSIGNMENT_KEYS,
}
_WANTED = {
    str: "text in quotes",
    bool: "true or false",
    int: "a whole number",
    (int, float): "a number",
    list: "a list",
    dict: "a table",
}
_MOST = 1e9  # points, seconds or MiB: more is a mistake
_RANGE = "more than 0 and at most 1e9"
_KINDS = frozenset({"tensor", "array", "number", "any"})
_LONGEST_LINE = 100
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")
# What tomllib says, and the same in plain words.
_PLAIN = {
    "Cannot overwrite a value": "this key is there twice",
    "Cannot declare": "this table is there twice; one of several begins with two brackets, [[...]]",
    "Invalid value": 'write "a text", a number, true or false here',
    "Unclosed array": "a comma or a closing bracket is missing",
}
_TESTS = "tests"  # instead of a kind: the learner writes tests that use this fixture
_SLUG = re.compile(r"[a-z][a-z0-9_]*")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FOLDER = re.compile(r"^.*[/\\](?=\w+\.py$)")  # of a file that was named instead of its stage
_VERSION = re.compile(r"\d+(\.\d+)*")
_DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)
_RETURNS = re.compile(r"((?P<class>module|object)\s*->\s*)?(?P<tuple>\(.*\)|\w+)")


def find_stage(course: Course, word: str) -> Stage:
    """The stage with that slug or number. Raises KitError, which suggests one that is meant."""
    slugs = [stage.slug for stage in course.stages]
    word = course.renamed.get(word, word)
    if word in slugs:
        return course.stage(word)
    if word.isdecimal() and 1 <= int(word) <= len(slugs):
        return course.stages[int(word) - 1]
    # `grade test` must not suggest `grade reset`.
    commands = difflib.get_close_matches(word, sorted(RESERVED - {"all", "help"}), n=1, cutoff=0.75)
    asked = {entry.name: stage.slug for stage in course.stages for entry in stage.entry_points}
    known = {**asked, **{name: name for name in [*slugs, *commands]}}
    name = _FOLDER.sub("", word).partition(".")[0]  # of a file, or of a check
    close = [known[each] for each in difflib.get_close_matches(name, known, n=1)]
    others = "`grade list` shows the stages, `grade --help` the commands"
    advice = f"did you mean '{close[0]}'?" if close else others
    raise KitError(f"there is no stage '{word}'; {advice}")


def find_assignment(course: Course, name: str | None) -> Assignment:
    """The assignment of that name, or the only one. Raises KitError."""
    known = {assignment.name: assignment for assignment in course.assignments}
    if name is None and len(known) == 1:
        return course.assignments[0]
    if name not in known:
        names = ", ".join(known)
        if name is None:
            raise KitError(f"{FILE_NAME} has the assignments {names}: name one with --assignment")
        raise KitError(f"{FILE_NAME} has no assignment '{name}': choose one of {names}")
    return known[name]


def assignment_named(course: Course, name: str) -> Assignment | None:
    """The assignment of that name, if the course has one."""
    return next((each for each in course.assignments if each.name == name), None)


def read_course(file: Path) -> Course:
    """The course that `file` describes. Raises CourseError."""
    return course_of_text(author_text(file, str(_shown(file))), file)


def course_of_text(text: str, file: Path) -> Course:
    """The course that `file` would describe with this text. Raises CourseError."""
    return parse_course(parse_toml(text, str(_shown(file))), file.parent.resolve())


def parse_toml(text: str, place: str) -> dict[str, Any]:
    """The table in an author's file, called `place` in errors. Raises CourseError."""
    try:
        return tomllib.loads(f"{text}\n")  # so that a fault in the last line has its number
    except RecursionError:
        raise CourseError(f"{place}: is not TOML: it is nested too deeply") from None
    except ValueError as error:  # for a number of thousands of digits, it is no TOMLDecodeError
        found = _AT_LINE.search(str(error))
        if found is None:
            raise CourseError(f"{place}: is not TOML: {error}") from None
        words = f"is not TOML: {str(error)[: found.start()]}"
        words = next((plain for said, plain in _PLAIN.items() if said in words), words)
        line = f"{text}\n".split("\n")[int(found[1]) - 1].strip()[:_LONGEST_LINE]
        raise CourseError(f"{place}:{found[1]}: {words}: {line}") from None


def _shown(file: Path) -> Path:
    """`file` relative to the working folder, if it is inside."""
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file


def slug_fault(slug: str) -> str | None:
    """Why a course may not use this slug, None if it may."""
    if not slug.isascii():
        return "may only hold a to z, 0 to 9 and _"
    if not _SLUG.fullmatch(slug):
        return "is not a lower-case Python name"
    if keyword.iskeyword(slug):
        return "is a keyword of Python"
    if slug in RESERVED:
        return "is a command of `grade`"
    if slug in sys.stdlib_module_names:
        return "is a module of Python's standard library"
    if slug in _KITS_OWN:
        return "is a module of the kit"
    if slug == "changes":
        return "is the name of hints/CHANGES.md"
    return None


def parse_course(data: Mapping[str, Any], root: Path) -> Course:
    """The course in the data of a course.toml. Raises CourseError, which names place and fault."""
    place = FILE_NAME
    _only(data, _COURSE_KEYS, place)
    if _get(data, "schema", int, place) != SCHEMA:
        raise CourseError(f"{place}: 'schema' must be {SCHEMA}, not {data['schema']!r}")
    stages: list[Stage] = []
    tables = _get(data, "stages", list, place, default=[])
    for number, table in enumerate(tables, start=1):
        if not isinstance(table, dict):
            raise CourseError(f"{place}: stage {number} is not a table")
        stages.append(_stage(table, number, tuple(stages), root, _in_exams(data)))
    preload = _strings(data, "preload", place)
    for stage in stages if "torch" not in preload else ():
        for entry in stage.entry_points:
            if entry.is_class and not entry.is_object:
                raise CourseError(
                    f"{place}: stage '{stage.slug}': entry point '{entry.name}': a module needs "
                    "torch in 'preload'; a class without torch is an 'object -> any'"
                )
    name = _get(data, "name", str, place)
    if not _FILE_NAME.fullmatch(name):
        raise CourseError(f"{place}: 'name' {name!r} must be letters, digits, '.', '_' and '-'")
    zone = deadlines.time_zone(_get(data, "timezone", str, place, default=""), place)
    return Course(
        name=name,
        title=_get(data, "title", str, place),
        root=root,
        preload=preload,
        limits=_limits(data.get("limits", {}), place),
        stages=tuple(stages),
        assignments=_assignments(data, name, tuple(stages), zone, place),
        is_partial=_get(data, "partial", bool, place, default=False),
        follow_through=_get(data, "follow_through", bool, place, default=False),
        authors=_strings(data, "authors", place),
        license=_get(data, "license", str, place, default=""),
        version=_version(data, place),
        package=_package(data, name, place),
        requirements=_strings(data, "requirements" if "requirements" in data else "preload", place),
        accepted_answers=_accepted_answers(data, place),
        zone=zone,
    )


def _version(data: Mapping[str, Any], place: str) -> str:
    version: str = _get(data, "version", str, place, default="")
    if version and not _VERSION.fullmatch(version):
        raise CourseError(f"{place}: 'version' must be numbers like '1.2', not {version!r}")
    return version


def _package(data: Mapping[str, Any], name: str, place: str) -> str:
    package: str = _get(data, "package", str, place, default=name)
    if not _FILE_NAME.fullmatch(package) or not package[-1].isalnum():
        raise CourseError(
            f"{place}: 'package' {package!r} must be letters, digits, '.', '_' and '-', with a "
            "letter or digit at both ends"
        )
    return package


def _accepted_answers(data: Mapping[str, Any], place: str) -> int | None:
    number = data.get("accepted_answers")
    if number is not None and (type(number) is not int or not 0 <= number <= _MOST):
        raise CourseError(f"{place}: 'accepted_answers' must be 0 or more, not {number!r}")
    return number


def _in_exams(data: Mapping[str, Any]) -> set[str]:
    """The slugs in assignments that are exams; `_assignments` reports what is wrong with one."""
    tables = data.get("assignments")
    exams = [t for t in tables if isinstance(t, dict)] if isinstance(tables, list) else []
    named = (table.get("stages") for table in exams if table.get("exam") is True)
    return {slug for slugs in named if isinstance(slugs, list) for slug in map(str, slugs)}


def _assignments(
    data: Mapping[str, Any], course: str, stages: tuple[Stage, ...], zone: tzinfo | None, place: str
) -> tuple[Assignment, ...]:
    """The assignments; without any, one of all core stages with the course's name."""
    tables = _get(data, "assignments", list, place, default=[])
    if not tables:
        return (Assignment(course, tuple(core_of(stages))),) if stages else ()
    assignments: list[Assignment] = []
    for number, table in enumerate(tables, start=1):
        if not isinstance(table, dict):
            raise CourseError(f"{place}: assignment {number} is not a table")
        name = _get(table, "name", str, f"{place}: assignment {number}")
        here = f"{place}: assignment '{name}'"
        _only(table, _ASSIGNMENT_KEYS, here)
        if not _FILE_NAME.fullmatch(name):
            raise CourseError(f"{here}: the name must be letters, digits, '.', '_' and '-'")
        if name in {other.name for other in assignments}:
            raise CourseError(f"{here}: the name is used twice")
        slugs = _strings(table, "stages", here)
        known = [stage.slug for stage in stages]
        for slug in slugs:
            if slug not in known:
                raise CourseError(f"{here}: there is no stage '{slug}'{close_to(slug, known)}")
        chosen = tuple(stage for stage in stages if stage.slug in slugs)
        if not chosen:
            raise CourseError(f"{here}: 'stages' names no stage")
        for stage in chosen:
            for required in stage.requires:
                if required not in slugs:
                    raise CourseError(
                        f"{here}: has '{stage.slug}' but not '{required}', which it requires"
                    )
        due = deadlines.read_due(table, zone, here)
        extensions = deadlines.read_extensions(table, due, zone, here)
        late = deadlines.read_late_rule(table, here)
        is_exam = _get(table, "exam", bool, here, default=False)
        assignments.append(Assignment(name, chosen, due, extensions, late, is_exam))
    return tuple(assignments)


def _stage(
    table: Mapping[str, Any], number: int, before: tuple[Stage, ...], root: Path, in_exams: set[str]
) -> Stage:
    slug = _get(table, "slug", str, f"{FILE_NAME}: stage {number}")
    place = f"{FILE_NAME}: stage '{slug}'"
    _only(table, _STAGE_KEYS, place)
    fault = slug_fault(slug)
    if fault is not None:
        raise CourseError(f"{place}: the slug {fault}")
    if slug in {stage.slug for stage in before}:
        raise CourseError(f"{place}: the slug is used twice")
    if slug in {old for stage in before for old in stage.formerly}:
        raise CourseError(f"{place}: the slug is one that an earlier stage had: see 'formerly'")
    points = _get(table, "points", (int, float), place)
    if isinstance(points, bool) or not 0 < points <= _MOST:
        raise CourseError(f"{place}: 'points' must be {_RANGE}, not {points!r}")
    requires = _strings(table, "requires", place)
    for required in requires:
        earlier = next((stage for stage in before if stage.slug == required), None)
        if earlier is None:
            what = f"requires '{required}', which is not an earlier stage"
            close = close_to(required, [stage.slug for stage in before])
            raise CourseError(f"{place}: {what}{close}")
        if earlier.fixture:
            raise CourseError(
                f"{place}: requires '{required}', where learners write tests: other stages cannot "
                "call tests"
            )
    entry_points = _get(table, "entry_points", dict, place)
    if not entry_points:
        raise CourseError(f"{place}: 'entry_points' is empty, so there is nothing to write")
    entries = tuple(_entry(name, text, place) for name, text in entry_points.items())
    forbidden = _forbidden(table, place)
    if any(entry.is_fixture for entry in entries) and (len(entries) > 1 or forbidden):
        raise CourseError(
            f"{place}: with an entry point of kind 'tests', it must have no other entry point and "
            "no 'forbidden'"
        )
    return Stage(
        slug=slug,
        title=_get(table, "title", str, place),
        points=points,
        bonus=_get(table, "bonus", bool, place, default=False),
        requires=requires,
        entry_points=entries,
        root=root,
        visible=_strings(table, "visible", place),
        forbidden=forbidden,
        forbidden_cost=_forbidden_cost(table, place),
        formula=_get(table, "formula", str, place, default=""),
        is_exam=slug in in_exams,
        formerly=_formerly(table, slug, before, place),
    )


def _formerly(
    table: Mapping[str, Any], slug: str, before: tuple[Stage, ...], place: str
) -> tuple[str, ...]:
    """The slugs that the stage once had: one, or a list with the oldest first."""
    given = table.get("formerly")
    names = (given,) if isinstance(given, str) else _strings(table, "formerly", place)
    taken = {slug, *(name for stage in before for name in (stage.slug, *stage.formerly))}
    for name in names:
        if not _SLUG.fullmatch(name):
            raise CourseError(f"{place}: formerly: {name!r} is not a slug")
        if name in taken:
            raise CourseError(f"{place}: formerly: '{name}' is the slug of a stage already")
        taken.add(name)
    return names


def _forbidden(table: Mapping[str, Any], place: str) -> tuple[str, ...]:
    names = _strings(table, "forbidden", place)
    for name in names:
        if not _DOTTED_NAME.fullmatch(name):
            like = f"builtins.{name}" if hasattr(builtins, name) else "package.module.function"
            raise CourseError(f"{place}: forbidden: {name!r} is not a dotted name like '{like}'")
        if names.count(name) > 1:
            raise CourseError(f"{place}: forbidden: '{name}' appears twice")
    return names


def _forbidden_cost(table: Mapping[str, Any], place: str) -> float:
    cost: float = _get(table, "forbidden_cost", (int, float), place, default=1.0)
    if isinstance(cost, bool) or not 0 <= cost <= 1:
        raise CourseError(f"{place}: 'forbidden_cost' must be from 0 to 1, not {cost!r}")
    if "forbidden_cost" in table and not table.get("forbidden"):
        raise CourseError(f"{place}: has 'forbidden_cost' but no 'forbidden'")
    return cost


def _entry(name: str, text: Any, place: str) -> EntryPoint:
    if text == _TESTS:
        return EntryPoint(name, (), is_fixture=True)
    match = _RETURNS.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise CourseError(
            f"{place}: entry point '{name}': {text!r} is not like 'tensor', '(tensor, tensor)', "
            "'module -> tensor', 'object -> any' or 'tests'"
        )
    is_tuple = match["tuple"].startswith("(")
    kinds = tuple(kind.strip() for kind in match["tuple"].strip("()").split(","))
    for kind in kinds:
        if kind not in _KINDS:
            like = close_to(kind, _KINDS) or ": 'any' stands for every other value"
            raise CourseError(f"{place}: entry point '{name}': unknown kind '{kind}'{like}")
    of = match["class"]
    return EntryPoint(name, kinds, is_tuple, is_class=of is not None, is_object=of == "object")


def _limits(table: Any, place: str) -> Limits:
    if not isinstance(table, dict):
        raise CourseError(f"{place}: 'limits' is not a table")
    known = {field.name: type(getattr(Limits(), field.name)) for field in fields(Limits)}
    _only(table, frozenset(known), f"{place}: limits")
    for name, value in table.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not 0 < value <= _MOST:
            raise CourseError(f"{place}: limits: '{name}' must be {_RANGE}, not {value!r}")
        if known[name] is int and not isinstance(value, int):
            raise CourseError(f"{place}: limits: '{name}' must be a whole number, not {value!r}")
    # 120 and 120.0 are one limit, so that a verdict under one is a verdict under the other.
    return Limits(**{name: known[name](value) for name, value in table.items()})


def _strings(table: Mapping[str, Any], key: str, place: str) -> tuple[str, ...]:
    values = _get(table, key, list, place, default=[])
    if not all(isinstance(value, str) for value in values):
        raise CourseError(f"{place}: '{key}' must be a list of strings")
    return tuple(values)


def _get(table: Mapping[str, Any], key: str, kind: Any, place: str, default: Any = None) -> Any:
    value = table.get(key, default)
    if value is None:
        raise CourseError(f"{place}: '{key}' is missing")
    if kind is list and isinstance(value, dict):
        raise CourseError(f"{place}: '{key}' must be a list of tables: write [[{key}]]")
    if not isinstance(value, kind):
        raise CourseError(f"{place}: '{key}' must be {_WANTED[kind]}, not {value!r}")
    return value


def _only(table: Mapping[str, Any], allowed: frozenset[str], place: str) -> None:
    unknown = [
        f"unknown key '{key}'{_home(key, allowed) or close_to(key, allowed)}"
        for key in table
        if key not in allowed
    ]
    if unknown:
        raise CourseError(f"{place}: {', '.join(unknown)}")


def _home(key: str, allowed: frozenset[str]) -> str:
    """Where a key belongs that stands among others, in brackets; "" if that is not clear."""
    homes = [home for home, keys in _HOMES.items() if key in keys and keys != allowed]
    return f" (it belongs {homes[0]})" if len(homes) == 1 else ""
