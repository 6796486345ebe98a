"""What a check has done in the worker: things made from source, memory, and what a module holds."""

import functools
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from grader.run.worker.probes import held_shapes, made, meter

N = 1000
SIZE = 4 * N  # bytes of a tensor of N numbers


# --- given -----------------------------------------------------------------------------------


def test_a_class_is_made_and_anything_else_is_as_it_is() -> None:
    source = "class A:\n    def __init__(self, n, m=0):\n        self.n = n + m\ndef f(): return A"
    assert made(source, "A", (1,), {"m": 2}).n == 3
    assert made(source, "f", (), {})().__name__ == "A"
    assert made(source, "f", (), {}).__module__ == "given"


# --- memory ----------------------------------------------------------------------------------


def peak(call: Callable[[Tensor], Any]) -> int:
    x = torch.ones(N)
    with meter() as usage:
        call(x)
    bytes: int = usage.peak
    return bytes


def dropped_one_by_one(x: Tensor) -> None:
    for _ in range(5):
        x = x + 1


def kept_together(x: Tensor) -> list[Tensor]:
    return [x + n for n in range(5)]


def resized(x: Tensor) -> Tensor:
    out = torch.empty(0)
    return torch.add(x[:, None], x, out=out)


def with_gradients(x: Tensor) -> Tensor:
    return x.requires_grad_().exp().exp().exp()


PEAKS: dict[str, tuple[Callable[[Tensor], Any], int]] = {
    "nothing": (lambda x: x, 0),
    "a view of the input": (lambda x: x.view(10, -1).mT[1:], 0),
    "a change in place": (lambda x: x.mul_(2), 0),
    "a copy": (lambda x: x.clone(), SIZE),
    "a view of a copy": (lambda x: x.clone().view(10, -1), SIZE),
    "half of it stays": (lambda x: x.double()[:1], 2 * SIZE),
    "one after the other": (dropped_one_by_one, 2 * SIZE),
    "all at once": (kept_together, 5 * SIZE),
    "into one that grows": (resized, N * SIZE),
    "kept for the gradient": (with_gradients, 3 * SIZE),
    "several results": (lambda x: torch.sort(x), 3 * SIZE),  # and their places, 8 bytes each
    "a list of inputs": (lambda x: torch.cat([x, x]), 2 * SIZE),
    "no numbers at all": (lambda x: torch.ones(N, device="meta") + 1, 0),
}


@pytest.mark.parametrize("call, expected", PEAKS.values(), ids=PEAKS)
def test_the_most_bytes_alive_at_once_are_counted(call: Callable[..., Any], expected: int) -> None:
    assert peak(call) == expected


def test_nothing_is_counted_before_or_after_the_block() -> None:
    before = torch.ones(N)
    with meter() as usage:
        del before
        torch.ones(2)
    torch.ones(N)
    assert usage.peak == 8


def test_measuring_imports_no_compiler() -> None:
    code = (
        "import sys, torch\n"
        "from grader.run.worker.probes import meter\n"
        "with meter(): torch.ones(2) + 1\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# --- what a module holds -----------------------------------------------------------------------


class Plain(nn.Module):
    """Holds one tensor in the way that a test puts it there."""


IN_A_GLOBAL = torch.ones(9, 9)


def seen(x: Tensor) -> Any:
    def function(y: Tensor = x) -> Tensor:
        return y + IN_A_GLOBAL

    return function


def closed_over(x: Tensor) -> Any:
    return lambda: x


def generated(x: Tensor) -> Iterator[Tensor]:
    def generator() -> Iterator[Tensor]:
        kept = x
        yield kept
        yield kept

    running = generator()
    next(running)
    return running


def with_gradient(x: Tensor) -> Tensor:
    leaf = torch.zeros(2, 3, requires_grad=True)
    leaf.grad = x
    return leaf


HOLDERS: dict[str, Callable[[Tensor], Any]] = {
    "an attribute": lambda x: x,
    "a parameter": nn.Parameter,
    "a list": lambda x: [1, [x]],
    "a dictionary": lambda x: {"a": {"b": (x,)}},
    "a key": lambda x: {x: 1},
    "an object": lambda x: SimpleNamespace(x=x),
    "a closure": closed_over,
    "a default": seen,
    "a bound method": lambda x: x.sum,
    "a partial": lambda x: functools.partial(torch.add, x),
    "a cache": lambda x: functools.lru_cache(closed_over(x)),
    "a generator": generated,
    "a gradient": with_gradient,
    "an array": lambda x: x.numpy(),
    "a submodule": lambda x: nn.ParameterList([nn.Parameter(x)]),
}


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_a_tensor_is_found_wherever_a_module_holds_it(hold: Callable[[Tensor], Any]) -> None:
    module = Plain()
    assert held_shapes(module) == []
    module.kept = hold(torch.ones(2, 3))
    assert held_shapes(module) == [(2, 3)]


def test_what_its_class_and_those_before_it_keep_is_found_and_no_other_class() -> None:
    class Keeps(Plain):
        history = (torch.ones(2, 3),)

    class Last(Keeps):
        last = torch.ones(4)

    class Other:
        other = torch.ones(5)

    module = Last()
    module.other = Other()
    assert held_shapes(module) == [(2, 3), (4,)]


def test_hooks_and_buffers_hold_too_and_loops_end() -> None:
    module = Plain()
    kept = torch.ones(4)
    module.register_forward_hook(lambda module, args, output: kept)
    module.register_buffer("buffer", torch.ones(5))
    module.itself = [module]
    assert held_shapes(module) == [(4,), (5,)]


def test_the_shapes_are_sorted_and_each_is_told_once() -> None:
    assert held_shapes([torch.ones(3), torch.ones(2, 1), np.ones(3), torch.ones(2)]) == [
        (2,),
        (2, 1),
        (3,),
    ]


def test_a_parameter_without_a_shape_is_passed_over() -> None:
    assert held_shapes(nn.LazyLinear(2)) == []


def test_looking_warns_of_nothing_and_changes_nothing() -> None:
    x = torch.ones(2, requires_grad=True)
    module = Plain()
    module.kept = x * 2  # whose gradient torch warns of
    assert held_shapes(module) == [(2,)] and x.grad is None
