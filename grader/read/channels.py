"""What other systems hand over and are handed: students' uploads, scores, a whole course's files.

What begins with `read` reads, the rest is pure.
"""

from __future__ import annotations

import ast
import csv
import io
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from grader.read.course_file import FILE_NAME
from grader.read.downloads import ARCHIVE, Heap, read_files
from grader.read.handed_in import choose_notebook, most_like_it, told_of_name
from grader.read.notebook import solution_id
from grader.read.stubs import read_stub, same_but_for_words
from grader.read.submission import (
    NOTEBOOK_CAP,
    is_left_out,
    parse_cells,
    read_submission,
    regular_bytes,
    script,
    text_definitions,
)
from grader.read.workspace import installed_folder
from grader.types.course import Course, Stage
from grader.types.errors import KitError, SubmissionFileError
from grader.types.submission import Submission
from grader.types.text import safe

_COURSE_FOLDERS = ("solutions", "hints", "tests/checks")
_CONSTRAINTS = "constraints.txt"
# What browsers and file managers add to a name: "x (1)", "x - Copy", "Copy of x", "x copy 2".
_ADDED = re.compile(r"^copy of\s+|\s*\(\d+\)$|[\s_-]+copy(\s*\d+)?$|[\s_-]+\d+$", re.IGNORECASE)


# The columns of `nbgrader export`, which quotes nothing: a comma in a name shifts those after it.
_EXPORT = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)
_TABLE_CAP = 32 << 20  # bytes of a CSV file
_ARCHIVES_CAP = 20  # of one student
_NAMED, _NAME_SHOWN = 3, 60  # files that are no answers, and characters of a name


@dataclass(frozen=True)
class Scores:
    """Scores of one assignment by login; who has handed nothing in has none."""

    by_login: Mapping[str, float]
    max_score: float | None


@dataclass(frozen=True)
class Upload:
    """What counts of what a student has uploaded; `notes` say what was odd, a sentence each."""

    submission: Submission
    notes: tuple[str, ...] = ()


def read_upload(folder: Path, stages: tuple[Stage, ...], notebook: str) -> Upload:
    """The submission in a folder that a student has filled, where `notebook`.ipynb is expected.

    The .py files count if there is a stage's among them, whatever folder they are in, unless none
    is begun and there is a notebook. Where there is neither, archives are looked into. Raises
    SubmissionFileError, which says what is wrong.
    """
    found, others = choose_notebook(folder, notebook, _grade_ids(stages))
    try:
        files: Mapping[str, bytes] = read_submission(folder).files
    except SubmissionFileError as error:
        if found is None:
            raise SubmissionFileError(_without(error, folder)) from None
        files = {}
    upload = chosen(files, stages)
    if found is not None and (upload is None or not _begun(upload.submission, stages)):
        shown = found.relative_to(folder).as_posix()
        try:
            data = regular_bytes(found, NOTEBOOK_CAP)
        except SubmissionFileError as error:
            raise SubmissionFileError(_without(error, folder)) from None
        return _notebook(data, shown, notebook, others, stages)
    if upload is not None:
        return upload
    archives = sorted(path for path in folder.iterdir() if path.suffix.lower() == ARCHIVE)
    if not archives:
        raise _nothing(stages, notebook, (path.name for path in folder.iterdir()))
    try:
        heap = read_files((path.name, path) for path in archives[:_ARCHIVES_CAP])
    except SubmissionFileError as error:
        raise SubmissionFileError(_without(error, folder)) from None
    return heap_upload(heap, stages, notebook)


def heap_upload(heap: Heap, stages: tuple[Stage, ...], notebook: str) -> Upload:
    """What counts of a heap of files, by the rules of `read_upload`. Raises SubmissionFileError."""
    upload = chosen(heap.files, stages)
    if heap.notebooks and (upload is None or not _begun(upload.submission, stages)):
        shown, others = f"{notebook}.ipynb", []
        if shown not in heap.notebooks:
            shown, *others = most_like_it(sorted(heap.notebooks.items()), _grade_ids(stages))
        return _notebook(heap.notebooks[shown], shown, notebook, others, stages)
    if upload is None:
        raise _nothing(stages, notebook, [*heap.files, *heap.others])
    return upload


def _grade_ids(stages: Iterable[Stage]) -> list[str]:
    """The cells that a notebook of these stages has been handed out with."""
    return [name for stage in stages for name in (stage.slug, solution_id(stage))]


def _nothing(stages: tuple[Stage, ...], notebook: str, names: Iterable[str]) -> SubmissionFileError:
    """What is said where there is nothing but files of other names."""
    there = sorted(name for name in names if not is_left_out(name))
    named = ", ".join(name[:_NAME_SHOWN] for name in there[:_NAMED])
    more = f" and {len(there) - _NAMED} more" if len(there) > _NAMED else ""
    wanted = f"{notebook}.ipynb or {', '.join(stage.file_name for stage in stages)}"
    said = f" but {named}{more}" if there else ""
    return SubmissionFileError(f"There is nothing to grade here{said}: hand in {wanted}")


def chosen(files: Mapping[str, bytes], stages: tuple[Stage, ...]) -> Upload | None:
    """What counts of these .py files by their paths; None if there is none.

    That is the folder with the most files of stages, in which a file whose name is nearly right
    counts for the stage that has no other; or else one file alone, which may hold them all.
    """
    folders: dict[str, dict[str, bytes]] = {}
    for path, data in files.items():
        for parent in PurePosixPath(path).parents:
            name = PurePosixPath(path).relative_to(parent).as_posix()
            folders.setdefault(str(parent), {})[name] = data
    best: tuple[int, int, str] | None = None
    for folder, found in folders.items():
        rank = (-len(_named(found, stages)), folder.count("/") + (folder != "."), folder)
        if rank[0] and (best is None or rank < best):
            best = rank
    if best is None:
        if len(files) != 1:
            return None
        (path, data), *_ = files.items()
        name = PurePosixPath(path).name
        return Upload(script(path, name, data))
    counted = folders[best[2]]
    names = _named(counted, stages)
    notes = tuple(f"{safe(old)} was taken for {new}." for new, old in names.items() if old != new)
    kept = {path: data for path, data in counted.items() if path not in names.values()}
    kept |= {new: counted[old] for new, old in names.items()}
    return Upload(Submission("the .py files", dict(sorted(kept.items()))), notes)


def read_course_files(course: Course) -> Iterator[tuple[str, bytes]]:
    """The path and the bytes of each file that grading needs, relative to the course's folder."""
    yield FILE_NAME, (course.root / FILE_NAME).read_bytes()
    for name in _COURSE_FOLDERS:
        yield from _tree(course.root / name, course.root)


def read_engine_files() -> Iterator[tuple[str, bytes]]:
    """The path and the bytes of each file of the engine: grader/..."""
    package = Path(__file__).resolve().parents[1]
    yield from _tree(package, package.parent)


def read_constraints(course: Course) -> bytes:
    """The versions that a grading system is to install: the course's own constraints.txt or the
    kit's. Raises KitError.
    """
    kit = installed_folder()
    for folder in (course.root, kit.parent, kit / "kit"):
        if (folder / _CONSTRAINTS).is_file():
            return (folder / _CONSTRAINTS).read_bytes()
    raise KitError(
        f"{course.root}: has no {_CONSTRAINTS}: write there the versions to install, "
        "as `pip freeze` prints them"
    )


def visible_points(source: str) -> float:
    """What the checks in a check file's source are worth together."""
    points = 0.0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for decorator in node.decorator_list:
                is_points = isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == (
                    "pytest.mark.points"
                )
                if is_points and isinstance(decorator, ast.Call):
                    points += float(ast.literal_eval(decorator.args[0]))
    return points


def read_text(path: Path) -> str:
    """The text of a table in UTF-8, a byte order mark left as it is. Raises KitError."""
    try:
        return regular_bytes(path, _TABLE_CAP).decode("utf-8")
    except UnicodeDecodeError:
        raise KitError(f"{path}: is not UTF-8: export it as CSV in UTF-8") from None


def parse_table(text: str) -> tuple[list[list[str]], str]:
    """The rows of a CSV file's text, and what stands between two cells: a comma or a semicolon."""
    first = text.removeprefix("\ufeff").split("\n", 1)[0]
    between = ";" if first.count(";") > first.count(",") else ","
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=between)
    return [row for row in rows if row], between


def parse_scores(text: str, assignment: str | None, place: str) -> Scores:
    """The scores of one assignment in a table with the columns student_id and score.

    The export of nbgrader is one: it may hold several assignments, of which `assignment` names one,
    and gives 0 to a student who has handed nothing in, who has no score here. Raises KitError.
    """
    rows, _ = parse_table(text)
    header = [name.strip() for name in rows[0]] if rows else []
    if "student_id" not in header or "score" not in header:
        raise KitError(f"{place}: has no columns 'student_id' and 'score' in its first row")
    records = [(number, _record(row, header)) for number, row in enumerate(rows[1:], start=2)]
    names = sorted({record.get("assignment", "") for _, record in records})
    if assignment is None and len(names) > 1:
        raise KitError(
            f"{place}: has several assignments: name one with --from: {', '.join(names)}"
        )
    if assignment is not None and assignment not in names:
        raise KitError(f"{place}: has no assignment '{assignment}', but {', '.join(names)}")
    found: dict[str, float] = {}
    seen: set[str] = set()
    max_score: float | None = None
    for number, record in records:
        if assignment is not None and record.get("assignment") != assignment:
            continue
        login = record["student_id"].strip()
        if login in seen:
            raise KitError(f"{place}:{number}: '{login}' is there twice")
        seen.add(login)
        score = _number(record["score"], f"{place}:{number}")
        if score == 0 and record.get("timestamp") == "":
            continue
        found[login] = score
        if record.get("max_score"):
            max_score = _number(record["max_score"], f"{place}:{number}")
    return Scores(found, max_score)


def _record(row: list[str], header: list[str]) -> dict[str, str]:
    """A row by its column names."""
    if tuple(header) == _EXPORT and len(row) > len(header):
        row = [*row[:4], "", "", "", *row[-4:]]  # neither a name nor an address is needed here
    return dict(zip(header, [*row, *[""] * (len(header) - len(row))], strict=False))


def _number(text: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise KitError(f"{place}: {text!r} is no score")
    return value


def _named(files: Mapping[str, bytes], stages: tuple[Stage, ...]) -> dict[str, str]:
    """The file name of each stage that is there, and what the file is called really."""
    found = {stage.file_name: stage.file_name for stage in stages if stage.file_name in files}
    wanted = {stage.slug: stage.file_name for stage in stages if stage.file_name not in found}
    for path in sorted(files):
        stem = path.removesuffix(".py")
        slug = re.sub(r"[^a-z0-9]+", "_", _ADDED.sub("", stem).lower()).strip("_")
        name = None if "/" in path else wanted.pop(slug, None)
        if name is not None:
            found[name] = path
    return found


def _begun(submission: Submission, stages: tuple[Stage, ...]) -> bool:
    """Whether somebody has worked in a stage's file: it is no longer the stub."""
    stubs = {stage.file_name: stage for stage in stages}
    return any(
        not same_but_for_words(data.decode("utf-8-sig", "replace"), read_stub(stubs[name]))
        for name, data in submission.files.items()
        if name in stubs
    )


def _notebook(
    data: bytes, shown: str, name: str, others: Sequence[str], stages: tuple[Stage, ...]
) -> Upload:
    shown = safe(shown)
    cells = parse_cells(data, shown)
    notes = [*told_of_name(shown, name, others), *told_of_text(data, stages)]
    return Upload(Submission(shown, {}, cells=cells), tuple(notes))


def told_of_text(data: bytes, stages: Iterable[Stage]) -> list[str]:
    """What is odd about a notebook some of whose answers are in text cells, in a sentence."""
    asked = [entry.name for stage in stages for entry in stage.entry_points]
    found = text_definitions(data, asked)
    if not found:
        return []
    stand = "stands" if len(found) == 1 else "stand"
    return [f"{', '.join(found)} {stand} in a text cell, which is not run."]


def _without(error: SubmissionFileError, folder: Path) -> str:
    """What is wrong, in words for the student: without the path of a folder of the server."""
    text = str(error).replace(f"{folder}{os.sep}", "")
    return text.replace(str(folder), "what you handed in")


def _tree(folder: Path, root: Path) -> Iterator[tuple[str, bytes]]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and not path.is_symlink() and path.suffix != ".pyc":
                yield path.relative_to(root).as_posix(), path.read_bytes()
