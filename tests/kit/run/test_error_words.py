"""The plain words for exceptions are facts about what torch itself says."""

import math
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
from torch import nn

from grader.run.error_words import plain_words, sizes_at_odds
from grader.run.traceback_words import frames_told

X = torch.ones(2, 3, 4, 5)


class Early(nn.Module):
    def __init__(self) -> None:
        pass


class Selfless:
    def __init__(size: int) -> None:
        pass


class Alone:
    def scores(q: Any, k: Any, mask: Any = None) -> None:
        pass


def first_three(values: Any) -> Any:
    one, two, three = values
    return one, two, three


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
NAMES = {"F": nn.functional, "X": X, "math": math, "nn": nn, "numpy": numpy, "torch": torch}
NAMES |= {"Alone": Alone, "Early": Early, "Selfless": Selfless, "first_three": first_three}


def message_of(code: str) -> str:
    """What the exception of this code says."""
    with pytest.raises(KINDS) as raised:
        exec(code, dict(NAMES))
    return str(getattr(raised.value, "msg", raised.value))


@pytest.mark.parametrize(
    "code, words",
    [
        ("torch.ones(3, 4) @ torch.ones(6, 2)", "rows of 4 .* rows of 6"),
        ("torch.stack([], dim=1)", "the list is empty"),
        ("torch.cat([], dim=1)", "the list is empty"),
        ("X.chunk(2)[:, 0]", r"this is a tuple and no tensor.*take an entry first"),
        ("[X, X][:, 0]", r"this is a list and no tensor.*take an entry first"),
        ("X.chunk(2) / 2", "this is a tuple of values"),
        ("X @ 2 ** 0.5", r"product of two matrices; with a plain number, write \*"),
        ("4 @ 2", "product of two matrices"),
        ("torch.softmax(X == 1, -1)", r"for a tensor of dtype Bool; .float\(\) makes"),
        ("(4).transpose(1, 2)", "a plain int, and neither a tensor nor a layer"),
        ("X.eq('-inf')", r"text in quotes .* float\('-inf'\)"),
        ("X.masked_fill(X == 0, '-inf')", r"text in quotes .* float\('-inf'\)"),
        (
            "torch.einsum('nqhd,nkhd->nhqk', X, X.transpose(1, 2))",
            "h is an axis of 3 in tensor 2 and of 4 in one before it",
        ),
        (
            "torch.zeros(2, 3)[:2, :2] = torch.ones(2, 3)",
            "along axis 1 the target has size 2 and the tensor 3",
        ),
        ("1 - (X == 0)", "mask == 0 does so for numbers"),
        ("nn.Linear(5, 5).transpose(1, 2)", r"the Linear layer itself.*layer\(x\)"),
        ("X @ nn.Linear(5, 5)", "the Linear layer itself"),
        ("F.dropout(X, nn.Dropout(0.1))", "the Dropout layer itself"),
        (
            "F.scaled_dot_product_attention(X, X, X, dropout_p=nn.Dropout(0.1))",
            "dropout_p takes a number, .* its attribute p",
        ),
        ("nn.Linear(4, 4).weight.chunk(2)[0].zero_()", "chunk, split .* none of them may"),
        ("nn.Linear(4, 4)(X.mT).unbind(1)[0].div_(2)", "chunk, split .* none of them may"),
        ("nn.Linear(5, 5)[X]", "brackets after a function, a method or a layer"),
        ("torch.ones(4)[:, :, None]", "number of axes is 1, and the brackets name more"),
        ("(X, X).keys", r"a plain tuple have numbers and no names: x\[0\]"),
        ("type('TestSize', (), {})()(8)", "object of the class TestSize: is self missing"),
        ("torch.ones(3).tril()", r"tril cuts a triangle out of a matrix, such as torch.ones\(n"),
        ("torch.matmul(nn.Dropout(0.1), X)", "the Dropout layer itself"),
        ("X[torch.ones(5) == 1]", "its tensor's first axes; masked_fill broadcasts"),
        (
            "X.bfloat16() @ X.mT",
            "BFloat16 and Float meet here: both need one dtype; .float.. gives Float, and so does",
        ),
        (
            "torch.ones(2, 2).half() @ torch.ones(2, 2).double()",
            "^Half and double meet here: both need one dtype$",
        ),
        (
            "F.scaled_dot_product_attention(X, X, X, X.bool().long())",
            "True and False, and adds one of floats.*make yours boolean",
        ),
        (
            "F.scaled_dot_product_attention(X, X, X, X == 1, dropout_p=0.5, is_causal=True)",
            "takes one of the two here",
        ),
        ("X[:, : torch.tensor([1, 2])]", "holds several numbers, or"),
        ("nn.Linear(8, 8)(X)", "rows of 5 numbers.*nn.Linear"),
        ("X @ X", "rows of 5 numbers, so .* size 5, and it has 4"),
        ("X + X.transpose(1, 2)", "along axis 2 one tensor has 4 and the other 3"),
        ("X.view(2, 3, 7)", "hold 42 numbers, and the tensor has 120"),
        ("X.view(2, -1, 7)", "has 120 numbers, and 14 does not divide"),
        ("X.transpose(1, 2).view(2, 60)", "not the order in memory"),
        ("torch.sqrt(4)", "plain int.*math.sqrt"),
        (
            "torch.softmax(None, -1)",
            "is None: it was set or passed as None, or .* without a return",
        ),
        ("None.shape", "None"),
        ("None + X", "None"),
        ("torch.cat([None, X])", "this value is None"),
        ("first_three(None)", "this value is None"),
        (
            "torch.cat([X, X[:, :2]], 2)",
            "joined along axis 2; along another, one has 3 and the other 2",
        ),
        ("torch.cat([X, X[0]])", "one has 4 axes, the other 3"),
        ("torch.stack([X, X[:, :2]])", r"one has \[2, 3, 4, 5\], the other \[2, 2, 4, 5\]"),
        ("X.view(2, 3, 20 / 1)", "a size is a float"),
        ("X.size()[:2] + (20 / 1,)", "a size is a float"),
        ("X[4 / 2]", "a whole number is needed here"),
        (
            "torch.nn.functional.scaled_dot_product_attention(X, X, X, None, True, 0.1)",
            "is_causal takes True or False: is the order .* is_causal= says",
        ),
        ("X - X.max(-1)", "the values and their indices: .max"),
        ("X.max(-1).exp()", ".values is the first"),
        ("torch.exp(X.max(-1))", ".values is the first"),
        ("X.softmax(dim=4)", "has 4 axes, 0 to 3 or -4 to -1, and no axis 4"),
        ("X[0, 0, 0].softmax(dim=-2)", "has one axis, 0 or -1, and no axis -2"),
        ("X.masked_fill(torch.ones(5), 0)", "True and False.* dtype .* is float"),
        ("torch.where(torch.ones(5), 0.0, X)", "where .* dtype .* is Float"),
        ("X.masked_fill(None == 0, 0)", "a plain True or False .* so does == with None"),
        ("X.masked_fill(~int(None != 0), 0)", "plain whole number here: ~ makes one"),
        ("X.clone().requires_grad_().fill_(0)", "make a new one"),
        ("not X", "one True or False"),
        ("first_three(value=X)", "has no parameter value: use the parameter names of the stub"),
        ("Early(value=X)", "no __init__ with the parameter value: .* two underscores"),
        ("Selfless(1, size=2)", "is self missing"),
        ("self", "first parameter of a method"),
        ("nn.Module().w_q", "^$"),  # for the line of code does not say self.w_q
        ("X.size[-1]", "cannot call it"),
        ("nn.Module()(X)", "no method called forward: .* indented"),
        ("x = 1\n  y", "further to the right"),
        ("Early().layer = nn.Linear(1, 1)", "call super"),
        ("first_three(X.split(1, dim=-1))", "3 names .* and there are more$"),
        ("first_three(X)", "3 names .* and there are only 2"),
        ("nn.init.xavier_uniform_(torch.ones(3))", "two sizes of a matrix; .* as a bias has"),
        ("torch.cat(X)", "torch.cat takes a list or tuple"),
        (
            "nn.Linear(5, 5, dtype=torch.double)(X)",
            "float and double meet|Float and Double meet",
        ),
        ("x\u00a0= 1", "cannot see"),
        ("if 1:\n\tx\n        y", "four spaces"),
        ("if 1:\n    x\n  y", "align it with its own"),
        ("x = \u201ca\u201d", "has \u201c where"),
        ("\0\0", "damaged, or no text"),
        ("null", "must end with .ipynb"),
        ("np", "nothing here is called np"),
        (
            "torch.ones(2, 1).masked_fill_(torch.ones(2, 2).bool(), 0)",
            r"cannot enlarge .* \[2, 1\]",
        ),
        (
            "torch.ones(2, requires_grad=True).exp().mul_(2).sum().backward()",
            "overwritten since: .* inplace=True",
        ),
        ("torch.view_as_complex(torch.ones(2, 3).mT)", "call contiguous"),
        ("math.pi(X)", "a plain float cannot be called"),
        ("math(X)", "import the function from it"),
        ("X.clone().requires_grad_().numpy()", "no gradient passes through numpy"),
        ("X.bfloat16().numpy()", "has no bfloat16"),
        ("X.transpose(0, 2, 1, 3)", "swaps two axes.*permute"),
        ("torch.transpose(X, 0, 2, 1)", "swaps two axes.*permute"),
        ("X.transpose(perm=[0, 2, 1])", "swaps two axes.*permute"),
        ("X.transpose([0, 2, 1])", "swaps two axes.*permute"),
        ("X.transpose((1, 2))", "swaps two axes.*permute"),
        *(
            (f"numpy.{name}({given})", f"np.{name} is called with a tensor: write torch.{name}")
            for name, given in (
                *(("max", "X"), ("max", "X, axis=-1, keepdims=True")),
                *(("sum", "X, axis=-1, keepdims=True"), ("mean", "X"), ("std", "X, axis=0")),
            )
        ),
        ("numpy.dot(X.numpy(), X.numpy())", "np.dot sums over other axes: matmul and @"),
        ("X[:, :, 4]", "axis 2 has 4 places and no place 4; a slice such as :4"),
        ("first_three(X, X)", "use the parameters of the stub"),
        ("first_three()", "use the parameters of the stub"),
        ("Alone().scores(X, X, mask=X)", "parameters before mask can take; .* its object, self"),
        ("X.expand(4, 5)", "has 4 axes, and expand cannot make 2"),
        ("torch.bmm(X, X)", "three axes only"),
        (
            "torch.where(X == 1, torch.finfo(torch.float64).min, 0.0)",
            "fit into float32, whose largest is 3.4e38",
        ),
        ("X.half().masked_fill(X == 1, -1e9)", "fit into float16.* 65504"),
        ("torch.einsum('tij,tjk->tik', X[0], X)", "3 axes for tensor 2, which has 4"),
        ("X.permute(0, 2, 1)", "has 4 axes, and permute was given 3"),
    ],
)
def test_an_exception_of_torchs_in_plain_words(code: str, words: str) -> None:
    message = message_of(code)
    assert re.search(words, plain_words(message)), message


def test_a_module_that_lacks_what_is_imported_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "submission", ModuleType("submission"))  # of a single file
    said = plain_words(message_of("from submission import split"))
    assert "does not define split: define it there, or submit" in said
    half = ModuleType("half")
    half.__file__, half.__spec__ = "half.py", ModuleSpec("half", None)
    half.__spec__._initializing = True
    monkeypatch.setitem(sys.modules, "half", half)
    assert "half.py imports itself" in plain_words(message_of("from half import split"))


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
    message = message_of(code)
    assert re.search(words, plain_words(message, f"y = {code}")), message


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
            "name 'attention' is not defined. Did you mean: 'self.attention'?",
            "x, weights = attention(q, k, v)",
            r"^attention belongs to the object: within a method write self\.attention$",
        ),
        (
            "module 'torch.nn' has no attribute 'softmax'. Did you mean: 'Softmax'?",
            "weights = nn.softmax(scores, -1)",
            "^classes of torch.nn begin with a capital letter, as nn.Linear does; functions",
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
        (
            "Mha.heads() takes 2 positional arguments but 3 were given",
            "q = self.heads(self.w_q, x)",
            r"^self.heads\(...\) passes self, too, before the values",
        ),
        ("Mha.heads() takes 2 positional arguments but 3 were given", "other.heads(a, b)", "^$"),
        (
            "Mha.__init__() takes 1 positional argument but 2 were given",
            "super().__init__(d_model)",
            "nn.Module takes none$",
        ),
        (
            "Mha.heads() missing 1 required positional argument: 'x'",
            "q = Mha.heads(self.w_q, x)",
            "^called on the class, heads gets no self",
        ),
        (
            "Mha.heads() missing 1 required positional argument: 'x'",
            "q = self.heads(self.w_q)",
            "^$",
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
    if module in sys.builtin_module_names:
        pytest.skip("no file can take the place of this one")
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
        ("value cannot be converted to type int64_t without overflow", "has the dtype int64, and"),
        ("unhashable type: 'MultiHeadAttention'", "@dataclass(eq=False)"),
        (
            "einsum(): subscript b is repeated for operand 1 but the sizes don't match, 2 != 1",
            "two axes of one tensor share the letter b",
        ),
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
        late += 1  # noqa: F821
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
