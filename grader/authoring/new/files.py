"""The files that `grade new` writes for a new stage.

A new stage runs at once: its task is to double the input. So its stub is not started, its solution
passes and its wrong answers fail from the start; the author replaces the lines that say `TODO:`.

`planned_stage` writes nothing. `new_stage` writes all or nothing, and never overwrites a file.
"""

from __future__ import annotations

import builtins
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.machinery import PathFinder
from pathlib import Path

from grader.authoring.new.checks import check_file, visible_checks
from grader.authoring.new.signature import Entry, read_class, read_function
from grader.authoring.new.sources import accepted_text, misconceptions_text, solution_text
from grader.authoring.new.style import Style, style_of
from grader.read.course_file import FILE_NAME, course_of_text, slug_fault
from grader.read.files import write_whole
from grader.read.stubs import stub_of
from grader.read.workspace import is_packaged
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, KitError, close_to
from grader.types.resources import filled

_LONGEST_TITLE = 60  # characters: a title takes one line of the screen
_STAGE = re.compile(r"[ \t]*\[\[[ \t]*stages[ \t]*\]\]")
_OTHER_TABLE = re.compile(r"[ \t]*\[\[?(?![\[ \t]*stages[ \t]*\.)")  # not part of a stage's


@dataclass(frozen=True)
class Wanted:
    """A new stage: it comes after the stage `after`, or last.

    `functions` and `classes` are the signatures of what learners write; without any, it is a
    function of the stage's name, which doubles its input.
    """

    slug: str
    title: str
    after: str | None = None
    bonus: bool = False
    functions: Sequence[str] = ()
    classes: Sequence[str] = ()


def new_stage(course: Course, wanted: Wanted) -> tuple[Stage, tuple[Path, ...]]:
    """Add a stage to `course`; returns it and its files.

    Raises KitError; then nothing was written.
    """
    if is_packaged(course):
        raise KitError(
            "an installed course cannot be changed: `grade new --course DIR` starts a new one"
        )
    file = course.root / FILE_NAME
    try:
        old = file.read_bytes().decode()
    except OSError as error:
        raise CourseError(f"{file}: cannot be read: {error.strerror}") from None
    text, stage, files = planned_stage(course, old, wanted)
    for path in files:
        if os.path.lexists(path):
            place = path.relative_to(course.root).as_posix()
            raise KitError(f"{place}: exists already: move it, or choose another slug")
    write_new(course.root, files, grown=text)
    return stage, tuple(files)


def planned_stage(course: Course, text: str, wanted: Wanted) -> tuple[str, Stage, dict[Path, str]]:
    """What `new_stage` would write to a course whose course.toml has this text.

    Returns the text with the stage, the stage, and the texts of its files. Raises KitError.
    """
    refuse_title(wanted.title)
    refuse_slug(course.stages, wanted.slug)
    style = style_of(course.preload)
    entries = [read_function(each, style.has_arrays) for each in wanted.functions]
    entries += [read_class(each, style.has_arrays) for each in wanted.classes]
    _refuse_entries(course, entries)
    if not entries:
        style = replace(style, is_done=True)
        form = '{}(x: "n m") -> "n m"' if style.has_arrays else "{}(x: float) -> float"
        entries = [read_function(form.format(wanted.slug))]
    slugs = [each.slug for each in course.stages]
    grown = with_stage(text, slugs, _table(wanted, style, entries), wanted.after)
    stage = _added(course, course_of_text(grown, course.root / FILE_NAME), wanted)
    return grown, stage, _files(stage, style, entries)


def _files(stage: Stage, style: Style, entries: Sequence[Entry]) -> dict[Path, str]:
    """The texts of all files of a new stage."""
    solution = solution_text(stage.title, entries, style)
    return {
        stage.solution_file: solution,
        stage.exercise_file: stub_of(solution, stage.slug),
        stage.check_file: check_file(stage.slug, entries, style),
        stage.hints_file: filled(__package__, "templates/hints.md", title=stage.title),
        stage.misconceptions_file: misconceptions_text(stage.slug, style),
        stage.accepted_folder / "another.py": accepted_text(entries, style),
    }


def with_stage(text: str, slugs: list[str], table: str, after: str | None) -> str:
    """The text of a course.toml with one more table, after that of the stage `after`.

    Without `after` the table comes last. Everything else is unchanged; comments above the next
    table stay with it. Raises KitError for an unknown `after`, CourseError if the tables of the
    stages `slugs` cannot be found.
    """
    if after is not None and after not in slugs:
        advice = close_to(after, slugs) or "; `grade list` shows all stages"
        raise KitError(f"--after: there is no stage '{after}'{advice}")
    lines = text.splitlines(keepends=True)
    headers = [number for number, line in enumerate(lines) if _STAGE.match(line)]
    if len(headers) != len(slugs):
        raise CourseError(_BY_HAND)
    place = slugs.index(after) if after is not None else -1
    last = start = headers[place] if headers else len(lines) - 1
    for number in range(start + 1, len(lines)):
        line = lines[number].strip()
        if _OTHER_TABLE.match(lines[number]):
            break
        if line and (not line.startswith("#") or last == number - 1):
            last = number
    newline = "\r\n" if lines[0].endswith("\r\n") else "\n"
    before = "".join(lines[: last + 1]).rstrip("\r\n") + newline
    return before + newline + table.replace("\n", newline) + "".join(lines[last + 1 :])


def _table(wanted: Wanted, style: Style, entries: Sequence[Entry]) -> str:
    return filled(
        __package__,
        "templates/stage.toml",
        slug=wanted.slug,
        title=quoted(wanted.title),
        points=str(10 * len(entries)),
        visible=", ".join(f'"{name}"' for name in visible_checks(entries, style)),
        kinds=", ".join(f'{entry.name} = "{_kind(entry, style)}"' for entry in entries),
        bonus="bonus = true\n" if wanted.bonus else "",
    )


def _kind(entry: Entry, style: Style) -> str:
    """What course.toml says of an entry point's result."""
    kinds = [
        style.kind if each.is_array else "number" if each.type in ("int", "float") else "any"
        for each in entry.call.results
    ]
    kind = f"({', '.join(kinds)})" if entry.call.is_tuple else kinds[0]
    return f"{'module' if style.base else 'object'} -> {kind}" if entry.made else kind


def _added(course: Course, grown: Course, wanted: Wanted) -> Stage:
    """The new stage. Raises CourseError if it is misplaced or anything else has changed."""
    stage, after = grown.stage(wanted.slug), wanted.after
    place = grown.stages.index(stage)
    before, behind = grown.stages[:place], grown.stages[place + 1 :]
    others = replace(grown, stages=before + behind, assignments=())
    follows = before[-1:] == ((course.stage(after),) if after else course.stages[-1:])
    if others != replace(course, assignments=()) or not follows:
        raise CourseError(_BY_HAND)
    return stage


def quoted(text: str) -> str:
    """`text` as a TOML string, which has the form of a JSON string."""
    return json.dumps(text, ensure_ascii=False)


def refuse_title(title: str) -> None:
    """Raise KitError if a stage or course may not have this title."""
    if not title.strip() or not title.isprintable():
        raise KitError('--title: give it a line of text, such as --title "Half a turn"')
    if len(title) > _LONGEST_TITLE:
        raise KitError(f"--title: has {len(title)} characters: use at most {_LONGEST_TITLE}")


def refuse_slug(stages: Sequence[Stage], slug: str) -> None:
    """Raise KitError if a stage beside `stages` may not have this slug."""
    fault = slug_fault(slug)
    if fault is not None:
        better = re.sub(r"\W+", "_", slug.lower(), flags=re.ASCII).rstrip("_").lstrip("_0123456789")
        known = not slug.isascii() or better == slug or slug_fault(better) is not None
        raise KitError(
            f"'{slug}' {fault}: " + ("choose another slug" if known else f"try '{better}'")
        )
    if hasattr(builtins, slug):
        raise KitError(f"'{slug}' is a built-in name of Python: choose another slug")
    if slug == "conftest" or slug.startswith("test_"):
        raise KitError(f"pytest would treat '{slug}' as a test file: choose another slug")
    for stage in stages:
        if slug == stage.slug:
            raise KitError(f"stage '{slug}' exists already: choose another slug")
        if slug in [entry.name for entry in stage.entry_points]:
            raise KitError(f"stage '{stage.slug}' defines '{slug}': choose another slug")
    if _is_installed(slug):
        raise KitError(f"'{slug}' would hide an installed package: choose another slug")


def _refuse_entries(course: Course, entries: Sequence[Entry]) -> None:
    taken = {
        name: stage.slug
        for stage in course.stages
        for name in (stage.slug, *(entry.name for entry in stage.entry_points))
    }
    for number, entry in enumerate(entries):
        if entry.name in taken:
            raise KitError(
                f"stage '{taken[entry.name]}' defines '{entry.name}': choose another name"
            )
        if entry.name in [earlier.name for earlier in entries[:number]]:
            raise KitError(f"'{entry.name}' is named twice: give each signature once")


def _is_installed(name: str) -> bool:
    """Whether such a module is installed; the working folder does not count."""
    entries = [entry for entry in sys.path if entry and Path(entry) != Path.cwd()]
    spec = PathFinder.find_spec(name, entries)
    return spec is not None and spec.origin is not None  # a folder without code has none


def write_new(root: Path, files: Mapping[Path, str], *, grown: str = "") -> None:
    """Write new files and their folders, and then course.toml if it is `grown`; all or nothing.

    Raises KitError, which names a file by its path in `root`.
    """
    made: list[Path] = []
    try:
        for path, text in files.items():
            for folder in [above for above in reversed(path.parents) if not above.exists()]:
                folder.mkdir()
                made.append(folder)
            with open(path, "x", encoding="utf-8", newline="\n") as file:
                made.append(path)
                file.write(text)
        if grown:
            write_whole(root / FILE_NAME, grown)
    except BaseException as error:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        if isinstance(error, OSError):
            place = os.path.relpath(error.filename or root, root)
            raise KitError(f"{place}: cannot be written: {error.strerror}") from None
        raise


_BY_HAND = f"{FILE_NAME}: has no [[stages]] table for each stage: add the new one by hand"
