"""Which file of a student's folder counts, and when it was handed in."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import pytest
from nbgrader.utils import parse_utc

from grader.read.handed_in import read_handed_in


def notebook(*grade_ids: str) -> str:
    return json.dumps({"cells": [{"metadata": {"nbgrader": {"grade_id": g}}} for g in grade_ids]})


def test_the_notebook_of_the_right_name_counts(tmp_path: Path) -> None:
    (tmp_path / "birds.ipynb").write_text("right")
    (tmp_path / "another.ipynb").write_text(notebook("fold", "bird"))
    found = read_handed_in(tmp_path, "ann", "birds", ["fold", "bird"])
    assert (found.student, found.data, found.notes) == ("ann", b"right", ())
    assert found.file == tmp_path / "birds.ipynb"


def test_else_the_one_that_has_most_of_its_cells(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook())
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "Birds (1).IPYNB").write_text(notebook("fold", "bird", "x"))
    (tmp_path / "c.ipynb").write_text(notebook("fold"))
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "d.ipynb").write_text(notebook("fold", "bird", "y"))
    found = read_handed_in(tmp_path, "ann", "birds", ["fold", "bird"])
    assert found.file is not None and found.file.name == "Birds (1).IPYNB"
    assert found.notes == ("There is no birds.ipynb, so deep/Birds (1).IPYNB was graded.",)


def test_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "birds.py").write_text("x")
    found = read_handed_in(tmp_path, "ann", "birds")
    assert (found.file, found.data, found.when) == (None, b"", None)
    assert found.notes == ("There is no notebook: birds.ipynb was not handed in.",)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_no_regular_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    folder = tmp_path / "ann"
    folder.mkdir()
    path = folder / "birds.ipynb"
    {
        "folder": path.mkdir,
        "link": lambda: path.symlink_to(secret),
        "pipe": lambda: os.mkfifo(path),
    }[kind]()
    found = read_handed_in(folder, "ann", "birds")
    assert (found.file, found.data) == (None, b"")
    assert len(found.notes) == 1


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-02 15:58:23.948203 America/Los_Angeles",
        "2026-07-05 10:00:00.123456 Europe/Berlin",
        "2026-01-05 10:00:00.000000 UTC",
        "2026-01-05 10:00:00",
        "2026-01-05T10:00:00Z",
        "2026-01-05 10:00:00 +0000",
    ],
)
def test_the_time_is_the_one_that_nbgrader_reads(tmp_path: Path, text: str) -> None:
    (tmp_path / "timestamp.txt").write_text(text)
    assert read_handed_in(tmp_path, "ann", "birds").when == parse_utc(text)


@pytest.mark.parametrize("text", ["", "yesterday", "99999999999999999999", "\ufffd\n\n2026"])
def test_a_time_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "timestamp.txt").write_text(text, encoding="utf-8")
    assert isinstance(read_handed_in(tmp_path, "ann", "birds").when, datetime | None)
