"""The `grade` command: finds the sub-command, prints errors for people, returns the exit code.

0: every core stage passes; 1: not yet; 2: the command or the course is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from grader import __version__
from grader.command.output import add_common_options, complain
from grader.types.errors import KitError, close_to

# The module of each command, and its line in the list of commands. Only the typed command's module
# is imported, because importing the others would take time. The docstring of its `add_options` is
# the description that --help shows.
_COMMANDS = {
    "grade": ("command.grade", None),
    "init": ("learning.workspace.init_command", "make a folder to work in"),
    "watch": ("learning.watch.command", "grade a stage at every save"),
    "hint": ("learning.hints.command", "show the next hint for a stage"),
    "list": ("learning.workspace.list_command", "show the stages"),
    "predict": ("learning.predict.command", "answer a few questions before you write code"),
    "repro": ("learning.repro.command", "show a failing check as a few lines to run yourself"),
    "trace": ("learning.pictures.trace_command", "run your code on a small example, step by step"),
    "heatmap": ("learning.pictures.heatmap_command", "show what your code computes, as a picture"),
    "explore": ("learning.explore.command", "play with your code on a page in the browser"),
    "finale": ("learning.finale.command", "train a small model with your own code in it"),
    "certificate": ("learning.certificate.command", "write a page on what your code can do"),
    "notebook": ("learning.notebook.command", "write a Jupyter notebook of the stages"),
    "diff": ("learning.workspace.diff_command", "show what you have changed"),
    "reset": ("learning.workspace.reset_command", "restore the original file of a stage"),
    "solution": ("learning.hints.solution_command", "show the solution of a stage you have passed"),
    "update": ("learning.workspace.update_command", "update your files to a newer course"),
    "new": ("authoring.new.command", "start a stage or a course (for authors)"),
    "verify": ("authoring.verify.command", "prove that the course is sound (for authors)"),
    "preview": ("authoring.preview.command", "show what learners will see (for authors)"),
    "suggest": ("authoring.suggest.command", "suggest wrong answers and inputs (for authors)"),
    "stubs": ("authoring.new.stubs_command", "write exercises/ from solutions/ (for authors)"),
    "package": ("authoring.package.command", "make packages that pip installs (for authors)"),
    "release": ("channels.command", "release the course or write scores (for instructors)"),
    "class": ("classes.command", "grade all submissions of a class (for instructors)"),
    "serve": ("learning.notebook.serve_command", None),  # only kernels call it
}
_FOR_AUTHORS = {"watch": "authoring.watch.command"}  # instead, with --author
_INTERRUPTED = 130
_PACKAGE = Path(__file__).parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `grade` with these arguments (those of the process by default); the exit code."""
    words = with_command(sys.argv[1:] if arguments is None else arguments)
    if hasattr(signal, "SIGCHLD"):  # whoever started us may ignore it: no child could be waited for
        with suppress(ValueError):  # in another thread
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if os.environ.get("COLUMNS") == "0":  # of a terminal without a size; rich would print nothing
        del os.environ["COLUMNS"]
    # A source that is only read, and not run. Where it is run, its warnings have its file's name.
    warnings.filterwarnings("ignore", category=SyntaxWarning, module="<unknown>")
    try:
        _expect_folder()
        args, unknown = parser_of(words).parse_known_args(words)
        if unknown:
            raise KitError(_no_such(unknown[0], words[0], args.usage()))
        code: int = args.run(args)
        return code
    except KitError as error:
        complain(str(error))
        return 2
    except KeyboardInterrupt:
        complain("stopped; no work is lost: rerun the command to continue")
        return _INTERRUPTED
    except BrokenPipeError:
        return 1
    except OSError as error:  # a full disk, for example: nothing that a command could expect
        complain(f"the operating system refused a request: {error}")
        with suppress(OSError):  # else Python writes again when it ends, and fails
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2


def _expect_folder() -> None:
    """Raise KitError if the current folder is no longer there."""
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise KitError("this folder has been removed: change to another one, and back") from error


def _no_such(word: str, command: str, usage: str) -> str:
    """The message for an option or word that a command does not accept."""
    option = word.partition("=")[0]
    close = close_to(option, set(re.findall(r"--[\w-]+", usage)))
    what = f"has no option {option}{close}" if word.startswith("-") else f"does not accept '{word}'"
    name = "grade" if command == "grade" else f"grade {command}"
    return f"`{name}` {what}; `grade {command} --help` shows its options"


def with_command(words: Sequence[str]) -> list[str]:
    """The words with a command in front: without one, the command is `grade grade`.

    `grade help COMMAND` is `grade COMMAND --help`.
    """
    if words[:1] and words[0] == "help":
        return with_command([*words[1:2], "--help"])
    at = 0  # of the command: the options that every command has may stand before it
    while at < len(words) and words[at].partition("=")[0] in ("--plain", "--course"):
        at += 2 if words[at] == "--course" else 1
    if words[at : at + 1] and words[at] in _COMMANDS:
        return [*words[at:], *words[:at]]
    known = ("-h", "--help", "--version")
    return list(words) if words and words[0] in known else ["grade", *words]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise a KitError: argparse would print the usage first."""
        name = "grade grade" if self.prog == "grade" else self.prog
        message = re.sub(r"^argument \w+, one of: ", "", message)  # it is the heading of a list
        raise KitError(f"{message}; `{name} --help` shows its options")


def parser_of(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser for a command line, which starts with a command.

    Raises KitError for a command that is not installed.
    """
    parser = _Parser(
        prog="grade",
        description="Grade your code: show the scoreboard, then why the first failing stage fails.",
        usage="grade [STAGE ...] [options]  |  grade COMMAND ...",
        epilog="Options of `grade` without a command: --all, --fresh, --json, --junit FILE, "
        "--submission PATH, --device, --seed, --course DIR, --plain; `grade grade --help` explains "
        "them. Every command has --help.",
    )
    parser.add_argument("--version", action="version", version=f"grade {__version__}")
    parser.set_defaults(course=None, plain=False)
    # A metavar this long makes argparse put every command and its help on one line.
    commands = parser.add_subparsers(metavar="command, one of", prog="grade")
    for name, (module, about) in _COMMANDS.items():
        if not _is_installed(module):
            if name == words[0]:
                raise KitError(f"a student's copy of the course has no `grade {name}`")
            continue
        authors = _FOR_AUTHORS.get(name, "")
        if "--author" in words and authors and _is_installed(authors):
            module = authors
        shown: dict[str, Any] = {} if about is None else {"help": about}
        prog = "grade" if name == "grade" else f"grade {name}"
        command = commands.add_parser(name, prog=prog, **shown)
        if name == words[0]:
            typed = importlib.import_module(f"grader.{module}")
            command.description = typed.add_options.__doc__
            typed.add_options(command)
            command.set_defaults(usage=command.format_usage)
            if name != "release":  # its own commands add them
                command.set_defaults(run=typed.run)
                add_common_options(command)
    return parser


def _is_installed(module: str) -> bool:
    """Whether a command's module is in this copy of the kit."""
    return (_PACKAGE / f"{module.replace('.', '/')}.py").is_file()
