"""The diagnosis: a mistake gets the name of the one that answers as it does, and no wrong one.

A made-up stage on tensors, its solution and some known mistakes; the facts are recorded by running
small checks on a learner's function that is local too.
"""

import gc
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from grader.diagnosis.comparison.diagnose import diagnose
from grader.diagnosis.comparison.replay import Replays
from grader.diagnosis.comparison.replies import to_float32
from grader.misconceptions import Known, Misconception
from grader.run.facts import Case, CaseFact, Ending, Exchange, PlannedCheck, StageFacts
from grader.run.failures import AnswerError
from grader.run.local_answers import LocalAnswers
from grader.run.remote import RemoteSubmission
from grader.run.under_check import StageUnderCheck
from grader.run.worker.wire import Frame
from grader.types.course import EntryPoint, Stage
from grader.types.report import Diagnosis, Kind

Function = Callable[..., Any]
Check = Callable[[Any], None]

STAGE = Stage(
    *("one", "One", 10, False, ()),
    (
        EntryPoint("share", ("tensor",)),
        EntryPoint("drop", ("tensor",)),
        EntryPoint("Chain", ("tensor",), is_class=True),
    ),
    Path(),
)


def recorded(
    learner: dict[str, Function],
    checks: dict[str, Sequence[Check]],
    answers: type[LocalAnswers] = LocalAnswers,
) -> StageFacts:
    """The facts of a stage whose checks are plain functions, one for each case."""
    under_check = StageUnderCheck(STAGE, answers((SOLUTION | learner).__getitem__))
    facts, planned = [], []
    for name, cases in checks.items():
        ids = [Case(f"one.{name}[{number}]", f"one.{name}") for number in range(len(cases))]
        planned.append(PlannedCheck(f"one.{name}", name, 1, tuple(ids)))
        for number, (case, check) in enumerate(zip(ids, cases, strict=True)):
            under_check.begin(seed=100 + number)
            ending = Ending.PASSED
            try:
                check(RemoteSubmission(under_check))
            except AnswerError:
                ending = Ending.RAISED
            except AssertionError:
                ending = Ending.WRONG
            facts.append(CaseFact(case, ending, exchanges=under_check.end()))
    return StageFacts(tuple(planned), tuple(facts))


def names(
    learner: dict[str, Function],
    checks: dict[str, Sequence[Check]],
    *known: Misconception,
    answers: type[LocalAnswers] = LocalAnswers,
) -> dict[str, str]:
    """The name that each failed check gets."""
    facts = recorded(learner, checks, answers)
    assert any(fact.ending in (Ending.WRONG, Ending.RAISED) for fact in facts.cases)
    found = diagnose(facts, Known(known), SOLUTION.__getitem__)
    # Nothing that was thought out for others before changes a name.
    replays = REPLAYS.setdefault(known, Replays())
    for _ in range(2):
        assert diagnose(interned(facts), Known(known), SOLUTION.__getitem__, replays) == found
    return {
        check.removeprefix("one."): diagnosis.id
        for check, diagnosis in found.items()
        if diagnosis.kind is Kind.NAME
    }


def said(
    learner: Function, checks: dict[str, Sequence[Check]], *more: Function, replaces: str = "share"
) -> dict[str, str]:
    """The diagnosis of each failed check, with one known mistake in `replaces`."""
    facts = recorded({replaces: learner}, checks)
    suspects = (*KNOWN, *(known(each, replaces) for each in more))
    found = diagnose(facts, Known(suspects), SOLUTION.__getitem__)
    return {check: each.text for check, each in found.items() if each.kind is Kind.NAME}


REPLAYS: dict[tuple[Misconception, ...], Replays] = {}
REQUESTS: list[Frame] = []


def interned(facts: StageFacts) -> StageFacts:
    """The facts with one and the same object for equal requests, as transcripts have them."""

    def same(request: Frame) -> Frame:
        found = next((known for known in REQUESTS if known == request), request)
        if found is request:
            REQUESTS.append(request)
        return found

    cases = tuple(
        replace(
            fact,
            exchanges=tuple(Exchange(same(each.request), each.reply) for each in fact.exchanges),
        )
        for fact in facts.cases
    )
    return replace(facts, cases=cases)


def known(implementation: Function, replaces: str = "share") -> Misconception:
    name = implementation.__name__
    return Misconception(name, replaces, f"You: {name}.", 2, implementation)


# --- the stage -------------------------------------------------------------------------------


def share(x: Tensor, n: int) -> Tensor:
    if n <= 0:
        raise ValueError(f"n={n} is not positive")
    return x / n


def drop(x: Tensor, p: float) -> Tensor:
    return x * (torch.rand_like(x) >= p) / (1 - p)


class Chain(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(size, size), nn.Linear(size, size)

    def forward(self, x: Tensor) -> Any:
        return self.second(self.first(x))


SOLUTION: dict[str, Function] = {"share": share, "drop": drop, "Chain": Chain}


def x_of(*shape: int, grad: bool = False) -> Tensor:
    values = torch.randn(*shape, generator=torch.Generator().manual_seed(1))
    return values.requires_grad_(grad)


def values(n: int) -> Check:
    def check(submission: Any) -> None:
        out: Tensor = submission.share(x_of(2, 3), n)
        assert out.dtype == torch.float32 and out.shape == (2, 3)
        assert torch.allclose(out, x_of(2, 3) / n)

    return check


def any_error(submission: Any) -> None:
    try:
        submission.share(x_of(2), 0)
    except ValueError:
        return
    raise AssertionError


def gradient(submission: Any) -> None:
    x = x_of(3, grad=True)
    out = submission.share(x, 2)
    assert out.requires_grad
    assert torch.autograd.grad(out.sum(), x)[0].tolist() == [0.5] * 3


def unchanged(submission: Any) -> None:
    x = x_of(3)
    submission.share(x, 2)
    assert torch.equal(x, x_of(3))


CHECKS: dict[str, Sequence[Check]] = {
    "values": [values(2), values(3)],
    "one": [values(1)],
    "zero": [any_error],
    "gradient": [gradient],
    "unchanged": [unchanged],
}


def multiplies(x: Tensor, n: int) -> Tensor:
    return share(x, n) * n * n


def ignores(x: Tensor, n: int) -> Tensor:
    return share(x, n) * n


def divides_by_zero(x: Tensor, n: int) -> Tensor:
    return x / n


def detaches(x: Tensor, n: int) -> Tensor:
    return share(x.detach(), n)


def in_place(x: Tensor, n: int) -> Tensor:
    share(x, n)
    return x.data.div_(n) if x.requires_grad else x.div_(n)


KNOWN = [known(f) for f in (multiplies, ignores, divides_by_zero, detaches, in_place)]


# --- named -----------------------------------------------------------------------------------

NAMED: dict[str, tuple[Function, dict[str, str]]] = {
    "multiplies": (
        lambda x, n: x * n if n > 0 else share(x, n),
        {"values": "multiplies", "gradient": "multiplies"},
    ),
    "ignores": (
        lambda x, n: x.clone() if n > 0 else share(x, n),
        {"values": "ignores", "gradient": "ignores"},
    ),
    "divides_by_zero": (lambda x, n: x * (1 / n) if n else x / n, {"zero": "divides_by_zero"}),
    "detaches": (lambda x, n: share(x, n).detach(), {"gradient": "detaches"}),
    "in_place": (in_place, {"unchanged": "in_place", "gradient": "in_place"}),
}


@pytest.mark.parametrize("learner, expected", NAMED.values(), ids=NAMED)
def test_a_mistake_that_answers_the_same_everywhere_is_named(
    learner: Function, expected: dict[str, str]
) -> None:
    assert names({"share": learner}, CHECKS, *KNOWN) == expected


def test_a_diagnosis_says_what_its_author_wrote() -> None:
    facts = recorded({"share": multiplies}, CHECKS)
    found = diagnose(facts, Known(KNOWN), SOLUTION.__getitem__)
    assert found["one.values"] == Diagnosis("multiplies", "You: multiplies.", 2)


def test_rounding_does_not_hide_a_mistake() -> None:
    learner = {"share": lambda x, n: (share(x, n).double() * n * n).float() * (1 + 1e-5)}
    assert names(learner, CHECKS, *KNOWN)["values"] == "multiplies"


def test_the_order_of_the_known_does_not_matter() -> None:
    for order in (KNOWN, KNOWN[::-1]):
        assert names({"share": ignores}, CHECKS, *order)["values"] == "ignores"


@pytest.mark.parametrize("size, is_kept", [(100, True), (100_000, False)])
def test_what_was_answered_is_kept_for_others_unless_it_is_large(size: int, is_kept: bool) -> None:
    asked = []

    def forgets(x: Tensor, n: int) -> Tensor:
        asked.append(n)
        return x.clone()

    def check(submission: Any) -> None:
        assert torch.equal(submission.share(x_of(size), 2), x_of(size) / 2)

    facts = interned(recorded({"share": forgets}, {"values": [check]}))
    asked.clear()
    replays = Replays(200_000)
    for _ in range(3):
        found = diagnose(facts, Known((known(forgets),)), SOLUTION.__getitem__, replays)
        assert found["one.values"].id == "forgets"
    assert (len(asked) == 1) == is_kept


def test_a_misconception_whose_run_is_known_does_not_answer_again() -> None:
    asked = []

    def forgets(x: Tensor, n: int) -> Tensor:
        asked.append(n)
        return x.clone()

    facts = recorded({"share": forgets}, {"values": [values(2), values(3)]})
    replays = Replays()
    replays.learn("forgets", facts, SOLUTION.__getitem__)
    asked.clear()
    found = diagnose(facts, Known((known(forgets),)), SOLUTION.__getitem__, replays)
    assert found["one.values"].id == "forgets"
    assert not asked


def test_stages_with_functions_of_one_name_have_answers_of_their_own() -> None:
    [fact] = recorded({"share": multiplies}, {"values": [values(2)]}).cases
    replays = Replays()
    [one] = replays.of_solution("one.values", fact.exchanges, {"share": share}.__getitem__)
    [two] = replays.of_solution("two.values", fact.exchanges, {"share": multiplies}.__getitem__)
    assert not torch.equal(one.value, two.value)


# --- not named -------------------------------------------------------------------------------

UNKNOWN: dict[str, Function] = {
    "like one in the first case, like none in the second": (
        lambda x, n: share(x, n) * n * n if n <= 2 else x + n
    ),
    "like one in one case, like another in the other": (
        lambda x, n: share(x, n) * (n * n if n <= 2 else n)
    ),
    "another mistake": lambda x, n: share(x, n) + 1,
    "nearly one": lambda x, n: share(x, n) * n * n * 1.01,
    "another shape": lambda x, n: (share(x, n) * n * n)[None],
    "another dtype": lambda x, n: (share(x, n) * n * n).double(),
    "NaN": lambda x, n: share(x, n) * float("nan"),
    "None": lambda x, n: None,
    "a list": lambda x, n: (share(x, n) * n * n).tolist(),
    "an error": lambda x, n: share(x, 0),
    "too few arguments": lambda x: x,
}


@pytest.mark.parametrize("learner", UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_mistake_gets_no_name(learner: Function) -> None:
    checks = {name: CHECKS[name] for name in ("values", "one")}
    assert names({"share": learner}, checks, *KNOWN) == {}


def raises_at_seven(x: Tensor, n: int) -> Tensor:
    if n == 7:
        raise RuntimeError("seven")
    return multiplies(x, n)


@pytest.mark.parametrize(
    ("learner", "verb"),
    [
        (lambda x, n: share(x, n) * n * n if n < 7 else share(x, n) + 1, "does"),
        (raises_at_seven, "may"),
    ],
    ids=["another mistake", "an exception"],
)
def test_where_something_else_is_wrong_too_the_name_stands_for_its_own_checks(
    learner: Function, verb: str
) -> None:
    words = f"You: multiplies. (This {verb} not explain every check that fails.)"
    assert said(learner, CHECKS)["one.values"] == "You: multiplies."
    found = said(learner, CHECKS | {"seven": [values(7)]})
    assert found["one.values"] == words
    assert "one.seven" not in found


def test_two_exceptions_that_differ_are_two_mistakes() -> None:
    def raises(x: Tensor, n: int) -> Tensor:
        raise RuntimeError("too few" if n < 7 else "too many")

    def learner(x: Tensor, n: int) -> Tensor:
        raise RuntimeError("too few")

    checks = {"three": [values(3)], "four": [values(4)], "seven": [values(7)]}
    assert "three" in names({"share": raises}, checks, known(raises))
    assert names({"share": learner}, checks, known(raises)) == {}


def test_a_name_needs_more_cases_for_it_than_against_it() -> None:
    learner = {"share": lambda x, n: share(x, n) * n * n if n == 3 else share(x, n) + 1}
    checks = {"three": [values(3)], "four": [values(4)], "five": [values(5)]}
    assert names(learner, checks, *KNOWN) == {}


def test_a_right_answer_where_the_known_one_is_wrong_contradicts_it() -> None:
    learner = {"share": lambda x, n: share(x, n) * n * n if n < 7 else share(x, n)}
    assert names(learner, CHECKS | {"seven": [values(7)]}, *KNOWN) == {}


def test_a_tie_gives_no_name() -> None:
    def also_multiplies(x: Tensor, n: int) -> Tensor:
        return multiplies(x, n)

    twins = [known(multiplies), known(also_multiplies)]
    assert names({"share": multiplies}, CHECKS, *twins) == {}
    assert names({"share": multiplies}, CHECKS, *twins, known(ignores)) == {}


def test_no_known_mistakes_give_no_names() -> None:
    assert names({"share": multiplies}, CHECKS) == {}


def test_a_check_that_died_is_not_diagnosed_and_contradicts_nothing() -> None:
    facts = recorded({"share": multiplies}, CHECKS)
    dead = CaseFact(
        Case("one.loop[0]", "one.loop"), Ending.TIMED_OUT, exchanges=facts.cases[1].exchanges
    )
    with_dead = StageFacts(facts.planned, (*facts.cases, dead))
    found = diagnose(with_dead, Known(KNOWN), SOLUTION.__getitem__)
    assert set(found) == {"one.values", "one.gradient"}


# --- two at once -----------------------------------------------------------------------------


def multiplies_and_divides_by_zero(x: Tensor, n: int) -> Tensor:
    return x * n if n else x / n


def test_the_words_are_as_strong_as_the_evidence() -> None:
    def another_edge(x: Tensor, n: int) -> Tensor:
        return multiplies(x, n) if n > 0 else x + 1

    def another_dtype(x: Tensor, n: int) -> Tensor:
        return x * 1.5 if x.dtype == torch.float64 else divides_by_zero(x, n)

    def in_double(submission: Any) -> None:
        x = x_of(2, 3).double()
        assert torch.allclose(submission.share(x, 2), x / 2)

    words = "You: multiplies. (In some edge cases your code does something else.)"
    assert said(another_edge, CHECKS) == {"one.values": words, "one.gradient": words}
    words = "You: divides_by_zero. (This may not explain every check that fails.)"
    assert said(another_dtype, CHECKS | {"double": [in_double]}) == {"one.zero": words}
    assert said(multiplies, CHECKS)["one.values"] == "You: multiplies."


def test_of_several_that_differ_in_edge_cases_the_first_is_named() -> None:
    learner = {"share": lambda x, n: multiplies(x, n) if n > 0 else x + 1}
    both = known(multiplies_and_divides_by_zero)
    found = names(learner, CHECKS, *KNOWN, both)
    assert found == {"values": "multiplies", "gradient": "multiplies"}


def test_two_mistakes_are_each_named_at_their_own_check() -> None:
    found = names({"share": multiplies_and_divides_by_zero}, CHECKS, *KNOWN)
    assert found == {"values": "multiplies", "gradient": "multiplies", "zero": "divides_by_zero"}


def test_the_two_known_together_win_over_each_alone() -> None:
    both = known(multiplies_and_divides_by_zero)
    found = names({"share": multiplies_and_divides_by_zero}, CHECKS, *KNOWN, both)
    assert set(found) == {"values", "gradient", "zero"}
    assert set(found.values()) == {"multiplies_and_divides_by_zero"}


def test_one_mistake_is_not_taken_for_two() -> None:
    both = known(multiplies_and_divides_by_zero)
    found = names({"share": multiplies}, CHECKS, *KNOWN, both)
    assert set(found.values()) == {"multiplies"}


def test_a_mistake_in_another_function_does_not_disturb() -> None:
    def doubles(x: Tensor, p: float) -> Tensor:
        return x * 2

    def drops_nothing(submission: Any) -> None:
        assert torch.equal(submission.drop(x_of(2), 0.0), x_of(2))

    checks = CHECKS | {"nothing": [drops_nothing]}
    learner = {"share": multiplies, "drop": doubles}
    found = names(learner, checks, *KNOWN, known(doubles, "drop"))
    assert found == {"values": "multiplies", "gradient": "multiplies", "nothing": "doubles"}


# --- errors ----------------------------------------------------------------------------------


def raises(kind: type[Exception], message: str, *, at: Callable[[int], bool]) -> Function:
    def raising(x: Tensor, n: int) -> Tensor:
        if at(n):
            raise kind(message)
        return share(x, n)

    return raising


@pytest.mark.parametrize(
    "kind, message, at_zero, named",
    [
        (TypeError, "the same", True, True),
        (TypeError, "other words", True, True),  # an error was due: its words are free
        (KeyError, "the same", True, False),
        (TypeError, "the same", False, True),
        (TypeError, "other words", False, False),  # no error was due: which one it is matters
        (KeyError, "the same", False, False),
    ],
)
def test_errors_are_the_same_by_type_and_by_words_where_none_was_due(
    kind: type[Exception], message: str, at_zero: bool, named: bool
) -> None:
    def at(n: int) -> bool:
        return n == 0 if at_zero else n == 3

    learner = raises(TypeError, "the same", at=at)
    found = names({"share": learner}, CHECKS, known(raises(kind, message, at=at)))
    assert found == ({"zero" if at_zero else "values": "raising"} if named else {})


def test_state_of_other_sizes_is_the_same_mistake_in_a_class_of_another_name() -> None:
    class Wide(Chain):
        def __init__(self, size: int) -> None:
            super().__init__(3 * size)

    class MyOwnLinearLayersOneAfterTheOther(Wide):
        """The message about this one is longer than is looked at."""

    def check(submission: Any) -> None:
        chain = submission.Chain(2)
        chain.load_state_dict(Chain(2).state_dict())

    learner = {"Chain": MyOwnLinearLayersOneAfterTheOther}
    assert names(learner, {"loads": [check]}, known(Wide, "Chain")) == {"loads": "Wide"}


def test_layers_of_other_sizes_are_the_same_mistake_in_any_order_and_however_they_start() -> None:
    class Wide(Chain):
        def __init__(self, size: int) -> None:
            super().__init__(3 * size)

    class Turned(nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.second, self.first = (nn.Linear(3 * size, 3 * size) for _ in range(2))

    def check(submission: Any) -> None:
        chain = submission.Chain(2)
        try:
            chain.load_state_dict(Chain(2).state_dict())
        finally:
            shapes = [tuple(tensor.shape) for _, tensor in chain.named_parameters()]
        assert shapes == [(2, 2), (2,)] * 2

    found = names({"Chain": Turned}, {"loads": [check]}, known(Wide, "Chain"))
    assert found == {"loads": "Wide"}


def test_the_same_exception_may_come_from_another_class_or_attribute() -> None:
    class Learner(nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.size = size

        def forward(self, y: Tensor, /) -> Tensor:
            return y

    class AnotherName(Learner):
        def forward(self, z: Tensor, /) -> Tensor:
            return z

    def named(submission: Any) -> None:
        submission.Chain(3)(x=x_of(2, 3))

    found = names({"Chain": Learner}, {"named": [named]}, known(AnotherName, "Chain"))
    assert found == {"named": "AnotherName"}

    def reads_data(x: Tensor, n: int) -> Tensor:
        return None.data

    def reads_fill(x: Tensor, n: int) -> Tensor:
        return None.fill_

    found = names({"share": reads_data}, {"values": [values(2)]}, known(reads_fill))
    assert found == {"values": "reads_fill"}


def test_where_others_fail_for_another_reason_an_exception_alone_gives_no_name() -> None:
    learner = {"share": lambda x, n: share(x, n).T @ x.new_ones(3) if n < 7 else share(x, n) + 1}

    def sums(x: Tensor, n: int) -> Tensor:
        return share(x, n).T @ x.new_ones(3) if n < 7 else share(x, n) - 1

    checks = {"two": [values(2)], "three": [values(3)], "seven": [values(7)]}
    assert names(learner, checks, known(sums)) == {}


def test_an_exception_in_other_words_speaks_for_a_mistake_if_an_answer_does() -> None:
    def raising(at: int, words: str) -> Function:
        def multiplied(x: Tensor, n: int) -> Tensor:
            if n >= at:
                raise RuntimeError(words)
            return multiplies(x, n)

        return multiplied

    checks = {"two": [values(2)], "seven": [values(7)], "eight": [values(8)]}
    suspect = known(raising(7, "einsum(): 2 and 3"))
    found = names({"share": raising(7, "matmul: 3 and 2")}, checks, suspect)
    assert found == dict.fromkeys(checks, "multiplied")
    only_raises = known(raising(2, "einsum(): 2 and 3"))
    assert names({"share": raising(2, "matmul: 3 and 2")}, checks, only_raises) == {}


def test_beside_an_unknown_mistake_an_exception_alone_gives_no_name() -> None:
    def raises(x: Tensor, n: int) -> Tensor:
        if n >= 7:
            raise RuntimeError("3 and 2")
        return share(x, n)

    def raises_or_adds(x: Tensor, n: int) -> Tensor:
        return raises(x, n) if n != 2 else x + n

    checks = {"two": [values(2)], "seven": [values(7)], "eight": [values(8)]}
    assert set(names({"share": raises}, checks, known(raises))) == {"seven", "eight"}
    assert names({"share": raises_or_adds}, checks, known(raises)) == {}


def test_an_exception_alone_names_no_mistake_that_answers_otherwise_elsewhere() -> None:
    def raising(of_zero: float) -> Function:
        def raises(x: Tensor, n: int) -> Tensor:
            if n >= 7:
                raise RuntimeError("3 and 2")
            return share(x, n) if n else x + of_zero

        return raises

    checks = {"seven": [values(7)], "zero": [any_error]}
    assert names({"share": raising(1)}, checks, known(raising(2))) == {}
    assert set(names({"share": raising(1)}, checks, known(raising(1)))) == set(checks)


def test_what_follows_after_the_suspect_raised_is_still_compared() -> None:
    def twice(submission: Any) -> None:
        for n in (0, 2):
            with suppress(ValueError):
                assert torch.allclose(submission.share(x_of(2), n), x_of(2) / n)

    found = names({"share": multiplies_and_divides_by_zero}, {"twice": [twice]}, *KNOWN)
    assert found == {}, "each explains one of the two answers: a tie"
    both = known(multiplies_and_divides_by_zero)
    found = names({"share": multiplies_and_divides_by_zero}, {"twice": [twice]}, *KNOWN, both)
    assert found == {"twice": both.id}


def test_gradients_belong_to_their_calls_whichever_call_raised() -> None:
    """The learner answers n = 0 and the suspect raises, so their calls count differently."""

    def only_in_value(x: Tensor, n: int) -> Tensor:
        return share(x, n) + (x * (n - 1 / n)).detach()

    def zero_then_gradient(submission: Any) -> None:
        with suppress(ValueError):
            submission.share(x_of(3), 0)
        gradient(submission)

    suspects = [known(multiplies), known(only_in_value)]
    learner = {"share": multiplies_and_divides_by_zero}
    assert names(learner, {"both": [zero_then_gradient]}, *suspects) == {"both": "multiplies"}


# --- precision -------------------------------------------------------------------------------


def kind(submission: Any) -> None:
    assert submission.share(x_of(2, 3), 2).dtype in (torch.float32, torch.float64)


def rounded(x: Tensor) -> Tensor:
    """The same numbers but for a rounding that float64 shows and float32 does not."""
    return ((x.float() + 10) - 10).to(x.dtype)


def in_double(submission: Any) -> None:
    x = x_of(2, 3).double()
    out = submission.share(x, 2)
    assert out.dtype == torch.float64
    assert torch.allclose(out, x / 2, atol=1e-5)


def test_an_answer_that_passes_is_right_whatever_its_rounding() -> None:
    def learner(x: Tensor, n: int) -> Tensor:
        return share(rounded(x), n) if n == 2 else multiplies(x, n)

    checks: dict[str, Sequence[Check]] = {"values": [values(n) for n in (3, 4, 5)]}
    assert names({"share": learner}, checks, *KNOWN) == {"values": "multiplies"}
    assert names({"share": learner}, checks | {"double": [in_double]}, *KNOWN) == {}


def test_a_rounding_is_not_what_is_wrong_with_an_answer_that_is_far_off() -> None:
    learner = {"share": lambda x, n: multiplies(rounded(x), n)}
    checks: dict[str, Sequence[Check]] = {"values": [values(3)], "double": [in_double]}
    assert names(learner, checks, *KNOWN) == {
        "values": "multiplies",
        "double": "multiplies",
    }


def test_float64_is_named_like_float32_if_the_checks_accept_both() -> None:
    def learner(x: Tensor, n: int) -> Tensor:
        return multiplies(x.double(), n)

    values_of: dict[str, Sequence[Check]] = {"values": [in_any_float]}
    assert names({"share": learner}, {"kind": [kind], **values_of}, *KNOWN) == {
        "values": "multiplies"
    }
    assert names({"share": learner}, values_of, *KNOWN) == {}


def in_any_float(submission: Any) -> None:
    assert torch.allclose(submission.share(x_of(2, 3), 3).float(), x_of(2, 3) / 3)


# --- randomness ------------------------------------------------------------------------------


def spread(submission: Any) -> None:
    out = submission.drop(torch.ones(4000), 0.5)
    assert abs(float(out.mean()) - 1) < 0.2


def at_zero(submission: Any) -> None:
    assert torch.equal(submission.drop(x_of(2), 0.0), x_of(2))


DROPS: dict[str, Sequence[Check]] = {"spread": [spread], "at zero": [at_zero]}


def unscaled(x: Tensor, p: float) -> Tensor:
    return x * (torch.rand_like(x) >= p)


def doubled_at_zero(x: Tensor, p: float) -> Tensor:
    return drop(x, p) if p else 2 * x


def test_a_mistake_that_draws_the_same_numbers_is_named() -> None:
    learner = {"drop": lambda x, p: torch.where(torch.rand(x.shape) < p, torch.zeros(()), x)}
    assert names(learner, DROPS, known(unscaled, "drop")) == {"spread": "unscaled"}


def test_right_numbers_drawn_in_another_way_take_no_name_away() -> None:
    learner = {"drop": lambda x, p: nn.functional.dropout(x, p) if p else 2 * x}
    suspects = [known(unscaled, "drop"), known(doubled_at_zero, "drop")]
    assert names(learner, DROPS, *suspects) == {"at zero": "doubled_at_zero"}


def test_a_wrong_answer_that_nothing_explains_takes_the_names_of_the_others() -> None:
    def learner(x: Tensor, p: float) -> Tensor:
        torch.rand(1)
        return unscaled(x, p) if p else 2 * x

    suspects = [known(unscaled, "drop"), known(doubled_at_zero, "drop")]
    assert names({"drop": learner}, DROPS, *suspects) == {}


# --- modules ---------------------------------------------------------------------------------


class SkipsSecond(Chain):
    def forward(self, x: Tensor) -> Any:
        return self.first(x)


class Zeros(Chain):
    def __init__(self, size: int) -> None:
        super().__init__(size)
        nn.init.zeros_(self.first.bias)
        nn.init.zeros_(self.second.bias)


class Ones(Chain):
    def __init__(self, size: int) -> None:
        super().__init__(size)
        nn.init.ones_(self.first.bias)
        nn.init.ones_(self.second.bias)


def linear(x: Tensor, parameters: dict[str, Tensor], name: str) -> Tensor:
    return x @ parameters[f"{name}.weight"].T + parameters[f"{name}.bias"]


def chained(submission: Any) -> None:
    module = submission.Chain(3)
    own = dict(module.named_parameters())
    out = module(x_of(2, 3))
    assert torch.allclose(out, linear(linear(x_of(2, 3), own, "first"), own, "second"), atol=1e-6)


def biased(submission: Any) -> None:
    own = dict(submission.Chain(3).named_parameters())
    assert not set(own["first.bias"].tolist()) & {0.0, 1.0}


def spread_of_weights(submission: Any) -> None:
    own = dict(submission.Chain(80).named_parameters())
    assert float(own["first.weight"].detach().std()) > 0.05


MODULES: dict[str, Sequence[Check]] = {
    "chained": [chained],
    "biased": [biased],
    "spread": [spread_of_weights],
}
KNOWN_MODULES = [known(each, "Chain") for each in (SkipsSecond, Zeros, Ones)]


class InAnotherOrder(nn.Module):
    """The layers made in another order have other random weights under the same names."""

    def __init__(self, size: int) -> None:
        super().__init__()
        second = nn.Linear(size, size)
        self.first = nn.Linear(size, size)
        self.second = second

    def forward(self, x: Tensor) -> Any:
        return self.first(x)


@torch.no_grad()
def shaped(submission: Any) -> None:
    assert submission.Chain(3)(x_of(2, 3)).shape == (2, 3)


def test_other_random_weights_are_no_edge_case() -> None:
    checks: dict[str, Sequence[Check]] = {"shaped": [shaped], "chained": [chained]}
    found = said(InAnotherOrder, checks, SkipsSecond, replaces="Chain")
    assert found == {"one.chained": "You: SkipsSecond."}


class NotANumber(Chain):
    def __init__(self, size: int) -> None:
        super().__init__(size)
        nn.init.constant_(self.first.weight, float("nan"))


@pytest.mark.parametrize(
    "learner, expected",
    [
        (SkipsSecond, {"chained": "SkipsSecond"}),
        (InAnotherOrder, {"chained": "SkipsSecond"}),
        (Zeros, {"biased": "Zeros"}),
        (Ones, {"biased": "Ones"}),
        (NotANumber, {}),
    ],
)
def test_modules_are_compared_on_the_learners_own_weights(
    learner: type[nn.Module], expected: dict[str, str]
) -> None:
    assert names({"Chain": learner}, MODULES, *KNOWN_MODULES) == expected


def test_no_module_of_a_suspect_outlives_the_diagnosis(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class is diagnosed for hours: what suspects have made would fill the memory."""
    made: weakref.WeakSet[nn.Module] = weakref.WeakSet()

    class Kept(Chain):
        def __init__(self, size: int) -> None:
            super().__init__(size)
            made.add(self)

    class KeptZeros(Kept, Zeros):
        pass

    monkeypatch.setitem(SOLUTION, "Chain", Kept)
    facts = recorded({"Chain": SkipsSecond}, MODULES)
    suspects = Known((known(KeptZeros, "Chain"), known(SkipsSecond, "Chain")))
    replays = Replays()
    assert diagnose(facts, suspects, SOLUTION.__getitem__, replays)
    gc.collect()
    assert not len(made)


# --- what a check gives ------------------------------------------------------------------------

SOURCE = "import torch\nclass Layer(torch.nn.Linear): pass\ndef double(x): return 2 * x"


def half(x: Tensor, p: Any) -> Tensor:
    """What the solution's `drop` would be if it took a function or a module."""
    return p(x) / 2


def forgets_to_halve(x: Tensor, p: Any) -> Tensor:
    return p(x)


def given(submission: Any) -> None:
    double = submission.given(SOURCE, "double")
    layer = submission.given(SOURCE, "Layer", 2, 2)
    layer.load_state_dict({"weight": torch.eye(2), "bias": torch.zeros(2)})
    x = x_of(3, 2)
    assert torch.allclose(submission.drop(x, double), x)
    assert torch.allclose(submission.drop(x, layer), x / 2)
    assert submission.held_by(layer) == [(2,), (2, 2)]


def test_what_a_check_gives_is_given_to_every_suspect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOLUTION, "drop", half)
    known_drop = known(forgets_to_halve, "drop")
    found = names({"drop": forgets_to_halve}, {"given": [given]}, known_drop)
    assert found == {"given": "forgets_to_halve"}


class Late(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.first = nn.LazyLinear(size)

    def forward(self, x: Tensor) -> Any:
        return self.first(x)


class LateTwice(Late):
    def forward(self, x: Tensor) -> Any:
        return 2 * super().forward(x)


def late(submission: Any) -> None:
    module = submission.Chain(3)
    assert not list(module.named_parameters())
    x = x_of(2, 4)
    module(x)
    assert torch.allclose(module(x), linear(x, dict(module.named_parameters()), "first"), atol=1e-6)


def test_lazy_parameters_are_compared_once_they_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOLUTION, "Chain", Late)
    found = names({"Chain": LateTwice}, {"late": [late]}, known(LateTwice, "Chain"))
    assert found == {"late": "LateTwice"}


# --- hostile ---------------------------------------------------------------------------------

REPLIES: dict[str, dict[str, Any]] = {
    "an error that is text": {"error": "text"},
    "an error that is a list": {"error": []},
    "a call that is a list": {"call": [], "value": None},
    "a handle that is a list": {"value": {"handle": []}},
    "a handle that is an object": {"value": {"handle": {}}},
    "a value of no kind": {"value": [1]},
    "a value nested without end": {"value": {"list": [{"list": [{"x": 1}]}]}},
    "arrays that are none": {"arrays": 5},
    "changes that are none": {"value": None, "changed": {"x": 1}},
    "nothing": {},
}


@pytest.mark.parametrize("header", REPLIES.values(), ids=REPLIES)
def test_a_hostile_reply_has_no_name_and_breaks_nothing(header: dict[str, Any]) -> None:
    class Hostile(LocalAnswers):
        def answer(self, request: Frame) -> Frame:
            return Frame(header)

    assert names({}, CHECKS | MODULES, *KNOWN, *KNOWN_MODULES, answers=Hostile) == {}


@pytest.mark.parametrize(
    "pairs",
    [
        {"list": [{"tuple": ["first.bias", 1]}]},
        {"list": [{"tuple": [{"list": []}, {"tensor": 0}]}]},
        {"list": [{"tuple": ["first.bias", {"ndarray": 0}]}]},
        {"list": [1, 2, 3, 4]},
        {"list": [None] * 4},
    ],
    ids=str,
)
def test_hostile_parameters_have_no_name_and_break_nothing(pairs: dict[str, Any]) -> None:
    array = {"dtype": "float32", "shape": [3], "device": "cpu"}

    class Hostile(LocalAnswers):
        def answer(self, request: Frame) -> Frame:
            if request.header["target"].get("method") == "named_parameters":
                return Frame({"value": pairs, "arrays": [array]}, bytes(12))
            return super().answer(request)

    assert names({}, MODULES, *KNOWN_MODULES, answers=Hostile) == {}


def test_numbers_too_large_for_float32_cause_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    assert to_float32([np.full(2, 1e300)])[0].tolist() == [np.inf, np.inf]
    assert not recwarn
