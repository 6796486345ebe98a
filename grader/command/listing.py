"""`grade list`: the stages, what there is to write in each and what it builds on."""

from __future__ import annotations

import argparse

from grader.read.course_file import locate_course


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `grade list`."""
    parser = commands.add_parser("list", help="show the stages", description=__doc__)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the stages."""
    from rich.console import Console

    from grader.show.terminal import Listed, listing

    course = locate_course(args.course)
    stages = [
        Listed(
            slug=stage.slug,
            title=stage.title,
            points=stage.points,
            functions=tuple(entry.name for entry in stage.entry_points),
            requires=stage.requires,
            bonus=stage.bonus,
        )
        for stage in course.stages
    ]
    Console().print(listing(course.title, stages), end="")
    return 0
