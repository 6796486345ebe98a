"""The files that `grade new` writes for a new stage.

A new stage runs at once: its task is to double the input. So its stub is not started, its solution
passes and its wrong answers fail from the start; the author replaces the lines that say `TODO:`.

`planned_stage` writes nothing. `new_stage` writes all or nothing, and never overwrites a file.
"""

from __future__ import annotations

import builtins
import difflib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
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
from grader.types.errors import CourseError, KitError
from grader.types.resources import filled

_LONGEST_TITLE = 60  # characters: a title takes one line of the screen
_STAGE = re.compile(r"[ \t]*\[\[[ \t]*stages[ \t]*\]\]")
_OTHER_TABLE = re.compile(r"[ \t]*\[\[?(?![\[ \t]*stages[ \t]*\.)")  # not part of a stage's


def new_stage(
    course: Course,
    slug: str,
    title: str,
    *,
    after: str | None = None,
    bonus: bool = False,
    functions: Sequence[str] = (),
    classes: Sequence[str] = (),
) -> tuple[Stage, tuple[Path, ...]]:
    """Add a stage to `course`, after the stage `after` or as the last; returns it and its files.

    `functions` and `classes` are the signatures of what learners write; without any, it is a
    function of the stage's name. Raises KitError; then nothing was written.
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
    text, stage, files = planned_stage(
        course, old, slug, title, after=after, bonus=bonus, functions=functions, classes=classes
    )
    for path in files:
        if os.path.lexists(path):
            place = path.relative_to(course.root).as_posix()
            raise KitError(f"{place}: exists already: move it, or choose another slug")
    with all_or_nothing(course.root) as made:
        write_new(files, made)
        write_whole(file, text)
    return stage, tuple(files)


def planned_stage(
    course: Course,
    text: str,
    slug: str,
    title: str,
    *,
    after: str | None = None,
    bonus: bool = False,
    functions: Sequence[str] = (),
    classes: Sequence[str] = (),
) -> tuple[str, Stage, dict[Path, str]]:
    """What `new_stage` would write to a course whose course.toml has this text.

    Returns the text with the stage, the stage, and the texts of its files. Raises KitError.
    """
    refuse_title(title)
    refuse_slug(course.stages, slug)
    style = style_of(course.preload)
    entries = [read_function(each, style.has_arrays) for each in functions]
    entries += [read_class(each, style.has_arrays) for each in classes]
    _refuse_entries(course, entries)
    table = _table(slug, title, style, entries, bonus=bonus)
    grown = with_stage(text, [each.slug for each in course.stages], table, after)
    stage = _added(course, course_of_text(grown, course.root / FILE_NAME), slug, after)
    return grown, stage, stage_files(stage, course.preload, entries)


def stage_files(
    stage: Stage, preload: tuple[str, ...], entries: Sequence[Entry] = ()
) -> dict[Path, str]:
    """The texts of all files of a new stage, by path.

    Without `entries` its task is to double the input, and only sentences are left to write.
    """
    style, is_done = style_of(preload), not entries
    known = entries or (default_entry(stage.slug, style),)
    solution = solution_text(stage.title, known, style, is_done=is_done)
    return {
        stage.solution_file: solution,
        stage.exercise_file: stub_of(solution, stage.slug),
        stage.check_file: check_file(stage.slug, known, style, is_done=is_done),
        stage.hints_file: filled(__package__, "templates/hints.md", title=stage.title),
        stage.misconceptions_file: misconceptions_text(stage.slug, style, is_done=is_done),
        stage.accepted_folder / "another.py": accepted_text(known, style, is_done=is_done),
    }


def default_entry(slug: str, style: Style) -> Entry:
    """The entry point of a stage without given signatures: a function of one value."""
    return read_function(
        f'{slug}(x: "n m") -> "n m"' if style.has_arrays else f"{slug}(x: float) -> float"
    )


def with_stage(text: str, slugs: list[str], table: str, after: str | None) -> str:
    """The text of a course.toml with one more table, after that of the stage `after`.

    Without `after` the table comes last. Everything else is unchanged; comments above the next
    table stay with it. Raises KitError for an unknown `after`, CourseError if the tables of the
    stages `slugs` cannot be found.
    """
    if after is not None and after not in slugs:
        close = difflib.get_close_matches(after, slugs, n=1)
        advice = f"did you mean '{close[0]}'?" if close else "`grade list` shows all stages"
        raise KitError(f"--after: there is no stage '{after}'; {advice}")
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


def _table(
    slug: str, title: str, style: Style, entries: Sequence[Entry] = (), *, bonus: bool = False
) -> str:
    known = entries or (default_entry(slug, style),)
    kinds = ", ".join(f'{entry.name} = "{_kind(entry, style)}"' for entry in known)
    return filled(
        __package__,
        "templates/stage.toml",
        slug=slug,
        title=quoted(title),
        points=str(10 * len(known)),
        visible=", ".join(f'"{name}"' for name in visible_checks(known, style)),
        kinds=kinds,
        bonus="bonus = true\n" if bonus else "",
    )


def _kind(entry: Entry, style: Style) -> str:
    """What course.toml says of an entry point's result."""
    kinds = [
        style.kind if each.is_array else "number" if each.type in ("int", "float") else "any"
        for each in entry.call.results
    ]
    kind = f"({', '.join(kinds)})" if entry.call.is_tuple else kinds[0]
    return f"{'module' if style.base else 'object'} -> {kind}" if entry.made else kind


def _added(course: Course, grown: Course, slug: str, after: str | None) -> Stage:
    """The new stage. Raises CourseError if it is misplaced or anything else has changed."""
    stage = grown.stage(slug)
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
        known = better == slug or slug_fault(better) is not None
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


@contextmanager
def all_or_nothing(root: Path) -> Iterator[list[Path]]:
    """If the block fails, remove the files and folders in the yielded list.

    An OSError becomes a KitError that names the file by its path in `root`.
    """
    made: list[Path] = []
    try:
        yield made
    except BaseException as error:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        if isinstance(error, OSError):
            place = os.path.relpath(error.filename or root, root)
            raise KitError(f"{place}: cannot be written: {error.strerror}") from None
        raise


def write_new(files: Mapping[Path, str], made: list[Path]) -> None:
    """Write new files and their folders, and append each to `made`. Raises OSError."""
    for path, text in files.items():
        for folder in [above for above in reversed(path.parents) if not above.exists()]:
            folder.mkdir()
            made.append(folder)
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            made.append(path)
            file.write(text)


_BY_HAND = f"{FILE_NAME}: has no [[stages]] table for each stage: add the new one by hand"
