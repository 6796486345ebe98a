"""The `grade` command: finds the sub-command, prints errors for people, returns the exit code.

0: every core stage has passed; 1: not yet; 2: the command or the course is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Sequence
from typing import Any

from grader import __version__
from grader.command.output import add_common_options
from grader.types.errors import KitError, close_to

# The module of each command, and what the list of commands says of it. Only the module of the
# command that was typed is imported: what the others need would be waited for.
_COMMANDS = {
    "grade": ("grade", None),
    "init": ("init", "make a folder to work in"),
    "watch": ("watch", "judge a stage at every save"),
    "hint": ("hint", "the next hint for a stage"),
    "list": ("listing", "show the stages"),
    "predict": ("predict", "a few questions to think about before you write code"),
    "trace": ("trace", "your code on a small example, step by step"),
    "heatmap": ("heatmap", "what your code computes, as a picture"),
    "notebook": ("notebook", "a Jupyter notebook of the stages"),
    "diff": ("diff", "what you have changed"),
    "reset": ("reset", "begin a stage anew"),
    "solution": ("solution", "the solution of a stage that you have passed"),
    "update": ("update", "new versions of the files that you work in"),
    "new": ("new", "begin a stage, or a course (for authors)"),
    "verify": ("verify", "prove that the course is sound (for authors)"),
    "stubs": ("stubs", "write exercises/ from solutions/ (for authors)"),
    "release": (
        "release",
        "hand the course to students: nbgrader, a bundle, Gradescope, GitHub",
    ),
    "class": ("classroom", "grade what a class has handed in"),
    "serve": ("serve", None),  # which people need not know
}
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `grade` with these arguments (those of the process by default); the exit code."""
    words = with_command(sys.argv[1:] if arguments is None else arguments)
    args, unknown = parser_of(words[0]).parse_known_args(words)
    try:
        if unknown:
            raise KitError(_no_such(unknown[0], words[0], args.usage()))
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


def _no_such(word: str, command: str, usage: str) -> str:
    """What is said of a word that a command does not take."""
    option = word.partition("=")[0]
    close = close_to(option, set(re.findall(r"--[\w-]+", usage)))
    what = f"no option {option}{close}" if word.startswith("-") else f"nothing to do with '{word}'"
    name = "grade" if command == "grade" else f"grade {command}"
    return f"`{name}` has {what}; `grade {command} --help` shows what it takes"


def with_command(words: Sequence[str]) -> list[str]:
    """The words, led by a command: where none is named they belong to grading itself."""
    known = (*_COMMANDS, "-h", "--help", "--version")
    return list(words) if words and words[0] in known else ["grade", *words]


def parser_of(word: str) -> argparse.ArgumentParser:
    """What reads a command line whose first word is this one."""
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
    for name, (module, about) in _COMMANDS.items():
        shown: dict[str, Any] = {} if about is None else {"help": about}
        prog = "grade" if name == "grade" else f"grade {name}"
        command = commands.add_parser(name, prog=prog, **shown)
        if name == word:
            importlib.import_module(f"grader.command.{module}").add_options(command)
            command.set_defaults(usage=command.format_usage)
            if name != "release":  # whose own commands take them
                add_common_options(command)
    return parser
