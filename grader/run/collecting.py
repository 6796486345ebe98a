"""Has pytest collect the checks once, and passes control to a body that runs them as it likes."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from grader.run.session import Checks
from grader.run.stopping import stopped_after
from grader.run.worker.bench import seed_all
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, KitError, located

Result = TypeVar("Result")
_OPTIONS = (
    *("-c", os.devnull, "--assert=plain", "--import-mode=importlib", "--noconftest"),
    *("-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:faulthandler", "-p", "no:logging"),
    *("-p", "no:unraisableexception", "-p", "no:threadexception", "-p", "no:doctest"),
    *("-p", "no:junitxml", "-p", "no:pastebin", "-p", "no:stepwise", "-p", "no:warnings"),
    *("-p", "no:capture", "-p", "no:tmpdir", "-p", "no:debugging", "--disable-plugin-autoload"),
)
MARKERS = (
    "points(n, stand_in=None, hint=None): its points, the check to use if it is skipped, a hint",
    "random: the case draws other inputs for each seed of a run",
    "pays(*constants, because): the constant answers that it accepts, and the reason",
)
_DRAWING = {"numpy", "torch"}  # libraries with generators of their own


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
    with pytest.MonkeyPatch.context() as environment, warnings.catch_warnings():
        for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):  # the learner's own must change nothing
            environment.delenv(name, raising=False)
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
