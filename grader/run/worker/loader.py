"""Imports a submission from bytes: the worker never opens a file of the learner's."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from grader.run.worker.bench import describe

Patch = Callable[[ModuleType], None]
_SCRIPT = "submission"  # the module of a submission that is one file or one notebook


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The modules of a submission, from their sources.

    `patches` change a module right after it ran, before another one imports from it; a module with
    a patch may even fail to run.
    """

    def __init__(self, files: Mapping[str, bytes], patches: Mapping[str, Patch]) -> None:
        self._files = dict(files)
        self._patches = dict(patches)
        self._lines: dict[str, list[str]] = {}

    def install(self) -> None:
        """Let `import` find the submission's modules first."""
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
        except BaseException:  # sys.exit too: the patch stands for what the module failed to do
            if patch is None:
                raise
        if patch is not None:
            patch(module)

    def run_script(
        self, cells: Sequence[str] | None, file: str, aliases: Sequence[str]
    ) -> tuple[ModuleType, list[dict[str, Any]]]:
        """Run one file, or a notebook's cells one after another, as a module.

        As in Jupyter a cell that fails does not keep the next ones from running. Returns the module
        and the errors, each with the cell's source.
        """
        module = ModuleType(_SCRIPT)
        module.__loader__ = self
        module.__file__ = file
        for name in (_SCRIPT, *aliases):
            sys.modules[name] = module
        errors = []
        if cells is None:
            exec(self._compile(file, self._files[file]), module.__dict__)
        else:
            module.__dict__.update(display=_ignore, get_ipython=_ignore, grade_here=_ignore)
            for number, cell in enumerate(cells, start=1):
                try:
                    exec(self._compile(f"cell {number}", without_magics(cell)), module.__dict__)
                except BaseException as error:  # noqa: BLE001 - sys.exit ends a cell too
                    errors.append({**describe(error, self.line), "source": cell[:20_000]})
        for patch in self._patches.values():
            patch(module)
        return module, errors

    def _compile(self, file: str, source: bytes | str) -> Any:
        try:
            text = source if isinstance(source, str) else importlib.util.decode_source(source)
        except (SyntaxError, UnicodeDecodeError):
            text = bytes(source).decode("latin-1") if isinstance(source, bytes) else source
        self._lines[file] = text.split("\n")  # not splitlines: a form feed ends no line
        linecache.cache[file] = (len(text), None, [line + "\n" for line in self._lines[file]], file)
        return compile(source, file, "exec", dont_inherit=True)


def without_magics(cell: str) -> str:
    """A notebook cell as plain Python: `%magic`, `!shell` and `?help` lines give way to `pass`.

    Only lines at which Python itself stops are taken for magics, so that a `%` that goes on an
    expression from the line before is left alone. A cell magic's body stays when it is Python.
    """
    first = cell.lstrip().split("\n", 1)
    if first[0].startswith("%%"):
        keeps_python = re.match(r"%%(time|timeit|capture|prun|grade)\b", first[0])
        cell = "\n" + first[1] if keeps_python and len(first) > 1 else ""
    lines = cell.split("\n")
    if not any(map(_MAGIC.match, lines)):
        return cell
    for _ in range(len(lines)):
        try:
            ast.parse("\n".join(lines))
            break
        except SyntaxError as error:
            number = (error.lineno or 0) - 1
            if not 0 <= number < len(lines) or not _MAGIC.match(lines[number]):
                break
            following = number
            while lines[following].endswith("\\") and following + 1 < len(lines):
                following += 1
            indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
            assigned = _ASSIGNED_MAGIC.match(lines[number])
            timed = _TIMED.match(lines[number])
            lines[number + 1 : following + 1] = [""] * (following - number)
            if timed:
                lines[number] = indent + timed[1]
            else:
                lines[number] = f"{assigned[1]}= None" if assigned else f"{indent}pass"
        except (ValueError, RecursionError, MemoryError):
            break
    return "\n".join(lines)


# No two parts of a pattern match the same letters: a line may be long.
_MAGIC = re.compile(r"\s*([%!?]|\w[\w, ]*=\s*[%!]|[\w.*]+\?\??\s*$)")
_TIMED = re.compile(r"\s*%time\s+(.+)")  # its statement runs, as it does in Jupyter
_ASSIGNED_MAGIC = re.compile(r"(\s*\w[\w, ]*)=\s*[%!]")


def _ignore(*args: Any, **kwargs: Any) -> None:
    """What `display` and `get_ipython` are where there is no Jupyter."""
