"""What learning platforms make of names, and archives with all that may be in them."""

import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from grader.classes.folder import downloads
from grader.classes.folder.downloads import Downloaded, downloaded, read_files
from grader.types.errors import SubmissionFileError
from tests.kit.support.files import zipped

WHEN = "2026-10-30-23-59-01"
BOARD = f"HW_bob_attempt_{WHEN}_x.py"


@pytest.mark.parametrize(
    "name, student, own",
    [
        ("Ada Lovelace_1234567_assignsubmission_file_", "Ada Lovelace_1234567", ""),
        ("Ada Lovelace_1234567_assignsubmission_file", "Ada Lovelace_1234567", ""),
        ("Zoë O'Neil_7_assignsubmission_file_nb_1.ipynb", "Zoë O'Neil_7", "nb_1.ipynb"),
        ("a_b_7_assignsubmission_file_x.py", "a_b_7", "x.py"),
        ("a_b_7_assignsubmission_file_x_1_22_y.py", "a_b_7", "x_1_22_y.py"),
        ("lovelaceada_123_456_nb-1.ipynb", "lovelaceada_123", "nb-1.ipynb"),
        ("lovelaceada_LATE_123_456_soft_max.py", "lovelaceada_123", "soft_max.py"),
        ("de_la_cruzana_LATE_123_456_softmax.py", "de_la_cruzana_123", "softmax.py"),
        ("anon_aB3dE_456_softmax.py", "anon_aB3dE", "softmax.py"),
        ("LATE_anon_12345_456_x_1.py", "anon_12345", "x_1.py"),
        (f"Homework 1_ada_attempt_{WHEN}_soft_max.py", "Homework 1_ada", "soft_max.py"),
        (f"Home_work_s_lee_attempt_{WHEN}_nb.ipynb", "Home_work_s_lee", "nb.ipynb"),
        # Students choose the name of their file: it makes nobody another student.
        ("eve_1_22_x_9_assignsubmission_file_y.py", "eve_1", "x_9_assignsubmission_file_y.py"),
        (
            "E_1_assignsubmission_file_x_9_assignsubmission_file_",
            "E_1",
            "x_9_assignsubmission_file_",
        ),
        ("Eve_1_assignsubmission_file_bob_9_22_y.py", "Eve_1", "bob_9_22_y.py"),
        (f"HW_eve_attempt_{WHEN}_{BOARD}", "HW_eve", BOARD),
        (f"HW_eve_attempt_{WHEN}_1_2_x.py", "HW_eve", "1_2_x.py"),
        (f"eve_1_22_{BOARD}", "eve_1", BOARD),
        (f"Eve E_1_assignsubmission_file_{BOARD}", "Eve E_1", BOARD),
        (f"LATE_anon_aB3dE_22_{BOARD}", "anon_aB3dE", BOARD),
    ],
)
def test_a_platforms_name_tells_the_student_and_the_file(name: str, student: str, own: str) -> None:
    attempt = WHEN if name.startswith("H") else ""
    assert downloaded(name) == Downloaded(student, own, is_late="LATE_" in name, attempt=attempt)


@pytest.mark.parametrize(
    "name, student",
    [
        (f"Homework 1_ada_attempt_{WHEN}.txt", "Homework 1_ada"),
        ("Ada_7_assignsubmission_onlinetext_onlinetext.html", "Ada_7"),
    ],
)
def test_what_a_platform_keeps_of_a_text_field_is_no_submission(name: str, student: str) -> None:
    known = downloaded(name)
    assert known is not None and known.is_note and known.student == student


@pytest.mark.parametrize(
    "name",
    ["ada.ipynb", "ada_lovelace.py", "ada_1.ipynb", "1_2_3.py", "ada_12_attention.ipynb", "_1_2_x"],
)
def test_a_name_that_somebody_has_given_is_no_platforms(name: str) -> None:
    assert downloaded(name) is None


def unpacked(folder: Path, data: bytes) -> downloads.Heap:
    (folder / "work.zip").write_bytes(data)
    return read_files([("work.zip", folder / "work.zip")])


def test_files_keep_the_names_that_the_student_gave_them(tmp_path: Path) -> None:
    for name in ("1", "2", "3"):
        (tmp_path / name).write_text(name)
    names = ("a.py", "b.IPYNB", "c.pdf")
    heap = read_files((name, tmp_path / str(n)) for n, name in enumerate(names, start=1))
    assert (heap.files, heap.notebooks) == ({"a.py": b"1"}, {"b.IPYNB": b"2"})
    assert heap.others == ["c.pdf"]


def test_of_an_archived_students_copy_the_exercises_count(tmp_path: Path) -> None:
    kit = {f"ada-main/grader/m{number}.py": b"" for number in range(300)}
    own = {"ada-main/exercises/wings.py": b"x = 1", "ada-main/mine.ipynb": b"{}"}
    heap = unpacked(tmp_path, zipped({"ada-main/course.toml": b"", **kit, **own}))
    assert heap.files == {"ada-main/exercises/wings.py": b"x = 1"}
    assert heap.notebooks == {"ada-main/mine.ipynb": b"{}"}
    older = {"ada-main/old/course.toml": b"", "ada-main/old/exercises/wings.py": b"x = 0"}
    heap = unpacked(tmp_path, zipped({"ada-main/course.toml": b"", **kit, **own, **older}))
    assert heap.files.keys() == {"ada-main/exercises/wings.py", "ada-main/old/exercises/wings.py"}
    alone = {"exercises/wings.py": b"x = 1", "more/tail.py": b"y = 2"}
    assert unpacked(tmp_path, zipped(alone)).files == alone


def test_an_archive_is_looked_into_without_what_a_system_puts_there(tmp_path: Path) -> None:
    there = {
        "hw/a.py": b"x = 1",
        "hw\\b.ipynb": b"{}",
        "__MACOSX/hw/._a.py": b"\0",
        "hw/.ipynb_checkpoints/b.ipynb": b"{}",
        "hw/essay.pdf": b"%PDF",
        "../../etc/c.py": b"y = 2",
        "/d.py": b"z = 3",
    }
    heap = unpacked(tmp_path, zipped(there))
    assert heap.files == {"hw/a.py": b"x = 1", "etc/c.py": b"y = 2", "d.py": b"z = 3"}
    assert heap.notebooks == {"hw/b.ipynb": b"{}"} and heap.others == ["hw/essay.pdf"]
    assert [path.name for path in tmp_path.iterdir()] == ["work.zip"]


def damaged(data: bytes) -> bytes:
    """With another content than its sums say."""
    return data.replace(b"\x00\x00a.py", b"\x00\x00a.py\xff", 1)


def locked(data: bytes) -> bytes:
    """With the flag of a password, in both places that have it."""
    data = data[:6] + b"\x01" + data[7:]
    place = data.index(b"PK\x01\x02") + 8
    return data[:place] + b"\x01" + data[place + 1 :]


UNREADABLE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "is not a complete zip file"),
    "rar": (lambda: b"Rar!\x1a\x07", "is not a complete zip file"),
    # Each took the grader minutes, in an archive of 60 KB.
    "a long name": (lambda: zipped({f"{'_' * 30_000}.py": b""}), "has a name that is too long"),
    "many folders in a long name": (
        lambda: zipped({f"{'a/' * 15_000}x.py": b""}),
        "has a name that is too long",
    ),
    "many folders": (lambda: zipped({f"{'a/' * 30}x.ipynb": b"{}"}), "has too many folders"),
    "cut off": (lambda: zipped({"a.py": b"x" * 500})[:40], "is not a complete zip file"),
    "damaged": (lambda: damaged(zipped({"a.py": b"x = 1"})), "is damaged"),
    "locked": (lambda: locked(zipped({"a.py": b"x = 1"})), "is locked with a password"),
    "a bomb": (lambda: zipped({"a.py": b"\0" * (2 << 20)}), "a.py is larger than 1 MiB"),
    "bombs": (
        lambda: zipped({f"{n}.ipynb": b"\0" * (30 << 20) for n in range(2)}),
        "The submission is larger than 40 MiB",
    ),
    "many": (lambda: zipped({f"{n}.py": b"" for n in range(300)}), r"has more than 200 \.py files"),
    "thousands": (
        lambda: zipped({f"{n}": b"" for n in range(21_000)}),
        "has more than 20000 files",
    ),
    "LZMA": (
        lambda: zipped({"a.py": b"x = 1"}, zipfile.ZIP_LZMA),
        "uses a compression that the kit cannot read",
    ),
}


@pytest.mark.parametrize("data, said", UNREADABLE.values(), ids=UNREADABLE)
def test_an_archive_that_cannot_be_read_says_why(
    tmp_path: Path, data: Callable[[], bytes], said: str
) -> None:
    with pytest.raises(SubmissionFileError, match=said):
        unpacked(tmp_path, data())


def test_any_byte_of_an_archive_may_be_another(tmp_path: Path) -> None:
    data = zipped({"a.py": b"x = 1\n" * 20, "n/b.ipynb": b"{}"})
    for place in range(len(data)):
        other = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
        with suppress(SubmissionFileError):  # and nothing else
            unpacked(tmp_path, other)
