"""`grade reset STAGE`: the file as it was at first; a copy of the learner's is kept."""

from __future__ import annotations

import argparse

from grader.command.output import console, short_path
from grader.read.course_file import find_stage
from grader.read.exercises import began_from, keep_stub, kept_stub, read_work, text_of, write_work
from grader.read.workspace import locate_workspace


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say what `grade reset` is and takes."""
    parser.description = (
        "Put back the file of a stage as it was at first. A copy of yours is kept, and "
        "so is your progress."
    )
    parser.add_argument("stage", metavar="STAGE")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Put the stub back and say where the copy is."""
    from grader.show.workspace import notices

    workspace = locate_workspace(args.course)
    stage = find_stage(workspace.course, args.stage)
    file, stub = workspace.file(stage), began_from(workspace, stage)
    name, work = short_path(file), read_work(file)
    if work is not None and text_of(work) == stub:
        said = [f"{name} is as it was at first: there is nothing to put back."]
    else:
        if not workspace.is_course and kept_stub(workspace, stage) is None:
            keep_stub(workspace, stage, stub)
        copy = write_work(workspace, stage, stub)
        said = [f"{name} is as it was at first."]
        if copy is not None:
            said.append(f"What you had is in {short_path(copy)}. Your progress stays.")
    console(args).print(notices(said), end="")
    return 0
