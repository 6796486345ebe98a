"""`grade list`: the stages, what there is to write in each and what it builds on."""

from __future__ import annotations

import argparse

from grader.command.output import console
from grader.read.workspace import locate_course


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `grade list`."""
    parser = commands.add_parser("list", help="show the stages", description=__doc__)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the stages."""
    from grader.show.listing import listing

    console(args).print(listing(locate_course(args.course)), end="")
    return 0
