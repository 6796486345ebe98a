"""What earlier runs of a stage found, so that only what can have changed runs again."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from grader.read.course_file import FILE_NAME
from grader.read.dependencies import digest_of
from grader.read.faults import shared_files
from grader.types.course import Course, Stage

Result = TypeVar("Result")


class Memory:
    """Results by what they depend on; those that a proof does not use are forgotten.

    Unless it `keeps` them, it knows nothing.
    """

    def __init__(self, *, keeps: bool = False) -> None:
        self._keeps = keeps
        self._base = ""
        self._known: dict[Hashable, Any] = {}
        self._used: dict[Hashable, Any] = {}

    def of(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """The known result, else what `make` returns. Raises what it raises."""
        if not self._keeps:
            return make()
        if key not in self._used:
            self._used[key] = self._known[key] if key in self._known else make()
        result: Result = self._used[key]
        return result

    def begin(self, base: str) -> None:
        """Begin a new proof; if its `base` is another, nothing is known."""
        self._known = {**self._known, **self._used} if base == self._base else {}
        self._base, self._used = base, {}

    def end(self) -> None:
        """Forget what this proof has not used."""
        self._known = {}


def base_of(course: Course, stage: Stage, files: Mapping[str, bytes]) -> str:
    """A digest of all that every run of a stage depends on.

    That is its table, the solutions, the checks, and the misconceptions that stages share.
    """
    needed = [stage, *course.required(stage)]
    parts = [(course.root / FILE_NAME).read_bytes(), stage.check_file.read_bytes()]
    parts += [files.get(each.file_name, b"") for each in needed]
    parts += [each.read_bytes() for each in shared_files(stage.misconceptions_file)]
    return digest_of(parts)


def sources_of_mistakes(text: str) -> dict[str, str]:
    """For each misconception a digest of the file without the other misconceptions."""
    lines = text.split("\n")
    spans: dict[str, tuple[int, int]] = {}
    for node in ast.parse(text).body:
        for each in getattr(node, "decorator_list", ()):
            is_call = isinstance(each, ast.Call) and each.args
            if is_call and isinstance(each.args[0], ast.Constant):
                first = min(each.lineno, node.lineno) - 1
                spans[str(each.args[0].value)] = first, node.end_lineno or node.lineno
    taken = {number for first, last in spans.values() for number in range(first, last)}
    rest = "\n".join(line for number, line in enumerate(lines) if number not in taken)
    return {
        id: digest_of([rest.encode(), "\n".join(lines[first:last]).encode()])
        for id, (first, last) in spans.items()
    }
