"""The ledger keeps every verdict and all that it takes to come to it again."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from grader.classes.folder.ledger import FILE, Ledger, open_ledger
from grader.classes.folder.types import LedgerEntry, SubmissionRecord, Version
from grader.classes.folder.versions import content_of
from grader.types.errors import KitError
from grader.types.report import CheckResult, Diagnosis, Outcome, Report, StageResult, Status
from grader.types.submission import Submission

VERSION = Version("engine", {"fold": "1"})
CHECKS = (
    CheckResult("fold.x", "It folds", Outcome.PASSED, 1, 1, seconds=0.5),
    CheckResult(
        "fold.y", "Twice", Outcome.FAILED, 0, 2, "wrong\n  got  é", Diagnosis("half", "Half")
    ),
)
STAGE = StageResult("fold", "Fold", Status.FAILED, 1, 3, False, CHECKS)
REPORT = Report("birds", "ann", "cpu", 1, 3, 0, (STAGE,), ("seed 7",))
WHEN = datetime(2026, 1, 5, 9, tzinfo=timezone.utc)
RECORD = SubmissionRecord("ann", "c1", ("odd",), WHEN)
ENTRY = LedgerEntry(RECORD, VERSION, 7, "cpu", REPORT, WHEN, 0.25)
SUBMISSION = Submission("ann", {"fold.py": b"\xff\x00 bytes"})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "results", create=True) as ledger:
        yield ledger


def test_a_verdict_comes_back_as_it_went_in_when_the_file_is_opened_again(tmp_path: Path) -> None:
    with open_ledger(tmp_path, create=True) as ledger:
        ledger.add(ENTRY, SUBMISSION)
        ledger.note("seed", "7")
    with open_ledger(tmp_path, create=False) as ledger:
        assert ledger.latest_of("ann") == replace(ENTRY, number=1)
        assert ledger.latest_of("bob") is None
        assert (ledger.fact("seed"), ledger.fact("other")) == ("7", None)


@pytest.mark.parametrize(
    "submission",
    [
        SUBMISSION,
        Submission("ann", {"a.py": b"x = 1\r\n"}, script="a.py"),
        Submission("ann", {}, cells=("a = 'ü'", "", "\ud800")),
    ],
    ids=["files", "a script", "cells"],
)
def test_what_was_handed_in_comes_back_as_it_was(ledger: Ledger, submission: Submission) -> None:
    entry = replace(ENTRY, record=SubmissionRecord("ann", content_of(submission)))
    ledger.add(entry, submission)
    assert ledger.submission(entry) == submission


def test_the_last_verdict_counts_by_any_clock_and_the_others_stay(ledger: Ledger) -> None:
    for seed in (1, 2, 3):
        when = WHEN.replace(day=9 - seed)  # each day before the last
        ledger.add(replace(ENTRY, seed=seed, when=when), SUBMISSION)
    ledger.add(replace(ENTRY, record=SubmissionRecord("bob", "c1")), SUBMISSION)
    assert [(entry.student, entry.seed) for entry in ledger.latest()] == [("ann", 3), ("bob", 7)]
    assert [entry.seed for entry in ledger.history("ann")] == [1, 2, 3]
    assert ledger.students() == ["ann", "bob"]


def test_an_answer_that_is_not_what_its_digest_says_is_not_given_out(ledger: Ledger) -> None:
    entry = replace(ENTRY, record=SubmissionRecord("ann", content_of(Submission("bob", {}))))
    ledger.add(entry, SUBMISSION)
    with pytest.raises(KitError, match="the submission of ann is damaged"):
        ledger.submission(entry)


def test_a_proposed_verdict_counts_once_it_is_accepted(ledger: Ledger) -> None:
    ledger.add(ENTRY, SUBMISSION)
    ledger.add(replace(ENTRY, seed=8), None, proposed=True)
    assert [entry.seed for entry in ledger.latest()] == [7]
    assert [entry.seed for entry in ledger.proposed()] == [8]
    ledger.accept()
    assert [entry.seed for entry in ledger.latest()] == [8]
    assert list(ledger.proposed()) == []


def test_a_proposed_verdict_can_be_forgotten(ledger: Ledger) -> None:
    ledger.add(ENTRY, SUBMISSION)
    ledger.add(replace(ENTRY, seed=8), None, proposed=True)
    ledger.forget_proposed()
    assert ledger.latest_of("ann", proposed=True) is None
    ledger.accept()
    assert [entry.seed for entry in ledger.history("ann")] == [7]


def test_the_same_answers_are_found_for_the_same_version_only(ledger: Ledger) -> None:
    ledger.add(ENTRY, SUBMISSION)
    same = ledger.same("c1", VERSION)
    assert same is not None and same.student == "ann"
    for content, version in (
        ("c2", VERSION),
        ("c1", Version("other", VERSION.stages)),
        ("c1", Version("engine", {"fold": "2"})),
    ):
        assert ledger.same(content, version) is None


def test_what_is_only_proposed_is_the_same_only_where_that_will_do(ledger: Ledger) -> None:
    ledger.add(ENTRY, SUBMISSION, proposed=True)
    assert ledger.same("c1", VERSION) is None
    assert ledger.same("c1", VERSION, proposed=True) is not None


def test_a_verdict_without_a_report_is_kept_too(ledger: Ledger) -> None:
    lost = replace(ENTRY, report=None)
    ledger.add(lost, None)
    assert ledger.latest_of("ann") == replace(lost, number=1)
    assert ledger.same("c1", VERSION) is None


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KitError, match="has no results yet"), open_ledger(tmp_path, create=False):
        pass


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    for kind in ("text", "birds"):
        file = tmp_path / kind / FILE
        file.parent.mkdir()
        if kind == "text":
            file.write_text("no database at all, but text that is long enough" * 40)
        else:
            with closing(sqlite3.connect(file)) as database:
                database.execute("CREATE TABLE birds (name TEXT)")
        refused = pytest.raises(KitError, match="is not a ledger")
        with refused, open_ledger(file.parent, create=True):
            pass


def test_a_damaged_ledger_says_what_to_do(tmp_path: Path) -> None:
    with open_ledger(tmp_path, create=True) as ledger:
        ledger.note("a", "b")
    with open(tmp_path / FILE, "r+b") as file:
        file.seek(100)
        file.write(b"x" * 8000)
    refused = pytest.raises(KitError, match="restore the file from a backup")
    with refused, open_ledger(tmp_path, create=False) as ledger:
        ledger.students()


def test_a_ledger_that_cannot_be_opened_now_is_still_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.classes.folder.ledger._BUSY_SECONDS", 0)
    with closing(sqlite3.connect(tmp_path / FILE)) as other:
        other.execute("BEGIN EXCLUSIVE")
        locked = pytest.raises(KitError, match=f"{FILE}: database is locked$")
        with locked, open_ledger(tmp_path, create=True):
            pass
