"""`grade stubs`: writes exercises/ from solutions/, and never overwrites a learner's work."""

from __future__ import annotations

import argparse
from dataclasses import replace

from grader.command.grade import chosen_stages
from grader.read.stubs import StubState, stub_states, write_stubs
from grader.read.workspace import locate_course
from grader.types.errors import KitError

_OUT_OF_STEP = {
    StubState.ABSENT: "is missing",
    StubState.OLD: "is an older stub",
    StubState.BEGUN: "is not the stub: someone worked in it, or the stub's code has changed",
}
_WRITTEN = {
    StubState.ABSENT: "written",
    StubState.OLD: "rewritten",
    StubState.BEGUN: "replaced; a copy of the old one is in .grade/replaced/",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Write the exercise files that are missing or outdated. It skips files that someone has worked
    in, and keeps a copy of each file that it replaces.
    """
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="only these stages")
    parser.add_argument("--check", action="store_true", help="only list the outdated files")
    parser.add_argument("--force", action="store_true", help="also replace files with work in them")


def run(args: argparse.Namespace) -> int:
    """Print what was done to each outdated file; 1 if any is still outdated."""
    course = locate_course(args.course)
    if course.is_partial:
        raise KitError("a student's copy has no solutions: `grade reset STAGE` restores a stub")
    course = replace(course, stages=chosen_stages(course, args.stages))
    states = stub_states(course) if args.check else write_stubs(course, force=args.force)
    left, begun = 0, []
    for stage, state in states.items():
        name = stage.place(stage.exercise_file)
        if state is StubState.IN_STEP:
            continue
        if args.check or (state is StubState.BEGUN and not args.force):
            left += 1
            begun += [stage.slug] if state is StubState.BEGUN else []
            print(f"{name}  {_OUT_OF_STEP[state]}")
        else:
            print(f"{name}  {_WRITTEN[state]}")
    if left > len(begun):
        print("`grade stubs` writes missing and outdated stubs.")
    if begun:
        words = " ".join(["grade stubs", *(begun if len(begun) < 3 else args.stages), "--force"])
        print(f"`{words}` replaces the file and keeps a copy in .grade/replaced/.")
    if all(state is StubState.IN_STEP for state in states.values()):
        every = f"All {len(states)} stubs match their solutions."
        print(every if len(states) > 1 else "The stub matches its solution.")
    return 1 if left else 0
