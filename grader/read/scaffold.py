"""What `grade init` puts into a folder, so that a learner can work there.

`folder_files` is pure; `make_workspace` writes, and never over a file that is there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.read.exercises import began_from, keep_stub, kept_stub, read_work, text_of, unwritten
from grader.read.files import write_whole
from grader.read.progress import memory_folder
from grader.read.workspace import is_workspace, mark_workspace
from grader.types.course import Course
from grader.types.errors import KitError
from grader.types.workspace import Workspace

_SETTINGS = "pyproject.toml"


@dataclass(frozen=True)
class Made:
    """What was done: `files` were written into `root`, which `was_there` as a workspace before."""

    root: Path
    files: tuple[str, ...]
    was_there: bool


def make_workspace(root: Path, course: Course, python: str | None) -> Made:
    """Make `root` a workspace, or bring back what is missing in one.

    `python` is the interpreter for the editor. Raises KitError, before anything is written if a
    file is in the way, or if a folder in which nobody works now holds something else.
    """
    workspace = Workspace(root, course)
    texts = folder_files(course, python)
    stubs = {f"exercises/{s.file_name}": (s, began_from(workspace, s)) for s in course.stages}
    texts.update((name, stub) for name, (_, stub) in stubs.items())
    was_there = is_workspace(root) or _has_lost_its_memory(root, texts)
    if not was_there:
        _refuse_to_replace(root, texts)
        _refuse_to_mix(root, texts)
    missing = tuple(name for name in texts if not os.path.lexists(root / name))
    try:
        root.mkdir(parents=True, exist_ok=True)
        for name in missing:
            if name in stubs and kept_stub(workspace, stubs[name][0]) is None:
                keep_stub(workspace, *stubs[name])
            (root / name).parent.mkdir(exist_ok=True)
            write_whole(root / name, texts[name])
    except OSError as error:
        raise unwritten(error, root) from None
    mark_workspace(root, course)
    return Made(root, missing, was_there)


def has_spoilt_mark(root: Path) -> bool:
    """Whether the mark of a workspace cannot be understood, so that it may be written anew."""
    try:
        mark = json.loads((memory_folder(root) / "workspace.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return True
    return not isinstance(mark, dict) or not isinstance(mark.get("course"), (str, type(None)))


def folder_files(course: Course, python: str | None) -> dict[str, str]:
    """The texts of all files but the stubs, by their paths in the folder."""
    return {
        "README.md": _readme(course),
        _SETTINGS: _CHECKERS,
        ".gitignore": _IGNORED,
        ".vscode/settings.json": _json(_editor_settings(python)),
        ".vscode/tasks.json": _json(_editor_tasks(python)),
    }


def _refuse_to_replace(root: Path, texts: Mapping[str, str]) -> None:
    """Raises KitError if a file of that name is there with something else in it.

    One with the same text is ours: we were interrupted here before.
    """
    if root.exists() and not root.is_dir():
        raise KitError(f"{root}: is a file: name another folder")
    for name, text in texts.items():
        work = read_work(root / name)
        if work is not None and text_of(work) != text:
            raise KitError(f"{root / name}: is in the way: move it, or name another folder")


def _refuse_to_mix(root: Path, texts: Mapping[str, str]) -> None:
    """Raises KitError if other files are there and nobody can have meant to work among them.

    Whoever is in the folder has chosen it, and where git is, nothing can be mixed up for good.
    """
    ours = {name.partition("/")[0] for name in texts}
    others = [path for path in _entries(root) if path.name not in ours and path.name[0] != "."]
    if not others or root == Path.cwd() or (root / ".git").exists():
        return
    raise KitError(
        f"{root}: holds other files, such as {min(others).name}: name a new folder, or go there "
        f"and type `grade init .`, which adds {', '.join(sorted(ours))}"
    )


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise KitError(f"{folder}: cannot be read: {error.strerror}") from None


def _has_lost_its_memory(root: Path, texts: Mapping[str, str]) -> bool:
    """Whether it was a workspace: cloned with git, say, which does not take .grade/ along."""
    try:
        work = read_work(root / _SETTINGS)
    except KitError:
        return False
    return work is not None and text_of(work) == texts[_SETTINGS]


def _readme(course: Course) -> str:
    first = course.stages[0]
    stages = "\n".join(
        f"{number}. `{stage.file_name}`: {stage.title}{' (bonus)' if stage.bonus else ''}"
        for number, stage in enumerate(course.stages, start=1)
    )
    text = _README.format(title=course.title, first=first.file_name, stages=stages)
    if course.is_partial:
        text = re.sub(r"^.*`grade solution STAGE`.*\n", "", text, flags=re.MULTILINE)
        text = text.replace("All green? On", "The visible checks pass? On")
    return text


def _editor_settings(python: str | None) -> dict[str, object]:
    interpreter = {} if python is None else {"python.defaultInterpreterPath": python}
    return {**interpreter, "python.analysis.extraPaths": ["./exercises"]}


def _editor_tasks(python: str | None) -> dict[str, object]:
    command, first = ("grade", []) if python is None else (python, ["-m", "grader"])

    def task(label: str, *words: str) -> dict[str, object]:
        return {
            "label": label,
            "type": "process",
            "command": command,
            "args": [*first, *words],
            "options": {"cwd": "${workspaceFolder}"},
            "problemMatcher": [],
        }

    this_file = task("grade this file", "${fileBasenameNoExtension}")
    this_file["group"] = {"kind": "test", "isDefault": True}
    tasks = [this_file, task("grade watch", "watch"), task("grade hint", "hint")]
    return {"version": "2.0.0", "tasks": tasks}


def _json(data: object) -> str:
    return json.dumps(data, indent=2) + "\n"


_CHECKERS = """\
# For editors and type checkers: the files in exercises/ import one another.
[tool.mypy]
files = ["exercises"]
mypy_path = "$MYPY_CONFIG_FILE_DIR/exercises"
explicit_package_bases = true

[tool.pyright]
include = ["exercises"]
extraPaths = ["exercises"]
"""
_IGNORED = """\
# What the grader remembers, and settings that hold on this machine alone.
.grade/
.vscode/
.venv/
__pycache__/
.mypy_cache/
"""
_README = """\
# {title}

You write in the files of `exercises/`, and `grade` says what holds, what does
not and why.

## How you work

1. Open the first file, `{first}`, and read it.
2. Put your code in place of `raise NotImplementedError(...)` and save.
3. Type `grade` in this folder, or leave `grade watch` running beside the
   editor: it grades at each save.
4. Stuck? `grade hint` gives one small hint, and the next time one more.
5. All green? On to the next file. It may call what you have written.

| type | for |
|---|---|
| `grade watch` | the verdict at each save |
| `grade` | every stage, and why the first one fails |
| `grade STAGE` | one stage |
| `grade list` | the stages, and what to write in each |
| `grade hint` | the next hint |
| `grade diff STAGE` | what you have changed |
| `grade reset STAGE` | the file as it was at first; a copy of yours is kept |
| `grade solution STAGE` | the solution, once you have passed |
| `grade update` | new versions of the files, after an update of the course |

If `grade` is not found, activate the Python environment that the course is
installed in; `python -m grader` does the same.

## The files, in order

{stages}

## Your editor

Each of the files also runs by itself, with `python` or an editor's run button.
In VS Code, open this folder; "Run Test Task" grades the file that you are in.

`grade init`, typed in this folder, brings back what is missing. `.grade/` holds
your progress: leave it where it is.
"""
