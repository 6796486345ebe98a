"""`grade suggest STAGE`: candidates for misconceptions, inputs and examples, from the solution."""

from __future__ import annotations

import argparse

from grader.authoring.suggest.types import Mistake, Suggestions
from grader.command.course import authors_course
from grader.command.output import console, stage_bar, write_file
from grader.read.course_file import find_stage
from grader.types.course import Stage
from grader.types.errors import KitError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Suggest wrong answers, made from the solution by small changes that behave in a new way, the
    most natural first. Also suggest inputs that no check tries and that tell more of them apart,
    and a worked example. --write 1 3 adds these two to the stage's files; you write the sentences.
    """
    parser.add_argument("stage", metavar="STAGE", help="the stage's slug or number")
    parser.add_argument(
        "--write",
        nargs="*",
        type=int,
        metavar="N",
        help="add these misconceptions (without numbers: all), and the example, to the files",
    )


def run(args: argparse.Namespace) -> int:
    """Print the suggestions, or write the chosen ones. Raises KitError."""
    from grader.authoring.suggest.screen import suggestions_screen
    from grader.authoring.suggest.suggesting import suggest

    course = authors_course(args)
    stage = find_stage(course, args.stage)
    with stage_bar(args) as progress:
        found = suggest(course, stage, progress)
    if args.write is None:
        console(args).print(suggestions_screen(found), end="")
        return 0
    for line in _write(stage, found, _chosen(found, args.write)):
        print(line)
    return 0


def _chosen(found: Suggestions, numbers: list[int]) -> list[Mistake]:
    most = len(found.mistakes)
    for number in numbers:
        if not 1 <= number <= most:
            there = f"suggestions 1 to {most}" if most else "no suggestions"
            raise KitError(f"--write {number}: there are {there}")
    return [found.mistakes[number - 1] for number in numbers or range(1, most + 1)]


def _write(stage: Stage, found: Suggestions, chosen: list[Mistake]) -> list[str]:
    """Add the chosen misconceptions and the examples; the lines that say what was done."""
    from grader.authoring.suggest.writing import with_examples, with_mistakes

    told = []
    mistakes, solution = stage.misconceptions_file, stage.solution_file
    if chosen:
        text = mistakes.read_text("utf-8-sig") if mistakes.is_file() else ""
        write_file(mistakes, with_mistakes(text, chosen))
        names = ", ".join(each.id for each in chosen)
        told.append(f"{stage.place(mistakes)}: added {names}")
    text = solution.read_text("utf-8-sig")
    if (changed := with_examples(text, found.examples)) != text:
        write_file(solution, changed)
        told.append(f"{stage.place(solution)}: added an example; now type `grade stubs`")
    return told or ["Nothing to add."]
