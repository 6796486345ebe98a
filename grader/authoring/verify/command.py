"""`grade verify [STAGE ...]`: proves that stubs fail, solutions pass and mistakes are caught.

With --mutants it tries small changes of the solutions instead, with --explain it shows what
learners read about mistakes.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, Any

from grader.channels.proven import remember_proven
from grader.command.course import authors_course
from grader.command.grade import chosen_stages, lanes
from grader.command.output import console, stage_bar
from grader.types.course import Course, Stage
from grader.types.errors import KitError

if TYPE_CHECKING:
    from grader.authoring.mutants.types import MutantsReport
    from grader.authoring.verify.explain import ExplainReport
    from grader.authoring.verify.types import Progress
    from grader.show.screen import Screen

_INTERRUPTED = 130
# What --json prints, what a terminal shows, and the exit code.
_Result = tuple[dict[str, Any], "Screen", int]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Prove that stubs fail, solutions pass and known mistakes are caught."""
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="only these stages")
    parser.add_argument("--json", action="store_true", help="print the proofs as JSON")
    parser.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help="run everything with N seeds (default: 20 for solutions, 3 for other answers)",
    )
    parser.add_argument(
        "--mutants", action="store_true", help="change each solution and see if the checks notice"
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="how many processes (default: one per CPU core)"
    )
    parser.add_argument(
        "--needed",
        action="store_true",
        help="with --mutants: also show what each check alone catches",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="show how misconceptions and mutants are explained to learners",
    )
    parser.add_argument(
        "--all", action="store_true", help="with --explain: all mutants, not 40 a stage"
    )


def run(args: argparse.Namespace) -> int:
    """Verify and print; 0 if there is nothing to fix, else 1. Raises KitError."""
    _refuse(args)
    course = authors_course(args)
    stages = chosen_stages(course, args.stages)
    work = _mutants if args.mutants else _explanations if args.explain else _proofs
    with stage_bar(args) as progress:
        data, screen, code = work(args, course, stages, progress)
    if args.json:
        json.dump(data, sys.stdout, indent=2)
        print()
    else:
        console(args).print(screen, end="")
    return code


def _refuse(args: argparse.Namespace) -> None:
    """Raise KitError for options that do not go together."""
    if args.seeds is not None and args.seeds < 1:
        raise KitError("--seeds: give a number from 1 up")
    if args.mutants and args.explain:
        raise KitError("--mutants and --explain: type one of them")
    if args.needed and not args.mutants:
        raise KitError("--needed only works with --mutants: add it")
    if args.all and not args.explain:
        raise KitError("--all only works with --explain: add it")
    if args.seeds is not None and (args.mutants or args.explain):
        other = "--mutants" if args.mutants else "--explain"
        raise KitError(f"--seeds does not work with {other}: remove it")


def _proofs(
    args: argparse.Namespace, course: Course, stages: tuple[Stage, ...], progress: Progress
) -> _Result:
    from grader.authoring.verify.screen import proof_screen
    from grader.authoring.verify.verify import PER_ANSWER, SEEDS, verify

    seeds = range(1, 1 + (args.seeds or len(SEEDS)))
    proof = verify(course, stages, progress, seeds, args.seeds or PER_ANSWER, lanes(args.jobs))
    if proof.is_sound and proof.is_whole:
        remember_proven(course)
    data = {**asdict(proof), "sound": proof.is_sound}
    return data, proof_screen(proof), 0 if proof.is_sound else 1


def _mutants(
    args: argparse.Namespace, course: Course, stages: tuple[Stage, ...], progress: Progress
) -> _Result:
    from grader.run.lanes import can_fork

    if not can_fork("cpu"):
        raise KitError(
            "--mutants needs Linux: only there can a process with torch be forked safely"
        )
    from grader.authoring.mutants.screen import mutants_screen
    from grader.authoring.mutants.survivors import try_mutants

    report = try_mutants(
        course, stages, lanes=lanes(args.jobs), needed=args.needed, progress=progress
    )
    return _result(report, mutants_screen(report))


def _explanations(
    args: argparse.Namespace, course: Course, stages: tuple[Stage, ...], progress: Progress
) -> _Result:
    from grader.authoring.verify.explain import explain
    from grader.authoring.verify.explain_screen import explain_screen

    report = explain(course, stages, lanes=lanes(args.jobs), every=args.all, progress=progress)
    return _result(report, explain_screen(report))


def _result(report: MutantsReport | ExplainReport, screen: Screen) -> _Result:
    """The result of a run, which Ctrl-C may have stopped; the values of enumerations are data."""

    def plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: value.value if isinstance(value, Enum) else value for key, value in pairs}

    is_sound = all(stage.is_sound for stage in report.stages)
    code = (0 if is_sound else 1) if report.finished else _INTERRUPTED
    return asdict(report, dict_factory=plain), screen, code
