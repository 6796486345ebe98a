"""Proof for a course's author: stubs fail, solutions pass, and every known mistake is caught.

Files are looked at first, and a stage whose files cannot be run is told of once and left alone.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from grader.proving import Draft, Progress, StageRuns
from grader.read.author_files import given_away, not_required, strays
from grader.read.faults import fault_of, undefined
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.errors import CourseError
from grader.types.proof import CourseProof

if TYPE_CHECKING:
    from grader.run.session import Checks

SEEDS = tuple(range(1, 51))


def verify(
    course: Course,
    stages: Sequence[Stage],
    progress: Progress = lambda slug, done, total: None,
    seeds: Sequence[int] = SEEDS,
) -> CourseProof:
    """The proofs of these stages; `progress` is told the stage, and how much of it is done.

    The solutions are run with all `seeds`, the accepted answers with the first few of them. What
    is wrong with an author's files is part of the proofs. Raises KeyboardInterrupt.
    """
    with Interpreter(course.preload, course.limits, gpu=False) as interpreter:
        for name in course.preload:
            importlib.import_module(name)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # more would wait for each other
        files = {s.file_name: s.solution_file.read_bytes() for s in course.stages if _is_there(s)}
        faults = _solution_faults(course, stages, files)
        drafts = [Draft(stage, faults.get(stage.slug, "")) for stage in stages]
        complete = [draft.stage for draft in drafts if draft.is_complete]
        for stage, problem in (*not_required(course, complete), *given_away(course, complete)):
            next(d for d in drafts if d.stage == stage).problems.append(problem)

        def body(checks: Checks) -> None:
            for draft in drafts:
                if draft.can_run:
                    StageRuns(course, draft, interpreter, checks, files, seeds, progress).prove()

        _with_checks(course, drafts, body)
    whole = {stage.slug for stage in stages} == {stage.slug for stage in course.stages}
    return CourseProof(
        course.name,
        tuple(draft.proof() for draft in drafts),
        tuple(strays(course)) if whole else (),
    )


def _is_there(stage: Stage) -> bool:
    return stage.solution_file.is_file()


def _solution_faults(
    course: Course, stages: Sequence[Stage], files: Mapping[str, bytes]
) -> dict[str, str]:
    """What is said of each stage whose solution cannot be imported; of one file no more than once.

    A stage that needs another's functions fails with it.
    """
    from grader.run.answers import stopped_after
    from grader.run.solutions import at_hand

    places = {s.file_name: s.place(s.solution_file) for s in course.stages}
    found: dict[str, str] = {}
    for stage in stages:
        if not _is_there(stage):
            continue
        try:
            with stopped_after(course.limits.load_seconds), at_hand(files, stage) as find:
                for entry in stage.entry_points:
                    find(entry.name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever an author's file does is told
            fault = fault_of(error, places)
            if isinstance(error, AttributeError) and not fault.startswith("solutions/"):
                fault = f"{places[stage.file_name]}: {undefined(error)}"
            known = fault in found.values()
            found[stage.slug] = f"not run: it needs {fault.split(':')[0]}" if known else fault
    return found


def _with_checks(course: Course, drafts: Sequence[Draft], body: Callable[[Checks], None]) -> None:
    """Run `body` with the checks of all stages that can be collected; the others are told of."""
    from grader.run.session import with_checks

    began, seconds = False, course.limits.load_seconds

    def begun(checks: Checks) -> None:
        nonlocal began
        began = True
        body(checks)

    ready = [draft.stage for draft in drafts if draft.can_run]
    if not ready:
        return
    try:
        with_checks(course, ready, begun, measures=True, seconds=seconds)
    except CourseError:
        if began:
            raise
        for draft in drafts:
            if draft.can_run:
                fault = _collection_fault(course, draft.stage)
                draft.can_run = not fault
                draft.problems[:0] = [said for said in fault if not _is_known(said, draft)]
        ready = [draft.stage for draft in drafts if draft.can_run]
        if ready:
            with_checks(course, ready, body, measures=True, seconds=seconds)


def _is_known(fault: str, draft: Draft) -> bool:
    """Whether it is only what is known of a check's title, at another of its lines."""
    said = fault.partition(": ")[2]
    return any(problem.partition(": ")[2] == said for problem in draft.problems)


def _collection_fault(course: Course, stage: Stage) -> list[str]:
    """Why the checks of a stage cannot be collected."""
    from grader.run.answers import Stopped, stopped_after
    from grader.run.session import with_checks

    file, seconds = stage.check_file, course.limits.load_seconds
    try:
        with_checks(course, [stage], lambda checks: None, seconds=seconds)
    except CourseError as error:
        try:
            code = compile(file.read_bytes(), str(file), "exec")
            with stopped_after(seconds):
                exec(code, {"__name__": file.stem, "__file__": str(file)})  # noqa: S102 - the author's
        except (Exception, Stopped) as own:  # noqa: BLE001 - whatever an author's file does is told
            return [fault_of(own, {str(file): stage.place(file)})]
        return [str(error)]
    return []
