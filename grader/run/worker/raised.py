"""An exception of the learner's code as data: its message, its frames, what its line names."""

from __future__ import annotations

import ast
import builtins
import difflib
import inspect
import linecache
import re
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

_MESSAGE_CAP = 2000
_FRAMES_CAP = 12
_LINE_CAP = 200  # characters of a line of code
_LINES_CAP = 10  # of one expression
_NAME_CAP, _NAMES_CAP = 100, 10_000  # characters of a name, and names to compare it with
# Exceptions about sizes or values; other messages name all that matters.
_OF_VALUES = (RuntimeError, ValueError, IndexError, AssertionError)
_TARGETS = re.compile(r"[\w\s,()*]+=(?!=)")  # what a line assigns to still has an older value
# A name that is not called, no keyword of a call, and no attribute but of self.
_NAME = re.compile(r"(?<![\w.'\"])((?:self\.)?[^\W\d]\w*)\b(?!\s*(?:\(|=[^=]))")
_ROOT = re.compile(r"[^\W\d]\w*")  # of an expression: the name before the first point
_MOST_NAMES = 5
_MOST_AXES = 8
_LARGE = 10**9


def describe(
    error: BaseException, line: Callable[[str, int], str | None] = lambda file, number: None
) -> dict[str, Any]:
    """An exception as data: its type, message and the frames that are the learner's own.

    `stub` is true if the exception is the NotImplementedError of an unchanged stub: raised in the
    very function that was called, which does nothing else, by the learner's file and not by a
    library below it.
    """
    bases = type(error).__mro__
    names = [base.__name__ for base in bases if getattr(builtins, base.__name__, None) is base]
    try:
        message = str(error)[:_MESSAGE_CAP]
    except BaseException:  # noqa: BLE001 - a hostile __str__
        message = ""
    frames: list[dict[str, Any]] = []
    own: TracebackType | None = None
    last_is_own = False
    code: CodeType | None = None
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        text = line(code.co_filename, traceback.tb_lineno)
        last_is_own = text is not None
        if text is not None:
            own = traceback
            frames.append(
                {
                    "file": code.co_filename,
                    "line": traceback.tb_lineno,
                    "function": code.co_name,
                    "text": text.strip()[:_LINE_CAP],
                    **_caret(traceback, text),
                }
            )
        traceback = traceback.tb_next
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        text = line(error.filename, error.lineno)
        if text is not None:
            message = str(error.msg)[:_MESSAGE_CAP]
            place = {"file": error.filename, "line": error.lineno, "function": ""}
            begin = (error.offset or 0) - 1
            last = getattr(error, "end_offset", None) or 0
            same = getattr(error, "end_lineno", error.lineno) == error.lineno
            caret = _within(text, begin, last - 1 if same else len(text))
            frames = [{**place, "text": text.strip()[:_LINE_CAP], **caret}]
    else:
        message += _suggestion(error)
        if own is not None and isinstance(error, (AttributeError, TypeError)):
            root = _ROOT.match(frames[-1]["text"][frames[-1].get("caret", (0, 0))[0] :])
            if root and own.tb_next is None and _is_global(root[0], own.tb_frame.f_code):
                frames[-1]["root"] = root[0]
        is_of_values = isinstance(error, _OF_VALUES) and not isinstance(error, RecursionError)
        if own is not None and is_of_values:
            begin, count = frames[-1].get("caret", (0, 0))
            part = frames[-1]["text"][begin : begin + count]
            frames[-1]["here"] = _named(own.tb_frame, _lines(own, line), part)
    return {
        "type": type(error).__name__[:100],
        "bases": names,
        "message": message,
        "frames": frames[-_FRAMES_CAP:],
        "stub": (
            type(error) is NotImplementedError
            and last_is_own
            and len(frames) == 1
            and (code is None or _is_one_statement(code))
        ),
    }


def _is_global(name: str, code: CodeType) -> bool:
    """Whether a function may mean a global name, and no variable, by it."""
    return (
        name in code.co_names and name not in code.co_varnames + code.co_cellvars + code.co_freevars
    )


def is_stub(value: Any) -> bool:
    """Whether it is a function that only raises NotImplementedError, or a class with only these."""
    inner = vars(value).values() if isinstance(value, type) else [value]
    functions = [each.__code__ for each in inner if isinstance(each, FunctionType)]
    names = {code.co_names for code in functions}
    return names == {("NotImplementedError",)} and all(map(_is_one_statement, functions))


def _is_one_statement(code: CodeType) -> bool:
    """Whether a function has one statement besides its docstring; true if its source is unknown.

    Its code does not show it: Python leaves out what comes after a `raise`.
    """
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    block = "".join(inspect.getblock(lines)) if lines else ""
    try:
        tree = ast.parse(f"if 1:\n{block}" if block[:1].isspace() else block)
    except SyntaxError:
        return True
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    if not functions:
        return True
    has_docstring = ast.get_docstring(functions[0]) is not None
    return len(functions[0].body) <= 1 + has_docstring


def _caret(traceback: TracebackType, text: str) -> dict[str, list[int]]:
    """The part of a line that raised; empty if Python does not know it or it is the whole line."""
    first, last, begin, end = _position(traceback)
    if first != last or first != traceback.tb_lineno or begin is None or end is None:
        return {}
    raw = text.encode()
    begin, end = len(raw[:begin].decode(errors="ignore")), len(raw[:end].decode(errors="ignore"))
    return {} if text.strip() == text[begin:end].strip() else _within(text, begin, end)


def _position(traceback: TracebackType) -> tuple[int | None, ...]:
    """The lines and columns of the expression that raised, as far as Python knows them."""
    positions = getattr(traceback.tb_frame.f_code, "co_positions", None)
    if positions is None:  # before Python 3.11
        return (traceback.tb_lineno, traceback.tb_lineno, None, None)
    return tuple(list(positions())[traceback.tb_lasti // 2])


def _lines(traceback: TracebackType, line: Callable[[str, int], str | None]) -> str:
    """The first lines of the expression that raised."""
    first, last, *_ = _position(traceback)
    if first is None or last is None:
        return ""
    file = traceback.tb_frame.f_code.co_filename
    numbers = range(first, min(last, first + _LINES_CAP) + 1)
    return "\n".join(line(file, number) or "" for number in numbers)


def _within(text: str, begin: int, end: int) -> dict[str, list[int]]:
    """A part of a line as its first character and its length, in the line without indentation."""
    indent = len(text) - len(text.lstrip())
    first, last = begin - indent, min(end - indent, len(text.strip()))
    return {"caret": [first, max(1, last - first)]} if 0 <= first < _LINE_CAP else {}


def _suggestion(error: BaseException) -> str:
    """The name that was probably meant instead of a missing one, as Python itself suggests it."""
    name = getattr(error, "name", None)
    if not isinstance(name, str) or not isinstance(error, (NameError, AttributeError)):
        return ""
    try:
        known: set[str] = set()
        if isinstance(error, AttributeError):
            known.update(dir(error.obj))
        else:
            traceback = error.__traceback__
            while traceback is not None and traceback.tb_next is not None:
                traceback = traceback.tb_next
            if traceback is not None:
                frame = traceback.tb_frame
                if hasattr(frame.f_locals.get("self"), name):
                    return f". Did you mean: 'self.{name}'?"
                known.update(frame.f_locals, frame.f_globals, dir(builtins))
        known = {each for each in known if name.startswith("_") or not each.startswith("_")}
        if len(name) > _NAME_CAP or len(known) > _NAMES_CAP:  # it would take long
            return ""
        close = [each for each in known - {name} if each.lower() == name.lower()]
        close = close or difflib.get_close_matches(name, known - {name}, n=1, cutoff=0.7)
    except BaseException:  # noqa: BLE001 - a hostile __dir__
        return ""
    return f". Did you mean: '{close[0]}'?" if close else ""


def _named(frame: FrameType, lines: str, part: str) -> list[list[Any]]:
    """What names in some lines stand for: the size and dtype of a tensor, or an integer.

    Only names in the `part` of the lines that raised count if there are any.
    """
    names = _NAME.findall(_TARGETS.sub("", lines.strip(), count=1))
    in_part = [name for name in _NAME.findall(part) if name in names]
    found = ([name, *_told(_value(name, frame))] for name in dict.fromkeys(in_part or names))
    return [each for each in found if len(each) > 1][:_MOST_NAMES]


def _told(value: Any) -> list[Any]:
    """An integer, or the size and dtype of a tensor; for a subclass, learners' code may answer."""
    if type(value) is int:
        return [value] if abs(value) < _LARGE else []
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    kinds = (torch.Tensor, torch.nn.Parameter) if torch is not None else ()
    if type(value) in kinds or (numpy is not None and type(value) is numpy.ndarray):
        shape = [int(size) for size in value.shape]
        return [shape, str(value.dtype).removeprefix("torch.")] if len(shape) <= _MOST_AXES else []
    return []


def _value(name: str, frame: FrameType) -> Any:
    """What a name stands for, or an attribute of self; None if it is not of the function."""
    is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
    own = frame.f_locals if is_function else frame.f_globals
    if not name.startswith("self."):
        return own.get(name)
    try:
        attributes = object.__getattribute__(own.get("self"), "__dict__")
        places = [attributes, attributes.get("_buffers"), attributes.get("_parameters")]
    except AttributeError:
        return None
    return next((each[name[5:]] for each in places if each and name[5:] in each), None)
