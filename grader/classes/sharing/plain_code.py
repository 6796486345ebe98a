"""Whether code is plain: whether it reaches nothing but its own values, and keeps no state."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from types import ModuleType

_KNOWN = 1000  # names to remember
# Modules that keep no state by which one answer could affect another.
PLAIN_MODULES = frozenset(
    {
        *("__future__", "collections", "copy", "dataclasses", "functools", "itertools", "math"),
        *("numpy", "operator", "random", "typing"),
    }
)
# Parts of libraries by which code reaches no other module. Any other part may lead to one.
_PLAIN_PARTS = frozenset(
    {
        *("collections.abc", "numpy.fft", "numpy.lib", "numpy.lib.stride_tricks", "numpy.linalg"),
        *("numpy.random", "numpy.typing", "torch.autograd", "torch.cuda", "torch.fft"),
        *("torch.linalg", "torch.nn", "torch.nn.functional"),
        *("torch.nn.init", "torch.nn.parameter", "torch.nn.utils", "torch.optim", "torch.random"),
        *("torch.special", "torch.utils", "torch.utils.data"),
    }
)
_CHANGEABLE = (dict, list, set, bytearray)
_PLAIN_BUILTINS = frozenset(
    {
        *("abs", "all", "any", "bool", "callable", "classmethod", "complex", "dict", "divmod"),
        *("enumerate", "filter", "float", "format", "frozenset", "int", "isinstance", "iter"),
        *("issubclass", "len", "list", "map", "max", "min", "next", "object", "pow", "print"),
        *("property", "range", "repr", "reversed", "round", "set", "slice", "sorted"),
        *("staticmethod", "str", "sum", "super", "tuple", "zip"),
        *("Ellipsis", "NotImplemented", "__name__", "display", "grade_here"),
    }
)
# Attributes that change something for all code, that run text as code, that read a file, that tell
# code its own lines, or that give access to other modules, to frames or to a block that was entered
# by hand.
_WIDE_PREFIXES = (
    *("set_", "seterr", "setbufsize", "use_", "register_module_"),
    *("ag_", "cr_", "gi_", "tb_"),
)
_WIDE = frozenset(
    {
        *("as_strided", "attrgetter", "backends", "benchmark", "builtins", "compile", "cond"),
        *("copyreg", "cpp_extension", "ctypes", "ctypeslib", "delitem", "detect_anomaly"),
        *("distributed", "get_overloads", "while_loop"),
        *("DataSource", "evaluate_forward_ref", "setitem"),
        *("export", "f2py", "ForwardRef", "from_file", "fromfile", "fromregex", "func", "fx", "gc"),
        *("gen", "genfromtxt", "get_type_hints", "hub", "importlib", "inspect", "jit", "library"),
        *("load", "loadtxt", "make_dataclass", "memmap", "methodcaller", "multiprocessing"),
        *("open_memmap", "ops", "os", "overrides", "package", "profiler", "register", "save"),
        *("serialization", "singledispatch", "singledispatchmethod", "subprocess", "sys"),
        *("testing", "threading"),
        *("total_ordering", "Type", "types", "update_wrapper", "warnings", "wraps"),
    }
)
_IMPORTS = (ast.Import, ast.ImportFrom)
_UNUSUAL = (ast.Global, ast.Await, ast.AsyncFor, ast.AsyncFunctionDef, ast.AsyncWith)
_YIELDS = (ast.Yield, ast.YieldFrom)
_OWN_DUNDERS = frozenset({"__all__", "__slots__"})  # special names that code may bind
# Special methods that code may define. By others `copy` gives a state to any object, numpy reads
# memory, or the first argument is a class.
_OWN_METHODS = frozenset(
    {
        *("__call__", "__contains__", "__enter__", "__eq__", "__exit__", "__getitem__", "__init__"),
        *("__iter__", "__len__", "__next__", "__post_init__", "__repr__", "__str__"),
    }
)
_ON_SELF = frozenset({"getattr", "hasattr", "setattr"})  # only with `self` and a plain name
DECORATORS = frozenset({"classmethod", "dataclass", "property", "staticmethod"})
HARMLESS_CALLS = frozenset(
    {*("complex", "display", "float", "grade_here", "int", "namedtuple", "partial", "print")}
)
_MAIN = ast.dump(ast.parse("__name__ == '__main__'", mode="eval").body)
_STILL = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.keyword),
    *(ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator, ast.expr_context),
)


def outside(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that run in the module's own scope."""
    inner = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef))
    yield node
    for name, value in ast.iter_fields(node):
        if not (inner and name in ("body", "type_params")):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    yield from outside(each)


# --- code that reaches only its own values -------------------------------------------------------


class Finder:
    """Finds whatever is unusual in a source.

    `modules` are the full names of all imports, and `mentions` all names in the code. `fills` are
    the names whose items are assigned to, `pries` those whose private attributes are read, and
    `uses` those that are used in any other way than by calling them. `stores` are the methods that
    change their `self`, and `asks` the attributes read from anything but a `self`; `dotted` are
    names that are joined by dots. It `is_plain` if there is nothing else.
    """

    def __init__(self) -> None:
        self.is_plain = True
        self.modules: set[str] = set()
        self.mentions: set[str] = set()
        self.fills: set[str] = set()
        self.pries: set[str] = set()
        self.uses: set[str] = set()
        self.stores: set[str] = set()
        self.asks: set[str] = set()
        self.dotted: set[str] = set()

    def look_through(self, tree: ast.Module) -> None:
        """Collect everything."""
        outside = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
        every = list(ast.walk(tree))
        on_self = {
            id(node.func)
            for node in every
            if isinstance(node, ast.Call) and _is_plain_on_self(node.args)
        }
        harmless = {id(each) for node in every for each in _called(node)}
        supers = {id(each.func) for each in _usual_supers(every)}
        decorators = {id(each) for node in every for each in _decorators(node)}
        withs = any(isinstance(node, ast.With) for node in every)
        self.is_plain = _has_only_usual_self(every) and not (
            any(isinstance(node, _UNUSUAL) for node in every)
            # A block that a generator has entered stays open until the generator goes on.
            or (withs and any(isinstance(node, _YIELDS) for node in every))
            # A loop in a cell may never end.
            or any(isinstance(node, ast.While) for each in outside for node in ast.walk(each))
        )
        for node in every:
            if isinstance(node, _IMPORTS):
                self._import(node)
            elif isinstance(node, ast.Name):
                self._name(node, is_harmless=id(node) in harmless)
                self.is_plain &= node.id not in _ON_SELF or id(node) in on_self
                self.is_plain &= node.id != "super" or id(node) in supers
            elif isinstance(node, ast.Attribute):
                self._attribute(node)
            if "dataclass" in (getattr(node, "id", ""), getattr(node, "attr", "")):
                self.is_plain &= id(node) in decorators  # it changes the class that it decorates
            if isinstance(node, ast.MatchClass):
                for name in node.kwd_attrs:
                    self._attribute(ast.Attribute(node.cls, name, ast.Load()))
            elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                self.fills.add(_root(node))
            elif isinstance(node, ast.comprehension):
                self.is_plain &= not node.is_async
            elif isinstance(node, ast.FunctionDef):
                self.is_plain &= not is_magic(node.name) or node.name in _OWN_METHODS
            elif isinstance(node, ast.ClassDef):
                self._class(node)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            name = alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
            self.modules.add(name)
            self.mentions.update(name.split("."))
            self.is_plain &= alias.name != "*" and not is_magic(alias.asname or "")
            self.is_plain &= alias.name != "dataclass" or not alias.asname
        self.is_plain &= not getattr(node, "level", 0)

    def _name(self, node: ast.Name, *, is_harmless: bool) -> None:
        self.mentions.add(node.id)
        self.asks.add(node.id)  # inside its class a method is a plain name
        if not isinstance(node.ctx, ast.Load):
            self.is_plain &= not is_magic(node.id)
        elif not is_harmless:
            self.uses.add(node.id)

    def _attribute(self, node: ast.Attribute) -> None:
        owner = node.value
        is_super = isinstance(owner, ast.Call) and _is_name(owner.func, "super")
        self.mentions.add(node.attr)
        self.dotted.add(_dotted(node))
        if not (_is_self(owner) or is_super):
            self.asks.add(node.attr)
        # Only the attributes of `self` certainly belong to the code itself.
        self.is_plain &= isinstance(node.ctx, ast.Load) or _is_self(owner)
        if not node.attr.startswith("_"):
            self.is_plain &= not _is_wide(node.attr) and not _may_format(node)
        elif isinstance(owner, ast.Name) and not node.attr.startswith("__"):
            if owner.id not in ("self", "cls"):
                self.pries.add(owner.id)
        else:  # only `super().__init__` is allowed
            self.is_plain &= is_super and node.attr == "__init__"

    def _class(self, node: ast.ClassDef) -> None:
        self.is_plain &= not node.keywords  # a metaclass sees a class as its `self`
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and any(map(_stores, ast.walk(method))):
                self.stores.add(method.name)


def _called(node: ast.AST) -> Iterator[ast.expr]:
    """What a node calls or derives from: that does not change it."""
    if isinstance(node, ast.Call):
        yield node.func
    elif isinstance(node, ast.ClassDef):
        yield from node.bases


def _decorators(node: ast.AST) -> Iterator[ast.expr]:
    """What decorates a new function or class, plain or with keywords only."""
    for each in getattr(node, "decorator_list", ()):
        if not isinstance(each, ast.Call):
            yield each
        elif not each.args:
            yield each.func


def _stores(node: ast.AST) -> bool:
    """Whether it changes an attribute of `self`."""
    return _is_name(node, "setattr") or (
        isinstance(node, ast.Attribute)
        and not isinstance(node.ctx, ast.Load)
        and _root(node) == "self"
    )


def _may_format(node: ast.Attribute) -> bool:
    """Whether it may be a string's `format`, which reads attributes named in the string."""
    text = node.value.value if isinstance(node.value, ast.Constant) else "__"
    return node.attr in ("format", "format_map") and "__" in str(text)


def is_plain_import(dotted: str, modules: Set[str]) -> bool:
    """Whether importing this name, of one of these modules, reaches nothing else."""
    first, *parts = dotted.split(".")
    is_wide = any(_is_wide(part) or part[:1] == "_" for part in parts)
    return first in modules and not is_wide and is_plain_name(dotted)


def _dotted(node: ast.expr) -> str:
    """Names joined by dots, "" if it is anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


@lru_cache(maxsize=_KNOWN)
def is_plain_name(dotted: str) -> bool:
    """Whether a library's name leads to no other module and means nothing that may be changed.

    Nothing is known of a course's library that is not loaded.
    """
    first, *parts = dotted.split(".")
    thing: object = sys.modules.get(first)
    if thing is None:
        return first not in PLAIN_MODULES or not parts
    for part in parts:
        if not isinstance(thing, ModuleType):
            thing = getattr(thing, "__dict__", {}).get(part)
            continue
        inside = sys.modules.get(f"{thing.__name__}.{part}")
        if part not in vars(thing) and inside is None:
            return False
        thing = vars(thing).get(part, inside)
        if isinstance(thing, ModuleType) and thing.__name__ not in PLAIN_MODULES | _PLAIN_PARTS:
            return False
    return not isinstance(thing, _CHANGEABLE)


def _is_wide(name: str) -> bool:
    return name in _WIDE or name.startswith(_WIDE_PREFIXES) or name.endswith("Meta")


def is_magic(name: str) -> bool:
    """Whether binding the name may change what Python does, or an object's class."""
    return name.startswith("__") and name not in _OWN_DUNDERS


def is_plain_builtin(name: str) -> bool:
    """Whether an unbound name is harmless; so is one that does not exist."""
    known = getattr(builtins, name, None)
    is_error = isinstance(known, type) and issubclass(known, Exception)
    is_there = known is not None or name.startswith("__")
    return is_error or not is_there or name in _PLAIN_BUILTINS or name in _ON_SELF


def _is_self(node: ast.AST) -> bool:
    return _is_name(node, "self")


def _is_plain_on_self(args: Sequence[ast.expr]) -> bool:
    """Whether it is `self` and a name that Python itself cannot look up: "a", or f"a{...}"."""
    if len(args) < 2 or not _is_self(args[0]):
        return False
    name = args[1].values[0] if isinstance(args[1], ast.JoinedStr) else args[1]
    return isinstance(name, ast.Constant) and str(name.value)[:1] not in ("", "_")


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _usual_methods(nodes: Sequence[ast.AST]) -> Iterator[ast.FunctionDef]:
    """The methods that Python calls with an object of their class, and no code with a class."""
    for node in nodes:
        for method in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(method, ast.FunctionDef) and all(
                _is_name(each, "property") for each in method.decorator_list
            ):
                yield method


def _usual_supers(nodes: Sequence[ast.AST]) -> Iterator[ast.Call]:
    """The calls `super()` in methods of objects, and `super(Class, self)`."""
    for method in _usual_methods(nodes):
        for node in (each for statement in method.body for each in outside(statement)):
            if not isinstance(node, ast.Call) or not _is_name(node.func, "super"):
                continue
            if not node.args or _is_self(node.args[-1]):
                yield node


def _has_only_usual_self(nodes: Sequence[ast.AST]) -> bool:
    """Whether `self` is always the first argument of methods, and never a class."""
    usual = {id(arg) for method in _usual_methods(nodes) for arg in method.args.args[:1]}
    return not any(
        (isinstance(node, ast.arg) and node.arg == "self" and id(node) not in usual)
        or (_is_self(node) and not isinstance(getattr(node, "ctx", None), ast.Load))
        or "self" in (getattr(node, key, "") for key in ("name", "asname", "rest"))
        for node in nodes
    )


def _root(node: ast.expr) -> str:
    """The name that attributes and items belong to."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


# --- code that keeps no state --------------------------------------------------------------------


def is_still_statement(node: ast.stmt) -> bool:
    """Whether running it only defines things that keep no state."""
    if isinstance(node, (*_IMPORTS, ast.Pass)):
        return True
    if isinstance(node, ast.FunctionDef):
        return _has_still_decorators(node) and _has_still_defaults(node.args)
    if isinstance(node, ast.ClassDef):
        inside = all(map(is_still_statement, node.body)) and all(map(_is_still, node.bases))
        return inside and _has_still_decorators(node)
    if isinstance(node, ast.If) and not node.orelse:
        return ast.dump(node.test) == _MAIN  # a submission's module is never called __main__
    if isinstance(node, ast.Assign):
        are_names = all(isinstance(target, ast.Name) for target in node.targets)
        return are_names and _is_still(node.value)
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.target, ast.Name) and _is_still(node.value or node.target)
    return isinstance(node, ast.Expr) and _is_still(node.value)


def _has_still_decorators(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether it has no decorators, or only some that keep nothing."""
    for each in node.decorator_list:
        call = each if isinstance(each, ast.Call) else ast.Call(each, [], [])
        if not (isinstance(call.func, ast.Name) and call.func.id in DECORATORS):
            return False
        if call.args or not all(map(_is_still, call.keywords)):
            return False
    return True


def _has_still_defaults(arguments: ast.arguments) -> bool:
    return all(map(_is_still, [*arguments.defaults, *filter(None, arguments.kw_defaults)]))


def _is_still(node: ast.AST) -> bool:
    """Whether it is an unchangeable value, or a call that makes one."""
    if isinstance(node, ast.Call):
        is_harmless = isinstance(node.func, ast.Name) and node.func.id in HARMLESS_CALLS
        return is_harmless and all(map(_is_still, [*node.args, *node.keywords]))
    if isinstance(node, ast.Lambda):
        return _has_still_defaults(node.args)
    return isinstance(node, _STILL) and all(map(_is_still, ast.iter_child_nodes(node)))
