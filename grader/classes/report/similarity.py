"""Finds answers that are more alike than their task explains: a place to look, no verdict. Pure.

Short tasks have few right answers: among 300 students who each write a stage in one of the usual
ways, thousands of pairs have the same tokens. Code that more than a few students wrote is therefore
ignored, like the stub and the solution: only tokens outside every usual run of `_RUN` tokens are
compared. The rest of two independent answers, where it was long enough to count, was less than 0.7
alike, and of two usual answers nothing is left; tests/kit/test_similarity.py measures both. Code
that half the class copied from one place looks usual too, so nobody is listed for it.

Names that the answer itself defines, comments, docstrings and layout do not count.
"""

from __future__ import annotations

import ast
import keyword
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from textwrap import dedent

import numpy as np

from grader.classes.report.types import Alike, Similar
from grader.types.course import Stage
from grader.types.submission import Submission
from grader.types.text import is_quick_to_parse

ALIKE = 0.8  # the least share of the remaining tokens to list a pair
_TOKENS = 30  # the fewest equal tokens to list a pair
_RUN = 6
_FEW, _NOT_FEW = 3, 10  # rare code is that of one student in 30, but at least 3 and at most 10
_LISTED = 50  # pairs of one stage
_LONGEST = 1500  # tokens of an answer that are compared
_LARGEST = 100_000  # characters of a source
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
_OPENINGS = frozenset(("import", "from", "def", "class", "async"))  # lines that all answers share

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
    stages = [_Answers(each, entries) for each in given]
    students, unread = [], []
    for student, submission in submissions:
        students.append(student)
        for answers in stages:
            answers.add(submission)
        if any(_is_unread(submission, each.stage) for each in given):
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
            slug = answers.given.stage.slug
            found.append(Alike(slug, names, share, many, (first, second)))
    return Similar(tuple(found), rare, left_out, tuple(unread))


# --- one stage ---------------------------------------------------------------------------------


@dataclass
class _Answers:
    """All answers to one stage, encoded as characters, and how many contain each run."""

    given: Given
    entries: set[str]
    codes: list[str] = field(default_factory=list)
    letters: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._runs = np.zeros(_SLOTS, np.uint16)
        stub = _lines(self.given.stub)
        self._stub = Counter(line.words for line in stub)
        self._solution = np.unique(_runs(self._letters(self._own(self.given.solution))))

    def add(self, submission: Submission) -> None:
        codes = self._letters(self._tokens(submission))
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
        source = source_of(submission, self.given.stage, self.entries)
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

    def _tokens(self, submission: Submission) -> list[_Token]:
        return self._own(source_of(submission, self.given.stage, self.entries))

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
    is_text = True
    rows = iter([f"{row}\n" for row in source.split("\n")])
    for token in tokenize.generate_tokens(lambda: next(rows, "")):
        if token.type == tokenize.NEWLINE:
            if tokens:
                lines.append(_Line(tuple(tokens), is_text))
            tokens, is_text = [], True
        elif token.type not in _LAYOUT and token.string != ";":
            word = token.string
            if token.type == tokenize.NAME and not keyword.iskeyword(word):
                after_dot = bool(tokens) and tokens[-1].word == "."
                word = _NAME if word in (attributes if after_dot else names) else word
            elif token.type == tokenize.STRING:
                word = '"' + word.lstrip("rbfuRBFU").strip("\"'")
            tokens.append(_Token(word, token.start[0]))
            is_text = is_text and token.type == tokenize.STRING
    return tuple(lines)


def _parsed(source: str) -> ast.Module:
    """Parse a source. Raises one of _UNREADABLE, also for one that would slow the parser down."""
    if not is_quick_to_parse(source):
        raise SyntaxError("this source would slow the parser down")
    return ast.parse(source)


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


def source_of(submission: Submission, stage: Stage, entries: set[str]) -> str:
    """The source of one stage; "" if there is none or if it is too long.

    `entries` are the names of all entry points of the course.
    """
    if submission.cells is not None:
        return _definitions(map(_without_magic, submission.cells), stage, entries)
    data = submission.files.get(submission.script or stage.file_name, b"")
    source = data[: _LARGEST + 1].decode("utf-8-sig", "replace")
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    if submission.script is not None:
        return _definitions([source], stage, entries)
    return source if len(source) <= _LARGEST else ""


def _is_unread(submission: Submission, stage: Stage) -> bool:
    """Whether Python may run code that is not compared: too long, slow to parse or not in UTF-8."""
    if submission.cells is not None:
        sources = [*submission.cells]
    else:
        data = submission.files.get(submission.script or stage.file_name, b"")
        lines = iter(data.split(b"\n", 2))
        try:
            encoding, _ = tokenize.detect_encoding(lambda: next(lines, b""))
        except SyntaxError:
            return False  # Python does not run it
        if not encoding.startswith("utf-8"):
            return True
        sources = [data.decode("utf-8", "replace")]
    return any(len(each) > _LARGEST or not is_quick_to_parse(each) for each in sources)


def _without_magic(cell: str) -> str:
    """A notebook cell without the lines that only IPython understands."""
    lines = cell.replace("\r\n", "\n").split("\n")
    return "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))


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
    for name in wanted:  # the loop itself appends to it
        for inner in ast.walk(defined[name][0]):
            if (
                isinstance(inner, ast.Name)
                and inner.id in defined
                and inner.id not in wanted
                and inner.id not in entries
            ):
                wanted.append(inner.id)
    return "\n".join(_text_of(*defined[name]) for name in wanted) + "\n"


def _defined_by(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, _NAMED):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _text_of(node: ast.stmt, source: str) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(each.lineno for each in decorators)])
    return "\n".join(source.split("\n")[first - 1 : node.end_lineno])
