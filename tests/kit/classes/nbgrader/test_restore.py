"""Whatever was handed in becomes a notebook that nbgrader can work on; nothing written is lost."""

import json
import re
from typing import Any

import nbformat
import pytest
from nbconvert.filters import markdown2html
from nbgrader.nbgraderformat import MetadataValidator

from grader.classes.nbgrader.restore import restored
from grader.classes.nbgrader.types import ReleasedCell

START = ReleasedCell("start", "code", "%load_ext grader", True, "0" * 32)
FOLD = ReleasedCell("fold-code", "code", "def fold(): ...", False, "1" * 32, solution=True)
CHECK = ReleasedCell("fold", "code", 'grade_here("fold")', True, "2" * 32, points=4.0)
RELEASED = (START, FOLD, CHECK)


def cell(source: str = "", grade_id: str | None = None, **others: Any) -> dict[str, Any]:
    metadata = {} if grade_id is None else {"nbgrader": {"grade_id": grade_id}}
    return {"cell_type": "code", "metadata": metadata, "source": source, **others}


def data(*cells: Any, **others: Any) -> bytes:
    return json.dumps({"cells": list(cells), "nbformat": 4, **others}).encode()


def as_handed_out() -> list[dict[str, Any]]:
    return [cell(c.source, c.grade_id) for c in RELEASED]


def ids(notebook: dict[str, Any]) -> list[str | None]:
    return [c["metadata"].get("nbgrader", {}).get("grade_id") for c in notebook["cells"]]


BROKEN = {
    "empty": b"",
    "not JSON": b"{'cells'",
    "not UTF-8": b"\xff\xfe\x00",
    "deeply nested": b"[" * 100_000,
    "a list": b"[]",
    "no cells": b"{}",
    "cells of no kind": data({"cell_type": "??"}, 3, None, []),
    "metadata of no kind": data({"cell_type": "code", "metadata": [], "source": {}}),
    "nbgrader of no kind": data(cell(metadata={"nbgrader": "yes"}), cell(metadata=None)),
    "ids of no kind": data(cell(id="a b"), cell(id=7), cell(id="x"), cell(id="x")),
    "ids that look like ours": data(cell(id="restored-4"), cell(id="a b")),
    "a grade_id of no kind": data(cell(metadata={"nbgrader": {"grade_id": ["fold"]}})),
    "metadata that the format forbids": data(cell(metadata={"tags": 3, "collapsed": "x"})),
    "attachments of no kind": data(
        {"cell_type": "markdown", "source": "", "attachments": {"a.png": 3}, "metadata": {}},
        {"cell_type": "markdown", "source": "", "attachments": {"a.png": {}}, "metadata": {}},
    ),
    "lone surrogates": data(cell("x = '\ud800'")),
    "sources of lines": data(cell(source=["a\n", 3, "b"])),
    "outputs of no kind": data(cell(outputs="none", execution_count="x")),
    "format 3": json.dumps({"worksheets": [], "nbformat": 3}).encode(),
    "as handed out": data(*as_handed_out()),
}


@pytest.mark.parametrize("handed_in", BROKEN.values(), ids=BROKEN)
def test_always_valid_with_every_released_cell_once(handed_in: bytes) -> None:
    notebook = restored(handed_in, RELEASED).notebook
    assert len({each["id"] for each in notebook["cells"]}) == len(notebook["cells"])
    node = nbformat.from_dict(notebook)
    nbformat.validate(node)
    MetadataValidator().validate_nb(node)
    assert [name for name in ids(notebook) if name] == ["start", "fold-code", "fold"]
    json.dumps(notebook, ensure_ascii=False).encode()


def test_an_untouched_notebook_needs_no_mending() -> None:
    assert restored(data(*as_handed_out()), RELEASED).notes == ()


def test_what_a_student_wrote_stays_where_it_was() -> None:
    cells = as_handed_out()
    cells[1]["source"] = ["def fold():\n", "    return 1\n"]
    cells.insert(2, cell("mine = 1"))
    cells.insert(0, {"cell_type": "markdown", "metadata": {}, "source": "hello"})
    notebook = restored(data(*cells), RELEASED).notebook
    sources = [c["source"] for c in notebook["cells"]]
    assert sources[0] == "hello"
    assert sources[2:4] == ["def fold():\n    return 1\n", "mine = 1"]


def test_of_a_cell_that_is_there_twice_the_last_one_counts() -> None:
    cells = as_handed_out()
    cells.insert(1, cell("first", "fold-code"))
    result = restored(data(*cells), RELEASED)
    assert ids(result.notebook) == ["start", None, "fold-code", "fold"]
    assert result.notes == ("The cell fold-code was there more than once; the last one counts.",)


def test_a_locked_cell_is_put_back_as_it_was() -> None:
    cells = as_handed_out()
    cells[2]["source"] = "4.0"
    result = restored(data(*cells), RELEASED)
    assert result.notebook["cells"][2]["source"] == CHECK.source
    assert result.notes == ("The cell fold was changed and restored.",)


def test_other_ends_of_lines_are_no_change() -> None:
    lines = ReleasedCell("lines", "markdown", "one\ntwo", True, None)
    cells = [{**cell("one\r\ntwo\r\n", "lines"), "cell_type": "markdown"}]
    result = restored(data(*cells), (lines,))
    assert (result.notebook["cells"][0]["source"], result.notes) == ("one\ntwo", ())


def test_metadata_that_was_changed_is_as_it_was_released() -> None:
    cells = as_handed_out()
    cells[2]["metadata"]["nbgrader"].update(points=1000, grade=False, locked=False)
    known = restored(data(*cells), RELEASED).notebook["cells"][2]["metadata"]["nbgrader"]
    assert (known["points"], known["grade"], known["locked"]) == (4.0, True, True)
    assert (known["schema_version"], known["checksum"]) == (3, CHECK.checksum)


def test_a_cell_of_another_kind_becomes_what_it_was() -> None:
    cells = as_handed_out()
    cells[1]["cell_type"] = "markdown"
    result = restored(data(*cells), RELEASED)
    assert result.notebook["cells"][1]["cell_type"] == "code"
    (note,) = result.notes
    assert note.startswith("The cell fold-code had become a markdown cell, so its code was not ")
    assert note.endswith(": make it a code cell.")


def test_a_deleted_cell_comes_back_in_its_place() -> None:
    start, fold, check = as_handed_out()
    after = cell("after")
    result = restored(data(start, fold, after), RELEASED)
    assert ids(result.notebook) == ["start", "fold-code", "fold", None]
    assert result.notes == ("The cell fold was missing and restored.",)
    result = restored(data(start, check, after), RELEASED)
    assert ids(result.notebook) == ["start", "fold-code", "fold", None]
    assert result.notebook["cells"][1]["source"] == "# This cell was missing from the notebook."


def test_what_is_to_be_said_of_many_cells_is_said_once() -> None:
    bird = ReleasedCell("bird", "markdown", "a bird", True, None)
    without = restored(data(cell("mine")), (*RELEASED, bird)).notes
    assert without == ("The cells start, fold-code, fold and 1 more were missing and restored.",)
    (twice,) = restored(data(*as_handed_out()[:2], *as_handed_out()), RELEASED).notes
    assert twice == "The cells start and fold-code were there more than once; the last one counts."


def test_a_notebook_of_more_code_than_is_graded_says_so() -> None:
    assert restored(data(*as_handed_out(), cell("#" * (1 << 20))), RELEASED).notes == (
        "The file has more than 1 MiB of code.",
    )


def test_outputs_are_left_out() -> None:
    forged = {"output_type": "execute_result", "data": {"text/plain": "4"}, "metadata": {}}
    cells = as_handed_out()
    cells[2].update(outputs=[{**forged, "execution_count": 1}], execution_count=1)
    assert restored(data(*cells), RELEASED).notebook["cells"][2]["outputs"] == []


def test_no_tag_of_a_students_acts_in_a_browser() -> None:
    evil = '1 < 2 <script src="x">f()</script><IMG onerror=f()><!--'
    texts = [{"cell_type": kind, "metadata": {}, "source": evil} for kind in ("markdown", "raw")]
    notebook = restored(data(*texts, *as_handed_out()), RELEASED).notebook
    markdown, raw = notebook["cells"][:2]
    assert markdown["source"] == (
        '1 < 2 &lt;script src="x">f()&lt;/script>&lt;IMG onerror=f()>&lt;!--'
    )
    assert (raw["cell_type"], raw["source"]) == ("markdown", f"    {evil}")


@pytest.mark.parametrize(
    "link",
    [
        *(
            "[a](javascript:f)",
            "[a](JavaScript:f)",
            "[a](javascript\\:f)",
            "[a](java&#115;cript:f)",
        ),
        *("[a](javascript&colon;f)", "[a](< java\tscript:f>)", "[a]( \n javascript:f)"),
        *("[a][r]\n\n[r]: javascript:f", "[a]\n\n[a]:\n  javascript:f", "![a](data:text/html,f)"),
        *("[a](https://x)[b](javascript:f)", "![p](attachment:gone.png)", "<javascript:f>"),
    ],
)
def test_no_link_of_a_students_acts_or_stops_nbgrader(link: str) -> None:
    text = {"cell_type": "markdown", "metadata": {}, "source": link}
    notebook = restored(data(text, *as_handed_out()), RELEASED).notebook
    html = markdown2html(notebook["cells"][0]["source"])
    assert re.findall(r'(?:href|src)="(?!https:)', html) == []


@pytest.mark.parametrize(
    "text",
    ["[a](https://x.y/z)", "[a](#part)", "[a](notes.md)", "`d[k]: int`", "![p](attachment:a.png)"],
)
def test_a_link_to_a_page_or_a_picture_that_is_there_stays(text: str) -> None:
    pasted = {"a.png": {"image/png": "AAAA"}}
    whole = {"cell_type": "markdown", "metadata": {}, "source": text, "attachments": pasted}
    first, *_ = restored(data(whole, *as_handed_out()), RELEASED).notebook["cells"]
    assert (first["source"], first["attachments"]) == (text, pasted)


@pytest.mark.parametrize(
    ("kind", "picture"),
    [("image/png", 'AA" onerror="f'), ('image/x" onerror="f', "AAAA"), ("text/html", "AAAA")],
)
def test_an_attachment_that_is_no_picture_is_dropped(kind: str, picture: str) -> None:
    attached = {"a.png": {kind: picture}}  # which mistune 3.0 would put into the page as it is
    whole = {"cell_type": "markdown", "source": "![p](attachment:a.png)", "attachments": attached}
    first, *_ = restored(data(whole, *as_handed_out()), RELEASED).notebook["cells"]
    assert (first["source"], "attachments" in first) == ("![p]\\(attachment:a.png)", False)


def test_pictures_that_are_shown_too_often_for_a_page_are_dropped():
    pasted = {"a.png": {"image/png": "A" * (1 << 20)}}
    one = {"cell_type": "markdown", "source": "![p][r]\n\n[r]: attachment:a.png"}
    often = {**one, "source": "![p][r]" * 64 + one["source"]}
    cells = [{**each, "attachments": pasted} for each in (one, often, one)]
    found = restored(data(*cells, *as_handed_out()), RELEASED).notebook["cells"][:3]
    assert ["attachments" in each for each in found] == [True, False, False]
    assert "]\\: attachment:a.png" in found[1]["source"]


def test_foreign_grade_ids_are_no_cells_of_ours() -> None:
    notebook = restored(data(*as_handed_out(), cell("x", "other")), RELEASED).notebook
    assert ids(notebook) == ["start", "fold-code", "fold", None]
