"""Proves for a course's author that stubs fail, solutions pass and every known mistake is caught.

It inspects the files first. It reports a stage whose files cannot run once, and skips it.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from grader.authoring.verify.author_files import (
    accepted_files,
    given_away,
    not_of_its_own,
    not_required,
    strays,
    unreadable,
)
from grader.authoring.verify.draft import Draft
from grader.authoring.verify.memory import Memory, base_of
from grader.authoring.verify.proving import Progress, StageProving
from grader.authoring.verify.runs import CheckRuns, Seeds, import_libraries
from grader.authoring.verify.types import CourseProof
from grader.read.faults import fault_of, undefined
from grader.read.misconceptions import read_known
from grader.run.lanes import LaneLost, can_fork, in_lanes
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.errors import CourseError

if TYPE_CHECKING:
    from grader.run.session import Checks

SEEDS = tuple(range(1, 21))
PER_ANSWER = 3
_BY_FOLDER = re.compile(r"No module named '(exercises|solutions)\b|attempted relative import")
_BLOCKED = "not run: it needs"

# A draft with what the runs of its stage found.
Proven = Callable[[Draft, Interpreter, Progress], Draft]


def verify(
    course: Course,
    stages: Sequence[Stage],
    progress: Progress = lambda slug, done, total: None,
    seeds: Sequence[int] = SEEDS,
    per_answer: int = PER_ANSWER,
    lanes: int = 1,
) -> CourseProof:
    """The proofs of these stages, `lanes` at once.

    `progress` is called with the stage, the steps done and all; with several lanes it counts
    stages. Solutions run with all `seeds`, accepted answers and misconceptions with the first
    `per_answer` of them. Faults of an author's files are part of the proofs. Raises
    KeyboardInterrupt.
    """
    with Prover(course, keeps=False) as prover:
        return prover.prove(course, stages, progress, seeds, per_answer, lanes)


class Prover:
    """Proves stages of a course again and again.

    If it `keeps` what runs have found, what cannot have changed does not run again.
    """

    def __init__(self, course: Course, *, keeps: bool = True) -> None:
        self._keeps = keeps
        self._interpreter = Interpreter(course.preload, course.limits, gpu=False)
        self._memories: dict[Stage, tuple[str, Memory | None]] = {}

    def __enter__(self) -> Prover:
        self._interpreter.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._interpreter.__exit__(*error)

    def prove(
        self,
        course: Course,
        stages: Sequence[Stage],
        progress: Progress = lambda slug, done, total: None,
        seeds: Sequence[int] = SEEDS,
        per_answer: int = PER_ANSWER,
        lanes: int = 1,
    ) -> CourseProof:
        """As `verify`, of the course with which this was made, as its files are now."""
        import_libraries(course)
        files = {s.file_name: s.solution_file.read_bytes() for s in course.stages if _is_there(s)}
        faults = _solution_faults(course, stages, files)
        drafts = [Draft(stage, faults.get(stage.slug, "")) for stage in stages]
        complete = [draft.stage for draft in drafts if draft.is_complete]
        found = (*not_required(course, complete), *given_away(course, complete))
        for stage, problem in (*not_of_its_own(course, stages), *found):
            next(d for d in drafts if d.stage == stage).problems.append(problem)

        def body(checks: Checks) -> None:
            def proven(draft: Draft, interpreter: Interpreter, tell: Progress) -> Draft:
                with self._remembering(course, draft.stage, files) as memory:
                    runs = CheckRuns(course, draft.stage, interpreter, checks, memory)
                    own = Seeds.of(draft.stage, seeds, per_answer)
                    StageProving(runs, draft, files, own, tell).prove()
                return draft

            ready = [draft for draft in drafts if draft.can_run]
            if lanes == 1 or len(ready) == 1 or not can_fork("cpu"):
                for draft in ready:
                    proven(draft, self._interpreter, progress)
                return
            found = {d.stage: d for d in self._side_by_side(ready, proven, lanes, progress)}
            drafts[:] = [found.get(draft.stage, draft) for draft in drafts]

        _with_checks(course, drafts, body)
        gc.unfreeze()
        for draft in drafts:
            if not draft.can_run:
                draft.problems += _unrun(course, draft, files)
        whole = {stage.slug for stage in stages} == {stage.slug for stage in course.stages}
        return CourseProof(
            course.name,
            tuple(draft.proof() for draft in drafts),
            tuple(strays(course)) if whole else (),
            whole,
        )

    def _side_by_side(
        self, drafts: Sequence[Draft], proven: Proven, lanes: int, progress: Progress
    ) -> Iterator[Draft]:
        """The drafts with what their stages' runs found, from several processes."""
        # What takes longest first: learners' tests, then many points.
        jobs = sorted(drafts, key=lambda d: (not d.stage.fixture, -d.stage.points))
        done = in_lanes(
            min(lanes, len(jobs)), jobs, lambda: _Lane(proven, self._interpreter.copy())
        )
        progress("stages", 0, len(jobs))
        with closing(done):
            for count, (draft, result) in enumerate(done, 1):
                progress("stages", count, len(jobs))
                if isinstance(result, LaneLost):
                    draft.problems.append(str(result))
                    yield draft
                elif isinstance(result, Exception):
                    raise result
                else:
                    yield result

    @contextmanager
    def _remembering(
        self, course: Course, stage: Stage, files: Mapping[str, bytes]
    ) -> Iterator[Memory]:
        """What is known of a stage, unless something has changed that every run depends on."""
        base = base_of(course, stage, files)
        known, memory = self._memories.get(stage, ("", None))
        if memory is None or known != base:
            memory = Memory(keeps=self._keeps)
        self._memories[stage] = base, memory
        memory.begin()
        yield memory
        memory.end()


class _Lane:
    """Proves stages in a forked process."""

    def __init__(self, proven: Proven, interpreter: Interpreter) -> None:
        self._proven, self._interpreter = proven, interpreter

    def __call__(self, draft: Draft) -> Draft:
        return self._proven(draft, self._interpreter, lambda slug, done, total: None)

    def close(self) -> None:
        self._interpreter.close()


def _is_there(stage: Stage) -> bool:
    return stage.solution_file.is_file()


def _solution_faults(
    course: Course, stages: Sequence[Stage], files: Mapping[str, bytes]
) -> dict[str, str]:
    """A message for each stage whose solution cannot be imported; each fault appears once.

    A stage that needs another's functions fails with it.
    """
    from grader.run.solutions import at_hand
    from grader.run.stopping import stopped_after

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
        except BaseException as error:  # noqa: BLE001 - every fault of an author's file is reported
            fault = fault_of(error, places)
            if isinstance(error, AttributeError) and not fault.startswith("solutions/"):
                fault = f"{places[stage.file_name]}: {undefined(error)}"
            if isinstance(error, ImportError) and _BY_FOLDER.match(str(error)):
                fault += ": write `from STAGE import ...`, without the folder"
            if isinstance(error, ImportError) and error.name in course.renamed:
                fault += f": it is now {course.renamed[error.name]}"
            known = fault in found.values()
            found[stage.slug] = f"{_BLOCKED} {fault.split(':')[0]}" if known else fault
    return found


def _unrun(course: Course, draft: Draft, files: Mapping[str, bytes]) -> Iterator[str]:
    """What the answers of a stage show, although its checks cannot run."""
    from grader.run.solutions import at_hand
    from grader.run.stopping import Stopped, stopped_after

    stage, seconds = draft.stage, course.limits.load_seconds
    if draft.is_unwritten:
        yield from unreadable(stage)
        return
    file = stage.misconceptions_file
    try:
        with stopped_after(seconds):
            read_known(stage)
    except CourseError as error:
        yield from str(error).split("\n")
    except Stopped as error:
        yield fault_of(error, {str(file): stage.place(file)})
    is_blocked = any(problem.startswith(_BLOCKED) for problem in draft.problems)
    for file in [] if is_blocked else accepted_files(stage):
        place = stage.place(file)
        answers = {**files, stage.file_name: file.read_bytes()}
        try:
            with stopped_after(seconds), at_hand(answers, stage):
                pass
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - every fault of an author's file is reported
            yield fault_of(error, {stage.file_name: place})


def _with_checks(course: Course, drafts: Sequence[Draft], body: Callable[[Checks], None]) -> None:
    """Run `body` with the checks of all stages that can be collected; report the other stages."""
    from grader.run.collecting import with_checks

    began, seconds = False, course.limits.load_seconds

    def begun(checks: Checks) -> None:
        nonlocal began
        began = True
        gc.freeze()  # checks that measure collect garbage often: never what was imported so far
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
                draft.problems[:0] = [each for each in fault if not _is_known(each, draft)]
        ready = [draft.stage for draft in drafts if draft.can_run]
        if ready:
            with_checks(course, ready, body, measures=True, seconds=seconds)


def _is_known(fault: str, draft: Draft) -> bool:
    """Whether a check's title already has this fault reported, with another line number."""
    words = fault.partition(": ")[2]
    return any(problem.partition(": ")[2] == words for problem in draft.problems)


def _collection_fault(course: Course, stage: Stage) -> list[str]:
    """Why the checks of a stage cannot be collected."""
    from grader.run.collecting import with_checks

    try:
        with_checks(course, [stage], lambda checks: None, seconds=course.limits.load_seconds)
    except CourseError as error:
        return str(error).split("\n")
    return []
