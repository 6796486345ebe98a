"""The editor that e opens is the learner's own."""

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from grader.learning.watch import editor
from grader.learning.watch.editor import edit, editor_command

FILE = Path("exercises") / "fold.py"


@pytest.fixture(autouse=True)
def everything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor.shutil, "which", lambda name: f"/usr/bin/{name}")


@pytest.mark.skipif(sys.platform == "win32", reason="paths are written another way there")
@pytest.mark.parametrize(
    "environment, words",
    [
        ({"EDITOR": "nano"}, ["nano", "+7", "exercises/fold.py"]),
        ({"EDITOR": "vim -u NONE"}, ["vim", "-u", "NONE", "+7", "exercises/fold.py"]),
        ({"EDITOR": "nano", "VISUAL": "code -w"}, ["code", "-w", "--goto", "exercises/fold.py:7"]),
        ({"EDITOR": "strange"}, ["strange", "exercises/fold.py"]),
        (
            {"EDITOR": "nano", "TERM_PROGRAM": "vscode"},
            ["code", "--reuse-window", "--goto", "exercises/fold.py:7"],
        ),
        (
            {"EDITOR": "vi", "NVIM": "/run/nvim.0"},
            ["nvim", "--server", "/run/nvim.0", "--remote-silent", "exercises/fold.py"],
        ),
        ({"TERM_PROGRAM": "Apple_Terminal"}, []),
        ({}, []),
    ],
)
def test_the_running_editor_comes_before_the_chosen_one(
    environment: dict[str, str], words: list[str]
) -> None:
    assert editor_command(environment, FILE, 7) == words


def test_an_editor_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("NVIM", "TERM_PROGRAM", "VISUAL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("EDITOR", "no-such-editor-anywhere")
    assert "no-such-editor-anywhere" in edit(FILE, 1, nullcontext())
    monkeypatch.setenv("EDITOR", "")
    assert "set EDITOR" in edit(FILE, 1, nullcontext()) or sys.platform == "win32"
