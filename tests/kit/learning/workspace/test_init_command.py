"""`grade init`: a folder to work in, wherever it is typed; nothing of anybody's is written over."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.command.main import main
from grader.read.progress import read_progress, update_progress
from tests.kit.checkout import ROOT
from tests.kit.tiny import Capture


def init(capsys: Capture, *words: str) -> str:
    assert main(["init", *words]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return " ".join(shown.out.split())


def refused(capsys: Capture, *words: str) -> str:
    assert main(["init", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    return shown.err


def test_a_named_folder_and_what_to_type_next(birds: Path, capsys: Capture) -> None:
    said = init(capsys, "my birds")
    assert said.startswith("Made my birds: exercises/ with 3 files to work in")
    assert said.endswith("Go there: cd 'my birds' Grade at each save: grade watch")
    assert (birds / "my birds" / "exercises" / "fold.py").is_file()


def test_without_a_name_it_is_the_course_s(
    birds: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = tmp_path_factory.mktemp("here")
    monkeypatch.chdir(here)
    assert "cd paper-birds" in init(capsys, "--course", str(birds))
    assert (here / "paper-birds" / "README.md").read_text("utf-8").startswith("# Paper birds\n")
    again = init(capsys, "--course", str(birds))
    assert again.startswith("paper-birds is already a workspace. Nothing is missing.")


def test_the_working_folder(
    birds: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    said = init(capsys, ".", "--course", str(birds))
    assert said.startswith("Made a workspace here:")
    assert said.endswith("Grade at each save: grade watch Stuck? grade hint")


@pytest.mark.parametrize("words", [[], ["."], ["exercises/.."]])
@pytest.mark.parametrize("below", [".", "exercises"])
def test_the_course_s_own_folder_is_left_alone(
    birds: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, words: list[str], below: str
) -> None:
    before = sorted(birds.rglob("*"))
    if not words:
        monkeypatch.chdir(birds / below)
    assert f"{birds} is the course's own folder" in refused(capsys, *words)
    assert sorted(birds.rglob("*")) == before


def test_typed_again_it_brings_back_what_is_missing(
    birds: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    init(capsys, "mine")
    mine = birds / "mine"
    (mine / "exercises" / "fold.py").unlink()
    (mine / "exercises" / "wings.py").write_text("work\n", encoding="utf-8")
    update_progress(mine, lambda now: now.with_hint("fold", 2))
    monkeypatch.chdir(mine / "exercises")
    said = init(capsys)
    assert "is already a workspace. Restored the missing files: exercises/fold.py" in said
    assert (mine / "exercises" / "fold.py").is_file()
    assert (mine / "exercises" / "wings.py").read_text(encoding="utf-8") == "work\n"
    assert read_progress(mine).progress.stage("fold").rungs == 2
    monkeypatch.chdir(birds)
    assert init(capsys, "mine").startswith("mine is already a workspace. Nothing is missing.")


def test_a_workspace_keeps_its_course(
    birds: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    init(capsys, "mine")
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    (birds / "mine" / "README.md").unlink()
    init(capsys, str(birds / "mine"))
    assert (birds / "mine" / "README.md").read_text("utf-8").startswith("# Paper birds\n")


def test_a_spoilt_mark_is_written_anew(
    birds: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    init(capsys, "mine")
    mark = birds / "mine" / ".grade" / "workspace.json"
    monkeypatch.chdir(birds / "mine")
    mark.write_text("{", encoding="utf-8")
    assert main(["hint"]) == 2
    assert "`grade init` in" in capsys.readouterr().err
    init(capsys, "--course", str(birds))
    assert json.loads(mark.read_text(encoding="utf-8")) == {
        "schema": 1,
        "course": str(birds),
        "name": "paper-birds",
    }
    mark.write_text('{"schema": 2, "course": null}', encoding="utf-8")
    assert "another version of the kit wrote it" in refused(capsys)


def test_a_file_in_the_way(birds: Path, capsys: Capture) -> None:
    (birds / "mine").mkdir()
    (birds / "mine" / "README.md").write_text("my diary\n", encoding="utf-8")
    error = refused(capsys, "mine")
    assert f"{birds / 'mine' / 'README.md'}: is in the way" in error
    assert [file.name for file in (birds / "mine").iterdir()] == ["README.md"]


def test_in_plain_letters(birds: Path, capsys: Capture) -> None:
    assert main(["init", "mine", "--plain"]) == 0
    assert capsys.readouterr().out.isascii()


@pytest.mark.parametrize(
    "words",
    [["init", "other"], ["diff", "fold"], ["reset", "fold"], ["update"], ["solution", "fold"]],
)
def test_imports_nothing_that_is_slow(birds: Path, capsys: Capture, words: list[str]) -> None:
    init(capsys, "mine")
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "grader", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=birds / "mine",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert run.returncode == (2 if words[0] == "solution" else 0)
    imported = {line.rsplit("|", 1)[-1].strip() for line in run.stderr.splitlines()}
    assert "grader.command.main" in imported
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
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder of the real course, with the solutions in place of the stubs."""
    monkeypatch.chdir(tmp_path)
    init(capsys, "mine", "--course", str(ROOT))
    mine = tmp_path / "mine"
    for file in (mine / "exercises").glob("*.py"):
        shutil.copy(ROOT / "solutions" / file.name, file)
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
