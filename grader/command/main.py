"""The `grade` command: finds the sub-command, prints errors for people, returns the exit code.

0: every core stage has passed; 1: not yet; 2: the command or the course is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from grader import __version__
from grader.command import (
    classroom,
    diff,
    grade,
    heatmap,
    hint,
    init,
    listing,
    new,
    notebook,
    predict,
    release,
    reset,
    serve,
    solution,
    stubs,
    trace,
    update,
    verify,
    watch,
)
from grader.command.output import add_common_options
from grader.types.errors import KitError

_COMMANDS = {
    "init": init,
    "watch": watch,
    "hint": hint,
    "list": listing,
    "predict": predict,
    "trace": trace,
    "heatmap": heatmap,
    "notebook": notebook,
    "diff": diff,
    "reset": reset,
    "solution": solution,
    "update": update,
    "new": new,
    "verify": verify,
    "stubs": stubs,
    "release": release,
    "class": classroom,
    "serve": serve,
}
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `grade` with these arguments (those of the process by default); the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    args = _parser().parse_args(words if _names_command(words) else ["grade", *words])
    try:
        code: int = args.run(args)
        return code
    except KitError as error:
        print(f"grade: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("grade: stopped; nothing is lost", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        return 1


def _names_command(words: Sequence[str]) -> bool:
    """Whether a sub-command is named; without one the words belong to grading itself."""
    known = (*_COMMANDS, "grade", "-h", "--help", "--version")
    return bool(words) and words[0] in known


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="grade",
        description="Grade your answers: the scoreboard, then why the first failing stage fails.",
        usage="grade [STAGE ...] [options]  |  grade COMMAND [options]",
        epilog="Options of grading itself: --all, --json, --junit FILE, --submission PATH, "
        "--device, --seed, --course DIR, --plain; `grade grade --help` explains them. Each command "
        "takes --help too.",
    )
    parser.add_argument("--version", action="version", version=f"grade {__version__}")
    parser.set_defaults(course=None, plain=False)
    commands = parser.add_subparsers(metavar="command", prog="grade")
    for module in (grade, *_COMMANDS.values()):
        module.add_parser(commands)
    for name, command in commands.choices.items():
        if _COMMANDS.get(name) is not release:  # whose own commands take them
            add_common_options(command)
    return parser
