"""Imports a submission from bytes: the worker never opens one of the learner's files."""

from __future__ import annotations
import __future__

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import linecache
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import CodeType, ModuleType
from typing import Any

from grader.run.worker.raised import describe, is_stub

Patch = Callable[[ModuleType], None]
_SCRIPT = "submission"  # the module name of a submission that is one file or one notebook


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The modules of a submission, made from their sources.

    `patches` change a module right after it ran, before another one imports from it; a module with
    a patch may even fail to run.
    """

    def __init__(self, files: Mapping[str, bytes], patches: Mapping[str, Patch]) -> None:
        self._files = dict(files)
        self._patches = dict(patches)
        self._lines: dict[str, list[str]] = {}
        self.reset_by: dict[str, int] = {}  # the last cell that sets each name that several set

    def install(self) -> None:
        """Put the submission's modules first in the search order of `import`."""
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Undo `install` and forget the modules."""
        sys.meta_path.remove(self)
        for name, module in list(sys.modules.items()):
            if getattr(module, "__loader__", None) is self:
                del sys.modules[name]

    def line(self, file: str, number: int) -> str | None:
        """Line `number` (from 1) of the learner's `file`; None if the file is not theirs."""
        lines = self._lines.get(file)
        if lines is None:
            return None
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def defining(self, name: str) -> str:
        """The module whose file defines a function or class of this name, "" if none does."""
        wanted = re.compile(rf"^(?:def|class) {name}\b".encode(), re.MULTILINE)
        files = [file for file, source in self._files.items() if wanted.search(source)]
        return files[0].removesuffix(".py").replace("/", ".") if files else ""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a module of the submission, None for any other."""
        stem = fullname.replace(".", "/")
        for file, package in ((f"{stem}/__init__.py", True), (f"{stem}.py", False)):
            if file in self._files:
                return importlib.util.spec_from_loader(
                    fullname, self, origin=file, is_package=package
                )
        if any(file.startswith(f"{stem}/") for file in self._files):
            return importlib.util.spec_from_loader(fullname, self, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's source in it."""
        file = module.__spec__.origin if module.__spec__ else None
        if file is None:
            return
        module.__file__ = file
        patch = self._patches.get(module.__name__)
        try:
            exec(self._compile(file, self._files[file]), module.__dict__)
        except BaseException:  # sys.exit too: the patch replaces what the module failed to define
            if patch is None:
                raise
        if patch is not None:
            patch(module)

    def run_script(
        self,
        cells: Sequence[str] | None,
        file: str,
        aliases: Sequence[str],
        *,
        only_definitions: bool = False,
    ) -> tuple[ModuleType, list[dict[str, Any]]]:
        """Run one file, or a notebook's cells one after another, as a module.

        As in Jupyter, later cells run even if a cell fails. Definitions below a failing line are
        still made, unless another cell has made them, and so is one whose annotations fail: they
        may need something that the author has and a locked process lacks. A stub does not count:
        it is dropped if a later cell, even one that fails, has another definition. With
        `only_definitions`, nothing else is run. Returns the module and the errors, each with the
        source of the cell or, after those, of the definition.
        """
        module = ModuleType(_SCRIPT)
        module.__loader__ = self
        module.__file__ = file
        for name in (_SCRIPT, *aliases):
            sys.modules[name] = module
        errors: list[dict[str, Any]] = []
        of_definitions: list[dict[str, Any]] = []
        if cells is None:
            exec(self._compile(file, self._files[file]), module.__dict__)
        else:
            names = module.__dict__
            names.update(display=_ignore, get_ipython=_Nothing, grade_here=_ignore)
            values = _ids(names)
            set_by: dict[str, list[int]] = {}  # the numbers of the cells that set each name
            future = 0  # in Jupyter a cell's imports from __future__ also affect the next cells
            for number, cell in enumerate(cells, start=1):
                name, text = f"code cell {number}", without_magics(cell)
                try:
                    code = self._compile(name, text, future | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                    future |= code.co_flags & __future__.annotations.compiler_flag
                    if only_definitions:
                        of_definitions += self._define(name, text, 0, names)
                    else:
                        _run(code, names)
                except BaseException as error:  # noqa: BLE001 - sys.exit ends a cell too
                    about = {"source": cell[:20_000], "number": number}
                    errors.append({**describe(error, self.line), **about})
                    with suppress(BaseException):
                        of_definitions += self._define(name, text, _last_line(error, name), names)
                before, values = values, _ids(names)
                for key in values:
                    if values[key] != before.get(key):
                        set_by.setdefault(key, []).append(number)
            for each in errors:
                missing = re.match(r"name '(\w+)' is not defined", each["message"])
                first = set_by.get(missing[1], [0])[0] if missing else 0
                if first > each["number"]:
                    each["later"] = first
            self.reset_by = {key: by[-1] for key, by in set_by.items() if len(by) > 1}
        for patch in self._patches.values():
            patch(module)
        return module, errors + of_definitions

    def _define(
        self, name: str, text: str, line: int | None, names: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Run the definitions in a cell from a line on, of names that there are not; None: none.

        Their annotations do not run, and of the line itself only a function or a class does.
        Returns the errors of those that fail: they may need something that is missing.
        """
        errors: list[dict[str, Any]] = []
        if line is None:
            _drop_stubs(_MADE.findall(text), names)
            return errors
        for statement in ast.parse(text).body:
            decorators = getattr(statement, "decorator_list", ())
            first = min([statement.lineno, *(each.lineno for each in decorators)])
            is_at_line = isinstance(statement, _ANNOTATED) and line <= (statement.end_lineno or 0)
            if not isinstance(statement, _DEFINING) or (first <= line and not is_at_line):
                continue
            made = set(bound_names(statement))
            if line:
                _drop_stubs(made, names)
            if line and names.keys() & made:
                continue
            module = ast.Module([statement], [])
            flags = __future__.annotations.compiler_flag
            try:
                _run(compile(module, name, "exec", flags, dont_inherit=True), names)
            except BaseException as error:  # noqa: BLE001 - as for a cell
                source = ast.unparse(statement)[:20_000]
                errors.append({**describe(error, self.line), "source": source})
        return errors

    def _compile(self, file: str, source: bytes | str, flags: int = 0) -> Any:
        try:
            text = source if isinstance(source, str) else importlib.util.decode_source(source)
        except (SyntaxError, UnicodeDecodeError):
            text = bytes(source).decode("latin-1") if isinstance(source, bytes) else source
        self._lines[file] = text.split("\n")  # not splitlines: it would split at a form feed
        linecache.cache[file] = (len(text), None, [line + "\n" for line in self._lines[file]], file)
        return compile(source, file, "exec", flags, dont_inherit=True)


def _ids(names: Mapping[str, Any]) -> dict[str, int]:
    """The ids of the values, which it keeps none of alive."""
    return {name: id(value) for name, value in list(names.items())}


def _drop_stubs(made: Iterable[str], names: dict[str, Any]) -> None:
    for name in made:
        if is_stub(names.get(name)):
            del names[name]


_MADE = re.compile(r"^(?:async +def|def|class) +(\w+)", re.MULTILINE)
_ANNOTATED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_DEFINING = (*_ANNOTATED, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)


def bound_names(statement: ast.stmt) -> Iterator[str]:
    """The names that a definition, an import or an assignment binds."""
    if isinstance(statement, _ANNOTATED):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from (each.asname or each.name.partition(".")[0] for each in statement.names)
    else:
        yield from stored_names(statement)


def stored_names(statement: ast.stmt) -> Iterator[str]:
    """The names that are assigned to in a statement."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _run(code: CodeType, names: dict[str, Any]) -> None:
    """Run a cell's code, which may use await at its top level, as in Jupyter."""
    waiting = eval(code, names)  # noqa: S307 - the learner's code, in a process of its own
    if not code.co_flags & inspect.CO_COROUTINE:
        return
    with suppress(StopIteration):
        while True:
            waiting.send(None)


def _last_line(error: BaseException, file: str) -> int | None:
    """The line of a file's top level where it ended; None if it has not started."""
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if (code.co_filename, code.co_name) == (file, "<module>"):
            return traceback.tb_lineno
        traceback = traceback.tb_next
    return None


def without_magics(cell: str) -> str:
    """A notebook cell as plain Python: `%magic`, `!shell` and `?help` lines become empty or `pass`.

    Only a line at which Python itself stops counts as a magic, so a `%` that continues an
    expression from the line before stays. The body of a cell magic stays if it is Python. As in
    Jupyter, common indentation and the prompts of Python and IPython are removed.
    """
    cell = without_prompts(cell)
    text = cell.lstrip()
    first = text.split("\n", 1)
    if first[0].startswith("%%"):
        is_python = not FOREIGN.match(first[0])
        above = cell[: len(cell) - len(text)].count("\n") + 1
        cell = "\n" * above + first[1] if is_python and len(first) > 1 else ""
    lines = cell.split("\n")
    if not any(map(MAGIC.match, lines)):
        return cell
    for _ in range(_MOST_MAGICS):
        try:
            ast.parse("\n".join(lines))
            break
        except SyntaxError as error:
            number = (error.lineno or 0) - 1
            if not 0 <= number < len(lines) or not MAGIC.match(lines[number]):
                break
            following = number
            while lines[following].endswith("\\") and following + 1 < len(lines):
                following += 1
            indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
            assigned = _ASSIGNED_MAGIC.match(lines[number])
            timed = TIMED.match(lines[number])
            lines[number + 1 : following + 1] = [""] * (following - number)
            if timed:
                lines[number] = indent + timed[1]
            else:
                lines[number] = (
                    f"{assigned[1]}= None" if assigned else f"{indent}pass" if indent else ""
                )
        except (ValueError, RecursionError, MemoryError):
            break
    return "\n".join(lines)


def without_prompts(cell: str) -> str:
    """The cell without the prompt of its first line and, if other lines have one too, of those."""
    first = next((line for line in cell.split("\n") if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip(" \t"))]
    if indent:
        cell = "\n".join(line.removeprefix(indent) for line in cell.split("\n"))
    if _PROMPT.match(first.lstrip()):
        cell = "\n".join(_PROMPT.sub("", line) for line in cell.split("\n"))
    return cell


FOREIGN = re.compile(r"\s*%%(?!(?:time|timeit|capture|prun|grade)\b)(\w*)")
_MOST_MAGICS = 100  # in one cell, which is parsed once for each
_PROMPT = re.compile(r"^(?:(>>>|\.\.\.)( |$)|In \[\d+\]: ?|\s*\.{3,}: ?)")
# No two parts of a pattern match the same characters, because a line may be long.
MAGIC = re.compile(r"\s*([%!?]|\w[\w, ]*=\s*[%!]|[\w.*]+\?\??\s*$)")
TIMED = re.compile(r"\s*%time\s+(.+)")  # its statement runs, as in Jupyter
_ASSIGNED_MAGIC = re.compile(r"(\s*\w[\w, ]*)=\s*[%!]")


def _ignore(*args: Any, **kwargs: Any) -> None:
    """Stands in for `display` outside Jupyter."""


class _Nothing:
    """Stands in for the result of `get_ipython` outside Jupyter: does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return _ignore
