"""Runs the learner's tests with pytest on something that a check has given.

pytest is imported by those who need it: the server does so before it forks a worker for that.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Sequence
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
    *("-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:faulthandler", "-p", "no:logging"),
    *("-p", "no:unraisableexception", "-p", "no:threadexception", "-p", "no:doctest"),
    *("-p", "no:junitxml", "-p", "no:pastebin", "-p", "no:stepwise", "--disable-plugin-autoload"),
)


def verdict(outcomes: Outcomes, ended: str) -> str:
    """What tests say of what they were given: "passed", "failed", or "nothing".

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
    tests: ModuleType | type, fixture: str, given: Callable[..., Any], describe: Describe
) -> dict[str, Any]:
    """How the tests in a module, or in one class, do with `given` behind their fixture.

    `value` is the verdict, `outcomes` those of the tests, `first` the exception of the first that
    failed, with its name, `made` how often the fixture was called, `ended` why not all was run.
    """
    import pytest

    run = _run(tests, fixture, given, describe)
    code = pytest.main([*_OPTIONS], plugins=[run])
    if not run.ended and code not in (0, 1, 5):  # all passed, some failed, there are none
        run.ended = "pytest was ended before all tests were run"
    outcomes = [(name, run.outcomes[name]) for name in list(run.outcomes)[:TESTS_CAP]]
    if len(run.outcomes) > TESTS_CAP:
        run.ended = f"there are more than {TESTS_CAP} tests"
    return {
        "value": verdict(outcomes, run.ended),
        "outcomes": [[name[:NAME_CAP], outcome] for name, outcome in outcomes],
        "first": run.first,
        "made": run.made,
        "ended": run.ended[:ENDED_CAP],
    }


def _run(
    tests: ModuleType | type, fixture: str, given: Callable[..., Any], describe: Describe
) -> Any:
    """The pytest plugin of one run, which keeps what came of it."""
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
            self.made = 0
            self.ended = ""
            self._error: BaseException | None = None

        @pytest.fixture(name=fixture)
        def _fixture(self) -> Callable[..., Any]:
            def make(*args: Any, **kwargs: Any) -> Any:
                self.made += 1
                return given(*args, **kwargs)

            make.__name__ = make.__qualname__ = fixture
            return make

        @pytest.hookimpl(tryfirst=True)
        def pytest_collection(self, session: pytest.Session) -> bool:
            """Collect what is there, and no file."""
            module = Tests.from_parent(session, path=session.path / "tests.py", nodeid="")
            session.items = list(session.genitems(module))
            session.testscollected = len(session.items)
            session.config.hook.pytest_collection_modifyitems(
                session=session, config=session.config, items=session.items
            )
            return True

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            """A class or a parametrization that pytest cannot make tests of."""
            if report.failed and not self.ended:
                said = textwrap.shorten(report.longreprtext, ENDED_CAP // 2, placeholder=" ...")
                self.ended = f"pytest cannot collect the tests: {said}"

        def pytest_runtest_makereport(
            self, item: pytest.Item, call: pytest.CallInfo[None]
        ) -> pytest.TestReport:
            """A report without the source that pytest would quote."""
            self._error = call.excinfo.value if call.excinfo is not None else None
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
                told = {} if self._error is None else describe(self._error)
                if told.get("stub"):
                    outcome = "unwritten"
                elif self.first is None:
                    self.first = {"test": name[:NAME_CAP], **told}
            known = self.outcomes.get(name, outcome)
            if outcome:
                self.outcomes[name] = min(outcome, known, key=OUTCOMES.index)

    return Run()
