"""How the learner's tests judge each of several implementations that a check gives them."""

from __future__ import annotations

import ast
import random
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from grader.run.failures import in_words
from grader.run.traceback_words import frames_told
from grader.run.worker.trying import ENDED_CAP, NAME_CAP, OUTCOMES, TESTS_CAP, Outcomes, verdict
from grader.types.text import safe

_WIDTH = 200  # characters of a test's message
_MOST = 3  # statements to add to a function


@dataclass(frozen=True)
class Trial:
    """How the learner's tests judged one implementation.

    `outcomes` holds for each test its name and "passed", "failed", "errored", "skipped" or, for a
    stub, "unwritten". `ended` says why not all tests ran. `said` is the message of the first test
    that failed, with the place; if none failed, a message about one that returned a value. `made`
    is how often the fixture was called.
    """

    outcomes: Outcomes = ()
    ended: str = ""
    said: str = ""
    made: int = 0

    @property
    def verdict(self) -> str:
        """The verdict of the tests: "passed", "failed", "unwritten" or "nothing"."""
        return verdict(self.outcomes, self.ended)

    def count(self, *outcomes: str) -> int:
        """How many tests had one of these outcomes."""
        return sum(outcome in outcomes for _, outcome in self.outcomes)


_MOST_MADE = 1 << 53  # the largest believable count of modules that tests have made
_NONSENSE = Trial(ended="Your code's process sent an invalid answer")


def trial_of(header: dict[str, Any]) -> Trial:
    """The trial in a reply. A stranger's process wrote it, so any part of it may be malformed.

    A malformed reply counts as a run that ended early.
    """
    if isinstance(header.get("error"), dict):
        return Trial(ended=_told(header["error"]))
    outcomes, made, ended = (header.get(key) for key in ("outcomes", "made", "ended"))
    if not isinstance(outcomes, list) or len(outcomes) > TESTS_CAP:
        return _NONSENSE
    if type(made) is not int or not 0 <= made <= _MOST_MADE:
        return _NONSENSE
    known = []
    for pair in outcomes:
        if not isinstance(pair, list) or len(pair) != 2 or pair[1] not in OUTCOMES:
            return _NONSENSE
        known.append((_cut(str(pair[0]), NAME_CAP), str(pair[1])))
    first = header.get("first")
    said = ""
    if isinstance(first, dict):
        said = f"{_cut(str(first.get('test', '')), NAME_CAP)}\n  {_told(first)}"
    return Trial(tuple(known), _cut(str(ended or ""), ENDED_CAP), said, made)


def _told(error: dict[str, Any]) -> str:
    """The first line of an exception's message, plain words for it, and the last own frame."""
    name = _cut(str(error.get("type", "Exception")), NAME_CAP)
    message = _cut(str(error.get("message", "")).strip().partition("\n")[0], _WIDTH)
    frames = error.get("frames")
    last = {**error, "frames": frames[-1:] if isinstance(frames, list) else []}
    plain = in_words(error, message)
    first = ": ".join(part for part in (name, message) if part)
    return first + (f"\n  in words  {plain}" if plain else "") + frames_told(last)


def _cut(text: str, width: int) -> str:
    """The text on one line, cut to `width` characters, with invisible characters escaped."""
    line = " ".join(text.split())
    return safe(line if len(line) <= width else f"{line[: width - 4]} ...")


# --- disguises, so that no test recognizes an implementation by its source -----------------------


def neutral(source: str, vocabulary: Collection[str], chance: random.Random) -> str:
    """The same program in a random disguise, so that its source reveals nothing.

    It drops docstrings and adds to every function a few statements that do nothing. They mention
    all names of the `vocabulary`, some twice, so that no name occurs in one program only.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef):
            for statements in _idle(vocabulary, chance):
                place = chance.randint(0, len(node.body) - 1)  # the last statement may return
                node.body[place:place] = statements
    return ast.unparse(tree)


def _idle(vocabulary: Collection[str], chance: random.Random) -> Iterator[list[ast.stmt]]:
    """New statements that do nothing."""
    words = [*vocabulary, *chance.sample(sorted(vocabulary), chance.randint(0, len(vocabulary)))]
    chance.shuffle(words)
    count = chance.randint(1, _MOST)
    for start in range(count):
        name = f"n{chance.randrange(1 << 32):x}"
        number = chance.randrange(1 << 32)
        speaks = "; ".join(f"{name}.{word}" for word in words[start::count])
        yield ast.parse(f"{name} = {number}\nif {name} < 0:\n    {speaks or name}\n").body


def vocabulary_of(sources: Iterable[str]) -> set[str]:
    """The names that these programs use: attributes and globals."""
    found: set[str] = set()
    pending = [compile(source, "<given>", "exec") for source in sources]
    while pending:
        code = pending.pop()
        found |= set(code.co_names)
        pending += [const for const in code.co_consts if isinstance(const, CodeType)]
    return found
