"""`grade update`: brings the files of a newer course into the workspace; no work is lost."""

from __future__ import annotations

import argparse
from pathlib import Path

from grader.command.output import console, short_path
from grader.learning.workspace.update import Update, Updated, gone_stages, update_workspace
from grader.read.workspace import locate_workspace
from grader.types.workspace import Workspace


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of `grade update`."""
    parser.description = (
        "After an update of the course: merge its changes into the files of this folder. Your work "
        "and your progress stay, and it keeps a copy of each file that it replaces."
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what was done to each file; 1 if the learner has to look at one."""
    from grader.show.workspace import notices

    workspace = locate_workspace(args.course)
    if workspace.is_course:
        newer = "unzip a newer copy beside it; `grade init` makes a folder to work in"
        if not workspace.course.is_partial:
            newer = "`git pull` updates it"
        console(args).print(notices([f"This is the course's own folder: {newer}."]), end="")
        return 0
    results = update_workspace(workspace)
    sentences = [line for result in results for line in _described(workspace, result)]
    if all(result.update is Update.NONE for result in results):
        sentences.append(f"All {len(results)} files are up to date.")
    sentences += [
        f"{short_path(file)}: the course no longer has this stage. Your file stays."
        for file in gone_stages(workspace)
    ]
    console(args).print(notices(sentences), end="")
    return 1 if any(result.update is Update.LEFT for result in results) else 0


def _described(workspace: Workspace, result: Updated) -> list[str]:
    name = Path(short_path(workspace.exercises)) / result.stage.file_name  # it may be a link
    kept = "" if result.copy is None else f" The old one is in {short_path(result.copy)}."
    if result.update is Update.ADDED:
        return [f"{name}: new."]
    if result.update is Update.RENEWED:
        return [f"{name}: replaced by the new stub.{kept}"]
    if result.update is Update.MERGED:
        return [f"{name}: the course's changes are merged into your work.{kept}"]
    if result.update is Update.LEFT and result.beside is not None:
        why = result.why.removeprefix(f"{workspace.file(result.stage)}: ")
        why = why or "you and the course have changed the same lines"
        beside = f"The new version is {short_path(result.beside)};"
        compare = f"`grade diff {result.stage.slug}` compares the two."
        return [f"{name}: unchanged ({why}). {beside} {compare}"]

    return []
