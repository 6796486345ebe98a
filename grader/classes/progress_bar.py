"""How many of a class's submissions are graded, while they are."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from grader.command.output import redrawn


@contextmanager
def progress_bar(args: argparse.Namespace, what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal's stderr; call the yielded function after each step.

    It starts no thread, because the process may fork meanwhile.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    errors = redrawn(args)
    if errors is None:
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
            progress.update(task, rate=f"{60 * speed:.0f}/min" if speed else "", refresh=True)

        yield advance
