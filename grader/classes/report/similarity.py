"""Finds answers that are more alike than their task explains: a place to look, no verdict. Pure.

Short tasks have few right answers: among 300 students who each write a stage in one of the usual
ways, thousands of pairs have the same tokens. Code that more than a few students wrote is therefore
ignored, like the stub and the solution: only tokens outside every usual run of `_RUN` tokens are
compared. The rest of two independent answers, where it was long enough to count, was less than 0.7
alike, and of two usual answers nothing is left: its test measures both. Code that half the class
copied from one place looks usual too, so the report lists nobody for it.

Names that the answer itself defines, comments, docstrings and layout do not count.
"""

from __future__ import annotations

import ast
import keyword
import re
import tokenize
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from textwrap import dedent

import numpy as np

from grader.classes.report.types import Alike, Similar
from grader.run.worker.loader import MAGIC, TIMED, without_prompts
from grader.types.course import Stage
from grader.types.submission import Submission
from grader.types.text import imported_modules, is_quick_to_parse

ALIKE = 0.8  # the least share of the remaining tokens to list a pair
_TOKENS = 30  # the fewest equal tokens to list a pair
_RUN = 6
_FEW, _NOT_FEW = 3, 10  # rare code is that of one student in 30, but at least 3 and at most 10
_LISTED = 50  # pairs of one stage
_LONGEST = 1500  # tokens of an answer that are compared
_LARGEST = 100_000  # characters of a student's code that is read for one stage
_SHORT = 4000  # characters of a source whose tree is remembered
_EXCERPT = 25  # lines
_GAP = 3  # lines: a shorter gap between two lines is shown too
_BLOCK = 10_000  # pairs compared at once
_NAME = "n"  # stands for every name that the answer defines
_LETTERS = 0xD000  # each token becomes a character below the surrogates
_SLOTS = 1 << 22  # counters for runs of tokens; two runs that share one only seem more usual
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError)
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

Codes = np.ndarray[tuple[int], np.dtype[np.uint16]]


@dataclass(frozen=True)
class Given:
    """What every student of a stage has or can find: its stub and its solution."""

    stage: Stage
    stub: str
    solution: str


def similar(
    given: Sequence[Given],
    submissions: Iterable[tuple[str, Submission]],
    again: Callable[[str], Submission | None],
) -> Similar:
    """Find the similar answers of these students, stage by stage.

    Each submission is read once and not kept; `again` loads those to quote from. Raises ImportError
    if rapidfuzz is not installed.
    """
    entries = {entry.name for each in given for entry in each.stage.entry_points}
    files = {each.stage.file_name for each in given}
    stages = [_Answers(each, entries, files) for each in given]
    students, unread = [], []
    for student, submission in submissions:
        students.append(student)
        for answers in stages:
            answers.add(submission)
        if any(answers.hides(submission) for answers in stages):
            unread.append(student)
    rare = min(max(_FEW, len(students) // 30), _NOT_FEW)
    found: list[Alike] = []
    left_out = 0
    for answers in stages:
        pairs = _alike(answers.left(rare))
        left_out += max(len(pairs) - _LISTED, 0)
        for who, share, many in pairs[:_LISTED]:
            names = tuple(students[place] for place in who)
            first, second = (answers.excerpt(again(name), rare) for name in names[:2])
            found.append(Alike(answers.given.stage.slug, names, share, many, (first, second)))
    return Similar(tuple(found), rare, left_out, tuple(unread))


# --- one stage ---------------------------------------------------------------------------------


@dataclass
class _Answers:
    """All answers to one stage, encoded as characters, and how many contain each run."""

    given: Given
    entries: set[str]
    files: set[str]  # those of all stages
    codes: list[str] = field(default_factory=list)
    letters: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._runs = np.zeros(_SLOTS, np.uint16)
        stub = _lines(self.given.stub)
        self._stub = Counter(line.words for line in stub)
        self._solution = np.unique(_runs(self._letters(self._own(self.given.solution))))

    def add(self, submission: Submission) -> None:
        codes = self._letters(self._own(self._source(submission)))
        self._runs[np.unique(_runs(codes))] += 1
        self.codes.append(_text(codes))

    def left(self, rare: int) -> list[str]:
        """The part of every answer that at most `rare` students wrote."""
        usual = self._usual(rare)
        return [_text(codes[~_covered(codes, usual)]) for codes in map(_codes, self.codes)]

    def excerpt(self, submission: Submission | None, rare: int) -> str:
        """The lines of an answer with rare code."""
        if submission is None:
            return ""
        source = self._source(submission)
        tokens = self._own(source)
        covered = _covered(self._letters(tokens), self._usual(rare))
        wanted = sorted({t.line for t, usual in zip(tokens, covered, strict=True) if not usual})
        lines = source.split("\n")
        shown: list[str] = []
        before = 0
        for line in wanted[:_EXCERPT]:
            if before and line - before > _GAP:
                shown.append(lines[line - 1][: -len(lines[line - 1].lstrip())] + "...")
                before = line - 1
            shown += lines[before or line - 1 : line]
            before = line
        more = "\n..." if wanted[_EXCERPT:] else ""
        return dedent("\n".join(shown)) + more

    def _usual(self, rare: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        usual = self._runs > rare
        usual[self._solution] = True
        return usual

    def hides(self, submission: Submission) -> bool:
        """Whether Python may run code for this stage that is not compared."""
        stage = self.given.stage
        if submission.is_folder:
            texts = _texts_of(submission, stage, self.files)
            return None in texts or not _is_read("\n".join(filter(None, texts)))
        if submission.script is not None:
            text = _text_of_file(submission.files.get(submission.script, b""))
            return text is None or not _is_read(text)
        cells = submission.cells or ()
        return _are_long(cells) or _hides_in(map(_without_magic, cells), stage)

    def _source(self, submission: Submission) -> str:
        if not submission.is_folder:
            return _source_of(submission, self.given.stage, self.entries)
        texts = _texts_of(submission, self.given.stage, self.files)
        read: list[str] = []
        room = _LARGEST
        for text in texts:
            if text is not None and len(text) < room and is_quick_to_parse(text):
                room -= len(text) + 1
                read.append(text)
        return "\n".join(read)

    def _own(self, source: str) -> list[_Token]:
        """The tokens that the stub does not have; empty if the source cannot be parsed."""
        try:
            lines = _lines(source)
        except _UNREADABLE:
            return []
        left = self._stub.copy()
        own: list[_Token] = []
        for line in lines:
            if left[line.words] > 0:
                left[line.words] -= 1
            elif not line.is_plain:
                own.extend(line.tokens)
        return own[:_LONGEST]

    def _letters(self, tokens: Sequence[_Token]) -> Codes:
        known = self.letters
        return np.array(
            [1 + known.setdefault(token.word, len(known)) % _LETTERS for token in tokens], np.uint16
        )


_FACTORS = np.array([pow(0x9E3779B97F4A7C15, n, 1 << 64) for n in range(1, _RUN + 1)], np.uint64)


def _mixed(codes: Codes) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """A number for each run of tokens in order; equal runs have equal numbers."""
    if len(codes) < _RUN:
        return np.zeros(0, np.uint64)
    windows = np.lib.stride_tricks.sliding_window_view(codes, _RUN).astype(np.uint64)
    mixed: np.ndarray[tuple[int], np.dtype[np.uint64]] = windows @ _FACTORS
    return mixed


def _runs(codes: Codes) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """The slot of each run of tokens in order."""
    return _mixed(codes) >> np.uint64(64 - (_SLOTS.bit_length() - 1))


def _covered(
    codes: Codes, usual: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which tokens are part of a usual run."""
    covered = np.zeros(len(codes), np.bool_)
    is_usual = usual[_runs(codes)]
    for place in range(_RUN):
        covered[place : place + len(is_usual)] |= is_usual
    return covered


def _text(codes: Codes) -> str:
    return codes.tobytes().decode("utf-16-le")


def _codes(text: str) -> Codes:
    return np.frombuffer(text.encode("utf-16-le"), np.uint16)


def _alike(codes: Sequence[str]) -> list[tuple[tuple[int, ...], float, int]]:
    """The places of similar codes, their share and number of equal tokens; most similar first."""
    from rapidfuzz import process
    from rapidfuzz.distance import Indel

    same: dict[str, list[int]] = {}
    for place, code in enumerate(codes):
        if len(code) >= _TOKENS:
            same.setdefault(code, []).append(place)
    found = [(tuple(who), 1.0, len(code)) for code, who in same.items() if len(who) > 1]
    distinct = list(same)
    for some in _sharing(distinct):
        ones, others = [distinct[one] for one, _ in some], [distinct[other] for _, other in some]
        shares = process.cpdist(
            ones,
            others,
            scorer=Indel.normalized_similarity,
            score_cutoff=ALIKE,
            dtype=np.float32,
            workers=-1,
        )
        for one, other, share in zip(ones, others, map(float, shares), strict=True):
            many = round(share * (len(one) + len(other)) / 2)
            if many >= _TOKENS:
                found.append(((same[one][0], same[other][0]), share, many))
    return sorted(found, key=lambda pair: (-pair[1] * pair[2], pair[0]))


def _sharing(codes: Sequence[str]) -> Iterator[list[tuple[int, int]]]:
    """The pairs of codes that share a run. All other pairs are too many, and hardly alike.

    Few codes contain a given rare run, so there are not many more pairs than codes.
    """
    runs = [np.unique(_mixed(_codes(code))) for code in codes]
    if not runs:
        return
    places = np.repeat(np.arange(len(codes)), [len(each) for each in runs])
    mixed = np.concatenate(runs)
    order = np.argsort(mixed, kind="stable")
    mixed, places = mixed[order], places[order]
    keys = [np.zeros(0, np.int64)]
    for step in range(1, _NOT_FEW):
        is_same = mixed[step:] == mixed[:-step]
        keys.append(places[:-step][is_same] * len(codes) + places[step:][is_same])
    pairs = np.unique(np.concatenate(keys))
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        yield [divmod(int(key), len(codes)) for key in block]


# --- what an answer is made of -----------------------------------------------------------------


@dataclass(frozen=True)
class _Token:
    word: str
    line: int


@dataclass(frozen=True)
class _Line:
    """The tokens of one statement, which may span several lines of text."""

    tokens: tuple[_Token, ...]
    is_text: bool

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(token.word for token in self.tokens)

    @property
    def is_plain(self) -> bool:
        """Whether it is a docstring, imports something or opens a definition."""
        return self.is_text or self.tokens[0].word in _OPENINGS


@lru_cache(maxsize=64)  # many students may still have the stub
def _lines(source: str) -> tuple[_Line, ...]:
    """The statements of a source. Raises what is in _UNREADABLE."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's warnings concern only the student
        tree = _parsed(source)
    names, attributes = set(_given_names(tree)), set(_given_attributes(tree))
    lines: list[_Line] = []
    tokens: list[_Token] = []
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
            tokens.append(_Token(word, token.start[0]))
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
    """Parse a source. Raises one of _UNREADABLE, also for one that would slow the parser down."""
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


def _source_of(submission: Submission, stage: Stage, entries: set[str]) -> str:
    """The source of one stage; "" if there is none or if it is too long.

    `entries` are the names of all entry points of the course.
    """
    if submission.cells is not None:
        cells = () if _are_long(submission.cells) else submission.cells
        return _definitions(map(_without_magic, cells), stage, entries)
    source = _text_of_file(submission.files.get(submission.script or stage.file_name, b"")) or ""
    if submission.script is not None:
        return _definitions([source], stage, entries)
    return source if len(source) <= _LARGEST else ""


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
    return sum(map(len, cells)) > _LARGEST


def _is_short(text: str) -> bool:
    return len(text) <= _LARGEST and is_quick_to_parse(text)


def _is_read(text: str) -> bool:
    """Whether the text is compared, or Python does not run it either."""
    try:
        if _is_short(text):
            _lines(text)
    except SyntaxError:
        return True
    except _UNREADABLE:
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
        except _UNREADABLE:
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
    except _UNREADABLE:
        return "\n".join(map(_without, lines))
    return cell


def _without(line: str) -> str:
    """A line, "pass" for a magic; of a statement that is timed, the statement."""
    if MAGIC.match(line) is None:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    timed = TIMED.match(line)
    return indent + (timed[1] if timed else "pass" if indent else "")


def _definitions(sources: Iterable[str], stage: Stage, entries: set[str]) -> str:
    """The definitions of this stage's entry points, and of what they use, from all sources."""
    defined: dict[str, tuple[ast.stmt, str]] = {}
    for source in sources:
        if len(source) > _LARGEST:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = _parsed(source)
        except _UNREADABLE:
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
