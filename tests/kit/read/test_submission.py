"""Reading submissions: what is taken, what is left out and what is refused, whatever lies there."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from grader.read import submission
from grader.read.submission import (
    FILE_CAP,
    expect_code,
    notebook_bytes,
    parse_cells,
    read_submission,
    script,
    text_cell_notes,
    text_definitions,
)
from grader.types.errors import NoSubmissionError, SubmissionFileError
from tests.kit.support.checkout import COURSE
from tests.kit.support.files import write_files


def notebook(*cells: Any, **changes: Any) -> bytes:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4} | changes).encode()


def code(source: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": [], "metadata": {}}


# --- folders ---------------------------------------------------------------------------------


def test_a_folder_gives_its_python_files_by_their_relative_paths(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "b.py": "b",
            "a.py": "a",
            "package/__init__.py": "",
            "package/deep/c.py": "c",
            "notes.txt": "no",
            "data.pyc": "no",
            "B.py": "B",
            "B.PY": "no",  # as a system that ignores case may name it
            "c.Py": "c",
            "README": "no",
        },
    )
    read = read_submission(tmp_path)
    assert read.files == {
        "a.py": b"a",
        "b.py": b"b",
        "B.py": b"B",
        "c.py": b"c",
        "package/__init__.py": b"",
        "package/deep/c.py": b"c",
    }
    assert read.is_folder and read.script is None and read.cells is None
    assert read.name == str(tmp_path)


def test_a_learners_files_beside_exercises_are_near(tmp_path: Path) -> None:
    own = tmp_path / "exercises"
    write_files(tmp_path, {"fold.py": "a", "exercises/fold.py": "b", "exercises/x.py.txt": "c"})
    (tmp_path / "link.py").symlink_to(own / "fold.py")
    found = read_submission(own, is_own=True)
    assert found.near == {"fold.py": b"a", "exercises/x.py.txt": b"c"}
    assert found.files == {"fold.py": b"b"}
    assert not read_submission(own).near  # of others nothing outside the folder is read


def test_bytes_are_taken_as_they_are(tmp_path: Path) -> None:
    sources: dict[str, str | bytes] = {
        "crlf.py": b"x = 1\r\n",
        "bom.py": b"\xef\xbb\xbfx = 1",
        "latin.py": b"# coding: latin-1\nx = '\xfc'",
        "binary.py": bytes(range(256)),
    }
    assert read_submission(write_files(tmp_path, sources)).files == sources


@pytest.mark.parametrize(
    "names",
    [
        *("__pycache__/a.py", ".ipynb_checkpoints/a.py", ".git/hooks/a.py", ".venv/lib/a.py"),
        *("venv/a.py", "node_modules/a.py", ".hidden/a.py", "package/__pycache__/a.py"),
        "env/pyvenv.cfg env/lib/a.py",  # a Python environment of any name
        "._a.py __MACOSX/a.py",  # what a system puts beside a file
    ],
)
def test_what_no_one_hands_in_is_left_out(tmp_path: Path, names: str) -> None:
    write_files(tmp_path, {**dict.fromkeys(names.split(), "x"), "a.py": "mine"})
    assert read_submission(tmp_path).files == {"a.py": b"mine"}


@pytest.mark.parametrize("name", ["two words.py", "ünïcödé 你好.py", "-rf.py", "a'b\".py"])
def test_odd_names_do_no_harm(tmp_path: Path, name: str) -> None:
    assert read_submission(write_files(tmp_path, {name: "x"})).files == {name: b"x"}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
@pytest.mark.parametrize("name", [b"new\nline.py", b"esc\x1b[31m.py", b"not-utf8-\xff.py"])
def test_names_that_are_no_text_can_be_read_and_sent(tmp_path: Path, name: bytes) -> None:
    try:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(b"x")
    except OSError:
        pytest.skip("this file system has no such names")
    read = read_submission(tmp_path)
    assert list(read.files.values()) == [b"x"]
    assert json.loads(json.dumps(list(read.files))) == list(read.files)


def test_an_empty_folder_is_a_submission_without_files(tmp_path: Path) -> None:
    assert read_submission(tmp_path).files == {}


# --- links, pipes and the like ---------------------------------------------------------------


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file outside the submission's folder."""
    (tmp_path / "work").mkdir()
    file = tmp_path / "secret.py"
    file.write_text("secret")
    return file


def link(path: Path, target: Path) -> None:
    try:
        path.symlink_to(target)
    except OSError:
        pytest.skip("links cannot be made here")


def test_links_in_a_folder_are_not_followed(secret: Path) -> None:
    folder = write_files(secret.parent / "work", {"a.py": "mine"})
    link(folder / "file.py", secret)
    link(folder / "inside.py", folder / "a.py")
    link(folder / "folder", secret.parent)
    link(folder / "loop", folder)
    link(folder / "gone.py", folder / "nothing.py")
    assert read_submission(folder).files == {"a.py": b"mine"}


@pytest.mark.parametrize("name", ["file.py", "file.ipynb"])
def test_a_submission_that_is_a_link_to_a_file_is_refused(secret: Path, name: str) -> None:
    path = secret.parent / "work" / name
    link(path, secret)
    with pytest.raises(SubmissionFileError, match="cannot be read"):
        read_submission(path)


def test_a_link_to_a_folder_is_that_folder_for_its_owner_and_nobody_else(secret: Path) -> None:
    folder = secret.parent / "linked"
    link(folder, secret.parent / "work")
    write_files(secret.parent / "work", {"a.py": "mine"})
    assert read_submission(folder, is_own=True).files == {"a.py": b"mine"}
    with pytest.raises(SubmissionFileError, match="linked: is a link, which is not followed"):
        read_submission(folder)


def test_of_a_students_copy_the_exercises_count(secret: Path) -> None:
    kit = {f"grader/m{number}.py": "" for number in range(300)}
    copy = write_files(secret.parent / "ada/copy", {"course.toml": "", **kit})
    write_files(copy, {"exercises/wings.py": "mine"})
    found = read_submission(copy)
    assert found.files == {"wings.py": b"mine"} and found.name == str(copy / "exercises")
    assert read_submission(copy.parent).files == {"copy/exercises/wings.py": b"mine"}
    (copy / "exercises").rename(copy / "elsewhere")
    link(copy / "exercises", copy / "elsewhere")
    with pytest.raises(SubmissionFileError, match="exercises: is a link, which is not followed"):
        read_submission(copy)


def test_a_file_that_becomes_a_link_under_our_hands_is_refused(
    secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_files(secret.parent / "work", {"a.py": "mine"})
    before = (folder / "a.py").lstat()
    (folder / "a.py").unlink()
    link(folder / "a.py", secret)
    monkeypatch.setattr(Path, "lstat", lambda self: before)
    with pytest.raises(SubmissionFileError, match=r"a\.py: cannot be read"):
        read_submission(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="there a folder cannot be held open")
def test_a_folder_that_becomes_a_link_under_our_hands_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    neighbours = write_files(tmp_path / "bob", {"deep/a.py": "secret", "deep/a.ipynb": "{}"})
    for own, linked, to in (("inside", "deep", "deep"), ("itself", "", "")):
        folder = tmp_path / own / "eve"
        (folder / linked).parent.mkdir(parents=True)
        link(folder / linked, neighbours / to)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "lstat", Path.stat)  # as if it were no link yet
            patch.setattr(Path, "is_symlink", lambda self: False)
            with pytest.raises(SubmissionFileError, match=r"a\.py: cannot be read"):
                read_submission(folder)
        with pytest.raises(SubmissionFileError, match=r"a\.ipynb: cannot be read"):
            notebook_bytes(folder / "deep" / "a.ipynb", folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_pipes_are_left_out_of_a_folder_and_refused_alone(tmp_path: Path) -> None:
    folder = write_files(tmp_path, {"a.py": "mine"})
    os.mkfifo(folder / "pipe.py")
    os.mkfifo(folder / "pipe.ipynb")
    assert read_submission(folder).files == {"a.py": b"mine"}
    for name in ("pipe.py", "pipe.ipynb"):
        with pytest.raises(SubmissionFileError, match="is not a regular file"):
            read_submission(folder / name)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there are no devices here")
def test_a_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SubmissionFileError):
        read_submission(Path("/dev/zero"))
    link(tmp_path / "zero.py", Path("/dev/zero"))
    with pytest.raises(SubmissionFileError):
        read_submission(tmp_path / "zero.py")


def test_a_folder_of_a_file_name_is_left_out(tmp_path: Path) -> None:
    write_files(tmp_path, {"folder.py/inner.py": "inner", "a.py": "mine"})
    assert read_submission(tmp_path).files == {"a.py": b"mine", "folder.py/inner.py": b"inner"}


# --- too large, too many ---------------------------------------------------------------------


def test_a_file_may_be_as_large_as_the_cap_and_no_larger(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"#" * FILE_CAP)
    assert len(read_submission(path).files["a.py"]) == FILE_CAP
    path.write_bytes(b"#" * (FILE_CAP + 1))
    for submitted in (path, tmp_path):
        with pytest.raises(SubmissionFileError, match=r"a\.py: is larger than 1 MiB"):
            read_submission(submitted)


def test_a_file_of_terabytes_is_not_read_to_its_end(tmp_path: Path) -> None:
    for name in ("a.py", "a.ipynb"):
        path = tmp_path / name
        with open(path, "wb") as file:
            try:
                file.truncate(1 << 40)
            except OSError:
                pytest.skip("this file system has no files with holes")
        with pytest.raises(SubmissionFileError, match="is larger than"):
            read_submission(path)


def test_a_notebook_has_a_cap_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook(code("x = 1"), pictures="x" * FILE_CAP))
    assert read_submission(path).cells == ("x = 1",)
    monkeypatch.setattr(submission, "NOTEBOOK_CAP", FILE_CAP)
    with pytest.raises(SubmissionFileError, match="is larger than"):
        read_submission(path)


def with_outputs(*sources: str, outputs: object) -> bytes:
    return notebook(*({**code(source), "outputs": outputs} for source in sources))


def test_a_large_notebook_is_read_without_its_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.ipynb"
    sources = ('x = "outputs": [1]', "y = '\\\\\"['", "z = {'outputs': [']']}")
    text = [{"text": ['a "quoted" ] line\\\n'] * 10_000}, {"data": {"image/png": "A" * 10**6}}]
    path.write_bytes(with_outputs(*sources, outputs=text))
    whole = read_submission(path).cells
    assert whole == sources
    monkeypatch.setattr(submission, "NOTEBOOK_CAP", FILE_CAP)
    assert read_submission(path).cells == whole
    monkeypatch.setattr(submission, "OUTPUTS_CAP", 2 * FILE_CAP)
    with pytest.raises(SubmissionFileError, match="is larger than 2 MiB"):
        read_submission(path)


def test_many_pieces_in_outputs_keep_no_notebook_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(with_outputs("x = 1", outputs=[[""]] * 1000))
    monkeypatch.setattr(submission, "PIECES_CAP", 100)
    assert read_submission(path).cells == ("x = 1",)
    path.write_bytes(notebook(code("x = 1"), pieces=[[""]] * 1000))
    with pytest.raises(SubmissionFileError, match="too many pieces"):
        read_submission(path)


def test_a_folder_of_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "FILES_CAP", 3)
    write_files(tmp_path, {"a.py": "", "b.py": "", "in/c.py": "", "notes.txt": "", "more.txt": ""})
    assert len(read_submission(tmp_path).files) == 3
    write_files(tmp_path, {"in/d.py": ""})
    with pytest.raises(SubmissionFileError, match=r"more than 3 \.py files"):
        read_submission(tmp_path)
    (tmp_path / "in/d.py").unlink()
    monkeypatch.setattr(submission, "ENTRIES_CAP", 4)
    with pytest.raises(SubmissionFileError, match="has more than 4 files"):
        read_submission(tmp_path)


# --- one file --------------------------------------------------------------------------------


def test_a_script_is_one_file_by_its_name(tmp_path: Path) -> None:
    write_files(tmp_path, {"in/my work.py": "x = 1", "in/b.py": ""})
    read = read_submission(tmp_path / "in/my work.py")
    assert read.files == {"my work.py": b"x = 1"}
    assert read.script == "my work.py" and not read.is_folder


@pytest.mark.parametrize("name", ["notes.txt", "a.pyc", "py", "a.py.zip", "work.ZIP"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SubmissionFileError) as refused:
        read_submission(write_files(tmp_path, {name: "x"}) / name)
    assert "a folder of .py files, a .py or an .ipynb" in str(refused.value)
    assert ("; unpack it first" in str(refused.value)) is name.lower().endswith(".zip")


def test_a_folder_with_only_a_notebook_or_an_archive_is_no_submission_to_name(
    tmp_path: Path,
) -> None:
    empty = read_submission(write_files(tmp_path, {"notes.txt": ""}))
    assert expect_code(empty, tmp_path) is empty
    write_files(tmp_path, {"week 1/work.zip": ""})
    with pytest.raises(NoSubmissionError, match=r"has no \.py files: unpack work\.zip first"):
        expect_code(empty, tmp_path)
    write_files(tmp_path, {"week 1/my work.ipynb": "{}"})
    with pytest.raises(NoSubmissionError, match=r"has no \.py files: .*week 1/my work\.ipynb'`"):
        expect_code(empty, tmp_path)
    write_files(tmp_path, {"a.py": ""})
    assert expect_code(read_submission(tmp_path), tmp_path).files


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SubmissionFileError, match=r"nowhere: cannot be read: No such file"):
        read_submission(tmp_path / "nowhere")
    with pytest.raises(
        NoSubmissionError, match=r"exercises is missing: `grade init` makes it again$"
    ):
        read_submission(tmp_path / "exercises", is_own=True)
    write_files(tmp_path, {"course.toml": ""})  # `grade init` makes nothing in a course's folder
    with pytest.raises(NoSubmissionError, match=r"exercises: cannot be read: No such [\w ]+$"):
        read_submission(tmp_path / "exercises", is_own=True)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read it")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = write_files(tmp_path, {"a.py": "x"}) / "a.py"
    path.chmod(0)
    with pytest.raises(
        SubmissionFileError, match=r"a\.py: cannot be read: Permission denied: change its"
    ):
        read_submission(path)


# --- notebooks -------------------------------------------------------------------------------


def test_a_notebook_gives_its_code_cells_in_order(tmp_path: Path) -> None:
    path = tmp_path / "work.ipynb"
    path.write_bytes(
        notebook(
            {"cell_type": "markdown", "source": "# x = 0"},
            code("x = 1"),
            {"cell_type": "raw", "source": "x = 2"},
            code(["x = 3\n", "y = 4"]),
        )
    )
    read = read_submission(path)
    assert read.cells == ("x = 1", "x = 3\ny = 4")
    assert read.files == {} and not read.is_folder and read.script is None


CELLS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "a text": (code("x = 1"), ("x = 1",)),
    "lines": (code(["a\n", "b"]), ("a\nb",)),
    "no lines": (code([]), ("",)),
    "an empty text": (code(""), ("",)),
    "CRLF": (code("a\r\nb"), ("a\r\nb",)),
    "no source": ({"cell_type": "code"}, ("",)),
    "a source that is null": (code(None), ("",)),
    "a source that is a number": (code(5), ("",)),
    "a source that is an object": (code({"a": 1}), ("",)),
    "a line that is no text": (code(["a\n", 5, None, "b"]), ("a\nb",)),
    "half a character": (code("# \ud83d\nx = '\ud83d\ude00'"), ("# ?\nx = '😀'",)),
    "no kind": ({"source": "x = 1"}, ()),
    "a kind that is a list": ({"cell_type": ["code"], "source": "x"}, ()),
    "a kind of another case": ({"cell_type": "Code", "source": "x"}, ()),
    "a cell that is a text": ("x = 1", ()),
    "a cell that is null": (None, ()),
}


@pytest.mark.parametrize("cell, sources", CELLS.values(), ids=CELLS)
def test_a_cell_of_any_form_is_read(cell: Any, sources: tuple[str, ...]) -> None:
    data = notebook(code("first"), cell, code("last"))
    assert parse_cells(data, "n") == ("first", *sources, "last")


def test_a_notebook_needs_nothing_but_its_cells() -> None:
    assert parse_cells(b'{"cells": []}', "n") == ()
    assert parse_cells(b'\xef\xbb\xbf{"cells": []}', "n") == ()
    assert parse_cells(notebook(code("ü\u2028你好")), "n") == ("ü\u2028你好",)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_notebook_that_an_editor_has_saved_in_another_encoding_is_read(encoding: str) -> None:
    assert parse_cells(notebook(code("ü = 1")).decode().encode(encoding), "n") == ("ü = 1",)


def test_a_letter_in_no_encoding_costs_itself_alone() -> None:
    data = json.dumps({"cells": [code("x = 1  # ü")]}, ensure_ascii=False).encode("latin-1")
    assert parse_cells(data, "n") == ("x = 1  # \ufffd",)


NOT_JSON = {
    "text": b"x = 1\n",
    "bytes": bytes(range(128, 256)),
    "brackets without end": b"[" * 200_000,
    "a number of many digits": b"9" * 100_000,
}


@pytest.mark.parametrize("data", NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_not_json_is_no_notebook(data: bytes) -> None:
    with pytest.raises(SubmissionFileError, match=r"^work\.ipynb: is not a notebook"):
        parse_cells(data, "work.ipynb")


OWN = ": submit the notebook's own file"
PYTHON = "is not a notebook but Python code: its name must end with .py"
CONFLICT = "is not a notebook: it has marks of a merge conflict (<<<<<<<, >>>>>>>): resolve it"
CUT = "is not a complete notebook: its end is missing, so save and submit it again"


@pytest.mark.parametrize(
    "data, said",
    [
        (b"", "is empty: save it and submit it again"),
        (b" \r\n\0\0", "is empty: save it and submit it again"),
        (b"\n<!DOCTYPE html>\n<html>Log in", f"is not a notebook but a web page{OWN}"),
        (b"<HTML><body>", f"is not a notebook but a web page{OWN}"),
        (b"%PDF-1.7\n", f"is not a notebook but a PDF{OWN}"),
        (b"PK\x03\x04\x14", f"is not a notebook but a zip file{OWN}"),
        (b"\x1f\x8b\x08", f"is not a notebook but an archive{OWN}"),
        (b"https://colab.research.google.com/drive/1\n", f"is not a notebook but a link{OWN}"),
        (b"[InternetShortcut]\r\nURL=https://x\r\n", f"is not a notebook but a link{OWN}"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n",
            f"is not a notebook but Git LFS's pointer to it{OWN}",
        ),
        (b"import torch\n\ndef f(): ...", PYTHON),
        (b"#!/usr/bin/env python\n# In[1]:\ndef f(): ...", PYTHON),
        (notebook(code("x = 1"))[:-5], CUT),
        (b'{"cells": [\n<<<<<<< HEAD\n1\n=======\n2\n>>>>>>> mine\n]}', CONFLICT),
        (notebook(code("x = 1")) + b"\n>>>>>>> theirs", CONFLICT),
        (
            b'{\n"cells": [],,\n"nbformat": 4\n}',
            "is not a notebook: line 2 is not JSON; submit one that Jupyter opens",
        ),
    ],
)
def test_what_was_handed_in_for_a_notebook_is_called_by_its_name(data: bytes, said: str) -> None:
    with pytest.raises(SubmissionFileError) as raised:
        parse_cells(data, "work.ipynb")
    assert str(raised.value) == f"work.ipynb: {said}"


def test_a_notebook_of_format_3_has_its_cells_in_sheets() -> None:
    sheets = [
        {"cells": [{"cell_type": "code", "input": ["x = ", "1"]}, {"cell_type": "markdown"}, 5]},
        {"cells": None},
        {"cells": [{"cell_type": "code", "input": "y = 2"}]},
        "nothing",
    ]
    data = json.dumps({"nbformat": 3, "worksheets": sheets}).encode()
    assert parse_cells(data, "n") == ("x = 1", "y = 2")


def test_lines_without_end_take_no_longer_than_they_are_long() -> None:
    start = time.process_time()
    for line in ("\n", " ", "def ", "# In[", "class ", "\n "):
        data = notebook({"cell_type": "markdown", "source": line * 300_000})
        assert text_definitions(data, ["f"]) == []
    assert time.process_time() - start < 5


EXPORTED = {
    "Jupyter's": (
        "# coding: utf-8\r\n\r\n# In[ ]:\r\n\r\nx = 1\r\n# In[12]:\r\ny = 2\r\n",
        ("# coding: utf-8\n\n", "\n\nx = 1\n", "\ny = 2\n"),
    ),
    "Colab's": (
        '"""a.ipynb\n\nAutomatically generated by Colab.\n"""\n\n!pip install x\nx = 1\n',
        ('"""a.ipynb\n\nAutomatically generated by Colab.\n"""\n\n!pip install x\nx = 1\n',),
    ),
    "no export": (
        '{"cells": [{"cell_type": "code", "source": ["x = 1\\n", "y"]}, {"cell_type": "raw"}]}',
        ("x = 1\ny",),
    ),
    "VS Code's, with marks in strings, of which one never ends": (
        "# %%\na = '''\n# %%\n'''\n# %%\nb = \"\"\"\n# %%\nc = 3\n",
        ("\na = '''\n# %%\n'''\n", '\nb = """\n', "\nc = 3\n"),
    ),
    "a call of the grader": ("x = 1\ngrade_here('x')\n", ("x = 1\ngrade_here('x')\n",)),
    "VS Code's": (
        (
            "# %% [markdown]\n# # A title\n\n# %%\n%matplotlib inline\nx = 1\n"
            "#%% more\n# %%time\ny = 2\n"
        ),
        ("\n# # A title\n\n", "\n%matplotlib inline\nx = 1\n", "\n# %%time\ny = 2\n"),
    ),
    "Databricks'": (
        "# Databricks notebook source\nx = 1\n\n# COMMAND ----------\n\n# MAGIC %md\ny = 2\n",
        ("# Databricks notebook source\nx = 1\n\n", "\n\n# MAGIC %md\ny = 2\n"),
    ),
    "Jupyter's cell that is timed": (
        (
            "# In[1]:\n\n\nget_ipython().run_cell_magic('time', '', "
            "\"x = 'ü€\\\\n'\\ny = 1\\n\")\n\n# Text\n"
        ),
        ("%%time \nx = 'ü€\\n'\ny = 1\n\n\n# Text\n",),
    ),
    "a call that Jupyter did not make": (
        "# In[1]:\nget_ipython().run_cell_magic('time', '', '\\x')\n",
        ("\nget_ipython().run_cell_magic('time', '', '\\x')\n",),
    ),
}


@pytest.mark.parametrize("text, cells", EXPORTED.values(), ids=EXPORTED)
def test_a_script_that_was_a_notebook_is_read_as_its_cells(
    tmp_path: Path, text: str, cells: tuple[str, ...]
) -> None:
    (tmp_path / "a.py").write_bytes(text.encode())
    read = read_submission(tmp_path / "a.py")
    assert (read.cells, read.script, read.files) == (cells, None, {})


def test_a_script_that_begins_with_a_table_is_no_notebook(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('{"cell": 1}\n')
    assert read_submission(tmp_path / "a.py").script == "a.py"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
@pytest.mark.parametrize("alone", [True, False])
def test_a_file_in_utf_16_is_read_too(tmp_path: Path, encoding: str, alone: bool) -> None:
    (tmp_path / "a.py").write_bytes("x = 'ü'\r\n".encode(encoding))
    read = read_submission(tmp_path / "a.py" if alone else tmp_path)
    assert read.files["a.py"].decode("utf-8-sig") == "x = 'ü'\r\n"


def test_what_only_text_cells_define_is_found() -> None:
    text = {"cell_type": "markdown", "source": ["def f(x):\n", "    return x\n", "class G:"]}
    raw = {"cell_type": "raw", "source": "speak of h: def h is missing"}
    data = notebook(text, raw, code("class G: pass\ndef h(): pass"))
    assert text_definitions(data, ["f", "G", "h", "i"]) == ["f"]
    assert text_definitions(b"no notebook", ["f"]) == []


def test_a_fixture_that_a_text_cell_explains_is_no_answer() -> None:
    data = notebook({"cell_type": "markdown", "source": "def make_attention(d_model): ..."})
    assert text_cell_notes(data, [COURSE.stage("write_the_tests")]) == []


@pytest.mark.parametrize("name", ["a.IPYNB", "A.PY"])
def test_capital_letters_at_the_end_of_a_name_are_the_same(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(notebook(code("x = 1")) if "IPYNB" in name else b"x = 1")
    read = read_submission(tmp_path / name)
    assert read.cells == ("x = 1",) or read.files == {"A.py": b"x = 1"}


def test_a_notebook_has_no_more_cells_than_one_can_write() -> None:
    cells = [code("")] * submission.CELLS_CAP
    assert len(parse_cells(notebook(*cells), "n")) == submission.CELLS_CAP
    with pytest.raises(SubmissionFileError, match=r"^n: has more than 10000 cells$"):
        parse_cells(notebook(*cells, code("")), "n")
    exported = b"# %%\nx\n" * submission.CELLS_CAP
    assert len(script("n", "n.py", exported).cells or ()) == submission.CELLS_CAP
    with pytest.raises(SubmissionFileError, match=r"^n: has more than 10000 cells$"):
        script("n", "n.py", exported + b"# %%\nx\n")


OTHER_FORMATS: dict[str, Any] = {
    "sheets that are an object": {"nbformat": 3, "worksheets": {}},
    "no cells": {"nbformat": 4},
    "cells that are an object": {"cells": {}},
    "cells that are text": {"cells": "x = 1"},
    "cells that are null": {"cells": None},
    "a list": [code("x")],
    "a text": "x = 1",
    "null": None,
}


@pytest.mark.parametrize("data", OTHER_FORMATS.values(), ids=OTHER_FORMATS)
def test_json_without_a_list_of_cells_is_no_notebook(data: Any) -> None:
    with pytest.raises(SubmissionFileError, match="it has no list of cells: submit the notebook's"):
        parse_cells(json.dumps(data).encode(), "work.ipynb")


def test_a_notebook_has_no_more_code_than_a_file_may() -> None:
    line = "x = 1\n"
    assert len(parse_cells(notebook(code(line * 100_000)), "it")[0]) == 600_000
    with pytest.raises(SubmissionFileError, match="it: has more than 1 MiB of code"):
        parse_cells(notebook(*[code(line * 100_000)] * 2), "it")


def test_a_notebook_that_takes_gigabytes_to_read_is_refused() -> None:
    for piece in (b"[],", b'"",', b"{},"):
        data = b'{"cells": [' + piece * 2_100_000 + b"0]}"
        with pytest.raises(SubmissionFileError, match="is not a normal notebook"):
            parse_cells(data, "it")
    outputs = [
        {"data": {"text/html": "<td class='a'>1</td>" * 100_000, "image/png": "A" * 900_000}}
    ]
    assert parse_cells(notebook({**code("x = 1"), "outputs": outputs}), "it") == ("x = 1",)
