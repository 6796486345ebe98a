"""Known conversations of checks with submissions: the same replies lead to the same fact.

A check is a function of its seed and of the replies that it gets. So if a submission gives the same
replies, byte for byte, as an earlier one, nothing has to be judged again: the known requests are
sent one by one, and the known fact is the result. At the first new reply the check itself takes
over, beginning with the replies received so far.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace

from grader.run.facts import CaseFact, Ending, Exchange
from grader.run.worker.wire import Frame

_CAP = 16 << 20  # bytes that all of it may take, roughly
_PER_REPLY = 500  # bytes for each known reply
_REPEATABLE = (Ending.PASSED, Ending.WRONG, Ending.RAISED, Ending.NOT_WRITTEN)


@dataclass(frozen=True)
class Key:
    """A case, the seed that its inputs are drawn from, and their device."""

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

    It keeps only the digest of a reply, and each request once.
    """

    def __init__(self, cap: int = _CAP) -> None:
        self._cap = cap
        self._facts = 0
        self.forget()

    def forget(self) -> None:
        """Forget all transcripts; later facts get other numbers than earlier ones."""
        self._roots: dict[Key, _Node] = {}
        self._requests: dict[tuple[bytes, bytes], Frame] = {}
        self._left = self._cap

    def follow(self, key: Key, ask: Callable[[Frame, Container[bytes]], Frame]) -> CaseFact | None:
        """The known fact on this case, found by repeating the known requests, or None.

        `ask` gets a request and the digests of the known replies. Raises whatever `ask` raises.
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
        """Remember how a case went; returns the fact with the number that identifies it.

        It remembers only what would happen again: no timeout, no crash, and no reply that came too
        late to be unpacked.
        """
        exchanges = fact.exchanges
        if fact.ending not in _REPEATABLE or not exchanges or self._left < 0:
            return fact
        if not all(each.reply.digest and each.reply.left > 0 for each in exchanges):
            return fact
        node = self._roots.setdefault(key, _Node())
        kept: list[Exchange] = []
        for exchange in exchanges:
            if node.fact is not None or node.request not in (None, exchange.request):
                return fact  # it asks something else, so it is not a function of the replies
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
        """The request, stored once however often it is asked."""
        parts = request.encoded, request.data
        if parts not in self._requests:
            self._left -= len(request.encoded) * 2 + len(request.data)
            self._requests[parts] = request
        return self._requests[parts]
