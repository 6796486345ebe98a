"""`grade update`: brings the files of a newer course into the workspace; no work is lost."""

from __future__ import annotations

import argparse
from pathlib import Path

from grader.command.output import console, short_path
from grader.read.update import Update, Updated, gone_stages, update_workspace
from grader.read.workspace import locate_workspace
from grader.types.workspace import Workspace


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say what `grade update` is and takes."""
    parser.description = (
        "After the course was updated: bring what is new into the files of this "
        "folder. Your work and your progress stay, and a copy of each file replaced is kept."
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what was done to each file; 1 if one is left for the learner to look at."""
    from grader.show.workspace import notices

    workspace = locate_workspace(args.course)
    if workspace.is_course:
        newer = "a newer copy is unzipped beside it, and `grade init` makes a folder to work in"
        if not workspace.course.is_partial:
            newer = "`git pull` brings a newer one"
        said = [f"This is the course's own folder: {newer}."]
        console(args).print(notices(said), end="")
        return 0
    results = update_workspace(workspace)
    said = [line for result in results for line in _said(workspace, result)]
    if all(result.update is Update.NONE for result in results):
        said.append(f"All {len(results)} files are up to date.")
    said += [
        f"{short_path(file)}: the course has no such stage any more. Your file stays."
        for file in gone_stages(workspace)
    ]
    console(args).print(notices(said), end="")
    return 1 if any(result.update is Update.LEFT for result in results) else 0


def _said(workspace: Workspace, result: Updated) -> list[str]:
    name = Path(short_path(workspace.exercises)) / result.stage.file_name  # it may be a link
    kept = "" if result.copy is None else f" The old one is in {short_path(result.copy)}."
    if result.update is Update.ADDED:
        return [f"{name}: new."]
    if result.update is Update.RENEWED:
        return [f"{name}: written anew.{kept}"]
    if result.update is Update.MERGED:
        return [f"{name}: your work stays, and what is new is in it.{kept}"]
    if result.update is Update.LEFT and result.beside is not None:
        why = result.why.removeprefix(f"{workspace.file(result.stage)}: ")
        why = why or "you and the course have changed the same lines"
        beside = f"The new version is {short_path(result.beside)}, and"
        compare = f"`grade diff {result.stage.slug}` compares the two."
        return [f"{name}: left as it is ({why}). {beside} {compare}"]
    return []
