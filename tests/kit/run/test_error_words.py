"""The plain words for exceptions are facts about what torch itself says."""

import math
import operator
import re
import sys
import warnings
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy
import pytest
import torch

from grader.run.error_words import plain_words, sizes_at_odds
from grader.run.traceback_words import frames_told

X = torch.ones(2, 3, 4, 5)


class Early(torch.nn.Module):
    def __init__(self) -> None:
        pass


class Selfless:
    def __init__(size: int) -> None:  # type: ignore[misc]
        pass


class Alone:
    def scores(q: Any, k: Any, mask: Any = None) -> None:  # type: ignore[misc]
        pass


def first_three(values: Any) -> Any:
    one, two, three = values
    return one, two, three


def from_a_file_that_is_not_there() -> None:
    sys.modules["submission"] = ModuleType("submission")  # what a single file is imported as
    try:
        exec("from submission import split")
    finally:
        del sys.modules["submission"]


def from_a_file_of_which_half_has_run() -> None:
    sys.modules["half"] = half = ModuleType("half")
    half.__file__, half.__spec__ = "half.py", ModuleSpec("half", None)
    half.__spec__._initializing = True  # type: ignore[attr-defined]
    try:
        exec("from half import split")
    finally:
        del sys.modules["half"]


NONE: Any = None
ALONG: dict[str, Any] = {"axis": 0}
KEPT: dict[str, Any] = {"axis": -1, "keepdims": True}
KINDS = (
    ImportError,
    RuntimeError,
    TypeError,
    ValueError,
    AttributeError,
    NotImplementedError,
    IndexError,
    NameError,
    SyntaxError,
)
CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "a matrix product": (lambda: torch.ones(3, 4) @ torch.ones(6, 2), "rows of 4 .* rows of 6"),
    "letters of einsum": (
        lambda: torch.einsum("nqhd,nkhd->nhqk", X, X.transpose(1, 2)),
        "h is an axis of 3 in tensor 2 and of 4 in one before it",
    ),
    "a slice that is too small": (
        lambda: operator.setitem(torch.zeros(2, 3), (slice(2), slice(2)), torch.ones(2, 3)),
        "along axis 1 the target has size 2 and the tensor 3",
    ),
    "a boolean mask from 1": (lambda: 1 - (X == 0), "mask == 0 does so for numbers"),
    "a layer's attribute": (
        lambda: torch.nn.Linear(5, 5).transpose(1, 2),  # type: ignore[operator]
        "the Linear layer itself.*layer\\(x\\)",
    ),
    "a product with a layer": (
        lambda: X @ torch.nn.Linear(5, 5),  # type: ignore[operator]
        "the Linear layer itself",
    ),
    "a layer as a number": (
        lambda: torch.nn.functional.dropout(X, torch.nn.Dropout(0.1)),  # type: ignore[arg-type]
        "the Dropout layer itself",
    ),
    "a layer as a tensor": (
        lambda: torch.matmul(torch.nn.Dropout(0.1), X),  # type: ignore[call-overload]
        "the Dropout layer itself",
    ),
    "a mask in brackets": (
        lambda: X[torch.ones(5) == 1],
        "its tensor's first axes; masked_fill broadcasts",
    ),
    "two dtypes": (
        lambda: X.bfloat16() @ X.mT,
        "BFloat16 and Float meet here: both need one dtype; .float.. gives Float, and so does",
    ),
    "two other dtypes": (
        lambda: torch.ones(2, 2).half() @ torch.ones(2, 2).double(),
        "^Half and double meet here: both need one dtype$",
    ),
    "numbers as attn_mask": (
        lambda: torch.nn.functional.scaled_dot_product_attention(X, X, X, X.bool().long()),
        "True and False, and adds one of floats.*make yours boolean",
    ),
    "a mask and is_causal": (
        lambda: torch.nn.functional.scaled_dot_product_attention(
            X, X, X, torch.ones(1, 1).bool(), dropout_p=0.5, is_causal=True
        ),
        "takes one of the two here",
    ),
    "a slice up to several numbers": (
        lambda: X[:, : torch.tensor([1, 2])],
        "holds several numbers, or",
    ),
    "a layer": (lambda: torch.nn.Linear(8, 8)(X), "rows of 5 numbers.*nn.Linear"),
    "a product of matrices": (lambda: X @ X, "rows of 5 numbers, so .* size 5, and it has 4"),
    "two sizes": (lambda: X + X.transpose(1, 2), "along axis 2 one tensor has 4 and the other 3"),
    "a shape": (lambda: X.view(2, 3, 7), "hold 42 numbers, and the tensor has 120"),
    "a shape with -1": (lambda: X.view(2, -1, 7), "has 120 numbers, and 14 does not divide"),
    "view after transpose": (lambda: X.transpose(1, 2).view(2, 60), "not the order in memory"),
    "a root": (lambda: torch.sqrt(NONE or 4), "plain int.*math.sqrt"),
    "None": (
        lambda: torch.softmax(NONE, -1),
        "is None: it was set or passed as None, or .* without a return",
    ),
    "a method of None": (lambda: NONE.shape, "None"),
    "a sum with None": (lambda: NONE + X, "None"),
    "a part that is None": (lambda: torch.cat([NONE, X]), "this value is None"),
    "parts of None": (lambda: first_three(None), "this value is None"),
    "parts of other sizes": (
        lambda: torch.cat([X, X[:, :2]], 2),
        "joined along axis 2; along another, one has 3 and the other 2",
    ),
    "parts with other axes": (lambda: torch.cat([X, X[0]]), "one has 4 axes, the other 3"),
    "a stack of two shapes": (
        lambda: torch.stack([X, X[:, :2]]),
        r"one has \[2, 3, 4, 5\], the other \[2, 2, 4, 5\]",
    ),
    "a float size": (lambda: X.view(2, 3, 20 / 1), "a size is a float"),
    "max": (lambda: X - X.max(-1), "the values and their indices: .max"),
    "a method of max": (lambda: X.max(-1).exp(), ".values is the first"),  # type: ignore[attr-defined]
    "an argument of max": (lambda: torch.exp(NONE or X.max(-1)), ".values is the first"),
    "an axis": (lambda: X.softmax(dim=4), "has 4 axes, 0 to 3 or -4 to -1, and no axis 4"),
    "the only axis": (lambda: X[0, 0, 0].softmax(dim=-2), "has one axis, 0 or -1, and no axis -2"),
    "a file alone": (
        from_a_file_that_is_not_there,
        "does not define split: define it there, or submit",
    ),
    "a mask of numbers": (
        lambda: X.masked_fill(torch.ones(5), 0),
        "True and False.* dtype .* is float",
    ),
    "a condition of numbers": (
        lambda: torch.where(torch.ones(5), 0.0, X),
        "where .* dtype .* is Float",
    ),
    "a mask that is one truth": (
        lambda: X.masked_fill(NONE == 0, 0),
        "a plain True or False .* so does == with None",
    ),
    "an inverted comparison with None": (
        lambda: X.masked_fill(~int(NONE != 0), 0),
        "plain whole number here: ~ makes one",
    ),
    "an input in place": (lambda: X.clone().requires_grad_().fill_(0), "make a new one"),
    "a truth": (lambda: not X, "one True or False"),
    "a parameter's name": (
        lambda: first_three(value=X),  # type: ignore[call-arg]
        "has no parameter value: use the parameter names of the stub",
    ),
    "a parameter's name of a class": (
        lambda: Early(value=X),  # type: ignore[call-arg]
        "no __init__ with the parameter value: .* two underscores",
    ),
    "a constructor without self": (
        lambda: Selfless(1, size=2),  # type: ignore[call-arg,misc]
        "is self missing",
    ),
    "no self": (lambda: self, "first parameter of a method"),  # type: ignore[name-defined]  # noqa: F821
    "an attribute that nothing has set": (
        lambda: torch.nn.Module().w_q,
        "^$",  # for the line of code does not say self.w_q
    ),
    "brackets of a method": (lambda: X.size[-1], "cannot call it"),  # type: ignore[index]
    "no forward": (lambda: torch.nn.Module()(X), "no method called forward: .* indented"),
    "too far right": (lambda: compile("x = 1\n  y", "f", "exec"), "further to the right"),
    "a file that imports itself": (from_a_file_of_which_half_has_run, "half.py imports itself"),
    "no super": (lambda: setattr(Early(), "layer", torch.nn.Linear(1, 1)), "call super"),
    "too many parts": (lambda: first_three(X.split(1, dim=-1)), "3 names .* and there are more$"),
    "too few parts": (lambda: first_three(X), "3 names .* and there are only 2"),
    "Xavier for a bias": (
        lambda: torch.nn.init.xavier_uniform_(torch.ones(3)),
        "two sizes of a matrix; .* as a bias has",
    ),
    "one tensor to join": (lambda: torch.cat(NONE or X), "torch.cat takes a list or tuple"),
    "two dtypes of a layer": (
        lambda: torch.nn.Linear(5, 5, dtype=torch.double)(X),
        "float and double meet|Float and Double meet",
    ),
    "a character that nobody sees": (lambda: compile("x\u00a0= 1", "f", "exec"), "cannot see"),
    "tabs and spaces": (lambda: compile("if 1:\n\tx\n        y", "f", "exec"), "four spaces"),
    "half a level": (lambda: compile("if 1:\n    x\n  y", "f", "exec"), "align it with its own"),
    "a quotation mark": (lambda: compile("x = \u201ca\u201d", "f", "exec"), "has \u201c where"),
    "a file of zeros": (lambda: compile("\0\0", "f", "exec"), "damaged, or no text"),
    "a notebook": (lambda: null, "must end with .ipynb"),  # type: ignore[name-defined]  # noqa: F821
    "no such name": (lambda: np, "nothing here is called np"),  # type: ignore[name-defined]  # noqa: F821
    "a larger mask in place": (
        lambda: torch.ones(2, 1).masked_fill_(torch.ones(2, 2).bool(), 0),
        r"cannot enlarge .* \[2, 1\]",
    ),
    "a result overwritten before its gradient": (
        lambda: torch.ones(2, requires_grad=True).exp().mul_(2).sum().backward(),
        "overwritten since: .* inplace=True",
    ),
    "complex numbers of a view": (
        lambda: torch.view_as_complex(torch.ones(2, 3).mT),
        "call contiguous",
    ),
    "a call of a number": (lambda: (NONE or 0.5)(X), "a plain float cannot be called"),
    "a call of a file": (lambda: math(X), "import the function from it"),  # type: ignore[operator]
    "numpy": (lambda: X.clone().requires_grad_().numpy(), "no gradient passes through numpy"),
    "numpy of bfloat16": (lambda: X.bfloat16().numpy(), "has no bfloat16"),
    "numpy's transpose": (
        lambda: X.transpose(0, 2, 1, 3),  # type: ignore[call-overload]
        "swaps two axes.*permute",
    ),
    "numpy's function transpose": (
        lambda: torch.transpose(X, 0, 2, 1),  # type: ignore[call-overload]
        "swaps two axes.*permute",
    ),
    "tensorflow's transpose": (
        lambda: X.transpose(perm=[0, 2, 1]),  # type: ignore[call-overload]
        "swaps two axes.*permute",
    ),
    "transpose of a list": (
        lambda: X.transpose([0, 2, 1]),  # type: ignore[call-overload]
        "swaps two axes.*permute",
    ),
    "numpy's transpose of a tuple": (
        lambda: X.transpose((1, 2)),  # type: ignore[call-overload]
        "swaps two axes.*permute",
    ),
    **{
        f"numpy's {name} {how}": (
            lambda name=name, how=how: getattr(numpy, name)(X, **how),
            f"np.{name} is called with a tensor: write torch.{name}",
        )
        for name, how in (("max", {}), ("max", KEPT), ("sum", KEPT), ("mean", {}), ("std", ALONG))
    },
    "numpy's dot": (
        lambda: numpy.dot(X.numpy(), X.numpy()),
        "np.dot sums over other axes: matmul and @",
    ),
    "a place": (lambda: X[:, :, 4], "axis 2 has 4 places and no place 4; a slice such as :4"),
    "too many values": (
        lambda: first_three(X, X),  # type: ignore[call-arg]
        "use the parameters of the stub",
    ),
    "too few values": (
        lambda: first_three(),  # type: ignore[call-arg]
        "use the parameters of the stub",
    ),
    "a method without self": (
        lambda: Alone().scores(X, X, mask=X),  # type: ignore[call-arg,misc]
        "parameters before mask can take; .* its object, self",
    ),
    "too few axes": (lambda: X.expand(4, 5), "has 4 axes, and expand cannot make 2"),
    "bmm": (lambda: torch.bmm(X, X), "three axes only"),
    "a number for float64": (
        lambda: torch.where(X == 1, torch.finfo(torch.float64).min, 0.0),
        "fit into float32, whose largest is 3.4e38",
    ),
    "a large number": (lambda: X.half().masked_fill(X == 1, -1e9), "fit into float16.* 65504"),
    "einsum": (lambda: torch.einsum("tij,tjk->tik", X[0], X), "3 axes for tensor 2, which has 4"),
    "permute": (lambda: X.permute(0, 2, 1), "has 4 axes, and permute was given 3"),
}


@pytest.mark.parametrize("call, words", CASES.values(), ids=CASES)
def test_an_exception_of_torchs_in_plain_words(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(KINDS) as raised:
        call()
    text = str(getattr(raised.value, "msg", raised.value))
    assert re.search(words, plain_words(text)), text


@pytest.mark.parametrize(
    "code, words",
    [
        ("torch.mm(X, X)", "mm takes two matrices"),
        ("torch.mv(X, X)", "mv a matrix and a vector"),
        ("torch.dot(X, X)", "dot two vectors"),
        ("X.t()", r"transpose\(-2, -1\) swaps"),
        ("X.view(2, -1, -1)", "only one size may be -1"),
        ("X.chunk(3 / 1, -1)", "a whole number is needed here"),
        ("X[:, : 3 / 1]", "a whole number is needed here"),
        ("math.sqrt(X)", "one plain number .* functions of math"),
        ("X.item()", "one plain number"),
        ("torch.arange(torch.tensor([1, 2]))", "one plain number"),
        ("torch.ones(torch.tensor([1, 2]))", "one plain number"),
        ("~X", "write mask == 0"),
        ("X.masked_fill(X == 1)", r"called as x.masked_fill\(mask, value\)"),
        ("X.shape(0)", "a plain Size cannot be called"),
        ("X.shape[4]", "one for each axis, counted from 0"),
        ("[h for h in X.shape[1]]", r"one number, .*: range\(n\) counts from 0 to n - 1"),
        ("X.chunk(2).transpose(1, 2)", "this is a tuple, as chunk and split give one"),
        ("X.astype(float)", r"astype is a method of numpy's .* to\(dtype\)"),
        ("X.to('float')", "a dtype has no quotes"),
        ("sum(X, dim=1)", "Python's own sum has no dim=: torch.sum has it"),
        ("max(X, dim=1)", "Python's own max has no dim=: torch.max has it"),
        ("setattr(torch.nn.Linear(1, 1), 'weight', X)", "cannot be replaced by a tensor"),
        ("torch.view_as_complex(X)", "make pairs of it first"),
    ],
)
def test_what_people_write_by_mistake_in_plain_words(code: str, words: str) -> None:
    with pytest.raises(KINDS) as raised:
        exec(code, {"X": X, "math": math, "torch": torch})
    assert re.search(words, plain_words(str(raised.value), f"y = {code}")), str(raised.value)


@pytest.mark.parametrize(
    "message, code, words",
    [
        (
            "'Folder' object has no attribute 'w_q'",
            "q = self.w_q(x)",
            "^nothing has set self.w_q yet; a name without self. is lost .* self.w_q = ",
        ),
        (
            "name 'num_heads' is not defined",
            "q = split_heads(self.w_q(x), num_heads)",
            "^nothing here is called num_heads: .*; write self. before it if it is set in __init",
        ),
        (
            "Softmax.__init__() got multiple values for argument 'dim'",
            "return nn.Softmax(scores, dim=-1)",
            r"place of dim already; a layer takes .* nn.Softmax\(dim=-1\)\(x\)$",
        ),
        (
            "a leaf Variable that requires grad is being used in an in-place operation.",
            "fused.w_qkv.weight.copy_(torch.cat([one, other]))",
            r"^a parameter may be changed in place only within torch.no_grad\(\)$",
        ),
        (
            "Boolean value of Tensor with more than one value is ambiguous",
            "weights = nn.Dropout(weights, 0.1)",
            r"^a layer takes the tensor when it is called: nn.Softmax\(dim=-1\)\(x\)$",
        ),
        (
            "Linear.__init__() got an unexpected keyword argument 'use_bias'",
            "self.w_q = nn.Linear(d, d, use_bias=bias)",
            "^what is called here has no parameter use_bias: look up its parameters$",
        ),
    ],
)
def test_the_line_of_code_tells_more(message: str, code: str, words: str) -> None:
    assert re.search(words, plain_words(message, code))


@pytest.mark.parametrize(
    "part, is_pythons",
    [
        ("list(map(len, x.shape))", True),
        ("super()", True),
        ("list(x)(1)", False),  # what list(x) returns is called
        ("mask(list(x))", False),
    ],
)
def test_a_name_of_pythons_is_used_for_something_else(part: str, is_pythons: bool) -> None:
    for code in (part, f"y = {part}.z"):
        said = plain_words("'int' object is not callable", code, "" if code == part else part)
        assert ("is Python's own, and your code uses that name" in said) is is_pythons


@pytest.mark.parametrize(
    "line, words",
    [
        ("raise NotImplementedError()", "stops your code: if it is left .* or delete it"),
        ("<<<<<<< HEAD", "merge conflict"),
        ("=======", "merge conflict"),
        (">>>>>>> theirs", "merge conflict"),
        ("```python", "is not Python"),
        ("1 import torch", "delete the numbers"),
        ("12: return x", "delete the numbers"),
        (">>> import torch", "Python's prompt"),
        ("%matplotlib inline", "only in a notebook"),
        ("!pip install torch", "only in a notebook"),
        ("<!DOCTYPE html>", "web page"),
        ('<html lang="en">', "web page"),
        ("if x &lt; 3:", "web page writes"),
        (r"{\rtf1\ansi\ansicpg1252", "as plain text"),
    ],
)
def test_a_line_that_says_enough(line: str, words: str) -> None:
    assert re.search(words, plain_words("", line))


def test_a_stage_is_imported_by_its_name_alone() -> None:
    for said in (
        "attempted relative import with no known parent package",
        "No module named 'exercises'",
    ):
        assert "by its name alone" in plain_words(said)
    elsewhere = {"type": "ModuleNotFoundError", "message": "No module named 'exercises'"}
    assert frames_told(elsewhere) == ""
    assert "nor installed here" in frames_told({**elsewhere, "message": "No module named 'x'"})


@pytest.mark.parametrize("module", ["types", "math", "json"])
def test_a_file_with_the_name_of_a_module_of_pythons(module: str) -> None:
    with pytest.raises(ImportError) as raised:
        exec(f"from {module} import Tensor")
    assert f"if you have a {module}.py, give it another" in plain_words(str(raised.value))
    for other in ("from torch import Tensors", "from numpy import Tensor"):
        with pytest.raises(ImportError) as raised:
            exec(other)
        assert plain_words(str(raised.value)) == ""


@pytest.mark.parametrize(
    "message, words",
    [
        ("expected an indented block after function definition on line 6", "further to the right"),
        ("'return' outside function", "return belongs to a function"),
        ("unterminated string literal (detected at line 1)", "begin the line with #"),
        ("EOL while scanning string literal", "begin the line with #"),
        ("EOF when reading a line", "nobody can answer input()"),
        ("No available kernel. Aborting execution.", "sdpa_kernel leaves only some"),
        ("Torch not compiled with CUDA enabled", "without a GPU here"),
        ("Found no NVIDIA driver on your system.", "without a GPU here"),
        ("Cannot re-initialize CUDA in forked subprocess. To use ...", "without a GPU here"),
        (
            "module 'torch._C' has no attribute '_cuda_resetPeakMemoryStats'",
            "without a GPU here",
        ),
        ("Expected a cuda device, but got: cpu", "knows only"),
        ("expected '('", "needs Python 3.12"),
        ("f-string: expecting '}'", "needs Python 3.12"),
        ("f-string: unmatched '['", "use the other quotes"),
        ("f-string: unterminated string", "within { and } need Python 3.12"),
        ("f-string expression part cannot include a backslash", "into a variable first"),
        ("(unicode error) 'utf-8' codec can't decode byte 0xe9 in position 3", "save the file as"),
        ("maximum recursion depth exceeded in comparison", "calls itself"),
        (
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate",
            "far too large for the memory",
        ),
    ],
)
def test_what_a_message_says_by_itself(message: str, words: str) -> None:
    assert words in plain_words(message)


def test_a_variable_without_a_value() -> None:
    with pytest.raises(UnboundLocalError) as raised:
        late += 1  # type: ignore[has-type]  # noqa: F821
    late = 0
    assert "late has no value yet" in plain_words(str(raised.value)), late


def test_a_bias_that_a_layer_has_not() -> None:
    with pytest.raises(AttributeError) as raised:
        torch.nn.init.zeros_(torch.nn.Linear(2, 2, bias=False).bias)
    assert "made with bias=False" in plain_words(str(raised.value), "nn.init.zeros_(layer.bias)")
    assert "bias" not in plain_words(str(raised.value), "bias = scores.max()")


def test_a_tensor_turned_round_with_all_its_axes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        turned = X.T
    with pytest.raises(RuntimeError) as raised:
        _ = X @ turned
    assert ".T reverses all axes" in plain_words(str(raised.value), "return q @ k.T")


def test_a_tensor_split_into_parts_of_a_size() -> None:
    with pytest.raises(ValueError, match="too many") as raised:
        first_three(X.split(1, dim=-1))
    message = str(raised.value)
    assert "chunk the number of parts" in plain_words(message, "q, k, v = x.split(3, dim=-1)")
    assert "chunk" not in plain_words(message, 'q, k, v = line.split(" ")')


def test_the_two_sizes_that_do_not_fit() -> None:
    x, y = torch.zeros(2, 5, 4), torch.zeros(2, 7, 3)
    stops: dict[tuple[int, int] | None, Callable[[], Any]] = {
        (5, 7): lambda: x + y[..., :1],
        (4, 7): lambda: x @ y,
        (56, 40): lambda: x.view(2, 7, 4),
        (40, 9): lambda: x.view(9, -1),
        (3, 4): lambda: y[0] @ x[0, :4].T.T,
        (5, 2): lambda: x[:, 0].expand(5, 4),
        (7, 5): lambda: torch.einsum("bij,bik->bjk", x, y),
        (5, 6): lambda: torch.cat([x, x.new_zeros(2, 6, 4)], -1),
        None: lambda: x.squeeze(7),
    }
    for sizes, stop in stops.items():
        with pytest.raises((RuntimeError, IndexError)) as raised:
            stop()
        assert sizes_at_odds(plain_words(str(raised.value))) == sizes, str(raised.value)


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert plain_words("the learner's own text") == ""
    assert plain_words("'Linear' object has no attribute 'wieght'") == "", "it needs no call"
    assert plain_words(" " * 1000 + "'NoneType'") == "", "nor of what nobody would read that far"
