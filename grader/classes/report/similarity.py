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

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from textwrap import dedent
from zlib import crc32

from grader.classes.report.compared_code import UNREADABLE, Token, lines_of, source_of
from grader.classes.report.types import Alike, Similar
from grader.types.course import Stage
from grader.types.submission import Submission

ALIKE = 0.8  # the least share of the remaining tokens to list a pair
_TOKENS = 30  # the fewest equal tokens to list a pair
_RUN = 6
_FEW, _NOT_FEW = 3, 10  # rare code is that of one student in 30, but at least 3 and at most 10
_LISTED = 50  # pairs of one stage
_LONGEST = 1500  # tokens of an answer that are compared
_EXCERPT = 25  # lines
_GAP = 3  # lines: a shorter gap between two lines is shown too
_LETTERS = 0xD000  # each token becomes a character below the surrogates
_SLOTS = 1 << 22  # counters for runs of tokens; two runs that share one only seem more usual


@dataclass(frozen=True)
class Given:
    """What every student of a stage has or can find: its stub and its solution."""

    stage: Stage
    stub: str
    solution: str


def similar(
    given: Sequence[Given],
    submissions: Iterable[tuple[str, Submission]],
    again: Callable[[str], Submission],
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
        hides = [answers.add(submission) for answers in stages]
        if any(hides):
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


@dataclass
class _Answers:
    """All answers to one stage, encoded as characters, and how many contain each run."""

    given: Given
    entries: set[str]
    files: set[str]  # those of all stages
    codes: list[str] = field(default_factory=list)
    letters: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._counts = bytearray(_SLOTS)
        stub = lines_of(self.given.stub)
        self._stub = Counter(line.words for line in stub)
        self._solution = set(_runs(self._code(self._own(self.given.solution))))

    def add(self, submission: Submission) -> bool:
        """Add an answer; returns whether Python may run code for it that is not compared."""
        source, hides = self._source(submission)
        self.codes.append(self._code(self._own(source)))
        _count(self._counts, self.codes[-1])
        return hides

    def left(self, rare: int) -> list[str]:
        """The part of every answer that at most `rare` students wrote."""
        return ["".join(code[at] for at in self._rare(code, rare)) for code in self.codes]

    def excerpt(self, submission: Submission, rare: int) -> str:
        """The lines of an answer with rare code."""
        source, _ = self._source(submission)
        tokens = self._own(source)
        wanted = sorted({tokens[at].line for at in self._rare(self._code(tokens), rare)})
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

    def _rare(self, code: str, rare: int) -> list[int]:
        """The places of the tokens that are part of no usual run."""
        usual: set[int] = set()
        for place, slot in enumerate(_runs(code)):
            if self._counts[slot] > rare or slot in self._solution:
                usual.update(range(place, place + _RUN))
        return [place for place in range(len(code)) if place not in usual]

    def _source(self, submission: Submission) -> tuple[str, bool]:
        return source_of(submission, self.given.stage, self.entries, self.files)

    def _own(self, source: str) -> list[Token]:
        """The tokens that the stub does not have; empty if the source cannot be parsed."""
        try:
            lines = lines_of(source)
        except UNREADABLE:
            return []
        left = self._stub.copy()
        own: list[Token] = []
        for line in lines:
            if left[line.words] > 0:
                left[line.words] -= 1
            elif not line.is_plain:
                own.extend(line.tokens)
        return own[:_LONGEST]

    def _code(self, tokens: Iterable[Token]) -> str:
        known = self.letters
        return "".join(chr(1 + known.setdefault(t.word, len(known)) % _LETTERS) for t in tokens)


def _runs(code: str) -> list[int]:
    """The slot of each run of tokens in order."""
    runs = (code[at : at + _RUN] for at in range(len(code) - _RUN + 1))
    return [crc32(run.encode("utf-16-le")) % _SLOTS for run in runs]


def _count(counts: bytearray, code: str) -> None:
    """Count each run of a code once, up to what is surely usual."""
    for slot in set(_runs(code)):
        counts[slot] += counts[slot] <= _NOT_FEW


def _alike(codes: Sequence[str]) -> list[tuple[tuple[int, ...], float, int]]:
    """The places of similar codes, their share and number of equal tokens; most similar first."""
    from rapidfuzz.distance import LCSseq

    same: dict[str, list[int]] = {}
    for place, code in enumerate(codes):
        if len(code) >= _TOKENS:
            same.setdefault(code, []).append(place)
    found = [(tuple(who), 1.0, len(code)) for code, who in same.items() if len(who) > 1]
    for one, other in _sharing(list(same)):
        many, both = LCSseq.similarity(one, other), len(one) + len(other)
        if many >= _TOKENS and 2 * many >= ALIKE * both:
            found.append(((same[one][0], same[other][0]), 2 * many / both, many))
    return sorted(found, key=lambda pair: (-pair[1] * pair[2], pair[0]))


def _sharing(codes: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of codes that share a run. All other pairs are too many, and hardly alike.

    Few codes contain a given rare run, so there are not many more pairs than codes.
    """
    counts = bytearray(_SLOTS)
    for code in codes:
        _count(counts, code)
    places: dict[int, list[int]] = {}
    for place, code in enumerate(codes):
        for slot in {slot for slot in _runs(code) if counts[slot] > 1}:  # most are in one code
            places.setdefault(slot, []).append(place)
    near = ((each, each[step:]) for each in places.values() for step in range(1, _NOT_FEW))
    pairs = sorted({pair for both in near for pair in zip(*both, strict=False)})
    return [(codes[one], codes[other]) for one, other in pairs]
