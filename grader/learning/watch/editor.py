"""Opens a file in the learner's own editor: the running one, else $VISUAL or $EDITOR."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

# Editors whose terminal we may run in: the variable that shows it, and how to open a line.
_HOSTS = (
    ("NVIM", None, ("nvim", "--server", "{host}", "--remote-silent", "{file}")),
    ("TERM_PROGRAM", "vscode", ("code", "--reuse-window", "--goto", "{file}:{line}")),
    ("TERM_PROGRAM", "zed", ("zed", "{file}:{line}")),
)
_WINDOWS_OF_THEIR_OWN = frozenset({"code", "codium", "cursor", "zed", "subl", "gedit", "kate"})
_LINE_OF_ITS_OWN = frozenset({"vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro", "kak"})


def editor_command(environment: Mapping[str, str], file: Path, line: int) -> list[str]:
    """The command that opens `file` at `line`; empty if no editor is known."""
    for variable, value, words in _HOSTS:
        host = environment.get(variable, "")
        if host and value in (None, host) and shutil.which(words[0]):
            return [word.format(host=host, file=file, line=line) for word in words]
    chosen = environment.get("VISUAL") or environment.get("EDITOR")
    words_chosen = shlex.split(chosen, posix=os.name != "nt") if chosen else []
    if not words_chosen and os.name == "nt":
        words_chosen = ["notepad"]
    if not words_chosen:
        return []
    name = Path(words_chosen[0]).stem
    if name in ("code", "codium", "cursor"):
        return [*words_chosen, "--goto", f"{file}:{line}"]
    return [*words_chosen, *([f"+{line}"] if name in _LINE_OF_ITS_OWN else []), str(file)]


def edit(file: Path, line: int, terminal: AbstractContextManager[object]) -> str:
    """Open the file; returns what went wrong, or "".

    `terminal` is a context that is open while the editor uses the terminal.
    """
    command = editor_command(os.environ, file, line)
    if not command:
        return "No editor found: set EDITOR, for example `export EDITOR=nano`"
    try:
        if Path(command[0]).stem in _WINDOWS_OF_THEIR_OWN:
            subprocess.run(command, capture_output=True, check=True, timeout=10)
        else:
            with terminal:
                subprocess.run(command, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"The editor {command[0]} could not be run: {error}"
    return ""
