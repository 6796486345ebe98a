"""`grade class` writes the report on the class beside the results, with names or without."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path

import pytest

from grader.command.classroom import _write_results
from grader.read.course_file import read_course
from grader.read.ledger import open_ledger
from grader.types.ledger import Entry, HandIn, Version
from grader.types.report import Report

TINY = read_course(Path(__file__).parents[1] / "courses" / "tiny" / "course.toml")
NAMES = [f"name{n:02}" for n in range(20)]
REPORT = Report("Tiny", "x", "cpu", 0, 10, 0, (), ("seed 7",))


def written(folder: Path, *, anonymous: bool) -> str:
    args = argparse.Namespace(out=folder, junit=False, anonymous=anonymous)
    with open_ledger(folder, create=True) as ledger:
        for place, name in enumerate(NAMES):
            report = replace(REPORT, submission=name, score=float(place))
            entry = Entry(HandIn(name, name), Version("e", {}), 7, "cpu", report, "now", 1.0)
            ledger.add(entry, None)
        files = _write_results(args, ledger, TINY, TINY.assignments[0])
    assert [Path(file).name for file in files] == ["scores.csv", "results.jsonl", "report.html"]
    return (folder / "report.html").read_text("utf-8")


def test_the_report_has_everybody_by_name(tmp_path: Path) -> None:
    rows = re.findall(
        r'<th scope="row"><a href="#s\d+"><bdi>(\w+)', written(tmp_path, anonymous=False)
    )
    assert rows == NAMES


def test_without_names_the_order_tells_nothing_either(tmp_path: Path) -> None:
    html = written(tmp_path, anonymous=True)
    assert not any(name in html for name in NAMES)
    assert all(name in (tmp_path / "scores.csv").read_text("utf-8") for name in NAMES)
    rows = re.findall(r"<bdi>(Student \d+)</bdi></a></th><td data-v=\"(\d+)\"", html)
    assert [name for name, _ in rows] == [f"Student {n}" for n in range(1, 21)]
    points = [int(score) for _, score in rows]  # which were given in the order of the names
    assert sorted(points) == list(range(20)) and points != sorted(points)


@pytest.mark.parametrize("anonymous", [True, False])
def test_the_table_and_the_pages_agree(tmp_path: Path, anonymous: bool) -> None:
    html = written(tmp_path, anonymous=anonymous)
    row = re.findall(r'<a href="#(s\d+)"><bdi>([^<]+)</bdi></a></th><td data-v="(\d+)"', html)
    page = re.findall(
        r'<section class="student" id="(s\d+)".*?<h2[^>]*><bdi>([^<]+)</bdi>.*?<strong>(\d+)<',
        html,
        re.DOTALL,
    )
    assert row == page and len(page) == len(NAMES)
