"""The files that `grade init` writes into a learner's folder.

`folder_files` is pure; `make_workspace` writes, and never overwrites a file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.learning.workspace.exercises import began_from, keep_stub, kept_stub, read_work, text_of
from grader.read.files import write_whole
from grader.read.workspace import is_workspace, mark_workspace, refuse_other_course
from grader.types.course import Course
from grader.types.errors import KitError, writing
from grader.types.resources import filled, resource
from grader.types.workspace import Workspace

_SETTINGS = "pyproject.toml"
# How an editor finds the place of a failure in what `grade` prints: "softmax.py, line 4: ...".
# The message is the whole line: VS Code shows no problem whose message is empty.
PLACES = {
    "owner": "grade",
    "fileLocation": ["relative", "${workspaceFolder}/exercises"],
    "pattern": {
        "regexp": r"^\s+((?:look at\s+)?(?:exercises/)?(\w+\.py), line (\d+)(?:[,:].*)?)$",
        "file": 2,
        "line": 3,
        "message": 1,
    },
}


@dataclass(frozen=True)
class Made:
    """The `files` written, and whether the folder `was_there` as a workspace before."""

    files: tuple[str, ...]
    was_there: bool


def make_workspace(root: Path, course: Course, python: str | None) -> Made:
    """Make `root` a workspace, or restore missing files in one.

    `python` is the interpreter for the editor. Raises KitError before writing anything if a file is
    in the way, if it is a workspace of another course, or if the folder, which is not the working
    folder, holds other files.
    """
    refuse_other_course(root, course)
    workspace = Workspace(root, course)
    texts = folder_files(course, python)
    stubs = {f"exercises/{s.file_name}": (s, began_from(workspace, s)) for s in course.stages}
    texts.update((name, stub) for name, (_, stub) in stubs.items())
    was_there = is_workspace(root) or has_lost_its_memory(root, course)
    if not was_there:
        _refuse_to_replace(root, texts)
        _refuse_to_mix(root, texts)
    missing = tuple(name for name in texts if not os.path.lexists(root / name))
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        for name in missing:
            if name in stubs and kept_stub(workspace, stubs[name][0]) is None:
                keep_stub(workspace, *stubs[name])
            (root / name).parent.mkdir(exist_ok=True)
            write_whole(root / name, texts[name])
    mark_workspace(root, course)
    return Made(missing, was_there)


def has_lost_its_memory(root: Path, course: Course) -> bool:
    """Whether it was a workspace, such as one cloned with git, which leaves .grade/ behind."""
    try:
        work = read_work(root / _SETTINGS)
    except KitError:
        return False
    return work is not None and text_of(work) == _settings(course)


def folder_files(course: Course, python: str | None) -> dict[str, str]:
    """The texts of all files except the stubs, by path in the folder."""
    interpreter = {} if python is None else {"python.defaultInterpreterPath": python}
    settings = {**interpreter, "python.analysis.extraPaths": ["./exercises"]}
    return {
        "README.md": _readme(course),
        _SETTINGS: _settings(course),
        ".gitignore": resource(__package__, "templates/gitignore"),
        ".vscode/settings.json": _json(settings),
        ".vscode/tasks.json": _json(_editor_tasks(python)),
    }


def _refuse_to_replace(root: Path, texts: Mapping[str, str]) -> None:
    """Raise KitError if such a file exists with another text.

    A file with the same text is ours, from an interrupted run.
    """
    if root.exists() and not root.is_dir():
        raise KitError(f"{root}: is a file: name another folder")
    for name, text in texts.items():
        work = read_work(root / name)
        if work is not None and text_of(work) != text:
            raise KitError(f"{root / name}: is in the way: move it, or name another folder")


def _refuse_to_mix(root: Path, texts: Mapping[str, str]) -> None:
    """Raise KitError if the folder has other files and the learner did not choose it knowingly.

    The working folder was chosen knowingly, and in a git repository every change can be undone.
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


def _settings(course: Course) -> str:
    return filled(__package__, "templates/checkers.toml", name=course.name)


def _readme(course: Course) -> str:
    first = course.stages[0]
    stages = "\n".join(
        f"{number}. `{stage.file_name}`: {stage.title}{' (bonus)' if stage.bonus else ''}"
        for number, stage in enumerate(course.stages, start=1)
    )
    text = filled(
        __package__, "templates/readme.md", title=course.title, first=first.file_name, stages=stages
    )
    has = {
        "predict STAGE": any(stage.predictions_file.is_file() for stage in course.stages),
        "trace STAGE": any(stage.trace_file.is_file() for stage in course.stages),
        "explore": any(stage.explore_file.is_file() for stage in course.stages),
        "finale": any(stage.finale_file.is_file() for stage in course.stages),
        "solution STAGE": not course.is_partial,
        "certificate": not course.is_partial,
    }
    for command in (command for command, is_there in has.items() if not is_there):
        text = re.sub(rf"^.*`grade {command}`.*\n", "", text, flags=re.MULTILINE)
    if course.is_partial:
        text = text.replace("All green? Go", "The visible checks pass? Go")
    return text


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
    this_file["problemMatcher"] = PLACES
    tasks = [this_file, task("grade watch", "watch"), task("grade hint", "hint")]
    return {"version": "2.0.0", "tasks": tasks}


def _json(data: object) -> str:
    return json.dumps(data, indent=2) + "\n"
