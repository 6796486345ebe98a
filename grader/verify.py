"""Proof for a course's author: stubs fail, solutions pass, and every known mistake is caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from grader.misconceptions import Misconception
from grader.read.bundle import leaks, secret_lines, stage_files
from grader.read.hints import read_hints
from grader.read.misconceptions import read_misconceptions
from grader.read.stubs import read_stub
from grader.run.facts import StageFacts
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.errors import CourseError
from grader.types.proof import MisconceptionProof, StageProof
from grader.types.report import Outcome, Status
from grader.types.submission import Submission

if TYPE_CHECKING:
    from grader.run.session import Checks

SEEDS = (1, 2, 3)


def verify(
    course: Course, stages: Sequence[Stage], progress: Callable[[str], None] = lambda what: None
) -> tuple[StageProof, ...]:
    """The proofs of these stages; `progress` is told what is being looked at.

    Raises CourseError if a file of the course is missing or malformed, so that nothing can be run.
    """
    problems = {stage.slug: _file_problems(stage) for stage in stages}
    for stage, problem in _bundle_problems(course, stages):
        problems[stage.slug].append(problem)
    with Interpreter(course.preload, course.limits, gpu=False) as interpreter:
        from grader.run.session import with_checks

        return with_checks(
            course,
            list(stages),
            lambda checks: tuple(
                _Proof(course, stage, interpreter, checks, progress).of(problems[stage.slug])
                for stage in stages
            ),
        )


def _file_problems(stage: Stage) -> list[str]:
    """What is wrong with a stage's files, seen without running them."""
    if not stage.solution_file.is_file() or not stage.check_file.is_file():
        missing = [f for f in (stage.solution_file, stage.check_file) if not f.is_file()]
        raise CourseError(f"stage '{stage.slug}': there is no {missing[0]}")
    problems = []
    try:
        stub = read_stub(stage)
        if not stage.exercise_file.is_file():
            problems.append("there is no stub in exercises/: run grade stubs")
        elif stage.exercise_file.read_text(encoding="utf-8") != stub:
            problems.append("the stub is not in step with the solution: run grade stubs")
    except CourseError as error:
        problems.append(str(error))
    try:
        read_hints(stage)
    except CourseError as error:
        problems.append(str(error))
    if not stage.misconceptions_file.is_file():
        problems.append("there is no file of misconceptions")
    return problems


def _bundle_problems(course: Course, stages: Sequence[Stage]) -> Iterator[tuple[Stage, str]]:
    """What keeps the stages' files from being given to students."""
    given = {}
    for stage in stages:
        try:
            given[stage] = stage_files(course, stage)
        except CourseError as error:
            yield stage, str(error)
    written = [s for s in course.stages if s.solution_file.is_file() and s.check_file.is_file()]
    with suppress(CourseError):  # of a stage that was told above, or is not verified
        secrets = secret_lines(course, written)
        for stage, files in given.items():
            for leak in leaks(files, secrets):
                yield stage, str(leak)


class _Proof:
    """The runs that prove one stage."""

    def __init__(
        self,
        course: Course,
        stage: Stage,
        interpreter: Interpreter,
        checks: Checks,
        progress: Callable[[str], None],
    ) -> None:
        from grader.judge.diagnosis import Replays
        from grader.run.solutions import local_solutions

        self._course = course
        self._stage = stage
        self._interpreter = interpreter
        self._checks = checks
        self._progress = progress
        self._solution = local_solutions(course, stage)
        self._replays = Replays()

    def of(self, problems: Sequence[str]) -> StageProof:
        """Run all and gather what is wrong."""
        stage = self._stage
        found = list(problems)
        planned = self._checks.planned[stage.slug]
        total = sum(check.points for check in planned)
        if total != stage.points:
            found.append(f"the checks are worth {total:g} points, not {stage.points:g}")
        self._progress(f"{stage.slug}: the solution")
        found += self._solution_problems()
        self._progress(f"{stage.slug}: the stub")
        found += self._stub_problems()
        if stage.forbidden:
            self._progress(f"{stage.slug}: forbidden calls")
            found += self._forbidden_problems()
        known = read_misconceptions(stage)
        proofs = []
        for number, mistake in enumerate(known, start=1):
            self._progress(f"{stage.slug}: misconception {number} of {len(known)}, {mistake.id}")
            proof = self._misconception(mistake, known)
            proofs.append(proof)
            found += _misconception_problems(proof)
        return StageProof(stage.slug, len(planned), tuple(proofs), tuple(found))

    def _solution_problems(self) -> list[str]:
        from grader.run.solutions import solution_files

        submission = Submission("solutions", solution_files(self._course))
        problems = []
        for seed in SEEDS:
            result = self._graded(submission, seed)
            for check in result.checks:
                if check.outcome not in (Outcome.PASSED, Outcome.SKIPPED):
                    problems.append(f"seed {seed}: the solution fails {check.id}: {check.message}")
        return problems

    def _stub_problems(self) -> list[str]:
        files = {stage.file_name: read_stub(stage).encode() for stage in self._course.stages}
        result = self._graded(Submission("stubs", files), SEEDS[0])
        if result.status is Status.NOT_STARTED and result.score == 0:
            return []
        passed = [check.id for check in result.checks if check.outcome is Outcome.PASSED]
        return [f"the untouched stub is '{result.status.value}' and passes {passed or 'no check'}"]

    def _forbidden_problems(self) -> list[str]:
        """What is forbidden is called, in a way that only the worker can see: it has to."""
        stage = self._stage
        files = {stage.file_name: _calls_all(stage).encode()}
        seen = {call.name for call in self._facts(Submission("calls", files), SEEDS[0]).forbidden}
        return [
            f"forbidden: a call of {name} is not seen; is that its name, and its library there?"
            for name in stage.forbidden
            if name not in seen
        ]

    def _graded(self, submission: Submission, seed: int) -> Any:
        from grader.judge.verdict import judge_stage

        return judge_stage(self._stage, self._facts(submission, seed))

    def _facts(self, submission: Submission, seed: int) -> StageFacts:
        from grader.engine import with_calls
        from grader.run.answers import WorkerAnswers
        from grader.run.reader import Reader, SourceReader
        from grader.run.remote import StageUnderCheck

        stage, course = self._stage, self._course
        answers = WorkerAnswers(self._interpreter, course, stage, submission)
        facts = self._checks.run(stage, StageUnderCheck(stage, answers), seed, "cpu")
        return with_calls(facts, SourceReader(Reader(None), submission).calls(course, stage))

    def _misconception(
        self, mistake: Misconception, known: Sequence[Misconception]
    ) -> MisconceptionProof:
        """Run the checks against a misconception, here: it is the author's own code."""
        from grader.judge.diagnosis import explanations, named
        from grader.judge.verdict import judge_stage
        from grader.run.answers import LocalAnswers
        from grader.run.remote import StageUnderCheck

        def find(name: str) -> Any:
            return mistake.implementation if name == mistake.replaces else self._solution(name)

        under_check = StageUnderCheck(self._stage, LocalAnswers(find))
        facts = self._checks.run(self._stage, under_check, SEEDS[0], "cpu")
        result = judge_stage(self._stage, facts)
        caught_by = tuple(c.id for c in result.checks if c.outcome is Outcome.FAILED)
        explained = explanations(facts, known, self._solution, self._replays)
        names = {diagnosis.id for diagnosis in named(facts, known, explained).values()}
        own = explained.found.get(mistake.id)
        same = tuple(id for id, by in explained.found.items() if id != mistake.id and by == own)
        others = sorted(names - {mistake.id})
        name = mistake.id if names == {mistake.id} else ", ".join(others) or None
        return MisconceptionProof(mistake.id, caught_by, name, same)


_CALLS_ALL = """
import pkgutil
import sys


def call_all(*args, **kwargs):
    for name in {names}:
        thing = pkgutil.resolve_name(name)
        overloads = getattr(thing, "overloads", list)()  # an operation of torch has some
        for called in [getattr(thing, one) for one in overloads] or [thing]:
            try:
                called(*some_arguments(called))
            except Exception:
                pass  # it may not like these: but it was called


def some_arguments(called):
    if not hasattr(called, "_schema"):
        return []
    table = sys.modules["torch"].zeros(2, 2)
    values = {{"Tensor": table, "int": 1, "float": 1.0, "bool": True, "List[int]": [1]}}
    wanted = [each for each in called._schema.arguments if not each.has_default_value()]
    return [values.get(str(each.type)) for each in wanted if not each.kwarg_only]

"""


def _calls_all(stage: Stage) -> str:
    """A submission whose every entry point calls all that is forbidden, by the names as text."""
    source = _CALLS_ALL.format(names=list(stage.forbidden))
    for entry in stage.entry_points:
        if entry.is_class:
            source += f"\n\nclass {entry.name}:\n    __init__ = call_all\n"
        else:
            source += f"\n{entry.name} = call_all\n"
    return source


def _misconception_problems(proof: MisconceptionProof) -> list[str]:
    problems = []
    if not proof.caught_by:
        problems.append(f"the misconception {proof.id} passes every check")
    if proof.named not in (None, proof.id):
        problems.append(f"the misconception {proof.id} is named {proof.named}")
    if proof.same_as:
        problems.append(f"{proof.id} cannot be told from {', '.join(proof.same_as)}: they are one")
    return problems
