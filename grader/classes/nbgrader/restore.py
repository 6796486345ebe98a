"""Makes of any submitted bytes a notebook that nbgrader can work on. Pure.

It restores what nbgrader relies on: each released cell once, with its metadata and locked text.
Everything that the student wrote stays, except outputs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.classes.nbgrader.types import ReleasedCell
from grader.learning.notebook.builder import TAG, notebook_file
from grader.read.submission import cell_source, notebook_cells, too_much_code
from grader.types.errors import SubmissionFileError
from grader.types.text import listed

_KINDS = ("code", "markdown", "raw")
_CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MINE = "nbgrader"
_OURS = "restored-"  # begins the id of a cell that had none
_NAMED = 3  # cells to name in one note
# A link or link definition whose target has, or may hide, a scheme of its own. The pattern reads no
# part of a text twice, so a text of nothing but links takes no longer than any other.
_LINK = re.compile(r"\](?=[(:][\w+.\\#;<\s\x00-\x1f-]*[:&])")
_HARMLESS = re.compile(r"\s*(https?://|mailto:)")
_ATTACHED = re.compile(r"\s*attachment:([\w.-]+)(?=[)\s]|\Z)", re.ASCII)
_PICTURES_CAP = 64 << 20  # characters of all pictures, each as often as a cell may show it
# Of a picture, its type and its bytes: some versions of what makes pages do not escape a quote.
_IMAGE, _BASE64 = re.compile(r"image/[\w.+-]+", re.ASCII), re.compile(r"[A-Za-z0-9+/=\s]*")


@dataclass(frozen=True)
class Restored:
    """A notebook of format 4.5, and a sentence for each change that was needed."""

    notebook: dict[str, Any]
    notes: tuple[str, ...]


def restored(data: bytes, released: Sequence[ReleasedCell]) -> Restored:
    """The notebook of these bytes, with each of the `released` cells in it once.

    If a cell appears twice, the last one counts, as in nbgrader.
    """
    found, notes = _cells(data)
    known = {cell.grade_id: cell for cell in released}
    cells: list[dict[str, Any]] = []
    seen: set[str] = set()
    twice, changed, missing = set(), set(), set()
    for cell in reversed(found):
        grade_id = grade_id_of(cell)
        cell["metadata"].pop(_MINE, None)
        if grade_id in seen:
            twice.add(grade_id)
        elif grade_id in known:
            seen.add(grade_id)
            here = known[grade_id]
            if cell["cell_type"] != here.cell_type:
                cost = ", so its code was not graded: make it a code cell" if here.solution else ""
                notes.append(f"The cell {grade_id} had become a {cell['cell_type']} cell{cost}.")
            if here.locked and cell["source"].splitlines() != here.source.splitlines():
                changed.add(grade_id)
            cell = _as_released(cell, here)
        if grade_id not in known or not known[grade_id].locked:
            _disarm(cell)
        cells.append(cell)
    cells.reverse()
    for number, here in enumerate(released):
        if here.grade_id in seen:
            continue
        seen.add(here.grade_id)
        missing.add(here.grade_id)
        empty = _plain_cell({"cell_type": here.cell_type, "source": here.source})
        if here.solution:
            empty["source"] = "# This cell was missing from the notebook."
        before = {other.grade_id for other in released[:number]}
        places = [place for place, other in enumerate(cells) if grade_id_of(other) in before]
        cells.insert(places[-1] + 1 if places else 0, _as_released(empty, here))
    if found:
        notes += _noted(twice, known, "there more than once; the last one counts")
        notes += _noted(changed, known, "changed and restored")
        notes += _noted(missing, known, "missing and restored")
    _number(cells)
    return Restored(notebook_file(cells), tuple(notes))


def _cells(data: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    """The readable cells, without outputs, and notes on the others."""
    try:
        cells = notebook_cells(data)
    except SubmissionFileError as error:
        return [], [f"The file {error}."]
    usable = [cell for cell in cells if isinstance(cell, dict) and cell.get("cell_type") in _KINDS]
    lost = len(cells) - len(usable)
    notes = [f"{lost} of its {len(cells)} cells cannot be read."] if lost else []
    why = too_much_code([cell_source(cell) for cell in usable if cell["cell_type"] == "code"])
    if why:
        notes.append(f"The file {why}.")
    plain = [_plain_cell(cell) for cell in usable]
    _drop_pictures(plain)
    return plain, notes


def grade_id_of(cell: Any) -> str | None:
    """The grade_id of a cell; `cell` may be of any type."""
    for key in ("metadata", _MINE, "grade_id"):
        cell = cell.get(key) if isinstance(cell, dict) else None
    return cell if isinstance(cell, str) else None


def cell_metadata(
    grade_id: str, *, locked: bool, solution: bool, points: float | None, **more: str | None
) -> dict[str, Any]:
    """What nbgrader's metadata say of a cell; one with `points` is graded."""
    about = {"grade_id": grade_id, "grade": points is not None, "locked": locked}
    known = {"schema_version": 3, **about, "solution": solution, "task": False, **more}
    return {key: value for key, value in (known | {"points": points}).items() if value is not None}


def _plain_cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    """The cell with only its text, its pictures and its grade_id."""
    grade_id = grade_id_of(cell)
    plain: dict[str, Any] = {
        "cell_type": cell["cell_type"],
        "id": cell.get("id"),
        "metadata": {_MINE: {"grade_id": grade_id}} if grade_id is not None else {},
        "source": _whole(cell_source(cell)),
    }
    pictures = _pictures(cell.get("attachments"))
    if pictures:
        plain["attachments"] = pictures
    return _typed(plain, cell["cell_type"])


def _drop_pictures(cells: Iterable[dict[str, Any]]) -> None:
    """Drop the pictures with which a page would be too large: it holds each as often as shown."""
    room = _PICTURES_CAP
    for cell in cells:
        kinds = cell.get("attachments", {}).values()
        largest = max((len(data) for each in kinds for data in each.values()), default=0)
        room -= largest * cell["source"].count("![")
        if room < 0:
            cell.pop("attachments", None)


def _pictures(attachments: Any) -> dict[str, dict[str, str]]:
    """The attachments that are pictures, as the notebook format has them."""
    return {
        _whole(name): kinds
        for name, kinds in (attachments.items() if isinstance(attachments, dict) else ())
        if isinstance(kinds, dict) and kinds and all(_is_picture(*one) for one in kinds.items())
    }


def _is_picture(kind: str, data: Any) -> bool:
    is_text = isinstance(data, str)
    return is_text and bool(_IMAGE.fullmatch(kind) and _BASE64.fullmatch(data))


def _whole(text: str) -> str:
    """The text with each lone surrogate, which no file can hold, as a question mark."""
    return text.encode("utf-8", "replace").decode()


def _typed(cell: dict[str, Any], kind: str) -> dict[str, Any]:
    cell["cell_type"] = kind
    for key in ("outputs", "execution_count"):
        cell.pop(key, None)
    if kind == "code":
        cell.pop("attachments", None)
        cell.update(outputs=[], execution_count=None)
    return cell


def _as_released(cell: dict[str, Any], released: ReleasedCell) -> dict[str, Any]:
    """The cell with the metadata of its release, and with the released text if that is locked."""
    if cell["cell_type"] != released.cell_type:
        _typed(cell, released.cell_type)
    if released.locked:
        cell["source"] = released.source
    cell["metadata"][_MINE] = cell_metadata(
        released.grade_id,
        locked=released.locked,
        solution=released.solution,
        points=released.points,
        cell_type=released.cell_type,
        checksum=released.checksum,
    )
    return cell


def _noted(found: Collection[str], order: Iterable[str], what: str) -> list[str]:
    """One sentence on all these cells, in order; it names the first `_NAMED`."""
    names = [grade_id for grade_id in order if grade_id in found]
    start, verb = ("The cells", "were") if names[1:] else ("The cell", "was")
    return [f"{start} {listed(names, most=_NAMED)} {verb} {what}."] if names else []


def _disarm(cell: dict[str, Any]) -> None:
    """Make a student's cell harmless in the browser of an instructor who opens formgrader.

    Tags become text. So do all links but those to web pages and to the cell's own pictures, because
    nbgrader cannot make a page of a cell whose picture is missing.

    """
    if cell["cell_type"] == "raw":  # a page would show it unescaped
        lines = cell["source"].split("\n")
        _typed(cell, "markdown")["source"] = "\n".join(f"    {line}" for line in lines)
    elif cell["cell_type"] == "markdown":
        pictures = cell.get("attachments", {})

        def shown(link: re.Match[str]) -> str:
            target = link.end() + 1  # after the bracket or the colon
            attached = _ATTACHED.match(link.string, target)
            if _HARMLESS.match(link.string, target) or (attached and attached[1] in pictures):
                return link[0]
            return "]\\"

        cell["source"] = _LINK.sub(shown, TAG.sub("&lt;", cell["source"]))


def _number(cells: Sequence[dict[str, Any]]) -> None:
    """Give every cell a valid and unique id, also if a student's looks like one of ours."""
    taken: set[str] = set()
    for number, cell in enumerate(cells):
        name = cell["id"]
        is_valid = isinstance(name, str) and _CELL_ID.fullmatch(name)
        if not is_valid or name in taken or name.startswith(_OURS):
            cell["id"] = name = f"{_OURS}{number}"
        taken.add(name)
