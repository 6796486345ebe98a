"""Verdicts that are certain: full points or not started. In a class, many write the same code.

A verdict counts only if nothing else of its submission ran in the process, so that no student's
verdict can depend on what another one submitted.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.classes.sharing.same_code import same_code
from grader.engine import Request, Verdict
from grader.judge.places import is_written
from grader.judge.verdict import judge_stage
from grader.types.course import Course, Stage
from grader.types.report import StageResult, Status

if TYPE_CHECKING:
    from grader.run.submission_runs import SubmissionRuns

_CAP = 20_000  # keys to remember
_SEEN = "seen"
_PROVEN = (Status.PASSED, Status.NOT_STARTED)


class Earned:
    """The verdicts that one process has learnt; if `shared`, also those of the processes it forks.

    They share them through a file. A key identifies a stage, its code, the seed and the device.
    """

    def __init__(self, *, shared: bool) -> None:
        self._file = tempfile.TemporaryFile(buffering=0) if shared else None  # noqa: SIM115
        self._read = 0
        self._noted: set[str] = set()
        self._refused: set[str] = set()
        self._results: dict[tuple[str, Status], StageResult] = {}

    def __enter__(self) -> Earned:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def of(self, course: Course, request: Request, device: str, runs: SubmissionRuns) -> Verdict:
        """What these verdicts say of one submission."""
        # A student's copy has no checks that could prove anything.
        all_same = {} if course.is_partial else same_code(course, request, runs.source)

        def verdict(stage: Stage, judged: Callable[[], StageResult]) -> tuple[StageResult, bool]:
            same = all_same.get(stage.slug)
            if same is None:
                return judged(), False
            key = f"{stage.slug} {same.digest} {request.seed} {device}"
            known = self.result(key, stage.slug)
            if known is None and self.asks_for_proof(key):
                facts = runs.facts_of_part(stage, same.alone(request.submission))
                known = self.take(key, judge_stage(stage, facts), alone=True)
            # No other submission takes points from what is written.
            passed = known is not None and known.status is Status.PASSED
            if known is not None and (passed or not is_written(request.submission, stage)):
                return known, True
            result = judged()
            self.take(key, result, alone=False)
            return result, False

        return verdict

    def result(self, key: str, slug: str) -> StageResult | None:
        """The known verdict on a stage with this key, None if there is none."""
        for status in _PROVEN:
            if self._has(status.value, key):
                return self._results.get((slug, status))
        return None

    def asks_for_proof(self, key: str) -> bool:
        """Whether the verdict is known, but only from a process that ran other code as well."""
        return self._has(_SEEN, key) and key not in self._refused

    def take(self, key: str, result: StageResult, *, alone: bool) -> StageResult | None:
        """Learn from a verdict; `alone` says that nothing else ran in its process.

        Returns the verdict for everyone who submits the same code, if there is one now. A verdict
        that could quote a line of somebody's code never counts.
        """
        is_all_or_nothing = result.score in (0, result.max_score)
        if result.status not in _PROVEN or not is_all_or_nothing:
            if alone:
                self._refused.add(key)
            return None
        checks = tuple(replace(check, seconds=0.0) for check in result.checks)
        known = replace(result, checks=checks, printed="")
        self._results.setdefault((result.slug, result.status), known)
        self._note(result.status.value if alone else _SEEN, key)
        return known if alone else None

    def _has(self, what: str, key: str) -> bool:
        self._catch_up()
        return f"{what} {key}" in self._noted

    def _note(self, what: str, key: str) -> None:
        if len(self._noted) >= _CAP or self._has(what, key):
            return
        if self._file is None:
            self._noted.add(f"{what} {key}")
        else:
            self._file.write(f"{what} {key}\n".encode())  # shared by all processes: each appends

    def _catch_up(self) -> None:
        """Read what any process has noted since."""
        while self._file is not None:
            news = os.pread(self._file.fileno(), 1 << 16, self._read)
            news = news[: news.rfind(b"\n") + 1]  # only whole lines
            if not news:
                break
            self._noted.update(news.decode().splitlines())
            self._read += len(news)
