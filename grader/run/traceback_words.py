"""Puts into words the learner's own frames that a worker reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grader.run.value_words import shaped
from grader.types.text import safe, safe_line

_FRAMES_CAP = 12
_NAME_CAP = 100  # characters of the name of an exception's class
_LINE_CAP = 200  # characters of a line of code
_NAMES_CAP = 5  # variables shown for one line
_REPEATED = "\n    ... and again from there, over and over"
NO_MODULE = (
    "\n  It is neither graded with your code nor installed here: correct its name, or write your "
    "code without it."
)
_LOCKED = "\n  Graded code cannot use programs, the network or data files: write it without them."
# The kinds of OSError that a locked process raises, and two names that are not Python's own.
_OF_THE_LOCK = ("PermissionError", "FileNotFoundError", "ConnectionError", "URLError", "gaierror")


def error_name(error: Mapping[str, Any]) -> str:
    """The name of an exception's class; "Exception" for a text that no class statement can name."""
    name = str(error.get("type", ""))[:_NAME_CAP]
    return safe_line(name) if name.isidentifier() else "Exception"


def frames_told(error: Mapping[str, Any]) -> str:
    """The learner's frames in words; a frame that repeats (endless recursion) appears once.

    It adds what to do if the exception comes from the place in which graded code runs.
    """
    lines = ""
    before = None
    frames = error.get("frames")
    for frame in frames[-_FRAMES_CAP:] if isinstance(frames, list) else []:
        if not isinstance(frame, dict) or type(frame.get("line")) is not int:
            continue
        if frame == before:
            lines = lines.removesuffix(_REPEATED) + _REPEATED
            continue
        before = frame
        where = safe_line(str(frame.get("file", ""))[:200])
        function = safe_line(str(frame.get("function", ""))[:100])
        inside = f", in {function}" if function and function != "<module>" else ""
        lines += f"\n  {where}, line {frame.get('line')}{inside}"
        text = str(frame.get("text", ""))[:_LINE_CAP]
        lines += f"\n    {safe(text)}{_caret(frame.get('caret'), text)}"
        lines += _here(frame.get("here"))
    return lines + _advice(error)


def _caret(place: Any, text: str) -> str:
    """A line with carets under a part of the line above, "" if that part is unknown."""
    found = marked(place, text)
    if found is None or safe(text) != text:
        return ""
    begin, count = found
    return f"\n    {' ' * begin}{'^' * max(1, min(count, len(text) - begin))}"


def _here(names: Any) -> str:
    """What the names of a line stand for, as a worker says."""
    known = names if isinstance(names, list) else []
    told = [text for each in known[:_NAMES_CAP] if (text := _name_told(each))]
    return f"\n  here      {', '.join(told)}" if told else ""


def _name_told(known: Any) -> str:
    """A name with its integer, or with its size and dtype; "" for anything else."""
    name, value, *dtype = known if isinstance(known, list) and len(known) in (2, 3) else ("", None)
    if not isinstance(name, str) or not name.removeprefix("self.").isidentifier():
        return ""
    shown = str(value) if type(value) is int else ""
    if isinstance(value, list) and all(type(size) is int for size in value) and dtype:
        shown = shaped(value, dtype[0] if str(dtype[0]).isidentifier() else "float32")
    return safe(f"{name[:_NAME_CAP]} is {shown[:_LINE_CAP]}") if shown else ""


def marked(place: Any, text: str) -> tuple[int, int] | None:
    """Where the part of a line that raised begins and its length, as a worker says; else None."""
    if not isinstance(place, list) or len(place) != 2:
        return None
    begin, count = place
    is_there = type(begin) is int and type(count) is int and 0 <= begin < len(text)
    return (begin, count) if is_there else None


def _advice(error: Mapping[str, Any]) -> str:
    bases = error.get("bases")
    kinds = [error.get("type"), *(bases if isinstance(bases, list) else [])]
    if "ModuleNotFoundError" in kinds:
        is_own = str(error.get("message")).startswith("No module named 'exercises")
        return "" if is_own else NO_MODULE
    return _LOCKED if any(kind in kinds for kind in _OF_THE_LOCK) else ""
