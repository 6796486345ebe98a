"""Which file of a student's folder counts, and when it was handed in."""

import json
import os
from pathlib import Path

import pytest
from nbgrader.utils import parse_utc

from grader.classes.nbgrader import submitted
from grader.classes.nbgrader.submitted import companions, read_submitted, time_of
from grader.read import submission
from grader.run.worker.scratch import remove_tree
from tests.kit.support.files import write_files

NOTHING = "There is no notebook: birds.ipynb was not submitted"


def notebook(*grade_ids: str) -> str:
    return json.dumps({"cells": [{"metadata": {"nbgrader": {"grade_id": g}}} for g in grade_ids]})


def test_the_notebook_of_the_right_name_counts(tmp_path: Path) -> None:
    (tmp_path / "birds.ipynb").write_text("right")
    (tmp_path / "another.ipynb").write_text(notebook("fold", "bird"))
    found = read_submitted(tmp_path, "ann", "birds", ["fold", "bird"])
    assert (found.student, found.data) == ("ann", b"right")
    assert found.notes == ("birds.ipynb was graded, and another.ipynb was not.",)
    assert found.file == tmp_path / "birds.ipynb"


def test_else_the_one_that_has_most_of_its_cells(tmp_path: Path) -> None:
    files = {
        "a.ipynb": notebook(),
        "deep/Birds (1).IPYNB": notebook("fold", "bird", "x"),
        "c.ipynb": notebook("fold"),
        ".ipynb_checkpoints/d.ipynb": notebook("fold", "bird", "y"),
    }
    write_files(tmp_path, files)
    found = read_submitted(tmp_path, "ann", "birds", ["fold", "bird"])
    assert found.file is not None and found.file.name == "Birds (1).IPYNB"
    said = "There is no birds.ipynb, so deep/Birds (1).IPYNB was graded"
    assert found.notes == (f"{said}, and c.ipynb and 1 more were not.",)


def test_a_folder_that_is_closed_to_us_is_not_called_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr(os, "scandir", closed)
    assert read_submitted(tmp_path, "ann", "birds").notes == (
        "The folder cannot be read: Permission denied: change its permissions.",
    )


STUB, ANSWER = "def bird():\n    raise NotImplementedError()\n", "def bird():\n    return 1\n"


def written(source: str) -> str:
    cells = [
        {"cell_type": "code", "source": "%load_ext grader"},
        {"cell_type": "code", "source": source, "metadata": {"nbgrader": {"grade_id": "bird"}}},
    ]
    return json.dumps({"cells": cells})


@pytest.mark.parametrize("nothing", [written(STUB), written(ANSWER)[:-9], written("")])
def test_a_notebook_in_which_nothing_is_written_gives_way_to_a_copy_with_an_answer(
    tmp_path: Path, nothing: str
) -> None:
    other = "birds (1).ipynb"
    for right, copy, counted in (
        (nothing, written(ANSWER), other),
        (written(ANSWER), written(ANSWER), "birds.ipynb"),
        (nothing, written(STUB), "birds.ipynb"),
        (nothing, json.dumps({"cells": [{"cell_type": "code", "source": ANSWER}]}), "birds.ipynb"),
    ):
        write_files(tmp_path, {"birds.ipynb": right, other: copy})
        found = read_submitted(tmp_path, "ann", "birds", ["bird"])
        assert found.file == tmp_path / counted
    write_files(tmp_path, {other: written(ANSWER), "c.ipynb": written(STUB)})
    said = f"Nothing is written in birds.ipynb, so {other} was graded, and c.ipynb was not."
    assert read_submitted(tmp_path, "ann", "birds", ["bird"]).notes == (said,)


def test_of_notebooks_without_ids_the_one_that_defines_something_counts(tmp_path: Path) -> None:
    texts = {"a.ipynb": "x = 1", "b.ipynb": ANSWER}
    cells = {name: [{"cell_type": "code", "source": text}] for name, text in texts.items()}
    write_files(tmp_path, {name: json.dumps({"cells": cell}) for name, cell in cells.items()})
    assert read_submitted(tmp_path, "ann", "birds", ["bird"]).file == tmp_path / "b.ipynb"


def test_however_large_its_outputs_are_the_notebook_of_the_right_name_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = json.loads(written(ANSWER))
    large["cells"][1]["outputs"] = [{"text": "x" * 2000}]
    write_files(tmp_path, {"birds.ipynb": json.dumps(large), "b.ipynb": written(ANSWER)})
    monkeypatch.setattr(submitted, "NOTEBOOK_CAP", 1000)
    monkeypatch.setattr(submission, "NOTEBOOK_CAP", 1000)
    found = read_submitted(tmp_path, "ann", "birds", ["bird"])
    assert found.file == tmp_path / "birds.ipynb"


def test_cells_of_the_students_own_do_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook("fold"))
    cells = [*json.loads(notebook("fold", "bird"))["cells"], {"metadata": {}}, {}, 3]
    (tmp_path / "b.ipynb").write_text(json.dumps({"cells": cells}))
    found = read_submitted(tmp_path, "ann", "birds", ["fold", "bird"])
    assert found.file == tmp_path / "b.ipynb"


def test_many_large_notebooks_are_not_all_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = notebook("fold") + " " * 1000
    write_files(tmp_path, {f"{name}.ipynb": large for name in "abc"})
    (tmp_path / "d.ipynb").write_text(notebook("fold", "bird"))
    for most, chosen in ((1 << 20, "d.ipynb"), (2 * len(large) + 9, "a.ipynb")):
        monkeypatch.setattr(submitted, "_BYTES_CAP", most)
        found = read_submitted(tmp_path, "ann", "birds", ["fold", "bird"])
        assert found.file == tmp_path / chosen


def test_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "birds.py").write_text("x")
    found = read_submitted(tmp_path, "ann", "birds")
    assert (found.file, found.data, found.when) == (None, b"", None)
    only = "Only notebooks are graded here, not .py or .zip files."
    assert found.notes == (f"{NOTHING}, only birds.py.", only)
    (tmp_path / "birds.ipynb").write_text(notebook())
    assert read_submitted(tmp_path, "ann", "birds").notes == (only,)
    (tmp_path / "birds.ipynb").unlink()
    (tmp_path / "birds.py").unlink()
    (tmp_path / "timestamp.txt").write_text("2026-01-05 10:00:00 UTC")
    assert read_submitted(tmp_path, "ann", "birds").notes == (f"{NOTHING}.",)


def test_notebooks_with_an_ending_too_many_are_to_be_renamed(tmp_path: Path) -> None:
    for name, advice in (
        ("birds.ipynb.gz", ""),
        ("birds.ipynb.txt", ": rename it, so that its name ends with .ipynb"),
        ("birds.json", ": rename them, so that their names end with .ipynb"),
        ("b.ipynb.json", ": rename them, so that their names end with .ipynb"),
    ):
        write_files(tmp_path, {name: "{}"})
        (note,) = read_submitted(tmp_path, "ann", "birds").notes
        assert note.endswith(f"{advice or name}.")


def test_folders_in_folders_are_looked_into_as_far_as_people_go(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(1500):  # deeper than Python calls itself
        deep = deep / "d"
        try:
            deep.mkdir()
        except OSError:
            break
    assert read_submitted(tmp_path, "ann", "birds").notes == (f"{NOTHING}, only the folder d.",)
    (tmp_path / "d" / "d" / "b.ipynb").write_text(notebook("fold"))
    found = read_submitted(tmp_path, "ann", "birds")
    assert found.notes == ("There is no birds.ipynb, so d/d/b.ipynb was graded.",)
    remove_tree(str(tmp_path / "d"))  # pytest's own would not come to its end


@pytest.mark.skipif(os.name == "nt", reason="no links")
@pytest.mark.parametrize("link", ["bob", "bob/birds"])
def test_a_linked_folder_gives_neither_a_neighbours_notebook_nor_what_lies_beside_it(
    tmp_path: Path, link: str
) -> None:
    times = {"timestamp.txt": "2026-01-05 10:00:00 UTC", "submission_secret.txt": "ann's own"}
    ann = write_files(tmp_path / "ann" / "birds", {"birds.ipynb": notebook("fold"), **times})
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(ann if "/" in link else ann.parent)
    folder = tmp_path / "bob" / "birds"
    found = read_submitted(folder, "bob", "birds")
    assert (found.file, found.data, found.when) == (None, b"", None)
    assert "is a link" in found.notes[0]
    assert b"ann's own" not in companions(folder).values() and time_of(folder) is None


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
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    found = read_submitted(folder, "ann", "birds")
    assert (found.file, found.data) == (None, b"")
    assert len(found.notes) == 1
    if before:
        assert len(os.listdir("/proc/self/fd")) == before  # nothing stays open
    path.rename(folder / "another.ipynb")
    named = {"folder": "the folder another", "link": "the link another", "pipe": "another"}[kind]
    assert read_submitted(folder, "ann", "birds").notes == (f"{NOTHING}, only {named}.ipynb.",)


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
    assert read_submitted(tmp_path, "ann", "birds").when == parse_utc(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "yesterday",
            "99999999999999999999",
            "12:" + "9" * 40,
            "\ufffd\n\n2026",
            "2026-01-05 a\0b",
            "2026 " * 99,
        ),
        *("0001-01-01 00:00:00 Asia/Tokyo", "9999-12-31 23:59:59 America/Los_Angeles"),
        *("2026-01-05 10:00:00 +9999", "2026-01-05 EST5EDT,M63.2.0,M11.1.0"),
    ],
)
def test_a_time_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "timestamp.txt").write_text(text, encoding="utf-8")
    assert read_submitted(tmp_path, "ann", "birds").when is None


def test_what_the_exchange_goes_by_is_kept_as_it_is(tmp_path: Path) -> None:
    files = {"timestamp.txt": b"2026-01-05 10:00:00 UTC\n", "submission_secret.txt": b"abc"}
    assert companions(write_files(tmp_path, files)) == files


def test_what_the_exchange_cannot_go_by_is_replaced(tmp_path: Path) -> None:
    missing = companions(tmp_path)
    assert missing["timestamp.txt"] == b"" and len(missing["submission_secret.txt"]) == 64
    assert missing != companions(tmp_path)
    (tmp_path / "timestamp.txt").write_text("soon")
    (tmp_path / "submission_secret.txt").write_bytes(b"\xff")
    unread = companions(tmp_path)
    assert unread["timestamp.txt"] == b"" and len(unread["submission_secret.txt"]) == 64
