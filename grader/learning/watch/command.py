"""`grade watch [STAGE]`: grades the stage at every save, beside your editor."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from grader.command.grade import add_device
from grader.command.output import console, is_plain
from grader.read.course_file import find_stage
from grader.read.workspace import locate_workspace
from grader.types.seed import fresh_seed

if TYPE_CHECKING:
    from rich.console import Console

    from grader.learning.watch.state import Watching
    from grader.types.course import Stage
    from grader.types.workspace import Workspace


def add_options(parser: argparse.ArgumentParser) -> None:
    """Keep this open beside your editor: it grades the stage at every save, and moves on to the
    next stage when this one passes. Without a terminal it prints lines.
    """
    parser.add_argument("stage", nargs="?", metavar="STAGE", help="default: your current stage")
    add_device(parser)
    parser.add_argument("--seed", type=int, help="seed of the checks' random inputs")


def run(args: argparse.Namespace) -> int:
    """Watch until q or Ctrl-C; 0 if every core stage has passed, else 1."""
    from grader.show.scoreboard import GRADE_AGAIN
    from grader.show.screen import count
    from grader.types.course import core_of
    from grader.types.report import Status

    workspace = locate_workspace(args.course)
    stage = find_stage(workspace.course, args.stage) if args.stage else None
    seed = fresh_seed() if args.seed is None else args.seed
    screen = console(args)
    is_drawn = screen.is_terminal and not screen.is_dumb_terminal
    if is_drawn and sys.stdin.isatty() and not is_plain(args):
        state = _on_a_terminal(screen, workspace, stage, args.device, seed)
    else:
        state = _line_by_line(screen, workspace, stage, args.device, seed)
    core = core_of(workspace.course.stages)
    left = [s for s in core if state.progress.stage(s.slug).status is not Status.PASSED]
    so_far, farewell = f"{len(core) - len(left)} of {len(core)} stages pass.", "Well done!"
    if workspace.course.is_partial:
        so_far = f"The visible checks of {so_far} More checks run on submission."
        farewell = ""
    changed = sum(state.progress.stage(stage.slug).is_changed for stage in core)
    if changed:
        so_far += f" {count(changed, 'stage')} {GRADE_AGAIN}."
    screen.print(f"  {so_far} ", end="")
    go_on = "To continue, type  [bold cyan]grade watch[/]" if left else farewell
    screen.print(go_on, highlight=False)
    return 1 if left else 0


def _on_a_terminal(
    screen: Console, workspace: Workspace, stage: Stage | None, device: str, seed: int
) -> Watching:
    from rich.live import Live

    from grader.learning.watch.editor import edit
    from grader.learning.watch.keys import Keys
    from grader.learning.watch.loop import Watch
    from grader.learning.watch.screen import watch_screen

    def show(state: Watching) -> None:
        live.update(watch_screen(state, screen.size.height), refresh=True)

    @contextmanager
    def terminal() -> Iterator[None]:
        """Give the terminal to the editor; redraw our screen afterwards."""
        live.stop()
        try:
            with keys.paused():
                yield
        finally:
            live.start()

    def open_editor(file: Path, line: int) -> str:
        return edit(file, line, terminal())

    watch = Watch(workspace, stage, device, seed, show, open_editor)
    keys = Keys(watch.press)
    with Live(console=screen, screen=True, auto_refresh=False) as live, keys:
        return watch.run()


def _line_by_line(
    screen: Console, workspace: Workspace, stage: Stage | None, device: str, seed: int
) -> Watching:
    from grader.learning.watch.loop import Watch
    from grader.learning.watch.screen import news

    told: Watching | None = None

    def show(state: Watching) -> None:
        nonlocal told
        lines = news(told, state)
        if lines is not None:
            screen.print(lines, end="")
            sys.stdout.flush()
            told = state

    return Watch(workspace, stage, device, seed, show, lambda file, line: "").run()
