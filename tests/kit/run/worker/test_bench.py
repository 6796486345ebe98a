"""The bench: what it calls, what it keeps, and what it tells of an error."""

import linecache
import random
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from grader.run.worker.bench import Bench, describe
from grader.run.worker.packing import Packer, Unpacker
from grader.run.worker.wire import Frame

OWN = "own.py"


def request(
    *args: Any, target: dict[str, Any] | None = None, seed: int | None = None, **kwargs: Any
) -> Frame:
    packer = Packer()
    header = {
        "op": "call",
        "target": target or {"function": "f"},
        "args": packer.pack(args),
        "kwargs": packer.pack(kwargs),
        "seed": seed,
        "parameters": [],
        "differentiate": True,
    }
    return packer.frame(header)


def value(reply: Frame) -> Any:
    assert "error" not in reply.header, reply.header
    return Unpacker(reply).unpack(reply.header["value"])


def learner(source: str) -> tuple[Bench, dict[str, Any]]:
    """A bench over the functions of a learner's file, which knows the file's lines."""
    source = textwrap.dedent(source)
    lines = source.split("\n")
    names: dict[str, Any] = {}
    linecache.cache[OWN] = (len(source), None, source.splitlines(keepends=True), OWN)
    exec(compile(source, OWN, "exec"), names)
    return Bench(
        names.__getitem__, lambda file, number: lines[number - 1] if file == OWN else None
    ), names


def error_of(source: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    bench, _ = learner(source)
    error = bench.answer(request(*args, **kwargs)).header["error"]
    assert isinstance(error, dict)
    return error


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


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, kind, bases, message",
    [
        ("def f(): raise ValueError('no')", "ValueError", ["ValueError", "Exception"], "no"),
        ("def f(): return 1 / 0", "ZeroDivisionError", ["ArithmeticError"], "division by zero"),
        ("def f(): return undefined", "NameError", ["NameError"], "'undefined' is not defined"),
        ("def f(x): pass", "TypeError", ["TypeError"], "missing 1 required"),
        ("def f(): raise SystemExit(3)", "SystemExit", ["SystemExit"], "3"),
        ("def f(): raise KeyboardInterrupt", "KeyboardInterrupt", ["KeyboardInterrupt"], ""),
        ("def f(): f()", "RecursionError", ["RuntimeError"], "maximum recursion depth"),
        (
            "class Own(ValueError): pass\ndef f(): raise Own('mine')",
            *("Own", ["ValueError"], "mine"),
        ),
        (
            "import torch\ndef f(): torch.ones(2) @ torch.ones(3)",
            *("RuntimeError", ["RuntimeError"], "size"),
        ),
    ],
)
def test_an_exception_is_told_by_its_type_bases_and_message(
    source: str, kind: str, bases: list[str], message: str
) -> None:
    error = error_of(source)
    assert error["type"] == kind
    assert set(bases) <= set(error["bases"])
    assert message in error["message"]


def test_a_class_of_the_same_name_is_not_the_builtin_exception() -> None:
    error = error_of("class ValueError(Exception): pass\ndef f(): raise ValueError")
    assert "ValueError" not in error["bases"] and "Exception" in error["bases"]


def test_an_exception_that_cannot_be_told_is_told_without_words() -> None:
    error = error_of(
        """
        class Mute(Exception):
            def __str__(self):
                raise SystemExit
        def f():
            raise Mute
        """
    )
    assert (error["type"], error["message"]) == ("Mute", "")


def test_long_errors_are_cut() -> None:
    assert len(error_of("def f(): raise ValueError('x' * 10_000)")["message"]) == 2000
    assert len(error_of("def f(): f()")["frames"]) == 12


def test_the_frames_are_the_learners_own_only() -> None:
    error = error_of(
        """
        import torch
        def helper(x):
            return x.reshape(7)  # here
        class Layer(torch.nn.Module):
            def forward(self, x):
                return helper(x)
        def f():
            return Layer()(torch.ones(2))
        """
    )
    assert [frame["function"] for frame in error["frames"]] == ["f", "forward", "helper"]
    assert {frame["file"] for frame in error["frames"]} == {OWN}
    caret = error["frames"][-1].pop("caret", None)
    assert caret == ([7, 12] if sys.version_info >= (3, 11) else None)
    assert error["frames"][-1] == {
        "file": OWN,
        "line": 4,
        "function": "helper",
        "text": "return x.reshape(7)  # here",
    }


def test_a_name_that_is_not_there_brings_the_one_that_was_meant() -> None:
    error = error_of("import torch\ndef f():\n    return torch.sofmax")
    assert error["message"].endswith("Did you mean: 'softmax'?")
    error = error_of("def f():\n    weights = 1\n    return wieghts")
    assert error["message"] == "name 'wieghts' is not defined. Did you mean: 'weights'?"
    assert "mean" not in error_of("def f():\n    return xyzzy_quux")["message"]


@pytest.mark.parametrize("count, told", [(9_000, True), (300_000, False)])
def test_too_many_names_are_not_searched_for_one(count: int, told: bool) -> None:
    names = f"map('weights{{}}'.format, range({count}))"
    named = f"class Named:\n    def __dir__(self):\n        return {names}\n"
    error = error_of(f"{named}def f():\n    Named().weights")
    assert ("Did you mean" in error["message"]) is told


def test_a_syntax_error_points_at_its_line() -> None:
    source = "x = 1\n  def f(:\n"
    try:
        compile(source, OWN, "exec")
    except SyntaxError as raised:
        error = describe(raised, lambda file, n: source.split("\n")[n - 1] if file == OWN else None)
    assert error["frames"] == [{"file": OWN, "line": 2, "function": "", "text": "def f(:"}]
    assert OWN not in error["message"]
    made_up = SyntaxError("m" * 1_000_000, (OWN, 1, 1, ""))
    assert len(describe(made_up, lambda file, n: source)["message"]) < 10_000


# --- stubs -----------------------------------------------------------------------------------


STUBS = {
    "an untouched function": ("def f(): raise NotImplementedError('not written yet')", True),
    "without words": ("def f(): raise NotImplementedError", True),
    "another error": ("def f(): raise ValueError", False),
    "an error derived from it": ("class Own(NotImplementedError): pass\ndef f(): raise Own", False),
    "one raised by a function that it calls": (
        "def g(): raise NotImplementedError\ndef f(): return g()",
        False,
    ),
    "one raised by a library": ("import io\ndef f(): io.IOBase().seek(0)", False),
    "torch's own": ("import torch\ndef f(): torch.nn.Module()(1)", False),
    "torch's own for an operator that is not there": (
        "import torch\ndef f(): torch.ones(2, device='meta').item()",
        False,
    ),
    "one raised while another was handled": (
        "def f():\n  try: 1 / 0\n  except ArithmeticError: raise NotImplementedError",
        True,
    ),
    "below a docstring": (
        "def f():\n    'Of f.\\n'\n    # YOURS\n    raise NotImplementedError()",
        True,
    ),
    "above code": ("def f():\n    'Of f.'\n    raise NotImplementedError()\n    return 1", False),
    "below code": ("def f():\n    x = 1\n    raise NotImplementedError()", False),
}


@pytest.mark.parametrize("source, is_stub", STUBS.values(), ids=STUBS)
def test_only_the_called_functions_own_error_is_a_stub(source: str, is_stub: bool) -> None:
    assert error_of(source)["stub"] is is_stub


MODULES = {
    "an untouched constructor": ("def __init__(self): raise NotImplementedError", None, True),
    "an untouched forward": ("def forward(self, x): raise NotImplementedError", 1, True),
    "a forward with more": (
        "def forward(self, x):\n        raise NotImplementedError\n        return x",
        1,
        False,
    ),
    "a misspelt forward": ("def foward(self, x): return x", 1, False),
    "one raised deeper in a forward": (
        "def forward(self, x): return self.g()\n    def g(self): raise NotImplementedError",
        1,
        False,
    ),
}


@pytest.mark.parametrize("body, x, is_stub", MODULES.values(), ids=MODULES)
def test_only_a_modules_own_method_is_a_stub(body: str, x: int | None, is_stub: bool) -> None:
    bench, _ = learner(f"import torch\nclass f(torch.nn.Module):\n    {body}")
    reply = bench.answer(request())
    if x is not None:
        reply = bench.answer(request(x, target={"object": 0}))
    error = reply.header["error"]
    assert error["type"] == "NotImplementedError"
    assert error["stub"] is is_stub


def test_a_module_may_have_a_call_instead_of_a_forward() -> None:
    bench, _ = learner(
        "import torch\nclass f(torch.nn.Module):\n    def __call__(self, x): return x + 1"
    )
    bench.answer(request())
    assert value(bench.answer(request(1, target={"object": 0}))) == 2


def test_our_own_functions_are_never_stubs() -> None:
    def not_written() -> None:
        raise NotImplementedError

    assert Bench(lambda name: not_written).answer(request()).header["error"]["stub"] is False
