"""Source -> its small edits: each undoes one mistake, and nothing runs.

A worker reads the source, because a stranger wrote it: the text of this folder's modules is sent
there. So they import nothing but the standard library, each other, and what every worker has.
"""

from __future__ import annotations

import ast
import builtins
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from grader.diagnosis.repair.edits import (
    calls,
    definitions,
    operations,
    results,
    statements,
    values,
)
from grader.diagnosis.repair.edits.edit import COSTS, FOR_WAY, Change, Edit
from grader.diagnosis.repair.edits.scope import Scope, of_class, of_function
from grader.diagnosis.repair.edits.source import Source
from grader.diagnosis.repair.edits.syntax import (
    DEFINITION,
    FUNCTION,
    is_of_self,
    is_words,
)
from grader.run.worker.loader import bound_names, without_magics
from grader.run.worker.names import parsed

MOST = 2000  # edits of one submission
LONGEST = 50_000  # characters of a source that is read
_MODULES = (definitions, statements, results, calls, operations, values)
# The kinds of nodes that each rule is about, and the rule.
_RULES: Sequence[tuple[Any, Any]] = [rule for module in _MODULES for rule in module.RULES]
_BINDING = (*DEFINITION, ast.Assign, ast.AnnAssign)
_HELD = (*DEFINITION, ast.Import, ast.ImportFrom)
_READ = (ast.expr, ast.stmt, ast.keyword, ast.withitem, ast.comprehension)


def edits(
    sources: Sequence[tuple[str, str]],
    targets: Iterable[str],
    others: Iterable[str],
    lines: Mapping[str, Sequence[int]],
    signatures: Mapping[str, Sequence[str]],
    way: str = "",
) -> list[Edit]:
    """The edits of all that the `targets` (functions or "Class.method") reach, likeliest first.

    `sources` are names and texts; a later definition wins. It skips the definitions `others`.
    `lines`, by source, are those that an exception came through; `signatures`, by function, the
    parameters that are asked for. `way` is how all wrong answers are wrong, if in one way alone.
    """
    likely = FOR_WAY.get(way, frozenset())
    best: dict[tuple[Any, ...], Edit] = {}
    for name, text, tree, roots in _reached(sources, targets, set(others)):
        source = Source(text, tree)
        cost = _Cost(source, tree, set(lines.get(name, ())), likely)
        for root in roots:
            for changes in _alone_and_alike(root, source, signatures):
                edit = _edit(name, changes, cost.of(changes))
                key = (edit.source, edit.parts)
                if key not in best or edit.cost < best[key].cost:
                    best[key] = edit
    return sorted(best.values(), key=lambda edit: edit.cost)[:MOST]


def look(about: dict[str, Any]) -> dict[str, Any]:
    """What a worker answers, as JSON data: the sources, and the arguments of each `Edit`.

    A notebook's `sources`, and those of the `whole` submission, come without their magics.
    """
    sources, whole = about["sources"], about["whole"]
    if about["is_notebook"]:
        sources, whole = (
            [(name, without_magics(text)) for name, text in each] for each in (sources, whole)
        )
    more = (about[key] for key in ("targets", "others", "lines", "signatures", "way"))
    found = {"edits": edits(sources, *more), "beside": beside(whole, about["is_notebook"])}
    as_data = {key: [list(vars(edit).values()) for edit in each] for key, each in found.items()}
    return {"sources": sources, "whole": whole, **as_data}


def beside(sources: Sequence[tuple[str, str]], is_notebook: bool) -> list[Edit]:
    """What the top level may do without, because it binds only names that are bound before.

    A statement of the rule "beside" may change what all other code does; a definition, "again",
    takes the place of an earlier one.
    """
    found: list[Edit] = []
    bound = set(dir(builtins))
    for name, text in sources:
        bound = bound if is_notebook else set(dir(builtins))
        tree = parsed(text, LONGEST)
        if tree is None:
            continue
        source, starts = Source(text, tree), set()
        for statement in tree.body:
            own = set(bound_names(statement))
            if isinstance(statement, DEFINITION) and own <= bound:
                kind = "this definition, which replaces an earlier one"
                changes = source.changed(statement, "pass", "again", kind)
                found += [_edit(name, [change], 0.0) for change in changes]
            elif own <= bound and not any(isinstance(each, _HELD) for each in ast.walk(statement)):
                starts.add(source.span(statement)[0])
            bound |= own
        changes = (c for c in statements.left_out(tree, source, Scope()) if c.start in starts)
        found += [_edit(name, [replace(change, rule="beside")], 0.0) for change in changes]
    return found


# --- what is read -----------------------------------------------------------------------------


def _reached(
    sources: Sequence[tuple[str, str]], targets: Iterable[str], others: set[str]
) -> Iterator[tuple[str, str, ast.Module, list[ast.stmt]]]:
    """The sources with their definitions that the targets reach."""
    trees: list[tuple[str, str, ast.Module]] = []
    tops: dict[str, tuple[int, ast.stmt]] = {}
    roots: dict[int, list[ast.stmt]] = defaultdict(list)
    for name, text in sources:
        tree = parsed(text, LONGEST)
        if tree is None:
            continue
        for statement in tree.body:
            if isinstance(statement, _BINDING):
                tops |= dict.fromkeys(bound_names(statement), (len(trees), statement))
        trees.append((name, text, tree))
    waiting = [target.split(".")[0] for target in targets]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name in others or name not in tops:
            continue
        seen.add(name)
        index, statement = tops[name]
        if statement not in roots[index]:
            roots[index].append(statement)
        waiting += (each.id for each in ast.walk(statement) if isinstance(each, ast.Name))
    for index, (name, text, tree) in enumerate(trees):
        yield name, text, tree, sorted(roots[index], key=lambda each: each.lineno)


# --- all changes of a definition --------------------------------------------------------------


def _alone_and_alike(
    root: ast.stmt, source: Source, signatures: Mapping[str, Sequence[str]]
) -> Iterator[list[Change]]:
    """The changes of one definition: each alone, and equal ones at once."""
    yield from definitions.of_the_signature(root, source, signatures)
    alike: dict[tuple[str, str, str, str], list[Change]] = defaultdict(list)
    for change in _changes(root, source, Scope()):
        old = source.text[change.start : change.end]
        if old == change.new:
            continue
        yield [change]
        alike[change.rule, change.kind, old, change.new].append(change)
    for changes in alike.values():
        changes.sort(key=lambda each: each.start)
        apart = all(a.end <= b.start for a, b in itertools.pairwise(changes))
        if 1 < len(changes) <= 8 and apart:
            yield changes


def _changes(node: ast.AST, source: Source, scope: Scope) -> Iterator[Change]:
    """The changes of a node and of all below it."""
    if not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
        for kinds, rule in _RULES:
            if isinstance(node, kinds):
                yield from rule(node, source, scope)
    if isinstance(node, ast.Raise):
        return  # no check asserts an error's message
    below = list(ast.iter_child_nodes(node))
    if isinstance(node, FUNCTION):
        scope, below = of_function(node, scope), list(node.body)
    elif isinstance(node, ast.ClassDef):
        scope = of_class(node)
    for child in below:
        is_note = is_words(child) or child is getattr(node, "annotation", None)
        if isinstance(child, _READ) and not is_note:
            yield from _changes(child, source, scope)


# --- how likely they are ----------------------------------------------------------------------


def _edit(name: str, changes: Sequence[Change], cost: float) -> Edit:
    first = changes[0]
    parts = tuple((each.start, each.end, each.new) for each in changes)
    return Edit(name, parts, first.kind, first.rule, *first.at, cost)


class _Cost:
    """What changes of a source cost; `lines` are those that an exception came through."""

    def __init__(
        self, source: Source, tree: ast.Module, lines: set[int], likely: Collection[str]
    ) -> None:
        self._source = source
        self._likely = likely
        self._lines = lines
        for node in ast.walk(tree):  # who raises an error tests something just before
            raised = node.body[0] if isinstance(node, ast.If) else None
            if isinstance(node, ast.If) and isinstance(raised, ast.Raise):
                self._lines |= {node.test.lineno} if raised.lineno in lines else set()
        self._origins = _origins(tree, self._lines)

    def of(self, changes: Sequence[Change]) -> float:
        """The cost of an edit that makes these changes."""
        rule = changes[0].rule
        cost = COSTS[rule] + 0.5 * (len(changes) > 1)
        if len(changes) > 2:
            cost *= 0.6  # who writes the same three times has the same mistake three times
        if rule in self._likely:
            cost *= 0.4
        if self._lines:
            touched = {self._source.line(each.start) for each in changes}
            cost *= 0.25 if touched & self._lines else 0.5 if touched & self._origins else 1.0
        return cost


def _origins(tree: ast.Module, lines: Collection[int]) -> set[int]:
    """The lines that assign a name, or an attribute of self, that one of these lines reads."""
    if not lines:
        return set()
    named = [each for each in ast.walk(tree) if isinstance(each, ast.Name) or is_of_self(each)]
    read = {ast.unparse(each) for each in named if each.lineno in lines}
    return {
        each.lineno
        for each in named
        if isinstance(each.ctx, ast.Store) and ast.unparse(each) in read
    }
