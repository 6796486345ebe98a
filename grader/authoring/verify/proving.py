"""The runs that prove one stage, and their results so far.

Right answers and misconceptions run in this process, because they are the author's own code. What
only a worker can show runs in a worker, like a learner's code.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.authoring.mutants.record import no_checks, read_records
from grader.authoring.verify.author_files import (
    accepted_files,
    check_place,
    file_problems,
    missing_files,
)
from grader.authoring.verify.examples import Examples
from grader.authoring.verify.memory import Memory, sources_of_mistakes
from grader.authoring.verify.runs import CheckRuns, Find, Hangs, silence
from grader.authoring.verify.solution_runs import (
    FINE,
    SolutionRuns,
    error_of,
    faulty_place,
    first_line,
)
from grader.authoring.verify.todos import is_unwritten, stage_todos
from grader.learning.explore.example import read_explore
from grader.learning.finale.programs import read_programs
from grader.learning.hints.ladder import read_hints
from grader.learning.pictures.examples import read_trace
from grader.misconceptions import Known, Misconception, Way
from grader.read.faults import fault_of, undefined
from grader.read.misconceptions import other_call, read_known
from grader.read.stubs import read_stub
from grader.run.facts import CaseFact, Ending, StageFacts
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, close_to
from grader.types.proof import CheckProof, MisconceptionProof, StageProof
from grader.types.report import Outcome, Status
from grader.types.submission import Submission
from grader.types.text import listed

if TYPE_CHECKING:
    from grader.authoring.verify.constants import Constant
    from grader.authoring.verify.tolerances import Shares
    from grader.diagnosis.names import Tally
    from grader.run.session import Checks

_FEW = 3  # seeds for the complete runs of the solution, here and in the worker
_LOST = tuple(ending for ending in Ending if ending is not Ending.PASSED)
FEWEST_ACCEPTED, FEWEST_ACCEPTED_BONUS = 6, 3
# If a misconception fails only with these errors, its author has mistyped something.
_SLIPS = ("NameError", "UnboundLocalError", "AttributeError", "ImportError", "ModuleNotFoundError")

Progress = Callable[[str, int, int], None]


class Draft:
    """The results of a stage so far, starting with the faults that its files show unrun."""

    def __init__(self, stage: Stage, fault: str) -> None:
        self.stage = stage
        self.problems = list(missing_files(stage))
        self.is_complete = not self.problems and not fault
        needed = (stage.solution_file, stage.check_file)
        self.can_run = not fault and all(file.is_file() for file in needed)
        unwritten = [stage.place(file) for file in needed if self.can_run and is_unwritten(file)]
        self.is_unwritten = bool(unwritten)
        self.can_run &= not unwritten
        self.notes: list[str] = []
        if unwritten:
            self.notes.append(f"{stage.slug} does not run yet: write {listed(unwritten)}")
        self.checks: list[CheckProof] = []
        self.misconceptions: list[MisconceptionProof] = []
        self.accepted: list[str] = []
        self.skipped: tuple[str, ...] = ()
        self.seeds = 0
        self.right: list[Shares] = []
        self.wrong: dict[str, Shares] = {}
        self.faint: set[str] = set()
        self.problems += [fault] if fault else []
        self.problems += file_problems(stage, is_broken=bool(fault))
        if fault:
            return
        for file, read in (
            (stage.trace_file, partial(read_trace, file=stage.trace_file)),
            (stage.certificate_file, partial(read_trace, file=stage.certificate_file)),
            (stage.explore_file, read_explore),
            (stage.finale_file, read_programs),
        ):
            if file.is_file():
                try:
                    read(stage)
                except CourseError as error:
                    self.problems.append(str(error))

    def proof(self) -> StageProof:
        """The finished proof."""
        from grader.authoring.verify.tolerances import largest, tolerance_problems, tolerance_proofs

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
            self.skipped,
        )


class StageProving:
    """Proves one stage: its solution, its misconceptions, its right answers in other styles."""

    def __init__(
        self,
        course: Course,
        draft: Draft,
        interpreter: Interpreter,
        checks: Checks,
        files: Mapping[str, bytes],
        seeds: Sequence[int],
        per_answer: int,
        progress: Progress,
        memory: Memory,
    ) -> None:
        from grader.diagnosis.replay import Replays

        self._course = course
        self._draft = draft
        self._stage = draft.stage
        self._memory = memory
        self._runs = CheckRuns(course, draft.stage, interpreter, checks, memory)
        self._solution = SolutionRuns(self._runs)
        self._examples = Examples(draft.stage, course.limits.load_seconds)
        self._checks = checks
        self._files = files
        # A stage of learner's tests takes long and uses almost no random numbers.
        self._seeds = seeds[:_FEW] if draft.stage.fixture else seeds
        self._few = seeds[: 1 if draft.stage.fixture else _FEW]
        self._answer_seeds = (self._few if draft.stage.fixture else seeds)[:per_answer]
        self._progress = progress
        self._replays = Replays()
        self._done = self._total = 0
        self._knows = True  # whether the misconceptions could be read
        self._unsaid: dict[str, str] = {}  # checks that failed without a message
        self._idle: set[str] = set()  # checks that pass for any answer
        self._equal: set[frozenset[str]] = set()  # equal misconceptions already reported

    def prove(self) -> None:
        """Run everything and add the results to the draft."""
        from grader.run.solutions import at_hand
        from grader.run.stopping import Stopped

        draft, stage = self._draft, self._stage
        planned = self._checks.planned[stage.slug]
        total = sum(check.points for check in planned)
        if total != stage.points:
            place = stage.place(stage.check_file)
            worth = f"its checks are worth {total:g} points"
            draft.problems.append(
                f"{place}: {worth}, but course.toml says {stage.points:g}: change one"
            )
        draft.problems += self._record_problems()
        known = self._known()
        mistakes = known.misconceptions
        answers = [file for file in accepted_files(stage) if not is_unwritten(file)]  # to-dos
        self._total = len(self._seeds) + len(self._few) + len(mistakes) + len(answers) + 1
        self._checks.forget()
        try:
            with at_hand(self._files, stage) as solution:
                draft.problems += self._examples.of_solution()
                self._run_solution(solution, self._few)
                self._in_the_worker()
                self._misconceptions(mistakes, solution)
                self._constants(solution)
                self._ways(known.ways, solution)
            for file in answers:
                self._accepted(file)
            self._checks.forget()
            with at_hand(self._files, stage) as solution:
                self._run_solution(solution, self._seeds[len(self._few) :], only_random=True)
                self._solution.again(solution, self._seeds[0])
                self._solution.find_flaky(solution)
        except Hangs as error:
            draft.problems.append(f"the solution {error}")
        except Stopped as error:
            places = {str(stage.check_file): stage.place(stage.check_file)}
            draft.problems.append(fault_of(error, places))
        else:
            self._conclude()

    def _record_problems(self) -> list[str]:
        """Messages about records of mutants for a check that does not exist."""
        try:
            records = read_records(self._stage)
        except CourseError:  # reported already
            return []
        checks = [check.id.partition(".")[2] for check in self._checks.planned[self._stage.slug]]
        return list(no_checks(records, checks))

    def _known(self) -> Known:
        """What the stage's file of misconceptions holds; reports a fault of the file."""
        from grader.run.stopping import Stopped, stopped_after

        file = self._stage.misconceptions_file
        try:
            with stopped_after(self._course.limits.load_seconds):
                known = read_known(self._stage)
        except CourseError as error:
            self._draft.problems += str(error).split("\n")
        except Stopped as error:
            self._draft.problems.append(fault_of(error, {str(file): self._stage.place(file)}))
        else:
            return self._with_hints(known)
        self._knows = False
        return Known()

    def _with_hints(self, known: Known) -> Known:
        """What is known; reports hints that it and the checks name and that do not exist."""
        try:
            rungs = len(read_hints(self._stage).rungs)
        except CourseError:  # reported already
            return known
        place = self._stage.place(self._stage.misconceptions_file)
        pointing = [
            (place, f"the misconception {one.id}", one.hint) for one in known.misconceptions
        ]
        place = self._stage.place(self._stage.check_file)
        checks = self._checks.planned[self._stage.slug]
        pointing += [(place, f"the check {check.id}", check.hint) for check in checks]
        for place, what, hint in pointing:
            if hint is not None and not 1 <= hint <= rungs:
                said = f"{what} points to hint {hint}"
                self._draft.problems.append(f"{place}: {said}, but there are only {rungs} hints")
        return known

    def _ways(self, ways: Sequence[Way], solution: Find) -> None:
        """Expect that the solution makes the values that the stage lists."""
        if not ways:
            return
        from grader.authoring.verify.ways import way_problems  # imports torch

        found = way_problems(ways, solution, lambda find: self._runs.local(find, self._seeds[0]))
        place = self._stage.place(self._stage.misconceptions_file)
        self._draft.problems += [f"{place}: {problem}" for problem in found]

    # --- right answers ---------------------------------------------------------------------------

    def _run_solution(
        self, solution: Find, seeds: Iterable[int], *, only_random: bool = False
    ) -> None:
        from grader.authoring.verify.tolerances import shares

        for facts in self._solution.run(solution, seeds, only_random=only_random):
            self._draft.right.append(shares(facts, passed=True))
            self._draft.seeds += 1
            self._step()

    def _in_the_worker(self) -> None:
        """Run the solution and the stub in the worker, like a learner's code."""
        draft = self._draft
        for seed in self._few:
            result = self._runs.graded(Submission("solutions", dict(self._files)), seed)
            for check in result.checks:
                fine = check.outcome in (Outcome.PASSED, Outcome.SKIPPED)
                if not fine and check.id not in self._solution.failing:
                    why = check.message.partition("\n")[0]
                    draft.problems.append(f"seed {seed}: the solution fails {check.id}: {why}")
            self._step()
        self._untouched()
        if self._stage.forbidden:
            draft.problems += self._forbidden_problems()

    def _untouched(self) -> None:
        """Run the stub as a learner gets it, if there is one."""
        draft, stubs = self._draft, {}
        for stage in self._course.stages:
            if stage.file_name in self._files:
                try:
                    stubs[stage.file_name] = read_stub(stage).encode()
                except CourseError:  # reported when that stage is verified
                    if stage == self._stage:
                        return
                    stubs[stage.file_name] = self._files[stage.file_name]
        result = self._runs.graded(Submission("stubs", stubs), self._seeds[0])
        passed = [check.id for check in result.checks if check.outcome is Outcome.PASSED]
        for check in passed:
            if check not in self._solution.failing:
                what = "passes on the original stub: it does not test the learner's code"
                draft.problems.append(f"{check_place(self._stage, check)}: {check} {what}")
        is_untouched = result.status is Status.NOT_STARTED and result.score == 0
        if not (passed or self._solution.failing or is_untouched):
            draft.problems.append(
                f"the original stub is '{result.status.value}' instead of 'not started'"
            )

    def _forbidden_problems(self) -> list[str]:
        """Forbidden names whose calls the worker does not see; it has to see all of them."""
        from grader.authoring.verify.calling import calls_all

        seen = {
            call.name
            for call in self._runs.remote(calls_all(self._stage), self._seeds[0]).forbidden
        }
        place = f"course.toml: stage '{self._stage.slug}': forbidden"
        return [
            f"{place}: {_absent(name) or f'calls of {name} cannot be noticed: forbid another name'}"
            for name in self._stage.forbidden
            if name not in seen
        ]

    def _accepted(self, file: Path) -> None:
        """Run one right answer in another style than the solution's."""
        from grader.authoring.verify.tolerances import shares
        from grader.run.reader import Reader, SourceReader
        from grader.run.solutions import at_hand
        from grader.run.stopping import stopped_after

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
                lost |= dict.fromkeys(self._examples.of_answer(), 1)
                for seed in self._answer_seeds:
                    facts = self._runs.known(
                        ("accepted", submission.digest(stage.file_name)),
                        find,
                        seed,
                        only_random=seed != self._seeds[0],
                    )
                    self._draft.right.append(shares(facts, passed=True))
                    for fact in facts.cases:
                        if (
                            fact.ending not in FINE
                            and fact.case.check not in self._solution.failing
                        ):
                            lost.setdefault(f"fails {fact.case.check}: {first_line(fact)}", seed)
        except KeyboardInterrupt:
            raise
        except Hangs as error:
            problems.append(f"{place}: {error}")
            return
        except BaseException as error:  # noqa: BLE001 - every fault of an author's file is reported
            fault = fault_of(error, {stage.file_name: place})
            if not fault.startswith(place):
                what = undefined(error) if isinstance(error, AttributeError) else error
                fault = f"{place}: {what}"
            problems.append(fault)
            return
        finally:
            self._step()
        for what in list(lost)[:1]:
            problems.append(f"{place}: a right answer {what}")
        if not lost:
            self._draft.accepted.append(file.stem)

    # --- wrong answers ---------------------------------------------------------------------------

    def _misconceptions(
        self, known: Sequence[Misconception], solution: Callable[[str], Any]
    ) -> None:
        """Run the checks against each misconception, in this process."""
        found: dict[Misconception, StageFacts] = {}
        file = self._stage.misconceptions_file
        place = self._stage.place(file)
        text = file.read_text("utf-8-sig") if known else ""
        digests = sources_of_mistakes(text)
        for mistake in known:
            name, find = f"{place}: the misconception {mistake.id}", mistake.among(solution)
            broken = other_call(mistake, solution(mistake.replaces))
            if broken and not self._stage.fixture:
                self._draft.problems.append(f"{name} is broken: {broken}")
                self._step()
                continue
            try:
                who = ("misconception", mistake.id, digests.get(mistake.id, text))
                found[mistake] = self._runs.known(who, find, self._seeds[0])
                self._expect_one_verdict(name, who, find, found[mistake])
            except Hangs as error:
                self._draft.problems.append(f"{name} {error}")
            self._step()
        for mistake, facts in found.items():
            self._misconception(mistake, tuple(found), solution, facts, text)

    def _expect_one_verdict(self, name: str, who: Hashable, find: Find, first: StageFacts) -> None:
        """Report a wrong answer whose checks fail with one seed and pass with another."""
        lost = {self._seeds[0]: _lost(first.cases)}
        for seed in self._answer_seeds[1:]:
            drawn = self._runs.known(who, find, seed, only_random=True).cases
            again = {fact.case for fact in drawn}
            lost[seed] = _lost([*drawn, *(f for f in first.cases if f.case not in again)])
        ever = set[str]().union(*lost.values())
        varied = sorted(check for check in ever if not all(check in ids for ids in lost.values()))
        if varied:
            points = {check.id: check.points for check in first.planned}
            given = {sum(points[id] for id in points.keys() - ids) for ids in lost.values()}
            points_given = " or ".join(f"{value:g}" for value in sorted(given))
            self._draft.problems.append(
                f"{name} gets {points_given} points depending on the seed: give "
                f"{', '.join(varied)} a fixed input that shows the mistake"
            )

    def _constants(self, solution: Find) -> None:
        """Report checks that pay for a constant answer without saying why."""
        from grader.authoring.verify.constants import ANY_ANSWER, ODD, constants, earned

        stage = self._stage
        pays = [
            (check, constant.name)
            for constant in constants(stage, solution)
            for check in earned(stage, constant, self._constant(constant))
        ]
        for planned in self._checks.planned[stage.slug]:
            found = dict.fromkeys(name for check, name in pays if check == planned.id)
            undeclared = [name for name in found if name not in (*planned.pays, ODD)]
            unused = [name for name in planned.pays if name not in found]
            place = f"{check_place(stage, planned.id)}: {planned.id}"
            catches = any(planned.id in mistake.caught_by for mistake in self._draft.misconceptions)
            fails = planned.id in self._solution.failing  # which is reported already
            if undeclared and not fails:
                self._draft.problems.append(
                    f"{place} pays for an answer that is always {listed(undeclared, 'or')}: "
                    "compare values that differ from it, or give a reason with @pytest.mark.pays"
                )
            elif set(found) >= ANY_ANSWER and not (catches or fails):
                self._idle.add(planned.id)
                self._draft.problems.append(f"{place} passes for any answer: compare values")
            if unused:
                what = f"does not pay for {listed(unused, 'or')}: remove that from its mark"
                self._draft.problems.append(f"{place} {what}")
        self._step()

    def _constant(self, constant: Constant) -> StageFacts:
        """The facts of a constant answer; no more of a check runs than shows that it is lost."""
        who = ("constant", constant.name, constant.is_built)
        return self._runs.known(who, constant.find, self._seeds[0], gives_up=_LOST)

    def _misconception(
        self,
        mistake: Misconception,
        known: Sequence[Misconception],
        solution: Callable[[str], Any],
        facts: StageFacts,
        text: str,
    ) -> None:
        """Record which checks catch a misconception, and whether the diagnosis names it.

        `text` is that of the file of misconceptions.
        """
        from grader.authoring.verify.tolerances import is_clear, shares
        from grader.diagnosis.names import explanations, named
        from grader.diagnosis.replay import Record

        self._draft.wrong[mistake.id] = shares(facts)
        if not is_clear(facts):
            self._draft.faint.add(mistake.id)
        failed = [f for f in facts.cases if f.ending in (Ending.WRONG, Ending.RAISED)]
        failed = [fact for fact in failed if fact.case.check not in self._solution.failing]
        for fact in failed:
            if fact.faulty_line:
                what = f"{faulty_place(self._stage, fact)}: {error_of(fact)} (for {mistake.id})"
                self._unsaid.setdefault(fact.case.check, what)

        def explain() -> tuple[set[str], dict[str, Mapping[str, Tally] | None]]:
            with silence():
                record = Record(facts, solution, self._replays)
                explained = explanations(record, known)
                names = {diagnosis.id for diagnosis in named(record, known, explained).values()}
                return names, {id: explained.everywhere(id) for id in explained.found}

        names, found = self._memory.of(("names", mistake.id, text), explain)
        own = found.get(mistake.id)
        same = tuple(id for id, by in found.items() if id != mistake.id and by and by == own)
        others = sorted(names - {mistake.id})
        name = mistake.id if names == {mistake.id} else ", ".join(others) or None
        caught_by = tuple(dict.fromkeys(fact.case.check for fact in failed))
        proof = MisconceptionProof(mistake.id, caught_by, name, same)
        self._draft.misconceptions.append(proof)
        if (
            caught_by or not self._solution.failing
        ):  # otherwise the check that catches it may be broken
            place = self._stage.place(self._stage.misconceptions_file)
            problems = list(_misconception_problems(proof, failed, place))
            one = frozenset({mistake.id, *same})
            if same and one not in self._equal:
                self._equal.add(one)
                what = f"{mistake.id} behaves exactly like {', '.join(same)}: remove one"
                problems.append(f"{place}: {what}")
            self._draft.problems += problems
            if failed and not problems and not self._stage.fixture and not _gives(facts):
                raised = f"{mistake.id}: no call returns a value to compare"
                self._draft.notes.append(f"{raised}: {first_line(failed[0])}: is that intended?")

    # --- all of it -------------------------------------------------------------------------------

    def _conclude(self) -> None:
        """Summarize the results of every check and of all answers."""
        stage, draft = self._stage, self._draft
        causes = self._solution.causes()
        draft.problems[:0] = causes
        for check in sorted(self._solution.unseeded - self._solution.flaky):
            draft.problems.append(
                f"{check_place(stage, check)}: {check} uses different inputs each time: "
                "make them with rand, or pass the fixture `seed` to their generator"
            )
        for check, what in self._unsaid.items():
            draft.problems.append(f"{what}: {check} has no message for the learner")
        idle = []
        for planned in self._checks.planned[stage.slug]:
            catches = tuple(m.id for m in draft.misconceptions if planned.id in m.caught_by)
            seconds = self._solution.seconds[planned.id] / len(self._few)
            draft.checks.append(CheckProof(planned.id, planned.title, catches, seconds))
            unproven = not catches and planned.id not in {*self._solution.failing, *self._idle}
            if unproven and planned.id not in self._solution.skipped and not causes:
                idle.append(planned.id)
        if idle and self._knows:
            what = "catches no misconception, so it" if len(idle) == 1 else "catch none, so each"
            draft.notes.append(f"{listed(idle)}: {what} must catch a mutant: --mutants")
        draft.skipped = tuple(self._solution.skipped.values())
        draft.notes += self._examples.notes()
        fewest = self._course.accepted_answers
        if fewest is None:
            fewest = FEWEST_ACCEPTED_BONUS if stage.bonus else FEWEST_ACCEPTED
        there = len(accepted_files(stage))
        if there < fewest:
            place = stage.place(stage.accepted_folder)
            draft.problems.append(
                f"{place}/: has {there} of {fewest} right answers: write {fewest - there} more"
            )

    def _step(self) -> None:
        self._done += 1
        self._progress(self._stage.slug, self._done, self._total)


def _lost(facts: Iterable[CaseFact]) -> set[str]:
    """The ids of the checks that do not pass."""
    return {fact.case.check for fact in facts if fact.ending not in FINE}


def _absent(name: str) -> str:
    """Which part of a dotted name does not exist, "" if all of it does."""
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
    """Whether any call returned a value that a check could compare."""
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
        yield f"{name} is broken rather than caught: {first_line(slips[0])}"
    if proof.named not in (None, proof.id):
        yield f"{name} is wrongly named {proof.named}"
