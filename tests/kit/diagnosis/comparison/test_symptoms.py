"""What is told of a check without a name: a symptom, if one holds in every failing case."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from grader.diagnosis.comparison.diagnose import diagnose
from grader.misconceptions import Known, Symptom, symptom
from grader.types.report import Diagnosis, Kind, Way
from tests.kit.diagnosis.comparison.test_names import (
    CHECKS,
    SOLUTION,
    Chain,
    Check,
    in_place,
    recorded,
    share,
    x_of,
)

Function = Callable[..., Any]


def told(learner: Function, *own: Symptom) -> dict[str, str]:
    """The symptom that each failed check is told."""
    facts = recorded({"share": learner}, CHECKS)
    found = diagnose(facts, Known((), own), SOLUTION.__getitem__)
    assert all(each.kind is Kind.SYMPTOM for each in found.values())
    return {
        check.removeprefix("one."): each.id.removeprefix("symptom:")
        for check, each in found.items()
    }


def texts(learner: dict[str, Function], *cases: Check, **right: Function) -> list[str]:
    """The symptoms of a check in these cases, with `right` in place of the solution's functions."""
    facts = recorded(learner, {"check": cases})
    found = diagnose(facts, Known(), {**SOLUTION, **right}.__getitem__)
    return [each.text for each in found.values()]


TOLD: dict[str, tuple[Function, dict[str, str | None]]] = {
    "a factor that depends on the input": (
        lambda x, n: share(x, n) * n,
        {"values": "argument:x", "gradient": "argument:x"},
    ),
    "one size as a factor": (
        lambda x, n: share(x, n) * x.shape[-1] ** 0.5,
        {"values": "factor-of-size", "one": "factor-of-size", "gradient": "factor-of-size"},
    ),
    "a round factor, as large as a size": (
        lambda x, n: share(x, n) * x.shape[-1],
        {"values": "factor", "one": "factor", "gradient": "factor"},
    ),
    "turned axes": (
        lambda x, n: share(x, n).T if x.ndim == 2 else share(x, n),
        {"values": "axes:10", "one": "axes:10"},
    ),
    "no gradient": (lambda x, n: share(x, n).detach(), {"gradient": "no-gradient"}),
    "in place": (in_place, {"unchanged": "changes-argument", "gradient": "changes-argument"}),
    "in place, and wrong": (
        lambda x, n: torch.sin(in_place(x, n) * 7),
        {"values": "changed", "one": None, "unchanged": "changed", "gradient": "changed"},
    ),
    "another dtype": (lambda x, n: share(x, n).double(), {"values": "dtype", "one": "dtype"}),
    "a generator": (
        lambda x, n: (each for each in [share(x, n)]),
        {"values": "inside:iterator", "one": "inside:iterator"},
    ),
    "a tuple": (lambda x, n: (share(x, n),), {"values": "inside:tuple", "one": "inside:tuple"}),
    "pieces in a tuple": (
        lambda x, n: share(x, n).unbind(1) if x.ndim == 2 else share(x, n),
        {"values": "pieces", "one": "pieces"},
    ),
    "another relation in each case": (
        lambda x, n: share(x, n) * 7 if n == 2 else share(x, n) + 1,
        {"values": None, "one": "offset", "gradient": "factor"},
    ),
    "an error": (lambda x, n: share(x, 0), {}),
    "no relation": (lambda x, n: torch.sin(x * 7) + n, {}),
    "None": (lambda x, n: None, {}),
    "a number that no float holds": (lambda x, n: [10**400], {}),
    "complex numbers in a list": (lambda x, n: [1j] * len(x), {}),
    "complex numbers": (lambda x, n: share(x, n) * 1j, {}),
    "lists of several lengths": (lambda x, n: [[1.0], [2.0, 3.0]], {}),
    "no numbers": (lambda x, n: share(x, n)[:0], {}),
}


@pytest.mark.parametrize("learner, expected", TOLD.values(), ids=TOLD)
def test_a_symptom_is_told(learner: Function, expected: dict[str, str | None]) -> None:
    found = told(learner)
    assert {check: found.get(check) for check in expected} == expected
    assert expected or not found


def test_the_call_that_ended_the_check_is_told_not_one_that_it_accepted() -> None:
    def accepts_the_first(submission: Any) -> None:
        assert submission.share(x_of(2, 3), 1).shape == (2, 3)
        assert torch.equal(submission.share(x_of(2, 3), 2), x_of(2, 3) / 2)

    [told] = texts({"share": lambda x, n: x / n + n}, accepts_the_first)
    assert told == "Your result is the right one plus 2, at every position."


def test_a_tuple_that_holds_the_tensor_is_not_called_the_result() -> None:
    [told] = texts({"share": lambda x, n: (2 * share(x, n), n)}, *CHECKS["values"])
    assert told.startswith("The tensor in the tuple that you return is the right one")


def test_plain_numbers_are_compared_over_all_cases() -> None:
    def total(n: int) -> Check:
        def check(submission: Any) -> None:
            assert submission.share(x_of(4), n) == float(n)

        return check

    cases = [total(n) for n in (2, 3, 4)]
    [told] = texts({"share": lambda x, n: n / 8}, *cases, share=lambda x, n: float(n))
    assert told == "Your result is the right one times 0.125, in each failing call."


def marked(id: str) -> Symptom:
    @symptom(id, of="share", says="Your result is the right one for n + 1.")
    def one_more(got: Tensor, expected: Tensor, x: Tensor, n: int) -> bool:
        return torch.allclose(got, x / (n + 1))

    return next(value for value in vars(one_more).values() if isinstance(value, Symptom))


def test_an_authors_symptom_comes_before_those_of_the_kit() -> None:
    found = told(lambda x, n: x / (n + 1) if n else share(x, n), marked("one-more"))
    assert {found["values"], found["one"]} == {"one-more"}


def test_an_authors_symptom_takes_the_arguments_that_it_needs() -> None:
    more = Symptom("more", "share", "Too much.", None, lambda got, expected, n: bool(n))
    assert told(lambda x, n: share(x, n) + n, more)["values"] == "more"


def test_an_authors_symptom_proves_something_in_one_case() -> None:
    def one(submission: Any) -> None:
        assert torch.equal(submission.share(torch.ones(1), 2), torch.full((1,), 0.5))

    def found(*cases: Check) -> set[str]:
        facts = recorded({"share": lambda x, n: x / (n + 1)}, {"check": cases})
        known = Known((), (marked("one-more"),))
        return {each.id for each in diagnose(facts, known, SOLUTION.__getitem__).values()}

    assert found(one, *CHECKS["values"]) == {"symptom:one-more"}
    assert "symptom:one-more" not in found(one)


def test_an_authors_symptom_may_be_of_a_number() -> None:
    def holds(got: float, expected: float, x: Tensor, n: int) -> bool:
        return got < expected / 100

    little = Symptom("little", "share", "Your number is next to nothing.", None, holds)
    for got, found in ((0.1, {"little"}), (99.0, set())):
        facts = recorded({"share": lambda x, n, got=got: got}, CHECKS)
        diagnoses = diagnose(facts, Known((), (little,)), {"share": lambda x, n: 100.0}.__getitem__)
        assert {each.id.removeprefix("symptom:") for each in diagnoses.values()} == found


def test_an_authors_symptom_that_fails_is_none() -> None:
    def fails(got: Tensor, expected: Tensor, **given: Any) -> bool:
        raise RuntimeError

    broken = Symptom("broken", "share", "This never holds.", None, fails)
    assert "broken" not in told(lambda x, n: share(x, n) + 1, broken).values()


def test_a_symptom_needs_words() -> None:
    with pytest.raises(ValueError, match="says is empty"):
        symptom("silent", of="share", says=" ")


# --- of several results one ----------------------------------------------------------------------

X = torch.arange(12.0).reshape(3, 4) + 1


def odd(x: Tensor) -> Tensor:
    """Numbers in no relation to any other result here."""
    return torch.sin(x * 7)


@pytest.mark.parametrize(
    "first, second, expected",
    [
        (odd, torch.exp, {"symptom:only-wrong:0"}),
        (torch.sqrt, odd, {"symptom:only-wrong:1"}),
        (odd, odd, set()),
        (lambda x: torch.sqrt(x) * 7, torch.exp, {"symptom:factor"}),
    ],
)
def test_of_several_results_it_is_told_which_one_alone_is_wrong(
    first: Function, second: Function, expected: set[str]
) -> None:
    found = two_results(torch.exp, lambda x, n: (first(x), second(x)))
    assert {each.id for each in found.values()} == expected


@pytest.mark.parametrize(
    "one, expected",
    [
        (odd, "Only the first of the 3 tensors that you return is wrong."),
        (lambda x: x.sqrt() * 7, "The first of the 3 tensors that you return is the right one"),
    ],
)
def test_results_in_a_pair_of_their_own_are_counted_as_tensors(
    one: Function, expected: str
) -> None:
    def pair(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.exp(x), torch.log(x + 1)

    def check(submission: Any) -> None:
        output, _ = submission.share(X, 2)
        assert torch.equal(output, torch.sqrt(X))

    learner = {"share": lambda x, n: (one(x), pair(x))}
    [told] = texts(learner, check, share=lambda x, n: (torch.sqrt(x), pair(x)))
    assert told.startswith(expected)


def test_a_right_result_that_is_the_same_everywhere_does_not_count() -> None:
    assert two_results(torch.zeros_like, lambda x, n: (odd(x), torch.zeros_like(x))) == {}


def two_results(second: Function, learner: Function) -> dict[str, Diagnosis]:
    """The diagnosis of an answer that should be the roots, and the second function's numbers."""

    def check(submission: Any) -> None:
        given = submission.share(X, 2)
        assert torch.equal(given[0], torch.sqrt(X)) and torch.equal(given[1], second(X))

    facts = recorded({"share": learner}, {"both": [check]})
    solution = {"share": lambda x, n: (torch.sqrt(x), second(x))}
    return diagnose(facts, Known(), solution.__getitem__)


# --- only what is true of the failure --------------------------------------------------------


def test_an_argument_that_was_changed_does_not_explain_an_error_of_another_call() -> None:
    def stops(x: Tensor, n: int) -> Tensor:
        if n == 3:
            raise TypeError("n is 3")
        return x.div_(n)

    def check(submission: Any) -> None:
        submission.share(x_of(2, 3), 2)
        submission.share(x_of(2, 3), 3)

    assert texts({"share": stops}, check) == []


def test_a_result_that_is_almost_right_is_not_called_right_in_part() -> None:
    """For a check that is stricter than a replay, equal to its eyes is not right."""

    def coarse(x: Tensor, n: int) -> Tensor:
        steps = torch.tensor([1e-10, -1e-9, 1e-9, -2e-9], dtype=x.dtype)
        return x / n * (1 + steps)

    def check(submission: Any) -> None:
        x = torch.rand(5, 4, dtype=torch.float64) + 1
        assert torch.equal(submission.share(x, 2), x / 2)

    facts = recorded({"share": coarse}, {"exact": [check]})
    [case] = facts.cases
    facts = replace(facts, cases=(replace(case, way=Way.VALUES.value),))
    [told] = diagnose(facts, Known(), SOLUTION.__getitem__).values()
    assert told.text == "Your result is right to 8 or 9 digits only, as after a rounding."


def test_a_parameter_is_called_by_its_name() -> None:
    def start(turned: bool) -> Function:
        def made(size: int) -> Chain:
            chain = Chain(size)
            with torch.no_grad():
                for number, parameter in enumerate(chain.parameters()):
                    parameter.copy_(torch.arange(parameter.numel()).view(parameter.shape) + number)
                if turned:
                    chain.second.weight.copy_(chain.second.weight.clone().T)
            return chain

        return made

    def check(submission: Any) -> None:
        assert dict(submission.Chain(4).named_parameters())["second.weight"][0, 1] == 3

    [told] = texts({"Chain": start(turned=True)}, check, Chain=start(turned=False))
    assert told.startswith("second.weight holds the right numbers")


@pytest.mark.parametrize(
    "sizes, told",
    [((4,), "Only second.weight is wrong."), ((4, 5), "Only second.weight and second.bias are")],
)
def test_of_parameters_a_whole_layer_may_be_wrong(sizes: tuple[int, ...], told: str) -> None:
    """As a copy is that forgets a layer; in another case it may have no bias, or a right one."""

    def made(size: int, *, forgets: bool) -> Chain:
        chain = Chain(size)
        with torch.no_grad():
            for number, parameter in enumerate(chain.parameters()):
                values = torch.arange(parameter.numel()).view(parameter.shape) + number
                wrong = forgets and number > 1 and (size > 4 or parameter.ndim == 2)
                parameter.copy_(values.sin() if wrong else values)
        return chain

    def check(size: int) -> Check:
        def run(submission: Any) -> None:
            assert dict(submission.Chain(size).named_parameters())["second.weight"][0, 1] == 3

        return run

    wrong, right = (partial(made, forgets=forgets) for forgets in (True, False))
    [found] = texts({"Chain": wrong}, *map(check, sizes), Chain=right)
    assert found.startswith(told)


def test_layers_may_be_made_in_any_order() -> None:
    class Four(nn.Module):
        def __init__(self, names: str) -> None:
            super().__init__()
            for name in names:
                setattr(self, name, nn.Linear(4, 5))

    def check(submission: Any) -> None:
        module = submission.Chain("abcd")
        module.load_state_dict(Four("abcd").state_dict())
        assert not dict(module.named_parameters())

    assert texts({"Chain": lambda names: Four("abdc")}, check, Chain=Four) == []


def test_if_a_call_stops_other_buffers_are_no_symptom() -> None:
    class Buffered(nn.Module):
        def __init__(self, values: Tensor) -> None:
            super().__init__()
            self.register_buffer("mask", values)

        def forward(self, x: Tensor) -> Any:
            raise RuntimeError("stops")

    class Right(Buffered):
        def forward(self, x: Tensor) -> Any:
            return x

    def check(submission: Any) -> None:
        module = submission.Chain(torch.eye(3))
        dict(module.named_buffers())
        module(x_of(3, 2))

    assert texts({"Chain": lambda values: Buffered(values.bool())}, check, Chain=Right) == []


def test_parameters_that_a_module_does_not_have_are_named() -> None:
    class Listed(nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.first, self.others = nn.Linear(size, size), [nn.Linear(size, size)]

        def forward(self, x: Tensor) -> Any:
            return self.others[0](self.first(x))

    def check(submission: Any) -> None:
        chain, state = submission.Chain(2), Chain(2).state_dict()
        chain.load_state_dict(state, strict=False)
        with torch.no_grad():
            one = nn.functional.linear(x_of(3, 2), state["first.weight"], state["first.bias"])
            two = nn.functional.linear(one, state["second.weight"], state["second.bias"])
            assert torch.allclose(chain(x_of(3, 2)), two)

    [told] = texts({"Chain": Listed}, check)
    assert told.startswith("Your module lacks second.weight and second.bias. A layer counts if")
