"""Makes exercises/<slug>.py from solutions/<slug>.py: removes the solution, keeps the rest.

`stub_of`, `solution_of` and `same_but_for_words` are pure; `stub_states` and the functions whose
names start with `read` read files, `write_stubs` writes them.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from pathlib import Path

from grader.read.faults import author_text
from grader.read.files import free_name, write_whole
from grader.read.progress import make_memory_folder, memory_folder
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, writing
from grader.types.text import is_quick_to_parse

BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
_NEARLY = ("BEGIN SOLUTION", "END SOLUTION")
_LARGEST = 1 << 17  # characters: a longer file cannot be a stub
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class StubState(Enum):
    """The state of a file in exercises/ compared with its solution's stub."""

    IN_STEP = "in step"
    ABSENT = "not there"
    OLD = "an older stub"  # only words differ, so no one has started to work in it
    BEGUN = "begun"


def stub_of(source: str, slug: str, place: str = "") -> str:
    """`source` with each solution replaced by a `raise NotImplementedError` that names the task.

    `place` is the file's name in errors. Raises CourseError, which names the line, for missing,
    nested or unbalanced markers, and for a source that is not Python.
    """
    place = place or f"{slug}.py"
    source = source.replace("\r\n", "\n")
    lines = source.split("\n")
    tree = _parsed(source, place)
    kept: list[str] = []
    after = 0
    for first, last in solution_lines(lines, place):
        indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
        name = enclosing(tree, first + 1) or slug
        kept += lines[after:first]
        kept.append(f'{indent}raise NotImplementedError("{name} is not written yet")')
        after = last + 1
    stub = "\n".join([*kept, *lines[after:]]).rstrip() + "\n"
    _parsed(stub, f"the stub of {place}")
    return stub


def solution_of(source: str, place: str) -> str:
    """The code of `source` without markers and docstrings. Raises CourseError."""
    source = source.replace("\r\n", "\n")
    lines = source.split("\n")
    dropped = {marker for solution in solution_lines(lines, place) for marker in solution}
    for node in ast.walk(_parsed(source, place)):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node) is not None:
            docstring, *others = node.body
            last = _end(docstring)
            if others and others[0].lineno > last:  # a body must not become empty
                dropped.update(range(docstring.lineno - 1, last))
    code = "\n".join(line for number, line in enumerate(lines) if number not in dropped)
    return re.sub(r"\n{4,}", "\n\n\n", code).strip("\n") + "\n"


def has_work(text: str, stub: str) -> bool:
    """Whether someone has worked in a stub: more than words and imports differ."""
    return not same_but_for_words(text, stub, imports=False)


def same_but_for_words(one: str, other: str, *, imports: bool = True) -> bool:
    """Whether two sources are equal apart from docstrings, comments and messages of errors.

    Unless `imports` count, they may import other modules. A source that is not Python, or that
    Python parses slowly, equals no other.
    """
    sources = (one, other)
    if not all(len(each) <= _LARGEST and is_quick_to_parse(each) for each in sources):
        return False
    try:
        return _bones(one, imports) == _bones(other, imports)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def stub_states(course: Course) -> dict[Stage, StubState]:
    """The state of every stage's exercise file. Raises CourseError."""
    return {stage: _state(stage, read_stub(stage)) for stage in course.stages}


def read_stub(stage: Stage) -> str:
    """The stub made from the stage's solution. Raises CourseError.

    A student's copy has no solutions: there it is the kept stub, else the file in exercises/.
    """
    if not stage.solution_file.parent.is_dir():
        return _given_stub(stage)
    source, place = read_source(stage)
    return stub_of(source, stage.slug, place)


def parameters(stub: str, *, bound: bool = False) -> dict[str, list[str]]:
    """The parameters of each function and "Class.method" of a stub; if `bound`, without self."""
    found = {}
    for node in ast.parse(stub).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for each in inner:
            if isinstance(each, ast.FunctionDef):
                names = [argument.arg for argument in each.args.args]
                found[prefix + each.name] = names[1:] if prefix and bound else names
    return found


def read_solution(stage: Stage) -> str:
    """The code of the stage's solution, without its markers and docstrings. Raises CourseError."""
    return solution_of(*read_source(stage))


def write_stubs(course: Course, *, force: bool = False) -> dict[Stage, StubState]:
    """Write the missing and outdated stubs, with `force` also over started work.

    Keeps a copy of every replaced file in `replaced_folder`. Returns the states before. Raises
    CourseError before writing anything, KitError if writing fails.
    """
    stubs = {stage: read_stub(stage) for stage in course.stages}
    states = {stage: _state(stage, stub) for stage, stub in stubs.items()}
    with writing(course.exercises):
        for stage, state in states.items():
            if state is StubState.IN_STEP or (state is StubState.BEGUN and not force):
                continue
            file = stage.exercise_file
            file.parent.mkdir(exist_ok=True)
            if state is not StubState.ABSENT:
                keep_copy(file, course.root)
            write_whole(file, stubs[stage])
    return states


def replaced_folder(root: Path) -> Path:
    """Make the folder with copies of the replaced exercise files. Raises OSError."""
    folder = make_memory_folder(root) / "replaced"
    folder.mkdir(exist_ok=True)
    return folder


def keep_copy(file: Path, root: Path) -> Path:
    """Copy `file` to the folder of replaced files; returns the copy's path. Raises OSError."""
    copy = free_name(replaced_folder(root) / file.name)
    with open(copy, "xb") as target:
        target.write(file.read_bytes())
        target.flush()
        os.fsync(target.fileno())
    return copy


def read_source(stage: Stage) -> tuple[str, str]:
    """The text of the stage's solution file, and its name for errors.

    Raises CourseError, also if it is not Python.
    """
    place = stage.place(stage.solution_file)
    source = author_text(stage.solution_file, place)
    _parsed(source, place)
    return source, place


def _given_stub(stage: Stage) -> str:
    """The stub of a student's copy, in whose exercises/ a student may work. Raises CourseError."""
    kept = memory_folder(stage.root) / "stubs" / stage.file_name
    for file in (kept, stage.exercise_file):
        with suppress(OSError, UnicodeDecodeError):
            return file.read_text(encoding="utf-8-sig")
    place = stage.place(stage.exercise_file)
    raise CourseError(f"{place}: cannot be read: unzip the course again")


def _state(stage: Stage, stub: str) -> StubState:
    try:
        present = stage.exercise_file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        return StubState.ABSENT
    except (OSError, UnicodeDecodeError):
        return StubState.BEGUN
    if present == stub:
        return StubState.IN_STEP
    return StubState.BEGUN if has_work(present, stub) else StubState.OLD


def _parsed(source: str, place: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        # str() of a SyntaxError repeats the line, and a MemoryError says nothing.
        what = getattr(error, "msg", str(error)) or "it is nested too deeply"
        raise CourseError(f"{place}:{line}: is not Python: {what}") from None


def solution_lines(lines: list[str], place: str) -> Iterator[tuple[int, int]]:
    """The first and last line (from 0) of every solution, markers included."""
    opened: int | None = None
    found = False
    for number, line in enumerate(lines):
        at, mark = f"{place}:{number + 1}", line.strip()
        if mark == BEGIN:
            if opened is not None:
                what = f"a solution starts inside the one from line {opened + 1}"
                raise CourseError(f"{at}: {what}: end that one with '{END}'")
            opened = number
        elif mark == END:
            if opened is None:
                raise CourseError(f"{at}: a solution ends here, but none has started")
            if line.index(END) != lines[opened].index(BEGIN):
                raise CourseError(
                    f"{at}: this marker is not indented like the one in line {opened + 1}"
                )
            yield opened, number
            opened, found = None, True
        elif line.lstrip().startswith("#") and any(nearly in line for nearly in _NEARLY):
            raise CourseError(f"{at}: write exactly '{BEGIN}' or '{END}', not '{mark}'")
    if opened is not None:
        raise CourseError(f"{place}:{opened + 1}: this solution has no '{END}': write it below")
    if not found:
        raise CourseError(f"{place}: has no '{BEGIN}': mark the part that learners write")


def enclosing(tree: ast.AST, line: int) -> str:
    """The qualified name of the innermost function or class around `line`, or ""."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.stmt, ast.ExceptHandler)) and node.lineno <= line <= _end(node):
            inner = enclosing(node, line)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                return f"{node.name}.{inner}" if inner else node.name
            return inner
    return ""


def _end(node: ast.stmt | ast.ExceptHandler) -> int:
    return node.end_lineno or node.lineno


def _bones(source: str, imports: bool) -> str:
    """The syntax tree of `source` as text, without docstrings and messages of errors."""
    tree = ast.parse(source)
    if not imports:
        tree.body = [n for n in tree.body if not isinstance(n, (ast.Import, ast.ImportFrom))]
    for node in ast.walk(tree):
        if isinstance(node, _WITH_DOCSTRING):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args = []
    return ast.dump(tree)
