"""Finds the lines of students' files that give away what students must not see."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from grader.channels.project import learners_files
from grader.channels.visible_checks import visible_checks
from grader.read.faults import course_place, course_text, shared_files
from grader.read.stubs import BEGIN, END, read_source, read_stub
from grader.types.course import Course, Stage

_SHORTEST = 12  # characters of a secret line, at least
_PART = 6  # characters
_DISTINCT = 30  # a secret line so long must not even be part of another line
_CALL = re.compile(r"([\w, ]+ = )?submission\.\w+\([\w, ]*\)")
_PARAMETER = re.compile(r"\w+: [\w.,| \[\]]+,")  # on a line of its own, without a default
_NAMES = re.compile(r"[\w.()]+")  # names and calls without arguments give nothing away
_WITH_VALUE = ast.Return | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr


@dataclass(frozen=True)
class Leak:
    """A line of a student's `file` that holds a secret line; `of` is that line's place."""

    file: str
    line: int
    of: str

    def __str__(self) -> str:
        return (
            f"{self.file}:{self.line}: gives away {self.of}, and students get this file: leave a "
            "gap there or use other names"
        )


class _Known:
    """A text that students have; `in` tells whether a line occurs in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts = {text[i : i + _PART] for i in range(len(text))}

    def __contains__(self, line: str) -> bool:
        # Searching the whole text is slow, so first test whether its parts can contain the line.
        parts = (line[i : i + _PART] for i in range(len(line) - _PART + 1))
        return self._parts.issuperset(parts) and line in self._text


@cache
def _engine() -> _Known:
    """The engine in a student's copy, which stays the same while we run."""
    return _Known("".join(data.decode() for data in learners_files().values()))


def secret_lines(course: Course, stages: Iterable[Stage]) -> dict[str, str]:
    """The code of each line of `stages` that students must not see, and its place.

    Such a line is from a solution, a hidden check or a misconception, has at least 12 characters,
    and does not also occur in the stubs, the engine or the visible checks. A plain call of a
    learner's function on some variables is no secret, nor is a parameter. Raises CourseError.
    """
    stages = tuple(stages)
    given = "".join(
        read_stub(stage) + visible_checks(course_text(course, stage.check_file), stage)
        for stage in stages
    )
    known = (_engine(), _Known(given))

    secrets: dict[str, str] = {}
    for stage in stages:
        mistakes = stage.misconceptions_file
        for file in (stage.solution_file, stage.check_file, mistakes, *shared_files(mistakes)):
            text = course_text(course, file) if file.is_file() else ""
            if file == stage.solution_file:
                text = _solutions(text)
            for number, line in _coded(text):
                if len(line) < _SHORTEST or line in secrets:
                    continue
                if _CALL.fullmatch(line) or _PARAMETER.fullmatch(line):
                    continue
                if not any(line in text for text in known):
                    secrets[line] = f"{course_place(course, file)}:{number}"
    return secrets


def solution_lines(stage: Stage) -> dict[str, str]:
    """The code of each line of a stage's solution that gives something away, and its place.

    Such a line has at least 12 characters and is not in the stub. Raises CourseError.
    """
    source, place = read_source(stage)
    given = {line for _, line in _coded(_code_of(read_stub(stage)))}
    return {
        line: f"{place}:{number}"
        for number, line in _coded(_solutions(source))
        if len(line) >= _SHORTEST and not _CALL.fullmatch(line) and line not in given
    }


def solution_values(stage: Stage) -> dict[str, str]:
    """The expressions of a stage's solution that give something away, and the place of each.

    They are returned, assigned or called values, in any spacing. Raises CourseError.
    """
    source, place = read_source(stage)
    inside = {number for number, line in _coded(_solutions(source)) if line}
    given = {value for _, value in _values(ast.parse(read_stub(stage)))}
    return {
        value: f"{place}:{number}"
        for number, value in _values(ast.parse(source))
        if number in inside
        and value not in given
        and len(value) >= _SHORTEST
        and not (_CALL.fullmatch(value) or _NAMES.fullmatch(value))
    }


def revealed_values(files: Mapping[str, bytes], secrets: Mapping[str, str]) -> list[Leak]:
    """The lines of `files` that are, or quote in backticks, one of the `secrets`."""
    found = []
    for name, data in files.items():
        for number, line in _coded(data.decode("utf-8", "replace")):
            for part in (line, *re.findall(r"`([^`]+)`", line)):
                with suppress(SyntaxError, ValueError):
                    values = [value for _, value in _values(ast.parse(part.strip()))]
                    found += [Leak(name, number, secrets[v]) for v in values if v in secrets]
    return list(dict.fromkeys(found))


def _values(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line of each statement with a value, and the value in one standard spelling."""
    for node in ast.walk(tree):
        if isinstance(node, _WITH_VALUE) and not isinstance(node.value, ast.Constant | None):
            yield node.lineno, ast.unparse(node.value)


def leaks(files: Mapping[str, bytes], secrets: Mapping[str, str]) -> list[Leak]:
    """The lines of `files` that are secret, or that contain a long secret line."""
    beginnings: dict[str, list[str]] = {}
    for secret in secrets:
        if len(secret) >= _DISTINCT:
            beginnings.setdefault(secret[:_DISTINCT], []).append(secret)

    def held_by(line: str) -> str | None:
        """The place of a secret in the line."""
        windows = (line[i : i + _DISTINCT] for i in range(len(line) - _DISTINCT + 1))
        long = (secret for window in windows for secret in beginnings.get(window, ()))
        held = (secrets[secret] for secret in long if secret in line)
        return secrets.get(line) or next(held, None)

    return [
        Leak(name, number, place)
        for name, data in files.items()
        for number, line in _coded(data.decode("utf-8", "replace"))
        if (place := held_by(line)) is not None
    ]


def _coded(text: str) -> Iterator[tuple[int, str]]:
    """Every line's number and code, without surrounding spaces and a comment at the end."""
    for number, line in enumerate(text.splitlines(), start=1):
        yield number, (re.sub(r"\s+#\s.*$", "", line) if "#" in line else line).strip()


def words_of(source: str) -> dict[int, str]:
    """The lines of comments and docstrings in a Python source, by line number from 0."""
    lines = source.splitlines()
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                found[number] = lines[number].replace('"""', "")
    for part in tokenize.tokenize(io.BytesIO(source.encode()).readline):
        if part.type == tokenize.COMMENT:
            found[part.start[0] - 1] = part.string.lstrip("# ")
    return found


def _code_of(source: str) -> str:
    words = words_of(source)
    lines = enumerate(source.splitlines())
    return "\n".join("" if number in words else line for number, line in lines)


def _solutions(source: str) -> str:
    """The source with every line outside the solutions emptied."""
    inside, lines = False, []
    for line in source.splitlines():
        mark = line.strip()
        inside = mark == BEGIN or (inside and mark != END)
        lines.append(line if inside and mark != BEGIN else "")
    return "\n".join(lines)
