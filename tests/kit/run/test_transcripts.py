"""The same replies mean the same fact, and nothing else does."""

from collections.abc import Callable, Container
from typing import Any

import pytest

from grader.run.facts import Case, CaseFact, Ending, Exchange
from grader.run.transcripts import Key, Transcripts
from grader.run.worker.wire import Frame

KEY = Key("fold.x", 7, "cpu")
CASE = Case("fold.x", "fold")


def asked(number: int) -> Frame:
    return Frame({"ask": number}, b"data")


def told(answer: str, **others: Any) -> Frame:
    return Frame({"value": answer}, size=100, digest=answer.encode(), **others)


def fact(*answers: str, ending: Ending = Ending.WRONG, **others: Any) -> CaseFact:
    exchanges = tuple(
        Exchange(asked(n), told(answer, **others)) for n, answer in enumerate(answers)
    )
    return CaseFact(CASE, ending, f"message {answers}", 1.0, "fold", exchanges)


def answering(*answers: str) -> tuple[Callable[[Frame, Container[bytes]], Frame], list[int]]:
    """Something that gives these answers in turn, and what it was asked."""
    requests: list[int] = []

    def ask(request: Frame, known: Container[bytes]) -> Frame:
        requests.append(request.header["ask"])
        return told(answers[len(requests) - 1])

    return ask, requests


def same(found: CaseFact | None, learnt: CaseFact) -> bool:
    """Whether a fact is the one that was learnt, with the replies that came this time."""
    replies = [exchange.reply for exchange in found.exchanges]
    return (found, found.number) == (learnt, learnt.number) and replies == [
        exchange.reply for exchange in learnt.exchanges
    ]


def test_nothing_is_asked_for_a_case_that_was_never_seen() -> None:
    ask, requests = answering()
    assert Transcripts().follow(KEY, ask) is None
    assert requests == []


def test_the_same_replies_mean_the_same_fact() -> None:
    known = Transcripts()
    learnt = known.learn(KEY, fact("a", "b"))
    assert learnt == fact("a", "b") and learnt.number is not None
    ask, requests = answering("a", "b")
    assert same(known.follow(KEY, ask), learnt)
    assert requests == [0, 1]


def test_at_a_new_reply_it_stops_asking() -> None:
    known = Transcripts()
    known.learn(KEY, fact("a", "b", "c"))
    ask, requests = answering("a", "x", "c")
    assert known.follow(KEY, ask) is None
    assert requests == [0, 1]


def test_what_was_new_is_known_the_next_time() -> None:
    known = Transcripts()
    first = known.learn(KEY, fact("a", "b"))
    second = known.learn(KEY, fact("a", "x", ending=Ending.PASSED))
    third = known.learn(KEY, fact("y"))
    assert len({first.number, second.number, third.number}) == 3
    for answers, found in ((("a", "b"), first), (("a", "x"), second), (("y",), third)):
        assert same(known.follow(KEY, answering(*answers)[0]), found)


@pytest.mark.parametrize(
    "other", [Key("fold.y", 7, "cpu"), Key("fold.x", 8, "cpu"), Key("fold.x", 7, "cuda")]
)
def test_another_case_seed_or_device_is_another_thing(other: Key) -> None:
    known = Transcripts()
    known.learn(KEY, fact("a"))
    assert known.follow(other, answering("a")[0]) is None


@pytest.mark.parametrize("ending", [Ending.TIMED_OUT, Ending.CRASHED, Ending.BROKEN])
def test_what_may_come_out_otherwise_the_next_time_is_not_remembered(ending: Ending) -> None:
    known = Transcripts()
    assert known.learn(KEY, fact("a", ending=ending)).number is None
    assert known.follow(KEY, answering("a")[0]) is None


def test_what_was_printed_along_makes_no_difference_and_is_not_kept() -> None:
    known = Transcripts()
    learnt = known.learn(KEY, fact("a", aside={"printed": "hello"}))
    found = known.follow(KEY, answering("a")[0])
    assert found is not None and same(found, learnt)
    assert [exchange.reply.aside for exchange in found.exchanges] == [{}]


def test_replies_that_came_over_no_wire_are_not_remembered() -> None:
    own = CaseFact(CASE, Ending.PASSED, exchanges=(Exchange(asked(0), Frame({})),))
    assert Transcripts().learn(KEY, own).number is None


def test_no_more_is_kept_than_there_is_room_for() -> None:
    known = Transcripts(cap=1000)  # bytes; a reply takes 500
    assert known.learn(KEY, fact("a", "b")).number is not None
    assert known.learn(KEY, fact("a", "c")).number is None
    assert known.follow(KEY, answering("a", "c")[0]) is None
    assert known.follow(KEY, answering("a", "b")[0]) is not None


def test_a_check_that_asks_otherwise_for_the_same_replies_is_not_remembered() -> None:
    known = Transcripts()
    first = known.learn(KEY, fact("a", "b"))
    exchanges = (Exchange(asked(5), told("a")), Exchange(asked(1), told("z")))
    assert known.learn(KEY, CaseFact(CASE, Ending.WRONG, exchanges=exchanges)).number is None
    assert same(known.follow(KEY, answering("a", "b")[0]), first)


def test_a_check_that_ends_sooner_or_later_for_the_same_replies_is_not_remembered() -> None:
    known = Transcripts()
    known.learn(KEY, fact("a", "b"))
    assert known.learn(KEY, fact("a")).number is None
    assert known.learn(KEY, fact("a", "b", "c")).number is None
    assert known.follow(KEY, answering("a", "b")[0]) == fact("a", "b")
