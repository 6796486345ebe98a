"""The console that a command prints on."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_UNBROKEN = 10_000  # columns: a screen reader reads a line at a time
_PLAIN = "GRADE_PLAIN"  # set to anything, it is --plain for every command


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command takes."""
    parser.add_argument(
        "--course",
        type=Path,
        metavar="DIR",
        help="the course's folder (default: found from here)",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="for screen readers: one fact a line, no bars or boxes (or set GRADE_PLAIN=1)",
    )


def is_plain(args: argparse.Namespace) -> bool:
    """Whether there is to be nothing but lines of text."""
    return bool(args.plain or os.environ.get(_PLAIN))


def console(args: argparse.Namespace) -> Console:
    """The console for stdout, of the kind that was asked for."""
    from rich.console import Console

    from grader.show.screen import PlainConsole

    if is_plain(args):
        return PlainConsole(no_color=True, width=_UNBROKEN)
    return Console()


@contextmanager
def status_line(args: argparse.Namespace) -> Iterator[Callable[[str], None]]:
    """A line on a terminal's stderr that tells what is being done, and is gone at the end."""
    from rich.console import Console

    errors = Console(stderr=True)
    if is_plain(args) or not errors.is_terminal:
        yield lambda what: None
        return
    with errors.status("starting") as line:
        yield line.update


@contextmanager
def progress_bar(args: argparse.Namespace, what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal's stderr, to be advanced by one: how many, how fast, how long yet.

    It starts no thread, as the process may be forked meanwhile.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    errors = Console(stderr=True)
    if is_plain(args) or not errors.is_terminal:
        yield lambda: None
        return
    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate)
    with Progress(*columns, Remaining(), console=errors, auto_refresh=False) as progress:
        task = progress.add_task(what, total=total, rate="")
        progress.refresh()

        def advance() -> None:
            progress.advance(task)
            speed = progress.tasks[0].speed
            progress.update(task, rate=f"{60 * speed:.0f} a minute" if speed else "", refresh=True)

        yield advance


@contextmanager
def stage_bar(args: argparse.Namespace) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal's stderr for the stage at hand; it starts no thread."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    errors = Console(stderr=True)
    if is_plain(args) or not errors.is_terminal:
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
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
