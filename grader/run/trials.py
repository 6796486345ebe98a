"""What the learner's tests say of each of several things that a check gives them, one by one."""

from __future__ import annotations

import ast
import random
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from grader.run.frames import frames_told
from grader.run.worker.trying import ENDED_CAP, NAME_CAP, OUTCOMES, TESTS_CAP, Outcomes, verdict
from grader.types.text import safe

_WIDTH = 200  # of what a test says
_MOST = 3  # statements that are put into a function


@dataclass(frozen=True)
class Trial:
    """How the learner's tests did with one thing that they were given.

    `outcomes` has of every test its name and "passed", "failed", "errored", "skipped" or, of a
    stub, "unwritten". `ended` says why not all of them was run, `said` what the first that failed
    had to say and where, `made` how often the fixture was called.
    """

    outcomes: Outcomes = ()
    ended: str = ""
    said: str = ""
    made: int = 0

    @property
    def verdict(self) -> str:
        """What they say of it: "passed", "failed", "unwritten" or "nothing"."""
        return verdict(self.outcomes, self.ended)

    def count(self, *outcomes: str) -> int:
        """How many tests had one of these outcomes."""
        return sum(outcome in outcomes for _, outcome in self.outcomes)


_MOST_MADE = 1 << 53  # modules that tests have made
_NONSENSE = Trial(ended="Your code's process answered with something else")


def trial_of(header: dict[str, Any]) -> Trial:
    """The trial that a reply tells of; it is a stranger's, so nothing in it need be as it should.

    What is not is a run that ended before its time.
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
    """An exception in the words of its first line, and the last of the learner's own frames."""
    name = _cut(str(error.get("type", "Exception")), NAME_CAP)
    message = _cut(str(error.get("message", "")).strip().partition("\n")[0], _WIDTH)
    frames = error.get("frames")
    last = {**error, "frames": frames[-1:] if isinstance(frames, list) else []}
    return ": ".join(part for part in (name, message) if part) + frames_told(last)


def _cut(text: str, width: int) -> str:
    """A text in one line of so many characters, before those that are hidden are made visible."""
    line = " ".join(text.split())
    return safe(line if len(line) <= width else f"{line[: width - 4]} ...")


# --- so that nobody knows one by its looks -------------------------------------------------------


def neutral(source: str, vocabulary: Collection[str], chance: random.Random) -> str:
    """The same program with other looks each time: what its code is like tells nothing.

    Docstrings are left out, and every function has a few statements more, which do nothing and
    speak of all names of the `vocabulary`, some of them twice: none is in one program alone.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef):
            for statements in _idle(vocabulary, chance):
                place = chance.randint(0, len(node.body) - 1)  # not behind what returns
                node.body[place:place] = statements
    return ast.unparse(ast.fix_missing_locations(tree))


def _idle(vocabulary: Collection[str], chance: random.Random) -> Iterator[list[ast.stmt]]:
    """Statements that do nothing, unlike any that were there before."""
    words = [*vocabulary, *chance.sample(sorted(vocabulary), chance.randint(0, len(vocabulary)))]
    chance.shuffle(words)
    count = chance.randint(1, _MOST)
    for start in range(count):
        name = f"n{chance.randrange(1 << 32):x}"
        number = chance.randrange(1 << 32)
        speaks = "; ".join(f"{name}.{word}" for word in words[start::count])
        yield ast.parse(f"{name} = {number}\nif {name} < 0:\n    {speaks or name}\n").body


def vocabulary_of(sources: Iterable[str]) -> set[str]:
    """The names that the code of these programs speaks of: attributes and globals."""
    found: set[str] = set()
    pending = [compile(source, "<given>", "exec") for source in sources]
    while pending:
        code = pending.pop()
        found |= set(code.co_names)
        pending += [const for const in code.co_consts if isinstance(const, CodeType)]
    return found
