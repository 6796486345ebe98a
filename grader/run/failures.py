"""The ways in which a learner's code can fail to give an answer, and the words for them.

- SubmissionError: it raised
- WrongReturn: it returned a value of another type
- LoadError: it cannot be imported, or lacks what the stage asks for
- Crash: its process ended; Unsent: before the request was sent
- Timeout: it was too slow
"""

from __future__ import annotations

import re
from typing import Any

from grader.run.error_words import plain_words
from grader.run.traceback_words import error_name, frames_told, marked
from grader.types.text import safe, safe_line

_MISSING = re.compile(r"name '(\w+)' is not defined")
_MESSAGE_CAP = 2000
_MOST_CELLS = 100_000
_NAME_CAP = 100  # characters
# What CUDA says of an error; a page of advice about the driver and the allocator follows.
_OF_CUDA = re.compile(
    r"(CUDA error: [^\n]+|CUDA out of memory\. Tried to allocate [\d.]+ \w+)\b.*", re.DOTALL
)
# Exceptions that end a program, which say nothing themselves.
_OF_ENDS = {
    "SystemExit": "your code called sys.exit() or quit(); return a value instead",
    "BdbQuit": (
        "graded code has no terminal for a debugger; remove breakpoint(), or run the lines that "
        "`grade repro` prints"
    ),
}
_MIXED_IN = (
    *(ValueError, TypeError, RuntimeError, IndexError, KeyError, AttributeError, NameError),
    *(AssertionError, NotImplementedError, ZeroDivisionError, ArithmeticError, LookupError),
)


class Cancelled(Exception):
    """`WorkerAnswers.abort` was called: nobody needs the verdict any more."""


class Diverged(BaseException):
    """A check sends another request than it was expected to: run its case again."""


class AnswerError(Exception):
    """The learner's code gave no answer for a check to examine.

    Errors with the same cause have the same `way`; it is "" if only their texts can tell.
    """

    way = ""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""  # KeyError's own would quote it


class SubmissionError(AnswerError):
    """An exception of the learner's code, raised in the check.

    It is also an instance of the builtin exception that was raised, so `pytest.raises(ValueError)`
    and the like work. `not_written` marks the NotImplementedError of an unchanged stub.
    """

    not_written = False


class WrongReturn(AnswerError):
    """The learner's code returned a value that does not have the entry point's type."""

    way = "another type"
    is_answer = True  # where a check expects an error, there is none


class LoadError(AnswerError):
    """The stage's code cannot be imported, or does not define what the stage asks for."""


class Crash(AnswerError):
    """The process that ran the learner's code ended."""

    way = "crash"


class Unsent(Crash):
    """The process had ended before the request could be sent."""


class Timeout(AnswerError):
    """The learner's code did not answer in time."""

    way = "no end"


def submission_error(error: dict[str, Any]) -> SubmissionError:
    """The exception for the one that an error reply describes."""
    bases = strings(error.get("bases"))
    mixed = next((kind for base in bases for kind in _MIXED_IN if kind.__name__ == base), None)
    kind: type[SubmissionError] = SubmissionError
    if mixed is not None:
        kind = type(mixed.__name__, (SubmissionError, mixed), {})
    failure = kind(told(error))
    failure.not_written = error.get("stub") is True
    last = last_frame(error)
    where = [str(last.get(key))[:200] for key in ("file", "line")]
    failure.way = " ".join([str(error.get("type"))[:100], *where])
    return failure


def told(error: dict[str, Any]) -> str:
    """An exception of the learner's code in words: the error, then the learner's own frames."""
    name = error_name(error)
    message = safe(str(error.get("message", ""))[:_MESSAGE_CAP]).strip()
    message = _OF_ENDS.get(name, _OF_CUDA.sub(r"\1", message))
    first = f"{name}: {message}" if message else name
    plain = in_words(error, message)
    frames = error.get("frames")
    if name == "NotImplementedError" and isinstance(frames, list) and len(frames) > 1:
        plain = ""  # an earlier stage's stub, which its own message names
    module, missing = error.get("module"), _MISSING.match(message)
    if isinstance(module, str) and module.isidentifier() and missing:
        plain = f"{module}.py defines it: write `from {module} import {missing[1]}` at the top"
    match error:
        case {"later": int(cell)} if 0 < cell < _MOST_CELLS:
            plain = f"code cell {cell} defines or imports it, but runs after this one: move it up"
        case {"set_by": [str(name), int(cell)]} if 0 < cell < _MOST_CELLS:
            who = f"code cell {cell} was the last to set {safe_line(name[:_NAME_CAP])}"
            plain = f"{plain}; {who}" if plain else who
    if plain:
        first = first.partition(", but expected one of:\n")[0]  # of torch's signatures
    cause = error.get("cause")
    if isinstance(cause, dict):
        fails = told({**cause, "cause": None})
        return f"{first}\n  The cell that defines or imports it fails: {fails}"
    return first + (f"\n  in words  {plain}" if plain else "") + frames_told(error)


def in_words(error: dict[str, Any], message: str) -> str:
    """The message of an error that a worker describes in plain words, "" if it is not known."""
    last = last_frame(error)
    text = str(last.get("text", ""))
    begin, count = marked(last.get("caret"), text) or (0, 0)
    return plain_words(message, text, text[begin : begin + count])


def last_frame(error: dict[str, Any]) -> dict[str, Any]:
    """The innermost frame of the learner's code in an error that a worker describes."""
    frames = error.get("frames")
    last = frames[-1] if isinstance(frames, list) and frames else {}
    return last if isinstance(last, dict) else {}


def strings(value: Any) -> list[str]:
    """The strings in a list that a worker sent; the value may be anything."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
