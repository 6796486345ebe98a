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

from grader.run.worker.loader import MAGIC, TIMED, without_prompts
from grader.types.course import Stage
from grader.types.submission import Submission
from grader.types.text import imported_modules, is_quick_to_parse

_LARGEST = 100_000  # characters of a student's code that is read for one stage
_SHORT = 4000  # characters of a source whose tree is remembered
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


@lru_cache(maxsize=64)  # many students may still have the stub
def lines_of(source: str) -> tuple[_Line, ...]:
    """The statements of a source. Raises what is in UNREADABLE."""
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


def source_of(submission: Submission, stage: Stage, entries: Set[str], files: Set[str]) -> str:
    """The source of one stage; "" if there is none or if it is too long.

    `entries` are the names of all entry points of the course, `files` those of its stages' files.
    """
    if submission.cells is not None:
        cells = () if _are_long(submission.cells) else submission.cells
        return _definitions(map(_without_magic, cells), stage, entries)
    if submission.script is not None:
        source = _text_of_file(submission.files.get(submission.script, b"")) or ""
        return _definitions([source], stage, entries)
    read: list[str] = []
    room = _LARGEST
    for text in _texts_of(submission, stage, files):
        if text is not None and len(text) < room and is_quick_to_parse(text):
            room -= len(text) + 1
            read.append(text)
    return "\n".join(read)


def hides_code(submission: Submission, stage: Stage, files: Set[str]) -> bool:
    """Whether Python may run code for the stage that `source_of` leaves out."""
    if submission.cells is not None:
        cells = submission.cells
        return _are_long(cells) or _hides_in(map(_without_magic, cells), stage)
    if submission.script is not None:
        texts = [_text_of_file(submission.files.get(submission.script, b""))]
    else:
        texts = _texts_of(submission, stage, files)
    return None in texts or not _is_read("\n".join(filter(None, texts)))


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
        for module in imported_modules(text or ""):
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


def _are_long(cells: Sequence[str]) -> bool:
    """Whether a notebook has more code than is read."""
    return sum(map(len, cells)) > _LARGEST


def _is_short(text: str) -> bool:
    return len(text) <= _LARGEST and is_quick_to_parse(text)


def _is_read(text: str) -> bool:
    """Whether the text is compared, or Python does not run it either."""
    try:
        if _is_short(text):
            lines_of(text)
    except SyntaxError:
        return True
    except UNREADABLE:
        return False
    return _is_short(text)


def _hides_in(sources: Iterable[str], stage: Stage) -> bool:
    """Whether a cell may define what the stage asks for although Python's parser cannot read it."""
    names = "|".join(re.escape(entry.name) for entry in stage.entry_points)
    for source in sources:
        try:
            if _is_short(source):
                _parsed(source)
                continue
        except SyntaxError:
            if re.search(rf"\b({names})\b", source) is None:
                continue
        except UNREADABLE:
            pass
        return True
    return False


@lru_cache(maxsize=64)  # every stage looks at every cell of a notebook
def _without_magic(cell: str) -> str:
    """A notebook cell without what only IPython understands, such as prompts and magic lines."""
    cell = without_prompts(_plain_ends(cell))
    lines = cell.split("\n")
    if len(cell) > _LARGEST or not any(map(MAGIC.match, lines)):
        return cell
    try:
        _parsed(cell)
    except UNREADABLE:
        return "\n".join(map(_without, lines))
    return cell


def _without(line: str) -> str:
    """A line, "pass" for a magic; of a statement that is timed, the statement."""
    if MAGIC.match(line) is None:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    timed = TIMED.match(line)
    return indent + (timed[1] if timed else "pass" if indent else "")


def _definitions(sources: Iterable[str], stage: Stage, entries: Set[str]) -> str:
    """The definitions of this stage's entry points, and of what they use, from all sources."""
    defined: dict[str, tuple[ast.stmt, str]] = {}
    for source in sources:
        if len(source) > _LARGEST:
            continue
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
