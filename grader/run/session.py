"""Runs the collected checks, any stage of any submission, and keeps the facts; judges nothing."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pytest

from grader.run.facts import NO_SENSE, Case, CaseFact, Ending, PlannedCheck, StageFacts
from grader.run.failures import AnswerError, Crash, Diverged, LoadError, Timeout
from grader.run.local_answers import LocalAnswers
from grader.run.planning import case_of, is_random, planned_checks, seed_of
from grader.run.remote import RemoteSubmission
from grader.run.stopping import Stopped
from grader.run.transcripts import Key, Transcripts
from grader.run.under_check import StageUnderCheck
from grader.run.worker.bench import seed_all
from grader.run.worker.wire import WireError
from grader.types.comparison import Comparison
from grader.types.course import Stage
from grader.types.errors import CourseError

if TYPE_CHECKING:  # only for the type; the checks import the language themselves
    from grader.checking import Submission

_MESSAGE_CAP = 10_000  # characters of a case's message to the learner


class Checks:
    """The collected checks of some stages, and the pytest plugin that runs them one by one.

    If it `measures`, the facts contain how far off the answers were.
    """

    def __init__(self, stages: Sequence[Stage], *, has_torch: bool, measures: bool = False) -> None:
        self._stages = stages
        self._measures = measures
        self._has_torch = has_torch
        self._items: dict[str, dict[Case, pytest.Item]] = {stage.slug: {} for stage in stages}
        self.planned: dict[str, tuple[PlannedCheck, ...]] = {}
        self._current: StageUnderCheck | None = None
        self._seed = 0
        self._device = "cpu"
        self._transcripts = Transcripts()
        self._rehearsed: set[tuple[str, int, str]] = set()  # stages, seeds and devices
        self._call: pytest.CallInfo[None] | None = None

    def plan(self, items: Sequence[pytest.Item]) -> None:
        """Plan the items that pytest collected. Raises CourseError for a faulty one."""
        by_file = {stage.check_file.resolve(): stage for stage in self._stages}
        for item in items:
            stage = by_file[item.path.resolve()]
            case, cases = case_of(stage, item), self._items[stage.slug]
            if case in cases:
                file = stage.place(stage.check_file)
                raise CourseError(f"{file}: two classes have a check {item.name}: rename one")
            cases[case] = item
        for stage in self._stages:
            planned = tuple(planned_checks(stage, self._items[stage.slug]))
            known = {check.id for check in planned}
            for check in planned:
                if check.stand_in is not None and check.stand_in not in known:
                    raise CourseError(f"{check.id}: there is no check {check.stand_in} to stand in")
            self.planned[stage.slug] = planned

    def run(
        self,
        stage: Stage,
        remote: StageUnderCheck,
        seed: int,
        device: str,
        *,
        only_random: bool = False,
        backwards: bool = False,
        gives_up: Container[Ending] = (Ending.TIMED_OUT, Ending.CRASHED),
    ) -> StageFacts:
        """Run every check of `stage` against `remote` and close it, even if cancelled.

        With `only_random`, only the cases run that get other inputs from another seed;
        `backwards`, the last case comes first. After an ending in `gives_up` the check's other
        cases do not run.
        """
        facts: list[CaseFact] = []
        given_up: set[str] = set()
        self._use(remote, device)
        try:
            cases = list(self._items[stage.slug].items())
            for case, item in reversed(cases) if backwards else cases:
                if only_random and not is_random(item):
                    continue
                if case.check in given_up:
                    facts.append(CaseFact(case, Ending.NOT_RUN))
                    continue
                if over := remote.over:
                    facts.append(CaseFact(case, Ending.TIMED_OUT, over))
                    continue
                fact = self._run_case(case, item, remote, seed)
                if fact.ending in gives_up:
                    given_up.add(case.check)
                facts.append(fact)
        finally:
            printed = remote.close()
        return StageFacts(self.planned[stage.slug], tuple(facts), printed, remote.forbidden)

    def random(self, stage: Stage) -> set[Case]:
        """The cases of a stage that get other inputs from another seed."""
        return {case for case, item in self._items[stage.slug].items() if is_random(item)}

    def facts(
        self, stage: Stage, remote: StageUnderCheck, seed: int, device: str, cases: Iterable[Case]
    ) -> Iterator[CaseFact]:
        """Run these cases in this order, each when its fact is requested."""
        items = self._items[stage.slug]
        self._use(remote, device)
        for case in cases:
            yield self._run_case(case, items[case], remote, seed)

    def rehearse(
        self,
        stage: Stage,
        find: Callable[[str], Any],
        seed: int,
        device: str,
        go_on: Callable[[], bool],
    ) -> None:
        """Learn what the checks of a stage ask with this seed, and what right answers lead to.

        `find` returns the solution's functions. It stops before a case if `go_on` returns False.
        """
        if (stage.slug, seed, device) in self._rehearsed:
            return
        for case, item in self._items[stage.slug].items():
            if not go_on():
                return
            right = StageUnderCheck(stage, LocalAnswers(find))
            self._use(right, device)
            self._run_case(case, item, right, seed)
        self._rehearsed.add((stage.slug, seed, device))

    def _use(self, remote: StageUnderCheck, device: str) -> None:
        from grader.checking import is_watched

        self._current, self._device = remote, device
        remote.is_watched = is_watched

    def forget(self) -> None:
        """Forget all earlier requests and replies, because the next run is unrelated to them."""
        self._transcripts.forget()
        self._rehearsed = set()

    def _run_case(
        self, case: Case, item: pytest.Item, remote: StageUnderCheck, seed: int
    ) -> CaseFact:
        self._seed = seed_of(case, item, seed)
        key = Key(case.id, self._seed, self._device)
        start = time.perf_counter()
        remote.begin(self._seed)
        known = remote.follow(self._transcripts, key)
        if known is not None:
            return replace(known, seconds=time.perf_counter() - start)
        error, compared = self._error(item)
        if isinstance(error, Diverged):
            remote.begin(self._seed)
            error, compared = self._error(item)
        seconds = time.perf_counter() - start
        ending, message = _ending(error, remote)
        message = message if len(message) <= _MESSAGE_CAP else f"{message[:_MESSAGE_CAP]} ..."
        in_setup = self._call is not None and self._call.when == "setup"
        if ending is Ending.WRONG and in_setup and not remote.case.has_replied:
            ending = Ending.BROKEN  # the check itself had not started
        fact = CaseFact(
            case,
            ending,
            message,
            seconds,
            remote.case.last_target,
            remote.end(),
            compared=compared,
            lines=_lines(error, item),
            way=_way(error),
            axes=tuple(getattr(error, "axes", ())),
        )
        if remote.case.has_lacked:
            return fact  # another submission with the same replies may have what was missing
        return self._transcripts.learn(key, fact)

    def _error(self, item: pytest.Item) -> tuple[BaseException | None, tuple[Comparison, ...]]:
        """Run a case; returns the exception that ended it, if any, and the comparisons."""
        self._call = None
        seed_all(self._seed)  # a check may also draw from the global generators
        with warnings.catch_warnings(), self._comparisons() as compared:
            warnings.simplefilter("ignore")  # an odd answer's would quote the check
            # No next item: how this case ends decides which case comes next, if any.
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        if self._call is None:
            return RuntimeError("pytest did not run the check"), ()
        call: pytest.CallInfo[None] = self._call
        return call.excinfo.value if call.excinfo else None, tuple(compared)

    def _comparisons(self) -> AbstractContextManager[Sequence[Comparison]]:
        if not self._measures:
            return nullcontext(())
        from grader.checking import comparisons

        return comparisons()

    # Below are pytest's hooks and fixtures; they only pass data on.

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport:
        """Keep how the case ended: the first exception counts.

        The report is our own, because pytest's would parse the check's source to quote it.
        """
        if self._call is None or (self._call.excinfo is None and call.when != "teardown"):
            self._call = call
        outcome: Literal["passed", "failed"] = "failed" if call.excinfo else "passed"
        when: Any = call.when
        return pytest.TestReport(item.nodeid, item.location, {}, outcome, None, when)

    @pytest.fixture(name="submission")
    def _submission_fixture(self) -> Submission:
        assert self._current is not None
        return RemoteSubmission(self._current)

    @pytest.fixture(name="seed")
    def _seed_fixture(self) -> int:
        return self._seed

    @pytest.fixture(name="device")
    def _device_fixture(self) -> Any:
        if not self._has_torch:
            return self._device
        import torch

        return torch.device(self._device)

    @pytest.fixture(name="rand")
    def _rand_fixture(self, device: Any) -> Callable[..., Any]:
        if not self._has_torch:
            return self._rand_array()
        import torch

        from grader.checking import draw

        generator = torch.Generator().manual_seed(self._seed)

        def rand(
            *, dtype: Any = torch.float32, grad: bool = False, scale: float = 1.0, **axes: int
        ) -> Any:
            return draw(generator, device, dtype, grad, scale, **axes)

        return rand

    def _rand_array(self) -> Callable[..., Any]:
        import numpy

        from grader.checking import draw_array

        generator = numpy.random.default_rng(self._seed)

        def rand(*, scale: float = 1.0, **axes: int) -> Any:
            return draw_array(generator, scale, **axes)

        return rand


def _ending(error: BaseException | None, stage: StageUnderCheck) -> tuple[Ending, str]:
    """How a case ended, judged by the exception that ended it, and the message."""
    if error is None:
        return Ending.PASSED, ""
    if isinstance(error, (KeyboardInterrupt, Stopped)):
        raise error
    if stage.case.not_written:
        return Ending.NOT_WRITTEN, "Not written yet"
    if isinstance(error, pytest.skip.Exception):
        return Ending.SKIPPED, str(error.msg)
    if isinstance(error, Timeout):
        return Ending.TIMED_OUT, _and_call(str(error), stage)
    if isinstance(error, Crash):
        return Ending.CRASHED, _and_call(str(error), stage)
    if isinstance(error, LoadError):  # no call caused it
        return Ending.RAISED, str(error)
    if isinstance(error, AnswerError):
        return Ending.RAISED, _and_call(str(error), stage)
    if isinstance(error, WireError):  # in a backward pass, which calls no entry point
        return Ending.RAISED, f"A backward pass gave an answer that makes no sense: {error}"
    if isinstance(error, AssertionError) and str(error):
        return Ending.WRONG, _with_call(str(error), stage)
    message = f"{type(error).__name__}: {error}"
    # `grade verify` proves that the check can handle right answers. Code that answers nothing yet
    # may have spoilt what the check gave to it.
    if stage.case.has_answered or stage.case.has_replied:
        return Ending.WRONG, _with_call(f"{NO_SENSE}: {message}", stage)
    return Ending.BROKEN, message


def _way(error: BaseException | None) -> str:
    """The way in which a case failed: the same text for all cases that fail alike."""
    while error is not None:
        if isinstance(error, AnswerError):
            return error.way or str(error)
        way = getattr(error, "way", None)
        if way is not None:
            return str(way.value)
        error = error.__context__  # a check may have replaced the failure's own text
    return ""


def _lines(error: BaseException | None, item: pytest.Item) -> tuple[int, ...]:
    """The lines of the check's file that an exception passed through, the outermost first."""
    lines, traceback = [], error.__traceback__ if error is not None else None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(item.path):
            lines.append(traceback.tb_lineno)
        traceback = traceback.tb_next
    return tuple(lines)


def _and_call(message: str, stage: StageUnderCheck) -> str:
    """The message, unbroken, and below it the call that it is about."""
    return f"{message}\n  call      {stage.case.last_call}" if stage.case.last_call else message


def _with_call(message: str, stage: StageUnderCheck) -> str:
    """The message with the call that it is about as its second line."""
    if not stage.case.last_call:
        return message
    first, newline, rest = message.partition("\n")
    return f"{first}\n  call      {stage.case.last_call}{newline}{rest}"
