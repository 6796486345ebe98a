"""Cuts the visible checks of a stage out of its check file's source. Pure."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Collection, Iterable, Iterator, Sequence

from grader.read.course_file import FILE_NAME
from grader.read.faults import fault_of
from grader.types.course import Stage
from grader.types.errors import CourseError, close_to

_CHECK = "test_"
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Import = ast.Import | ast.ImportFrom


def visible_checks(source: str, stage: Stage) -> str:
    """The visible checks of `stage`, and what they need, from its check file's source.

    Keeps imports, the visible checks, and every name of the module that these use: functions,
    constants, fixtures. Drops everything else, also comments between statements. Raises CourseError
    if `visible` names a missing check, and if the kept code mentions a hidden check.
    """
    place = stage.place(stage.check_file)
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise CourseError(fault_of(error, {"<unknown>": place})) from None
    checks = [
        node.name.removeprefix(_CHECK)
        for node in tree.body
        if isinstance(node, _Function) and node.name.startswith(_CHECK)
    ]
    expect_visible(stage, checks)
    if not stage.visible:
        return f'"""{stage.title}: its checks run on submission; none is visible."""\n'
    kept = _reached(tree, {f"{_CHECK}{name}" for name in stage.visible})
    lines = source.split("\n")
    parts = [f'"""{stage.title}: the visible checks; more checks run on submission."""']
    before: ast.stmt | None = None
    for node in kept:
        parts.append("\n" * _distance(before, node, lines))
        parts.append(_text(node, lines, stage.visible))
        before = node
    text = "".join(parts) + "\n"
    for name in checks:
        if name not in stage.visible and re.search(rf"\b{_CHECK}{name}\b", text):
            raise CourseError(
                f"{place}: a visible check, or what it uses, mentions the hidden {_CHECK}{name}: "
                "remove the mention"
            )
    return text


def expect_visible(stage: Stage, checks: Iterable[str]) -> None:
    """Raise CourseError if `visible` of the stage names something that is not in `checks`."""
    known = sorted(checks)
    for name in stage.visible:
        if name not in known:
            advice = close_to(name.removeprefix(_CHECK), known)
            raise CourseError(
                f"{FILE_NAME}: stage '{stage.slug}': visible: there is no check '{name}'{advice}"
            )


def _reached(tree: ast.Module, names: set[str]) -> list[ast.stmt]:
    """The imports, and the statements that bind one of `names` or a name that these use."""
    bound = {node: _bound(node) for node in tree.body}
    fixtures = {_fixture(node): bound[node] for node in tree.body if _fixture(node)}
    wanted = {*names, "pytestmark"}
    for node in tree.body:
        if any(keyword.arg == "autouse" for keyword in _fixture_options(node)):
            wanted |= bound[node]
    kept: list[ast.stmt] = []
    left = list(tree.body)
    while new := [node for node in left if isinstance(node, _Import) or bound[node] & wanted]:
        left = [node for node in left if node not in new]
        kept += new
        for node in new:
            wanted |= _used(node)
            for name in _asked_for(node) & fixtures.keys():
                wanted |= fixtures[name]
    return sorted(kept, key=lambda node: node.lineno)


def _bound(node: ast.stmt) -> set[str]:
    """The names of the module that a statement binds."""
    return {name.get_name() for name in _table(node).get_symbols() if name.is_assigned()}


def _used(node: ast.stmt) -> set[str]:
    """The names of the module that a statement uses, inside of functions too."""

    def used(table: symtable.SymbolTable) -> Iterator[str]:
        is_module = table.get_type() == "module"
        for name in table.get_symbols():
            if name.is_referenced() if is_module else name.is_global():
                yield name.get_name()
        for inner in table.get_children():
            yield from used(inner)

    return set(used(_table(node)))


def _table(node: ast.stmt) -> symtable.SymbolTable:
    return symtable.symtable(ast.unparse(node), "check", "exec")


def _asked_for(node: ast.stmt) -> set[str]:
    """The names that may be fixtures: parameters, and arguments of `usefixtures`."""
    if not isinstance(node, _Function):
        return set()
    words = {
        str(word.value)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and _last(decorator.func) == "usefixtures"
        for word in decorator.args
        if isinstance(word, ast.Constant)
    }
    return words | {argument.arg for argument in [*node.args.args, *node.args.kwonlyargs]}


def _fixture(node: ast.stmt) -> str:
    """The name of the fixture that a statement defines, "" if it defines none."""
    if not isinstance(node, _Function):
        return ""
    names = [word.value for word in _fixture_options(node) if word.arg == "name"]
    if names and isinstance(names[0], ast.Constant):
        return str(names[0].value)
    return node.name if any(_last(each) == "fixture" for each in node.decorator_list) else ""


def _fixture_options(node: ast.stmt) -> list[ast.keyword]:
    """The keywords of a decorator that makes a fixture."""
    return [
        keyword
        for decorator in (node.decorator_list if isinstance(node, _Function) else ())
        if isinstance(decorator, ast.Call) and _last(decorator) == "fixture"
        for keyword in decorator.keywords
    ]


def _last(node: ast.expr) -> str:
    """The last name of a dotted one, called or not."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _text(node: ast.stmt, lines: Sequence[str], visible: Collection[str]) -> str:
    """A statement as in the source, but without a hidden stand-in."""
    decorators = node.decorator_list if isinstance(node, _Function | ast.ClassDef) else []
    parts = []
    for decorator in decorators:
        if isinstance(decorator, ast.Call) and _names_hidden(decorator, visible):
            keywords = [word for word in decorator.keywords if word.arg != "stand_in"]
            shown = ast.Call(decorator.func, decorator.args, keywords)
            parts.append(f"@{ast.unparse(shown)}")
        else:
            parts.append(f"@{_segment(decorator, lines)}")
    return "\n".join([*parts, _segment(node, lines)])


def _segment(node: ast.stmt | ast.expr, lines: Sequence[str]) -> str:
    """The code of a node. `ast.get_source_segment` splits the whole source again each time."""
    code = [line.encode() for line in lines[node.lineno - 1 : node.end_lineno]]
    code[-1] = code[-1][: node.end_col_offset]  # columns count bytes
    code[0] = code[0][node.col_offset :]
    return b"\n".join(code).decode()


def _names_hidden(decorator: ast.Call, visible: Collection[str]) -> bool:
    """Whether the decorator names a hidden check that stands in when this one is skipped."""
    return any(
        word.arg == "stand_in"
        and isinstance(word.value, ast.Constant)
        and word.value.value not in visible
        for word in decorator.keywords
    )


def _distance(before: ast.stmt | None, node: ast.stmt, lines: list[str]) -> int:
    """The number of line ends between two kept statements."""
    if before is None or isinstance(before, _Import) != isinstance(node, _Import):
        return 2
    if any(isinstance(each, _Function | ast.ClassDef) for each in (before, node)):
        return 3
    return 1 if lines[node.lineno - 2].strip() else 2
