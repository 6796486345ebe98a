"""Reads what is compared of an answer: its definitions, as tokens without comments and layout."""

from __future__ import annotations

import ast
import keyword
import re
import tokenize
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from grader.run.worker.loader import without_magics
from grader.types.course import Stage
from grader.types.submission import Submission
from grader.types.text import imported_modules, is_quick_to_parse

_LARGEST = 100_000  # characters of a student's code that is read for one stage
_SHORT = 4000  # characters of a source whose tree is remembered
_STUB = 1 << 14  # characters of one whose statements are: the tokens of 100,000 take 16 MiB
_NAME = "n"  # stands for every name that the answer defines
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError)
_LAYOUT = frozenset(
    (
        *(tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT),
        *(tokenize.ENCODING, tokenize.ENDMARKER),
    )
)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_INNER = (ast.stmt, ast.ExceptHandler, ast.match_case)
_DEFINING = frozenset(("def", "class", "async"))
_OPENINGS = _DEFINING | {"import", "from"}  # lines that all answers share


@dataclass(frozen=True)
class Token:
    """A word of the source and its line; every name that the answer defines is the same word."""

    word: str
    line: int


@dataclass(frozen=True)
class _Line:
    """The tokens of one statement, which may span several lines of text."""

    tokens: tuple[Token, ...]
    is_text: bool

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(token.word for token in self.tokens)

    @property
    def is_plain(self) -> bool:
        """Whether it is a docstring, imports something or opens a definition."""
        return self.is_text or self.tokens[0].word in _OPENINGS


def lines_of(source: str) -> tuple[_Line, ...]:
    """The statements of a source. Raises what is in UNREADABLE."""
    return (_known_lines if len(source) <= _STUB else _lines)(source)


def _lines(source: str) -> tuple[_Line, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's warnings concern only the student
        tree = _parsed(source)
    names, attributes = set(_given_names(tree)), set(_given_attributes(tree))
    lines: list[_Line] = []
    tokens: list[Token] = []
    is_text, depth = True, 0
    rows = iter([f"{row}\n" for row in source.split("\n")])
    for token in tokenize.generate_tokens(lambda: next(rows, "")):
        is_end = token.type == tokenize.NEWLINE or token.string == ";"
        if token.type not in _LAYOUT and not is_end:
            word = token.string
            if token.type == tokenize.NAME and not keyword.iskeyword(word):
                word = unicodedata.normalize("NFKC", word)  # as Python reads names
                after_dot = bool(tokens) and tokens[-1].word == "."
                word = _NAME if word in (attributes if after_dot else names) else word
            elif token.type == tokenize.STRING:
                is_text = is_text and "f" not in word.partition(word[-1])[0].lower()
                word = '"' + word.lstrip("rbfuRBFU").strip("\"'")
            tokens.append(Token(word, token.start[0]))
            is_text = is_text and token.type == tokenize.STRING
            depth += (word in _OPEN) - (word in _CLOSED)
            # What follows on the line of a definition is its body.
            is_end = word == ":" and depth == 0 and tokens[0].word in _DEFINING
        if is_end:
            if tokens:
                lines.append(_Line(tuple(tokens), is_text))
            tokens, is_text, depth = [], True, 0
    return tuple(lines)


_known_lines = lru_cache(maxsize=64)(_lines)  # many students may still have the stub
_OPEN, _CLOSED = frozenset("([{"), frozenset(")]}")


def _parsed(source: str) -> ast.Module:
    """Parse a source. Raises one of UNREADABLE, also for one that would slow the parser down."""
    return (_known_tree if len(source) <= _SHORT else _tree)(source)


def _tree(source: str) -> ast.Module:
    if not is_quick_to_parse(source):
        raise SyntaxError("this source would slow the parser down")
    return ast.parse(source)


_known_tree = lru_cache(maxsize=64)(_tree)


def _given_names(tree: ast.AST) -> Iterator[str]:
    """The names that the source itself defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.asname or ""
        elif isinstance(node, (*_NAMED, ast.ExceptHandler)):
            yield node.name or ""


def _given_attributes(tree: ast.AST) -> Iterator[str]:
    """The names of the attributes and methods that the source defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, _NAMED):
            yield node.name


def source_of(
    submission: Submission, stage: Stage, entries: Set[str], files: Set[str]
) -> tuple[str, bool]:
    """The source of one stage, and whether Python may run code for the stage that is not in it.

    The source is "" if there is none or if it is too long. `entries` are the names of all entry
    points of the course, `files` those of its stages' files.
    """
    if submission.cells is not None:
        if sum(map(len, submission.cells)) > _LARGEST:
            return "", True
        cells = [_without_magic(cell) for cell in submission.cells]
        asked = "|".join(re.escape(entry.name) for entry in stage.entry_points)
        hides = any(_hides(cell, rf"\b({asked})\b") for cell in cells)
        return _definitions(cells, stage, entries), hides
    if submission.script is not None:
        texts = [_text_of_file(submission.files.get(submission.script, b""))]
    else:
        texts = _texts_of(submission, stage, files)
    whole = "\n".join(filter(None, texts))
    hides = None in texts or _hides(whole)
    source = whole if _is_short(whole) else ""
    return _definitions([source], stage, entries) if submission.script else source, hides


def _hides(text: str, asked: str = "") -> bool:
    """Whether Python may run code of a text that cannot be compared.

    What Python's parser cannot read may still run as a cell of a notebook, so it hides something if
    it mentions what is `asked` for, a pattern.
    """
    try:
        if _is_short(text):
            _parsed(text)
            return False
    except SyntaxError:
        return bool(asked and re.search(asked, text))
    except UNREADABLE:
        pass
    return True


def _texts_of(submission: Submission, stage: Stage, files: Set[str]) -> list[str | None]:
    """The texts of a stage's file and of those it imports that are no stage's own `files`.

    None stands for a file that is not in UTF-8.
    """
    modules: dict[str, list[str]] = {}
    for name in submission.files:
        modules.setdefault(name.partition("/")[0].removesuffix(".py"), []).append(name)
    found = [stage.file_name]
    texts: list[str | None] = []
    for name in found:
        text = _text_of_file(submission.files.get(name, b""))
        texts.append(text)
        roots = dict.fromkeys(each.partition(".")[0] for each in imported_modules(text or ""))
        for module in roots:
            found += (each for each in modules.pop(module, ()) if each not in {*files, *found})
    return texts


def _text_of_file(data: bytes) -> str | None:
    """The text of a file with plain line ends; "" if Python does not run it, None if not UTF-8."""
    lines = iter(data.split(b"\n", 2))
    try:
        encoding, _ = tokenize.detect_encoding(lambda: next(lines, b""))
    except SyntaxError:
        return ""
    if not encoding.startswith("utf-8"):
        return None
    return _plain_ends(data.decode("utf-8-sig", "replace"))


def _plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_short(text: str) -> bool:
    return len(text) <= _LARGEST and is_quick_to_parse(text)


@lru_cache(maxsize=64)  # every stage looks at every cell of a notebook
def _without_magic(cell: str) -> str:
    """A notebook cell without what only IPython understands, such as prompts and magic lines."""
    cell = _plain_ends(cell)
    return without_magics(cell) if _is_short(cell) else cell


def _definitions(sources: Iterable[str], stage: Stage, entries: Set[str]) -> str:
    """The definitions of this stage's entry points, and of what they use, from all sources."""
    defined: dict[str, tuple[ast.stmt, str]] = {}
    for source in sources:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = _parsed(source)
        except UNREADABLE:
            continue
        for node in tree.body:
            for name in _defined_by(node):
                defined[name] = (node, source)
    wanted = [name for entry in stage.entry_points for name in defined if entry.asks_for(name)]
    known = {*wanted, *entries}
    lines = {source: source.split("\n") for source in {source for _, source in defined.values()}}
    texts: dict[ast.stmt, str] = {}  # a statement may define thousands of names
    for name in wanted:  # the loop itself appends to it
        node, source = defined[name]
        if node in texts:
            continue
        texts[node] = _text_of(node, lines[source])
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id in defined and inner.id not in known:
                known.add(inner.id)
                wanted.append(inner.id)
    return "\n".join(texts.values()) + "\n"


def _defined_by(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module defines, also within a block."""
    pending: list[ast.AST] = [node]
    for each in pending:
        if isinstance(each, _NAMED):
            yield each.name
            continue
        for part in ast.iter_child_nodes(each):
            if isinstance(part, _INNER):
                pending.append(part)
            else:
                yield from _stored_in(part)


def _stored_in(node: ast.AST) -> Iterator[str]:
    """The names that are assigned to in a part of a statement; a comprehension keeps its own."""
    pending = [node]
    for each in pending:
        if isinstance(each, ast.comprehension):
            pending += [each.iter, *each.ifs]
        else:
            pending += ast.iter_child_nodes(each)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id


def _text_of(node: ast.stmt, lines: Sequence[str]) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(each.lineno for each in decorators)])
    return "\n".join(lines[first - 1 : node.end_lineno])
