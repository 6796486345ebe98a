"""Runs what fails once more, recording the tensors that the learner's code makes on its way."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from grader.checking.comparing import wide
from grader.diagnosis.comparison.replay import Replays, Step, against_solution
from grader.diagnosis.comparison.replies import arrays, equal, room
from grader.diagnosis.comparison.symptoms import CHANGED, LACKING
from grader.diagnosis.comparison.values.alone import KEPT_BETWEEN_CHECKS, kept
from grader.diagnosis.reruns import AnswersOfWorker, Cancellable, Reruns
from grader.misconceptions import Value, Way
from grader.run.answers import WorkerAnswers
from grader.run.budget import Budget
from grader.run.facts import CaseFact, Ending, Exchange, StageFacts
from grader.run.failures import Cancelled
from grader.run.importing import Import
from grader.run.sources import all_sources
from grader.run.worker.packing import Unpacker
from grader.run.worker.recording import LARGEST
from grader.run.worker.wire import Frame, WireError
from grader.types.report import CheckResult, Diagnosis, Kind, Outcome, StageResult

if TYPE_CHECKING:  # it imports what only a course with arrays needs
    from grader.diagnosis.comparison.values.first_wrong import Made, Right

_CHECKS = 12  # that are run once more
_COMPARING = 2.0  # seconds, for what one call has made: usually it takes milliseconds
_MOST_MADE = 400  # tensors of one call that are looked at; the worker sends fewer
Noted: TypeAlias = "list[list[Right]]"  # the values of a call, step by step
_GIVE_PARAMETERS = ("load_state_dict", "named_parameters")
_COARSE = 1e-2  # relative room of a dtype: with more, different numbers look the same


class RecordingAnswers(WorkerAnswers):
    """As usual, but the tensors of every call are `made`: for each request a list, or nothing."""

    made: list[Frame | None]

    def begin(self) -> None:
        """Start a case."""
        self.made = []
        super().begin()

    def answer(self, request: Frame, known: Container[bytes] = ()) -> Frame:
        """The worker's reply to one request. Raises AnswerError."""
        is_call = request.header.get("op") == "call" and not request.target.get("method")
        if not is_call or "measured" in request.header:
            self.made.append(None)
            return super().answer(request, known)
        reply = super().answer(Frame({**request.header, "recorded": True}, request.data), known)
        self.made.append(super().answer(Frame({"op": "recorded"})))
        return reply


class Recordings(Cancellable):
    """Why failing checks without a diagnosis fail, as a run of each by itself shows it."""

    def __init__(self, reruns: Reruns, facts: StageFacts, budget: Budget) -> None:
        self._reruns = reruns
        self._facts = facts
        self._budget = budget
        sources = all_sources(reruns.submission)
        self._lines = {name: text.count("\n") + 1 for name, text in sources}
        self._import = Import(reruns.course, reruns.stage, reruns.submission)

    def _fresh(self, kind: type[AnswersOfWorker]) -> AnswersOfWorker:
        """The answers of a new worker, which has run nothing. Raises Cancelled after `cancel`."""
        return self.begun(kind(self._reruns.interpreter, self._import, budget=self._budget))

    def diagnoses(
        self, checks: Sequence[str], ways: Sequence[Way], solution: Callable[[str], Any]
    ) -> dict[str, Diagnosis]:
        """The diagnosis of each of these checks that has one. Raises Cancelled."""
        failing: dict[str, list[CaseFact]] = {}
        for fact in self._facts.cases:
            if fact.ending in (Ending.WRONG, Ending.RAISED) and fact.case.check in checks:
                failing.setdefault(fact.case.check, []).append(fact)
        found: dict[str, Diagnosis] = {}
        tried: dict[str, Diagnosis | None] = {}
        for check, facts in failing.items():
            # The screen shows how the first ends. Among axes of one size any order seems right.
            alike = (fact for fact in facts if fact.ending is facts[0].ending)
            fact = max(alike, key=lambda fact: len({size for _, size in fact.axes}))
            # One of all that end in the same exception will do.
            way = (fact.way if fact.ending is Ending.RAISED else "") or check
            if way not in tried:
                if self._budget.is_spent or len(tried) == _CHECKS:
                    break
                tried[way] = self._told(fact, ways, solution)
            told = tried[way]
            if told is not None:
                found[check] = told
        return found

    def _told(
        self, fact: CaseFact, ways: Sequence[Way], solution: Callable[[str], Any]
    ) -> Diagnosis | None:
        with closing(self._fresh(RecordingAnswers)) as answers:
            [again] = self._reruns.facts(answers, [fact.case])
        state = self._kept(fact, again, solution)
        if state is not None:
            return state
        made = answers.made
        if again.ending is not fact.ending or len(again.exchanges) != len(made):
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if again.ending is Ending.RAISED:
                    return self._odd_dtype(again, made[-1])
                return self._compared(again, made, ways, solution)
        except Exception:  # noqa: BLE001 - whatever a submission makes, its verdict stands
            return None

    def _kept(
        self, fact: CaseFact, again: CaseFact, solution: Callable[[str], Any]
    ) -> Diagnosis | None:
        """That a case fails for what the code keeps; `again` is how it ends by itself.

        What is measured may end in another way by chance.
        """
        if any("measured" in each.request.header for each in again.exchanges):
            return None
        if again.ending is Ending.PASSED:
            place = self._facts.cases.index(fact)
            cases = [each.case for each in self._facts.cases[: place + 1]]
            with closing(self._fresh(WorkerAnswers)) as answers:
                *_, last = self._reruns.facts(answers, cases)
            return KEPT_BETWEEN_CHECKS if last.ending is fact.ending else None
        try:
            return kept(again, solution, lambda: self._fresh(WorkerAnswers))
        except Cancelled:
            raise
        except Exception:  # noqa: BLE001 - whatever a submission answers, its verdict stands
            return None

    def _odd_dtype(self, fact: CaseFact, reply: Frame | None) -> Diagnosis | None:
        """Where a call that raises makes a tensor of another dtype than its arguments have."""
        from grader.diagnosis.comparison.values.odd_dtype import odd_dtype

        if reply is None:
            return None
        request = fact.exchanges[-1].request
        unpacker, header = Unpacker(request), request.header
        given = arrays([unpacker.unpack(header["args"]), unpacker.unpack(header["kwargs"])])
        floats = (each.dtype for each in given if each.is_floating_point())
        dtypes = {str(dtype).removeprefix("torch.") for dtype in floats}
        if len(dtypes) != 1:
            return None
        code = fact.target.rpartition(".")[2]
        return odd_dtype(fact.message, list(self._made(reply)), dtypes.pop(), code)

    def _compared(
        self,
        fact: CaseFact,
        made: Sequence[Frame | None],
        ways: Sequence[Way],
        solution: Callable[[str], Any],
    ) -> Diagnosis | None:
        if not ways:  # as in a course without torch, whose learners may not even have numpy
            return None
        noted: Noted = []
        by_name = {way.of: noting(way, solution(way.of), noted) for way in ways}
        steps = against_solution(
            fact, lambda name: by_name[name] if name in by_name else solution(name), Replays()
        )
        for step, reply in zip(steps, made, strict=False):
            if step.entry in by_name and reply is not None and _is_wrong(step, noted):
                if not _has_the_parameters(fact.exchanges, step.exchange):
                    return None
                told = self._placed(noted, step, reply, fact.target.rpartition(".")[2])
                if told is not None:
                    return told
        return None

    def _placed(self, noted: Noted, step: Step, reply: Frame, code: str) -> Diagnosis | None:
        from grader.diagnosis.comparison.values.first_wrong import first_wrong

        right = [value for values in noted for value in values]
        if not is_precise(right):
            return None
        answers = [wide(array) for array in arrays(step.solution.value)]
        if not noted or not any(is_answer(noted[-1], answer) for answer in answers):
            return None  # dropout, say: the way is not the one that the solution took
        made = list(self._made(reply))
        return first_wrong(noted, made, code, Budget(_COMPARING).expect_some)

    def _made(self, reply: Frame) -> Iterator[Made]:
        """What a worker says that its code has made; it may say anything."""
        from torch import Tensor

        from grader.diagnosis.comparison.values.first_wrong import Made

        try:
            value = Unpacker(reply).unpack(reply.header.get("value"))
        except WireError:
            return
        for entry in (value if isinstance(value, list) else [])[:_MOST_MADE]:
            if not isinstance(entry, tuple) or len(entry) != 3:
                return
            array, file, line = entry
            if not isinstance(array, Tensor) or array.numel() > LARGEST:
                continue
            is_known = type(line) is int and isinstance(file, str)
            is_known = is_known and 1 <= line <= self._lines.get(file, 0)
            dtype = str(array.dtype).removeprefix("torch.")
            yield Made(wide(array), f"{file}, line {line}" if is_known else "", dtype)


def _has_the_parameters(exchanges: Sequence[Exchange], call: Exchange) -> bool:
    """Whether the solution's module was given the parameters of the learner's before a call."""
    number = call.request.header["target"].get("object")
    targets = [each.request.target for each in exchanges]
    before = targets[: next(n for n, each in enumerate(exchanges) if each is call)]
    return number is None or any(
        target.get("object") == number and target.get("method") in _GIVE_PARAMETERS
        for target in before
    )


def _is_wrong(step: Step, noted: Noted) -> bool:
    """Whether both sides gave an answer, and the learner's numbers are not the solution's.

    The last right value may ask for more precision than its dtype. A single result that has its
    numbers may be of another dtype: then no number on the way is wrong.
    """
    if step.learner.error or step.solution.error:
        return False
    results = [wide(array) for array in arrays(step.learner.value)]
    are_right = [bool(noted) and is_answer(noted[-1], result) for result in results]
    if step.deviates and not equal(step.learner.value, step.solution.value):
        return are_right != [True]
    return bool(noted) and not any(are_right)


def noting(way: Way, own: Any, noted: Noted) -> Any:
    """The solution's function or class, of whose last call the right values are `noted`."""

    def note(*args: Any, **kwargs: Any) -> None:
        import torch

        noted.clear()
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            for step in way.values(*args, **kwargs):
                together = (step,) if isinstance(step, Value) else step
                noted.append([_right(value) for value in together])

    if isinstance(own, type):

        class Noting(own):  # type: ignore[misc]
            def forward(self, *args: Any, **kwargs: Any) -> Any:
                note(self, *args, **kwargs)
                return super().forward(*args, **kwargs)

        return Noting

    def noting(*args: Any, **kwargs: Any) -> Any:
        note(*args, **kwargs)
        return own(*args, **kwargs)

    return noting


def _right(value: Value) -> Right:
    from grader.diagnosis.comparison.values.first_wrong import Right
    from grader.diagnosis.comparison.values.matching import Tolerance

    tolerance = Tolerance(*(value.room or room(value.tensor)))
    return Right(value.name, wide(value.tensor), tuple(value.axes.split()), tolerance)


def is_precise(values: Sequence[Right]) -> bool:
    """Whether values are small enough to be recorded, and their numbers precise enough."""
    return all(v.tolerance.relative <= _COARSE and v.array.size <= LARGEST for v in values)


def is_answer(values: Sequence[Right], answer: Any) -> bool:
    """Whether an array of an answer is one of these values."""
    return any(
        value.array.shape == answer.shape and value.tolerance.holds(value.array, answer)
        for value in values
    )


def with_diagnoses(stage: StageResult, found: dict[str, Diagnosis]) -> StageResult:
    """The stage's verdict with these diagnoses for checks without one, or after their symptoms."""

    def told(check: CheckResult) -> CheckResult:
        value, symptom = found.get(check.id), check.diagnosis
        if value is None or symptom is None:
            return replace(check, diagnosis=symptom or value)
        return replace(check, diagnosis=with_value(symptom, value))

    return replace(stage, checks=tuple(map(told, stage.checks)))


def with_value(symptom: Diagnosis, value: Diagnosis) -> Diagnosis:
    """A symptom followed by the first wrong value; what both say about a tensor is said once."""
    text = value.text
    before, tensor, relation = text.rpartition(" your tensor ")
    if tensor and symptom.text.endswith(f" {relation}"):
        text = f"{before}{tensor}is wrong in the same way."
    return replace(symptom, text=f"{symptom.text} {text}")


def unexplained(stage: StageResult) -> list[str]:
    """The ids of the failing checks without a diagnosis, or with a mere symptom.

    A forward that lacks parameters, or has changed its arguments, cannot make what the solution's
    makes.
    """
    failed = [check for check in stage.checks if check.outcome is Outcome.FAILED]
    return [
        check.id
        for check in failed
        if check.diagnosis is None
        or (check.diagnosis.kind is Kind.SYMPTOM and check.diagnosis.id not in (LACKING, CHANGED))
    ]
