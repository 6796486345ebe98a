"""`grade reset STAGE`: replaces your file by its stub and keeps a copy of yours."""

from __future__ import annotations

import argparse

from grader.command.output import console, short_path
from grader.learning.workspace.exercises import (
    began_from,
    keep_stub,
    kept_stub,
    read_work,
    text_of,
    write_work,
)
from grader.read.course_file import find_stage
from grader.read.workspace import locate_workspace


def add_options(parser: argparse.ArgumentParser) -> None:
    """Restore a stage's original stub. It keeps a copy of your file, and your progress."""
    parser.add_argument("stage", metavar="STAGE")


def run(args: argparse.Namespace) -> int:
    """Restore the stub and print where the copy is."""
    from grader.show.workspace import notices

    workspace = locate_workspace(args.course)
    stage = find_stage(workspace.course, args.stage)
    file, stub = workspace.file(stage), began_from(workspace, stage)
    name, work = short_path(file), read_work(file)
    if work is not None and text_of(work) == stub:
        sentences = [f"{name} is still the stub: there is nothing to reset."]
    else:
        if not workspace.is_course and kept_stub(workspace, stage) is None:
            keep_stub(workspace, stage, stub)
        copy = write_work(workspace, stage, stub)
        sentences = [f"{name} is the original stub again."]
        if copy is not None:
            sentences.append(f"Your version is in {short_path(copy)}. Your progress stays.")
    console(args).print(notices(sentences), end="")
    return 0
