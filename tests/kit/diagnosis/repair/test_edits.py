"""The edits of a source: each wrong answer below has its repair among them, at its place."""

import ast
import json

import pytest

from grader.diagnosis.repair.edits.edit import Edit
from grader.diagnosis.repair.edits.finding import beside, edits, look


def edits_of(source: str, target: str = "f", **more: object) -> list[Edit]:
    given = {"others": [], "lines": {}, "signatures": {}, **more}
    return edits([("a.py", source)], [target], **given)


REPAIRS = [
    # a wrong answer, the text to point at, and the right answer
    ("return x.softmax(1)", "x.softmax(1)", "return x.softmax(-1)"),
    ("return F.softmax(x, dim=0)", "F.softmax(x, dim=0)", "return F.softmax(x, dim=-1)"),
    ("return x.transpose(1, 2)", "x.transpose(1, 2)", "return x.transpose(-2, -1)"),
    ("return x.permute(0, 1, 2, 3)", "x.permute(0, 1, 2, 3)", "return x.permute(0, 2, 1, 3)"),
    ("return x.view(a, b, c)", "b, c", "return x.view(a, c, b)"),
    (
        "return x.view(a, b, c, d)",
        "x.view(a, b, c, d)",
        "return x.view(a, c, b, d).transpose(1, 2)",
    ),
    ("return x.T @ y", "x.T", "return x.transpose(-2, -1) @ y"),
    ("return x @ y", "y", "return x @ y.transpose(-2, -1)"),
    ("return x.mT @ (y)", "x.mT", "return x @ (y.mT)"),
    ("return x @ y.transpose(a, b)", "y.transpose(a, b)", "return x.transpose(a, b) @ y"),
    ("return torch.bmm(x.mT, y)", "x.mT", "return torch.bmm(x, y.mT)"),
    ("return x.mT.matmul(y - a)", "x.mT", "return x.matmul((y - a).mT)"),
    ("return x * y", "x * y", "return x / y"),
    ("return x / y", "x / y", "return y / x"),
    ("return (x @ y) / a * 2", "* 2", "return ((x @ y) / a)"),
    ("return (x @ y) / a", "/ a", "return (x @ y)"),
    ("return x @ (a * y)", "a *", "return x @ (y)"),
    ("return x < y", "x < y", "return x <= y"),
    ("return x.masked_fill(y, 0)", "y", "return x.masked_fill(~y, 0)"),
    ("return x.masked_fill(y, -1e9)", "-1e9", 'return x.masked_fill(y, float("-inf"))'),
    ("return x.masked_fill_(y, 0)", "x.masked_fill_(y, 0)", "return x.masked_fill(y, 0)"),
    ("return x.sum(-1)", "x.sum(-1)", "return x.sum(-1, keepdim=True)"),
    ("return x - x.max(-1)", "x.max(-1)", "return x - x.max(-1).values"),
    ("return x.detach() * y.detach()", ".detach()", "return x * y"),
    ("return x.data * (y).data", "x.data", "return x * (y)"),
    ("return x.view(a, b)", "x.view(a, b)", "return x.reshape(a, b)"),
    ("return x.tril()", "x.tril()", "return x.tril(diagonal=1)"),
    ("return torch.tril(x)", "torch.tril(x)", "return torch.triu(x)"),
    ("return x.argmax(1)", "x.argmax(1)", "return x.argmin(1)"),
    ("return x.isalpha()", "x.isalpha()", "return x.isalnum()"),
    ("return g(h(x))", "g(h(x))", "return h(g(x))"),
    ("return x.size(1)", "x.size(1)", "return x.size(-1)"),
    ("return x.shape[1]", "x.shape[1]", "return x.shape[-1]"),
    ("return x.contiguous()", "x", "return x.transpose(1, 2).contiguous()"),
    ("return cat([x, y])", "cat([x, y])", "return cat([x, y], dim=2)"),
    ("return x * y", "x * y", "return x @ y"),
    ("return x / a ** 1 / 2", "a ** 1", "return x / a ** (1 / 2)"),
    ("return x ** y * a", "x ** y", "return x ** (y * a)"),
    ("return g(x) - y", "g(x)", "return g(x - y)"),
    ("return x < y", "y", "return x < y[..., None]"),
    ("return x * y", "x", "return x[..., None] * y"),
    ("return torch.matmul(x, y)", "y", "return torch.matmul(x, y.transpose(1, 2))"),
    ("return g(range(1, a + 1))", "range(1, a + 1)", "return g(range(a))"),
    ("return arange(a, b)", "arange(a, b)", "return arange(a, a + b)"),
    ("return x.repeat(1, a)", "x.repeat(1, a)", "return x.repeat_interleave(a, dim=-1)"),
    ("return x.tile((1, a, 1))", "x.tile((1, a, 1))", "return x.repeat_interleave(a, dim=-2)"),
    ("return x, y", "x, y", "return y, x"),
    ("return [x, y]", "[x, y]", "return (x, y)"),
    ("return x[:1]", "x[:1]", "return x"),
    ("return x[:a - 1]", "- 1", "return x[:a]"),
    ("return g(x, y)", "x", "return g(y, y)"),
    ("x.add(y)\n    return x", "x.add(y)", "x = x.add(y)\n    return x"),
    (
        "for a in x:\n        y = g(a)\n        return y",
        "return y",
        "for a in x:\n        y = g(a)\n    return y",
    ),
    (
        "if a:\n        x = g(\n            x)\n        x = h(x)\n        x = y\n    return x",
        "x = h(x)",
        "if a:\n        x = g(\n            x)\n    x = h(x)\n    x = y\n    return x",
    ),
    ("x.add_(y)\n    return x", "x.add_(y)", "x = x.add(y)\n    return x"),
    ("x *= y\n    return x", "x *= y", "x = x * (y)\n    return x"),
    ("x = x * y", "x = x * y", "x = x * y\n    return x"),
    ("print(x)", "print(x)", "return x"),
    ("if a:\n        return y", "if a:\n        return y", "if a:\n        return y\n    return x"),
    ("y = g(x)\n    x = h(y)\n    return x", "x = h(y)", "y = h(x)\n    x = g(y)\n    return x"),
    ("if x.any():\n        return y\n    return x", "x.any()", "pass\n    return x"),
    (
        "if x.training:\n        y = a\n    return y",
        "x.training",
        "if True:\n        y = a\n    return y",
    ),
    ("raise Exception(x)", "Exception", "raise ValueError(x)"),
    ("raise 'uneven'", "'uneven'", "raise ValueError('uneven')"),
    ("raise f'{x}'", "f'{x}'", "raise ValueError(f'{x}')"),
    ("if x:\n        return None", "return None", "if x:\n        raise ValueError"),
    ("ValueError(x)\n    return x", "ValueError(x)", "raise ValueError(x)\n    return x"),
    ("a, b = x\n    return a - b", "a, b", "b, a = x\n    return a - b"),
    ("return zip((a, b, c), x)", "(a, b, c)", "return zip((c, b, a), x)"),
    ("a, b, c = x.shape\n    return c", "a, b, c", "c, b, a = x.shape\n    return c"),
    ("return x.sum(dim=1) + y.sum(dim=1)", "x.sum(dim=1)", None),
]


@pytest.mark.parametrize("body, marked, repaired", REPAIRS[:-1])
def test_a_usual_mistake_has_its_repair(body: str, marked: str, repaired: str) -> None:
    source, right = (f"def f(x, y, a, b, c, d):\n    {code}\n" for code in (body, repaired))
    found = [each for each in edits_of(source) if each.applied(source) == right]
    assert found
    assert marked in {source[each.start : each.end] for each in found}


@pytest.mark.parametrize("call", ["x.roll(1, -1)", "roll(x, 1, -1)", "chunk(x, 1, -1)"])
def test_a_number_before_the_axis_is_no_axis(call: str) -> None:
    source = f"def f(x):\n    return {call}\n"
    found = [each for each in edits_of(source) if each.kind.startswith("the axis of this")]
    assert found
    assert all(call.partition("-1")[0] in each.applied(source) for each in found)


def test_a_number_that_is_compared_is_no_filling() -> None:
    found = edits_of("def f(x):\n    if x is None or x.sum() == 0:\n        return x\n")
    half, number = (
        min(each.cost for each in found if told in each.kind)
        for told in ("half of which", "this number")
    )
    assert half < number


@pytest.mark.parametrize("count", ["x.dim()", "x.ndim", "len(x.shape)"])
def test_a_number_of_axes_is_no_fixed_size(count: str) -> None:
    source = (
        f"def f(x):\n    a = x.shape[0]\n    if {count} == 2: x = x + 1\n    return x.view(9, a)\n"
    )
    fixed = [edit for edit in edits_of(source) if edit.rule == "fixed"]
    assert {source[edit.start : edit.end] for edit in fixed} == {"9"}


def test_a_default_number_may_be_zero() -> None:
    source = "def f(x, p=0.1):\n    return g(x, p)\n"
    assert source.replace("0.1", "0.0") in {each.applied(source) for each in edits_of(source)}


def test_what_an_exception_was_raised_for_is_likely() -> None:
    source = "def f(x, y):\n    if x % y:\n        raise ValueError(x)\n    return x\n"
    right = source.replace("x % y", "y % x")

    def cost(**more: object) -> float:
        return next(e.cost for e in edits_of(source, **more) if e.applied(source) == right)

    assert cost(lines={"a.py": [3]}) < cost()


def test_equal_edits_are_made_at_once() -> None:
    source = "def f(x, y):\n    return x.sum(dim=1) + y.sum(dim=1)\n"
    found = {each.applied(source) for each in edits_of(source)}
    assert "def f(x, y):\n    return x.sum(dim=-1) + y.sum(dim=-1)\n" in found


def test_what_is_made_and_never_used_is_tried_on_each_value() -> None:
    source = (
        "class f:\n    def __init__(self, n):\n        self.layer = Linear(n)\n\n"
        "    def forward(self, x):\n        return x, 1\n"
    )
    found = {each.applied(source) for each in edits_of(source)}
    assert source.replace("return x, 1", "return self.layer(x), 1") in found


def test_what_is_left_of_an_edit_is_python() -> None:
    for body, _, _ in REPAIRS:
        source = f"def f(x, y, a, b, c, d):\n    {body}\n"
        for each in edits_of(source):
            ast.parse(each.applied(source))


def test_positions_count_characters_and_not_bytes() -> None:
    source = "def f(x):\n    é = x; return é.softmax(1)\n"
    right = source.replace("softmax(1)", "softmax(-1)")
    [found] = [each for each in edits_of(source) if each.applied(source) == right]
    assert source[found.start : found.end] == "é.softmax(1)"


def test_only_what_the_target_reaches_is_edited() -> None:
    source = (
        "def g(x):\n    return x.sum(0)\n\ndef h(x):\n    return x.sum(0)\n\n"
        "def other(x):\n    return x.sum(0)\n\ndef f(x):\n    return g(other(x))\n"
    )
    found = {each.start for each in edits_of(source, others=["other"])}
    assert any(source.index("def g") < at < source.index("def h") for at in found)
    assert not any(source.index("def h") < at < source.index("def f") for at in found)


def test_a_setting_for_all_code_is_the_first_suspect() -> None:
    source = "def f(x):\n    torch.manual_seed(0)\n    return x.sum()\n"
    own = edits_of(source)[0]
    assert own.applied(source).endswith("    pass\n    return x.sum()\n")
    assert own.kind == "this call of manual_seed, which is not needed"


def test_what_stands_beside_may_go_if_it_binds_nothing_new() -> None:
    kept = (
        "'words'\nimport a\nn = 1\ntry:\n    import b\nexcept ImportError:\n    n = 2\n"
        "def f(x):\n    return x\nclass C: pass\nfor i in n: pass\n"
    )
    gone = ["n = 3", "print(n)", "del a", "sum = 4", "a.b = f", "for n in f: pass", "f += 1"]
    again = "def f(x):\n    return 2\n"
    found = beside([("1", kept), ("2", "\n".join([*gone, again]))], True)
    assert {each.source for each in found} == {"2"}
    text = "\n".join([*gone, again])
    assert [text[each.start : each.end] for each in found if each.rule == "beside"] == gone
    [replaced] = [each for each in found if each.rule == "again"]
    assert replaced.applied(text).endswith("f += 1\npass\n")
    alone = beside([("1", kept), ("2", "n = 3\nn = 4\nprint(a)")], False)
    assert [each.start for each in alone] == [6, 12]


def test_the_line_of_an_exception_comes_first() -> None:
    source = "def f(x):\n    y = x.sum(1)\n    z = y.sum(1)\n    return z\n"
    found = edits_of(source, lines={"a.py": [3]})
    assert found[0].start >= source.index("z = ")


def test_then_comes_what_the_line_of_an_exception_reads() -> None:
    source = (
        "class f:\n"
        "    def __init__(self, a, b, n):\n"
        "        self.heads, self.width = n, a // n\n"
        "        self.other = a // n\n"
        "    def forward(self, x):\n"
        "        y = x.sum(1)\n"
        "        z = x.sum(1)\n"
        "        return y.view(self.heads, self.width)\n"
    )
    found = edits_of(source, lines={"a.py": [8]})

    def place(part: str) -> int:
        """At which place an edit of this text comes."""
        at = source.index(part)
        return next(n for n, edit in enumerate(found) if at <= edit.start < at + len(part))

    assert place("y.view") < place("a // n\n        self.other") < place("a // n\n    def")
    assert place("y = x.sum(1)") < place("z = x.sum(1)")


def test_a_name_may_lack_self_and_an_attribute_may_be_a_parameter() -> None:
    source = (
        "class f:\n"
        "    def __init__(self, n):\n"
        "        self.n, self.w = n, Linear(n)\n"
        "    def forward(self, x, size):\n"
        "        return w(x).view(n, x.size)\n"
    )
    found = edits_of(source)
    unbound = {edit.parts[0][2] for edit in found if edit.rule == "unbound"}
    assert unbound == {"self.n", "self.w"}
    assert "size" in {edit.parts[0][2] for edit in found if edit.rule == "attribute"}


def test_a_method_may_lack_self() -> None:
    source = "class f:\n    def g(self):\n        pass\n    def h(self):\n        return g(1)\n"
    assert "self.g" in {edit.parts[0][2] for edit in edits_of(source)}


def test_axes_that_are_exchanged_just_before_are_not_exchanged_again() -> None:
    source = "def f(x):\n    return x.transpose(2, 3).contiguous().view(a, b, c)\n"
    rules = {edit.rule for edit in edits_of(source)}
    assert "axes" in rules and "shaped" not in rules


def test_a_layer_is_never_tried_as_a_size() -> None:
    source = (
        "class f:\n"
        "    def __init__(self, n):\n"
        "        self.width, self.layer = n, None\n"
        "        self.size = int(n)\n"
        "        self.w_q = nn.Linear(n, n)\n"
        "    def forward(self, x):\n"
        "        b = x.shape[0]\n"
        "        return x.view(b, 2)\n"
    )
    tried = {new for edit in edits_of(source) for _, _, new in edit.parts}
    assert {"self.width", "self.size"} <= tried and "self.w_q" not in tried


@pytest.mark.parametrize(
    ("steps", "repaired"),
    [
        ("q = g(self.w_q(x), n)\n        k = self.w_k(y)", "k = g(self.w_k(y), n)"),
        (
            "q = self.w_q(x).view(x.shape[0], -1, n).mT\n        k = self.w_k(y).mT",
            "k = self.w_k(y).view(y.shape[0], -1, n).mT",
        ),
        ("k = g(self.w_k(y))\n        q = self.w_q(x).mT", "q = g(self.w_q(x))"),
        ("q, k = g(self.w_q(x)), self.w_k(x)", "q, k = g(self.w_q(x)), g(self.w_k(x))"),
    ],
)
def test_a_value_is_made_as_another_is_from_its_own_layer(steps: str, repaired: str) -> None:
    source = f"class f:\n    def forward(self, x, y, n):\n        {steps}\n        return q @ k\n"
    found = {edit.applied(source): edit for edit in edits_of(source) if edit.rule == "alike"}
    whole = source.replace(steps.rpartition("\n        ")[2], repaired)
    assert "made differently from the one in line" in found[whole].kind


def test_values_of_one_layer_are_not_made_alike() -> None:
    source = "class f:\n    def forward(self, x, y):\n        q, k = g(self.w(x)), self.w(y)\n"
    assert not [edit for edit in edits_of(source) if edit.rule == "alike"]


def test_parameters_are_renamed_wherever_they_are_used() -> None:
    source = "def f(first, y, last):\n    return first + last\n"
    found = edits_of(source, signatures={"f": ["x", "y", "z"]})
    assert found[0].applied(source) == "def f(x, y, z):\n    return x + z\n"
    assert found[0].kind == "the name of these parameters: the exercise says x, z"


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("def f(y, x, z=1):", "def f(x, y, z=1):"),
        ("def f(z: int = 2, x=0, y: int = 1):", "def f(x=0, y: int = 1, z: int = 2):"),
        ("def f(x, z=2, y: bool = True):", "def f(x, y: bool = True, z=2):"),
    ],
)
def test_parameters_are_put_in_the_order_of_the_exercise(given: str, asked: str) -> None:
    source, right = (f"{line}\n    return x / y + z\n" for line in (given, asked))
    found = edits_of(source, signatures={"f": ["x", "y", "z"]})
    assert any(each.applied(source) == right for each in found)


@pytest.mark.parametrize(
    ("method", "right"),
    [
        ("def g(x):", "def g(self, x):"),
        ("def g():", "def g(self):"),
        ("@staticmethod\n    def g(self, x):", "@staticmethod\n    def g(x):"),
    ],
)
def test_a_method_takes_self_and_a_static_one_does_not(method: str, right: str) -> None:
    source, repaired = (f"class f:\n    {each}\n        return 1\n" for each in (method, right))
    found = next(each for each in edits_of(source) if each.applied(source) == repaired)
    assert source[found.start : found.end] == "g"
    assert not any("self" in each.kind for each in edits_of(repaired))


def test_a_parameter_without_a_default_stays_before_those_with_one() -> None:
    source = "def f(z, x=0, y=1):\n    return x / y + z\n"
    found = edits_of(source, signatures={"f": ["x", "y", "z"]})
    assert not any("order of these parameters" in each.kind for each in found)


def test_of_two_definitions_the_last_one_counts() -> None:
    first, last = "def f(x):\n    return x.sum(0)\n", "def f(x):\n    return x.sum(1)\n"
    found = edits([("1", first), ("2", last)], ["f"], [], {}, {})
    assert {each.source for each in found} == {"2"}


@pytest.mark.parametrize("source", ["", "def f(:", "f = 3\n", "x = (" * 300])
def test_there_may_be_nothing_to_edit(source: str) -> None:
    assert edits_of(source, "f") == [] or source.startswith("f")


def test_edits_travel_as_data() -> None:
    source = "def f(x):\n    return x.sum(0)\n"
    about = {"sources": [("a.py", source)], "targets": ["f"], "is_notebook": False, "way": ""}
    about["whole"] = about["sources"]
    told = json.dumps(look({**about, "others": [], "lines": {}, "signatures": {}}))
    again = [
        Edit(name, tuple((a, b, new) for a, b, new in parts), *more)
        for name, parts, *more in json.loads(told)["edits"]
    ]
    assert again == edits_of(source)


def test_a_check_of_the_arguments_is_not_called_needless() -> None:
    source = "def f(x, n):\n    if x % n:\n        raise ValueError\n    if x:\n        x = n\n"
    kinds = {
        source[each.start : each.end]: each.kind
        for each in edits_of(source)
        if each.rule == "statement"
    }
    assert kinds["x % n"] == "this condition, which refuses what is allowed"
    assert kinds["x"] == "this block, which is not needed"
