"""`grade serve`: grades for a notebook's kernel, which starts it and sends it JSON lines."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.learning.notebook.command import surroundings
from grader.types.errors import KitError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of `grade serve`."""
    parser.description = __doc__
    parser.add_argument("--folder", type=Path, metavar="DIR", help="the notebook's folder")


def run(args: argparse.Namespace) -> int:
    """Answer requests from stdin until it ends; a KitError becomes a last {"fatal": ...}.

    Only answers may go to stdout, so everything else that prints goes to stderr.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", newline="\n")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(message: Mapping[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    with answers, os.fdopen(os.dup(sys.stdin.fileno()), encoding="utf-8") as requests:
        try:
            from grader.engine import with_engine
            from grader.learning.notebook.serve import Service

            if args.folder is not None:
                os.chdir(args.folder)
            course, root = surroundings(args.course)
            is_nbgrader = "NBGRADER_EXECUTION" in os.environ  # nbgrader runs a student's notebook
            service = Service(course, root, send, is_nbgrader=is_nbgrader)
            threading.Thread(target=service.read, args=(requests,), daemon=True).start()
            with_engine(course, course.stages, "cpu", service.work)
        except OSError as error:
            send({"fatal": f"{error.filename or 'the grader'}: {error.strerror}"})
            return 2
        except KitError as error:
            send({"fatal": str(error)})
            return 2
    return 0
