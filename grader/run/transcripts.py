"""What checks have asked before and what came of each answer: the same answers, the same fact.

A check is a function of its seed and of the replies that it gets. So where a submission gives the
very replies, byte for byte, that another one gave, nothing has to be judged again: the requests are
put to it one by one as they are known, and the fact is the one that is known. At the first reply
that is new the check itself takes over, beginning with the replies that are there already.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace

from grader.run.facts import CaseFact, Ending, Exchange
from grader.run.worker.wire import Frame

_CAP = 16 << 20  # bytes, roughly, that all of it may take
_PER_REPLY = 500  # of them for each reply that is known
_REPEATABLE = (Ending.PASSED, Ending.WRONG, Ending.RAISED, Ending.NOT_WRITTEN)


@dataclass(frozen=True)
class Key:
    """A case, what it draws its inputs from, and where they are."""

    case: str
    seed: int
    device: str


@dataclass(slots=True)
class _Node:
    """What follows the replies so far: the next request, or the fact at the end."""

    request: Frame | None = None
    fact: CaseFact | None = None
    after: dict[bytes, _Node] = field(default_factory=dict)


class Transcripts:
    """The known transcripts of cases; `cap` is how many bytes they may take, roughly.

    Of a reply only its digest is kept, and each request once.
    """

    def __init__(self, cap: int = _CAP) -> None:
        self._roots: dict[Key, _Node] = {}
        self._requests: dict[tuple[bytes, bytes], Frame] = {}
        self._left = cap
        self._facts = 0

    def follow(self, key: Key, ask: Callable[[Frame, Container[bytes]], Frame]) -> CaseFact | None:
        """The fact on this case if it is known, found by asking what was asked before.

        `ask` is given a request and the digests of the replies that are known. Raises what it does.
        """
        node = self._roots.get(key)
        exchanges = []
        while node is not None and node.request is not None:
            reply = ask(node.request, node.after)
            exchanges.append(Exchange(node.request, reply))
            node = node.after.get(reply.digest)
        if node is None or node.fact is None:
            return None
        return replace(node.fact, exchanges=tuple(exchanges))

    def learn(self, key: Key, fact: CaseFact) -> CaseFact:
        """Remember how a case went; the fact with the number by which it is known from now on.

        Only what would come out the same again is: no time-out and no crash.
        """
        exchanges = fact.exchanges
        if fact.ending not in _REPEATABLE or not exchanges or self._left < 0:
            return fact
        if not all(exchange.reply.digest for exchange in exchanges):
            return fact
        node = self._roots.setdefault(key, _Node())
        kept: list[Exchange] = []
        for exchange in exchanges:
            if node.fact is not None or node.request not in (None, exchange.request):
                return fact  # it does not ask the same again, so it is no function of the replies
            node.request = node.request or self._once(exchange.request)
            kept.append(Exchange(node.request, exchange.reply))
            digest = exchange.reply.digest
            if digest not in node.after:
                node.after[digest] = _Node()
                self._left -= _PER_REPLY
            node = node.after[digest]
        if node.request is not None or node.fact is not None:
            return fact
        self._left -= len(fact.message)
        self._facts += 1
        node.fact = replace(fact, number=self._facts, exchanges=())
        return replace(node.fact, exchanges=tuple(kept))

    def _once(self, request: Frame) -> Frame:
        """The same request, however often it is asked: it is kept once."""
        parts = request.encoded, request.data
        if parts not in self._requests:
            self._left -= len(request.encoded) * 2 + len(request.data)
            self._requests[parts] = request
        return self._requests[parts]
