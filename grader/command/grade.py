"""`grade [STAGE ...]`: shows the scoreboard, then why the first failing stage fails."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.command.output import complain, console, short_path, stage_bar
from grader.read.course_file import find_stage
from grader.read.dependencies import course_digest, text_digests
from grader.read.files import write_whole
from grader.read.kept import Kept
from grader.read.progress import remembered
from grader.read.renamed import with_present_names
from grader.read.submission import (
    beside_notes,
    expect_code,
    notebook_bytes,
    read_or_refuse,
    single_file,
    text_cell_notes,
)
from grader.read.workspace import locate_course, locate_workspace
from grader.types.course import Course, Stage
from grader.types.errors import writing
from grader.types.report import Report, StageResult, Status, to_json
from grader.types.seed import fresh_seed

if TYPE_CHECKING:
    from grader.show.screen import Screen

DEVICES = ("auto", "cpu", "cuda", "mps")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Show the scoreboard, then why the first failing stage fails."""
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="only these stages")
    parser.add_argument("--all", action="store_true", help="show every failing check")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="also write the report to FILE as JUnit XML"
    )
    add_submission(parser)
    add_device(parser)
    parser.add_argument("--seed", type=int, help="use the seed of an earlier run, to repeat it")
    parser.add_argument(
        "--fresh", action="store_true", help="rerun stages that are unchanged since they passed"
    )


def add_submission(parser: argparse.ArgumentParser) -> None:
    """Add --submission."""
    parser.add_argument(
        "--submission",
        type=Path,
        metavar="PATH",
        help="a folder of .py files, one .py or one .ipynb (default: exercises/)",
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add --device.

    The CPU is the default where there is a GPU too: it takes a third of the time, and a class is
    graded there.
    """
    parser.add_argument(
        "--device", choices=DEVICES, default="cpu", help="default: cpu; auto: a GPU if there is one"
    )


def run(args: argparse.Namespace) -> int:
    """Grade and print; 0 if every graded core stage passes, else 1."""
    from grader.engine import Request, grade

    if args.submission is None:
        workspace = locate_workspace(args.course)
        course, path = workspace.course, workspace.exercises
    else:
        workspace, course, path = None, locate_course(args.course), args.submission
    read = read_or_refuse(path, is_own=workspace is not None)
    name = short_path(path)
    found = replace(expect_code(read, path), name=Path.cwd().name if name == "." else name)
    if args.submission is not None:
        found = single_file(found, course.stages)
    submission = with_present_names(found, course.stages)
    texts = text_digests(course, submission, course_digest(course)) if workspace else {}
    seed = fresh_seed() if args.seed is None else args.seed
    stages = chosen_stages(course, args.stages)
    memory = Kept(workspace.root, course, args.device) if workspace else None
    is_fresh = args.fresh or args.seed is not None
    kept = memory.read(stages, texts) if memory and not is_fresh else {}
    request = Request(submission, stages, seed, kept)
    with _Board(args, len(stages) - len(kept)) as board:
        report = grade(
            course,
            request,
            args.device,
            board.judged,
            None if args.json else board.before_the_place,
            None if args.json else board.core,
            lanes(None),
        )
    notes: list[str] = []
    if path.suffix.lower() == ".ipynb" and submission.cells is not None:
        notes = text_cell_notes(notebook_bytes(path), stages)
    elif not report.refusal and all(s.status is Status.NOT_STARTED for s in report.stages):
        root = Path(short_path(workspace.root)) if workspace else None
        notes = beside_notes(Path(short_path(path)), root)
    report = replace(report, notes=(*report.notes, *notes))
    trouble = ""
    if workspace and memory:
        trouble = remembered(workspace.root, report.stages, submission, texts)
        memory.keep(report, texts)
    if args.junit is not None:
        from grader.show.junit import junit

        with writing(args.junit):
            write_whole(args.junit, junit(report))
    if args.json:
        json.dump(to_json(report), sys.stdout, indent=2)
        print()
    else:
        from grader.show.failure import NextSteps
        from grader.show.scoreboard import footnotes
        from grader.show.terminal import explanation

        next_file = _next_file(course, report, path)
        then = [] if args.stages or args.submission else afterwards(course)
        traced = [] if args.submission else [s.slug for s in stages if s.trace_file.is_file()]
        files = submission.files if workspace else None
        absent = [s.slug for s in stages if files and not files.get(s.file_name, b"").strip()]
        given = f" --submission {shlex.quote(short_path(path))}" if args.submission else ""
        steps = NextSteps(next_file, then, traced, absent, f"grade repro{given}")
        why = explanation(report, steps, every=args.all)
        board.whole(report)
        console(args).print(why, footnotes(report), sep="", end="")
    if trouble:
        complain(trouble)
    return 0 if report.passed else 1


class _Board:
    """Prints each part of the scoreboard when it is known, and meanwhile a bar below it."""

    def __init__(self, args: argparse.Namespace, total: int) -> None:
        self._args = args
        self._total = total
        self._done = 0
        self._bar = ExitStack()
        self._shown: set[str] = set()

    def __enter__(self) -> _Board:
        self._tell = self._bar.enter_context(stage_bar(self._args))
        self._tell("starting", 0, self._total)
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def judged(self, result: StageResult) -> None:
        """Move the bar on."""
        self._done += 1
        self._tell(result.slug, self._done, self._total)

    def core(self, report: Report) -> None:
        """Print the core above the bar, because the bonus stages may take long."""
        from grader.show.scoreboard import core_board

        self._bar.close()
        self._print("core", core_board(report))
        self._tell = self._bar.enter_context(stage_bar(self._args))
        self._tell("bonus stages", self._done, self._total)

    def before_the_place(self, report: Report) -> None:
        """Print what is known before the search for the place of a mistake."""
        self._bar.close()
        self.whole(report)
        self._tell = self._bar.enter_context(stage_bar(self._args))
        self._tell("looking for the place of the mistake", self._total, self._total)

    def whole(self, report: Report) -> None:
        """Print what is not shown yet, when there is no bar."""
        from grader.show.scoreboard import bonus_board, core_board

        self._print("core", core_board(report))
        self._print("bonus", bonus_board(report))

    def _print(self, part: str, screen: Screen) -> None:
        if part not in self._shown:
            self._shown.add(part)
            console(self._args).print(screen, end="")


def chosen_stages(course: Course, slugs: list[str]) -> tuple[Stage, ...]:
    """The stages with these slugs in the course's order; all without slugs. Raises KitError."""
    chosen = {find_stage(course, slug) for slug in slugs}
    return tuple(stage for stage in course.stages if not chosen or stage in chosen)


def lanes(jobs: int | None) -> int:
    """How many processes work at once: `jobs`, or one per CPU core that we may use."""
    from grader.run.lanes import usable_cores

    return max(1, jobs) if jobs else usable_cores()


def afterwards(course: Course) -> list[tuple[str, str]]:
    """What to type when the whole core passes: words and a command."""
    offers = []
    if any(stage.finale_file.is_file() for stage in course.stages):
        offers.append(("See what your code can learn:", "grade finale"))
    if not course.is_partial:
        offers.append(("How it compares, and a certificate:", "grade certificate"))
    return offers


def _next_file(course: Course, report: Report, path: Path) -> str | None:
    """The file of the first stage that is not started, which is the next to open."""
    for result in report.stages:
        if result.status is Status.NOT_STARTED:
            file = path / course.stage(result.slug).file_name if path.is_dir() else path
            return short_path(file)
    return None
