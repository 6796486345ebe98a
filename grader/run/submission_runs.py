"""Runs the stages of one submission as often as the judge asks, within one budget.

Later runs use what earlier ones found: a notebook is loaded once, and an import that times out gets
less time in the next run.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import InitVar, dataclass, replace

from grader.run.answers import Loaded, WorkerAnswers
from grader.run.budget import Budget
from grader.run.facts import Ending, StageFacts
from grader.run.failures import Cancelled
from grader.run.importing import Import
from grader.run.lanes import SharedSeconds
from grader.run.parts import Parts
from grader.run.reader import Reader, SourceReader
from grader.run.session import Checks
from grader.run.solutions import References
from grader.run.under_check import StageUnderCheck
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.submission import Submission

_SPENT = (
    "this submission used up its {seconds:g} seconds (submission_seconds in course.toml), so the "
    "checks that were left have timed out"
)
_UNSEARCHED = (
    "{slug}: this source takes too long to search: a forbidden call that no check reaches may be "
    "in it"
)


@dataclass(eq=False)
class SubmissionRuns:
    """The runs of one submission with one seed, on one device.

    `tell` is called after each trial of the learner's tests with how many are done, of how many. At
    most `lanes` further processes may be `forked` for some of the runs.
    """

    _course: Course
    _submission: Submission
    _seed: int
    _device: str
    interpreter: Interpreter
    _checks: Checks
    reader: InitVar[Reader]
    _tell: Callable[[int, int], None]
    lanes: InitVar[int]

    def __post_init__(self, reader: Reader, lanes: int) -> None:
        limits = self._course.limits
        self._shared = SharedSeconds(1 + lanes)
        self.budget = Budget(limits.submission_seconds, self._counted(0))
        self.source = SourceReader(reader, self._submission, self.budget)
        self._parts = Parts(self._course, self._submission, self.source)
        self._known: dict[tuple[str, ...], StageFacts] = {}
        self._load_seconds = limits.load_seconds
        self._loaded: Loaded | None = None
        self._answers: WorkerAnswers | None = None  # of the current run
        self._cancelled = False

    def forked(self, number: int) -> SubmissionRuns:
        """The same runs for a process that is forked now, with a `number` from 1.

        They share the budget, and know what has been run. The caller closes its interpreter.
        """
        other = copy.copy(self)
        other.interpreter = self.interpreter.copy()
        other._known = dict(self._known)
        other.budget = self.budget.counted_by(other._counted(number))
        other.source = SourceReader(Reader(other.interpreter), self._submission, other.budget)
        other._parts = Parts(self._course, self._submission, other.source)
        return other

    def _counted(self, number: int) -> Callable[[], float]:
        """Returns the CPU time of all processes at work on this submission."""
        interpreter = self.interpreter
        return self._shared.counted(
            number, lambda: time.process_time() + interpreter.processor_seconds()
        )

    def facts(self, stage: Stage, answered: Sequence[Stage] = ()) -> StageFacts:
        """The facts on a stage; the course's own functions stand in for the `answered` stages.

        Each result is computed once. Raises Cancelled after `cancel`.
        """
        key = (stage.slug, *(earlier.slug for earlier in answered))
        if key not in self._known:
            planned = self._checks.planned[stage.slug]
            if not planned:
                return StageFacts((), ())
            # The source is examined first: if there is no time for it, no check may pass.
            calls = self.source.calls(self._course, stage)
            self._known[key] = replace(self._run(stage, answered), in_source=calls)
        return replace(self._known[key], time_is_up=self.budget.is_spent)

    def facts_to_explain(self, stage: Stage, answered: Sequence[Stage]) -> StageFacts:
        """The facts on a stage as its diagnosis needs them: with every tensor on the CPU.

        A GPU would draw other random numbers here than in a worker, and a known mistake with an
        index that is too large would end all work of this process on the GPU. What has no end is
        not run again, and has nothing to explain. Raises Cancelled after `cancel`.
        """
        facts = self.facts(stage, answered)
        if self._device == "cpu":
            return facts
        ends = all(case.ending is not Ending.TIMED_OUT for case in facts.cases)
        if not ends or facts.time_is_up:
            return facts.without_exchanges()
        device, self._device = self._device, "cpu"
        try:
            return self._run(stage, answered)
        finally:
            self._device = device

    def facts_of_part(self, stage: Stage, part: Submission) -> StageFacts:
        """The facts on a stage for a part of the submission, run by itself. Raises Cancelled."""
        return self._attempt(stage, (), part)[0]

    def forget_exchanges(self, stage: Stage) -> None:
        """Keep only how the cases ended, once the stage has its verdict."""
        for key, facts in self._known.items():
            if key[0] == stage.slug:
                self._known[key] = facts.without_exchanges()

    def cancel(self) -> None:
        """End the running call and start no other case. Called from another thread."""
        self._cancelled = True
        answers = self._answers
        if answers is not None:
            answers.abort()

    def go_on(self) -> None:
        """Raise Cancelled after `cancel`, and Spent if the budget is used up."""
        if self._cancelled:
            raise Cancelled
        self.budget.expect_some()

    def close(self) -> None:
        """Release the loaded notebook, if there is one."""
        if self._loaded is not None:
            self._loaded.worker.release()

    @property
    def notes(self) -> Iterator[str]:
        """Notes for the report on how the submission was run."""
        yield from self._parts.notes
        yield from (_UNSEARCHED.format(slug=slug) for slug in sorted(self.source.unsearched))
        if self.budget.is_spent:
            yield _SPENT.format(seconds=self._course.limits.submission_seconds)

    def _run(self, stage: Stage, answered: Sequence[Stage]) -> StageFacts:
        """Run a stage; if a deadly cell or file ends the run, run a smaller part."""
        parts = self._parts
        facts, answers = self._attempt(stage, answered, parts.needed(stage))
        if not answers.died_at_import or self.budget.is_spent:
            return facts
        if self._submission.is_folder:
            theirs = {earlier.file_name for earlier in answered}
            files = {n: data for n, data in self._submission.files.items() if n not in theirs}
            part = replace(self._submission, files=files)
            return self._attempt(stage, answered, part)[0] if theirs else facts
        if self._submission.cells is None:
            return facts
        if not parts.has_deadly_cell:
            parts.has_deadly_cell = True
            if parts.is_cut(stage):
                return self._run(stage, answered)
        needed = parts.needed(stage)
        defined, answers = self._attempt(stage, answered, needed, only_definitions=True)
        if answers.died_at_import or (answers.lacks and parts.is_cut(stage)):
            return facts
        parts.has_deadly_answer |= not answers.lacks
        return defined

    def _attempt(
        self,
        stage: Stage,
        answered: Sequence[Stage],
        part: Submission,
        *,
        only_definitions: bool = False,
    ) -> tuple[StageFacts, WorkerAnswers]:
        """One run of a stage's checks, perhaps with `only_definitions` of the cells.

        If something killed a worker meanwhile, perhaps the system for memory, the run is repeated
        once: it need not be the submission's fault.
        """
        killed = self.interpreter.killed
        result = self._one_run(stage, answered, part, only_definitions)
        if self.interpreter.killed == killed or self._cancelled or self.budget.is_spent:
            return result
        return self._one_run(stage, answered, part, only_definitions)

    def _one_run(
        self, stage: Stage, answered: Sequence[Stage], part: Submission, only_definitions: bool
    ) -> tuple[StageFacts, WorkerAnswers]:
        references = References(self.interpreter, self._course, answered) if answered else None
        is_whole = part is self._submission and part.cells is not None
        keeps = is_whole and not answered and not only_definitions
        loaded = None
        if keeps:
            loaded, self._loaded = self._loaded, None
        importing = Import(self._course, stage, part, tuple(answered), only_definitions, keeps)

        def alone() -> Import:
            if not is_whole:
                return importing
            return replace(importing, submission=self._parts.alone(stage), for_every_stage=False)

        try:
            answers = WorkerAnswers(
                self.interpreter,
                importing,
                references=references,
                loaded=loaded,
                load_seconds=self._load_seconds,
                budget=self.budget,
                alone=alone,
            )
            self._answers = answers
            if self._cancelled:
                answers.abort()
            under_check = StageUnderCheck(stage, answers, self._tell)
            facts = self._checks.run(stage, under_check, self._seed, self._device)
        finally:
            self._answers = None
            if keeps:
                self._loaded = answers.loaded
            if references is not None:
                references.close()
        if answers.has_no_end:
            # Other stages or cells may import it again: they need not wait as long.
            shortest = self._course.limits.call_seconds
            self._load_seconds = max(min(shortest, self._load_seconds), self._load_seconds / 2)
        return facts, answers
