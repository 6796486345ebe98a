"""The console that a command prints on."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from grader.read.files import write_whole
from grader.types.errors import writing
from grader.types.text import safe

if TYPE_CHECKING:
    from rich.console import Console

    from grader.show.screen import CourseConsole

_UNBROKEN = 10_000  # columns: long enough that no line breaks, for screen readers
_PLAIN = "GRADE_PLAIN"  # if set, it means --plain for every command


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command takes."""
    parser.add_argument(
        "--course",
        type=Path,
        metavar="DIR",
        help="the course's folder, or the name of an installed course (default: the course of this "
        "folder)",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="for screen readers: one fact per line, no bars or boxes (or set GRADE_PLAIN=1)",
    )


def is_plain(args: argparse.Namespace) -> bool:
    """Whether the output must be plain lines of text."""
    return bool(args.plain or os.environ.get(_PLAIN))


def complain(text: str) -> None:
    """Print `text` to stderr after "grade: "; a terminal breaks it only between words."""
    lines = f"grade: {safe(text)}".split("\n")
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
        lines = [wrapper.fill(line) for line in lines]
    print("\n".join(lines), file=sys.stderr)


def console(args: argparse.Namespace) -> CourseConsole:
    """The console for stdout, plain if so requested."""
    from grader.show.screen import CourseConsole, PlainConsole

    # rich takes a terminal that says it is dumb for 80 columns wide, unless both sizes are given.
    columns, height = shutil.get_terminal_size()
    if is_plain(args):
        made: CourseConsole = PlainConsole(no_color=True, width=_UNBROKEN, height=height)
    elif os.environ.get("TERM") == "dumb" and sys.stdout.isatty():
        made = CourseConsole(width=columns, height=height)
    else:
        made = CourseConsole()
    if args.course is not None:
        made.course = f"--course {shlex.quote(str(args.course))}"
    return made


def redrawn(args: argparse.Namespace) -> Console | None:
    """The console for a line on stderr that is redrawn, or None where none can be.

    A Jupyter cell gives `!grade` a terminal, but keeps every line that was to vanish. GitHub's
    runner only wants colours in its log (FORCE_COLOR), which rich takes for a terminal.
    """
    from rich.console import Console

    errors = Console(stderr=True)
    is_cell = "JPY_PARENT_PID" in os.environ
    is_terminal = errors.is_terminal and sys.stderr.isatty()
    return None if is_plain(args) or is_cell or not is_terminal else errors


@contextmanager
def status_line(args: argparse.Namespace) -> Iterator[Callable[[str], None]]:
    """A line on a terminal's stderr that shows the current step and vanishes at the end."""
    errors = redrawn(args)
    if errors is None:
        yield lambda what: None
        return
    with errors.status("starting") as line:
        yield line.update


@contextmanager
def stage_bar(args: argparse.Namespace) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal's stderr for the current stage; it starts no thread."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    errors = redrawn(args)
    if errors is None:
        yield lambda slug, done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=errors, auto_refresh=False, transient=True) as progress:
        task = progress.add_task("", total=None)

        def tell(slug: str, done: int, total: int) -> None:
            progress.update(task, description=slug, completed=done, total=total, refresh=True)

        yield tell


def short_path(path: Path) -> str:
    """`path` as the learner would type it here."""
    try:
        return str(Path(os.path.realpath(path)).relative_to(Path.cwd()))  # resolve refuses a loop
    except ValueError:
        return str(path)


def write_file(path: Path, data: bytes | str) -> None:
    """Write a file in one step, and its folders. Raises KitError."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
