"""`grade predict [STAGE]`: asks a few questions before you write code, for no points."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.command.course import stage_or_current
from grader.command.output import console, short_path
from grader.learning.predict.questions import judge, read_predictions
from grader.learning.predict.types import Predictions, Question, Tally
from grader.read.workspace import locate_workspace

if TYPE_CHECKING:
    from grader.show.screen import Screen

_STOP = ("q", "quit", "exit")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Answer a few quick questions on shapes and small numbers before you write a stage's code.
    They give no points.
    """
    parser.add_argument("stage", nargs="?", metavar="STAGE", help="default: your current stage")


def run(args: argparse.Namespace) -> int:
    """Ask the questions of one stage; always 0."""
    from grader.learning.predict.screen import closing, nothing_to_predict

    workspace = locate_workspace(args.course)
    stage = stage_or_current(workspace, args.stage)
    predictions = read_predictions(stage)
    file = short_path(workspace.file(stage))
    page = console(args)

    def show(screen: Screen) -> None:
        page.print(screen, end="")

    if predictions is None:
        show(nothing_to_predict(stage.slug, file))
        return 0
    _prepare_input()
    show(closing(put(predictions, _ask, show), stage.slug, file))
    return 0


def put(
    predictions: Predictions, ask: Callable[[str], str], show: Callable[[Screen], None]
) -> Tally:
    """Ask the questions one by one and explain each; returns the tally.

    `ask` shows a prompt and returns the typed answer. EOFError or KeyboardInterrupt from it stops
    the questions, like a typed "q".
    """
    from grader.learning.predict.screen import asked, explained, opening

    tally = Tally(len(predictions.questions))
    show(opening(predictions.title, tally.total))
    for number, question in enumerate(predictions.questions, start=1):
        show(asked(question, number, tally.total))
        try:
            judgements = _tries(question, ask, show)
        except (EOFError, KeyboardInterrupt):
            break
        show(explained(question, None if judgements is None else judgements[-1]))
        first = judgements == [True]
        tally = replace(tally, done=number, first=tally.first + first)
    return tally


def _tries(
    question: Question, ask: Callable[[str], str], show: Callable[[Screen], None]
) -> list[bool] | None:
    """Whether one or two answers are right; None if the learner asks for the answer."""
    from grader.learning.predict.screen import not_understood, once_more, prompt

    judgements: list[bool] = []
    while len(judgements) < 2 and True not in judgements:
        typed = ask(prompt(question)).strip()
        if not typed:
            return None
        if typed.lower() in _STOP:
            raise EOFError
        judgement = judge(question, typed)
        if judgement is None:
            show(not_understood(question))
            continue
        judgements.append(judgement)
        if judgements == [False]:
            show(once_more())
    return judgements


def _prepare_input() -> None:
    """Let arrow keys edit the answer, and accept bytes that are not valid text."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
        if sys.stdin.isatty():
            with suppress(ImportError):  # Windows has no readline; its console edits by itself
                import readline  # noqa: F401


def _ask(prompt: str) -> str:
    """Ask on the terminal. Raises EOFError and KeyboardInterrupt, after a new line."""
    if sys.stdin is None:  # the parent process closed it
        raise EOFError
    try:
        return input(prompt)
    except (EOFError, KeyboardInterrupt):
        print()
        raise
