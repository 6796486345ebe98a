"""What checks have asked before and what came of each answer: the same answers, the same fact.

A check is a function of its seed and of the replies that it gets. So where a submission gives the
very replies, byte for byte, that another one gave, nothing has to be judged again: the requests are
put to it one by one as they are known, and the fact is the one that is known. At the first reply
that is new the check itself takes over, beginning with the replies that are there already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from grader.run.facts import CaseFact, Ending, Exchange
from grader.run.worker.wire import Frame

_CAP = 256 << 20  # bytes of requests and replies that are remembered
_REPEATABLE = (Ending.PASSED, Ending.WRONG, Ending.RAISED, Ending.NOT_WRITTEN)


@dataclass(frozen=True)
class Key:
    """A case, what it draws its inputs from, and where they are."""

    case: str
    seed: int
    device: str


@dataclass
class _Node:
    """What follows the replies so far: the next request, or the fact at the end."""

    request: Frame | None = None
    fact: CaseFact | None = None
    after: dict[bytes, _Node] = field(default_factory=dict)


class Transcripts:
    """The known transcripts of cases; `cap` is how many bytes of them are kept."""

    def __init__(self, cap: int = _CAP) -> None:
        self._roots: dict[Key, _Node] = {}
        self._left = cap
        self._facts = 0
        self.replies: dict[bytes, Frame] = {}  # by their digests

    def follow(self, key: Key, ask: Callable[[Frame], Frame]) -> CaseFact | None:
        """The fact on this case if it is known, found by asking what was asked before.

        Raises what `ask` does.
        """
        node = self._roots.get(key)
        while node is not None and node.request is not None:
            node = node.after.get(ask(node.request).digest)
        return None if node is None else node.fact

    def learn(self, key: Key, fact: CaseFact) -> CaseFact:
        """Remember how a case went; the fact with the number by which it is known from now on.

        Only what would come out the same again is: no time-out and no crash.
        """
        exchanges = fact.exchanges
        size = sum(len(e.request.data) + e.reply.size for e in exchanges)
        if fact.ending not in _REPEATABLE or not exchanges or size > self._left:
            return fact
        if not all(exchange.reply.digest for exchange in exchanges):
            return fact
        node = self._roots.setdefault(key, _Node())
        kept: list[Exchange] = []
        for exchange in exchanges:
            if node.fact is not None or node.request not in (None, exchange.request):
                return fact  # it does not ask the same again, so it is no function of the replies
            node.request = node.request or exchange.request
            reply = self.replies.setdefault(
                exchange.reply.digest, replace(exchange.reply, aside="")
            )
            kept.append(Exchange(node.request, reply))  # one request, however many replies
            node = node.after.setdefault(reply.digest, _Node())
        if node.request is not None or node.fact is not None:
            return fact
        self._left -= size
        self._facts += 1
        node.fact = replace(fact, number=self._facts, exchanges=tuple(kept))
        return node.fact
