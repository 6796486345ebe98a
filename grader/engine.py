"""The one engine: a submission in, a report out. Every channel's verdict comes from here."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from grader.judge.places import is_begun, is_written
from grader.judge.verdict import judge, judge_stage, judge_unchecked, judge_untouched, status
from grader.read.stubs import read_stub
from grader.run.earned import Earned
from grader.run.facts import Case, Ending, ForbiddenCall, StageFacts
from grader.run.reader import Reader, Same, SourceReader
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.errors import KitError
from grader.types.report import UNLOCKED, Diagnosis, Report, StageResult, Status
from grader.types.submission import Submission

if TYPE_CHECKING:
    from grader.misconceptions import Misconception
    from grader.run.answers import Loaded, WorkerAnswers
    from grader.run.session import Checks

# The modules that import torch or pytest are imported inside the functions, after the isolated
# interpreter was started: the two then load torch at the same time.


Result = TypeVar("Result")
_DIAGNOSES = 10_000  # that are remembered
_CELLS_CAP = 500  # of a notebook from which those are chosen that a stage needs
_DEADLY_CELL = (
    "a cell does not come to its end or ends its process, so each stage was run with the cells "
    "that it needs alone"
)


@dataclass(frozen=True)
class Request:
    """What to grade: `stages` of a submission, with a seed from which every check draws its own."""

    submission: Submission
    stages: tuple[Stage, ...]
    seed: int


def grade(
    course: Course,
    request: Request,
    device: str = "auto",
    progress: Callable[[StageResult], None] = lambda result: None,
) -> Report:
    """The report on one submission; `progress` is told of each stage when it has its verdict.

    Raises KitError for a device that is not there, an environment that cannot run the checks or a
    course that is wrong. Whatever the submission does is part of the report.
    """
    asleep = {s.slug: judge_untouched(s) for s in request.stages if _is_asleep(course, request, s)}
    awake = replace(request, stages=tuple(s for s in request.stages if s.slug not in asleep))
    if awake.stages:
        report = with_engine(
            course, awake.stages, device, lambda engine: engine.grade(awake, progress)
        )
    else:
        report = judge(course, request.submission.name, "cpu", (), [f"seed {request.seed}"])
    found = asleep | {result.slug: result for result in report.stages}
    return replace(report, stages=tuple(found[stage.slug] for stage in request.stages))


def _is_asleep(course: Course, request: Request, stage: Stage) -> bool:
    """Whether it is a bonus stage that nobody has begun: nothing is run or waited for then."""
    if not stage.bonus or course.is_partial:
        return False
    return not is_begun(request.submission, stage, read_stub(stage))


def with_engine(
    course: Course, stages: Sequence[Stage], device: str, body: Callable[[Engine], Result]
) -> Result:
    """What `body` makes of an engine that is warm: libraries imported, checks collected.

    The engine grades these stages. `device` is "cpu", "cuda", "mps" or "auto". Raises KitError as
    `grade` does.
    """
    gpu = _may_use_gpu(device)
    with Interpreter(course.preload, course.limits, gpu=gpu) as it, _quick_imports() as imported:
        from grader.run.session import with_checks

        chosen = _device(course, device)
        needed = {stage.slug for stage in stages}
        for stage in stages:
            needed |= {earlier.slug for earlier in course.required(stage)}
        collected = [stage for stage in course.stages if stage.slug in needed]

        def warm(checks: Checks) -> Result:
            imported()
            return body(Engine(course, chosen, it, checks))

        return with_checks(course, collected, warm)


class Engine:
    """Grades submissions of one course, one after the other, as often as wanted.

    `interpreter` is the one whose workers run the submissions of `course`, `device` where the
    tensors are.
    """

    def __init__(
        self, course: Course, device: str, interpreter: Interpreter, checks: Checks
    ) -> None:
        self.course = course
        self.device = device
        self.interpreter = interpreter
        self._checks = checks
        from grader.judge.diagnosis import Replays

        self._diagnoses: dict[tuple[object, ...], dict[str, Diagnosis]] = {}
        self._replays = Replays()
        self._known: dict[str, tuple[tuple[Misconception, ...], Callable[[str], Any]]] = {}
        self._reader = Reader(interpreter)
        self._run: _Run | None = None

    def forked(self) -> Engine:
        """The same engine for a process that is forked now: with an interpreter of its own."""
        other = Engine(self.course, self.device, self.interpreter.copy(), self._checks)
        other._diagnoses, other._replays, other._known = (
            self._diagnoses,
            self._replays,
            self._known,
        )
        return other

    def grade(
        self,
        request: Request,
        progress: Callable[[StageResult], None] = lambda result: None,
        earned: Earned | None = None,
    ) -> Report:
        """The report on one submission; code of which it is known what it has `earned` is not run.

        Raises grader.run.answers.Cancelled after `cancel`, and KitError as `grade` does.
        """
        run = self._run = _Run(
            request,
            self.course,
            self.device,
            self.interpreter,
            self._checks,
            SourceReader(self._reader, request.submission),
            self._diagnosed,
            earned,
        )
        try:
            return run.report(progress)
        finally:
            self._run = None

    def read_misconceptions(self, stages: Sequence[Stage]) -> None:
        """Have at hand what failing checks of these stages are held against."""
        from grader.read.misconceptions import read_misconceptions
        from grader.run.solutions import local_solutions

        for stage in stages:
            if stage.slug not in self._known:
                solutions = local_solutions(self.course, stage)
                self._known[stage.slug] = read_misconceptions(stage), solutions

    def _diagnosed(self, stage: Stage, facts: StageFacts) -> dict[str, Diagnosis]:
        """The diagnoses of a stage's failing checks, thought out once for the same facts."""
        from grader.judge.diagnosis import diagnose

        numbers = tuple((fact.number, fact.ending) for fact in facts.cases if fact.exchanges)
        if numbers in self._diagnoses:
            return self._diagnoses[numbers]
        self.read_misconceptions((stage,))
        known, solution = self._known[stage.slug]
        found = diagnose(facts, known, solution, self._replays) if known else {}
        is_known = all(number is not None for number, _ in numbers)
        if numbers and is_known and len(self._diagnoses) < _DIAGNOSES:
            self._diagnoses[numbers] = found
        return found

    def cancel(self) -> None:
        """Have the `grade` that is under way in another thread, if any, raise Cancelled soon."""
        run = self._run
        if run is not None:
            run.cancel()


def _device(course: Course, wanted: str) -> str:
    """The device that the checks put their tensors on. Raises KitError if it is not there."""
    if "torch" not in course.preload:
        return "cpu"
    import torch

    torch.set_num_threads(1)
    present = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if wanted == "auto":
        return next((name for name in ("cuda", "mps") if present[name]), "cpu")
    if not present[wanted]:
        raise KitError(f"--device {wanted}: torch finds no such device here; try --device cpu")
    return wanted


@contextmanager
def _quick_imports() -> Iterator[Callable[[], None]]:
    """No garbage is looked for until all is imported, which takes a tenth of torch's import.

    Gives the function to call then: what was imported is no garbage and never looked at again.
    """
    was_on = gc.isenabled()
    gc.disable()

    def imported() -> None:
        gc.freeze()
        if was_on:
            gc.enable()

    try:
        yield imported
    finally:
        if was_on:
            gc.enable()


def _passed(facts: StageFacts) -> set[Case]:
    return {fact.case for fact in facts.cases if fact.ending is Ending.PASSED}


def with_calls(facts: StageFacts, found: Sequence[ForbiddenCall]) -> StageFacts:
    """The facts with the forbidden calls in the source that no check has reached."""
    seen = {call.name for call in facts.forbidden}
    more = tuple(call for call in found if call.name not in seen)
    return replace(facts, forbidden=facts.forbidden + more)


def _may_use_gpu(device: str) -> bool:
    """Whether the worker must be able to open a GPU; torch is not imported yet to be asked."""
    return device == "cuda" or (device == "auto" and os.path.exists("/dev/nvidiactl"))


class _Run:
    """One submission's way through its stages."""

    def __init__(
        self,
        request: Request,
        course: Course,
        device: str,
        interpreter: Interpreter,
        checks: Checks,
        source: SourceReader,
        diagnosed: Callable[[Stage, StageFacts], dict[str, Diagnosis]],
        earned: Earned | None,
    ) -> None:
        self._request = request
        self._course = course
        self._device = device
        self._interpreter = interpreter
        self._checks = checks
        self._source = source
        self._diagnosed = diagnosed
        self._earned = earned
        self._same: dict[str, Same] | None = None
        self._is_right: set[str] = set()  # slugs of stages that pass and were not run
        self._facts: dict[str, StageFacts] = {}
        self._missing_layers: tuple[str, ...] = ()
        self._has_deadly_cell = False
        self._load_seconds = course.limits.load_seconds
        self._loaded: Loaded | None = None
        self._answers: WorkerAnswers | None = None
        self._cancelled = False

    def report(self, progress: Callable[[StageResult], None]) -> Report:
        """Grade every requested stage."""
        results = []
        earned = self._earned
        try:
            for stage in self._request.stages:
                result = self._result(stage) if earned is None else self._known(stage, earned)
                progress(result)
                results.append(result)
        finally:
            if self._loaded is not None:
                self._loaded.worker.release()
        notes = [f"seed {self._request.seed}"]
        if self._has_deadly_cell and self._request.submission.cells is not None:
            notes.append(_DEADLY_CELL)
        if self._missing_layers:
            notes.append(UNLOCKED + ", ".join(self._missing_layers))
        name = self._request.submission.name
        return judge(self._course, name, self._device, results, notes)

    def cancel(self) -> None:
        """End the call that is under way and begin no other case."""
        self._cancelled = True
        answers = self._answers
        if answers is not None:
            answers.abort()

    def _known(self, stage: Stage, earned: Earned) -> StageResult:
        """The verdict on a stage, which need not be run if its code is known."""
        if self._same is None:
            self._same = self._source.same(self._course, self._request.stages)
        same = self._same.get(stage.slug)
        if same is None or self._course.is_partial:
            return self._result(stage)
        key = f"{stage.slug} {same.digest} {self._request.seed} {self._device}"
        known = earned.result(key, stage.slug)
        if known is None and earned.asks_for_proof(key):
            facts = self._run(stage, (), same.alone(self._request.submission))
            known = earned.take(key, judge_stage(stage, facts), alone=True)
        if known is not None:
            if known.status is Status.PASSED:
                self._is_right.add(stage.slug)
            self._missing_layers = self._missing_layers or earned.missing_layers
            return known
        result = self._result(stage)
        earned.take(key, result, alone=False)
        # Code that dies while it is imported does not tell.
        earned.missing_layers = self._missing_layers or earned.missing_layers
        return result

    def _result(self, stage: Stage) -> StageResult:
        def place(target: str) -> str:
            return self._source.place(stage, target)

        if self._course.is_partial:
            return self._partial_result(stage, place)
        facts = self._facts_of(stage)
        if status(facts) is not Status.FAILED:
            return judge_stage(stage, facts, place=place)
        unfinished = [
            earlier
            for earlier in self._course.required(stage)
            if earlier.slug not in self._is_right
            and status(self._facts_of(earlier)) is not Status.PASSED
        ]
        if unfinished:
            found = self._source.calls(self._course, stage)
            alone = with_calls(self._run(stage, unfinished), found)
            if status(alone) is Status.NOT_STARTED:  # a stub whose imports fail
                return judge_stage(stage, alone)
            if status(alone) is Status.PASSED:
                cause = self._cause(stage, unfinished)
                credited = self._course.follow_through
                return judge_stage(stage, facts, caused_by=cause.slug, is_credited=credited)
        return judge_stage(stage, facts, diagnoses=self._diagnosed(stage, facts), place=place)

    def _partial_result(self, stage: Stage, place: Callable[[str], str]) -> StageResult:
        """The verdict where there are no solutions: nothing to answer for an earlier stage."""
        if not self._checks.planned[stage.slug]:
            written = is_written(self._request.submission, stage)
            return judge_unchecked(stage, is_written=written)
        facts = self._facts_of(stage)
        perhaps = None
        if status(facts) is Status.FAILED:
            perhaps = next(
                (
                    earlier.slug
                    for earlier in self._course.required(stage)
                    if not self._may_be_right(earlier)
                ),
                None,
            )
        return judge_stage(stage, facts, place=place, is_partial=True, perhaps=perhaps)

    def _may_be_right(self, stage: Stage) -> bool:
        """Whether the visible checks, if there are any, find nothing wrong with a stage."""
        if not self._checks.planned[stage.slug]:
            return is_written(self._request.submission, stage)
        return status(self._facts_of(stage)) is Status.PASSED

    def _facts_of(self, stage: Stage) -> StageFacts:
        if stage.slug not in self._facts:
            facts = self._run(stage, ())
            if facts.forbidden and self._earns_it_without(stage, facts):
                facts = replace(facts, forbidden=())
            self._facts[stage.slug] = with_calls(facts, self._source.calls(self._course, stage))
        return self._facts[stage.slug]

    def _earns_it_without(self, stage: Stage, facts: StageFacts) -> bool:
        """Whether a forbidden call is an earlier stage's, which is judged by its own rules.

        Then with the course's own earlier stages there is none, and what passed passes.
        """
        earlier = self._course.required(stage)
        if not earlier or self._course.is_partial:
            return False
        alone = self._run(stage, earlier)
        return not alone.forbidden and _passed(facts) <= _passed(alone)

    def _run(
        self, stage: Stage, answered: Sequence[Stage], part: Submission | None = None
    ) -> StageFacts:
        """Run a stage's checks, with the functions of the `answered` stages being the course's.

        They are run on a `part` of the submission, if there is one. Of a notebook with a cell that
        never ends, or ends its process, other stages keep their points: from then on each is run
        with the cells that it needs alone.
        """
        from grader.run.answers import WorkerAnswers
        from grader.run.remote import StageUnderCheck
        from grader.run.solutions import References

        references = References(self._interpreter, self._course, answered) if answered else None
        submission = part or self._submission(stage)
        is_whole = submission is self._request.submission and submission.cells is not None
        keeps = is_whole and not answered
        loaded = None
        if keeps:
            loaded, self._loaded = self._loaded, None
        try:
            answers = WorkerAnswers(
                self._interpreter,
                self._course,
                stage,
                submission,
                answered=answered,
                references=references,
                keeps=keeps,
                loaded=loaded,
                load_seconds=self._load_seconds,
            )
            self._answers = answers
            if self._cancelled:
                answers.abort()
            under_check = StageUnderCheck(stage, answers)
            facts = self._checks.run(stage, under_check, self._request.seed, self._device)
        finally:
            self._answers = None
            if keeps:
                self._loaded = answers.loaded
            if references is not None:
                references.close()
        self._missing_layers = answers.missing_layers or self._missing_layers
        if answers.has_no_end:
            # Other stages, or other cells, may import it once more: they need not wait so long.
            shortest = self._course.limits.call_seconds
            self._load_seconds = max(min(shortest, self._load_seconds), self._load_seconds / 2)
        if answers.died_at_import and not self._has_deadly_cell and part is None:
            self._has_deadly_cell = True
            if self._submission(stage) != self._request.submission:
                return self._run(stage, answered)
        return facts

    def _submission(self, stage: Stage) -> Submission:
        """What is run for a stage; all of it where what the stage asks for is nowhere in it.

        Of a notebook with tests it is only the cells that these need: it is run again and again.
        """
        submission = self._request.submission
        if submission.cells is None or not (self._has_deadly_cell or stage.fixture):
            return submission
        from grader.run.cells import needed

        names = None
        if len(submission.cells) <= _CELLS_CAP:
            names = self._source.names(submission.cells)
        if names is None:
            return submission
        known = dict(zip(submission.cells, names, strict=True))
        cells = needed(self._course, stage, submission.cells, known.__getitem__)
        return replace(submission, cells=cells or submission.cells)

    def _cause(self, stage: Stage, unfinished: Sequence[Stage]) -> Stage:
        """The earlier stage to mend first, for a stage that passes with all `unfinished` answered.

        It is the first of those without whose answers the stage would not pass.
        """
        if len(unfinished) > 1:
            for earlier in unfinished:
                others = [other for other in unfinished if other is not earlier]
                if not self._passes(stage, others):
                    return earlier
        return unfinished[0]

    def _passes(self, stage: Stage, answered: Sequence[Stage]) -> bool:
        return status(self._run(stage, answered)) is Status.PASSED
