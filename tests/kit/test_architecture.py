"""How grader/ is built: what the worker may import, what it is sent, and what nobody knows.

That imports point one way along the rooms is held in test_rooms.py.
"""

import ast
import io
import keyword
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from grader.diagnosis.repair import edits
from grader.run import workers
from tests.kit.support.checkout import ROOT

GRADER = ROOT / "grader"
WORKER = GRADER / "run" / "worker"
FILES = sorted(GRADER.rglob("*.py"))
EDITS = GRADER / "diagnosis" / "repair" / "edits"
SENT = {WORKER: workers._SOURCES, EDITS: edits.MODULES}
IN_WORKER = sorted(file for folder in SENT for file in folder.glob("*.py"))
IN_WORKER += [GRADER / "classes" / "sharing" / f"{name}.py" for name in ("plain_code", "sameness")]


def found_in(files: list[Path], find: Callable[[Path], Iterable[object]]) -> dict[str, list[Any]]:
    """What is found in each of these files, by its place, without those that have none."""
    assert len(files) > 5
    places = ((file.relative_to(GRADER).as_posix(), list(find(file))) for file in files)
    return {place: found for place, found in places if found}


def imports(tree: ast.AST) -> Iterator[str]:
    """What a module imports, as `package.module` or, from grader itself, `grader.name`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (f"{module}.{alias.name}" for alias in node.names)


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imports_of(file: Path) -> set[str]:
    return set(imports(tree_of(file)))


def at_the_top(file: Path) -> set[str]:
    """What importing a module imports: nothing inside functions or under TYPE_CHECKING."""
    tops = [node for node in tree_of(file).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return {name for top in tops for name in imports(top)}


# --- imports ---------------------------------------------------------------------------------


def test_every_import_is_spelled_out() -> None:
    def loose(file: Path) -> list[str]:
        return [n for n in imports_of(file) if n.startswith(".") or n.endswith("*")]

    assert found_in(FILES, loose) == {}


def test_the_worker_knows_nothing_of_the_grader_but_itself() -> None:
    def foreign(file: Path) -> list[str]:
        found = [name for name in imports_of(file) if name.split(".")[0] == "grader"]
        own = f"{'.'.join(file.parent.relative_to(ROOT).parts)}."
        return [name for name in found if not name.startswith((own, "grader.run.worker."))]

    assert found_in(IN_WORKER, foreign) == {}


def test_the_worker_needs_no_library_to_start() -> None:
    def libraries(file: Path) -> set[str]:
        return {n.split(".")[0] for n in at_the_top(file)} - {"grader", *sys.stdlib_module_names}

    assert found_in(IN_WORKER, libraries) == {}


# What draws and what only holds data. A wing has modules of these names beside others.
DRAWING = (
    *("screen", "types", "state", "similarity", "page", "look", "similar", "tables", "feedback"),
    *("trace", "heatmap", "heatmap_html", "curves", "drawing", "numbers", "aids"),
    *("diff", "listing", "solution", "canvas", "github", "gradescope"),
)
CORE = [file for room in ("show", "types") for file in sorted((GRADER / room).glob("*.py"))]
WINGS = ("learning", "authoring", "classes", "channels")
IN_WINGS = [file for wing in WINGS for file in sorted((GRADER / wing).rglob("*.py"))]
RENDERERS = [*CORE, *(file for file in IN_WINGS if file.stem in DRAWING)]


def test_what_is_pure_neither_reads_nor_runs_nor_prints() -> None:
    def impure(file: Path) -> set[str]:
        roots = {name.split(".")[0] for name in imports_of(file)}
        calls = {
            node.func.id
            for node in ast.walk(tree_of(file))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        return roots & {"os", "sys", "io", "subprocess", "socket", "shutil", "torch"} | (
            calls & {"open", "print", "input", "exec", "eval"}
        )

    assert found_in([*RENDERERS, GRADER / "judge" / "verdict.py"], impure) == {}


# --- what the worker is sent -----------------------------------------------------------------


@pytest.mark.parametrize("folder, sent", SENT.items(), ids=["always", "to find edits"])
def test_the_worker_is_sent_every_module_of_a_folder_in_the_order_of_their_imports(
    folder: Path, sent: tuple[str, ...]
) -> None:
    there = {file.stem for file in folder.glob("*.py")} - {"__init__", "bootstrap"}
    assert set(sent) == there and len(sent) == len(there)
    package = f"{'.'.join(folder.relative_to(ROOT).parts)}."
    for number, name in enumerate(sent):
        theirs = imports_of(folder / f"{name}.py")
        ours = {each.removeprefix(package) for each in theirs if each.startswith(package)}
        needed = {each.partition(".")[0] for each in ours}
        assert needed <= set(sent[:number]), name


def test_the_folders_own_init_runs_nothing() -> None:
    body = tree_of(WORKER / "__init__.py").body
    assert [type(node) for node in body if not isinstance(node, ast.Expr)] == []


# --- what nobody knows -----------------------------------------------------------------------

# Words of what this course teaches. In code they would be a name that only this course needs.
TAUGHT = frozenset(
    {
        *("attention", "attentions", "softmax", "heads", "mask", "masks", "masked", "masking"),
        *("query", "queries", "causal", "padding", "transformer", "transformers"),
        *("token", "tokens", "dropout", "encoder", "decoder", "multihead", "qkv"),
    }
)
# Loading what torch loads on first use names the operations that do it.
WARMING = ("run/worker/server.py", "_warm_torch")
# Words that mean something else there: of bits, of Python's grammar.
ELSEWHERE = {word: {"run/worker/seccomp.py"} for word in ("mask", "masks", "masked")}
OF_SOURCES = {f"classes/report/{name}.py" for name in ("compared_code", "similarity")}
ELSEWHERE |= {"token": OF_SOURCES | {"learning/explore/server.py"}, "tokens": OF_SOURCES}


def words(identifier: str) -> list[str]:
    """The words of a name in snake_case or CamelCase."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier).lower().strip("_").split("_")


@cache
def identifiers(source: str, without: str = "") -> list[tuple[str, int]]:
    """Every name in the code, with its line; not those inside the function `without`."""
    left_out = {
        line
        for node in (ast.walk(ast.parse(source)) if without else ())
        if isinstance(node, ast.FunctionDef) and node.name == without
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return [
        (token.string, token.start[0])
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.NAME
        and not keyword.iskeyword(token.string)
        and token.start[0] not in left_out
    ]


def test_no_name_in_the_code_belongs_to_what_is_taught() -> None:
    def taught(file: Path) -> list[str]:
        place = file.relative_to(GRADER).as_posix()
        without = WARMING[1] if place == WARMING[0] else ""
        return [
            f"line {line}: {name}"
            for name, line in identifiers(file.read_text(encoding="utf-8"), without)
            for word in words(name)
            if word in TAUGHT and place not in ELSEWHERE.get(word, ())
        ]

    assert found_in(FILES, taught) == {}


@pytest.mark.parametrize(
    "source, found",
    [
        ("num_heads = 3", ["num_heads"]),
        ("class MultiHeadAttention: pass", ["MultiHeadAttention"]),
        ("def f(query): return query", ["query", "query"]),
        ("header = 1  # the query's head", []),
        ("text = 'attention'", []),
    ],
)
def test_the_search_for_names_finds_them(source: str, found: list[str]) -> None:
    taught = [n for n, _ in identifiers(source) if TAUGHT.intersection(words(n))]
    assert taught == found
