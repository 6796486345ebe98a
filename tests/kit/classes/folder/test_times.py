"""When students submitted, from a table of one's own, of nbgrader or of Moodle."""

from datetime import datetime, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from grader.classes.folder.csv_files import csv_text
from grader.classes.folder.tables import csv_cell
from grader.classes.folder.times import Times, read_times
from grader.types.errors import KitError

BERLIN = ZoneInfo("Europe/Berlin")


def times(tmp_path: Path, text: str, zone: ZoneInfo | None = BERLIN) -> Times:
    file = tmp_path / "times.csv"
    file.write_text(text, encoding="utf-8")
    return read_times(file, zone, "heads")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    found = times(
        tmp_path,
        "\ufeffStudent;Submitted\nada;2026-07-01 23:59\nBob;2026-07-01T23:59:00Z\n"
        "cyn;2026-07-01T23:59:00-07:00\ndee;\neve;-\nfay;2026-10-25 02:30:00\n"
        "gus;2026-03-29 02:30:00\n",
    )
    assert found.of("ADA") == found.of(" ada ") == utc("2026-07-01T21:59")
    assert found.of("bob") == utc("2026-07-01T23:59")
    assert found.of("cyn") == utc("2026-07-02T06:59")
    assert found.of("fay") == utc("2026-10-25T00:30")  # of the hour that comes twice the first
    assert found.of("gus") == utc("2026-03-29T00:30")  # of an hour that is skipped the earlier
    assert (found.of("dee"), found.of("eve"), found.of("zed")) == (None, None, None)


def test_what_nbgrader_exports_is_in_utc(tmp_path: Path) -> None:
    text = "assignment,timestamp,student_id,score\nheads,2026-07-01 21:59:00.250000,ada,3\n"
    assert times(tmp_path, text).of("ada") == utc("2026-07-01T21:59:00.250")
    assert times(tmp_path, text, None).of("ada") is not None


def test_of_several_assignments_only_its_own_times_count(tmp_path: Path) -> None:
    text = "assignment,timestamp,student_id\nheads,2026-07-01 21:00,ada\ntails,2026-08-01 21:00,"
    found = times(tmp_path, f"{text}ada\ntails,2026-08-01 21:00,bob\n")
    assert (found.of("ada"), found.of("bob")) == (utc("2026-07-01T21:00"), None)
    found = times(tmp_path, "assignment,timestamp,student_id\nother,2026-07-01 21:00,ada\n")
    assert found.of("ada") == utc("2026-07-01T21:00")  # it is the only one
    with pytest.raises(KitError, match="has several assignments, and none is 'heads'"):
        times(tmp_path, f"{text.replace('heads', 'wings')}ada\n")


def test_who_is_in_the_table_and_not_in_the_class_is_named(tmp_path: Path) -> None:
    rows = "".join(f"{name},2026-07-01T00:00Z\n" for name in ("Ada", "Zed", "Participant 7"))
    found = times(tmp_path, f"student,submitted\n{rows}")
    assert found.others(["ADA", "Zed", "Bob_7"]) == []
    (said,) = found.others(["ADA"])
    assert said == "The table of times has students who are not here: Participant 7 and Zed."
    rows = "".join(f"{n}\n,2026-07-01T00:00Z\n" for n in range(8))
    (said,) = times(tmp_path, f"student,submitted\n{rows}".replace("\n,", ",")).others([])
    assert said.endswith("here: 0, 1, 2, 3, 4 and 3 more.")


def test_of_several_times_the_latest_counts(tmp_path: Path) -> None:
    text = "student,submitted\nada,2026-07-02T00:00Z\nADA,2026-07-03T00:00Z\nada,2026-07-01T00:00Z"
    assert times(tmp_path, text).of("Ada") == utc("2026-07-03T00:00")


def test_a_name_is_read_as_grade_class_wrote_it(tmp_path: Path) -> None:
    rows = [["student", "submitted"], [csv_cell("-ada"), "2026-07-01T00:00Z"]]
    assert times(tmp_path, csv_text(rows)).of("-ada") == utc("2026-07-01T00:00")


def test_moodles_worksheet_names_students_by_their_number(tmp_path: Path) -> None:
    found = times(
        tmp_path,
        "Identifier,Full name,Last modified (submission),Grade\n"
        'Participant 71,Ada,"Wednesday, 1 July 2026, 11:59 PM",\n'
        'Participant 72,Bob,"Wednesday, July 1, 2026, 11:59:30 PM",\n'
        "Participant 73,Cyn,-,\n",
    )
    assert found.of("Ada Lovelace_71") == utc("2026-07-01T21:59")
    assert found.of("Bob_72") == utc("2026-07-01T21:59:30")
    assert (found.of("Cyn_73"), found.of("Ada_7"), found.of("71")) == (None, None, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs the columns 'student' and 'submitted'"),
        ("student,when\nada,1\n", "needs the columns 'student' and 'submitted'"),
        ("student,submitted\n\nada,soon\n", r"times\.csv:3: 'soon' is not a time such as 2026-"),
        ("student,submitted\nada,2026-10-30\n", "'2026-10-30' is not a time such as 2026-"),
        ("student,submitted\nada,0001-01-01T00:00+23:00\n", "is not a time such as 2026-"),
        ("student,submitted\nada,9999-12-31T23:59-12:00\n", "is not a time such as 2026-"),
        ("student,submitted\nada,2026-07-01 23:59\n", "'2026-07-01 23:59' has no time zone: set"),
    ],
)
def test_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(KitError, match=said):
        times(tmp_path, text, None)
