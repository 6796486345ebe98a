"""`grade verify [STAGE ...]`: proves that stubs fail, solutions pass and mistakes are caught."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from grader.authoring.mutants import command as mutants
from grader.authoring.verify import explain_command
from grader.channels.proven import remember_proven
from grader.command.grade import chosen_stages, lanes
from grader.command.output import console, stage_bar
from grader.read.workspace import locate_whole_course
from grader.types.errors import KitError


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
    mutants.add_options(parser)
    explain_command.add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Verify and print; 0 if there is no problem, else 1."""
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
    if args.mutants or args.explain:
        return mutants.run(args) if args.mutants else explain_command.run(args)
    from grader.authoring.verify.screen import proof_screen
    from grader.authoring.verify.verify import PER_ANSWER, SEEDS, verify

    course = locate_whole_course(args.course)
    stages = chosen_stages(course, args.stages)
    with stage_bar(args) as progress:
        seeds = range(1, 1 + (args.seeds or len(SEEDS)))
        proof = verify(course, stages, progress, seeds, args.seeds or PER_ANSWER, lanes(args.jobs))
    if proof.is_sound and proof.is_whole:
        remember_proven(course)
    if args.json:
        json.dump({**asdict(proof), "sound": proof.is_sound}, sys.stdout, indent=2)
        print()
    else:
        console(args).print(proof_screen(proof), end="")
    return 0 if proof.is_sound else 1
