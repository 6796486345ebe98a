"""A new stage, or a new course with a first one: the files that `grade new` writes for an author.

Every stage begins as one that runs: it asks for twice its input. So from the start its stub is
calm, its solution passes and its wrong answers fail; what is left are the lines that say `TODO:`.

`stage_files` and `with_stage` are pure; `new_stage` and `new_course` write, all or nothing, and
never over a file.
"""

from __future__ import annotations

import builtins
import difflib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.machinery import PathFinder
from pathlib import Path

from grader.read.course_file import FILE_NAME, course_of_text, slug_fault
from grader.read.files import write_whole
from grader.read.stubs import stub_of
from grader.read.workspace import installed_folder, nearest_root
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, KitError

_LONGEST_TITLE = 60  # characters; the screens give it one line
_FIRST = "first_step", "The first step"
_STAGE = re.compile(r"[ \t]*\[\[[ \t]*stages[ \t]*\]\]")
_OTHER_TABLE = re.compile(r"[ \t]*\[\[?(?![\[ \t]*stages[ \t]*\.)")  # no part of a stage's
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_GAP = re.compile(r"«(\w+)»")


@dataclass(frozen=True)
class _Style:
    """How a course's files are written, by the library that it has.

    `kind` is what the function gives back, `type` the annotation for it, and `make` is called to
    make one of a list; the texts themselves have gaps such as «slug». One with `gradients` has a
    check of them.
    """

    kind: str
    type: str
    imports: str
    make: str
    solution: str
    checks: str
    mistakes: str
    gradients: bool = False


def new_stage(
    course: Course, slug: str, title: str, *, after: str | None = None, bonus: bool = False
) -> tuple[Stage, tuple[Path, ...]]:
    """Add a stage to `course`, behind the one named `after` or as the last; and its files.

    Raises KitError, and then nothing has been written.
    """
    if course.root == installed_folder():
        raise KitError("an installed course stays as it is: `grade new --course DIR` starts one")
    _refuse_title(title)
    _refuse_slug(course, slug)
    file = course.root / FILE_NAME
    try:
        old = file.read_bytes().decode()
    except OSError as error:
        raise CourseError(f"{file}: cannot be read: {error.strerror}") from None
    table = _table(slug, title, _style(course.preload), bonus=bonus)
    text = with_stage(old, [each.slug for each in course.stages], table, after)
    stage = _added(course, course_of_text(text, file), slug, after)
    files = stage_files(stage, course.preload)
    for path in files:
        if os.path.lexists(path):
            place = path.relative_to(course.root).as_posix()
            raise KitError(f"{place}: is there already: move it, or choose another slug")
    with _all_or_nothing(course.root) as made:
        _write(files, made)
        write_whole(file, text)
    return stage, tuple(files)


def new_course(root: Path, title: str) -> tuple[Course, tuple[Path, ...]]:
    """Start a course in `root`, a folder that is empty or not there yet; and its files.

    Raises KitError, and then nothing has been written.
    """
    _refuse_title(title)
    if (root / FILE_NAME).exists():
        raise KitError(f"{root}: is a course already: `grade new STAGE` adds to it")
    name = root.resolve().name
    if not _FOLDER.fullmatch(name):
        raise KitError(f"'{name}': name the folder with letters, digits, '.', '_' and '-'")
    try:
        if os.listdir(root):
            raise KitError(f"{root}: is not empty: name a new folder")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise KitError(f"{root}: cannot be a course's folder: {error.strerror}") from None
    shown, root = root, root.resolve()
    outer = nearest_root(root)
    if outer is not None:
        raise KitError(f"{shown}: would lie in the course or workspace {outer}: go elsewhere")
    table = _table(*_FIRST, _ARRAY_STYLES["numpy"])
    text = _COURSE.format(name=json.dumps(name), title=_quoted(title), table=table)
    course = course_of_text(text, root / FILE_NAME)
    files = {
        root / FILE_NAME: text,
        root / "README.md": _README.format(title=title, slug=course.stages[0].slug),
        root / ".gitignore": ".grade/\n__pycache__/\n",
        **stage_files(course.stages[0], course.preload),
    }
    with _all_or_nothing(course.root) as made:
        _write(files, made)
    return course, tuple(files)


def stage_files(stage: Stage, preload: tuple[str, ...]) -> dict[Path, str]:
    """The texts of all files of a new stage, by where they belong."""
    style = _style(preload)
    words = {
        "slug": stage.slug,
        "title": stage.title,
        "summary": stage.title.replace("\\", "\\\\").replace('"', '\\"').rstrip(".") + ".",
        "imports": style.imports,
        "make": style.make,
        "type": style.type,
    }

    def filled(template: str) -> str:
        return _GAP.sub(lambda gap: words[gap[1]], template)

    words |= {
        "points": "5" if style.gradients else "7",
        "and_gradients": "expect_gradients_close, " if style.gradients else "",
        "gradients": filled(_CHECK_OF_GRADIENTS) if style.gradients else "",
    }
    solution = filled(style.solution)
    return {
        stage.solution_file: solution,
        stage.exercise_file: stub_of(solution, stage.slug),
        stage.check_file: filled(style.checks),
        stage.hints_file: filled(_HINTS),
        stage.misconceptions_file: filled(style.mistakes),
        stage.accepted_folder / "added_up.py": filled(_ACCEPTED),
    }


def with_stage(text: str, slugs: list[str], table: str, after: str | None) -> str:
    """The text of a course.toml of the stages `slugs` with one more table, behind that of `after`.

    Without `after` it comes last. All else stays as it is, and the comments above the next table
    stay with that. Raises KitError for an unknown `after`, CourseError where the tables of the
    stages are not to be found.
    """
    if after is not None and after not in slugs:
        close = difflib.get_close_matches(after, slugs, n=1)
        advice = f"did you mean '{close[0]}'?" if close else "`grade list` shows them all"
        raise KitError(f"--after: there is no stage '{after}'; {advice}")
    lines = text.splitlines(keepends=True)
    headers = [number for number, line in enumerate(lines) if _STAGE.match(line)]
    if len(headers) != len(slugs):
        raise CourseError(_BY_HAND)
    last = start = headers[slugs.index(after) if after is not None else -1]
    for number in range(start + 1, len(lines)):
        line = lines[number].strip()
        if _OTHER_TABLE.match(lines[number]):
            break
        if line and (not line.startswith("#") or last == number - 1):
            last = number
    newline = "\r\n" if lines[0].endswith("\r\n") else "\n"
    before = "".join(lines[: last + 1]).rstrip("\r\n") + newline
    return before + newline + table.replace("\n", newline) + "".join(lines[last + 1 :])


def _table(slug: str, title: str, style: _Style, *, bonus: bool = False) -> str:
    return _TABLE.format(
        slug=slug, title=_quoted(title), kind=style.kind, bonus="bonus = true\n" if bonus else ""
    )


def _added(course: Course, grown: Course, slug: str, after: str | None) -> Stage:
    """The new stage, if nothing else has changed and it is in its place. Raises CourseError."""
    stage = grown.stage(slug)
    place = grown.stages.index(stage)
    before, behind = grown.stages[:place], grown.stages[place + 1 :]
    others = replace(grown, stages=before + behind, assignments=())
    follows = before[-1:] == ((course.stage(after) if after is not None else course.stages[-1]),)
    if others != replace(course, assignments=()) or not follows:
        raise CourseError(_BY_HAND)
    return stage


def _quoted(text: str) -> str:
    """`text` as a string of TOML, which is written like one of JSON."""
    return json.dumps(text, ensure_ascii=False)


def _style(preload: tuple[str, ...]) -> _Style:
    return next((_ARRAY_STYLES[name] for name in _ARRAY_STYLES if name in preload), _NUMBER_STYLE)


def _refuse_title(title: str) -> None:
    if not title.strip() or not title.isprintable():
        raise KitError('--title: give it a line of text, such as --title "Half a turn"')
    if len(title) > _LONGEST_TITLE:
        raise KitError(f"--title: has {len(title)} characters: use at most {_LONGEST_TITLE}")


def _refuse_slug(course: Course, slug: str) -> None:
    fault = slug_fault(slug)
    if fault is not None:
        better = re.sub(r"\W+", "_", slug.lower(), flags=re.ASCII).strip("_0123456789")
        known = better == slug or slug_fault(better) is not None
        raise KitError(
            f"'{slug}' {fault}: " + ("choose another slug" if known else f"try '{better}'")
        )
    if hasattr(builtins, slug):
        raise KitError(f"'{slug}' is a name of Python's own: choose another slug")
    if slug == "conftest" or slug.startswith("test_"):
        raise KitError(f"'{slug}' is a name that pytest looks for: choose another slug")
    for stage in course.stages:
        if slug == stage.slug:
            raise KitError(f"there is a stage '{slug}' already: choose another slug")
        if slug in [entry.name for entry in stage.entry_points]:
            raise KitError(f"'{slug}' is written in stage '{stage.slug}': choose another slug")
    if _is_installed(slug):
        raise KitError(f"'{slug}' is an installed package, which it would hide: choose another")


def _is_installed(name: str) -> bool:
    """Whether a module of that name is found; not one that is only in the working folder."""
    entries = [entry for entry in sys.path if entry and Path(entry) != Path.cwd()]
    spec = PathFinder.find_spec(name, entries)
    return spec is not None and spec.origin is not None  # a folder without code has none


@contextmanager
def _all_or_nothing(root: Path) -> Iterator[list[Path]]:
    """Removes again, if the block ends with an error, the files and folders that it has listed.

    An OSError becomes a KitError, which names a file as it is called in `root`.
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


def _write(files: Mapping[Path, str], made: list[Path]) -> None:
    """Write new files and the folders that they need; each is noted in `made`. OSError."""
    for path, text in files.items():
        for folder in [above for above in reversed(path.parents) if not above.exists()]:
            folder.mkdir()
            made.append(folder)
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            made.append(path)
            file.write(text)


# --- the texts -------------------------------------------------------------------------------

_BY_HAND = f"{FILE_NAME}: has no [[stages]] table for each stage: add the new one by hand"

_TABLE = """\
[[stages]]
slug = "{slug}"
title = {title}
points = 10
{bonus}requires = []
visible = ["values"]
entry_points = {{ {slug} = "{kind}" }}
"""

_COURSE = """\
# The course: stages in the order in which they are taught. The paths of a stage's files follow from
# its slug. `grade new STAGE --title "..."` adds a stage, `grade verify` says what is still missing.
schema = 1
name = {name}
title = {title}
# What the learner's files may import, loaded before any of them runs: numpy, torch or nothing.
preload = ["numpy"]

{table}"""

_README = """\
# {title}

A course that is graded by `grade`. What there is to write lies in `exercises/`.

| type | for |
|---|---|
| `grade` | the scoreboard, and why the first failing stage fails |
| `grade hint {slug}` | one more hint |
| `grade --submission solutions` | the same for the solutions |
| `grade new STAGE --title "..."` | one more stage |
| `grade stubs` | `exercises/` anew after a change in `solutions/` |
| `grade verify` | proof that the course is sound, and what is left to do |
"""

_HINTS = """\
# «title»

## 1. A question first
TODO: a question that leads to the idea, with small numbers to try it on.

## 2. The idea
TODO: what to do, in words.

## 3. The tools
TODO: which functions do it, each in a sentence.

## 4. Nearly all of it
TODO: nearly the answer; leave a gap (...) where a line would say it all.

## Learnt
TODO: what whoever has passed now knows, in two sentences.
"""

_ACCEPTED = '''\
"""TODO: a right answer in another style than the solution's, and more such files."""


def «slug»(x):
    return x + x
'''

_SOLUTION_OF_ARRAYS = '''\
"""«summary»

TODO: what this stage is about, and what it is good for.
"""

«imports»

def «slug»(x: «type») -> «type»:
    """Twice the input.

        x (n, m)  ->  result (n, m)

    >>> «slug»(«make»([[1.0, 2.0]])).tolist()
    [[2.0, 4.0]]

    TODO: say what it takes and gives, with an example, its traps and the errors it raises.
    """
    ### BEGIN SOLUTION
    # TODO: your own solution
    return 2 * x
    ### END SOLUTION
'''

_CHECKS_OF_ARRAYS = '''\
"""The hidden checks of «slug»."""

from __future__ import annotations

from typing import Any

import pytest

from grader.checking import expect_close, «and_gradients»expect_unchanged


def reference(x: Any) -> Any:
    """TODO: the right answer, in another style than the solution's."""
    return x + x


@pytest.mark.points(«points»)
@pytest.mark.parametrize("n, m", [(2, 3), (4, 5)])
def test_values(submission: Any, rand: Any, n: int, m: int) -> None:
    """TODO: the line that the learner reads, at most 72 characters"""
    x = rand(n=n, m=m)
    expected = reference(x)
    expect_close(submission.«slug»(x), expected, axes="n m")


@pytest.mark.points(3)
def test_input_kept(submission: Any, rand: Any) -> None:
    """The input is left as it is"""
    x = rand(n=3, m=2)
    with expect_unchanged(x=x):
        submission.«slug»(x)
«gradients»'''

_CHECK_OF_GRADIENTS = '''

@pytest.mark.points(2)
def test_gradients(submission: Any, rand: Any) -> None:
    """Gradients reach the input"""
    x = rand(n=3, m=2, grad=True)
    expect_gradients_close(submission.«slug»(x), reference(x), {"x": x})
'''

_MISTAKES_OF_ARRAYS = '''\
"""Known misconceptions of the stage «slug»."""

from __future__ import annotations

«imports»
from grader.misconceptions import misconception


@misconception(
    "«slug»_squared",
    replaces="«slug»",
    says="TODO: a sentence for whoever wrote this. You multiply the input by itself.",
    hint=2,
)
def «slug»_squared(x: «type») -> «type»:
    return x * x


@misconception(
    "«slug»_in_place",
    replaces="«slug»",
    says="TODO: a sentence for whoever wrote this. You change the input itself.",
    hint=3,
)
def «slug»_in_place(x: «type») -> «type»:
    x *= 2
    return x
'''

_SOLUTION_OF_NUMBERS = '''\
"""«summary»

TODO: what this stage is about, and what it is good for.
"""


def «slug»(x: float) -> float:
    """Twice the input.

    >>> «slug»(1.5)
    3.0

    TODO: say what it takes and gives, with an example, its traps and the errors it raises.
    """
    ### BEGIN SOLUTION
    # TODO: your own solution
    return 2 * x
    ### END SOLUTION
'''

_CHECKS_OF_NUMBERS = '''\
"""The hidden checks of «slug»."""

from __future__ import annotations

from typing import Any

import pytest

from grader.checking import expect_equal


def reference(x: float) -> float:
    """TODO: the right answer, in another style than the solution's."""
    return x + x


@pytest.mark.points(7)
@pytest.mark.parametrize("x", [1.5, 4.0, 0.0])
def test_values(submission: Any, x: float) -> None:
    """TODO: the line that the learner reads, at most 72 characters"""
    expect_equal(submission.«slug»(x), reference(x), f"«slug»({x})")


@pytest.mark.points(3)
def test_negative(submission: Any) -> None:
    """A negative number is as good as any"""
    expect_equal(submission.«slug»(-3.0), -6.0, "«slug»(-3.0)")
'''

_MISTAKES_OF_NUMBERS = '''\
"""Known misconceptions of the stage «slug»."""

from __future__ import annotations

from grader.misconceptions import misconception


@misconception(
    "«slug»_squared",
    replaces="«slug»",
    says="TODO: a sentence for whoever wrote this. You multiply the input by itself.",
    hint=2,
)
def «slug»_squared(x: float) -> float:
    return x * x


@misconception(
    "«slug»_of_the_size",
    replaces="«slug»",
    says="TODO: a sentence for whoever wrote this. You lose the sign of the input.",
    hint=3,
)
def «slug»_of_the_size(x: float) -> float:
    return 2 * abs(x)
'''

_OF_ARRAYS = (_SOLUTION_OF_ARRAYS, _CHECKS_OF_ARRAYS, _MISTAKES_OF_ARRAYS)
_OF_NUMBERS = (_SOLUTION_OF_NUMBERS, _CHECKS_OF_NUMBERS, _MISTAKES_OF_NUMBERS)
_ARRAY_STYLES = {
    "torch": _Style("tensor", "torch.Tensor", "import torch\n", "torch.tensor", *_OF_ARRAYS, True),
    "numpy": _Style("array", "np.ndarray", "import numpy as np\n", "np.array", *_OF_ARRAYS),
}
_NUMBER_STYLE = _Style("number", "float", "", "", *_OF_NUMBERS)
