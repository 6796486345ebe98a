"""Where two submissions have the same digest, each gets by itself what the other one gets.

The second one has a cell more, of code that is grown at random by Python's own grammar: each kind
of statement, expression and pattern that the running Python has is the root of some of it.
"""

import ast
import random
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy  # noqa: F401 - a name of a library that is loaded is looked up
import pytest

from grader.classes.sharing.same_code import same_code
from grader.engine import Engine, Request, with_engine
from grader.run.reader import Reader, SourceReader
from grader.types.submission import Submission
from tests.kit.classes.folder_class import RIGHT
from tests.kit.support.checkout import TINY

STAGES = TINY.stages[:1]
OLD = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis", "Index", "ExtSlice", "Suite", "AugLoad"}
NAMES = (
    *("moving_average", "np", "values", "width", "len", "self", "x", "ones", "zeros"),
    *("ValueError", "__builtins__", "__globals__", "__name__", "setattr", "dataclass"),
)
CONSTANTS: tuple[object, ...] = (0, 1, -1.5, 2j, "ones", "{0.__class__}", b"x", None, True, ...)
TARGETS = ("Name", "Name", "Name", "Attribute", "Subscript", "Starred")
FIELD = re.compile(r"(\w+)([*?]?) (\w+)")
TRIES = 400

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux locks the worker")


@cache
def kinds(of: type[ast.AST]) -> list[type[ast.AST]]:
    """The kinds of statements, expressions or patterns of the running Python."""
    found = (getattr(ast, name) for name in dir(ast) if name not in OLD)
    return [each for each in found if isinstance(each, type) and of in each.__mro__[1:2]]


STATEMENTS, EXPRESSIONS, PATTERNS = kinds(ast.stmt), kinds(ast.expr), kinds(ast.pattern)
KINDS = [*STATEMENTS, *EXPRESSIONS, *PATTERNS]
# What only stands within another kind of expression.
WITHIN: dict[type[ast.AST], type[ast.AST]] = {
    ast.Slice: ast.Subscript,
    ast.MatchStar: ast.MatchSequence,
}
TEXTS = {"JoinedStr": "FormattedValue", "TemplateStr": "Interpolation"}  # and what is in them
for text, inside in TEXTS.items():
    if hasattr(ast, inside):
        WITHIN[getattr(ast, inside)] = getattr(ast, text)


class Grower:
    """Grows trees by the fields that each kind of node tells in its documentation."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def grow(self, kind: type[ast.AST], depth: int = 0) -> ast.AST:
        """A tree with a node of this kind at its root."""
        told = FIELD.findall((kind.__doc__ or "").partition("(")[2])
        fields = {name: self._field(kind, *rest, name, depth + 1) for *rest, name in told}
        return _mended(kind(**fields))

    def _field(self, owner: type[ast.AST], sort: str, many: str, name: str, depth: int) -> Any:
        if many == "?" and (depth > 2 or self._chance.random() < 0.5):
            return None
        if many != "*":
            return self._one(owner, sort, name, depth)
        least = int(name in ("body", "names", "items", "targets", "generators", "cases", "values"))
        count = self._chance.randint(least, 2 if depth < 3 else max(least, 1))
        return [self._one(owner, sort, name, depth) for _ in range(count)]

    def _one(self, owner: type[ast.AST], sort: str, name: str, depth: int) -> Any:
        choose = self._chance.choice
        if sort == "identifier":
            modules = (owner is ast.alias and name == "name") or name == "module"
            return choose(("numpy", "math", "random", "typing")) if modules else choose(NAMES)
        if sort in ("constant", "string"):
            return choose(CONSTANTS) if sort == "constant" else None
        if sort == "int":
            return {"conversion": -1, "simple": 1}.get(
                name, self._chance.randint(0, name[0] == "i")
            )
        if sort == "expr" and name in ("target", "targets", "optional_vars"):
            kind = getattr(ast, choose(TARGETS[: 1 if owner is ast.NamedExpr else 5]))
        elif owner.__name__ in TEXTS:
            kind = getattr(ast, TEXTS[owner.__name__])
        elif sort in ("stmt", "expr") and depth > 3:
            kind = choose([ast.Pass, ast.Break] if sort == "stmt" else [ast.Name, ast.Constant])
        elif sort == "pattern" and depth > 3:
            kind = ast.MatchAs
        else:
            base = getattr(ast, sort)
            kind = choose(kinds(base) or [base])
        return self.grow(kind, depth)


def _mended(node: Any) -> Any:
    """The node with as many of one field as there are of another, where that must be."""
    if isinstance(node, (ast.Dict, ast.Compare, ast.MatchMapping, ast.MatchClass)):
        one, other = {
            ast.Dict: ("keys", "values"),
            ast.Compare: ("ops", "comparators"),
            ast.MatchMapping: ("keys", "patterns"),
            ast.MatchClass: ("kwd_attrs", "kwd_patterns"),
        }[type(node)]
        count = min(len(getattr(node, one)), len(getattr(node, other)))
        for name in (one, other):
            setattr(node, name, getattr(node, name)[:count])
    if isinstance(node, ast.arguments):
        node.kw_defaults = [None for _ in node.kwonlyargs]
        node.defaults = node.defaults[: len(node.posonlyargs) + len(node.args)]
    if isinstance(node, ast.BoolOp):
        node.values = [*node.values, ast.Name("x")]
    if isinstance(node, (ast.MatchClass, ast.MatchValue)):
        setattr(
            node, node._fields[0], ast.Name("x") if node._fields[0] == "cls" else ast.Constant(1)
        )
    return node


def grown(kind: type[ast.AST], chance: random.Random) -> str:
    """A cell with this kind of node in it; one that Python can read."""
    for _ in range(TRIES):
        root = WITHIN.get(kind, kind)
        try:
            tree: Any = Grower(chance).grow(root)
            if root in PATTERNS:
                tree = ast.Match(ast.Name("x"), [ast.match_case(tree, None, [ast.Pass()])])
            elif root in EXPRESSIONS:
                tree = ast.Expr(ast.List([tree, ast.Constant(1)]))
            text = ast.unparse(ast.fix_missing_locations(ast.Module([tree], [])))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if any(isinstance(node, kind) for node in ast.walk(ast.parse(text))):
                    return text + "\n"
        except Exception:  # noqa: BLE001 - what is grown need not be Python
            continue
    raise AssertionError(f"nothing with {kind.__name__} in it can be read")


def twins(seed: int, count: int) -> Iterator[Submission]:
    """The right answer with a cell more that leaves its digest as it is."""
    reader = Reader(None)

    def digest(*cells: str) -> object:
        submission = Submission("x", {}, cells=cells)
        source = SourceReader(reader, submission)
        same = same_code(TINY, Request(submission, STAGES, 1), source).get(STAGES[0].slug)
        return same and same.digest

    known = digest(RIGHT)
    assert known is not None
    texts = dict.fromkeys(  # many grow more than once
        grown(kind, random.Random(f"{seed} {kind.__name__} {number}"))
        for kind in KINDS
        for number in range(count)
    )
    for text in texts:
        for cells in ((RIGHT, text), (text, RIGHT)):
            if digest(*cells) == known:
                yield Submission(text, {}, cells=cells)


def expect_the_same(submissions: Sequence[Submission]) -> None:
    """Each of them gets by itself what the right answer gets."""

    def body(engine: Engine) -> list[str]:
        engine.rehearse(STAGES, 11)  # as for a class
        return [
            submission.name
            for submission in submissions
            if engine.grade(Request(submission, STAGES, seed=11)).score != STAGES[0].points
        ]

    assert with_engine(TINY, STAGES, "cpu", body) == []


def test_who_has_the_same_digest_gets_the_same_by_itself() -> None:
    found = list(twins(seed=1, count=1))
    assert len(found) > 10  # so that there is something to try
    expect_the_same(found[:: max(1, len(found) // 20)])


def test_every_kind_of_node_is_grown() -> None:
    assert len(KINDS) >= 27 + 26 + 8  # those of Python 3.10
    for kind in KINDS:
        text = grown(kind, random.Random(kind.__name__))
        assert any(isinstance(node, kind) for node in ast.walk(ast.parse(text)))


@pytest.mark.slow
def test_who_has_the_same_digest_gets_the_same_by_itself_often() -> None:
    expect_the_same(list(twins(seed=2, count=20)))
