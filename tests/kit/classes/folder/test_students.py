"""A folder of a class's submissions, with all that strangers may put there."""

import json
import os
import zipfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from grader.classes.folder.students import Found, read_student, read_students
from grader.classes.folder.times import Times
from grader.types.errors import KitError
from tests.kit.support.checkout import TINY
from tests.kit.support.files import notebook, write_files, zipped

ASSIGNMENT = TINY.assignments[0]
NAME = ASSIGNMENT.name


FIRST, SECOND = ASSIGNMENT.stages[:2]


def notes_on(tmp_path: Path, files: dict[str, str], packed: bool = False) -> tuple[str, ...]:
    """The notes on a submission of these files, perhaps in an archive."""
    folder = write_files(tmp_path / "ann", {"a.zip": zipped(files)} if packed else files)
    record, _ = read_student(Found("ann", folder), ASSIGNMENT)
    assert not any("\n" in note for note in record.notes)
    return record.notes


def test_each_folder_notebook_and_file_is_a_students(tmp_path: Path) -> None:
    write_files(tmp_path, {"bob.ipynb": "{}", "cas.py": ""})
    names = ("Ada_7_assignsubmission_file_", "Ada_8_assignsubmission_file_", "ann")
    for name in names:
        (tmp_path / name).mkdir()
    found, odd = read_students(tmp_path, ASSIGNMENT)
    assert [one.path.name for one in found] == [*names, "bob.ipynb", "cas.py"]
    assert [one.student for one in found] == ["Ada_7", "Ada_8", "ann", "bob", "cas"] and odd == []


def test_the_assignments_folder_counts_only_in_what_nbgrader_collected(tmp_path: Path) -> None:
    ann = write_files(tmp_path / "submitted" / "ann", {"averages.py": b"", "other/a.py": b""})
    (ann / NAME).mkdir()
    assert read_students(ann.parent, ASSIGNMENT)[0] == [Found("ann", ann)]
    (tmp_path / "nbgrader_config.py").touch()  # there it is nbgrader's folder
    assert read_students(ann.parent, ASSIGNMENT)[0] == [Found("ann", ann / NAME)]


def test_only_what_nbgrader_collected_tells_its_own_time_and_a_table_tells_any(
    tmp_path: Path,
) -> None:
    submitted = tmp_path / "submitted"
    (submitted / "ann" / NAME).mkdir(parents=True)
    (submitted / "bob").mkdir()
    for folder in (submitted / "ann" / NAME, submitted / "bob"):
        (folder / "timestamp.txt").write_text("2026-01-31 23:59:00 Europe/Berlin")
    assert [one.submitted for one in read_students(submitted, ASSIGNMENT)[0]] == [None, None]
    (tmp_path / "nbgrader_config.py").touch()
    when = datetime(2026, 1, 31, 22, 59, tzinfo=timezone.utc)
    found, _ = read_students(submitted, ASSIGNMENT)
    assert [one.submitted for one in found] == [when, when]
    assert read_student(found[0], ASSIGNMENT)[0].submitted == when
    later = Times({"ann": when + timedelta(days=1)}, {})
    found, _ = read_students(submitted, ASSIGNMENT, later)
    assert [one.submitted for one in found] == [when + timedelta(days=1), when]


@pytest.mark.skipif(os.name == "nt", reason="no links and pipes")
def test_pipes_and_other_files_are_nobodys(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "notes.txt").write_text("")
    for name in (".hidden", "venv", "__MACOSX", ".ipynb_checkpoints"):
        (tmp_path / name).mkdir()
    found, odd = read_students(tmp_path, ASSIGNMENT)
    assert found == [Found("ann", tmp_path / "ann")]
    assert [line.split()[0] for line in odd] == [".hidden", "notes.txt", "pipe.py", "venv"]


@pytest.mark.skipif(os.name == "nt", reason="no links")
@pytest.mark.parametrize(
    "link",
    [
        "bob",
        "bob.ipynb",
        "bob.zip",
        f"bob/{NAME}",
        f"bob/{NAME}.ipynb",
        f"bob/{NAME}/{NAME}.ipynb",
        "bob_1_assignsubmission_file_",
        f"bob_1_2_{NAME}.ipynb",
    ],
)
def test_who_hands_in_a_link_gets_nothing_of_a_neighbours(tmp_path: Path, link: str) -> None:
    stage = ASSIGNMENT.stages[0]
    files = {f"{NAME}.ipynb": notebook("x = 1"), stage.file_name: "x = 1"}
    ann = write_files(tmp_path / "elsewhere" / "ann", files)
    place = tmp_path / "class" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(ann / f"{NAME}.ipynb" if "." in link else ann)
    ((bob,), odd) = read_students(tmp_path / "class", ASSIGNMENT)
    record, submission = read_student(bob, ASSIGNMENT)
    assert bob.student.startswith("bob") and odd == []
    assert ("link" in submission.refused) == (link.count("/") < 2)  # else the folder is named
    assert submission.refused and record.notes == (submission.refused,)
    assert not submission.files and submission.cells is None
    assert str(tmp_path) not in submission.refused


@pytest.mark.skipif(os.name == "nt", reason="no links")
def test_a_file_that_is_a_link_is_told_beside_the_others(tmp_path: Path) -> None:
    first, second = (stage.file_name for stage in ASSIGNMENT.stages[:2])
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / first).write_text("x = 1")
    (tmp_path / "ann" / second).symlink_to(tmp_path / "ann" / first)
    record, submission = read_student(Found("ann", tmp_path / "ann"), ASSIGNMENT)
    assert list(submission.files) == [first] and not submission.refused
    assert record.notes == (f"{second} is a link, which is not followed.",)


def test_a_file_that_its_reader_fails_on_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows such a file yet: who finds one may not stop a class with it."""

    def fails(data: bytes, name: str) -> None:
        raise IndexError(name)

    monkeypatch.setattr("grader.classes.folder.students.parse_cells", fails)
    write_files(tmp_path, {"ann.ipynb": notebook("x = 1")})
    record, submission = read_student(Found("ann", tmp_path / "ann.ipynb"), ASSIGNMENT)
    assert submission.refused == "The file cannot be read: IndexError."
    assert record.notes == (submission.refused,)


def test_a_link_in_an_archive_is_not_code(tmp_path: Path) -> None:
    linked = zipfile.ZipInfo(f"{NAME}.ipynb")
    linked.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "ann.zip", "w") as archive:
        archive.writestr(linked, "../bob/hand in.ipynb")
    ((ann,), _) = read_students(tmp_path, ASSIGNMENT)
    _, submission = read_student(ann, ASSIGNMENT)
    assert f"only the link {NAME}.ipynb" in submission.refused


def test_two_of_one_name_are_two_students(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann.ipynb").write_text("{}")
    found, _ = read_students(tmp_path, ASSIGNMENT)
    assert [one.student for one in found] == ["ann", "ann.ipynb"]
    said = "Another submission has the name ann: this one counts for ann.ipynb."
    assert [one.notes for one in found] == [(), (said,)]


@pytest.mark.skipif(os.name != "posix", reason="names are text")
def test_a_name_that_is_no_text_can_be_written_down(tmp_path: Path) -> None:
    try:
        os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    except OSError:
        pytest.skip("this file system takes text alone")
    found, _ = read_students(tmp_path, ASSIGNMENT)
    assert found[0].student == "\\xff" and found[0].path.is_dir()
    (tmp_path / "\\xff").mkdir()  # who is called so takes nobody's place
    found, _ = read_students(tmp_path, ASSIGNMENT)
    assert len({one.student for one in found}) == len({one.path for one in found}) == 2


@pytest.mark.skipif(os.name != "posix", reason="names are text")
@pytest.mark.parametrize(
    "name",
    [
        *(b"al\xfel.py", b"al\xfe\x1b[2J.ipynb", b"moving-average\n\x1b.py", b"\xff.zip"),
        *(b"\xff\x1b[31m.ipynb", b"\xff.pdf", b"ann_1_2_\xff.pdf"),
    ],
)
def test_what_is_said_of_a_name_that_is_no_text_can_be_written_down(
    tmp_path: Path, name: bytes
) -> None:
    for folder in (tmp_path, tmp_path / "ann"):
        folder.mkdir(exist_ok=True)
        try:
            Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text(notebook("x"))
        except OSError:
            pytest.skip("this file system takes text alone")
    for one in (Found("ann", tmp_path), *read_students(tmp_path, ASSIGNMENT)[0]):
        record, submission = read_student(one, ASSIGNMENT)
        assert "".join((one.student, *record.notes)).encode().isascii()
        assert "\x1b" not in "".join(record.notes)
        "".join((*submission.files, submission.script or "")).encode()


def test_a_letter_of_two_characters_is_the_same_letter(tmp_path: Path) -> None:
    for name in ("Jose\u0301", "Jos\u00e9"):
        (tmp_path / f"{name}.ipynb").write_text(notebook("x"))
    found = [one.student for one in read_students(tmp_path, ASSIGNMENT)[0]]
    assert found[0] == "Jos\u00e9" and len(found) == len(set(found)) == len(os.listdir(tmp_path))


def test_a_single_submission_is_no_class(tmp_path: Path) -> None:
    (tmp_path / "smooth.py").write_text("")
    with pytest.raises(KitError, match="is one submission"):
        read_students(tmp_path, ASSIGNMENT)


def test_an_nbgrader_course_or_an_archive_is_no_class(tmp_path: Path) -> None:
    (tmp_path / "class.zip").write_text("")
    with pytest.raises(KitError, match=r"class\.zip: is a file: unpack it"):
        read_students(tmp_path / "class.zip", ASSIGNMENT)
    write_files(tmp_path / "results", {"ledger.sqlite": "", "report.html": ""})
    with pytest.raises(KitError, match="results: has results of `grade class`"):
        read_students(tmp_path / "results", ASSIGNMENT)
    (tmp_path / "nbgrader_config.py").write_text("")
    (tmp_path / "source").mkdir()
    with pytest.raises(KitError, match=rf"name .*submitted, or type .*--nbgrader .* {NAME}"):
        read_students(tmp_path, ASSIGNMENT)


@pytest.mark.parametrize("name", ["nothing", "here"])
def test_a_folder_without_students_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "here").mkdir()
    with pytest.raises(KitError):
        read_students(tmp_path / name, ASSIGNMENT)


def test_several_files_of_one_student_are_one_submission(tmp_path: Path) -> None:
    stage = ASSIGNMENT.stages[0]
    (tmp_path / f"lovelaceada_12_34_{stage.file_name}").write_text("x = 1")
    (tmp_path / "lovelaceada_12_35_helper.py").write_text("y = 2")
    (tmp_path / f"lovelaceada_LATE_13_36_{stage.slug}-1.py").write_text("z = 3")
    found, odd = read_students(tmp_path, ASSIGNMENT)
    assert [one.student for one in found] == ["lovelaceada_12", "lovelaceada_13"] and odd == []
    (_, first), (record, second) = (read_student(one, ASSIGNMENT) for one in found)
    assert first.files == {stage.file_name: b"x = 1", "helper.py": b"y = 2"}
    assert second.files == {stage.file_name: b"z = 3"}
    graded = f"{stage.slug}-1.py was graded as {stage.file_name}."
    assert record.notes == ("Canvas has marked it as late.", graded)


def test_moodles_folder_counts_and_not_its_text_field(tmp_path: Path) -> None:
    for kind in ("file", "onlinetext"):
        folder = tmp_path / f"Ada Lovelace_7_assignsubmission_{kind}_"
        folder.mkdir()
        (folder / ("my.ipynb" if kind == "file" else "onlinetext.html")).write_text(notebook("x"))
    (tmp_path / "Bob_8_assignsubmission_onlinetext_").mkdir()
    (tmp_path / "Cid_9_assignsubmission_onlinetext_onlinetext.html").write_text("<p>my answer")
    found, _ = read_students(tmp_path, ASSIGNMENT)
    assert [one.student for one in found] == ["Ada Lovelace_7", "Bob_8", "Cid_9"]
    read = [read_student(one, ASSIGNMENT) for one in found]
    assert read[0][1].cells == ("x",)
    assert read[1][1].refused and "nothing to grade" in read[1][0].notes[0]
    assert "nothing to grade here, only onlinetext.html" in read[2][0].notes[0]


def test_the_last_attempt_in_blackboards_download_counts(tmp_path: Path) -> None:
    stage = ASSIGNMENT.stages[0]
    for day, code in (("28", "x = 1"), ("30", "x = 2"), ("29", "x = 3")):
        start = f"HW 1_ada_attempt_2026-10-{day}-08-00-00"
        (tmp_path / f"{start}_{stage.file_name}").write_text(code)
        (tmp_path / f"{start}_{day}.py").write_text("y = 1")
        (tmp_path / f"{start}.txt").write_text("Name: Ada (ada)")
    (tmp_path / "HW 1_bob_attempt_2026-10-30-08-00-00.txt").write_text("Name: Bob (bob)")
    found, odd = read_students(tmp_path, ASSIGNMENT)
    assert [one.student for one in found] == ["HW 1_ada", "HW 1_bob"] and odd == []
    (record, first), (_, second) = (read_student(one, ASSIGNMENT) for one in found)
    assert first.files == {stage.file_name: b"x = 2", "30.py": b"y = 1"}
    assert record.notes == ("It is the last attempt: earlier ones were not graded.",)
    assert second.refused


@pytest.mark.parametrize("in_folder", [True, False])
def test_an_archive_is_graded_as_what_is_in_it(tmp_path: Path, in_folder: bool) -> None:
    place = tmp_path / "ann" if in_folder else tmp_path
    files = {f"ann/{NAME}.ipynb": notebook("x = 1"), f"__MACOSX/ann/._{NAME}.ipynb": "\0"}
    write_files(place, {"ann.zip": zipped(files)})
    ((one,), odd) = read_students(tmp_path, ASSIGNMENT)
    assert one.student == "ann" and odd == []
    record, submission = read_student(one, ASSIGNMENT)
    assert submission.cells == ("x = 1",)
    assert record.notes == (f"There is no {NAME}.ipynb, so ann/{NAME}.ipynb was graded.",)


@pytest.mark.parametrize("lies", ["in a folder", "in an archive", "in a download of Canvas"])
def test_of_two_notebooks_the_one_with_the_stages_cells_counts(tmp_path: Path, lies: str) -> None:
    slug = ASSIGNMENT.stages[0].slug
    cell = {"cell_type": "code", "source": "right", "metadata": {"nbgrader": {"grade_id": slug}}}
    files = {
        "a scratch pad.ipynb": notebook("wrong"),
        "hand in.ipynb": json.dumps({"cells": [cell]}),
        "._a.ipynb": "\0\5\x16\7",
    }
    folder = tmp_path / "ann"
    if lies == "in an archive":
        write_files(tmp_path, {"ann.zip": zipped(files)})
    elif lies == "in a folder":
        write_files(folder, files)
    else:
        named = enumerate(files.items())
        write_files(folder, {f"ann_1_{number}_{name}": text for number, (name, text) in named})
    (one,), _ = read_students(folder if lies.endswith("Canvas") else tmp_path, ASSIGNMENT)
    record, submission = read_student(one, ASSIGNMENT)
    assert submission.cells == ("right",)
    said = f"There is no {NAME}.ipynb, so hand in.ipynb was graded, and a scratch pad.ipynb was not"
    assert record.notes == (f"{said}.",)


@pytest.mark.parametrize("path", ["ann", f"ann/{NAME}.ipynb"])
def test_an_answer_in_a_text_cell_is_told(tmp_path: Path, path: str) -> None:
    name = ASSIGNMENT.stages[0].entry_points[0].name
    cell = {"cell_type": "markdown", "source": f"def {name}(values): ..."}
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / f"{NAME}.ipynb").write_text(json.dumps({"cells": [cell]}))
    record, _ = read_student(Found("ann", tmp_path / path), ASSIGNMENT)
    assert record.notes == (f"{name} is in a text cell, which is not run: make it a code cell.",)


@pytest.mark.parametrize("text", ["", "# to do", "print('a test')"])
def test_a_py_file_without_an_answer_does_not_replace_a_notebook(tmp_path: Path, text: str) -> None:
    written = {ASSIGNMENT.stages[0].file_name: text, f"{NAME}.ipynb": notebook("mine")}
    write_files(tmp_path / "ann", written)
    _, submission = read_student(Found("ann", tmp_path / "ann"), ASSIGNMENT)
    assert submission.cells == ("mine",)


ANSWER = {FIRST.file_name: f"def {FIRST.entry_points[0].name}(values): ..."}
BOOK = {f"{NAME}.ipynb": notebook("x")}
RENAME = "rename them, so that their names"
NOTED: dict[str, tuple[dict[str, str], str]] = {
    "a notebook beside .py files": (
        {**ANSWER, "my work.ipynb": notebook("x = 1")},
        "my work.ipynb was not graded: the .py files were.",
    ),
    "several": (
        {**ANSWER, "a.ipynb": notebook("x = 1"), "b.ipynb": notebook("y = 1"), "c.ipynb": "{}"},
        "a.ipynb and 2 more were not graded: the .py files were.",
    ),
    "a file with an ending too many": (
        {**ANSWER, f"{FIRST.file_name}.bak": "x = 2", f"{SECOND.file_name}.txt": "x = 3"},
        f"{SECOND.file_name}.txt was not graded: rename it, so that its name ends with .py.",
    ),
    "several of them": (
        {**ANSWER, f"{SECOND.file_name}.txt": "x = 3", "z.py.txt": "x"},
        f"{SECOND.file_name}.txt and 1 more were not graded: {RENAME} end with .py.",
    ),
}
BESIDE = {
    "an archive": ({**ANSWER, "a.zip": "x"}, "a.zip was not graded: other files were."),
    "an archive beside a notebook": ({**BOOK, "a.zip": "x"}, "a.zip was not graded: other f"),
    "archives": ({**ANSWER, "a.zip": "x", "b.ZIP": "y"}, "a.zip and 1 more were not graded: ot"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("files", "said"), NOTED.values(), ids=NOTED)
def test_what_did_not_count_is_told(
    tmp_path: Path, files: dict[str, str], said: str, packed: bool
) -> None:
    assert notes_on(tmp_path, files, packed) == (said,)


@pytest.mark.parametrize(("files", "said"), BESIDE.values(), ids=BESIDE)
def test_an_archive_beside_files_that_count_is_told(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    (note,) = notes_on(tmp_path, files)
    assert note.startswith(said)


def test_an_archive_in_an_archive_is_to_be_unpacked(tmp_path: Path) -> None:
    inner = zipped({f"{NAME}.ipynb": notebook("x")})
    write_files(tmp_path / "ann", {"a.zip": zipped({"b.zip": inner})})
    record, _ = read_student(Found("ann", tmp_path / "ann"), ASSIGNMENT)
    assert f"only b.zip: unpack it, and submit {NAME}.ipynb" in record.notes[0]


@pytest.mark.parametrize("name", [ASSIGNMENT.stages[0].file_name, f"{NAME}.ipynb"])
def test_which_of_two_archives_counts_is_told(tmp_path: Path, name: str) -> None:
    for archive, source in (("a.zip", "x"), ("b.zip", "y"), ("c.zip", "y")):
        write_files(tmp_path / "ann", {archive: zipped({name: notebook(source)})})
    record, _ = read_student(Found("ann", tmp_path / "ann"), ASSIGNMENT)
    assert record.notes == (f"{name} came several times: that of b.zip counts.",)
    (tmp_path / "ann" / "a.zip").unlink()
    assert read_student(Found("ann", tmp_path / "ann"), ASSIGNMENT)[0].notes == ()


@pytest.mark.skipif(os.name == "nt", reason="no such names")
def test_a_files_name_cannot_add_a_line_of_its_own(tmp_path: Path) -> None:
    name = "a\n10 of 10 points"
    for end, text in ((".ipynb", notebook("x")), (".txt", ""), (".zip", "no")):
        assert "\\n10 of 10 points" in notes_on(tmp_path / end, {f"{name}{end}": text})[0]
    folder = tmp_path / "bob"
    (folder / name).mkdir(parents=True)
    (folder / name / f"{name}.py").write_text("x = 1")
    with zipfile.ZipFile(tmp_path / "cas.zip", "w") as archive:
        archive.writestr(f"{name}/{name}.py", "x = 1")
    for path in (folder, tmp_path / "cas.zip"):
        _, submission = read_student(Found("it", path), ASSIGNMENT)
        assert [*submission.files] == ["a\\n10 of 10 points.py"]


def test_the_same_answers_have_the_same_content_wherever_they_lie(tmp_path: Path) -> None:
    write_files(tmp_path, dict.fromkeys((f"ann/{NAME}.ipynb", "bob.ipynb"), notebook("x = 1")))
    (ann, _), (bob, submission) = (
        read_student(Found(name, tmp_path / path), ASSIGNMENT)
        for name, path in (("ann", "ann"), ("bob", "bob.ipynb"))
    )
    assert ann.content == bob.content and ann.notes == ()
    assert submission.cells == ("x = 1",)


@pytest.mark.parametrize(
    "trap", ["x = " + "-" * 50_000 + "1", "if x: pass\n" + "elif x: pass\n" * 3000]
)
def test_a_file_that_no_parser_can_read_is_begun(tmp_path: Path, trap: str) -> None:
    stage = ASSIGNMENT.stages[0]
    (tmp_path / stage.file_name).write_text(f"{stage.entry_points[0].name} = x\n{trap}")
    (tmp_path / f"{NAME}.ipynb").write_text(json.dumps({"cells": []}))
    _, submission = read_student(Found("ann", tmp_path), ASSIGNMENT)
    assert submission.is_folder


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "nothing to grade"),
        ({"venv/a.py": "x", "__MACOSX/a": ""}, "to grade here, only the folder venv: submit"),
        ({f"{NAME}.ipynb": "no JSON"}, "not a notebook"),
        ({"essay.txt": "x", "._essay.txt": "x"}, "nothing to grade here, only essay.txt: submit"),
        ({"a.ipynb.json": "{}"}, "only a.ipynb.json: rename it, so that its name ends with .ipynb"),
        ({f"{NAME}.json": "{}"}, f"only {NAME}.json: rename it, so that its name ends with .ipynb"),
        (
            {f"{n}.py.txt": "x" for n in range(5)},
            "and 2 more: rename them, so that their names end with .py",
        ),
        ({f"{n}.txt": "x" for n in range(5)}, "here, only 0.txt, 1.txt, 2.txt and 2 more: submit"),
        ({"a.zip": "x"}, "a.zip: is not a complete zip file"),
    ],
)
def test_what_cannot_be_graded_says_why(tmp_path: Path, files: dict[str, str], said: str) -> None:
    folder = write_files(tmp_path / "ann", files)
    record, submission = read_student(Found("ann", folder), ASSIGNMENT)
    assert submission.refused in record.notes and record.content == ""
    assert said in record.notes[0] and str(tmp_path) not in record.notes[0]
