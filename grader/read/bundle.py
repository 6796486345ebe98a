"""A course -> the copy that students get: stubs, engine, hints and the checks that they may see.

`visible_checks`, `partial_toml`, `student_project`, `leaks` and `zipped` are pure, the rest reads.
"""

from __future__ import annotations

import ast
import io
import json
import re
import symtable
import tokenize
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from grader.read.course_file import FILE_NAME
from grader.read.faults import author_text, fault_of
from grader.read.progress import memory_folder
from grader.read.stubs import BEGIN, END, read_source, read_stub
from grader.read.workspace import installed_folder
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, close_to

_CHECK = "test_"
_ENGINE = Path(__file__).parents[1]
_SHORTEST = 12  # letters of a line that is worth keeping secret
_PART, _STEP = 6, 7  # letters: one such part of every _SHORTEST begins at a multiple of the step
_DISTINCT = 30  # letters of one that may not even be a part of a line
_CALL = re.compile(r"([\w, ]+ = )?submission\.\w+\([\w, ]*\)")
_NAMES = re.compile(r"[\w.()]+")  # with calls of nothing: it tells nothing
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same files give the same zip
_TABLES = (
    *("[build-system]", "[project]", "[project.optional-dependencies]"),
    *("[project.scripts]", "[tool.hatch.version]"),
)

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_WITH_VALUE = ast.Return | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr
_Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class Leak:
    """A line of the bundle's `file` that holds a secret one; `of` is where that stands."""

    file: str
    line: int
    of: str

    def __str__(self) -> str:
        return (
            f"{self.file}:{self.line}: gives away {self.of}: leave a gap there or other names, "
            "as students get this file"
        )


def bundle_files(course: Course) -> dict[str, bytes]:
    """Every file of the bundle by its path.

    Raises CourseError for a course that is wrong, and for one whose hints give a secret line away.
    """
    files = {FILE_NAME: partial_toml(_read(course, course.root / FILE_NAME)).encode()}
    files |= _kit_files(course)
    for stage in course.stages:
        files |= stage_files(course, stage)
    found = leaks(files, secret_lines(course, course.stages))
    if found:
        raise CourseError(str(found[0]))
    engine = (file for file in sorted(_ENGINE.rglob("*")) if file.is_file())
    for file in engine:
        if "__pycache__" not in file.parts:
            files[f"grader/{file.relative_to(_ENGINE).as_posix()}"] = file.read_bytes()
    return files


def stage_files(course: Course, stage: Stage) -> dict[str, bytes]:
    """The files of one stage. Raises CourseError.

    The stub is there twice, as in a workspace: the one in exercises/ may be worked in.
    """
    stub = read_stub(stage)
    pristine = memory_folder(course.root) / "stubs" / stage.file_name
    texts = {
        stage.exercise_file: stub,
        pristine: stub,
        stage.check_file: visible_checks(_read(course, stage.check_file), stage),
        stage.hints_file: _read(course, stage.hints_file),
    }
    for file in (stage.predictions_file, stage.trace_file):
        if file.is_file():
            texts[file] = _read(course, file)
    return {_place(course, file): text.encode() for file, text in texts.items()}


def partial_toml(text: str) -> str:
    """The text of a course.toml as that of a student's copy, comments and all."""
    text = re.sub(r"^partial\s*=.*\n", "", text, flags=re.MULTILINE)
    note = "# A student's copy: the checks that are `visible`, and no solutions.\n"
    return f"{note}partial = true\n\n{text}"


def student_project(text: str, title: str) -> str:
    """The kit's pyproject.toml without what only its own development needs."""
    kept = []
    for table in re.split(r"^(?=\[)", text, flags=re.MULTILINE):
        name = table.partition("\n")[0].strip()
        if name in _TABLES:
            kept.append(re.sub(r"(\n#.*)+\s*\Z", "", table).rstrip())  # comments on the next one
        if name == "[project.optional-dependencies]":
            extra = re.search(r"^notebook = \[[^]]*\]$", table, re.MULTILINE)
            kept[-1] = f"{name}\n{extra[0]}" if extra else name
    project = "\n\n".join([*kept, _WHEEL])
    said = json.dumps(title, ensure_ascii=False)
    return re.sub(r"^description = .*$", lambda _: f"description = {said}", project, flags=re.M)


def zipped(files: Mapping[str, bytes], top: str = "", executable: Collection[str] = ()) -> bytes:
    """The files as a zip, in one folder `top` if that is named; some are `executable`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(f"{top}/{name}" if top else name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if name in executable else 0o100644) << 16
            archive.writestr(info, files[name])
    return buffer.getvalue()


# --- the visible checks ------------------------------------------------------------------------


def visible_checks(source: str, stage: Stage) -> str:
    """The checks of `stage` that are visible, and what they need, out of its check file's source.

    Kept are imports, the visible checks and every name of the module that these reach: functions,
    constants, fixtures. Nothing else is, no comment between two statements either. Raises
    CourseError for a name in `visible` that is no check, and for a hidden check that is named.
    """
    place = stage.place(stage.check_file)
    source = source.replace("\r\n", "\n")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise CourseError(fault_of(error, {"<unknown>": place})) from None
    checks = [
        node.name.removeprefix(_CHECK)
        for node in tree.body
        if isinstance(node, _Function) and node.name.startswith(_CHECK)
    ]
    expect_visible(stage, checks)
    if not stage.visible:
        return f'"""{stage.title}: no check is visible, it is graded on submission."""\n'
    kept = _reached(tree, {f"{_CHECK}{name}" for name in stage.visible})
    lines = source.split("\n")
    parts = [f'"""{stage.title}: the visible checks; more checks run on submission."""']
    before: ast.stmt | None = None
    for node in kept:
        parts.append("\n" * _distance(before, node, lines))
        parts.append(_text(node, lines, stage.visible))
        before = node
    text = "".join(parts) + "\n"
    for name in checks:
        if name not in stage.visible and re.search(rf"\b{_CHECK}{name}\b", text):
            raise CourseError(
                f"{place}: a visible check, or what it uses, speaks of the hidden {_CHECK}{name}"
            )
    return text


def expect_visible(stage: Stage, checks: Iterable[str]) -> None:
    """Raises CourseError if `visible` of the stage names what is not among its `checks`."""
    known = sorted(checks)
    for name in stage.visible:
        if name not in known:
            advice = close_to(name.removeprefix(_CHECK), known)
            raise CourseError(
                f"{FILE_NAME}: stage '{stage.slug}': visible: there is no check '{name}'{advice}"
            )


def _reached(tree: ast.Module, names: set[str]) -> list[ast.stmt]:
    """The imports, and the statements that bind one of `names` or a name that those need."""
    bound = {node: _bound(node) for node in tree.body}
    fixtures = {_fixture(node): bound[node] for node in tree.body if _fixture(node)}
    wanted = {*names, "pytestmark"}
    for node in tree.body:
        if any(keyword.arg == "autouse" for keyword in _fixture_options(node)):
            wanted |= bound[node]
    kept: list[ast.stmt] = []
    left = list(tree.body)
    while new := [node for node in left if isinstance(node, _Import) or bound[node] & wanted]:
        left = [node for node in left if node not in new]
        kept += new
        for node in new:
            wanted |= _used(node)
            for name in _asked_for(node) & fixtures.keys():
                wanted |= fixtures[name]
    return sorted(kept, key=lambda node: node.lineno)


def _bound(node: ast.stmt) -> set[str]:
    """The names of the module that a statement binds."""
    return {name.get_name() for name in _table(node).get_symbols() if name.is_assigned()}


def _used(node: ast.stmt) -> set[str]:
    """The names of the module that a statement uses, inside of functions too."""

    def used(table: symtable.SymbolTable) -> Iterator[str]:
        is_module = table.get_type() == "module"
        for name in table.get_symbols():
            if name.is_referenced() if is_module else name.is_global():
                yield name.get_name()
        for inner in table.get_children():
            yield from used(inner)

    return set(used(_table(node)))


def _table(node: ast.stmt) -> symtable.SymbolTable:
    return symtable.symtable(ast.unparse(node), "check", "exec")


def _asked_for(node: ast.stmt) -> set[str]:
    """The names of what may be fixtures: parameters, and words of `usefixtures`."""
    if not isinstance(node, _Function):
        return set()
    words = {
        str(word.value)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and _last(decorator.func) == "usefixtures"
        for word in decorator.args
        if isinstance(word, ast.Constant)
    }
    return words | {argument.arg for argument in [*node.args.args, *node.args.kwonlyargs]}


def _fixture(node: ast.stmt) -> str:
    """The name of the fixture that a statement defines, "" if it does not."""
    if not isinstance(node, _Function):
        return ""
    names = [word.value for word in _fixture_options(node) if word.arg == "name"]
    if names and isinstance(names[0], ast.Constant):
        return str(names[0].value)
    return node.name if any(_last(each) == "fixture" for each in node.decorator_list) else ""


def _fixture_options(node: ast.stmt) -> list[ast.keyword]:
    """The keywords of a decorator that makes a fixture."""
    return [
        keyword
        for decorator in (node.decorator_list if isinstance(node, _Function) else ())
        if isinstance(decorator, ast.Call) and _last(decorator) == "fixture"
        for keyword in decorator.keywords
    ]


def _last(node: ast.expr) -> str:
    """The last name of a dotted one, called or not."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _text(node: ast.stmt, lines: list[str], visible: Collection[str]) -> str:
    """A statement as it stands in the source; a hidden stand-in is left out."""
    decorators = node.decorator_list if isinstance(node, _Function | ast.ClassDef) else []
    parts = []
    for decorator in decorators:
        if isinstance(decorator, ast.Call) and _names_hidden(decorator, visible):
            keywords = [word for word in decorator.keywords if word.arg != "stand_in"]
            shown = ast.Call(decorator.func, decorator.args, keywords)
            parts.append(f"@{ast.unparse(shown)}")
        else:
            parts.append(f"@{_slice(decorator, lines)}")
    return "\n".join([*parts, _slice(node, lines)])


def _names_hidden(decorator: ast.Call, visible: Collection[str]) -> bool:
    """Whether it says that a check that is not visible decides for this one if it is skipped."""
    return any(
        word.arg == "stand_in"
        and isinstance(word.value, ast.Constant)
        and word.value.value not in visible
        for word in decorator.keywords
    )


def _slice(node: ast.stmt | ast.expr, lines: list[str]) -> str:
    """The source of a node that begins at its `lineno`: of a function without its decorators."""
    last = node.end_lineno or node.lineno
    part = [line.encode() for line in lines[node.lineno - 1 : last]]
    part[-1] = part[-1][: node.end_col_offset]  # counted in bytes
    part[0] = part[0][node.col_offset :]
    return b"\n".join(part).decode()


def _distance(before: ast.stmt | None, node: ast.stmt, lines: list[str]) -> int:
    """The line ends between two statements that are kept."""
    if before is None or isinstance(before, _Import) != isinstance(node, _Import):
        return 2
    if any(isinstance(each, _Function | ast.ClassDef) for each in (before, node)):
        return 3
    return 1 if lines[node.lineno - 2].strip() else 2


# --- what must not go along --------------------------------------------------------------------


def secret_lines(course: Course, stages: Iterable[Stage]) -> dict[str, str]:
    """The code of each line of `stages` that students must not see, and where it stands.

    It is a line of a solution, of a check that is not visible, or of a misconception, which has at
    least 12 letters and is not to be found in the stubs, the engine or what is visible as well. A
    mere call of a learner's function on some variables tells nothing. Raises CourseError.
    """
    stages = tuple(stages)
    known = "".join(_read(course, file) for file in sorted(_ENGINE.rglob("*.py")))
    for stage in stages:
        known += read_stub(stage) + visible_checks(_read(course, stage.check_file), stage)
    known_lines = {line for _, line in _coded(known)}
    parts = {known[i : i + _PART] for i in range(0, len(known), _STEP)}

    def is_known(line: str) -> bool:
        if line in known_lines:
            return True
        # The text is long to search: not for a line that is among its parts from no letter on.
        ways = (range(start, len(line) - _PART + 1, _STEP) for start in range(_STEP))
        return any(all(line[i : i + _PART] in parts for i in way) for way in ways) and line in known

    secrets: dict[str, str] = {}
    for stage in stages:
        for file in (stage.solution_file, stage.check_file, stage.misconceptions_file):
            text = _read(course, file) if file.is_file() else ""
            if file == stage.solution_file:
                text = _solutions(text)
            for number, line in _coded(text):
                if len(line) < _SHORTEST or line in secrets or _CALL.fullmatch(line):
                    continue
                if not is_known(line):
                    secrets[line] = f"{_place(course, file)}:{number}"
    return secrets


def solution_lines(stage: Stage) -> dict[str, str]:
    """The code of each line of a stage's solution that tells something, and where it stands.

    It has at least 12 letters and is no line of the stub's own code. Raises CourseError.
    """
    source, place = read_source(stage)
    given = {line for _, line in _coded(_code_of(read_stub(stage)))}
    return {
        line: f"{place}:{number}"
        for number, line in _coded(_solutions(source))
        if len(line) >= _SHORTEST and not _CALL.fullmatch(line) and line not in given
    }


def solution_values(stage: Stage) -> dict[str, str]:
    """The expressions of a stage's solution that tell something, and where each stands.

    They are what is returned, assigned or called, however it is spaced. Raises CourseError.
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


def told_values(files: Mapping[str, bytes], secrets: Mapping[str, str]) -> list[Leak]:
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
    """The lines of the statements that have a value, and that value in one way of writing."""
    for node in ast.walk(tree):
        if isinstance(node, _WITH_VALUE) and not isinstance(node.value, ast.Constant | None):
            yield node.lineno, ast.unparse(node.value)


def leaks(files: Mapping[str, bytes], secrets: Mapping[str, str]) -> list[Leak]:
    """The lines of `files` that are secret, or that have a longer secret line as a part."""
    places = list(secrets.values())
    beginnings: dict[str, list[tuple[int, str]]] = {}
    for rank, secret in enumerate(secrets):
        if len(secret) >= _DISTINCT:
            beginnings.setdefault(secret[:_DISTINCT], []).append((rank, secret))

    def held_by(line: str) -> str | None:
        """Where the secret stands, the first of several."""
        if line in secrets:
            return secrets[line]
        windows = (line[i : i + _DISTINCT] for i in range(len(line) - _DISTINCT + 1))
        held = [
            rank
            for window in windows
            for rank, secret in beginnings.get(window, ())
            if secret in line
        ]
        return places[min(held)] if held else None

    return [
        Leak(name, number, place)
        for name, data in files.items()
        for number, line in _coded(data.decode("utf-8", "replace"))
        if (place := held_by(line)) is not None
    ]


def _coded(text: str) -> Iterator[tuple[int, str]]:
    """Every line's number and code: without the blanks around it and a comment at its end."""
    for number, line in enumerate(text.splitlines(), start=1):
        yield number, (re.sub(r"\s+#\s.*$", "", line) if "#" in line else line).strip()


def words_of(source: str) -> dict[int, str]:
    """The lines of comments and docstrings of a source that is Python, by their numbers from 0."""
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
    """The source with nothing in the place of all lines that are in no solution."""
    inside, lines = False, []
    for line in source.splitlines():
        mark = line.strip()
        inside = mark == BEGIN or (inside and mark != END)
        lines.append(line if inside and mark != BEGIN else "")
    return "\n".join(lines)


# --- what makes it installable -----------------------------------------------------------------


def _kit_files(course: Course) -> dict[str, bytes]:
    """What pip needs, and a README for students."""
    project, pins, licence = (
        _read(course, _kit_folder() / name)
        for name in ("pyproject.toml", "constraints.txt", "LICENSE")
    )
    first = course.stages[0]
    readme = _README.format(title=course.title, name=course.name, first=first.file_name)
    return {
        "README.md": readme.encode(),
        "pyproject.toml": student_project(project, course.title).encode(),
        "constraints.txt": pins.encode(),
        "LICENSE": licence.encode(),
    }


def _kit_folder() -> Path:
    """Where the kit's own project files are: in its checkout, or installed beside the course."""
    checkout = installed_folder().parent
    return checkout if (checkout / "constraints.txt").is_file() else installed_folder() / "kit"


def _read(course: Course, file: Path) -> str:
    return author_text(file, _place(course, file))


def _place(course: Course, file: Path) -> str:
    """A file's path in the course, or as it is."""
    is_inside = file.is_relative_to(course.root)
    return (file.relative_to(course.root) if is_inside else file).as_posix()


_WHEEL = """\
[tool.hatch.build.targets.wheel]
only-include = ["grader", "exercises", "hints", "tests/checks"]
dev-mode-dirs = ["."]

[tool.hatch.build.targets.wheel.sources]
"exercises" = "grader_course/exercises"
"hints" = "grader_course/hints"
"tests/checks" = "grader_course/tests/checks"

[tool.hatch.build.targets.wheel.force-include]
"course.toml" = "grader_course/course.toml"
"""
_README = """\
# {title}

You write the code, and `grade` says what holds, what does not and why.

## Install it

Python 3.10 to 3.13, in this folder:

```sh
python3 -m venv .venv
source .venv/bin/activate          # Windows: .venv\\Scripts\\activate
pip install -c constraints.txt .
```

Then make a folder to work in, wherever you like, and begin:

```sh
grade init ../{name}
cd ../{name}
grade watch
```

`grade watch` judges the stage you are at whenever you save its file; the first
is `exercises/{first}`. `grade` shows where you stand, `grade hint` gives one
small hint, `grade --help` names the other commands. In a new terminal, activate
the environment first, as above.

You would rather work in Jupyter? `pip install -c constraints.txt ".[notebook]"`
here, then `grade notebook` in your folder: the same verdicts, in a notebook.

You can also work in this folder's own `exercises/`; `grade reset STAGE` brings
a file back as it was.

## What a verdict here means

You have the **visible checks**. More checks run when you submit, with inputs
and questions of their own: so "your visible checks pass" is a good sign and not
yet the grade. The points shown here are those of the visible checks alone.

To be right, and not just to pass, hold on to what a file's text asks for: its
shapes, its limits and what it says about special cases. Everything that counts
is written there.

There are no solutions in this copy, and a stage that fails because of an
earlier one is told by a guess: mend the earlier one first.
"""
