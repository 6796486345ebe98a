"""`grade class` writes the report on the class beside the results, with names or without."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from grader.classes import command as classroom
from grader.classes.folder.ledger import open_ledger
from grader.classes.folder.results import write_results
from grader.classes.folder.types import LedgerEntry, SubmissionRecord, Version
from grader.classes.folder.versions import content_of
from grader.types.errors import KitError
from grader.types.report import CheckResult, Outcome, Report, StageResult, Status
from grader.types.submission import Submission
from tests.kit.support.checkout import TINY
from tests.kit.support.tiny import Capture, Typed

WHEN = datetime(2026, 1, 5, tzinfo=timezone.utc)
NAMES = [f"name{n:02}" for n in range(20)]
ODD = b"""def smooth(signal):
    edges = [place for place, value in enumerate(signal) if value * 3 > len(signal) // 2]
    while edges and signal.mean() < 0.75:
        signal = signal.roll(edges.pop(0), dims=-1).clamp(min=edges[-1] % 7)
    return signal.flip(0)[::-1].cumsum(dim=0) @ signal
"""
REPORT = Report("Tiny", "x", "cpu", 0, 10, 0, (), ("seed 7",))


def results(folder: Path, given: Mapping[str, tuple[Report, bytes]], **options: bool) -> list[str]:
    """Write the results of a class, by name a verdict and the code; the names of the files."""
    usual = {"junit": False, "anonymous": False, "similar": False, "since": None, "plain": True}
    args = argparse.Namespace(out=folder, **{**usual, **options})
    with open_ledger(folder, create=True) as ledger:
        for name, (report, code) in given.items():
            submission = Submission(name, {"smooth.py": code})
            record = SubmissionRecord(name, content_of(submission))
            entry = LedgerEntry(record, Version("e", {}), 7, "cpu", report, WHEN, 1.0)
            ledger.add(entry, submission)
        return write_results(args, ledger, TINY, TINY.assignments[0])


def written(folder: Path, **options: bool) -> str:
    given = {
        name: (replace(REPORT, submission=name, score=float(n)), ODD if n < 2 else b"x = 1")
        for n, name in enumerate(NAMES)
    }
    assert [Path(file).name for file in results(folder, given, **options)] == [
        *("scores.csv", "results.jsonl", "findings.csv", "findings.json", "report.html")
    ]
    return (folder / "report.html").read_text("utf-8")


def test_a_name_may_be_as_long_as_a_file_system_allows(tmp_path: Path) -> None:
    names = ["n" * 255, "n" * 254, "\u00e9" * 127, "n;=1+1"]
    results(tmp_path, dict.fromkeys(names, (REPORT, b"x = 1")), junit=True)
    assert len(list((tmp_path / "junit").iterdir())) == len(names)
    # Where a table is split at semicolons, this name is no formula.
    assert '\n"n;=1+1",' in (tmp_path / "scores.csv").read_text("utf-8")


def test_what_a_student_wrote_is_no_formula_where_tables_are_split_at_semicolons(
    tmp_path: Path,
) -> None:
    message = "RuntimeError: a;=1+1"
    check = CheckResult("smooth.c", "It is smooth", Outcome.FAILED, 0, 4, message)
    stage = StageResult("smooth", "Smooth", Status.FAILED, 0, 4, False, (check,))
    results(tmp_path, {"ann": (replace(REPORT, stages=(stage,)), b"x = 1")})
    table = (tmp_path / "findings.csv").read_text("utf-8")
    assert f'"{message}"' in table
    assert '""' in table and ",," not in table  # an empty cell is quoted too


def test_a_name_that_messages_need_as_a_number_is_told(tmp_path: Path, capsys: Capture) -> None:
    results(tmp_path, dict.fromkeys(("ann", "12"), (REPORT, b"x = 1")), anonymous=True)
    assert "'12' is a name and a number that messages need" in capsys.readouterr().err


def test_what_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").mkdir()
    with pytest.raises(
        KitError, match=r"results\.jsonl.*: cannot be written: .*; no verdict is lost"
    ):
        written(tmp_path)


def test_the_report_has_everybody_by_name(tmp_path: Path) -> None:
    rows = re.findall(r'<th scope="row"><a href="#s\d+"><bdi>(\w+)', written(tmp_path))
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


def test_answers_that_are_alike_are_listed_if_that_is_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("rapidfuzz", reason="rapidfuzz is not installed")
    assert "Not compared this time." in written(tmp_path)
    html = written(tmp_path, similar=True)
    (summary,) = re.findall("<summary>(.*?)</summary>", html)
    assert "name00" in summary and "name01" in summary and "100%" in summary
    assert html.count("signal = signal.roll(edges.pop(0)") == 2


def test_what_is_alike_is_not_for_a_page_without_names(refused: Typed) -> None:
    assert "remove --anonymous" in refused("class", "x", "--out", "y", "--similar", "--anonymous")


def test_a_missing_library_is_named_before_anything_is_graded(
    monkeypatch: pytest.MonkeyPatch, refused: Typed
) -> None:
    monkeypatch.setattr(classroom, "find_spec", lambda name: None)
    assert "pip install rapidfuzz" in refused("class", "x", "--out", "y", "--similar")
