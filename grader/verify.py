"""Proof for a course's author: stubs fail, solutions pass, and every known mistake is caught.

Files are looked at first, and a stage whose files cannot be run is told of once and left alone.
"""

from __future__ import annotations

import importlib
import io
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.misconceptions import Misconception
from grader.read.author_files import (
    accepted_files,
    fault_of,
    file_problems,
    given_away,
    missing_files,
    place_of,
    strays,
)
from grader.read.hints import read_hints
from grader.read.misconceptions import read_misconceptions
from grader.read.stubs import read_stub
from grader.read.todos import stage_todos
from grader.read.traces import read_trace
from grader.run.facts import CaseFact, Ending, StageFacts
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.errors import CourseError
from grader.types.proof import CheckProof, CourseProof, MisconceptionProof, StageProof
from grader.types.report import Outcome, Status
from grader.types.submission import Submission

if TYPE_CHECKING:
    from grader.judge.tolerances import Shares
    from grader.run.session import Checks

SEEDS = tuple(range(1, 51))
WORKER_SEEDS = SEEDS[:3]  # of which the solution runs where a learner's code does, too
ACCEPTED_SEEDS = SEEDS[:3]
FEWEST_ACCEPTED, FEWEST_ACCEPTED_BONUS = 6, 3
_FINE = (Ending.PASSED, Ending.SKIPPED)
# Of a misconception that ends so wherever it fails: its author has mistyped something.
_SLIPS = ("NameError", "UnboundLocalError", "AttributeError", "ImportError", "ModuleNotFoundError")

Progress = Callable[[str, int, int], None]


def verify(
    course: Course,
    stages: Sequence[Stage],
    progress: Progress = lambda slug, done, total: None,
) -> CourseProof:
    """The proofs of these stages; `progress` is told the stage, and how much of it is done.

    What is wrong with an author's files is part of them. Raises KeyboardInterrupt.
    """
    with Interpreter(course.preload, course.limits, gpu=False) as interpreter:
        for name in course.preload:
            importlib.import_module(name)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # more would wait for each other
        files = {s.file_name: s.solution_file.read_bytes() for s in course.stages if _is_there(s)}
        faults = _solution_faults(course, stages, files)
        drafts = [_Draft(stage, faults.get(stage.slug, "")) for stage in stages]
        for stage, problem in given_away(course, [d.stage for d in drafts if d.is_complete]):
            next(d for d in drafts if d.stage == stage).problems.append(problem)

        def body(checks: Checks) -> None:
            for draft in drafts:
                if draft.can_run:
                    _Runs(course, draft, interpreter, checks, files, progress).prove()

        _with_checks(course, drafts, body)
    whole = {stage.slug for stage in stages} == {stage.slug for stage in course.stages}
    return CourseProof(
        course.name,
        tuple(draft.proof() for draft in drafts),
        tuple(strays(course)) if whole else (),
    )


def _is_there(stage: Stage) -> bool:
    return stage.solution_file.is_file()


class _Draft:
    """What is known of a stage so far, beginning with what its files show without being run."""

    def __init__(self, stage: Stage, fault: str) -> None:
        self.stage = stage
        self.problems = list(missing_files(stage))
        self.is_complete = not self.problems and not fault
        self.can_run = stage.solution_file.is_file() and stage.check_file.is_file() and not fault
        self.notes: list[str] = []
        self.checks: list[CheckProof] = []
        self.misconceptions: list[MisconceptionProof] = []
        self.accepted: list[str] = []
        self.seeds = 0
        self.right: list[Shares] = []
        self.wrong: dict[str, Shares] = {}
        if fault:
            self.problems.append(fault)
            return
        self.problems += file_problems(stage)
        if stage.trace_file.is_file():
            try:
                read_trace(stage)
            except CourseError as error:
                self.problems.append(str(error))

    def proof(self) -> StageProof:
        """All of it."""
        from grader.judge.tolerances import largest, tolerance_problems, tolerance_proofs

        right = largest((spot.check, one) for own in self.right for spot, one in own.items())
        tolerances = tuple(tolerance_proofs(right, self.wrong))
        problems = [*self.problems, *tolerance_problems(tolerances)]
        return StageProof(
            self.stage.slug,
            self.seeds,
            tuple(self.checks),
            tuple(self.misconceptions),
            tuple(self.accepted),
            tolerances,
            tuple(dict.fromkeys(problems)),
            stage_todos(self.stage),
            tuple(self.notes),
        )


def _solution_faults(
    course: Course, stages: Sequence[Stage], files: Mapping[str, bytes]
) -> dict[str, str]:
    """What is said of each stage whose solution cannot be imported; of one file no more than once.

    A stage that needs another's functions fails with it.
    """
    from grader.run.solutions import at_hand

    places = {s.file_name: place_of(s, s.solution_file) for s in course.stages}
    found: dict[str, str] = {}
    for stage in stages:
        if not _is_there(stage):
            continue
        try:
            with at_hand(files, stage) as find:
                for entry in stage.entry_points:
                    find(entry.name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever an author's file does is told
            fault = fault_of(error, places)
            if isinstance(error, AttributeError) and not fault.startswith("solutions/"):
                fault = f"{places[stage.file_name]}: {error}"
            known = fault in found.values()
            found[stage.slug] = f"not run: it needs {fault.split(':')[0]}" if known else fault
    return found


def _with_checks(course: Course, drafts: Sequence[_Draft], body: Callable[[Checks], None]) -> None:
    """Run `body` with the checks of all stages that can be collected; the others are told of."""
    from grader.run.session import with_checks

    began = False

    def begun(checks: Checks) -> None:
        nonlocal began
        began = True
        body(checks)

    ready = [draft.stage for draft in drafts if draft.can_run]
    try:
        with_checks(course, ready, begun, measures=True)
    except CourseError:
        if began:
            raise
        for draft in drafts:
            if draft.can_run:
                fault = _collection_fault(course, draft.stage)
                draft.can_run = not fault
                draft.problems += fault
        with_checks(course, [d.stage for d in drafts if d.can_run], body, measures=True)


def _collection_fault(course: Course, stage: Stage) -> list[str]:
    """Why the checks of a stage cannot be collected."""
    from grader.run.session import with_checks

    file = stage.check_file
    try:
        with_checks(course, [stage], lambda checks: None)
    except CourseError as error:
        try:
            code = compile(file.read_bytes(), str(file), "exec")
            exec(code, {"__name__": file.stem, "__file__": str(file)})  # noqa: S102 - the author's
        except Exception as own:  # noqa: BLE001 - whatever an author's file does is told
            return [fault_of(own, {str(file): place_of(stage, file)})]
        return [str(error)]
    return []


class _Runs:
    """The runs that prove one stage."""

    def __init__(
        self,
        course: Course,
        draft: _Draft,
        interpreter: Interpreter,
        checks: Checks,
        files: Mapping[str, bytes],
        progress: Progress,
    ) -> None:
        from grader.judge.diagnosis import Replays

        self._course = course
        self._draft = draft
        self._stage = draft.stage
        self._interpreter = interpreter
        self._checks = checks
        self._files = files
        self._progress = progress
        self._replays = Replays()
        self._done = self._total = 0
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failing: dict[str, list[tuple[int, CaseFact]]] = {}  # of the solution's checks
        self._unsaid: dict[str, str] = {}  # checks that failed and said nothing
        self._skipped: set[str] = set()

    def prove(self) -> None:
        """Run all and add what is found to the draft."""
        from grader.run.solutions import at_hand

        draft, stage = self._draft, self._stage
        planned = self._checks.planned[stage.slug]
        total = sum(check.points for check in planned)
        if total != stage.points:
            draft.problems.append(f"the checks are worth {total:g} points, not {stage.points:g}")
        known = self._known_misconceptions()
        answers = accepted_files(stage)
        self._total = len(SEEDS) + len(WORKER_SEEDS) + len(known) + len(answers)
        self._checks.forget()
        with at_hand(self._files, stage) as solution:
            self._solution(solution, WORKER_SEEDS)
            self._in_the_worker()
            for mistake in known:
                self._misconception(mistake, known, solution)
        for file in answers:
            self._accepted(file)
        self._checks.forget()
        with at_hand(self._files, stage) as solution:
            self._solution(solution, SEEDS[len(WORKER_SEEDS) :])
        self._conclude()

    def _known_misconceptions(self) -> Sequence[Misconception]:
        """Those of the stage's file; a fault of the file is told."""
        try:
            known = read_misconceptions(self._stage)
        except CourseError as error:
            self._draft.problems.append(str(error))
            return ()
        try:
            rungs = len(read_hints(self._stage).rungs)
        except CourseError:  # told already
            return known
        for mistake in known:
            if mistake.hint is not None and not 1 <= mistake.hint <= rungs:
                said = f"the misconception {mistake.id} points at hint {mistake.hint}"
                self._draft.problems.append(f"{said}, but there are {rungs}")
        return known

    # --- right answers ---------------------------------------------------------------------------

    def _solution(self, solution: Callable[[str], Any], seeds: Iterable[int]) -> None:
        from grader.judge.tolerances import shares

        for seed in seeds:
            facts = self._local(solution, seed)
            self._draft.right.append(shares(facts))
            self._draft.seeds += 1
            for fact in facts.cases:
                self._seconds[fact.case.check] += fact.seconds
                if fact.ending is Ending.SKIPPED:
                    self._skipped.add(fact.case.check)
                elif fact.ending is not Ending.PASSED:
                    self._failing.setdefault(fact.case.check, []).append((seed, fact))
            self._step()

    def _in_the_worker(self) -> None:
        """What only the worker shows: the solution and the stub, as a learner's code is run."""
        draft, course = self._draft, self._course
        for seed in WORKER_SEEDS:
            result = self._graded(Submission("solutions", dict(self._files)), seed)
            for check in result.checks:
                fine = check.outcome in (Outcome.PASSED, Outcome.SKIPPED)
                if not fine and check.id not in self._failing:
                    said = check.message.partition("\n")[0]
                    draft.problems.append(f"seed {seed}: the solution fails {check.id}: {said}")
            self._step()
        stubs = {}
        for stage in course.stages:
            if stage.file_name in self._files:
                try:
                    stubs[stage.file_name] = read_stub(stage).encode()
                except CourseError:  # told where that stage is verified
                    stubs[stage.file_name] = self._files[stage.file_name]
        result = self._graded(Submission("stubs", stubs), SEEDS[0])
        if result.status is not Status.NOT_STARTED or result.score != 0:
            passed = [check.id for check in result.checks if check.outcome is Outcome.PASSED]
            state = f"the untouched stub is '{result.status.value}'"
            draft.problems.append(f"{state} and passes {', '.join(passed) or 'no check'}")
        if self._stage.forbidden:
            draft.problems += self._forbidden_problems()

    def _forbidden_problems(self) -> list[str]:
        """What is forbidden is called, in a way that only the worker can see: it has to."""
        from grader.run.calling import calls_all

        seen = {call.name for call in self._remote(calls_all(self._stage), SEEDS[0]).forbidden}
        return [
            f"forbidden: a call of {name} is not seen; is that its name, and its library there?"
            for name in self._stage.forbidden
            if name not in seen
        ]

    def _accepted(self, file: Path) -> None:
        """Run one right answer in another style."""
        from grader.judge.tolerances import shares
        from grader.run.reader import Reader, SourceReader
        from grader.run.solutions import at_hand

        stage, problems = self._stage, self._draft.problems
        place = place_of(stage, file)
        files = {**self._files, stage.file_name: file.read_bytes()}
        submission = Submission(place, files)
        calls = SourceReader(Reader(None), submission).calls(self._course, stage)
        lost = {f"calls {call.name}, which is forbidden": 1 for call in calls}
        try:
            with at_hand(files, stage) as find:
                for entry in stage.entry_points:
                    find(entry.name)
                for seed in ACCEPTED_SEEDS:
                    facts = self._local(find, seed)
                    self._draft.right.append(shares(facts))
                    for fact in facts.cases:
                        if fact.ending not in _FINE and fact.case.check not in self._failing:
                            lost.setdefault(f"fails {fact.case.check}: {_first_line(fact)}", seed)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever an author's file does is told
            problems.append(fault_of(error, {stage.file_name: place}))
            return
        finally:
            self._step()
        for said in list(lost)[:1]:
            problems.append(f"{place}: a right answer {said}")
        if not lost:
            self._draft.accepted.append(file.stem)

    # --- wrong answers ---------------------------------------------------------------------------

    def _misconception(
        self,
        mistake: Misconception,
        known: Sequence[Misconception],
        solution: Callable[[str], Any],
    ) -> None:
        """Run the checks against a misconception, here: it is the author's own code."""
        from grader.judge.diagnosis import explanations, named
        from grader.judge.tolerances import shares

        def find(name: str) -> Any:
            return mistake.implementation if name == mistake.replaces else solution(name)

        facts = self._local(find, SEEDS[0])
        self._draft.wrong[mistake.id] = shares(facts)
        failed = [f for f in facts.cases if f.ending in (Ending.WRONG, Ending.RAISED)]
        failed = [fact for fact in failed if fact.case.check not in self._failing]
        for fact in failed:
            if fact.place:
                self._unsaid.setdefault(fact.case.check, f"{fact.place}: for {mistake.id}")
        explained = explanations(facts, known, solution, self._replays)
        names = {diagnosis.id for diagnosis in named(facts, known, explained).values()}
        own = explained.found.get(mistake.id)
        same = tuple(id for id, by in explained.found.items() if id != mistake.id and by == own)
        others = sorted(names - {mistake.id})
        name = mistake.id if names == {mistake.id} else ", ".join(others) or None
        caught_by = tuple(dict.fromkeys(fact.case.check for fact in failed))
        proof = MisconceptionProof(mistake.id, caught_by, name, same)
        self._draft.misconceptions.append(proof)
        self._draft.problems += _misconception_problems(proof, failed)
        self._step()

    # --- all of it -------------------------------------------------------------------------------

    def _conclude(self) -> None:
        """Say of every check, and of all answers together, what has come out."""
        stage, draft = self._stage, self._draft
        for check, failures in self._failing.items():
            draft.problems.append(self._told_of(check, failures))
        for check, said in self._unsaid.items():
            draft.problems.append(f"{said}: {check} fails without a word for the learner")
        for planned in self._checks.planned[stage.slug]:
            catches = tuple(m.id for m in draft.misconceptions if planned.id in m.caught_by)
            seconds = self._seconds[planned.id] / len(SEEDS)
            draft.checks.append(CheckProof(planned.id, planned.title, catches, seconds))
            unproven = not catches and planned.id not in self._failing
            if unproven and planned.id not in self._skipped:
                draft.notes.append(
                    f"{planned.id}: no misconception fails it; a mutant has to: --mutants"
                )
        fewest = FEWEST_ACCEPTED_BONUS if stage.bonus else FEWEST_ACCEPTED
        there = len(accepted_files(stage))
        if there < fewest:
            place = place_of(stage, stage.accepted_folder)
            draft.problems.append(f"{place}/: holds {there} right answers: write {fewest}")

    def _told_of(self, check: str, failures: Sequence[tuple[int, CaseFact]]) -> str:
        """Why a check refuses the solution: its own fault, or that of one of the two."""
        seed, fact = failures[0]
        seeds = len({seed for seed, _ in failures})
        under = f"seed {seed}" if seeds == 1 else f"{seeds} of {len(SEEDS)} seeds, first {seed}"
        if fact.place:
            place = Path(fact.place.rpartition(":")[0]).relative_to(self._stage.root).as_posix()
            line = fact.place.rpartition(":")[2]
            return f"{place}:{line}: {_error_of(fact)} (in {check}, {under})"
        return f"{under}: the solution fails {check}: {_first_line(fact)}"

    def _local(self, find: Callable[[str], Any], seed: int) -> StageFacts:
        from grader.run.answers import LocalAnswers
        from grader.run.remote import StageUnderCheck

        under_check = StageUnderCheck(self._stage, LocalAnswers(find))
        with redirect_stdout(io.StringIO()):  # what an answer prints is its own affair
            return self._checks.run(self._stage, under_check, seed, "cpu")

    def _graded(self, submission: Submission, seed: int) -> Any:
        from grader.judge.verdict import judge_stage

        return judge_stage(self._stage, self._remote(submission, seed))

    def _remote(self, submission: Submission, seed: int) -> StageFacts:
        from grader.engine import with_calls
        from grader.run.answers import WorkerAnswers
        from grader.run.reader import Reader, SourceReader
        from grader.run.remote import StageUnderCheck

        stage, course = self._stage, self._course
        answers = WorkerAnswers(self._interpreter, course, stage, submission)
        facts = self._checks.run(stage, StageUnderCheck(stage, answers), seed, "cpu")
        return with_calls(facts, SourceReader(Reader(None), submission).calls(course, stage))

    def _step(self) -> None:
        self._done += 1
        self._progress(self._stage.slug, self._done, self._total)


def _first_line(fact: CaseFact) -> str:
    return fact.message.partition("\n")[0]


def _error_of(fact: CaseFact) -> str:
    """The exception that a check itself has raised, as its message tells it."""
    from grader.run.session import NO_SENSE

    return _first_line(fact).removeprefix(f"{NO_SENSE}: ").rstrip(": ")


def _misconception_problems(proof: MisconceptionProof, failed: Sequence[CaseFact]) -> Iterator[str]:
    name = f"the misconception {proof.id}"
    slips = [
        fact for fact in failed if fact.ending is Ending.RAISED and fact.message.startswith(_SLIPS)
    ]
    if not proof.caught_by:
        yield f"{name} passes every check"
    elif len(slips) == len(failed):
        yield f"{name} is not caught but broken: {_first_line(slips[0])}"
    if proof.named not in (None, proof.id):
        yield f"{name} is named {proof.named}"
    if proof.same_as:
        yield f"{proof.id} cannot be told from {', '.join(proof.same_as)}: they are one"
