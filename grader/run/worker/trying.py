"""Runs the learner's tests with pytest on something that a check has given.

pytest is imported by those who need it: the server does so before it forks a worker for that.
"""

from __future__ import annotations

import difflib
import inspect
import os
import warnings
from collections.abc import Callable, Collection, Sequence
from types import ModuleType
from typing import Any

Outcomes = Sequence[tuple[str, str]]  # of every test its name and one of OUTCOMES
Describe = Callable[[BaseException], dict[str, Any]]

# From the one that says most about a test to the one that says least.
OUTCOMES = ("failed", "errored", "unwritten", "skipped", "passed")
TESTS_CAP = 1000
NAME_CAP = 100
ENDED_CAP = 200
# Without what would write files, read the folders around, or take what is printed away.
_OPTIONS = (
    *("-c", os.devnull, "--rootdir", ".", "--assert=plain", "--noconftest", "--capture=no"),
    *("-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:faulthandler", "-p", "no:doctest"),
    *("-p", "no:unraisableexception", "-p", "no:threadexception", "-p", "no:pastebin"),
    *("-p", "no:stepwise", "--disable-plugin-autoload"),
)


def verdict(outcomes: Outcomes, ended: str) -> str:
    """What tests say about what they were given: "passed", "failed", or "nothing".

    Or "unwritten", where each is a stub. A run that `ended` before its time says nothing.
    """
    found = {outcome for _, outcome in outcomes}
    if ended:
        return "nothing"
    if found & {"failed", "errored"}:
        return "failed"
    if "passed" in found:
        return "passed"
    return "unwritten" if found == {"unwritten"} else "nothing"


def tried(
    tests: ModuleType | type,
    fixture: str,
    given: Callable[..., Any],
    describe: Describe,
    *,
    whole: bool = False,
) -> dict[str, Any]:
    """How the tests in a module or class judge `given`, which their fixture returns.

    The first test that fails decides the verdict; only if `whole` do the others run after it.
    `value` is the verdict, `outcomes` those of the tests, `first` the exception of the first that
    failed, with its name, or else of the first that returned a value, `made` how often the fixture
    was called, `ended` why not all was run.
    """
    import pytest

    run = _run(tests, fixture, given, describe, whole)
    code = pytest.main([*_OPTIONS], plugins=[run])
    if not run.ended and code not in (0, 1, 5):  # all passed, some failed, there are none
        run.ended = "pytest was ended before all tests were run"
    if not run.outcomes:
        run.ended = run.ended or run.left_out
    outcomes = [(name, run.outcomes[name]) for name in list(run.outcomes)[:TESTS_CAP]]
    if len(run.outcomes) > TESTS_CAP:
        run.ended = f"there are more than {TESTS_CAP} tests"
    return {
        "value": verdict(outcomes, run.ended),
        "outcomes": [[name[:NAME_CAP], outcome] for name, outcome in outcomes],
        "first": run.first or run.returned,
        "made": run.made,
        "ended": run.ended[:ENDED_CAP],
    }


def _run(
    tests: ModuleType | type,
    fixture: str,
    given: Callable[..., Any],
    describe: Describe,
    whole: bool,
) -> Any:
    """The pytest plugin of one run, which keeps its results."""
    import pytest

    class Tests(pytest.Module):
        """The tests as they are: pytest need not find and import a file."""

        def _getobj(self) -> ModuleType:
            if isinstance(tests, ModuleType):
                return tests
            module = ModuleType("tests")
            vars(module)[f"Test{tests.__name__}"] = tests
            return module

    class Run:
        def __init__(self) -> None:
            self.outcomes: dict[str, str] = {}
            self.first: dict[str, Any] | None = None
            self.returned: dict[str, Any] | None = None
            self.made = 0
            self.ended = ""
            self.left_out = ""  # why pytest does not accept something as a test
            self._session: Any = None
            self._error: BaseException | None = None
            self._function: Any = None  # whose error it is

        @pytest.fixture(name=fixture, scope="session")  # so that any of theirs may take it
        def _fixture(self) -> Callable[..., Any]:
            def make(*args: Any, **kwargs: Any) -> Any:
                self.made += 1
                return given(*args, **kwargs)

            make.__name__ = make.__qualname__ = fixture
            return make

        @pytest.hookimpl(tryfirst=True)
        def pytest_collection(self, session: pytest.Session) -> bool:
            """Collect what is there, and no file."""
            self._session = session
            module = Tests.from_parent(session, path=session.path / "tests.py", nodeid="")
            session.items = list(session.genitems(module))
            session.testscollected = len(session.items)
            session.config.hook.pytest_collection_modifyitems(
                session=session, config=session.config, items=session.items
            )
            return True

        def pytest_exception_interact(
            self, call: pytest.CallInfo[Any], report: pytest.CollectReport | pytest.TestReport
        ) -> None:
            """A class or a parametrization that pytest cannot make tests of."""
            if isinstance(report, pytest.TestReport) or call.excinfo is None or self.ended:
                return
            error = call.excinfo.value
            told = describe(error)
            is_said = isinstance(error, (pytest.fail.Exception, pytest.Collector.CollectError))
            said = "" if is_said else f"{told['type']}: "
            self.ended = f"pytest cannot collect them: {said}{_one_line(told['message'])}"

        def pytest_warning_recorded(
            self, warning_message: warnings.WarningMessage, nodeid: str
        ) -> None:
            """A class of tests that has an __init__, or a test that returns a value."""
            if issubclass(warning_message.category, pytest.PytestReturnNotNoneWarning):
                said = "it returns a value, so it passes whatever that is: write assert, not return"
                told = _pointed(self._function, said, describe)
                self.returned = self.returned or {"test": nodeid.lstrip(":")[:NAME_CAP], **told}
            elif issubclass(warning_message.category, pytest.PytestCollectionWarning):
                why = str(warning_message.message).partition(" (from: ")[0]
                self.left_out = self.left_out or f"pytest says: {_one_line(why)}"

        def pytest_runtest_makereport(
            self, item: pytest.Item, call: pytest.CallInfo[None]
        ) -> pytest.TestReport:
            """A report without the source that pytest would quote."""
            self._error = call.excinfo.value if call.excinfo is not None else None
            self._function = getattr(item, "function", None)
            outcome: Any = "passed" if self._error is None else "failed"
            if isinstance(self._error, pytest.skip.Exception):
                outcome = "skipped"
            when: Any = call.when
            return pytest.TestReport(item.nodeid, item.location, {}, outcome, None, when)

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            """Keep what says most about the test."""
            name = report.nodeid.lstrip(":")
            outcome: str = report.outcome if report.when == "call" or report.skipped else ""
            if report.failed:
                outcome = "failed" if report.when == "call" else "errored"
                told = {} if self._error is None else self._told(self._error)
                if told.get("stub"):
                    outcome = "unwritten"
                elif self.first is None:
                    self.first = {"test": name[:NAME_CAP], **told}
            known = self.outcomes.get(name, outcome)
            if outcome:
                self.outcomes[name] = min(outcome, known, key=OUTCOMES.index)
            if outcome in ("failed", "errored") and not whole:
                self._session.shouldfail = "the verdict is known"

        def _told(self, error: BaseException) -> dict[str, Any]:
            """An exception as data; one that pytest refuses comes with the learner's line."""
            if isinstance(error, pytest.FixtureLookupError):
                asking = [self._function, *(one.func for one in error.fixturestack)]
                # Nothing else that is public knows which there are.
                listed = error.formatrepr().errorstring.partition("available fixtures: ")[2]
                known = listed.partition("\n")[0].split(", ")
                said = _no_fixture(str(error.argname), fixture, known)
                return _pointed(asking[-1], said, describe)
            is_async = inspect.iscoroutinefunction(self._function)
            if is_async or inspect.isasyncgenfunction(self._function):
                said = "pytest runs no async test: make it a plain function, def without async"
                return _pointed(self._function, said, describe)
            return describe(error)

    return Run()


def _one_line(text: str) -> str:
    """A text of several lines in one, without the colons of a file that pytest does not know."""
    return " ".join(text.split()).lstrip(":")


def _no_fixture(name: str, fixture: str, known: Collection[str]) -> str:
    """Why a fixture is not available."""
    if name in known:
        return f"the fixture {name} needs itself"
    named = [other for other in known if not other.startswith("_")]
    close = difflib.get_close_matches(name, named, n=1)
    if close:
        return f"there is no fixture {name}: did you mean {close[0]}?"
    return f"there is no fixture {name}; there are {fixture} and pytest's own"


def _pointed(function: Any, said: str, describe: Describe) -> dict[str, Any]:
    """A message about a function, as an exception's data: without a type, with its first line."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return {"type": "", "message": said, "frames": []}
    # As that of an exception which carries its place with it.
    told = describe(SyntaxError(said, (code.co_filename, code.co_firstlineno, None, None)))
    frames = [{**frame, "function": code.co_name} for frame in told["frames"]]
    return {**told, "type": "", "frames": frames}
