"""Proves one stage by runs of its right and wrong answers.

Right answers and misconceptions run in this process, because they are the author's own code. What
only a worker can show runs in a worker, like a learner's code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grader.authoring.verify.author_files import accepted_files, check_place
from grader.authoring.verify.draft import Draft
from grader.authoring.verify.right_answers import RightAnswers
from grader.authoring.verify.runs import CheckRuns, Find, Hangs, Seeds
from grader.authoring.verify.solution_runs import SolutionRuns
from grader.authoring.verify.todos import is_unwritten
from grader.authoring.verify.types import CheckProof, Progress
from grader.authoring.verify.wrong_answers import WrongAnswers
from grader.learning.hints.ladder import read_hints
from grader.misconceptions import Known, Misconception, Way
from grader.read.faults import fault_of
from grader.read.misconceptions import read_known
from grader.types.course import Stage
from grader.types.errors import CourseError
from grader.types.text import listed

_FEWEST_ACCEPTED, _FEWEST_ACCEPTED_BONUS = 6, 3


@dataclass(eq=False)
class StageProving:
    """Proves one stage: its solution, its misconceptions, its right answers in other styles."""

    _runs: CheckRuns
    _draft: Draft
    _files: Mapping[str, bytes]
    _seeds: Seeds
    _progress: Progress

    def __post_init__(self) -> None:
        self._course, self._stage = self._runs.course, self._draft.stage
        self._solution = SolutionRuns(self._runs)
        given = self._draft, self._runs, self._solution
        self._right = RightAnswers(*given, self._files, self._seeds, self._step)
        self._wrong = WrongAnswers(*given, self._seeds, self._step)
        self._done = self._total = 0
        self._knows: bool  # whether the misconceptions could be read

    def prove(self) -> None:
        """Run everything and add the results to the draft."""
        from grader.run.solutions import at_hand
        from grader.run.stopping import Stopped

        draft, stage = self._draft, self._stage
        planned = self._runs.checks.planned[stage.slug]
        total = sum(check.points for check in planned)
        if total != stage.points:
            place = stage.place(stage.check_file)
            worth = f"its checks are worth {total:g} points"
            draft.problems.append(
                f"{place}: {worth}, but course.toml says {stage.points:g}: change one"
            )
        known, faults = read_mistakes(stage, self._course.limits.load_seconds)
        self._knows = not faults
        mistakes = known.misconceptions
        draft.problems += [*faults, *self._hint_problems(mistakes)]
        answers = [file for file in accepted_files(stage) if not is_unwritten(file)]  # to-dos
        seeds = self._seeds
        self._total = len(seeds.all) + len(seeds.few) + len(mistakes) + len(answers) + 1
        self._runs.checks.forget()
        try:
            with at_hand(self._files, stage) as solution:
                self._right.solution(solution)
                self._wrong.misconceptions(mistakes, solution)
                self._wrong.constants(solution)
                self._ways(known.ways, solution)
            for file in answers:
                self._right.accepted(file)
            self._runs.checks.forget()
            with at_hand(self._files, stage) as solution:
                self._right.more_seeds(solution)
        except Hangs as error:
            draft.problems.append(f"the solution {error}")
        except Stopped as error:
            places = {str(stage.check_file): stage.place(stage.check_file)}
            draft.problems.append(fault_of(error, places))
        else:
            self._conclude()

    def _hint_problems(self, mistakes: Sequence[Misconception]) -> Iterator[str]:
        """Messages about hints that misconceptions and checks name and that do not exist."""
        stage = self._stage
        try:
            rungs = len(read_hints(stage).rungs)
        except CourseError:  # reported already
            return
        place = stage.place(stage.misconceptions_file)
        pointing = [(place, f"the misconception {one.id}", one.hint) for one in mistakes]
        place, checks = stage.place(stage.check_file), self._runs.checks.planned[stage.slug]
        pointing += [(place, f"the check {check.id}", check.hint) for check in checks]
        for place, what, hint in pointing:
            if hint is not None and not 1 <= hint <= rungs:
                yield f"{place}: {what} points to hint {hint}, but there are only {rungs} hints"

    def _ways(self, ways: Sequence[Way], solution: Find) -> None:
        """Expect that the solution makes the values that the stage lists."""
        if not ways:
            return
        place = self._stage.place(self._stage.misconceptions_file)
        if "torch" not in self._course.preload:
            advice = "delete @values, or add torch to `preload`: only tensors are recorded"
            self._draft.problems.append(f"{place}: {advice}")
            return
        from grader.authoring.verify.ways import way_problems  # imports torch

        found = way_problems(ways, solution, lambda find: self._runs.local(find, self._seeds.first))
        self._draft.problems += [f"{place}: {problem}" for problem in found]

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
        for check in sorted(self._solution.dependent):
            draft.problems.append(
                f"{check_place(stage, check)}: {check} passes only after another check has run: "
                "let each check make what it needs"
            )
        for check, what in self._wrong.unsaid.items():
            draft.problems.append(f"{what}: {check} has no message for the learner")
        idle = []
        for planned in self._runs.checks.planned[stage.slug]:
            catches = tuple(m.id for m in draft.misconceptions if planned.id in m.caught_by)
            seconds = self._solution.seconds[planned.id] / len(self._seeds.few)
            draft.checks.append(CheckProof(planned.id, planned.title, catches, seconds))
            unproven = not catches and planned.id not in {
                *self._solution.failing,
                *self._wrong.idle,
            }
            if unproven and planned.id not in self._solution.skipped and not causes:
                idle.append(planned.id)
        if idle and self._knows:
            they, s = ("it", "es") if len(idle) == 1 else ("they", "")
            shows = f"`grade verify --mutants` shows whether {they} catch{s} a mutant"
            draft.notes.append(f"{listed(idle)} catch{s} no misconception: {shows}")
        draft.skipped = tuple(self._solution.skipped.values())
        fewest = self._course.accepted_answers
        if fewest is None:
            fewest = _FEWEST_ACCEPTED_BONUS if stage.bonus else _FEWEST_ACCEPTED
        there = len(accepted_files(stage))
        if there < fewest:
            place = stage.place(stage.accepted_folder)
            draft.problems.append(
                f"{place}/: has {there} of {fewest} right answers: write {fewest - there} more"
            )

    def _step(self) -> None:
        self._done += 1
        self._progress(self._stage.slug, self._done, self._total)


def read_mistakes(stage: Stage, seconds: float) -> tuple[Known, list[str]]:
    """What a stage's file of misconceptions holds, and messages about its faults."""
    from grader.run.stopping import Stopped, stopped_after

    file = stage.misconceptions_file
    try:
        with stopped_after(seconds):
            return read_known(stage), []
    except CourseError as error:
        return Known(), str(error).split("\n")
    except Stopped as error:
        return Known(), [fault_of(error, {str(file): stage.place(file)})]
