"""The one engine: a submission in, a report out. Every channel's verdict comes from here."""

from __future__ import annotations

import copy
import gc
import itertools
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from grader.judge.blame import find_blame
from grader.judge.places import is_begun, is_replaced, written_elsewhere
from grader.judge.status import status
from grader.judge.verdict import judge, judge_refused, judge_stage, judge_untouched
from grader.read.stubs import read_stub
from grader.run.budget import Budget, Spent
from grader.run.device import interpreter_on
from grader.run.facts import StageFacts
from grader.run.lanes import LaneLost, Work, can_fork, in_lanes
from grader.run.reader import Reader
from grader.run.sources import to_move
from grader.run.stopping import first_interrupt
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.report import UNLOCKED, Diagnosis, Report, StageResult, Status
from grader.types.submission import Submission

if TYPE_CHECKING:
    from grader.diagnosis.comparison.known import KnownAnswers
    from grader.diagnosis.comparison.values.recording import Recordings
    from grader.diagnosis.repair.candidates import Candidates
    from grader.diagnosis.reruns import Reruns
    from grader.run.session import Checks
    from grader.run.submission_runs import SubmissionRuns

# The modules that import torch or pytest are imported inside the functions, after the isolated
# interpreter was started: the two then load torch at the same time.


Result = TypeVar("Result")
# The verdict on a stage, and whether it is known; if not, the function runs the stage.
Verdict = Callable[["Stage", Callable[[], "StageResult"]], tuple["StageResult", bool]]
# What a class knows of one submission's code, because others wrote the same.
Shared = Callable[["Course", "Request", str, "SubmissionRuns"], Verdict]
PLACE_SECONDS = 1.0  # that are spent on the place of a mistake when the verdict is known
_PATIENCE = 3.0  # times these seconds, at most, if other work keeps the machine busy
VALUE_SECONDS = 1.5  # that are spent on first wrong values; usually a third of this is enough
_VALUES_FIRST = 2  # checks whose first wrong values say where to look for the place
_ANOTHER = "The notebook has nothing that the course asks for: is it the right one?"
_STUB_BELOW = "The stub stands below your code and replaces it: move your code there."
_NO_PLACE = "{slug}: looked for one small fix for {seconds:g} s and found none"


@dataclass(frozen=True)
class Request:
    """What to grade: `stages` of a submission, with a seed from which every check draws its own.

    `kept` holds verdicts that are known, by slug, each in a report of its own.
    """

    submission: Submission
    stages: tuple[Stage, ...]
    seed: int
    kept: Mapping[str, Report] = field(default_factory=dict)


def grade(
    course: Course,
    request: Request,
    device: str = "cpu",
    progress: Callable[[StageResult], None] = lambda result: None,
    verdict: Callable[[Report], None] | None = None,
    core: Callable[[Report], None] | None = None,
    lanes: int = 1,
) -> Report:
    """The report on one submission; `progress` is called with each stage's verdict.

    If bonus stages are run, `core` is called with the report as it is without them. `verdict` is
    called with the whole report; the place of an unnamed mistake is looked for after that. `lanes`
    processes grade stages at the same time.

    Raises KitError for a missing device, an environment that cannot run the checks or a faulty
    course. Whatever the submission does is part of the report.
    """

    def run(awake: Request, whole: Callable[[Report], Report]) -> Report:
        def body(engine: Engine) -> Report:
            bonus = sum(stage.bonus for stage in awake.stages)
            judged: list[StageResult] = []

            def told(result: StageResult) -> None:
                progress(result)
                judged.append(result)
                is_core = not any(each.bonus for each in judged)
                if core and bonus and is_core and len(judged) == len(awake.stages) - bonus:
                    core(whole(judge(course, awake.submission.name, engine.device, judged)))

            report = engine.grade(awake, told, lanes=lanes)
            if verdict is None or not engine.may_place(report):
                return report
            verdict(whole(report))
            return engine.with_place(awake, report)

        return with_engine(course, awake.stages, device, body)

    return _report(course, request, run)


def _report(
    course: Course, request: Request, run: Callable[[Request, Callable[[Report], Report]], Report]
) -> Report:
    """The report on one submission; it does not `run` stages that are kept or asleep."""
    refused = request.submission.refused
    if refused:
        return judge_refused(course, request.submission.name, request.stages, refused)
    kept = request.kept
    known = {s.slug: judge_untouched(s) for s in request.stages if _is_asleep(course, request, s)}
    known |= {slug: report.stages[0] for slug, report in kept.items()}
    awake = replace(request, stages=tuple(s for s in request.stages if s.slug not in known))

    def whole(report: Report) -> Report:
        found = known | {result.slug: result for result in report.stages}
        stages = [found.get(stage.slug, judge_untouched(stage)) for stage in request.stages]
        merged = judge(course, report.submission, report.device, stages, report.notes)
        return replace(merged, unchanged=tuple(kept), seconds=report.seconds)

    if awake.stages:
        return whole(run(awake, whole))
    device = next((report.device for report in kept.values()), "cpu")
    notes = () if kept else (f"seed {request.seed}",)  # what is kept may be from another seed
    return whole(judge(course, request.submission.name, device, (), notes))


def _is_asleep(course: Course, request: Request, stage: Stage) -> bool:
    """Whether it is a bonus stage that is not started: then nothing is run or waited for."""
    if not stage.bonus or course.is_partial:
        return False
    return not is_begun(request.submission, stage, read_stub(stage))


def with_engine(
    course: Course, stages: Sequence[Stage], device: str, body: Callable[[Engine], Result]
) -> Result:
    """The result of `body` with a warm engine: libraries imported, checks collected.

    The engine grades these stages. `device` is "cpu", "cuda", "mps" or "auto". Raises KitError as
    `grade` does.
    """
    start = interpreter_on(course, course.limits, device)
    with _quick_imports() as imported, start as (it, chosen):
        from grader.run.collecting import with_checks

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
    tensors are. `tell` is called after each trial of a learner's tests with how many are done, of
    how many.
    """

    def __init__(
        self, course: Course, device: str, interpreter: Interpreter, checks: Checks
    ) -> None:
        self.course = course
        self.device = device
        self.interpreter = interpreter
        self.checks = checks
        self._known: KnownAnswers | None = None
        # A student's copy has no solutions, and its kit nothing that compares with them.
        with suppress(ModuleNotFoundError):
            from grader.diagnosis.comparison.known import KnownAnswers

            self._known = None if course.is_partial else KnownAnswers(course)
        self._reader = Reader(interpreter)
        self._runs: SubmissionRuns | None = None
        self._unnamed: dict[str, StageFacts] = {}
        self._looking: Candidates | Recordings | None = None
        self.tell: Callable[[int, int], None] = lambda done, total: None

    def forked(self) -> Engine:
        """The same engine for a process that is forked now: with an interpreter of its own."""
        other = Engine(self.course, self.device, self.interpreter.copy(), self.checks)
        other.interpreter.at_once = 1  # there is such a process for each core
        other._known = self._known
        return other

    def grade(
        self,
        request: Request,
        progress: Callable[[StageResult], None] = lambda result: None,
        shared: Shared | None = None,
        lanes: int = 1,
    ) -> Report:
        """The report on one submission; code that others in a class `shared` is not rerun.

        Of a folder, `lanes` processes grade stages at the same time.

        Raises grader.run.failures.Cancelled after `cancel`, and KitError as `grade` does.
        """
        refused = request.submission.refused
        if refused:
            return judge_refused(self.course, request.submission.name, request.stages, refused)
        runs = self._runs = self._runs_of(request, lanes)
        self._unnamed = {}
        results = []
        try:
            grading = _Grading(
                self.course, request, self.device, runs, self._diagnosed, shared, lanes
            )
            self._unnamed = grading.unnamed
            with closing(grading.results()) as judged:  # after Ctrl-C the lanes end here
                for result in judged:
                    stage = self.course.stage(result.slug)
                    if result.status is Status.NOT_STARTED:
                        why = _why_not_started(request.submission, stage)
                        result = replace(result, why_not_started=why)
                    progress(result)
                    results.append(result)
        finally:
            self._runs = None
            runs.close()
        notes = [f"seed {request.seed}", *runs.notes]
        for each in results:
            if why := each.why_not_started:
                notes.append(why if each.slug in why else f"{each.slug}: {why}")
        submission = request.submission
        is_ours = any(is_begun(submission, stage, "") for stage in self.course.stages)
        if submission.cells and not is_ours:
            notes.append(_ANOTHER)
        if self.interpreter.missing_layers:
            notes.append(UNLOCKED + ", ".join(self.interpreter.missing_layers))
        report = judge(self.course, request.submission.name, self.device, results, notes)
        return replace(report, seconds=runs.budget.used)

    def facts(self, request: Request) -> StageFacts:
        """What each check of the one requested stage meets, with all requests and replies."""
        [stage] = request.stages
        runs = self._runs_of(request)
        try:
            return runs.facts(stage)
        finally:
            runs.close()

    def _runs_of(self, request: Request, lanes: int = 1) -> SubmissionRuns:
        from grader.run.submission_runs import SubmissionRuns

        self.interpreter.drop_used()
        return SubmissionRuns(
            self.course,
            request.submission,
            request.seed,
            self.device,
            self.interpreter,
            self.checks,
            self._reader,
            self.tell,
            lanes,
        )

    def grade_begun(self, request: Request) -> Report:
        """As `grade`, but bonus stages that are not started are not run."""
        return _report(self.course, request, lambda awake, whole: self.grade(awake))

    def rehearse(
        self, stages: Sequence[Stage], seed: int, go_on: Callable[[], bool] = lambda: True
    ) -> None:
        """Learn from the solutions what the checks ask with this seed: later verdicts are faster.

        It stops as soon as `go_on` returns False. A student's copy has no solutions to learn from.
        """
        if self._known is None:
            return
        for stage in stages:
            if self.interpreter.forks and not stage.fixture and go_on():
                _, solution = self._known.of(stage)
                self.checks.rehearse(stage, solution, seed, self.device, go_on)

    def _diagnosed(
        self, stage: Stage, facts: StageFacts, go_on: Callable[[], None]
    ) -> dict[str, Diagnosis]:
        """The diagnoses of a stage's failing checks; `go_on` is called before each step.

        Raises what it does.
        """
        if self._known is not None:
            return self._known.diagnoses(stage, facts, go_on)
        from grader.diagnosis.sizes import sizes_that_do_not_fit

        return sizes_that_do_not_fit(facts.cases)

    def cancel(self) -> None:
        """Have the `grade` that is under way in another thread, if any, raise Cancelled soon."""
        runs = self._runs
        if runs is not None:
            runs.cancel()
        looking = self._looking
        if looking is not None:
            looking.cancel()

    def may_place(self, report: Report) -> bool:
        """Whether to look for a mistake's place: the first failing stage's first has no name.

        It must be the report that `grade` has returned last.
        """
        result = _first_failing(report)
        return result is not None and result.slug in self._unnamed and self.interpreter.forks

    def with_place(
        self, request: Request, report: Report, seconds: float = PLACE_SECONDS
    ) -> Report:
        """The report with the place of its first failing stage's mistake, if it `may_place` one.

        It searches for `seconds` of CPU time at most, and no longer than the submission has time
        left: first where the first wrong value on the way is made. If it gives up, a note says so.
        If it finds none, the report shows these values. Raises Cancelled after `cancel`.
        """
        result = _first_failing(report)
        if result is None or not self.may_place(report):
            return report
        from grader.diagnosis.repair.candidates import Candidates
        from grader.diagnosis.repair.places import find_place, with_diagnosis
        from grader.diagnosis.reruns import Reruns

        slug, cause = result.slug, result.causes[0]
        left = self.course.limits.submission_seconds - report.seconds
        reruns = Reruns(
            self.interpreter,
            self.course,
            self.course.stage(slug),
            request.submission,
            self.checks,
            request.seed,
            self.device,
        )
        checks = frozenset(check.id for check in cause.checks)
        unnamed = self._unexplained(result)
        first = [check for check in unnamed if check in checks][:_VALUES_FIRST]
        for_values = min(VALUE_SECONDS, left - seconds)
        values = self._values(reruns, first, for_values)
        near = [value.text for value in values.values()]
        budget = self._budget(min(seconds, left))
        candidates = self._looking = Candidates(
            reruns, self._reader, self._unnamed[slug], checks, near, budget
        )
        try:
            place, gave_up = find_place(candidates)
        finally:
            self._looking = None
        if place is not None:
            return _with_stage(report, with_diagnosis(result, cause, place))
        if gave_up:
            said = _NO_PLACE.format(slug=slug, seconds=seconds)
            report = replace(report, notes=(*report.notes, said))
        rest = [check for check in unnamed if check not in first]
        values |= self._values(reruns, rest, for_values)
        if not values:
            return report
        from grader.diagnosis.comparison.values.recording import with_diagnoses

        return _with_stage(report, with_diagnoses(result, values))

    def _budget(self, seconds: float) -> Budget:
        """The time for an explanation: on a busy machine it may take longer, not be poorer."""
        interpreter = self.interpreter
        return Budget(
            seconds, lambda: time.process_time() + interpreter.processor_seconds(), _PATIENCE
        )

    def _unexplained(self, result: StageResult) -> list[str]:
        """The failing checks that a rerun may explain better.

        There are none in a student's copy, which has no solutions to compare with.
        """
        if self._known is None:
            return []
        from grader.diagnosis.comparison.values.recording import unexplained

        return unexplained(result)

    def _values(
        self, reruns: Reruns, checks: Sequence[str], seconds: float
    ) -> dict[str, Diagnosis]:
        """What a rerun shows of these failing checks."""
        if self._known is None or not checks:
            return {}
        from grader.diagnosis.comparison.values.recording import Recordings

        known, solution = self._known.of(reruns.stage)
        facts = self._unnamed[reruns.stage.slug]
        recordings = self._looking = Recordings(reruns, facts, self._budget(seconds))
        try:
            return recordings.diagnoses(checks, known.ways, solution)
        finally:
            self._looking = None


def _with_stage(report: Report, changed: StageResult) -> Report:
    """The report with one stage's verdict changed."""
    stages = (changed if each.slug == changed.slug else each for each in report.stages)
    return replace(report, stages=tuple(stages))


def _first_failing(report: Report) -> StageResult | None:
    """The first stage that fails."""
    return next((each for each in report.stages if each.status is Status.FAILED), None)


@contextmanager
def _quick_imports() -> Iterator[Callable[[], None]]:
    """Pauses garbage collection, which would take a tenth of the time to import torch.

    Yields the function to call after the imports: what was imported is never examined again. Until
    then the first Ctrl-C waits, because an import may lose it; a second one does not wait.
    """
    with ExitStack() as until_imported:
        is_pressed = until_imported.enter_context(first_interrupt())
        if gc.isenabled():
            gc.disable()
            until_imported.callback(gc.enable)

        def imported() -> None:
            gc.freeze()
            until_imported.close()
            if is_pressed():
                raise KeyboardInterrupt

        yield imported


def _why_not_started(submission: Submission, stage: Stage) -> str:
    """What to do if a stage is written in a place that is not graded; "" if it is not."""
    if is_replaced(submission, stage):
        return _STUB_BELOW
    elsewhere = written_elsewhere(submission, stage)
    if elsewhere is None:
        return ""
    name, file = elsewhere
    return f"{name} is written in {to_move(submission, stage, file)}."


@dataclass(eq=False)
class _Grading:
    """The verdicts on one submission's stages."""

    _course: Course
    _request: Request
    _device: str
    _runs: SubmissionRuns
    _diagnosed: Callable[[Stage, StageFacts, Callable[[], None]], dict[str, Diagnosis]]
    _shared: Shared | None
    _lanes: int

    def __post_init__(self) -> None:
        if not (can_fork(self._device) and self._request.submission.is_folder):
            self._lanes = 1
        self._is_right: set[str] = set()  # slugs of stages that pass and were not run
        self.unnamed: dict[str, StageFacts] = {}  # of stages whose first cause has no name

    def results(self) -> Generator[StageResult, None, None]:
        """The verdict on each stage that is asked for."""
        if self._lanes > 1 and len(self._request.stages) > 1:
            yield from self._side_by_side(self._request.stages)
            return
        asked = self._course, self._request, self._device, self._runs
        verdict = None if self._shared is None else self._shared(*asked)
        for stage in self._request.stages:
            if verdict is None:
                yield self._result(stage)
            else:
                result, is_known = verdict(stage, partial(self._result, stage))
                if is_known and result.status is Status.PASSED:
                    self._is_right.add(stage.slug)
                yield result
            self._runs.forget_exchanges(stage)

    def _side_by_side(self, stages: Sequence[Stage]) -> Iterator[StageResult]:
        """The verdicts on these stages in this order, from several processes."""
        numbers = itertools.count(1)
        # The core first, and what takes longest first: learners' tests, then many points.
        jobs = sorted(stages, key=lambda s: (s.bonus, not s.fixture, -s.points))
        found: dict[str, StageResult] = {}
        left = list(stages)
        count = min(self._lanes, len(stages))
        for slug, done in in_lanes(
            count, [s.slug for s in jobs], lambda: self._forked(next(numbers)), farewell=0
        ):
            if isinstance(done, LaneLost):
                found[slug] = self._result(self._course.stage(slug))
            elif isinstance(done, Exception):
                raise done
            else:
                found[slug], unnamed = done
                if unnamed is not None:
                    self.unnamed[slug] = unnamed
            while left and left[0].slug in found:
                yield found[left.pop(0).slug]

    def _forked(self, number: int) -> Work[str, tuple[StageResult, StageFacts | None]]:
        """What judges a stage in a forked process, which has a `number` from 1."""
        forked = copy.copy(self)
        runs = forked._runs = self._runs.forked(number)

        def judged(slug: str) -> tuple[StageResult, StageFacts | None]:
            """The verdict on a stage, and its facts if it fails and the mistake has no name."""
            stage = self._course.stage(slug)
            result = forked._result(stage)
            runs.forget_exchanges(stage)
            return result, forked.unnamed.get(slug)

        return judged, runs.interpreter.close

    def _result(self, stage: Stage) -> StageResult:
        runs, submission = self._runs, self._request.submission
        facts, blame = find_blame(self._course, stage, submission, runs.facts, self._is_right)
        diagnoses: dict[str, Diagnosis] = {}
        if blame.is_own:
            with suppress(Spent):
                to_explain = runs.facts_to_explain(stage, blame.answered)
                diagnoses = self._diagnosed(stage, to_explain, runs.go_on)

        fails = status(facts) is Status.FAILED and not facts.forbidden and not stage.fixture
        is_own = (blame.is_own and not blame.answered) or blame.is_partial
        is_own = is_own and blame.perhaps is None

        def place(target: str) -> str:
            return runs.source.place(stage, target)

        result = judge_stage(stage, facts, blame, diagnoses=diagnoses, place=place)
        if self._course.is_partial and stage.is_exam:
            return result.for_students
        if fails and is_own and result.causes and not result.causes[0].show.is_named:
            self.unnamed[stage.slug] = facts.without_exchanges()
        return result
