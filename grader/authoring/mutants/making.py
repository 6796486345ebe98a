"""Makes a solution's mutants: small changes of the kinds that mistakes make.

They change only code between the markers and the defaults of parameters, never a docstring, an
annotation, a comment or an error's message.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from grader.authoring.mutants.types import Mutant
from grader.read.stubs import read_source, solution_lines
from grader.types.course import Stage
from grader.types.errors import KitError

_COMMENT = re.compile(r"\s\s#.*$")


def mutants_of(stage: Stage) -> tuple[Mutant, ...]:
    """The mutants of the stage's solution, in the order of its lines.

    Raises CourseError if the solution cannot be read, KitError if mutmut is not installed.
    """
    return mutants_of_source(*read_source(stage))


def mutants_of_source(source: str, place: str) -> tuple[Mutant, ...]:
    """The mutants of a solution's text; `place` is the file's name in errors. Raises as above."""
    try:
        from grader.authoring.mutants.operators import changes
    except ImportError:
        raise KitError("mutants need mutmut: install the kit with its extra 'author'") from None
    solutions = list(solution_lines(source.split("\n"), place))
    seen = {bones(source)}
    found: list[Mutant] = []
    made = chain(changes(source, solutions), _ignored_defaults(source, solutions))
    for where, operator, changed in made:
        key = bones(changed)
        if key in seen or key is None:  # equal to another one, or not valid Python
            continue
        seen.add(key)
        found.append(mutant_of(source, where, operator, changed))
    return tuple(_with_ordinals(found))


def _with_ordinals(found: Iterable[Mutant]) -> Iterator[Mutant]:
    """The mutants with distinct ids, even if a function has the same line twice."""
    times: Counter[str] = Counter()
    for mutant in found:
        times[mutant.id] += 1
        again = times[mutant.id]
        yield replace(mutant, id=f"{mutant.id}-{again}") if again > 1 else mutant


def mutant_of(source: str, where: str, operator: str, changed: str) -> Mutant:
    """The mutant with the text `changed`, another one than `source`; `where` is the function."""
    old, new = source.split("\n"), changed.split("\n")
    first = 0
    while old[first] == new[first]:
        first += 1
    last = -1
    while old[last] == new[last] and min(len(old), len(new)) + last >= first:
        last -= 1
    before = _code(old[first : len(old) + last + 1])
    after = _code(new[first : len(new) + last + 1])
    digest = hashlib.sha256("\n".join([*before, "->", *after]).encode()).hexdigest()[:6]
    return Mutant(f"{where}.{operator}.{digest}", where, operator, before, after, changed)


def _code(lines: Iterable[str]) -> tuple[str, ...]:
    """Lines without indentation and comments."""
    bare = (_COMMENT.sub("", line).strip() for line in lines)
    return tuple(line for line in bare if line and not line.startswith("#"))


def bones(source: str) -> str | None:
    """The syntax tree as text, which ignores spaces, brackets and comments."""
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return None


def _ignored_defaults(
    source: str, solutions: list[tuple[int, int]]
) -> Iterator[tuple[str, str, str]]:
    """For each parameter with a default, a change that always uses the default."""
    lines = source.split("\n")
    for name, function in _functions(ast.parse(source), ""):
        end = function.end_lineno or 0
        own = [first for first, _ in solutions if function.lineno <= first < end]
        positional = function.args.posonlyargs + function.args.args
        pairs = list(zip(positional[::-1], function.args.defaults[::-1], strict=False))[::-1]
        named = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        pairs += [(argument, default) for argument, default in named if default is not None]
        for first in own[:1]:
            indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
            for argument, default in pairs:
                line = f"{indent}{argument.arg} = {ast.unparse(default)}"
                changed = [*lines[: first + 1], line, *lines[first + 1 :]]
                yield name, "default_ignored", "\n".join(changed)


def _functions(node: ast.AST, within: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            name = f"{within}.{child.name}".strip(".")
            if isinstance(child, ast.FunctionDef):
                yield name, child
            yield from _functions(child, name)
