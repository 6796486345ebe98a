"""What `grade init` writes: a folder that type checkers and the run button understand."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from grader.learning.workspace.exercises import kept_stub
from grader.learning.workspace.scaffold import folder_files, make_workspace
from grader.read.workspace import is_workspace
from grader.types.errors import KitError
from grader.types.workspace import Workspace
from tests.kit.support.checkout import COURSE, TINY, run_python
from tests.kit.support.files import tree

KIT = Path(__file__).parents[2]
SLUGS = [stage.slug for stage in TINY.stages]


def test_a_new_folder(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "down"
    made = make_workspace(root, TINY, None)
    assert not made.was_there
    assert set(made.files) == {
        *("README.md", "pyproject.toml", ".gitignore"),
        *(".vscode/settings.json", ".vscode/tasks.json"),
        *(f"exercises/{slug}.py" for slug in SLUGS),
    }
    assert is_workspace(root)
    workspace = Workspace(root, TINY)
    for stage in TINY.stages:
        stub = workspace.file(stage).read_text(encoding="utf-8")
        assert stub == kept_stub(workspace, stage) == stage.exercise_file.read_text("utf-8")


def test_the_readme_is_the_course_s_and_fits_a_terminal() -> None:
    text = folder_files(TINY, None)["README.md"]
    assert text.startswith("# Smooth a curve\n")
    assert "Open the first file, `moving_average.py`" in text
    assert "3. `roughness.py`: Measure the jumps (bonus)" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_the_readme_names_only_what_the_course_has() -> None:
    for course, has_all in ((COURSE, True), (TINY, False)):
        text = folder_files(course, None)["README.md"]
        assert "| `grade trace STAGE` |" in text and "| `grade certificate` |" in text
        assert ("| `grade finale` |" in text) is has_all
        assert ("| `grade predict STAGE` |" in text) is has_all
    partial = folder_files(replace(TINY, is_partial=True), None)["README.md"]
    assert "grade certificate" not in partial and "grade solution" not in partial


def test_the_readme_s_command_runs_the_examples_of_a_file(tmp_path: Path) -> None:
    make_workspace(tmp_path / "work", TINY, None)
    found = re.search(
        r"    python (-m doctest .*)", (tmp_path / "work" / "README.md").read_text("utf-8")
    )
    words = found[1].split()
    file = tmp_path / "work" / words[-1]
    for right, code in (("[1.0]", 0), ("[1.0, 2.0]", 1)):
        file.write_text(f'"""\n>>> [1.0]\n{right}\n"""\n', encoding="utf-8")
        ended = run_python(*words, cwd=tmp_path / "work")
        assert ended.returncode == code and ("Expected" in ended.stdout) is bool(code)


@pytest.mark.parametrize("python", [None, sys.executable, 'C:\\a "b"\\python.exe'])
def test_the_editor_s_settings_are_json(python: str | None) -> None:
    files = folder_files(TINY, python)
    settings = json.loads(files[".vscode/settings.json"])
    assert settings.get("python.defaultInterpreterPath") == python
    (first, *_) = json.loads(files[".vscode/tasks.json"])["tasks"]
    words = [first["command"], *first["args"]]
    start = ["grade"] if python is None else [python, "-m", "grader"]
    assert words == [*start, "${fileBasenameNoExtension}"]


def test_an_editor_finds_the_place_of_every_failure_on_a_screen() -> None:
    (task, *_) = json.loads(folder_files(TINY, None)[".vscode/tasks.json"])["tasks"]
    pattern = task["problemMatcher"]["pattern"]
    screens = [*KIT.glob("situations/*/expected.txt"), *KIT.glob("show/goldens/*.txt")]
    lines = [line for file in screens for line in file.read_text(encoding="utf-8").splitlines()]
    places = [line for line in lines if re.search(r"\w\.py, line \d+", line)]
    assert len(places) > 20
    for line in places:
        found = re.search(pattern["regexp"], line)
        assert found is not None, line
        assert re.fullmatch(r"\w+\.py", found[pattern["file"]])
        assert int(found[pattern["line"]]) > 0
        assert found[pattern["message"]] == line.strip()


@pytest.mark.parametrize("name", ["README.md", "exercises/smooth.py", ".vscode/tasks.json"])
def test_nothing_is_written_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("somebody's", encoding="utf-8")
    before = tree(tmp_path)
    with pytest.raises(KitError, match="is in the way: move it, or name another folder") as caught:
        make_workspace(tmp_path, TINY, None)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert tree(tmp_path) == before


@pytest.mark.parametrize("meant", ["the working folder", "a folder of git's"])
def test_other_files_are_nobody_s_business(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meant: str
) -> None:
    if meant == "the working folder":
        monkeypatch.chdir(tmp_path)
    else:
        (tmp_path / ".git").mkdir()
    (tmp_path / "exercises").mkdir()
    for name in ("notes.txt", "exercises/mine.py"):
        (tmp_path / name).write_text("mine", encoding="utf-8")
    make_workspace(tmp_path, TINY, None)
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "exercises" / "mine.py").read_text(encoding="utf-8") == "mine"


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "taxes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(KitError, match=r"holds other files, such as taxes\.txt: .*`grade init \.`"):
        make_workspace(tmp_path, TINY, None)
    assert list(tree(tmp_path)) == ["taxes.txt"]


@pytest.mark.parametrize("there", [".DS_Store", "exercises/mine.py"])
def test_a_folder_of_next_to_nothing_is_as_good_as_a_new_one(tmp_path: Path, there: str) -> None:
    (tmp_path / there).parent.mkdir(exist_ok=True)
    (tmp_path / there).write_text("mine", encoding="utf-8")
    assert not make_workspace(tmp_path, TINY, None).was_there


def test_a_link_is_in_the_way_wherever_it_leads(tmp_path: Path) -> None:
    root = tmp_path / "mine"
    root.mkdir()
    (root / "README.md").symlink_to(tmp_path / "nowhere")
    with pytest.raises(KitError, match=r"README\.md: is a link"):
        make_workspace(root, TINY, None)
    assert not (tmp_path / "nowhere").exists()


def test_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "exercises").write_text("", encoding="utf-8")
    with pytest.raises(KitError, match=r"file: is a file: name another folder"):
        make_workspace(tmp_path / "file", TINY, None)
    with pytest.raises(KitError, match="Not a directory"):
        make_workspace(tmp_path / "taken", TINY, None)
    with pytest.raises(KitError):
        make_workspace(tmp_path / "file" / "below", TINY, None)


def test_only_what_is_missing_comes_back(tmp_path: Path) -> None:
    make_workspace(tmp_path, TINY, None)
    smooth, roughness = (tmp_path / "exercises" / f"{slug}.py" for slug in SLUGS[1:])
    smooth.write_text("work\n", encoding="utf-8")
    roughness.unlink()
    (tmp_path / "README.md").unlink()
    (tmp_path / ".gitignore").write_text("mine\n", encoding="utf-8")
    made = make_workspace(tmp_path, TINY, None)
    assert made.was_there
    assert made.files == ("README.md", "exercises/roughness.py")
    assert smooth.read_text(encoding="utf-8") == "work\n"
    assert (tmp_path / ".gitignore").read_text(encoding="utf-8") == "mine\n"
    assert make_workspace(tmp_path, TINY, None).files == ()


def test_a_workspace_from_git_gets_its_memory_back(tmp_path: Path) -> None:
    make_workspace(tmp_path, TINY, None)
    for file in (tmp_path / ".grade").rglob("*.*"):
        if file.is_file():
            file.unlink()
    (tmp_path / ".vscode" / "settings.json").unlink()
    smooth = tmp_path / "exercises" / "smooth.py"
    smooth.write_text("work\n", encoding="utf-8")
    made = make_workspace(tmp_path, TINY, sys.executable)
    assert made.was_there
    assert made.files == (".vscode/settings.json",)
    assert smooth.read_text(encoding="utf-8") == "work\n"
    assert is_workspace(tmp_path)
