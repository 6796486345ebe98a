"""The runs that prove one stage, and what they have shown so far.

Right answers and misconceptions run in this very process, as they are the author's own; what only a
worker shows runs there, as a learner's code does.
"""

from __future__ import annotations

import io
import os
import pkgutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.misconceptions import Misconception
from grader.read.author_files import (
    accepted_files,
    check_place,
    file_problems,
    missing_files,
)
from grader.read.faults import fault_of, undefined
from grader.read.hints import read_hints
from grader.read.misconceptions import other_call, read_misconceptions
from grader.read.mutants import no_checks, read_records
from grader.read.stubs import read_stub
from grader.read.todos import stage_todos
from grader.read.traces import read_trace
from grader.run.facts import NO_SENSE, CaseFact, Ending, StageFacts
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, close_to
from grader.types.proof import CheckProof, MisconceptionProof, StageProof
from grader.types.report import Outcome, Status
from grader.types.submission import Submission

if TYPE_CHECKING:
    from grader.judge.tolerances import Shares
    from grader.run.session import Checks

_FEW = 3  # seeds: for the solution in the worker, and for each accepted answer
FEWEST_ACCEPTED, FEWEST_ACCEPTED_BONUS = 6, 3
_FINE = (Ending.PASSED, Ending.SKIPPED)
# Of a misconception that ends so wherever it fails: its author has mistyped something.
_SLIPS = ("NameError", "UnboundLocalError", "AttributeError", "ImportError", "ModuleNotFoundError")

Progress = Callable[[str, int, int], None]


class _Hangs(Exception):
    """A call of an author's function was stopped."""


class Draft:
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
        self.faint: set[str] = set()
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
        tolerances = tuple(tolerance_proofs(right, self.wrong, self.faint))
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


class StageRuns:
    """The runs that prove one stage."""

    def __init__(
        self,
        course: Course,
        draft: Draft,
        interpreter: Interpreter,
        checks: Checks,
        files: Mapping[str, bytes],
        seeds: Sequence[int],
        progress: Progress,
    ) -> None:
        from grader.judge.diagnosis import Replays

        self._course = course
        self._draft = draft
        self._stage = draft.stage
        self._interpreter = interpreter
        self._checks = checks
        self._files = files
        # Where the learner's tests are tried, that takes long and draws next to nothing.
        self._seeds = seeds[:_FEW] if draft.stage.fixture else seeds
        self._few = seeds[: 1 if draft.stage.fixture else _FEW]
        self._progress = progress
        self._replays = Replays()
        self._done = self._total = 0
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failing: dict[str, list[tuple[int, CaseFact]]] = {}  # of the solution's checks
        self._unsaid: dict[str, str] = {}  # checks that failed and said nothing
        self._skipped: set[str] = set()
        self._flaky: set[str] = set()
        self._equal: set[frozenset[str]] = set()  # misconceptions that are told of

    def prove(self) -> None:
        """Run all and add what is found to the draft."""
        from grader.run.answers import Stopped
        from grader.run.solutions import at_hand

        draft, stage = self._draft, self._stage
        planned = self._checks.planned[stage.slug]
        total = sum(check.points for check in planned)
        if total != stage.points:
            place = stage.place(stage.check_file)
            worth = f"its checks are worth {total:g} points"
            draft.problems.append(
                f"{place}: {worth}, course.toml says {stage.points:g}: change one"
            )
        draft.problems += self._record_problems()
        known = self._known_misconceptions()
        answers = accepted_files(stage)
        self._total = len(self._seeds) + len(self._few) + len(known) + len(answers)
        self._checks.forget()
        try:
            with at_hand(self._files, stage) as solution:
                self._solution(solution, self._few)
                self._in_the_worker()
                self._misconceptions(known, solution)
            for file in answers:
                self._accepted(file)
            self._checks.forget()
            with at_hand(self._files, stage) as solution:
                self._solution(solution, self._seeds[len(self._few) :])
                self._find_flaky(solution)
        except _Hangs as error:
            draft.problems.append(f"the solution {error}")
        except Stopped as error:
            places = {str(stage.check_file): stage.place(stage.check_file)}
            draft.problems.append(fault_of(error, places))
        else:
            self._conclude()

    def _record_problems(self) -> list[str]:
        """What is said of records of mutants that speak of no check."""
        try:
            records = read_records(self._stage)
        except CourseError:  # told already
            return []
        checks = [check.id.partition(".")[2] for check in self._checks.planned[self._stage.slug]]
        return list(no_checks(records, checks))

    def _known_misconceptions(self) -> Sequence[Misconception]:
        """Those of the stage's file; a fault of the file is told."""
        from grader.run.answers import Stopped, stopped_after

        file = self._stage.misconceptions_file
        try:
            with stopped_after(self._course.limits.load_seconds):
                known = read_misconceptions(self._stage)
        except CourseError as error:
            self._draft.problems.append(str(error))
            return ()
        except Stopped as error:
            fault = fault_of(error, {str(file): self._stage.place(file)})
            self._draft.problems.append(fault)
            return ()
        try:
            rungs = len(read_hints(self._stage).rungs)
        except CourseError:  # told already
            return known
        for mistake in known:
            if mistake.hint is not None and not 1 <= mistake.hint <= rungs:
                said = f"the misconception {mistake.id} points at hint {mistake.hint}"
                place = self._stage.place(file)
                self._draft.problems.append(f"{place}: {said}, but there are {rungs}")
        return known

    # --- right answers ---------------------------------------------------------------------------

    def _solution(self, solution: Callable[[str], Any], seeds: Iterable[int]) -> None:
        from grader.judge.tolerances import shares

        for seed in seeds:
            facts = self._local(solution, seed)
            self._draft.right.append(shares(facts, passed=True))
            self._draft.seeds += 1
            for fact in facts.cases:
                self._seconds[fact.case.check] += fact.seconds
                if fact.ending is Ending.SKIPPED:
                    self._skipped.add(fact.case.check)
                elif fact.ending is not Ending.PASSED:
                    self._failing.setdefault(fact.case.check, []).append((seed, fact))
            self._step()

    def _find_flaky(self, solution: Callable[[str], Any]) -> None:
        """Which of the failing checks pass when the very same is run again."""
        for seed in {failures[0][0] for failures in self._failing.values()}:
            for _ in range(_FEW):
                self._checks.forget()
                facts = self._local(solution, seed)
                lost = {fact.case.check for fact in facts.cases if fact.ending not in _FINE}
                first = {check for check, by in self._failing.items() if by[0][0] == seed}
                self._flaky |= first - lost

    def _in_the_worker(self) -> None:
        """What only the worker shows: the solution and the stub, as a learner's code is run."""
        draft = self._draft
        for seed in self._few:
            result = self._graded(Submission("solutions", dict(self._files)), seed)
            for check in result.checks:
                fine = check.outcome in (Outcome.PASSED, Outcome.SKIPPED)
                if not fine and check.id not in self._failing:
                    said = check.message.partition("\n")[0]
                    draft.problems.append(f"seed {seed}: the solution fails {check.id}: {said}")
            self._step()
        self._untouched()
        if self._stage.forbidden:
            draft.problems += self._forbidden_problems()

    def _untouched(self) -> None:
        """What the stub, as a learner is given it, shows; nothing where there can be none."""
        draft, stubs = self._draft, {}
        for stage in self._course.stages:
            if stage.file_name in self._files:
                try:
                    stubs[stage.file_name] = read_stub(stage).encode()
                except CourseError:  # told where that stage is verified
                    if stage == self._stage:
                        return
                    stubs[stage.file_name] = self._files[stage.file_name]
        result = self._graded(Submission("stubs", stubs), self._seeds[0])
        passed = [check.id for check in result.checks if check.outcome is Outcome.PASSED]
        for check in passed:
            if check not in self._failing:
                said = "passes on the untouched stub: it tests nothing of the learner's"
                draft.problems.append(f"{check_place(self._stage, check)}: {check} {said}")
        is_untouched = result.status is Status.NOT_STARTED and result.score == 0
        if not (passed or self._failing or is_untouched):
            draft.problems.append(f"the untouched stub is '{result.status.value}', not untouched")

    def _forbidden_problems(self) -> list[str]:
        """What is forbidden is called, in a way that only the worker can see: it has to."""
        from grader.run.calling import calls_all

        seen = {
            call.name for call in self._remote(calls_all(self._stage), self._seeds[0]).forbidden
        }
        place = f"course.toml: stage '{self._stage.slug}': forbidden"
        return [
            f"{place}: {_absent(name) or f'a call of {name} is not seen: name it as it is called'}"
            for name in self._stage.forbidden
            if name not in seen
        ]

    def _accepted(self, file: Path) -> None:
        """Run one right answer in another style."""
        from grader.judge.tolerances import shares
        from grader.run.answers import stopped_after
        from grader.run.reader import Reader, SourceReader
        from grader.run.solutions import at_hand

        stage, problems = self._stage, self._draft.problems
        place = stage.place(file)
        files = {**self._files, stage.file_name: file.read_bytes()}
        submission = Submission(place, files)
        calls = SourceReader(Reader(None), submission).calls(self._course, stage)
        lost = {f"calls {call.name}, which is forbidden": 1 for call in calls}
        try:
            with stopped_after(self._course.limits.load_seconds), at_hand(files, stage) as find:
                for entry in stage.entry_points:
                    find(entry.name)
            with at_hand(files, stage) as find:
                for seed in self._few:
                    facts = self._local(find, seed)
                    self._draft.right.append(shares(facts, passed=True))
                    for fact in facts.cases:
                        if fact.ending not in _FINE and fact.case.check not in self._failing:
                            lost.setdefault(f"fails {fact.case.check}: {_first_line(fact)}", seed)
        except KeyboardInterrupt:
            raise
        except _Hangs as error:
            problems.append(f"{place}: {error}")
            return
        except BaseException as error:  # noqa: BLE001 - whatever an author's file does is told
            fault = fault_of(error, {stage.file_name: place})
            if not fault.startswith(place):
                said = undefined(error) if isinstance(error, AttributeError) else error
                fault = f"{place}: {said}"
            problems.append(fault)
            return
        finally:
            self._step()
        for said in list(lost)[:1]:
            problems.append(f"{place}: a right answer {said}")
        if not lost:
            self._draft.accepted.append(file.stem)

    # --- wrong answers ---------------------------------------------------------------------------

    def _misconceptions(
        self, known: Sequence[Misconception], solution: Callable[[str], Any]
    ) -> None:
        """Run the checks against each, here: they are the author's own code."""
        found: dict[Misconception, StageFacts] = {}
        place = self._stage.place(self._stage.misconceptions_file)
        for mistake in known:
            name = f"{place}: the misconception {mistake.id}"

            def find(name: str, mistake: Misconception = mistake) -> Any:
                return mistake.implementation if name == mistake.replaces else solution(name)

            broken = other_call(mistake, solution(mistake.replaces))
            if broken and not self._stage.fixture:
                self._draft.problems.append(f"{name} is broken: {broken}")
                self._step()
                continue
            try:
                found[mistake] = self._local(find, self._seeds[0])
            except _Hangs as error:
                self._draft.problems.append(f"{name} {error}")
            self._step()
        for mistake, facts in found.items():
            self._misconception(mistake, tuple(found), solution, facts)

    def _misconception(
        self,
        mistake: Misconception,
        known: Sequence[Misconception],
        solution: Callable[[str], Any],
        facts: StageFacts,
    ) -> None:
        """Say what the checks, and the diagnosis, make of a misconception."""
        from grader.judge.diagnosis import explanations, named
        from grader.judge.tolerances import is_clear, shares

        self._draft.wrong[mistake.id] = shares(facts)
        if not is_clear(facts):
            self._draft.faint.add(mistake.id)
        failed = [f for f in facts.cases if f.ending in (Ending.WRONG, Ending.RAISED)]
        failed = [fact for fact in failed if fact.case.check not in self._failing]
        for fact in failed:
            if fact.faulty_line:
                said = f"{self._place(fact)}: {_error_of(fact)} (for {mistake.id})"
                self._unsaid.setdefault(fact.case.check, said)
        explained = explanations(facts, known, solution, self._replays)
        names = {diagnosis.id for diagnosis in named(facts, known, explained).values()}
        own = explained.found.get(mistake.id)
        same = tuple(id for id, by in explained.found.items() if id != mistake.id and by == own)
        others = sorted(names - {mistake.id})
        name = mistake.id if names == {mistake.id} else ", ".join(others) or None
        caught_by = tuple(dict.fromkeys(fact.case.check for fact in failed))
        proof = MisconceptionProof(mistake.id, caught_by, name, same)
        self._draft.misconceptions.append(proof)
        if caught_by or not self._failing:  # else a check that would catch it may be broken
            place = self._stage.place(self._stage.misconceptions_file)
            problems = list(_misconception_problems(proof, failed, place))
            one = frozenset({mistake.id, *same})
            if same and one not in self._equal:
                self._equal.add(one)
                said = f"{mistake.id} cannot be told from {', '.join(same)}: remove one"
                problems.append(f"{place}: {said}")
            self._draft.problems += problems
            if failed and not problems and not self._stage.fixture and not _gives(facts):
                raised = f"{mistake.id}: none of its calls gives a value that can be judged"
                self._draft.notes.append(f"{raised}: {_first_line(failed[0])}: is it meant so?")

    # --- all of it -------------------------------------------------------------------------------

    def _conclude(self) -> None:
        """Say of every check, and of all answers together, what has come out."""
        stage, draft = self._stage, self._draft
        causes = [self._told_of(check, failures) for check, failures in self._failing.items()]
        draft.problems[:0] = causes
        for check, said in self._unsaid.items():
            draft.problems.append(f"{said}: {check} has no words for the learner")
        for planned in self._checks.planned[stage.slug]:
            catches = tuple(m.id for m in draft.misconceptions if planned.id in m.caught_by)
            seconds = self._seconds[planned.id] / len(self._seeds)
            draft.checks.append(CheckProof(planned.id, planned.title, catches, seconds))
            unproven = not catches and planned.id not in self._failing
            if unproven and planned.id not in self._skipped and not causes:
                draft.notes.append(
                    f"{planned.id}: no misconception fails it; a mutant has to: --mutants"
                )
        fewest = FEWEST_ACCEPTED_BONUS if stage.bonus else FEWEST_ACCEPTED
        there = len(accepted_files(stage))
        if there < fewest:
            place = stage.place(stage.accepted_folder)
            draft.problems.append(
                f"{place}/: holds {there} of {fewest} right answers: write {fewest - there} more"
            )

    def _told_of(self, check: str, failures: Sequence[tuple[int, CaseFact]]) -> str:
        """Why a check refuses the solution: its own fault, or that of one of the two."""
        seed, fact = failures[0]
        if check in self._flaky:
            said = f"{check} gives another verdict each time (seed {seed}): draw with rand"
            return f"{check_place(self._stage, check)}: {said}"
        seeds = len({seed for seed, _ in failures})
        under = (
            f"seed {seed}" if seeds == 1 else f"{seeds} of {len(self._seeds)} seeds, first {seed}"
        )
        if fact.faulty_line:
            return f"{self._place(fact)}: {_error_of(fact)} (in {check}, {under})"
        said = f"{under}: the solution fails {check}: {_first_line(fact)}"
        return f"{said}: see grade {self._stage.slug} --submission solutions --seed {seed}"

    def _place(self, fact: CaseFact) -> str:
        """The line of the check's file that is at fault, by the file's path in the course."""
        return f"{self._stage.place(self._stage.check_file)}:{fact.faulty_line}"

    def _local(self, find: Callable[[str], Any], seed: int) -> StageFacts:
        """The facts of a run in this process. Raises _Hangs, and Stopped where a check hangs."""
        from grader.run.answers import LocalAnswers, stopped_after
        from grader.run.remote import StageUnderCheck

        limits = self._course.limits
        answers = LocalAnswers(find, limits)
        under_check = StageUnderCheck(self._stage, answers)
        with _silence(), stopped_after(limits.stage_seconds):  # what is printed is its own affair
            facts = self._checks.run(self._stage, under_check, seed, "cpu")
        if answers.hangs:
            raise _Hangs(f"{answers.hangs} (seed {seed})")
        return facts

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


@contextmanager
def _silence() -> Iterator[None]:
    """Let nothing be printed in the block, by libraries in C neither."""
    sys.stdout.flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number, _ in kept:
            os.dup2(nowhere, number)
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)


def _first_line(fact: CaseFact) -> str:
    return fact.message.partition("\n")[0]


def _error_of(fact: CaseFact) -> str:
    """The exception that a check itself has raised, as its message tells it."""
    return _first_line(fact).removeprefix(f"{NO_SENSE}: ").rstrip(": ")


def _absent(name: str) -> str:
    """What there is not of a dotted name, "" if there is all of it."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        try:
            found = pkgutil.resolve_name(".".join(parts[:count]))
        except (ImportError, AttributeError):
            if count == 1:
                return f"there is no library '{parts[0]}'"
            part = parts[count - 1]
            return f"{'.'.join(parts[: count - 1])} has no '{part}'{close_to(part, dir(found))}"
    return ""


def _gives(facts: StageFacts) -> bool:
    """Whether any call has given a value that a check could judge."""
    return any(
        exchange.reply.header.get("value") is not None
        for fact in facts.cases
        if fact.ending in (Ending.PASSED, Ending.WRONG)
        for exchange in fact.exchanges
    )


def _misconception_problems(
    proof: MisconceptionProof, failed: Sequence[CaseFact], place: str
) -> Iterator[str]:
    name = f"{place}: the misconception {proof.id}"
    slips = [
        fact for fact in failed if fact.ending is Ending.RAISED and fact.message.startswith(_SLIPS)
    ]
    if not proof.caught_by:
        yield f"{name} passes every check: sharpen a check, or remove it"
    elif len(slips) == len(failed):
        yield f"{name} is not caught but broken: {_first_line(slips[0])}"
    if proof.named not in (None, proof.id):
        yield f"{name} is named {proof.named}"
