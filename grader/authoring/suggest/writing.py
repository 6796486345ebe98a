"""Writes suggestions as code: misconceptions that stand alone, and examples in docstrings. Pure."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from grader.authoring.mutants.types import Mutant
from grader.authoring.suggest.types import Example, Mistake

_LANGUAGE = "from grader.misconceptions import misconception"
_SAYS = "TODO: tell the learner what is wrong here, in one or two sentences."
_REMINDER = re.compile(r'\n\nTODO: wrong answers that people really give.*\n"""')  # of a new file
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def mistake_of(id: str, entry: str, mutant: Mutant, sources: Mapping[str, str]) -> Mistake:
    """The misconception that the mutant of a solution is of the entry point `entry`.

    `sources` are the texts of all solutions by module, from which its helpers are copied. If the
    change is in a helper, the copy of that is this misconception's own.
    """
    writer = _Writer(id, entry, mutant, sources)
    code = writer.definition(entry, id)
    note = "".join(f"# instead of: {line}\n" for line in mutant.before)
    mark = f'@misconception(\n    "{id}",\n    replaces="{entry}",\n    says="{_SAYS}",\n)\n'
    return Mistake(id, mutant.before, mutant.after, note + mark + code, *writer.beside())


class _Writer:
    """Copies one definition with all that it needs."""

    def __init__(self, id: str, entry: str, mutant: Mutant, sources: Mapping[str, str]) -> None:
        self._id = id
        # What has a copy for this mistake alone.
        self._own = entry, mutant.where.partition(".")[0]
        self._sources = sources
        self._defined, self._imported = _names(mutant.source)
        self._imports: dict[str, None] = {}
        self._helpers: dict[str, str] = {}

    def beside(self) -> tuple[tuple[str, ...], dict[str, str]]:
        """The imports and the helpers that the definitions so far need."""
        return tuple(self._imports), self._helpers

    def definition(self, name: str, called: str) -> str:
        """The code of a definition under another name."""
        node = self._defined[name]
        names = {name: called}
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and each.id not in names:
                new = self._needed(each.id)
                if new:
                    names[each.id] = new
        copied = ast.parse(ast.unparse(node))
        for each in ast.walk(copied):
            if isinstance(each, ast.Name):
                each.id = names.get(each.id, each.id)
            elif isinstance(each, _Definition):
                each.name = names.get(each.name, each.name)
                if ast.get_docstring(each) is not None:
                    each.body = each.body[1:] or [ast.Pass()]
        return ast.unparse(copied)

    def _needed(self, name: str) -> str:
        """Note what a name needs; returns the name of its copy if it becomes a helper."""
        if name in self._imported:
            module, line, own = self._imported[name]
            if module not in self._sources:
                self._imports[line] = None
                return ""
            defined, imported = _names(self._sources[module])
            if own not in defined:
                return ""
            self._defined.setdefault(name, defined[own])
            self._imported = imported | self._imported
            self._defined = defined | self._defined
        if name not in self._defined:
            return ""
        called = f"_{name.lstrip('_')}"
        if name in self._own:
            called += f"_of_{self._id}"
        if called not in self._helpers:
            self._helpers[called] = ""  # it may call itself
            self._helpers[called] = self.definition(name, called)
        return called


def _names(source: str) -> tuple[dict[str, ast.stmt], dict[str, tuple[str, str, str]]]:
    """What a module defines, and what it imports: the module, the line, and the name there."""
    defined: dict[str, ast.stmt] = {}
    imported: dict[str, tuple[str, str, str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, _Definition):
            defined[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            defined[node.targets[0].id] = node
        elif isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                imported[bound] = alias.name, f"import {ast.unparse(alias)}", ""
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                line = f"from {node.module} import {ast.unparse(alias)}"
                imported[alias.asname or alias.name] = node.module or "", line, alias.name
    return defined, imported


def with_mistakes(text: str, mistakes: Sequence[Mistake]) -> str:
    """The text of a file of misconceptions with these at its end, and with what they need."""
    text = _REMINDER.sub('"""', text) if mistakes else text
    imports = dict.fromkeys([_LANGUAGE, *(line for each in mistakes for line in each.imports)])
    defined, imported = _names(text)
    have = {line for _, line, _ in imported.values()}
    missing = [line for line in imports if line not in have]
    helpers = {
        name: code
        for each in mistakes
        for name, code in each.helpers.items()
        if name not in defined
    }
    lines = text.rstrip().split("\n")
    at = _end_of_imports(text)
    lines[at:at] = [*([""] if at and missing and not imported else []), *_sorted(missing)]
    blocks = [*helpers.values(), *(each.code for each in mistakes)]
    return "\n\n\n".join(["\n".join(lines).strip(), *blocks]) + "\n"


def _sorted(lines: Sequence[str]) -> Iterator[str]:
    """Imports in the usual order: Python's, other libraries, the kit."""
    groups: list[list[str]] = [[], [], []]
    for line in sorted(lines):
        library = line.split()[1].partition(".")[0]
        place = 0 if library in sys.stdlib_module_names else 2 if library == "grader" else 1
        groups[place].append(line)
    for number, group in enumerate(filter(None, groups)):
        yield from [""] * bool(number)
        yield from group


def _end_of_imports(text: str) -> int:
    """The number of lines up to the last import, or up to the docstring."""
    end = 0
    for number, node in enumerate(ast.parse(text).body):
        is_docstring = number == 0 and isinstance(node, ast.Expr)
        if is_docstring or isinstance(node, (ast.Import, ast.ImportFrom)):
            end = node.end_lineno or node.lineno
    return end


def with_examples(text: str, examples: Sequence[Example]) -> str:
    """The text of a solution with each example in its function's docstring, if there is one."""
    for example in examples:
        lines = text.split("\n")
        for node in ast.parse(text).body:
            if isinstance(node, _Definition) and node.name == example.entry:
                if ast.get_docstring(node) is None:
                    continue
                last = (node.body[0].end_lineno or node.lineno) - 1
                indent = " " * node.body[0].col_offset
                closing = lines[last].strip()
                told = ["", *(f"{indent}{line}".rstrip() for line in example.lines)]
                if closing == '"""':
                    lines[last:last] = told
                else:
                    lines[last] = lines[last].removesuffix('"""')
                    lines[last + 1 : last + 1] = [*told, f'{indent}"""']
        text = "\n".join(lines)
    return text
