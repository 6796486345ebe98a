"""The bench: what it calls and what it keeps."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from grader.run.worker.bench import Bench
from grader.run.worker.wire import Frame
from tests.kit.support.bench import learner, request, value

# --- seeds -----------------------------------------------------------------------------------

DRAWS: dict[str, Callable[[], float]] = {
    "random": random.random,
    "torch": lambda: torch.rand(()).item(),
    "numpy": lambda: float(np.random.rand()),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_the_seed_of_a_call_decides_what_it_draws(draw: Callable[[], float]) -> None:
    bench = Bench(lambda name: draw)
    first, other = value(bench.answer(request(seed=1))), value(bench.answer(request(seed=2)))
    assert first != other
    assert value(bench.answer(request(seed=1))) == first
    assert value(bench.answer(request())) != first, "without a seed the numbers go on"


def test_any_whole_number_is_a_seed_and_nothing_else_is() -> None:
    bench = Bench(lambda name: DRAWS["numpy"])
    assert value(bench.answer(request(seed=1 << 40))) != value(bench.answer(request(seed=1)))
    frame = request()
    frame.header["seed"] = "1"
    assert bench.answer(frame).header["error"]["type"] == "WireError"


# --- what it keeps ---------------------------------------------------------------------------


def test_a_module_stays_and_is_known_by_its_number() -> None:
    class Counter(nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 1

    bench = Bench(lambda name: Counter)
    reply = bench.answer(request())
    assert reply.header["value"] == {"handle": 0, "type": "Counter"}
    assert isinstance(bench.held(0), Counter) and bench.held(1) is None
    assert value(bench.answer(request(1, target={"object": 0}))) == 2
    assert value(bench.answer(request(False, target={"object": 0, "method": "train"})))
    assert not bench.held(0).training
    assert bench.answer(request()).header["value"]["handle"] == 1, "a second object"


def test_nothing_is_left_after_a_reset() -> None:
    bench = Bench(lambda name: nn.Identity)
    bench.answer(request())
    bench.reset()
    assert bench.held(0) is None
    assert bench.answer(request(target={"object": 0})).header["error"]["type"] == "KeyError"
    backward = Frame({"op": "backward", "call": 0, "gradients": {"list": []}})
    assert "error" in bench.answer(backward).header


def test_a_module_may_have_a_call_instead_of_a_forward() -> None:
    bench, _ = learner(
        "import torch\nclass f(torch.nn.Module):\n    def __call__(self, x): return x + 1"
    )
    bench.answer(request())
    assert value(bench.answer(request(1, target={"object": 0}))) == 2
