"""What checks expect of modules."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch

from grader.checking import (
    CheckFailed,
    expect_dropped,
    expect_new_draws,
    expect_parameters,
    expect_start,
    trained_parameters,
    with_state,
)

ALONG = {"B": "sequences", "D": "features"}


def test_dropout_of_a_result_is_told_in_its_own_words() -> None:
    torch.manual_seed(1)
    full = torch.randn(40, 50)
    kept = torch.nn.functional.dropout(full, 0.5)
    expect_dropped(kept, None, full, 0.5, axes=ALONG, what="number")
    for seen, told in (
        (full, "about 50% of the numbers dropped\n.* every number kept"),
        (kept / 2, "are kept grow by the wrong factor\n.* 2: each divided by 0.5, so .*\n.* 1$"),
        (kept * 1.5, "are kept grow by the wrong factor\n.* on average\n.* 3$"),
        (kept + 1.0 * (kept > 0), "leaves a wrong number at B="),
        (full * (torch.arange(40)[:, None] % 2) * 2, "a draw for each number"),
        (full * (kept[:20] != 0).repeat(2, 1) * 2, "some sequences alike\n.* a draw for each"),
    ):
        with pytest.raises(CheckFailed, match=told) as caught:
            expect_dropped(seen, None, full, 0.5, axes=ALONG, what="number")
        assert "weight" not in str(caught.value)


def test_a_spread_is_told_to_be_that_of_a_layer_as_it_was_made() -> None:
    torch.manual_seed(1)
    for weight, told in (
        (torch.nn.Linear(128, 256).weight, r"0\.051\d, as nn\.Linear starts by itself$"),
        (torch.randn(256, 128), r"\n.* \d\.\d+$"),
    ):
        with pytest.raises(CheckFailed, match=told):
            expect_start(weight, 128**-0.5, "w_q.weight")


def test_gradients_pass_through_the_dropout() -> None:
    torch.manual_seed(1)
    full = torch.randn(40, 50, requires_grad=True)
    seen = torch.nn.functional.dropout(full, 0.5)
    expect_dropped(seen, None, full, 0.5, axes=ALONG, inputs={"x": full})
    with pytest.raises(CheckFailed, match="No gradient reaches x"):
        expect_dropped(seen.detach(), None, full, 0.5, axes=ALONG, inputs={"x": full})


def test_two_calls_that_drop_the_same_are_told_when_they_do() -> None:
    first, second = torch.eye(2), torch.ones(2, 2)
    expect_new_draws(first, second, " with a mask")
    expect_new_draws(first * float("nan"), first * float("nan"))  # another check judges NaN
    with pytest.raises(CheckFailed, match="two calls with a mask give the same output"):
        expect_new_draws(first, first.clone(), " with a mask")


def test_dropout_with_the_share_to_keep_is_told_so() -> None:
    torch.manual_seed(1)
    full = torch.randn(40, 50)
    for p, got in ((0.8, r"80%, the share to keep$"), (0.5, r"\d+%$")):
        seen = torch.nn.functional.dropout(full, p) * (1 - p) / 0.8
        with pytest.raises(CheckFailed, match=rf"give or take .*\n  got       {got}"):
            expect_dropped(seen, None, full, 0.2, axes=ALONG)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("scale", "a plain attribute"),
        ("scale w", "a plain attribute"),
        ("w.bias", None),
        ("scale w.bias", None),
    ],
)
def test_numbers_beside_the_layers_are_told_where_they_belong(names: str, told: str | None) -> None:
    found = {name: torch.zeros(()) for name in ("w.weight", *names.split())}
    with pytest.raises(CheckFailed, match="unexpected") as caught:
        expect_parameters(found, {"w.weight": ()}, where="state_dict()")
    text = str(caught.value)
    assert told in text if told else "in words" not in text


def test_a_bias_that_the_state_gives_no_shape_is_too_much() -> None:
    class Waiting(torch.nn.Module):  # as the learner's module answers from its process
        def load_state_dict(self, *args: Any, **options: Any) -> Any:
            return super().load_state_dict(*args, **options).missing_keys

    state = {"w.weight": torch.ones(2, 3)}
    for bias in (False, True):
        module = Waiting()
        module.w = torch.nn.LazyLinear(2, bias=bias)
        with pytest.raises(CheckFailed, match="unexpected") if bias else nullcontext():
            with_state(module, state)


def test_a_module_does_not_choose_the_parameters_that_its_answers_are_compared_with() -> None:
    given, honest, liar = {"weight": torch.ones(2, 3)}, *(torch.nn.Linear(3, 2) for _ in range(2))
    liar.load_state_dict = lambda state, strict: ([], [])
    assert trained_parameters(with_state(honest, given), given)["weight"] is honest.weight
    with pytest.raises(CheckFailed, match="weight has other values than those that it was given"):
        trained_parameters(with_state(liar, given), given)
