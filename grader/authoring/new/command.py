"""`grade new STAGE --title "..."`: writes the files of a new stage, or starts a new course."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from grader.authoring.new.course import (
    LIBRARIES,
    name_of,
    new_course,
    refuse_folder,
    refuse_name,
    title_of,
)
from grader.authoring.new.files import Wanted, new_stage, refuse_slug, refuse_title
from grader.command.output import short_path
from grader.read.course_file import FILE_NAME
from grader.read.workspace import is_workspace, locate_whole_course, nearest_root
from grader.types.course import Course
from grader.types.errors import KitError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Write the files of a new stage, with checks of what you name with --function and --class.
    Lines that say TODO: are yours to write, and `grade verify` lists them. Without STAGE: start a
    course in the folder of --course; on a terminal, it asks for what the options leave open. It
    never overwrites a file.
    """
    parser.add_argument(
        "stage", nargs="?", metavar="STAGE", help="the stage's slug, such as half_turn"
    )
    parser.add_argument("--title", metavar="TEXT", help="the title of the stage or the course")
    parser.add_argument(
        "--after", metavar="SLUG", help="the stage before the new one (default: the last)"
    )
    parser.add_argument("--bonus", action="store_true", help="make it a bonus stage")
    parser.add_argument(
        "--function",
        action="append",
        default=[],
        metavar="SIGNATURE",
        help='a function that learners write, such as \'f(x: "B T", n: int) -> "B"\'',
    )
    parser.add_argument(
        "--class",
        dest="classes",
        action="append",
        default=[],
        metavar="SIGNATURE",
        help='a class, and how its objects are called: \'Block(d_model)(x: "B T") -> "B T"\'',
    )
    course = parser.add_argument_group("a new course, in the new folder --course DIR")
    course.add_argument("--name", help="its name (default: the folder's)")
    course.add_argument(
        "--library", choices=tuple(LIBRARIES), help="what its files import (default: numpy)"
    )
    course.add_argument("--first", metavar="SLUG", help="its first stage (default: none yet)")


def run(args: argparse.Namespace) -> int:
    """Write a stage or a course; print the written files and the next commands."""
    if args.stage is None:
        return _new_course(args)
    for option in ("name", "library", "first"):
        if getattr(args, option):
            raise KitError(f"--{option} is for a new course: leave out '{args.stage}'")
    course = _authors_course(args.course)
    title = _title(args, f"grade new {args.stage}")
    wanted = Wanted(args.stage, title, args.after, args.bonus, args.function, args.classes)
    stage, files = new_stage(course, wanted)
    _tell(course.root, files, added_to=FILE_NAME)
    where = "" if args.course is None else f" --course {shlex.quote(short_path(course.root))}"
    print(f"It has {stage.points:g} points and requires no stage: change its table if needed.")
    print(f"See what is left to do:        grade verify {stage.slug}{where}")
    print(f"Prove it at every save:        grade watch --author {stage.slug}{where}")
    print(f"Get misconceptions suggested:  grade suggest {stage.slug}{where}")
    print(f"See what learners will see:    grade preview {stage.slug}{where}")
    print(f"After a change in solutions/:  grade stubs{where}")
    return 0


def _new_course(args: argparse.Namespace) -> int:
    if args.course is None:
        raise KitError("name the stage, or start a course: `grade new --course DIR --title TEXT`")
    for option in ("after", "bonus"):
        if getattr(args, option):
            raise KitError(f"--{option} needs a stage: type `grade new STAGE`")
    if (args.function or args.classes) and args.first is None:
        raise KitError("--function and --class need a stage: name the first with --first SLUG")
    refuse_folder(args.course)
    if sys.stdin.isatty() and sys.stdout.isatty():
        _ask(args)
    title = _title(args, f"grade new --course {shlex.quote(str(args.course))}")
    first = None
    if args.first is not None:
        words = title_of(args.first)
        first = Wanted(args.first, words, functions=args.function, classes=args.classes)
    library = args.library or next(iter(LIBRARIES))
    course, files = new_course(args.course, title, name=args.name, library=library, first=first)
    _tell(course.root, files)
    print(f"Go there:        cd {shlex.quote(short_path(course.root))}")
    if course.stages:
        print("Prove it:        grade verify")
    which = "next" if course.stages else "first"
    print(f'{f"The {which} stage:":16} grade new STAGE --title "..."')
    return 0


def _ask(args: argparse.Namespace) -> None:
    """Ask on the terminal for what the options leave open."""
    if args.name is None:
        args.name = _answer("The course's name", name_of(args.course), refuse_name)
    if args.title is None:
        args.title = _answer("Its title", title_of(args.name), refuse_title)
    if args.library is None:
        words = "Its library, or python for none: " + ", ".join(LIBRARIES)
        args.library = _answer(words, next(iter(LIBRARIES)), _refuse_library)
    if args.first is None:
        words = "The first stage's slug, such as half_turn (none: Enter)"
        args.first = _answer(words, "", _refuse_first) or None


def _answer(question: str, default: str, refuse: Callable[[str], object]) -> str:
    """What is typed, or the default for Enter; asks again until `refuse` raises no KitError."""
    while True:
        try:
            typed = input(f"{question}{f' [{default}]' if default else ''}: ").strip() or default
        except EOFError:  # Ctrl-D
            print()
            raise KeyboardInterrupt from None
        try:
            refuse(typed)
        except KitError as error:
            print(f"  {error}")
        else:
            return typed


def _refuse_first(slug: str) -> None:
    if slug:
        refuse_slug((), slug)


def _refuse_library(word: str) -> None:
    if word not in LIBRARIES:
        raise KitError(f"'{word}': type one of {', '.join(LIBRARIES)}")


def _authors_course(given: Path | None) -> Course:
    """The course to add to: the named one, else the one around the working folder. KitError."""
    if given is not None and not given.exists():
        raise KitError(f"{given}: does not exist: without STAGE, `grade new` starts a course there")
    nearest = nearest_root(Path.cwd())
    if given is None and (nearest is None or is_workspace(nearest)):
        raise KitError("this is not a course's folder: go to one, or name it with --course DIR")
    return locate_whole_course(given or nearest, may_be_empty=True)


def _title(args: argparse.Namespace, words: str) -> str:
    if args.title is None:
        raise KitError(f'a title is missing: {words} --title "Half a turn"')
    title: str = args.title
    return title


def _tell(root: Path, files: Sequence[Path], added_to: str = "") -> None:
    """Print the files by their paths in the course's folder, and that folder if it is another."""
    if root != Path.cwd():
        print(f"In {short_path(root)}:")
    if added_to:
        print(f"added to: {added_to}")
    for file in files:
        print(f"written: {file.relative_to(root).as_posix()}")
    print()
