"""Answers that are known to be right, or not begun, for a class in which many write the same.

Only what was run by itself counts, with nothing else of its submission in the process: so nobody's
verdict can depend on what another one has handed in.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace

from grader.types.report import StageResult, Status

_CAP = 20_000  # keys that are noted down
_SEEN = "seen"
_PROVEN = (Status.PASSED, Status.NOT_STARTED)


class Earned:
    """What one process learns, and, if it is `shared`, those that are forked off it.

    They tell each other by a file. Keys tell of a stage, its code, the seed and the device.
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

    def result(self, key: str, slug: str) -> StageResult | None:
        """The verdict on a stage whose code is known; it was given in no time."""
        for status in _PROVEN:
            if self._has(status.value, key):
                return self._results.get((slug, status))
        return None

    def asks_for_proof(self, key: str) -> bool:
        """Whether it is known, but from a process with other code of its submission."""
        return self._has(_SEEN, key) and key not in self._refused

    def take(self, key: str, result: StageResult, *, alone: bool) -> StageResult | None:
        """Learn from a verdict; `alone` says that nothing else was run in its process.

        Returns the verdict that holds for all who hand in the same, if there is one now. There is
        none that would speak of a line of somebody's.
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
            self._file.write(f"{what} {key}\n".encode())  # all have one place in it: its end

    def _catch_up(self) -> None:
        """Read what was noted since, by whomever."""
        while self._file is not None and (news := self._news(self._file.fileno())):
            self._noted.update(news.decode().splitlines())
            self._read += len(news)

    def _news(self, file: int) -> bytes:
        """The whole lines that come next."""
        news = os.pread(file, 1 << 16, self._read)
        return news[: news.rfind(b"\n") + 1]
