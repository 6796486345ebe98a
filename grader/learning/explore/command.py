"""`grade explore [STAGE]`: a page in the browser that shows what the learner's code computes."""

from __future__ import annotations

import argparse
import itertools
import webbrowser
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from grader.command.grade import add_submission
from grader.command.output import stage_bar, status_line, write_file
from grader.learning.explore.example import read_explore
from grader.learning.explore.page import About, Answer, live_page, planned_runs, whole_page
from grader.learning.explore.server import PageServer
from grader.learning.pictures.trace_command import chosen_submission
from grader.read.course_file import find_stage
from grader.types.course import Course, Stage
from grader.types.errors import KitError

_IN_A_TERMINAL = ("www-browser", "links", "elinks", "lynx", "w3m")  # none runs the page's script


def add_options(parser: argparse.ArgumentParser) -> None:
    """Play with your own code on a page in the browser: change the example, swap in a known
    mistake, and see every step. The page recomputes after each save.
    """
    parser.add_argument(
        "stage", nargs="?", metavar="STAGE", help="default: the first stage with such a page"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the page, with every result in it, to an .html file instead",
    )
    parser.add_argument("--port", type=int, default=0, help="default: any free port")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    add_submission(parser)


def run(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, or write it. Raises KitError."""
    from grader.learning.explore.explorer import Explorer
    from grader.run.device import cpu_interpreter

    if args.out is not None and args.out.suffix != ".html":
        raise KitError(f"--out {args.out}: end the page's name with .html")
    if not 0 <= args.port < 1 << 16:
        raise KitError(f"--port {args.port}: choose a number from 0 to 65535")
    course, submission = chosen_submission(args)
    stage = stage_to_explore(course, args.stage)
    with ExitStack() as stack:
        with status_line(args):
            interpreter = stack.enter_context(cpu_interpreter(course))
            example = read_explore(stage)
            explorer = Explorer(course, stage, example, interpreter)
            swaps = explorer.swaps
        about = About(course.title, stage.title, example.controls, swaps, submission.name)
        if args.out is not None:
            _write(args, about, partial(explorer.run, submission))
        else:  # with the learner's code as it is then
            _serve(args, about, lambda *asked: explorer.run(chosen_submission(args)[1], *asked))
    return 0


def _write(args: argparse.Namespace, about: About, answer: Answer) -> None:
    numbers, total = itertools.count(1), len(list(planned_runs(about)))
    with stage_bar(args) as tell:

        def counted(settings: list[Any], swap: str) -> dict[str, Any]:
            tell("computing", next(numbers), total)
            found = answer(settings, swap)
            if (stop := found["stop"]) and not swap:
                raise KitError(
                    f"{stop['function']} gave no usable result, so no file is written: "
                    "`grade explore` shows why"
                )
            return found

        write_file(args.out, whole_page(about, counted))
    print(f"  written: {args.out}")


def _serve(args: argparse.Namespace, about: About, answer: Answer) -> None:
    with PageServer(args.port, live_page(about), answer) as server:
        if args.port not in (0, server.server_port):
            print(f"  Port {args.port} is taken, so the page has another one.")
        print(f"  Open {server.address}")
        print(f"  It shows the code in {about.source}. Press Ctrl-C to end.", flush=True)
        if not args.no_browser:
            show(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("\n  The page has ended. Your files are unchanged.")


def show(address: str) -> None:
    """Open the address in a browser, except in one that would take over this terminal."""
    with suppress(webbrowser.Error):
        browser = webbrowser.get()
        if getattr(browser, "name", "") not in _IN_A_TERMINAL:
            browser.open(address)


def stage_to_explore(course: Course, word: str | None) -> Stage:
    """The named stage, or the first with such a page. Raises KitError."""
    stages = [stage for stage in course.stages if stage.explore_file.is_file()]
    if not stages:
        raise KitError("no stage of this course has a page to explore")
    stage = stages[0] if word is None else find_stage(course, word)
    if stage not in stages:
        others = ", ".join(other.slug for other in stages)
        raise KitError(f"{stage.slug} has no page to explore; stages with one: {others}")
    return stage
