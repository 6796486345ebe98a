"""Valid inputs, and what damage does to them: strategies for hypothesis."""

import copy
import json
import math
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

HIDDEN = ("\0", "\x1b[2J", "\u202e", "\u2028", "\ufeff", "\ud800", "\U000e0041", "\r", "\x85")
TEXTS = ("", " ", "\n", "nan", "=1+1", "../..", "/dev/zero", "x" * 70_000, *HIDDEN)
NUMBERS = (0, -1, 1 << 63, 10**400, 10**4000, 0.5, 1e308, math.nan, math.inf, -math.inf)
_PIECES = (
    *(b"\0", b"\r\n", b"\r", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xe2\x80\xae"),
    *(b"[" * 3000, b"{" * 3000, b'{"a":' * 2000, b"(" * 3000, b"x" * 200_000, b"9" * 5000),
    *(b"0", b"007", b"1e400", "\u0663".encode(), b"0x1F", b"1_000", b"9" * 400, b"9" * 4300),
    *(b"null", b"true", b"NaN", b"1e999", b"-1", b'"', b"'", b"\\", b"\\ud800", b"\n", b"# "),
)


def nested(depth: int) -> Any:
    """A list in a list, and so on."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def values() -> st.SearchStrategy[Any]:
    """Values that a field is seldom meant to have."""
    odd = (None, True, False, *NUMBERS, *TEXTS, [], {}, [[]], [1, "a"], {"a": 1}, {"": None})
    return st.sampled_from(odd) | st.integers(1, 900).map(nested) | st.text(max_size=20)


@st.composite
def damaged_data(draw: st.DrawFn, seed: Any) -> Any:
    """JSON data with one to four of its parts replaced, removed or doubled."""
    data = copy.deepcopy(seed)
    for _ in range(draw(st.integers(1, 4))):
        places = list(_places(data))
        if not places:
            return draw(values())
        holder, key = draw(st.sampled_from(places))
        kind = draw(st.sampled_from(("replace", "replace", "remove", "double")))
        if kind == "replace":
            holder[key] = draw(values())
        elif kind == "remove":
            del holder[key]
        elif isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        else:
            holder[draw(st.sampled_from(TEXTS))] = copy.deepcopy(holder[key])
    return data


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """The containers in `data`, each with each of its keys; no deeper than what was damaged."""
    pending = [(data, 0)]
    for holder, depth in pending:
        keys = range(len(holder)) if isinstance(holder, list) else list(holder)
        for key in keys:
            yield holder, key
            if isinstance(holder[key], (list, dict)) and depth < 12:
                pending.append((holder[key], depth + 1))


@st.composite
def damaged_bytes(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds with some of its bytes changed, cut off, doubled or put in."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 4))):
        first, last = draw(_part(data))
        old, kind = data[first:last], draw(st.sampled_from(_KINDS))
        if kind == "cut":
            data = data[:first]
        else:
            data = data[:first] + draw(_INSTEAD[kind](old, seeds)) + data[last:]
    return draw(st.sampled_from(_SAVED))(data)


@st.composite
def _part(draw: st.DrawFn, data: bytes) -> tuple[int, int]:
    """Where a part of the data begins and ends: a number, a word, a line, or any bytes."""
    pattern = draw(st.sampled_from((rb"[0-9]+", rb"[\w.-]+", rb"(?<=[=:,\[{(])", rb".*\n?", None)))
    places = [] if pattern is None else [match.span() for match in re.finditer(pattern, data)]
    if places:
        return draw(st.sampled_from(places))
    first = draw(st.integers(0, len(data)))
    return first, min(len(data), first + draw(st.integers(0, 400)))


def _again(old: bytes, seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    most = 300 if len(old) < 1000 else 4
    return st.sampled_from((0, 2, 2, 3, most)).map(lambda times: old * times)


def _elsewhere(old: bytes, seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    whole = b"\n".join(seeds)
    return _part(whole).map(lambda part: whole[part[0] : part[1]])


_INSTEAD = {
    "instead": lambda old, seeds: st.sampled_from(_PIECES) | st.binary(max_size=4),
    "beside": lambda old, seeds: st.sampled_from(_PIECES).map(lambda piece: piece + old),
    "again": _again,
    "elsewhere": _elsewhere,
}
_KINDS = (*_INSTEAD, "instead", "again", "cut")


_SAVED: tuple[Callable[[bytes], bytes], ...] = (
    *[lambda data: data] * 3,
    lambda data: data.replace(b"\n", b"\r\n"),
    lambda data: b"\xef\xbb\xbf" + data,
    lambda data: data.decode("utf-8", "replace").encode("utf-16"),
)


def as_json(data: Any) -> bytes:
    """JSON as anybody may write it: NaN and lone surrogates too."""
    return json.dumps(data).encode()


def as_toml(data: Any) -> bytes:
    """TOML of any JSON data: what TOML cannot hold makes a file that is none."""
    if not isinstance(data, dict):
        return as_json(data)
    lines = (f"{json.dumps(key)} = {_toml(value)}\n" for key, value in data.items())
    return "".join(lines).encode("utf-8", "surrogatepass")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {_toml(of)}' for key, of in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def damaged_text(
    seed: Any, write: Callable[[Any], bytes], others: Sequence[bytes] = ()
) -> st.SearchStrategy[bytes]:
    """The bytes of damaged data, and damaged bytes of the data as it should be."""
    return damaged_data(seed).map(write) | damaged_bytes([write(seed), *others])


@st.composite
def damaged_database(draw: st.DrawFn, seed: bytes) -> bytes:
    """An SQLite file whose values, columns or tables are other ones, or whose bytes are."""
    if draw(st.integers(0, 3)) == 0:
        return draw(damaged_bytes([seed]))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "database")
        file.write_bytes(seed)
        with closing(sqlite3.connect(file)) as database:
            columns = list(_columns(database))
            for _ in range(draw(st.integers(1, 4))):
                statement = draw(_statement(columns))
                with suppress(sqlite3.Error, OverflowError, UnicodeEncodeError), database:
                    database.execute("PRAGMA foreign_keys = OFF")
                    database.execute(*statement)
        return file.read_bytes()


def _columns(database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        for row in database.execute(f"PRAGMA table_info({table})"):
            yield table, row[1]


@st.composite
def _statement(draw: st.DrawFn, columns: Sequence[tuple[str, str]]) -> tuple[Any, ...]:
    table, column = draw(st.sampled_from(columns))
    odd = (None, b"", b"\xff", 0, -1, 7, 1e308, *TEXTS, "{}", "[]", "[[1]]", "null", "NaN")
    return draw(
        st.sampled_from([(f"UPDATE {table} SET {column} = ?", (value,)) for value in odd])
        | st.just((f"UPDATE {table} SET {column} = CAST(x'ff' AS TEXT)",))
        | st.just((f"DELETE FROM {table}",))
        | st.just((f"DROP TABLE {table}",))
        | st.just((f"ALTER TABLE {table} DROP COLUMN {column}",))
        | st.just((f"PRAGMA user_version = {draw(st.integers(0, 3))}",))
    )
