"""Runs the hidden checks with pytest, once or many times, and keeps the facts; judges nothing.

pytest collects the checks once and then passes control to `body`, which may run any stage of any
submission as often as it likes.
"""

from __future__ import annotations

import difflib
import importlib
import math
import os
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pytest

from grader.run.ahead import Script
from grader.run.facts import NO_SENSE, Case, CaseFact, Ending, PlannedCheck, StageFacts
from grader.run.failures import AnswerError, Crash, Diverged, LoadError, Timeout
from grader.run.local_answers import LocalAnswers
from grader.run.remote import RemoteSubmission
from grader.run.stopping import Stopped, stopped_after
from grader.run.transcripts import Key, Transcripts
from grader.run.under_check import StageUnderCheck
from grader.run.worker.bench import seed_all
from grader.run.worker.wire import WireError
from grader.types.comparison import Comparison
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, KitError, close_to, located

if TYPE_CHECKING:  # only for the type; the checks import the language themselves
    from grader.checking import Submission

Result = TypeVar("Result")

_OPTIONS = (
    *("-c", os.devnull, "--assert=plain", "--import-mode=importlib", "--noconftest"),
    *("-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:faulthandler", "-p", "no:logging"),
    *("-p", "no:unraisableexception", "-p", "no:threadexception", "-p", "no:doctest"),
    *("-p", "no:junitxml", "-p", "no:pastebin", "-p", "no:stepwise", "-p", "no:warnings"),
    *("-p", "no:capture", "-p", "no:tmpdir", "-p", "no:debugging", "--disable-plugin-autoload"),
)
_MESSAGE_CAP = 10_000  # characters of a case's message to the learner
MARKERS = (
    "points(n, stand_in=None, hint=None): its points, the check to use if it is skipped, a hint",
    "random: the case draws other inputs for each seed of a run",
    "pays(*constants, because): the constant answers that it accepts, and the reason",
)
_NOTHING = Script()
_DRAWING = {"numpy", "torch"}  # libraries with generators of their own
_FIXTURES = ("submission", "seed", "device", "rand")


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
        self._scripts: dict[tuple[str, int, str], Script] = {}
        self._call: pytest.CallInfo[None] | None = None

    def plan(self, items: Sequence[pytest.Item]) -> None:
        """Plan the items that pytest collected. Raises CourseError for a faulty one."""
        by_file = {stage.check_file.resolve(): stage for stage in self._stages}
        for item in items:
            stage = by_file[item.path.resolve()]
            case, cases = _case(stage, item), self._items[stage.slug]
            if case in cases:
                file = stage.place(stage.check_file)
                raise CourseError(f"{file}: two classes have a check {item.name}: rename one")
            cases[case] = item
        for stage in self._stages:
            planned = tuple(_planned(stage, self._items[stage.slug]))
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
        gives_up: Container[Ending] = (Ending.TIMED_OUT, Ending.CRASHED),
    ) -> StageFacts:
        """Run every check of `stage` against `remote` and close it, even if cancelled.

        With `only_random`, only the cases run that get other inputs from another seed. After an
        ending in `gives_up` the check's other cases do not run.
        """
        facts: list[CaseFact] = []
        given_up: set[str] = set()
        self._use(remote, device)
        remote.expect(self._scripts.get((stage.slug, seed, device), _NOTHING))
        try:
            for case, item in self._items[stage.slug].items():
                if only_random and not _is_random(item):
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
        return {case for case, item in self._items[stage.slug].items() if _is_random(item)}

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
        """Learn what the checks of a stage ask with this seed, and what of it can be asked early.

        `find` returns the solution's functions. It stops before a case if `go_on` returns False;
        then nothing is sent ahead until a later rehearsal is complete.
        """
        from grader.run.scouting import NoisyAnswers

        if (stage.slug, seed, device) in self._scripts:
            return
        noisy = NoisyAnswers(find)
        expected = []
        for case, item in self._items[stage.slug].items():
            if not go_on():
                return
            right = StageUnderCheck(stage, LocalAnswers(find))
            self._use(right, device)
            self._run_case(case, item, right, seed)
            wrong = StageUnderCheck(stage, noisy)
            self._use(wrong, device)
            wrong.begin(self._seed, case.id)
            self._error(item)
            key = Key(case.id, self._seed, device)
            expected.append(self._transcripts.expected(key, noisy.asked))
        self._scripts[stage.slug, seed, device] = Script(expected)

    def _use(self, remote: StageUnderCheck, device: str) -> None:
        from grader.checking import is_watched

        self._current, self._device = remote, device
        remote.is_watched = is_watched

    def forget(self) -> None:
        """Forget all earlier requests and replies, because the next run is unrelated to them."""
        self._transcripts.forget()
        self._scripts = {}

    def _run_case(
        self, case: Case, item: pytest.Item, remote: StageUnderCheck, seed: int
    ) -> CaseFact:
        self._seed = _seed_of(case, item, seed)
        key = Key(case.id, self._seed, self._device)
        start = time.perf_counter()
        remote.begin(self._seed, case.id)
        try:
            known = remote.follow(self._transcripts, key)
        except Diverged:
            remote.begin(self._seed, case.id)
            known = None
        if known is not None:
            return replace(known, seconds=time.perf_counter() - start)
        error, compared = self._error(item)
        if isinstance(error, Diverged):
            remote.begin(self._seed, case.id)
            error, compared = self._error(item)
        seconds = time.perf_counter() - start
        ending, message = _ending(error, remote)
        message = message if len(message) <= _MESSAGE_CAP else f"{message[:_MESSAGE_CAP]} ..."
        if ending is Ending.WRONG and self._call is not None and self._call.when == "setup":
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
        with self._comparisons() as compared:
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


@dataclass(eq=False)
class _Loop:
    """Collects the check `files`, and replaces pytest's run loop by `body`."""

    _files: Sequence[Path]
    _checks: Checks
    _body: Callable[[Checks], Any]
    _seconds: float | None
    result: Any = None
    finished: bool = False
    error: BaseException | None = None

    def pytest_configure(self, config: pytest.Config) -> None:
        """Register the marks of checks."""
        for marker in MARKERS:
            config.addinivalue_line("markers", marker)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        """Collect these files and look at no other.

        pytest would list each folder above them, of which one may be closed, and take a "[" in the
        name of a folder for the parameters of a case.
        """
        for file in self._files:
            module = pytest.Module.from_parent(session, path=file)
            try:
                session.items += session.genitems(module)
            except SystemExit:
                self.error = CourseError(f"{module.nodeid}: ends Python while it is imported")
                return True
        session.config.hook.pytest_collection_modifyitems(
            session=session, config=session.config, items=session.items
        )
        session.testscollected = len(session.items)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, Any]:
        """Stop the import of a check file that does not end, if there is a time limit.

        What a check file draws while it is imported is the same in every run.
        """
        seed_all(0)
        with stopped_after(self._seconds) if self._seconds is not None else nullcontext():
            report: pytest.CollectReport = yield
        if report.failed and self.error is None:
            self.error = CourseError(self._collection_fault(report))
        return report

    def _collection_fault(self, report: pytest.CollectReport) -> str:
        """Why a file cannot be collected: the error of its import, or pytest's own words."""
        call = getattr(report, "call", None)  # pytest removes it afterwards
        error = call.excinfo.value if call else None
        places = {str(file): report.nodeid for file in self._files}
        fault = located(error.__cause__ or error, places, sys.modules) if error else ""
        if fault.startswith(report.nodeid):
            return fault
        reason = report.longreprtext.strip().splitlines()[-1:]
        return f"{report.nodeid}: cannot be collected: {' '.join(reason)}"

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember Ctrl-C during collection, which pytest turns into an exit code."""
        if self.error is None and isinstance(excinfo.value, KeyboardInterrupt):
            self.error = excinfo.value

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run `body` instead of pytest's own loop."""
        if self.error is None:
            try:
                self._checks.plan(session.items)
                self.result = self._body(self._checks)
                self.finished = True
            except BaseException as error:  # noqa: BLE001 - raised again outside pytest
                self.error = error
        return True


def with_checks(
    course: Course,
    stages: Sequence[Stage],
    body: Callable[[Checks], Result],
    *,
    measures: bool = False,
    seconds: float | None = None,
) -> Result:
    """What `body` returns for the collected checks of `stages`; see Checks for `measures`.

    With `seconds`, a check file whose import takes longer is stopped. Raises CourseError if a check
    file is missing or cannot be collected, KitError if Python skips assertions, and whatever
    `body` raises.
    """
    if sys.flags.optimize:
        raise KitError(
            "Python skips assertions here, and checks need them: unset PYTHONOPTIMIZE, and leave "
            "out python's option -O"
        )
    for stage in stages:
        if not stage.check_file.is_file():
            raise CourseError(f"stage '{stage.slug}': there is no {stage.check_file}")
    checks = Checks(stages, has_torch="torch" in course.preload, measures=measures)
    files = [stage.check_file for stage in stages]
    loop = _Loop(files, checks, body, seconds)
    for name in _DRAWING & {*course.preload}:  # to be seeded before the check files are imported
        importlib.import_module(name)
    words = [*_OPTIONS, "--rootdir", str(course.root)]
    _forget(files)
    with _no_options_from_outside(), warnings.catch_warnings():
        # The kit itself reports a misspelt mark, in one line.
        warnings.simplefilter("ignore", pytest.PytestUnknownMarkWarning)
        code = pytest.main(words, plugins=[checks, loop])
    if loop.error is not None:
        raise loop.error
    if not loop.finished:
        raise CourseError(f"pytest cannot collect the checks: it ended with exit code {code}")
    return loop.result  # type: ignore[no-any-return]


def _forget(files: Sequence[Path]) -> None:
    """Unload check files; otherwise pytest would confuse files of the same name in two courses."""
    names = {file.name for file in files}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and os.path.basename(file) in names:
            del sys.modules[name]


@contextmanager
def _no_options_from_outside() -> Iterator[None]:
    """Keep the learner's own PYTEST_ADDOPTS from changing how the checks run."""
    kept = {name: os.environ.pop(name, None) for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")}
    try:
        yield
    finally:
        os.environ.update({name: value for name, value in kept.items() if value is not None})


def _planned(stage: Stage, items: Mapping[Case, Any]) -> Iterator[PlannedCheck]:
    cases: dict[str, list[Case]] = {}
    first: dict[str, Any] = {}
    for case, item in items.items():
        cases.setdefault(case.check, []).append(case)
        first.setdefault(case.check, item)
    faults = []
    for item in first.values():
        if fault := _fault(item):
            line = item.function.__code__.co_firstlineno
            faults.append(f"{stage.place(stage.check_file)}:{line}: {fault}")
    if faults:
        raise CourseError("\n".join(faults))
    for check, item in first.items():
        marker = item.get_closest_marker("points")
        points = marker.args[0]
        doc = item.function.__doc__.strip()
        stand_in = marker.kwargs.get("stand_in")
        yield PlannedCheck(
            id=check,
            title=doc.splitlines()[0],
            points=points,
            cases=tuple(cases[check]),
            stand_in=stand_in and f"{stage.slug}.{stand_in}",
            hint=marker.kwargs.get("hint"),
            pays=tuple(name for pays in item.iter_markers("pays") for name in pays.args),
        )


def _is_random(item: pytest.Item) -> bool:
    """Whether a case draws by the run's seed; all others draw the same inputs in every run."""
    return item.get_closest_marker("random") is not None


def _seed_of(case: Case, item: pytest.Item, seed: int) -> int:
    """The seed of a case in a run with this seed."""
    words = f"{seed}:{case.id}" if _is_random(item) else case.id
    return zlib.crc32(words.encode())


def _fault(item: Any) -> str:
    """The author's mistake in how a check is written, "" if there is none."""
    name = getattr(item, "originalname", item.name)
    there = {*_FIXTURES, *item._fixtureinfo.name2fixturedefs, "request"}
    there.update(getattr(getattr(item, "callspec", None), "params", ()))
    for fixture in item.fixturenames:
        if fixture not in there:
            return f"there is no fixture '{fixture}'{close_to(fixture, there)}"
    marker = item.get_closest_marker("points")
    if marker is None or not marker.args:
        names = [mark.name for mark in item.iter_markers() if mark.name != "points"]
        close = difflib.get_close_matches("points", names, n=1)
        advice = f"write 'points' for '{close[0]}'" if close else "add @pytest.mark.points(1)"
        return f"{name} has no points: {advice}"
    points = marker.args[0]
    if type(points) not in (int, float) or not 0 < points < math.inf:
        return f"{name}: points are a number above 0, not {points!r}"
    hint = marker.kwargs.get("hint")
    if hint is not None and (type(hint) is not int or hint < 1):
        return f"{name}: hint is the number of a hint, not {hint!r}"
    for skip in item.iter_markers("skip"):
        if str(skip.kwargs.get("reason")).startswith("got empty parameter set"):  # pytest's words
            return f"{name} has no case: its parametrize lists no values"
    for pays in item.iter_markers("pays"):
        if not (pays.args and pays.kwargs.get("because")):
            return f'{name}: write @pytest.mark.pays("zeros", because="...") with a reason'
    return (
        "" if (item.function.__doc__ or "").strip() else f"{name} has no title: write a docstring"
    )


def _case(stage: Stage, item: pytest.Item) -> Case:
    name = getattr(item, "originalname", item.name)
    check = f"{stage.slug}.{name.removeprefix('test_')}"
    return Case(f"{check}{item.name[len(name) :]}", check)


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
    if stage.case.has_answered:  # `grade verify` proves that the check can handle a right answer
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
