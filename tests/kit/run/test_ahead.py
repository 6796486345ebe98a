"""What is sent to a worker before its turn: in order, not too much, and nothing that must wait."""

from __future__ import annotations

import pytest

from grader.run.ahead import Ahead, Expected, Script
from grader.run.failures import Diverged
from grader.run.worker.wire import Frame


def asked(name: str, size: int = 0) -> Frame:
    return Frame({"ask": name}, b"x" * size)


def case(name: str, *requests: str, is_whole: bool = True) -> Expected:
    return Expected(name, tuple(map(asked, requests)), is_whole)


def sent(ahead: Ahead) -> list[str]:
    """What goes out now."""
    return [frame.header["ask"] + "!" * is_first for frame, is_first in ahead.more()]


def thrown_away(ahead: Ahead, name: str) -> int:
    """How many replies belong to no case that still runs, when another one begins."""
    return sum(1 for _ in ahead.begin(name))


def begun(*cases: Expected) -> Ahead:
    """The first of these cases runs, and has asked for "a"."""
    ahead = Ahead(Script(cases))
    thrown_away(ahead, "one")
    ahead.has_sent(asked("a"))
    return ahead


def test_all_is_sent_once_and_in_order() -> None:
    ahead = Ahead(Script([case("one", "a", "b"), case("two", "c"), case("three", "d")]))
    assert thrown_away(ahead, "one") == 0
    assert not ahead.has_sent(asked("a"))
    assert sent(ahead) == ["b", "c!", "d!"]
    assert ahead.has_sent(asked("b")) and sent(ahead) == []
    for name, request in (("two", "c"), ("three", "d")):
        assert thrown_away(ahead, name) == 0
        assert ahead.has_sent(asked(request))


def test_what_depends_on_an_answer_waits_and_so_does_all_behind_it() -> None:
    ahead = Ahead(Script([case("one", "a", is_whole=False), case("two", "c")]))
    thrown_away(ahead, "one")
    assert not ahead.has_sent(asked("a")) and sent(ahead) == []
    assert not ahead.has_sent(asked("depends on a")) and sent(ahead) == []
    thrown_away(ahead, "two")
    assert not ahead.has_sent(asked("c"))


def test_a_case_that_ends_early_costs_its_last_replies_and_no_others() -> None:
    ahead = begun(case("one", "a", "b", "c"), case("two", "d", "e"))
    assert sent(ahead) == ["b", "c", "d!", "e"]
    assert thrown_away(ahead, "two") == 2
    assert ahead.has_sent(asked("d")) and ahead.has_sent(asked("e"))


def test_a_case_that_is_skipped_is_thrown_away_whole() -> None:
    ahead = begun(case("one", "a"), case("two", "b"), case("three", "c"), case("four"))
    assert sent(ahead) == ["b!", "c!"]
    assert thrown_away(ahead, "three") == 1
    assert ahead.has_sent(asked("c"))


def test_another_request_than_those_on_their_way_starts_the_case_again() -> None:
    ahead = begun(case("one", "a", "b"), case("two", "c"), case("three", "d"))
    assert sent(ahead) == ["b", "c!", "d!"]
    with pytest.raises(Diverged):
        ahead.has_sent(asked("another"))
    assert sum(1 for _ in ahead.give_up()) == 3
    thrown_away(ahead, "one")
    for request in ("a", "another", "and more"):
        assert not ahead.has_sent(asked(request)) and sent(ahead) == []
    # What was thrown away is asked in its turn.
    for name, request in (("two", "c"), ("three", "d")):
        assert thrown_away(ahead, name) == 0
        assert not ahead.has_sent(asked(request)) and sent(ahead) == []


def test_a_request_beyond_the_script_keeps_the_next_case_waiting() -> None:
    ahead = Ahead(Script([case("one", "a"), case("two", "b"), case("three", "c", "d")]))
    thrown_away(ahead, "one")
    assert not ahead.has_sent(asked("more than a")) and sent(ahead) == []
    thrown_away(ahead, "two")
    assert not ahead.has_sent(asked("b")) and sent(ahead) == ["c!", "d"]


def test_no_more_is_on_its_way_than_a_socket_holds() -> None:
    requests = tuple(asked(str(number), size=10_000) for number in range(50))
    ahead = Ahead(Script([Expected("one", requests, is_whole=True)]))
    thrown_away(ahead, "one")
    ahead.has_sent(requests[0])
    assert sent(ahead) == ["1", "2", "3", "4"]
    assert ahead.has_sent(requests[1]) and sent(ahead) == ["5"]
    many = tuple(asked(str(number)) for number in range(50))
    ahead = Ahead(Script([Expected("one", many, is_whole=True)]))
    thrown_away(ahead, "one")
    ahead.has_sent(many[0])
    assert len(sent(ahead)) == 32


def test_without_a_script_nothing_is_sent() -> None:
    ahead = Ahead(Script())
    assert thrown_away(ahead, "one") == 0
    assert not ahead.has_sent(asked("a")) and sent(ahead) == []
