"""What is told of starting values: each drawn, so only their kind can be compared."""

import sys

import pytest
import torch
from torch import Tensor, nn

from grader.diagnosis.comparison.starts import (
    misshapen_alike,
    other_names,
    start_alike,
    start_of,
    start_symptom,
)

Start = dict[str, Tensor]
SIZE = 80


def start(**changed: Tensor) -> Start:
    """The parameters of two layers, some of them changed; a dot is written as two underscores."""
    made = {}
    for layer in ("one", "two"):
        made[f"{layer}.weight"] = nn.init.xavier_uniform_(torch.empty(SIZE, SIZE))
        made[f"{layer}.bias"] = torch.zeros(SIZE)
    return made | {name.replace("__", "."): tensor for name, tensor in changed.items()}


def wide(factor: float) -> Tensor:
    return nn.init.xavier_normal_(torch.empty(SIZE, SIZE), gain=factor)


TOLD = {
    "right": (lambda: start(one__weight=wide(1)), ""),
    "another spread, which the check may allow": (lambda: start(two__weight=wide(0.3)), ""),
    "random biases beside it": (
        lambda: start(one__weight=wide(2), one__bias=torch.rand(SIZE)),
        "one.bias starts with other numbers than 0.",
    ),
    "no random numbers": (
        lambda: start(two__weight=torch.zeros(SIZE, SIZE)),
        "two.weight starts with 0 at every position, not with random numbers.",
    ),
    "random biases": (
        lambda: start(one__bias=torch.rand(SIZE)),
        "one.bias starts with other numbers than 0.",
    ),
    "biases of one": (
        lambda: start(one__bias=torch.ones(SIZE)),
        "one.bias starts with other numbers than 0.",
    ),
    "NaN": (lambda: start(one__weight=torch.full((SIZE, SIZE), torch.nan)), ""),
    "other names": (
        lambda: {f"layers.{name}": tensor for name, tensor in start().items()},
        (
            "Your parameters have the right shapes, but other names: layers.one.weight, not "
            "one.weight, and so on."
        ),
    ),
    "no layers": (
        lambda: {"one": wide(1), "two": wide(1)},
        (
            "one and two are bare parameters. one must be a layer, which holds one.weight and "
            "one.bias."
        ),
    ),
    "one of them no layer": (
        lambda: {"one": wide(1), "two.weight": wide(1)},
        "one is a bare parameter. one must be a layer, which holds one.weight and one.bias.",
    ),
    "two in one": (
        lambda: {"both.weight": torch.cat([wide(1), wide(1)]), "both.bias": torch.zeros(2 * SIZE)},
        (
            "both.weight is as large as 2 of the missing parameters together, such as one.weight. "
            "Here each has a layer of its own."
        ),
    ),
    "others of another size in one": (lambda: {"both.weight": wide(1)[:-1].repeat(2, 1)}, ""),
    "other shapes": (lambda: start(one__bias=torch.zeros(1)), ""),
    "one is missing": (lambda: dict(list(start().items())[1:]), ""),
}


@pytest.mark.parametrize("made, text", TOLD.values(), ids=TOLD)
def test_what_is_wrong_with_a_start(made: object, text: str) -> None:
    assert callable(made)
    torch.manual_seed(1)
    found = start_symptom([(made(), start()), (list(made().items()), list(start().items()))])
    assert (found or ("", ""))[1] == text


def test_starts_that_are_wrong_in_different_ways_are_told_nothing() -> None:
    one, two = start(one__bias=torch.ones(SIZE)), start(two__bias=torch.ones(SIZE))
    assert start_symptom([(one, start()), (two, start())]) is None


def test_the_order_of_the_parameters_does_not_matter() -> None:
    turned = dict(reversed(start().items()))
    assert start_alike(turned, start())
    assert not start_alike(turned, start(one__bias=torch.ones(SIZE)))


def test_how_parameters_of_another_shape_start_does_not_matter() -> None:
    def cut(bias: float) -> Start:
        return start(one__weight=wide(1)[:9], one__bias=torch.full((SIZE,), bias))

    assert misshapen_alike(cut(0.5), cut(0.0), start())
    assert not misshapen_alike(cut(0.5), start(one__weight=wide(1)[:8]), start())
    assert not misshapen_alike(start(one__bias=torch.ones(SIZE)), start(), start())
    named = {f"layers.{name}": tensor for name, tensor in start().items()}
    assert not misshapen_alike(named, named, start())
    assert not misshapen_alike(3, 3, start())


def test_names_are_compared_even_where_nothing_is_drawn() -> None:
    loaded = {"one.weight": torch.ones(1)}
    assert other_names({"layers.one.weight": torch.ones(1)}, loaded)
    assert not other_names({"one.weight": torch.zeros(1)}, loaded)
    assert not other_names(torch.ones(1), loaded)


@pytest.mark.parametrize("value", [None, 3, [1, 2], {"one": 1}, [("one", "two")]])
def test_anything_else_is_no_start(value: object) -> None:
    assert not start_alike(value, start())
    assert start_symptom([(value, start())]) is None


def test_where_torch_is_not_loaded_nothing_is_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    assert start_of([("fold", 1.0)]) is None
    assert "torch" not in sys.modules
