"""`grade init`: a folder to work in, wherever it is typed; nothing of anybody's is written over."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from grader.read.progress import read_progress, update_progress
from tests.kit.support.checkout import ROOT, imported_by
from tests.kit.support.tiny import Typed


@pytest.fixture
def init(grade: Typed) -> Typed:
    """Type `grade init ...`; what is shown, as one line."""
    return lambda *words: " ".join(grade("init", *words).split())


@pytest.fixture
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder elsewhere, which is the working folder."""
    folder = tmp_path_factory.mktemp("here")
    monkeypatch.chdir(folder)
    return folder


def test_a_named_folder_and_what_to_type_next(birds: Path, init: Typed) -> None:
    said = init("my birds")
    assert said.startswith("Made my birds: exercises/ with 3 files to work in")
    assert said.endswith("Go there: cd 'my birds' Grade at each save: grade watch")
    assert (birds / "my birds" / "exercises" / "fold.py").is_file()


def test_without_a_name_it_is_the_course_s(birds: Path, here: Path, init: Typed) -> None:
    assert "cd paper-birds" in init("--course", str(birds))
    assert (here / "paper-birds" / "README.md").read_text("utf-8").startswith("# Paper birds\n")
    again = init("--course", str(birds))
    assert again.startswith("paper-birds is already a workspace. Nothing is missing.")


def test_the_working_folder(birds: Path, here: Path, init: Typed) -> None:
    said = init(".", "--course", str(birds))
    assert said.startswith("Made a workspace here:")
    assert said.endswith("Grade at each save: grade watch Stuck? grade hint")


@pytest.mark.parametrize("words", [[], ["."], ["exercises/.."]])
@pytest.mark.parametrize("below", [".", "exercises"])
def test_the_course_s_own_folder_is_left_alone(
    birds: Path, refused: Typed, monkeypatch: pytest.MonkeyPatch, words: list[str], below: str
) -> None:
    before = sorted(birds.rglob("*"))
    if not words:
        monkeypatch.chdir(birds / below)
    assert f"{birds} is the course's own folder" in refused("init", *words)
    assert sorted(birds.rglob("*")) == before


def test_typed_again_it_brings_back_what_is_missing(
    birds: Path, init: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    init("mine")
    mine = birds / "mine"
    (mine / "exercises" / "fold.py").unlink()
    (mine / "exercises" / "wings.py").write_text("work\n", encoding="utf-8")
    update_progress(mine, lambda now: now.with_hint("fold", 2))
    monkeypatch.chdir(mine / "exercises")
    said = init()
    assert "is already a workspace. Restored the missing files: exercises/fold.py" in said
    assert (mine / "exercises" / "fold.py").is_file()
    assert (mine / "exercises" / "wings.py").read_text(encoding="utf-8") == "work\n"
    assert read_progress(mine).progress.stage("fold").rungs == 2
    monkeypatch.chdir(birds)
    assert init("mine").startswith("mine is already a workspace. Nothing is missing.")


def test_a_workspace_keeps_its_course(birds: Path, here: Path, init: Typed) -> None:
    mine = birds / "mine"
    init(str(mine), "--course", str(birds))
    (mine / "README.md").unlink()
    init(str(mine))
    assert (mine / "README.md").read_text("utf-8").startswith("# Paper birds\n")


def test_a_copy_without_its_hidden_files_is_still_the_workspace(
    birds: Path, here: Path, init: Typed
) -> None:
    init(".", "--course", str(birds))
    shutil.rmtree(here / ".grade")
    assert init("--course", str(birds)).startswith("This folder is already a workspace.")
    assert not (here / "paper-birds").exists()


def test_a_spoilt_mark_is_written_anew(
    birds: Path, init: Typed, refused: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    init("mine")
    mark = birds / "mine" / ".grade" / "workspace.json"
    monkeypatch.chdir(birds / "mine")
    mark.write_text("{", encoding="utf-8")
    assert "`grade init` in" in refused("hint")
    init("--course", str(birds))
    assert json.loads(mark.read_text(encoding="utf-8")) == {
        "schema": 1,
        "course": str(birds),
        "name": "paper-birds",
    }
    mark.write_text('{"schema": 2, "course": null, "name": "a"}', encoding="utf-8")
    assert "another version of the kit wrote it" in refused("init")


def test_in_plain_letters(birds: Path, grade: Typed) -> None:
    assert grade("init", "mine", "--plain").isascii()


@pytest.mark.parametrize(
    "words",
    [["init", "other"], ["diff", "fold"], ["reset", "fold"], ["update"], ["solution", "fold"]],
)
def test_imports_nothing_that_is_slow(workspace: Path, words: list[str]) -> None:
    imported = imported_by(*words, code=2 if words[0] == "solution" else 0, cwd=workspace)
    assert not imported & {"torch", "pytest", "numpy", "subprocess", "asyncio", "matplotlib"}


# What `python FILE` does, but for torch, which is imported once.
RUN_EACH = """
import os, runpy, sys, torch
for file in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        sys.argv, sys.path[0] = [file], os.path.dirname(file)
        runpy.run_path(file, run_name="__main__")
        sys.exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(file)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.skipif(
    shutil.which("mypy", path=os.path.dirname(sys.executable)) is None, reason="no mypy"
)
def test_type_checkers_and_the_run_button_work(
    tmp_path: Path, init: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder of the real course, with the solutions in place of the stubs."""
    monkeypatch.chdir(tmp_path)
    init("mine", "--course", str(ROOT))
    mine = tmp_path / "mine"
    for file in (mine / "exercises").glob("*.py"):
        shutil.copy(ROOT / "solutions" / file.name, file)
    with suppress(FileNotFoundError):  # or mypy reads all of torch, for half a minute
        shutil.copytree(ROOT / ".mypy_cache", mine / ".mypy_cache")
    python = json.loads((mine / ".vscode" / "settings.json").read_text(encoding="utf-8"))[
        "python.defaultInterpreterPath"
    ]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run(*words: str) -> str:
        done = subprocess.run(
            [python, *words], capture_output=True, text=True, cwd=mine, env=environment, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    first, *others = sorted((mine / "exercises").glob("*.py"))
    run(str(first.relative_to(mine)))
    run("-c", RUN_EACH, *(str(file.relative_to(mine)) for file in others))
    count = len(list((mine / "exercises").glob("*.py")))
    assert f"no issues found in {count} source files" in run("-m", "mypy", "--strict")
    (task, *_) = json.loads((mine / ".vscode" / "tasks.json").read_text("utf-8"))["tasks"]
    words = [word.replace("${fileBasenameNoExtension}", "concat_heads") for word in task["args"]]
    assert task["command"] == python
    environment["PYTHONPATH"] = str(ROOT)
    assert "10 of 10" in run(*words)
