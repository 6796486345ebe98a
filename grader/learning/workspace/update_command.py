"""`grade update`: brings the files of a newer course into the workspace; no work is lost."""

from __future__ import annotations

import argparse
from pathlib import Path

from grader.command.output import console, short_path
from grader.learning.workspace.news import read_news
from grader.learning.workspace.update import (
    Renamed,
    Update,
    Updated,
    gone_stages,
    rename_stages,
    still_importing,
    update_workspace,
)
from grader.read.progress import recall, recall_present
from grader.read.workspace import locate_workspace, note_version, version_seen
from grader.show.screen import count
from grader.types.progress import StageProgress
from grader.types.workspace import Workspace


def add_options(parser: argparse.ArgumentParser) -> None:
    """After an update of the course: merge its changes into the files of this folder, and show what
    is new. Your work and your progress stay, and it keeps a copy of each file that it replaces.
    """


def run(args: argparse.Namespace) -> int:
    """Print what was done to each file; 1 if the learner has to look at one."""
    from grader.show.scoreboard import GRADE_AGAIN
    from grader.show.workspace import notices, whats_new

    workspace = locate_workspace(args.course)
    if workspace.is_course:
        newer = "unzip a newer copy beside it; `grade init` makes a folder to work in"
        if not workspace.course.is_partial:
            newer = "if it is a clone, `git pull` updates it"
        console(args).print(notices([f"This is the course's own folder: {newer}."]), end="")
        return 0
    renamed = rename_stages(workspace)
    results = update_workspace(workspace)
    course = workspace.course
    news = read_news(course.changes_file, version_seen(workspace.root), course.version)
    sentences = [line for each in renamed for line in _renamed(workspace, each)]
    sentences += [line for result in results for line in _described(workspace, result)]
    if all(result.update is Update.NONE for result in results):
        sentences.append(f"All {len(results)} files are up to date.")
    earned = recall(workspace.root).progress
    sentences += [_gone(file, earned.stage(file.stem)) for file in gone_stages(workspace)]
    present = recall_present(workspace).progress
    if again := sum(present.stage(stage.slug).is_changed for stage in course.stages):
        sentences.append(f"{count(again, 'stage')} {GRADE_AGAIN}: type `grade`.")
    console(args).print(notices(sentences), end="")
    if news:
        console(args).print(whats_new(course.title, news), end="")
    note_version(workspace.root, course.version)
    return 1 if any(result.update is Update.LEFT for result in results) else 0


def _renamed(workspace: Workspace, each: Renamed) -> list[str]:
    """What became of the file of a stage that was renamed."""
    folder = Path(short_path(workspace.exercises))
    name, old = folder / each.stage.file_name, folder / f"{each.old}.py"
    if not each.is_done:
        return [f"{name}: was called {old.name}, and you have begun both. Join them by hand."]
    lines = [f"{name}: was called {old.name}. Your work and your progress are kept."]
    for file in still_importing(workspace, each.old):
        lines.append(f"{folder / file.name}: imports {each.old}: change that to {each.stage.slug}.")
    return lines


def _gone(file: Path, known: StageProgress) -> str:
    earned = f" You earned {count(known.best, 'point')} there." if known.best else ""
    return f"{short_path(file)}: the course no longer has this stage. Your file stays.{earned}"


def _described(workspace: Workspace, result: Updated) -> list[str]:
    if result.update is Update.NONE:
        return []
    name = Path(short_path(workspace.exercises)) / result.stage.file_name  # it may be a link
    said = f"{name}: {result.update.value}"
    if result.beside is None:
        kept = "" if result.copy is None else f" The old one is in {short_path(result.copy)}."
        return [f"{said}.{kept}"]
    why = result.why.removeprefix(f"{workspace.file(result.stage)}: ")
    why = why or "you and the course have changed the same lines"
    beside = f"The new version is {short_path(result.beside)};"
    return [f"{said} ({why}). {beside} `grade diff {result.stage.slug}` compares the two."]
