"""Runs a stage's right answers: the solution, here and in a worker, and those in other styles."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.authoring.verify.author_files import check_place
from grader.authoring.verify.draft import Draft
from grader.authoring.verify.examples import Examples
from grader.authoring.verify.runs import CheckRuns, Find, Hangs, Seeds, import_fault
from grader.authoring.verify.solution_runs import SolutionRuns, both_sides, error_of, faulty_place
from grader.read.faults import fault_of
from grader.read.stubs import read_stub
from grader.run.facts import FINE
from grader.types.errors import CourseError, close_to
from grader.types.report import Outcome, Status
from grader.types.submission import Submission


@dataclass(eq=False)
class RightAnswers:
    """Expects that right answers pass and that a stub does not; `step` is called after each run."""

    _draft: Draft
    _runs: CheckRuns
    _solution: SolutionRuns
    _files: Mapping[str, bytes]
    _seeds: Seeds
    _step: Callable[[], None]

    def __post_init__(self) -> None:
        self._examples = Examples(self._runs.stage, self._runs.course.limits.load_seconds)

    def solution(self, solution: Find) -> None:
        """Run the solution, its examples too, here and in a worker."""
        self._draft.problems += self._examples.of_solution()
        if not self._runs.stage.fixture:  # which takes long
            self._solution.backwards(solution, self._seeds.first)
        self._run_solution(solution, self._seeds.few)
        self._in_the_worker()

    def more_seeds(self, solution: Find) -> None:
        """Run the solution with the other seeds, and again where that may tell something."""
        rest = self._seeds.all[len(self._seeds.few) :]
        self._run_solution(solution, rest, only_random=True)
        self._solution.again(solution, self._seeds.first)
        self._solution.find_flaky(solution)

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
        for seed in self._seeds.few:
            result = self._runs.graded(Submission("solutions", dict(self._files)), seed)
            for check in result.checks:
                fine = check.outcome in (Outcome.PASSED, Outcome.SKIPPED)
                if not fine and check.id not in self._solution.failing:
                    why = check.message.partition("\n")[0]
                    draft.problems.append(f"seed {seed}: the solution fails {check.id}: {why}")
            self._step()
        self._untouched()
        if self._runs.stage.forbidden:
            draft.problems += self._forbidden_problems()
        stage = self._runs.stage
        files = (stage.trace_file, stage.certificate_file, stage.explore_file)
        # Whatever else is wrong may be why a trace fails, except texts that it never reads.
        texts = tuple(map(stage.place, (stage.hints_file, stage.predictions_file)))
        is_right = all(problem.startswith(texts) for problem in draft.problems)
        is_right = is_right and not self._solution.failing
        for file in filter(Path.is_file, files if is_right else ()):
            draft.problems += self._trace_problems(file)

    def _untouched(self) -> None:
        """Run the stub as a learner gets it, if there is one."""
        draft, stubs = self._draft, {}
        for stage in self._runs.course.stages:
            if stage.file_name in self._files:
                try:
                    stubs[stage.file_name] = read_stub(stage).encode()
                except CourseError:  # reported when that stage is verified
                    if stage == self._runs.stage:
                        return
                    stubs[stage.file_name] = self._files[stage.file_name]
        result = self._runs.graded(Submission("stubs", stubs), self._seeds.first)
        passed = [check.id for check in result.checks if check.outcome is Outcome.PASSED]
        for check in passed:
            if check not in self._solution.failing:
                what = "passes on the original stub: it does not test the learner's code"
                draft.problems.append(f"{check_place(self._runs.stage, check)}: {check} {what}")
        is_untouched = result.status is Status.NOT_STARTED and result.score == 0
        if not (passed or self._solution.failing or is_untouched):
            draft.problems.append(
                f"the original stub is '{result.status.value}' instead of 'not started': put all "
                "that a function does between the markers"
            )

    def _trace_problems(self, file: Path) -> list[str]:
        """What goes wrong when the trace in an author's file runs with the solution."""
        from grader.learning.pictures.types import TracedStep
        from grader.run.stopping import Stopped, stopped_after

        place = self._runs.stage.place(file)
        try:
            with stopped_after(self._runs.course.limits.stage_seconds):
                trace = self._runs.trace(file, Submission("solutions", dict(self._files)))
        except CourseError as error:
            return [str(error)]
        except Stopped as error:
            return [fault_of(error, {str(file): place})]
        steps = [part for part in trace.parts if isinstance(part, TracedStep)]
        says = [f"step '{step.name}': {step.misfit}" for step in steps if step.misfit]
        says += [trace.stop.message] if trace.stop else []
        return [f"{place}: {one}" for one in says]

    def _forbidden_problems(self) -> list[str]:
        """Forbidden names whose calls the worker does not see; it has to see all of them."""
        from grader.authoring.verify.calling import calls_all

        place = f"course.toml: stage '{self._runs.stage.slug}': forbidden"
        absent = [fault for name in self._runs.stage.forbidden if (fault := _absent(name))]
        if absent:  # the calls of all others end there
            return [f"{place}: {fault}" for fault in absent]
        seen = {
            call.name
            for call in self._runs.remote(calls_all(self._runs.stage), self._seeds.first).forbidden
        }
        return [
            f"{place}: calls of {name} cannot be noticed: forbid another name"
            for name in self._runs.stage.forbidden
            if name not in seen
        ]

    def accepted(self, file: Path) -> None:
        """Run one right answer in another style than the solution's."""
        from grader.run.stopping import Stopped

        place = self._runs.stage.place(file)
        try:
            fault = self._fault(file, place)
        except (Hangs, Stopped) as error:
            fault = f"{place}: {error}"
        if fault:
            self._draft.problems.append(fault)
        else:
            self._draft.accepted.append(file.stem)
        self._step()

    def _fault(self, file: Path, place: str) -> str:
        """The first fault of a right answer, "" if it has none. Raises Hangs and Stopped."""
        from grader.authoring.verify.tolerances import shares
        from grader.run.reader import Reader, SourceReader
        from grader.run.solutions import at_hand

        runs, stage, said = self._runs, self._runs.stage, f"{place}: a right answer"
        files = {**self._files, stage.file_name: file.read_bytes()}
        fault = import_fault(runs.course, stage, files, place)
        if fault:
            return fault
        submission = Submission(place, files)
        for call in SourceReader(Reader(None), submission).calls(runs.course, stage):
            return f"{said} calls {call.name}, which is forbidden"
        with at_hand(files, stage) as find:
            who = ("accepted", submission.digest(stage.file_name))
            for seed in self._seeds.answers:
                facts = runs.known(who, find, seed, only_random=seed != self._seeds.first)
                self._draft.right.append(shares(facts, passed=True))
                for fact in facts.cases:
                    if fact.ending not in FINE and fact.case.check not in self._solution.failing:
                        why = both_sides(fact)
                        if fact.faulty_line:
                            why = f"{error_of(fact)} in {faulty_place(stage, fact)}"
                        return f"{said} fails {fact.case.check}: {why}"
            for what in self._examples.of_answer():
                return f"{said} {what}"
        return ""


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
