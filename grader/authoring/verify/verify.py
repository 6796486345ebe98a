"""Proves for a course's author that stubs fail, solutions pass and every known mistake is caught.

It inspects the files first. It reports a stage whose files cannot run once, and skips it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grader.authoring.verify.author_files import (
    accepted_files,
    given_away,
    not_of_its_own,
    not_required,
    strays,
    twin_titles,
)
from grader.authoring.verify.draft import Draft
from grader.authoring.verify.memory import Memory, base_of
from grader.authoring.verify.proving import StageProving, read_mistakes
from grader.authoring.verify.runs import CheckRuns, Seeds, import_fault, import_libraries
from grader.authoring.verify.types import CourseProof, Progress
from grader.run.lanes import LaneLost, Work, can_fork, in_lanes
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.errors import CourseError

if TYPE_CHECKING:
    from grader.run.session import Checks

SEEDS = tuple(range(1, 21))
PER_ANSWER = 3
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

    With several lanes, `progress` counts stages. Solutions run with all `seeds`, accepted answers
    and misconceptions with the first `per_answer` of them. Faults of an author's files are part of
    the proofs. Raises KeyboardInterrupt.
    """
    with Interpreter(course.preload, course.limits, gpu=False) as interpreter:
        prover = Prover(interpreter, seeds, per_answer, lanes, keeps=False)
        return prover.prove(course, stages, progress)


@dataclass(eq=False)
class Prover:
    """Proves stages of a course again and again; the parameters are as for `verify`.

    If it `keeps` what runs have found, what cannot have changed does not run again.
    """

    _interpreter: Interpreter
    _seeds: Sequence[int] = SEEDS
    _per_answer: int = PER_ANSWER
    _lanes: int = 1
    keeps: bool = True
    _memories: dict[Stage, Memory] = field(default_factory=dict)

    def prove(self, course: Course, stages: Sequence[Stage], progress: Progress) -> CourseProof:
        """As `verify`, of the course with whose libraries the interpreter runs."""
        import_libraries(course)
        there = [stage for stage in course.stages if stage.solution_file.is_file()]
        files = {stage.file_name: stage.solution_file.read_bytes() for stage in there}
        faults = _solution_faults(course, [stage for stage in stages if stage in there], files)
        drafts = {stage: Draft(stage, faults.get(stage.slug, "")) for stage in stages}
        complete = [draft.stage for draft in drafts.values() if draft.is_complete]
        for stage, problem in (
            *not_of_its_own(course, stages),
            *twin_titles(course, stages),
            *not_required(course, complete),
            *given_away(course, complete),
        ):
            drafts[stage].problems.append(problem)

        def body(checks: Checks) -> None:
            def proven(draft: Draft, interpreter: Interpreter, tell: Progress) -> Draft:
                memory = self._memories.setdefault(draft.stage, Memory(keeps=self.keeps))
                memory.begin(base_of(course, draft.stage, files))
                runs = CheckRuns(course, draft.stage, interpreter, checks, memory)
                own = Seeds.of(draft.stage, self._seeds, self._per_answer)
                StageProving(runs, draft, files, own, tell).prove()
                memory.end()
                return draft

            ready = [draft for draft in drafts.values() if draft.can_run]
            if self._lanes == 1 or len(ready) == 1 or not can_fork("cpu"):
                for draft in ready:
                    proven(draft, self._interpreter, progress)
            else:
                drafts.update({d.stage: d for d in self._side_by_side(ready, proven, progress)})

        _with_checks(course, [*drafts.values()], body)
        gc.unfreeze()
        for draft in drafts.values():
            if not draft.can_run:
                draft.problems += _unrun(course, draft, files)
        is_whole = {*stages} == {*course.stages}
        proofs = tuple(draft.proof() for draft in drafts.values())
        return CourseProof(course.name, proofs, tuple(strays(course)) if is_whole else (), is_whole)

    def _side_by_side(
        self, drafts: Sequence[Draft], proven: Proven, progress: Progress
    ) -> Iterator[Draft]:
        """The drafts with what their stages' runs found, from several processes."""
        # What takes longest first: learners' tests, then many points.
        jobs = sorted(drafts, key=lambda d: (not d.stage.fixture, -d.stage.points))
        count = min(self._lanes, len(jobs))

        def prepare() -> Work[Draft, Draft]:
            interpreter = self._interpreter.copy()
            return lambda d: proven(d, interpreter, lambda *step: None), interpreter.close

        done = in_lanes(count, jobs, prepare)
        progress("stages", 0, len(jobs))
        with closing(done):
            for number, (draft, result) in enumerate(done, 1):
                progress("stages", number, len(jobs))
                if isinstance(result, LaneLost):
                    draft.problems.append(str(result))
                    yield draft
                elif isinstance(result, Exception):
                    raise result
                else:
                    yield result


def _solution_faults(
    course: Course, stages: Sequence[Stage], files: Mapping[str, bytes]
) -> dict[str, str]:
    """A message for each stage whose solution cannot be imported; each fault appears once.

    A stage that needs another's functions fails with it.
    """
    found: dict[str, str] = {}
    for stage in stages:
        fault = import_fault(course, stage, files, stage.place(stage.solution_file))
        if fault:
            known = fault in found.values()
            found[stage.slug] = f"{_BLOCKED} {fault.split(':')[0]}" if known else fault
    return found


def _unrun(course: Course, draft: Draft, files: Mapping[str, bytes]) -> Iterator[str]:
    """What the answers of a stage show, although its checks cannot run."""
    stage = draft.stage
    if not draft.is_unwritten:
        yield from read_mistakes(stage, course.limits.load_seconds)[1]
    is_blocked = any(problem.startswith(_BLOCKED) for problem in draft.problems)
    for file in [] if is_blocked else accepted_files(stage):
        answers = {**files, stage.file_name: file.read_bytes()}
        fault = import_fault(course, stage, answers, stage.place(file))
        if fault:
            yield fault


def _with_checks(course: Course, drafts: Sequence[Draft], body: Callable[[Checks], None]) -> None:
    """Run `body` with the checks of all stages that can be collected; report the other stages."""
    from grader.run.collecting import with_checks

    began, seconds = False, course.limits.load_seconds

    def begun(checks: Checks) -> None:
        nonlocal began
        began = True
        body(checks)

    def run() -> None:
        ready = [draft.stage for draft in drafts if draft.can_run]
        if ready:
            with_checks(course, ready, begun, measures=True, seconds=seconds)

    try:
        run()
    except CourseError:
        if began:
            raise
        for draft in drafts:
            if draft.can_run:
                try:
                    with_checks(course, [draft.stage], lambda checks: None, seconds=seconds)
                except CourseError as error:
                    draft.can_run = False
                    draft.problems[:0] = str(error).split("\n")
        run()
