"""Text: makes strangers' safe to show, finds source that slows the parser down, lists names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from unicodedata import category

# Controls except tab and newline, characters of no width, characters that turn the direction of
# the text, separators that act as a newline, tags and lone surrogates.
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    r"\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    r"\ud800-\udfff]"
)
_MARKS = 8  # on one letter; more would cover the lines above it
_STACK = re.compile(rf"[^\w\s\x00-\u02ff]{{{_MARKS + 1},}}")  # holds every long stack of marks


class _Escapes(dict[int, str]):
    """The escape of each hidden character, computed on first use."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        self[code] = letter if _HIDDEN.match(letter) is None else _escape(code)
        return self[code]


_IMPORTS = re.compile(
    r"(?:^|;)[ \t]*(?:from[ \t]+(\w[\w.]*)[ \t]+)?import\b[ \t]*(?:\(([\w.,\s]*)|([\w., \t]*))",
    re.MULTILINE,
)
_UNLOADED = re.compile(
    r"There is no file |[^\n]* "
    r"(cannot be imported(?: because of \w+\.py)?\.|is not defined: a cell of |does not define "
    r"|is neither a function nor a class)"
)
_WARNING = re.compile(r"(.*, line \d+: )?\w*Warning: ")  # as the worker writes one


def _escape(code: int) -> str:
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _unstacked(found: re.Match[str]) -> str:
    text, marks = "", 0
    for letter in found[0]:
        marks = marks + 1 if category(letter) in ("Mn", "Me") else 0
        text += letter if marks <= _MARKS else _escape(ord(letter))
    return text


_LONGEST_LINE = 4000
_BRACES_CAP = 2000


def is_quick_to_parse(source: str) -> bool:
    """Whether Python's own parser reads the source quickly and in little memory.

    A name of thousands of parts takes gigabytes, thousands of braces in an f-string take minutes.
    Such a source should be parsed in a worker, if at all.
    """
    joined = re.sub(r"\\\r?\n", "", source)
    longest = max(map(len, re.split(r"[\r\n\f]", joined)))
    return longest <= _LONGEST_LINE and source.count("{") <= _BRACES_CAP


def safe(text: str) -> str:
    r"""`text` with every hidden character as a visible escape: ESC becomes \x1b.

    Newlines and tabs stay, and a Windows line end becomes a plain one. The result can be encoded in
    UTF-8 and cannot move the cursor, colour the screen, turn the reading direction or cover other
    lines. Safe text is returned unchanged, so calling this twice does no harm.
    """
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    text = _STACK.sub(_unstacked, text)
    if _HIDDEN.search(text) is None:
        return text
    return text.translate(_Escapes())


def safe_line(text: str) -> str:
    """`text` on one line: like `safe`, but with newlines and tabs as escapes. For names."""
    return safe(text).replace("\n", "\\n").replace("\t", "\\t")


def listed(names: Sequence[str], word: str = "and", most: int | None = None) -> str:
    """Names in a sentence, before the last one `word`: "a, b and c".

    After the first `most`, it only says how many more there are.
    """
    if most is not None and len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def trimmed(lines: Sequence[str]) -> str:
    """The lines without empty ones at both ends; the first line keeps its indentation."""
    return "\n".join(lines).strip("\n").rstrip()


def is_unloaded(message: str) -> bool:
    """Whether a check's message says that it found nothing to call (`run/importing.py`)."""
    return _UNLOADED.match(message) is not None


def headline(message: str) -> str:
    """A message's first line, and in brackets what it says of an exception in plain words."""
    first, _, rest = message.strip().partition("\n")
    words = re.match(r" +in words +(.+)", rest)
    return f"{first} ({words[1]})" if words else first


def is_of_warnings(text: str) -> bool:
    """Whether the output of code is nothing but warnings, one a line."""
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and all(map(_WARNING.match, lines))


def imported_modules(source: str) -> list[str]:
    """The full names of the modules that Python source may import; nothing is parsed.

    `from a import b` gives `a` and `a.b`, which need not be a module.
    """
    found: dict[str, None] = {}
    for module, in_brackets, names in _IMPORTS.findall(source):
        parts = [part.split()[0] for part in (in_brackets or names).split(",") if part.strip()]
        inside = [f"{module}.{part}" for part in parts]
        found |= dict.fromkeys([module, *inside] if module else parts)
    return list(found)


def what_it_did(output: str) -> str:
    """What code with this output did, to go on after "Your code"."""
    return "caused warnings" if is_of_warnings(output) else "printed"


def safe_data(data: Any) -> Any:
    """JSON data in which every text is `safe`."""
    if isinstance(data, str):
        return safe(data)
    if isinstance(data, dict):
        return {safe(key): safe_data(value) for key, value in data.items()}
    return [safe_data(value) for value in data] if isinstance(data, (list, tuple)) else data
