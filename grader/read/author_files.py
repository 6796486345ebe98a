"""An author's files as they lie on the disk: which a stage has, what is wrong with them, strays.

Nothing here runs any of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from grader.read.bundle import (
    leaks,
    secret_lines,
    solution_lines,
    solution_values,
    stage_files,
    told_values,
    words_of,
)
from grader.read.hints import read_hints
from grader.read.mutants import read_records
from grader.read.predictions import read_predictions
from grader.read.stubs import read_stub, same_but_for_words
from grader.read.workspace import installed_folder
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, KitError
from grader.types.hints import Hints

LONGEST_TITLE = 72  # characters of a check's docstring: a line of the learner's screen
_CONFTEST = "conftest.py"
_NOT_READ = "the grader never reads it: move its fixtures into the check files"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def check_place(stage: Stage, check: str) -> str:
    """The file and the line of a check, by its id."""
    name = f"test_{check.partition('.')[2]}"
    text = stage.check_file.read_text(encoding="utf-8-sig")
    place = stage.place(stage.check_file)
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(rf"(async )?def {name}\b", line):
            return f"{place}:{number}"
    return place


def accepted_files(stage: Stage) -> list[Path]:
    """The right answers in other styles."""
    return sorted(stage.accepted_folder.glob("*.py"))


def files_of(stage: Stage) -> list[Path]:
    """All files of a stage that are there."""
    files = (
        *(stage.solution_file, stage.exercise_file, stage.check_file, stage.hints_file),
        *(stage.misconceptions_file, stage.predictions_file, stage.trace_file),
        *(stage.mutants_file, *accepted_files(stage)),
    )
    return [file for file in files if file.is_file()]


def _repeated(stage: Stage) -> Iterator[str]:
    """What is said of right answers that are another one, or the solution, once more."""
    files = [stage.solution_file, *accepted_files(stage)]
    texts = [file.read_text(encoding="utf-8-sig", errors="replace") for file in files]
    for number, file in enumerate(files):
        for earlier, text in zip(files[:number], texts, strict=False):
            if same_but_for_words(text, texts[number]):
                said = f"is {stage.place(earlier)} again: remove it"
                yield f"{stage.place(file)}: {said}"
                break


def missing_files(stage: Stage) -> Iterator[str]:
    """What is said of each file that a stage has to have and has not."""
    for file, advice in (
        (stage.solution_file, "write the solution"),
        (stage.check_file, "write the checks"),
        (stage.hints_file, "write the hints"),
        (stage.misconceptions_file, "write the misconceptions"),
    ):
        if not file.is_file():
            yield f"{stage.place(file)}: is not there: {advice}"
    if stage.solution_file.is_file() and not stage.exercise_file.is_file():
        yield f"{stage.place(stage.exercise_file)}: there is no stub: run grade stubs"


def file_problems(stage: Stage) -> Iterator[str]:
    """What is wrong with the files of a stage that are there."""
    if stage.solution_file.is_file():
        yield from _told(lambda: _stub_problems(stage))
        yield from _repeated(stage)
    for file in (stage.check_file, stage.misconceptions_file):
        if file.is_file():
            yield from _hidden(stage, file)
    if stage.check_file.is_file():
        yield from _check_titles(stage)
    if stage.hints_file.is_file():
        yield from _told(lambda: _hint_problems(stage))
    if stage.predictions_file.is_file():
        yield from _told(lambda: read_predictions(stage))
    yield from _told(lambda: read_records(stage))


def _told(problems: Callable[[], object]) -> list[str]:
    """The problems that are found, or the one that keeps a file from being read."""
    try:
        found = problems()
    except KitError as error:
        return [str(error)]
    return found if isinstance(found, list) else []


def _stub_problems(stage: Stage) -> list[str]:
    stub = read_stub(stage)
    problems = []
    if stage.exercise_file.is_file():
        present = stage.exercise_file.read_bytes()
        if present.decode(errors="replace").replace("\r\n", "\n") != stub:
            place = stage.place(stage.exercise_file)
            begun = not same_but_for_words(present.decode(errors="replace"), stub)
            advice = f"run grade stubs{f' {stage.slug} --force' if begun else ''}"
            problems.append(f"{place}: is not in step with the solution: {advice}")
    secrets = solution_lines(stage)
    words = words_of(stub)
    text = "\n".join(words.get(number, "") for number in range(stub.count("\n") + 1))
    given = {stage.place(stage.exercise_file): text.encode()}
    return problems + _said(given, secrets, solution_values(stage))


def _hint_problems(stage: Stage) -> list[str]:
    """The last rung may say nearly all; none before it holds a line of the solution."""
    hints: Hints = read_hints(stage)
    text = stage.hints_file.read_text(encoding="utf-8-sig")
    last = next(
        number
        for number, line in enumerate(text.splitlines())
        if line.startswith(f"## {len(hints.rungs)}.")
    )
    earlier = "\n".join(text.splitlines()[:last])
    if not stage.solution_file.is_file():
        return []
    given = {stage.place(stage.hints_file): earlier.encode()}
    return _said(given, solution_lines(stage), solution_values(stage))


def _said(
    given: dict[str, bytes], lines: Mapping[str, str], values: Mapping[str, str]
) -> list[str]:
    """What is said of lines and values of the solution that are given away, of a line once."""
    found = leaks(given, lines)
    there = {(leak.file, leak.line) for leak in found}
    more = [leak for leak in told_values(given, values) if (leak.file, leak.line) not in there]
    return [str(leak) for leak in [*found, *more]]


def _hidden(stage: Stage, file: Path) -> Iterator[str]:
    """What is said of functions and classes that a later one of the same name hides."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8-sig"))
    except (SyntaxError, ValueError):
        return
    lines: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, (_Function, ast.ClassDef)) and node.name != "_":
            if node.name in lines and not _is_overloaded(node):
                at = f"{stage.place(file)}:{node.lineno}"
                yield f"{at}: {node.name} hides the one of line {lines[node.name]}: rename one"
            if not _is_overloaded(node):
                lines[node.name] = node.lineno


def _is_overloaded(node: _Function | ast.ClassDef) -> bool:
    return any(ast.unparse(each).endswith("overload") for each in node.decorator_list)


def _check_titles(stage: Stage) -> Iterator[str]:
    """What is wrong with the titles of the checks; a file that is no Python is told elsewhere."""
    try:
        tree = ast.parse(stage.check_file.read_text(encoding="utf-8-sig"))
    except (SyntaxError, ValueError):
        return
    place = stage.place(stage.check_file)
    for node in tree.body:
        if not isinstance(node, _Function) or not node.name.startswith("test_"):
            continue
        at = f"{place}:{node.lineno}: {node.name}"
        title = (ast.get_docstring(node) or "").partition("\n")[0]
        if not title:
            yield f"{at} has no docstring, its title"
        elif len(title) > LONGEST_TITLE:
            yield f"{at}: its title has {len(title)} characters: use {LONGEST_TITLE} at most"
        elif title.endswith(".") and not title.endswith("..."):
            yield f"{at}: its title ends with a full stop: leave it out"


def strays(course: Course) -> Iterator[str]:
    """What is said of each file in the folders of an author's files that is no stage's own."""
    known = {path for stage in course.stages for path in files_of(stage)}
    fixtures = course.root / "tests" / "checks" / _CONFTEST
    known.add(fixtures)
    folders = {file.parent for stage in course.stages for file in _homes(stage)}
    for folder in sorted(folders):
        yield from _strays(course, folder, known, folders)
    if fixtures.is_file() and not _is_kits_own(fixtures):
        yield f"{fixtures.relative_to(course.root).as_posix()}: {_NOT_READ}"
    above = course.root / "tests" / _CONFTEST
    if above.is_file():
        yield f"tests/{_CONFTEST}: belongs to no stage, and pytest would run it: remove it"


def _is_kits_own(conftest: Path) -> bool:
    """Whether it is the one of the kit, for those who run its checks with pytest alone."""
    roots = (Path(__file__).parents[2], installed_folder())
    files = [root / "tests" / "checks" / _CONFTEST for root in roots]
    text = conftest.read_bytes()
    return any(file.is_file() and file.read_bytes() == text for file in files)


def _homes(stage: Stage) -> Iterable[Path]:
    return (
        *(stage.solution_file, stage.exercise_file, stage.check_file, stage.hints_file),
        *(stage.misconceptions_file, stage.predictions_file, stage.trace_file),
        *(stage.mutants_file, stage.accepted_folder, stage.accepted_folder / "any.py"),
    )


def _strays(course: Course, folder: Path, known: set[Path], folders: set[Path]) -> Iterator[str]:
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        passing = path.name.startswith(".") or path.name == "__pycache__"
        if path in known or path in folders or passing:
            continue
        place = path.relative_to(course.root).as_posix()
        yield f"{place}{'/' if path.is_dir() else ''}: belongs to no stage: rename or remove it"


def not_required(course: Course, stages: Iterable[Stage]) -> Iterator[tuple[Stage, str]]:
    """What is said of stages whose solutions import one that `requires` does not name.

    A learner's fault in that one would be laid at the door of the stage, and a class would be
    given a stub that cannot be imported.
    """
    slugs = {stage.slug for stage in course.stages}
    for stage in stages:
        known = {stage.slug, *(earlier.slug for earlier in course.required(stage))}
        try:
            tree = ast.parse(stage.solution_file.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        lacks: dict[str, int] = {}
        for node in ast.walk(tree):
            for name in _imported(node):
                if name in slugs - known:
                    lacks.setdefault(name, getattr(node, "lineno", 0))
        for name, line in lacks.items():
            place = f"{stage.place(stage.solution_file)}:{line}"
            said = f"imports {name}, which the stage's `requires` in course.toml does not name"
            yield stage, f"{place}: {said}"


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def given_away(course: Course, stages: Iterable[Stage]) -> Iterator[tuple[Stage, str]]:
    """What keeps the files of these stages from being given to students."""
    given = {}
    for stage in stages:
        try:
            given[stage] = stage_files(course, stage)
        except CourseError as error:
            yield stage, str(error)
    written = [s for s in course.stages if s.solution_file.is_file() and s.check_file.is_file()]
    with suppress(CourseError):  # of a stage that was told above, or is not verified
        secrets = secret_lines(course, written)
        for stage, files in given.items():
            for leak in leaks(files, secrets):
                yield stage, str(leak)
