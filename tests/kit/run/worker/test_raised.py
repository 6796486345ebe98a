"""The data that describe an exception of the learner's code."""

import sys
from typing import Any

import pytest
import torch

from grader.run.worker.bench import Bench
from grader.run.worker.raised import describe
from tests.kit.support.bench import OWN, learner, request


def error_of(source: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    bench, _ = learner(source)
    error = bench.answer(request(*args, **kwargs)).header["error"]
    assert isinstance(error, dict)
    return error


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
        "here": [["x", [2], "float32"]],
    }


knows_columns = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 knows only the first line"
)
X, Y, N = ["x", [2, 3], "float32"], ["y", [5], "int64"], ["n", 4]
HERE = [
    pytest.param(
        "z = x[0]; return z[0] * (x @ y)", [X, Y], id="the part that raised", marks=knows_columns
    ),
    pytest.param("a, b, n = x.shape", [X], id="the line, if that part names nothing"),
    pytest.param(
        "torch.cat(\n        [x, y],\n        dim=n)",
        [X, Y, N],
        id="each line of an expression",
        marks=knows_columns,
    ),
    pytest.param(
        "x.view(ratio, 'y', n, flag, f, dim=n)", [], id="no ratio, text, flag or function"
    ),
    pytest.param("raise ValueError(f'{n} is odd')", [N], id="the code's own complaint"),
    pytest.param("x + unknown", [], id="nothing for an unknown name"),
    pytest.param("assert x.dim() == huge", [X], id="nothing for an integer of many digits"),
    pytest.param("x + strange", [X], id="nothing for a tensor of another class"),
]


@pytest.mark.parametrize("line, here", HERE)
def test_an_error_tells_the_sizes_and_numbers_that_its_line_names(
    line: str, here: list[Any]
) -> None:
    error = error_of(
        f"""
        import torch
        class Strange(torch.Tensor):
            shape = property(lambda self: 1 / 0)
        def f():
            x, y, n, ratio, flag, huge = torch.ones(2, 3), torch.arange(5), 4, 0.5, True, 10**9999
            strange = torch.ones(7).as_subclass(Strange)
            {line}
        """
    )
    assert error["frames"][-1].get("here", []) == here


def test_an_error_in_a_module_tells_what_its_attributes_are() -> None:
    bench, _ = learner(
        """
        import torch
        class f(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.size = 3
                self.start = torch.nn.Parameter(torch.ones(1))
                self.register_buffer("table", torch.ones(4, 4, dtype=bool))
            def forward(self, x):
                return self.table[: self.size] + self.start + x[: self.other.size]
        """
    )
    bench.answer(request())
    x = torch.ones(2)
    error = bench.answer(request(x, target={"object": 0})).header["error"]
    assert "here" not in error["frames"][-1], "an AttributeError names what is missing"
    bench.held(0).other = bench.held(0)
    error = bench.answer(request(x, target={"object": 0})).header["error"]
    assert error["frames"][-1]["here"] == [
        ["self.table", [4, 4], "bool"],
        ["self.size", 3],
        ["self.start", [1], "float32"],
        ["x", [2], "float32"],
    ]


def test_a_name_that_is_not_there_brings_the_one_that_was_meant() -> None:
    error = error_of("import torch\ndef f():\n    return torch.sofmax")
    assert error["message"].endswith("Did you mean: 'softmax'?")
    error = error_of("def f():\n    weights = 1\n    return wieghts")
    assert error["message"] == "name 'wieghts' is not defined. Did you mean: 'weights'?"
    assert "mean" not in error_of("def f():\n    return xyzzy_quux")["message"]
    error = error_of("from torch import nn\ndef f():\n    return nn.module")
    assert error["message"].endswith("Did you mean: 'Module'?"), "and not nn.modules"
    of_object = "class F:\n    def g(self):\n        pass\n    def h(self):\n        g()\n"
    error = error_of(f"{of_object}def f():\n    F().h()")
    assert error["message"] == "name 'g' is not defined. Did you mean: 'self.g'?"


@pytest.mark.parametrize("count, is_searched", [(9_000, True), (300_000, False)])
def test_too_many_names_are_not_searched_for_one(count: int, is_searched: bool) -> None:
    names = f"map('weights{{}}'.format, range({count}))"
    named = f"class Named:\n    def __dir__(self):\n        return {names}\n"
    error = error_of(f"{named}def f():\n    Named().weights")
    assert ("Did you mean" in error["message"]) is is_searched


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 does not say where in a line")
@pytest.mark.parametrize(
    ("body", "root"),
    [
        ("return 1 + math.sqrt(2)", "math"),
        ("return math(2)", "math"),
        ("x = 2; return x.sqrt()", None),
        ("math = 2; return math.sqrt(2)", None),
        ("return g(lambda math: math.sqrt(2), 3)", None),
    ],
)
def test_the_global_name_whose_value_does_not_fit_is_told(body: str, root: str | None) -> None:
    error = error_of(f"math = 3\ndef g(h, x): return h(x)\ndef f():\n    {body}")
    assert error["frames"][-1].get("root") == root


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


def test_our_own_functions_are_never_stubs() -> None:
    def not_written() -> None:
        raise NotImplementedError

    assert Bench(lambda name: not_written).answer(request()).header["error"]["stub"] is False
