"""Checks an author's files without running them: missing files, faulty files, stray files."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from grader.authoring.mutants.record import read_records
from grader.channels.leaks import (
    leaks,
    revealed_values,
    secret_lines,
    solution_lines,
    solution_values,
    words_of,
)
from grader.channels.student_copy import stage_files
from grader.learning.finale.programs import read_programs
from grader.learning.hints.ladder import above_last_rung, read_hints
from grader.learning.predict.questions import read_predictions
from grader.read.course_file import FILE_NAME
from grader.read.faults import shared_files
from grader.read.stubs import has_work, read_stub, same_but_for_words
from grader.read.workspace import installed_roots
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, KitError
from grader.types.text import listed

LONGEST_TITLE = 72  # characters of a check's title: one line of the learner's screen
_QUESTION_LINES = 11  # what the screen of `grade watch` has room for, of 80 x 24
_CONFTEST = "tests/checks/conftest.py"
_Function = ast.FunctionDef | ast.AsyncFunctionDef
# Nodes that set names to the value of an expression.
_SETS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.withitem)
_COMPARES = {"expect_close", "expect_equal", "expect_gradients_close", "expect_results"}


def check_place(stage: Stage, check: str) -> str:
    """The file and line of a check, given by its id."""
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
    """All existing files of a stage."""
    others = (*shared_files(stage.misconceptions_file), *accepted_files(stage))
    return [file for file in (*stage.files, *others) if file.is_file()]


def _repeated(stage: Stage) -> Iterator[str]:
    """A message for each right answer that repeats another one or the solution."""
    files = [stage.solution_file, *accepted_files(stage)]
    texts = [file.read_text(encoding="utf-8-sig", errors="replace") for file in files]
    for number, file in enumerate(files):
        for earlier, text in zip(files[:number], texts, strict=False):
            if same_but_for_words(text, texts[number]):
                yield f"{stage.place(file)}: repeats {stage.place(earlier)}: remove it"
                break


def missing_files(stage: Stage) -> Iterator[str]:
    """A message for each file that a stage must have but lacks."""
    written = (stage.solution_file, stage.check_file, stage.hints_file, stage.misconceptions_file)
    for file in written:
        if not file.is_file():
            yield f"{stage.place(file)}: is missing: write it"
    if stage.solution_file.is_file() and not stage.exercise_file.is_file():
        yield f"{stage.place(stage.exercise_file)}: is missing: run grade stubs"


def file_problems(stage: Stage, *, is_broken: bool = False) -> Iterator[str]:
    """The faults of a stage's existing files; none of its solution if that `is_broken`."""
    if stage.solution_file.is_file() and not is_broken:
        yield from _found(lambda: _stub_problems(stage))
        yield from _repeated(stage)
    for file in (stage.check_file, stage.misconceptions_file):
        if file.is_file():
            yield from _hidden(stage, file)
    if stage.check_file.is_file():
        yield from _check_titles(stage)
        yield from _without_words(stage)
        yield from _swapped(stage)
        yield from _behind_an_error(stage)
    if stage.hints_file.is_file():
        yield from _found(lambda: _hint_problems(stage, is_broken))
    if stage.predictions_file.is_file():
        yield from _found(lambda: read_predictions(stage))
    if stage.finale_file.is_file():
        yield from _found(lambda: read_programs(stage))
    yield from _found(lambda: read_records(stage))


def _found(problems: Callable[[], object]) -> list[str]:
    """The problems in a file, or the one problem that makes it unreadable."""
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
            begun = has_work(present.decode(errors="replace"), stub)
            advice = f"run grade stubs{f' {stage.slug} --force' if begun else ''}"
            problems.append(f"{place}: does not match the solution: {advice}")
    words = words_of(stub)
    text = "\n".join(words.get(number, "") for number in range(stub.count("\n") + 1))
    given = {stage.place(stage.exercise_file): text.encode()}
    return problems + _leaks(stage, given)


def _hint_problems(stage: Stage, is_broken: bool) -> list[str]:
    """Long questions, and lines of the solution in the hints; only the last rung may have some."""
    place = stage.place(stage.hints_file)
    long = [
        f"{place}: the question of hint {number} has {lines} lines: use at most {_QUESTION_LINES}"
        for number, rung in enumerate(read_hints(stage).rungs, 1)
        if rung.answer and (lines := len(rung.text.splitlines())) > _QUESTION_LINES
    ]
    if is_broken or not stage.solution_file.is_file():
        return long
    return long + _leaks(stage, {place: above_last_rung(stage).encode()})


def _leaks(stage: Stage, given: dict[str, bytes]) -> list[str]:
    """A message for each line of `given` that gives away a line or a value of the solution.

    `given_away` takes no line for a secret that a stub's docstring shows already.
    """
    found = leaks(given, solution_lines(stage))
    there = {(leak.file, leak.line) for leak in found}
    values = revealed_values(given, solution_values(stage))
    more = [leak for leak in values if (leak.file, leak.line) not in there]
    return [str(leak) for leak in [*found, *more]]


def _hidden(stage: Stage, file: Path) -> Iterator[str]:
    """A message for each function or class that a later one of the same name hides."""
    lines: dict[str, int] = {}
    for node in tree_of(file).body:
        if isinstance(node, (_Function, ast.ClassDef)):
            if node.name in lines:
                at = f"{stage.place(file)}:{node.lineno}"
                yield f"{at}: {node.name} hides the one in line {lines[node.name]}: rename one"
            lines[node.name] = node.lineno


def tree_of(file: Path) -> ast.Module:
    """The syntax tree of a file; an empty one if it cannot be read, which is reported elsewhere."""
    try:
        return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _check_titles(stage: Stage) -> Iterator[str]:
    """Faults of the checks' titles; a file that is not valid Python is reported elsewhere."""
    place = stage.place(stage.check_file)
    for node in tree_of(stage.check_file).body:
        if not isinstance(node, _Function) or not node.name.startswith("test_"):
            continue
        at = f"{place}:{node.lineno}: {node.name}"
        title = (ast.get_docstring(node) or "").partition("\n")[0]
        if len(title) > LONGEST_TITLE:
            yield f"{at}: its title has {len(title)} characters: use at most {LONGEST_TITLE}"
        elif title.endswith(".") and not title.endswith("..."):
            yield f"{at}: its title ends with a full stop: remove it"


def _without_words(stage: Stage) -> Iterator[str]:
    """A message for each assert that tells a learner nothing when it fails."""
    for node in ast.walk(tree_of(stage.check_file)):
        if isinstance(node, ast.Assert) and node.msg is None:
            at = f"{stage.place(stage.check_file)}:{node.lineno}"
            yield f"{at}: this assert tells the learner nothing: add a message after a comma"


def _swapped(stage: Stage) -> Iterator[str]:
    """A message for each comparison whose second value is the learner's, and only that one.

    The learner would read their own result as what was expected.
    """
    tree = tree_of(stage.check_file)
    fixtures = {each.name for each in tree.body if isinstance(each, _Function)}
    for check in tree.body:
        if not isinstance(check, _Function) or not check.name.startswith("test_"):
            continue
        learners = {"submission"} | (fixtures & {each.arg for each in check.args.args})
        for _ in range(2):  # ast.walk may come to a name before it comes to what sets it
            for node in ast.walk(check):
                if isinstance(node, _SETS) and _names(node) & learners:
                    learners |= _names(node, ast.Store)
        for node in ast.walk(check):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in _COMPARES:
                got, *expected = (bool(_names(each) & learners) for each in node.args[:2])
                if expected == [True] and not got:
                    at = f"{stage.place(stage.check_file)}:{node.lineno}: {check.name}"
                    yield f"{at}: the learner's value comes first, then the right one: swap them"


def _behind_an_error(stage: Stage) -> Iterator[str]:
    """A message for each block that expects an error and goes on after the call that raises it."""
    for node in ast.walk(tree_of(stage.check_file)):
        if isinstance(node, ast.With) and any(map(_expects_error, node.items)):
            for call in [*filter(_is_bare_call, node.body[:-1])][:1]:
                yield (
                    f"{stage.place(stage.check_file)}:{node.lineno}: what comes after the call in "
                    f"line {call.lineno} never runs, because the call raises: give each call a "
                    "`with` of its own"
                )


def _expects_error(item: ast.withitem) -> bool:
    called = item.context_expr
    names = ("expect_raises", "pytest.raises")
    return isinstance(called, ast.Call) and ast.unparse(called.func) in names


def _is_bare_call(node: ast.stmt) -> bool:
    """Whether a statement is a call of the learner's code whose result is not used."""
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return is_call and ast.unparse(node).startswith("submission.")


def _names(node: ast.AST, context: type[ast.expr_context] = ast.Load) -> set[str]:
    """The names that it reads, or with another context, sets."""
    found = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {each.id for each in found if isinstance(each.ctx, context)}


def strays(course: Course) -> Iterator[str]:
    """A message for each file in the author's folders that belongs to no stage."""
    known = {path for stage in course.stages for path in files_of(stage)}
    known |= {course.changes_file, *filter(_is_kits_own, [course.root / _CONFTEST])}
    folders = {file.parent for stage in course.stages for file in stage.files}
    folders |= {stage.accepted_folder for stage in course.stages}
    folders |= {stage.accepted_folder.parent for stage in course.stages}
    known |= folders
    for path in sorted(path for folder in folders if folder.is_dir() for path in folder.iterdir()):
        passing = path.name.startswith(".") or path.name == "__pycache__"
        if path not in known and not passing:
            place = path.relative_to(course.root).as_posix()
            fault = "belongs to no stage: rename or remove it"
            if place == _CONFTEST:
                fault = "the grader never reads it: move its fixtures into the check files"
            yield f"{place}{'/' if path.is_dir() else ''}: {fault}"


def _is_kits_own(conftest: Path) -> bool:
    """Whether it is the kit's own, which lets pytest run the checks without `grade`."""
    files = [root / _CONFTEST for root in installed_roots()]
    return conftest.is_file() and conftest.read_bytes() in [
        file.read_bytes() for file in files if file.is_file()
    ]


def not_required(course: Course, stages: Iterable[Stage]) -> Iterator[tuple[Stage, str]]:
    """A message for each import of a solution that course.toml does not provide for.

    That is a stage that `requires` does not name: a learner's mistake there would be blamed on this
    one, and a class could get a stub that cannot be imported. It is a stage's function that is no
    entry point, so that a right answer may lack it, or a library that learners may not have.
    """
    entries = {s.slug: {entry.name for entry in s.entry_points} for s in course.stages}
    needs = {re.split(r"[^\w.-]", need.strip())[0] for need in course.requirements}
    libraries = sys.stdlib_module_names | {*course.preload, *needs, "pytest", ""}
    for stage in stages:
        known = {stage.slug, *(earlier.slug for earlier in course.required(stage))}
        lacks: dict[str, int] = {}
        for node in ast.walk(tree_of(stage.solution_file)):
            for name in _imported(node):
                own = {alias.name for alias in getattr(node, "names", ())} - {"*"}
                if name in entries.keys() - known:
                    lack = f"{name}: add it to the stage's `requires` in course.toml"
                elif name in entries and isinstance(node, ast.ImportFrom) and own - entries[name]:
                    what = f"{listed(sorted(own - entries[name]))} from {name}"
                    lack = f"{what}: add it to that stage's `entry_points` in course.toml"
                elif name in entries or name.partition(".")[0] in libraries:
                    continue
                else:
                    lack = f"{name}: add the library to `preload` in course.toml"
                lacks.setdefault(lack, getattr(node, "lineno", 0))
        for lack, line in lacks.items():
            yield stage, f"{stage.place(stage.solution_file)}:{line}: imports {lack}"


def not_of_its_own(course: Course, stages: Iterable[Stage]) -> Iterator[tuple[Stage, str]]:
    """A message for each file that uses a solution, which is not there when learners are graded."""
    slugs = {stage.slug for stage in course.stages}
    for stage in stages:
        for file, told in (
            (stage.check_file, "a check uses a solution: write a reference of its own"),
            (stage.misconceptions_file, "a misconception uses a solution: write here what it uses"),
        ):
            for node in ast.walk(tree_of(file)):
                if slugs & set(_imported(node)) or any(map(_is_in_solutions, _path_parts(node))):
                    yield stage, f"{stage.place(file)}:{getattr(node, 'lineno', 0)}: {told}"
                    break


def twin_titles(course: Course, stages: Iterable[Stage]) -> Iterator[tuple[Stage, str]]:
    """A message for each stage with the title of an earlier one: screens could not tell them."""
    first: dict[str, str] = {}
    for stage in course.stages:
        other = first.setdefault(stage.title, stage.slug)
        if other != stage.slug and stage in stages:
            place = f"{FILE_NAME}: stage '{stage.slug}'"
            yield stage, f"{place}: has the title of '{other}': give it another"


def _path_parts(node: ast.AST) -> list[ast.expr]:
    """The parts of the path that an expression may make."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return [node.left, node.right]
    return node.args if isinstance(node, ast.Call) else []


def _is_in_solutions(part: ast.expr) -> bool:
    text = part.value if isinstance(part, ast.Constant) else None
    return isinstance(text, str) and re.fullmatch(r"(\S*/)?solutions(/\S*)?", text) is not None


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        names = [node.module or ""]
    else:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    return [name.removeprefix("solutions.") for name in names]


def given_away(course: Course, stages: Iterable[Stage]) -> Iterator[tuple[Stage, str]]:
    """A message for each reason why students must not get the files of these stages."""
    given = {}
    for stage in stages:
        try:
            given[stage] = stage_files(course, stage)
        except CourseError as error:
            yield stage, str(error)
    written = [s for s in course.stages if s.solution_file.is_file() and s.check_file.is_file()]
    with suppress(CourseError):  # reported above, or about a stage that is not verified
        secrets = secret_lines(course, written)
        for stage, files in given.items():
            for leak in leaks(files, secrets):
                yield stage, str(leak)
