"""Code of our own that does not end is stopped; a missing name is reported exactly."""

import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.run.failures import LoadError
from grader.run.importing import Import, import_error, missing_name
from grader.run.stopping import Stopped, stopped_after
from grader.types.course import EntryPoint, Stage
from grader.types.submission import Submission
from grader.types.text import is_unloaded
from tests.kit.support.checkout import TINY

STAGE = Stage("fold", "Fold", 1, False, (), (), Path())
timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no such timers")


def blocks_without_end() -> None:
    with stopped_after(0.05):
        while True:
            with stopped_after(60):
                pass


@timers
def test_a_block_is_stopped_though_others_in_it_come_to_an_end() -> None:
    began = time.process_time()
    with pytest.raises(Stopped, match=r"in 0\.05 s"):
        blocks_without_end()
    assert time.process_time() - began < 1  # each block once restarted the last millisecond


@timers
def test_what_ends_in_time_leaves_nothing_behind() -> None:
    with stopped_after(60), stopped_after(50):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def said_of_missing(**reply: Any) -> str:
    return missing_name("fold", reply, STAGE, Submission("n", {}, cells=("",)))


def test_a_cell_is_to_blame_only_for_what_it_defines() -> None:
    mount = {"type": "ModuleNotFoundError", "message": "no google", "source": "import google"}
    typo = {"type": "SyntaxError", "message": "invalid syntax", "source": "def fold(x:\n"}
    assert said_of_missing(cells=[mount, typo]).startswith(
        "fold is not defined: a cell of the notebook fails. SyntaxError: invalid syntax"
    )
    assert said_of_missing(cells=[mount], others=["fald"]).startswith(
        "The notebook does not define fold; it defines fald: rename it\n"
        "  And a cell of it fails: Module"
    )
    typo["source"] = "x = ("
    notebook = Submission("n", {}, cells=("import google", "x = ("))
    said = missing_name("fold", {"cells": [mount, typo]}, STAGE, notebook)
    assert "And a cell of it fails: SyntaxError" in said, "the one that ran last"
    notebook = Submission("n", {}, cells=("def fold(x:", "def fald(x): ..."))
    typo["source"] = notebook.cells[0]
    said = missing_name("fold", {"cells": [typo], "others": ["fald"]}, STAGE, notebook)
    assert "it defines fald: rename it" in said, "an older attempt fails, the last has another name"
    assert said_of_missing(cells=[]).endswith("define fold: nothing is in it; did you save it?")


def test_of_a_cell_that_fails_twice_the_first_error_is_told() -> None:
    frames = [{"file": "code cell 2", "line": 1}]
    older = {"type": "TypeError", "source": "fold = 1 + ''", "frames": [{"file": "code cell 1"}]}
    source = "import wings\nfold = wings.fold"
    first = {"type": "ModuleNotFoundError", "source": source, "frames": frames}
    later = {"type": "NameError", "source": "fold = wings.fold", "frames": frames}
    assert "ModuleNotFoundError" in said_of_missing(cells=[older, first, later])


@pytest.mark.parametrize(
    "cell, why",
    [
        ("%%writefile fold.py\ndef fold(x): ...", "%%writefile is not run; delete that line"),
        ("class A:\n    def fold(x): ...", "inside a class, a function or a block; move it"),
        ("%%time\ndef fold(x): ...\ndel fold", "`del` deletes it; remove that line"),
        ("# def fold\nfolds = 3", "The notebook does not define fold: define it as the stub does"),
    ],
)
def test_a_definition_out_of_reach_is_named(cell: str, why: str) -> None:
    said = missing_name("fold", {}, STAGE, Submission("n", {}, cells=("x = 1", cell)))
    assert why in said and said.count("define fold") == 1
    file = Submission("n", {"fold.py": cell.encode()})
    assert missing_name("fold", {}, STAGE, file) == said.replace("The notebook", STAGE.file_name)


@pytest.mark.parametrize("line", ["fold = fold(1)", "    x, fold = 1, 2", "fold=3"])
def test_the_line_that_sets_the_name_is_shown(line: str) -> None:
    cells = ("def fold(x): ...", f"fold == 1\n{line}", "folds = 1")
    said = missing_name("fold", {"others": ["fold"]}, STAGE, Submission("n", {}, cells=cells))
    assert said == (
        "fold in the notebook is neither a function nor a class: this line sets it\n"
        f"  code cell 2, line 2\n    {line.strip()}"
    )
    assert is_unloaded(said)


def test_a_line_of_one_name_again_and_again_is_read_once():
    text = f"fold = 1\n'''\n{'fold, ' * 150_000}x\n'''"
    start = time.process_time()
    said = missing_name("fold", {"others": ["fold"]}, STAGE, Submission("n", {}, cells=(text,)))
    assert said.endswith("line 1\n    fold = 1") and time.process_time() - start < 2


def test_without_a_similar_name_the_definitions_of_the_file_are_listed() -> None:
    file = Submission("n", {"fold.py": b"class Wing: ...\ndef turn(x): ..."})
    said = missing_name("fold", {}, STAGE, file)
    assert said == "fold.py does not define fold; it defines Wing and turn"
    said = missing_name("fold", {}, STAGE, Submission("n", {"fold.py": b"\xef\xbb\xbf\n"}))
    assert said == "fold.py does not define fold: nothing is in it; did you save it?"


def test_a_module_that_is_nearly_called_like_a_file_of_the_submission_is_that_file() -> None:
    error = {"type": "ModuleNotFoundError", "message": "No module named 'wing'"}
    files = Submission("n", {"fold.py": b"from wing import x", "wings.py": b"x = 1"})
    said = str(import_error(error, STAGE, files))
    assert said.endswith("No module named 'wing'\n  Your file is called wings.py.")
    said = str(import_error(error, STAGE, Submission("n", {"fold.py": b"from wing import x"})))
    assert said.endswith("correct its name, or write your code without it.")


def test_a_definition_in_another_file_is_named() -> None:
    files = {"fold.py": b"x = 1", "a.txt": b"def fold(): ...", "wings.py": b"def fold(): ..."}
    said = missing_name("fold", {}, STAGE, Submission("n", files))
    assert said == "fold.py does not define fold: it is in wings.py; move it to fold.py"


def test_of_a_missing_file_the_one_that_has_its_code_is_named() -> None:
    file = Submission("n", {"all.py": b"x = 1\ndef fold(): ..."})
    stage = replace(
        STAGE, entry_points=(EntryPoint("wing", ("any",)), EntryPoint("fold", ("any",)))
    )
    with pytest.raises(LoadError) as raised:
        Import(TINY, stage, file).request()
    assert str(raised.value) == "There is no file fold.py: fold is in all.py; move it to fold.py"


def test_a_notebook_that_cannot_be_imported_is_called_one() -> None:
    said = str(import_error({"type": "MemoryError"}, STAGE, Submission("n", {}, cells=("",))))
    assert said == "The notebook cannot be imported. MemoryError"


def test_a_file_that_cannot_be_imported_because_of_another_names_that() -> None:
    files = {"fold.py": b"import wings", "wings.py": b"def ("}
    frames = [{"file": "fold.py", "line": 1}, {"file": "wings.py", "line": 1}]
    said = str(
        import_error({"type": "SyntaxError", "frames": frames}, STAGE, Submission("n", files))
    )
    assert said.startswith("fold.py cannot be imported because of wings.py. SyntaxError\n")
    assert is_unloaded(said)
    circle = {"message": "cannot import name 'f' from partially initialized module 'fold'"}
    said = str(import_error({**circle, "frames": frames}, STAGE, Submission("n", files)))
    assert said.startswith("fold.py cannot be imported. ")


def test_a_file_that_only_jupyter_would_run_is_pointed_out() -> None:
    said = missing_name("fold", {}, STAGE, Submission("n", {}, cells=("x = 1", "%run fold.py")))
    assert said == (
        "The notebook does not define fold: %run has no file to run here; put the file's code into "
        "a cell"
    )
