"""`grade notebook [FILE]`: writes a notebook to study, with a graded cell for every stage."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from pathlib import Path

from grader.command.output import console, short_path
from grader.learning.notebook.builder import notebook
from grader.learning.predict.questions import read_predictions
from grader.read.files import free_name, write_whole
from grader.read.stubs import read_stub, same_but_for_words
from grader.read.workspace import locate_course, locate_workspace
from grader.types.course import Course
from grader.types.errors import KitError, writing
from grader.types.workspace import Workspace

_SUFFIX = ".ipynb"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Write the course as a Jupyter notebook: each stage's text, its questions, and a cell that is
    graded when you run it. It never overwrites a file.
    """
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE.ipynb", help="default: COURSE.ipynb"
    )
    parser.add_argument(
        "--force", action="store_true", help="replace the file, and keep a copy of it"
    )
    parser.add_argument(
        "--with-answers", action="store_true", help="start with the code from your files"
    )


def run(args: argparse.Namespace) -> int:
    """Write the notebook and print the command that opens it."""
    from grader.learning.notebook.screen import written

    course, root = surroundings(args.course)
    path: Path = args.file or (root or Path.cwd()) / f"{course.name}{_SUFFIX}"
    if path.suffix != _SUFFIX:
        raise KitError(f"{path}: is not a notebook's name: end it with {_SUFFIX}")
    is_there = os.path.lexists(path)
    if is_there and not args.force:
        raise KitError(
            f"{short_path(path)} exists already: name another file, or add --force, which keeps a "
            "copy"
        )
    stubs = {stage.slug: read_stub(stage) for stage in course.stages}
    begun = _begun(course, root, stubs)
    if args.with_answers and not begun:
        raise KitError("--with-answers: your files are still stubs: write some code first")
    asked = {stage.slug: read_predictions(stage) for stage in course.stages}
    questions = {slug: found for slug, found in asked.items() if found is not None}
    answers = begun if args.with_answers else None
    has_finale = any(stage.finale_file.is_file() for stage in course.stages)
    drawn = (stage for stage in course.stages if stage.figure_file.is_file())
    figures = {stage.slug: stage.figure_file.read_bytes() for stage in drawn}
    data = notebook(course, stubs, questions, figures, answers, has_finale=has_finale)
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    copy = ""
    with writing(path):
        if is_there:
            kept = free_name(path)
            path.replace(kept)
            copy = short_path(kept)
        write_whole(path, text)
    open_it = f"jupyter lab {shlex.quote(short_path(path))}"
    left_out = [] if args.with_answers else list(begun)
    screen = written(short_path(path), len(course.stages), open_it, copy, left_out)
    console(args).print(screen, end="")
    return 0


def surroundings(course: Path | None) -> tuple[Course, Path | None]:
    """The course, and the workspace around the working folder if there is one.

    Raises KitError if there is no course.
    """
    try:
        workspace = locate_workspace(course)
    except KitError:
        return locate_course(course), None
    here = Path.cwd().resolve()
    root = workspace.root.resolve()
    return workspace.course, root if root in (here, *here.parents) else None


def _begun(course: Course, root: Path | None, stubs: dict[str, str]) -> dict[str, str]:
    """The learner's files, by slug, that differ from their stubs."""
    if root is None:
        return {}
    workspace, begun = Workspace(root, course), {}
    for stage in course.stages:
        try:
            text = workspace.file(stage).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            continue
        if not same_but_for_words(text, stubs[stage.slug]):
            begun[stage.slug] = text
    return begun
