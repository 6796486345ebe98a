"""`grade watch --author [STAGE]`: proves a stage at every save, beside the author's editor."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from grader.command.course import authors_course
from grader.command.output import console, is_plain, stage_bar
from grader.read.course_file import FILE_NAME, find_stage
from grader.types.errors import KitError

_LOOK_SECONDS = 0.25  # a look takes five milliseconds


def add_options(parser: argparse.ArgumentParser) -> None:
    """Keep this open beside your editor: whenever you save a file of a stage, it rewrites the stub
    and proves the stage. Only what the save can have changed runs again. Ctrl-C ends it.
    """
    parser.add_argument("stage", nargs="?", metavar="STAGE", help="default: the one you saved last")
    parser.add_argument("--author", action="store_true", required=True, help="prove, not grade")


def run(args: argparse.Namespace) -> int:
    """Watch until Ctrl-C; 0 if the stage shown last is proven, else 1. Raises KitError."""
    from grader.authoring.watch.loop import newest, watch
    from grader.authoring.watch.screen import proved_screen

    course = authors_course(args)
    if not course.stages:
        raise KitError(f"{FILE_NAME}: has no stage yet: type `grade new STAGE`")
    stage = find_stage(course, args.stage) if args.stage else newest(course)
    screen, is_sound = console(args), False
    try:
        with stage_bar(args) as progress:
            for proved in watch(course, stage.slug, _moments(), progress):
                is_sound = proved.proof is not None and proved.proof.is_sound
                if screen.is_terminal and not is_plain(args):
                    screen.clear()
                screen.print(proved_screen(proved), end="")
    except KeyboardInterrupt:
        pass
    return 0 if is_sound else 1


def _moments() -> Iterator[None]:
    """Yields when a file may have been saved."""
    while True:
        time.sleep(_LOOK_SECONDS)
        yield
