"""Whether a wrong answer is right without the calls before it: then the code keeps something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

from grader.diagnosis.comparison.replay import Replays, Step, against_solution
from grader.diagnosis.comparison.replies import answer_of, equal
from grader.run.answers import Answers
from grader.run.facts import CaseFact, Exchange
from grader.run.failures import AnswerError
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
    """The diagnosis of a failing case whose first wrong answer is right by itself.

    `fresh` returns a new worker's answers. The wrong answer must come again with the calls before
    it, so that chance is not taken for memory. Raises Cancelled.
    """
    step = next((s for s in against_solution(fact, solution, Replays()) if s.deviates), None)
    if step is None or step.solution.error is not None or not _is_call(step.exchange):
        return None
    before = list(takewhile(lambda each: each is not step.exchange, fact.exchanges))
    needed = [each for each in before if not _is_call(each)]
    if len(needed) == len(before):
        return None
    is_told = _is_right(step, needed, fresh()) and not _is_right(step, before, fresh())
    return _KEPT if is_told else None


def _is_call(exchange: Exchange) -> bool:
    """Whether a request calls the learner's code, or goes back through a call, and makes nothing.

    What makes an object or changes one with a method such as eval() must be repeated.
    """
    request = exchange.request
    return exchange.reply.handle is None and not request.target.get("method")


def _is_right(step: Step, before: Sequence[Exchange], answers: Answers) -> bool:
    """Whether the worker gives the solution's answer to a request after these others."""
    try:
        answers.begin()
        for each in before:
            answers.answer(each.request)
        reply = answers.answer(step.exchange.request)
    except AnswerError:
        return False
    finally:
        answers.close()
    answer = answer_of(step.exchange.request, reply)
    return answer.error is None and equal(answer.value, step.solution.value)
