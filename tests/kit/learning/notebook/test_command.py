"""`grade notebook`: where it writes, what it never writes over, and what it offers."""

import json
from pathlib import Path

import pytest

from grader.command.main import main
from grader.read.workspace import mark_workspace, own_course
from tests.kit.support.tiny import Typed

MINE = "def fold(sheet):\n    return sheet / 2  # mine\n"


def code(path: Path, name: str) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    (found,) = (cell for cell in cells if cell["id"] == name)
    return "".join(found["source"])


def test_it_is_named_by_the_course_and_says_how_to_open_it(birds: Path, grade: Typed) -> None:
    shown = grade("notebook")
    assert code(birds / "paper-birds.ipynb", "fold-code").startswith("%%grade fold\ndef fold(")
    assert "Written: paper-birds.ipynb, 3 stages." in shown
    assert "jupyter lab paper-birds.ipynb" in shown and "--with-answers" not in shown


def test_it_never_writes_over_a_file(birds: Path, refused: Typed) -> None:
    file = birds / "paper-birds.ipynb"
    file.write_text("my work", encoding="utf-8")
    assert "paper-birds.ipynb exists already" in refused("notebook")
    assert file.read_text(encoding="utf-8") == "my work"


def test_a_link_to_nowhere_is_a_file_too(birds: Path) -> None:
    (birds / "paper-birds.ipynb").symlink_to(birds / "elsewhere")
    assert main(["notebook"]) == 2
    assert not (birds / "elsewhere").exists()


def test_force_keeps_a_copy_of_every_notebook_it_replaces(birds: Path, grade: Typed) -> None:
    file = birds / "mine.ipynb"
    for number, text in enumerate(("first", "second"), start=1):
        file.write_text(text, encoding="utf-8")
        assert f"A copy of the old notebook is mine.ipynb-{number}" in grade(
            "notebook", "mine.ipynb", "--force"
        )
    assert (birds / "mine.ipynb-1").read_text(encoding="utf-8") == "first"
    assert (birds / "mine.ipynb-2").read_text(encoding="utf-8") == "second"


def test_begun_files_are_offered_and_with_answers_brought_along(birds: Path, grade: Typed) -> None:
    (birds / "exercises" / "fold.py").write_text(MINE, encoding="utf-8")
    assert "Your files have code for fold" in grade("notebook")
    assert "mine" not in code(birds / "paper-birds.ipynb", "fold-code")
    assert main(["notebook", "--force", "--with-answers"]) == 0
    assert code(birds / "paper-birds.ipynb", "fold-code") == f"%%grade fold\n{MINE.rstrip()}"
    assert "NotImplementedError" in code(birds / "paper-birds.ipynb", "wings-code")


def test_with_answers_where_there_are_none_says_so(birds: Path, refused: Typed) -> None:
    assert "your files are still stubs" in refused("notebook", "--with-answers")
    assert not (birds / "paper-birds.ipynb").exists()


def test_a_name_that_is_no_notebooks_and_a_folder_that_is_not_there_are_one_line(
    birds: Path, refused: Typed
) -> None:
    assert "end it with .ipynb" in refused("notebook", "notes.txt")
    assert "cannot be written: No such file or directory" in refused("notebook", "nowhere/x.ipynb")


def test_in_a_workspace_it_lies_at_its_root_and_elsewhere_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = own_course()
    workspace, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    for folder in (workspace / "exercises", elsewhere):
        folder.mkdir(parents=True)
    mark_workspace(workspace, course)
    monkeypatch.chdir(workspace / "exercises")
    assert main(["notebook"]) == 0
    assert (workspace / f"{course.name}.ipynb").is_file()
    monkeypatch.chdir(elsewhere)
    assert main(["notebook"]) == 0
    assert (elsewhere / f"{course.name}.ipynb").is_file()
