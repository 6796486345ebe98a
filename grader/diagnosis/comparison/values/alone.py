"""Whether a wrong answer is right without the calls before it: then the code keeps something."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from grader.diagnosis.comparison.replay import Replays, Step, against_solution
from grader.diagnosis.comparison.replies import answer_of, equal
from grader.run.answers import Answers
from grader.run.facts import CaseFact, Exchange
from grader.run.failures import AnswerError
from grader.run.worker.wire import Frame
from grader.types.report import Diagnosis

_KEEPS = "your code keeps something from one call to the next. Look at what it stores."
_KEPT = Diagnosis(
    "symptom:kept",
    f"Your answer to this call is right by itself, but not after the calls before it: {_KEEPS}",
)
KEPT_BETWEEN_CHECKS = Diagnosis(
    _KEPT.id, f"By itself this passes, but not after the checks before it: {_KEEPS}"
)


def kept(
    fact: CaseFact, solution: Callable[[str], Any], fresh: Callable[[], Answers]
) -> Diagnosis | None:
    """The diagnosis of a failing case whose first wrong answer to a call is right by itself.

    `fresh` returns a new worker's answers. The wrong answer must come again with the calls before
    it, so that chance is not taken for memory. What an object holds may differ in right code, by
    the name of a buffer, say. Raises Cancelled.
    """
    steps = against_solution(fact, solution, Replays())
    step = next((s for s in steps if s.deviates and _is_call(s.exchange)), None)
    if step is None or step.solution.error is not None:
        return None
    earlier = list(takewhile(lambda each: each is not step.exchange, fact.exchanges))
    requests = [*(each.request for each in earlier), step.exchange.request]
    own = step.exchange.request.target.get("object")
    calls = [_is_call(each) for each in earlier]
    # An object of its own may be made without the others: they may share what they keep.
    apart = [_is_call(each) or _object(each) not in (None, own) for each in earlier]
    is_right = any(
        _is_right(step, _without(requests, [*left_out, False]), fresh())
        for left_out in ([calls] if own is None or calls == apart else [calls, apart])
        if any(left_out)
    )
    return _KEPT if is_right and not _is_right(step, requests, fresh()) else None


def _without(requests: Sequence[Frame], are_left_out: Sequence[bool]) -> Iterator[Frame]:
    """The other requests; what such a request does first, as eval(), the next one does."""
    first: list[Any] = []
    for request, is_left_out in zip(requests, are_left_out, strict=True):
        first += request.header.get("before", ())
        if not is_left_out:
            yield Frame({**request.header, "before": first}, request.data)
            first = []


def _is_call(exchange: Exchange) -> bool:
    """Whether a request calls the learner's code, or goes back through a call, and makes nothing.

    What makes an object or changes one with a method such as eval() must be repeated. What looks
    for what an object holds is no call.
    """
    target = exchange.request.target
    return exchange.reply.handle is None and not target.get("method") and not target.get("probe")


def _object(exchange: Exchange) -> Any:
    """The object that a request makes or uses, None if there is none."""
    made = exchange.reply.handle
    return exchange.request.target.get("object") if made is None else made


def _is_right(step: Step, requests: Iterable[Frame], answers: Answers) -> bool:
    """Whether the worker gives the solution's answer to the last of these requests."""
    try:
        answers.begin()
        for request in requests:
            reply = answers.answer(request)
    except AnswerError:
        return False
    finally:
        answers.close()
    answer = answer_of(step.exchange.request, reply)
    return answer.error is None and equal(answer.value, step.solution.value)
