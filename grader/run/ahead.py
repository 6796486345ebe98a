"""Requests that are sent to a worker before their turn, so that it does not wait for the checks.

The cases of a stage make the same requests for every submission, as long as the answers are right.
A request is sent early only if it depends on no earlier answer (see `scouting`): another one could
hold a right answer. The worker does the calls in the order of the checks, with or without this.
What a check does not ask after all is thrown away: a wrong answer may end its case early.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.run.failures import Diverged
from grader.run.worker.wire import Frame

_MOST_FRAMES = 32  # in flight
_MOST_BYTES = 48 << 10  # in flight: a socket holds them although nobody reads


@dataclass(frozen=True)
class Expected:
    """The first requests of a case, which depend on no answer; `is_whole` if it makes no other."""

    case: str
    requests: tuple[Frame, ...] = ()
    is_whole: bool = False


@dataclass(frozen=True)
class _Entry:
    """A request of a case; None stands for requests that must wait for the case's answers."""

    case: int
    request: Frame | None = None
    is_first: bool = False
    size: int = 0


class Script:
    """What the cases of a stage will ask, in their order."""

    def __init__(self, cases: Sequence[Expected] = ()) -> None:
        self.numbers = {expected.case: number for number, expected in enumerate(cases)}
        self.entries = tuple(_entries(cases))


class Ahead:
    """What one worker was sent before its turn, and what it may be sent next."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._next = 0  # the first entry that was not sent
        self._sent: deque[_Entry] = deque()
        self._size = 0  # of what is in flight
        self._case = -1
        self._quiet = -1  # the last case in which nothing is sent early

    def begin(self, case: str) -> Iterator[None]:
        """Start a case. For each reply that belongs to another one, it yields: receive it then."""
        self._case = self._script.numbers.get(case, -1)
        while self._sent and self._sent[0].case != self._case:
            self._take()
            yield
        entries = self._script.entries
        while self._next < len(entries) and entries[self._next].case < self._case:
            self._next += 1

    def has_sent(self, request: Frame) -> bool:
        """Whether this request is on its way already; otherwise it must be sent now.

        Raises Diverged if others are on their way that the case does not ask for: give them up, and
        start the case again.
        """
        if self._sent:
            if not self._is_asked(self._sent[0], request):
                raise Diverged
            self._take()
            return True
        if self._next < len(self._script.entries):
            entry = self._script.entries[self._next]
            if self._is_asked(entry, request):
                self._next += 1
            elif entry.case != self._case or entry.request is not None:
                self._quiet = max(self._quiet, self._case)  # the case does something else
        return False

    def more(self) -> Iterator[tuple[Frame, bool]]:
        """The requests to send now, each with whether it is the first of its case."""
        while self._case > self._quiet and self._next < len(self._script.entries):
            entry = self._script.entries[self._next]
            is_full = len(self._sent) == _MOST_FRAMES or self._size + entry.size > _MOST_BYTES
            if entry.request is None or is_full:
                return
            self._next += 1
            self._size += entry.size
            self._sent.append(entry)
            yield entry.request, entry.is_first

    def give_up(self) -> Iterator[None]:
        """Throw away what is on its way; it yields for each reply to receive."""
        self._quiet = max([self._case, self._quiet, *(entry.case for entry in self._sent)])
        while self._sent:
            self._take()
            yield

    def _is_asked(self, entry: _Entry, request: Frame) -> bool:
        is_same = entry.request is request or entry.request == request
        return entry.case == self._case and is_same

    def _take(self) -> None:
        self._size -= self._sent.popleft().size


def _entries(cases: Sequence[Expected]) -> Iterator[_Entry]:
    for number, expected in enumerate(cases):
        for place, request in enumerate(expected.requests):
            size = len(request.encoded) + len(request.data)
            yield _Entry(number, request, place == 0, size)
        if not expected.is_whole:
            yield _Entry(number)
