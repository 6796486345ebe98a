"""Leaves out a large notebook's outputs and pictures, which no verdict needs, in little memory."""

from __future__ import annotations

import re
from collections.abc import Iterable

_KEYS = (b'"outputs"', b'"attachments"')  # attachments: the pictures pasted into a text cell
_SIGN = re.compile(rb'\\.|["\[\]{}]', re.DOTALL)
_SIGNS_CAP = 10_000_000  # a few seconds
_COLON = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*")


class TooMuchError(Exception):
    """What is left is too large, or the text has far too many quotes and brackets."""


def without_outputs(chunks: Iterable[bytes], cap: int) -> bytes:
    """The JSON text in these pieces, with the brackets after each of the keys emptied.

    Text that is not JSON may lose other parts, but the limits hold. Raises TooMuchError if more
    than `cap` bytes are left.
    """
    reader = _Reader(cap)
    held = b""  # a "\\" whose next character is in the next piece
    for chunk in chunks:
        data = held + chunk
        is_cut = (len(data) - len(data.rstrip(b"\\"))) % 2
        held = data[-1:] if is_cut else b""
        reader.read(data[:-1] if is_cut else data)
    return bytes(reader.kept + held)


class _Reader:
    """Keeps what it reads, except what is between the brackets after a key."""

    def __init__(self, cap: int) -> None:
        self.kept = bytearray()
        self._cap = cap
        self._signs = 0
        self._length = 0  # of the pieces before this one
        self._data = b""  # this piece
        self._begin = 0  # of what is not yet kept of it
        self._in_text = False
        self._opened = 0  # where the last string begins, counted over all pieces
        self._key_end: int | None = None  # where that string ends in `kept`, if it is a key
        self._depth = 0  # of the brackets that it leaves out

    def read(self, data: bytes) -> None:
        """Read the next piece, which cuts no escape in two."""
        self._data, self._begin = data, 0
        for found in _SIGN.finditer(data):
            self._signs += 1
            if found[0] == b'"':
                self._in_text = not self._in_text
                if self._in_text:
                    self._opened = self._length + found.start()
                elif not self._depth:
                    self._end_text(found.end())
            elif not self._in_text and len(found[0]) == 1:
                self._meet_bracket(found[0], found.start())
        self._length += len(data)
        if self._signs > _SIGNS_CAP:
            raise TooMuchError
        if not self._depth:
            self._keep_to(len(data))

    def _end_text(self, end: int) -> None:
        """Note where a string ends that is a key."""
        length = self._length + end - self._opened
        self._key_end = None
        if length in map(len, _KEYS):
            self._keep_to(end)
            self._key_end = len(self.kept) if self.kept[-length:] in _KEYS else None

    def _meet_bracket(self, sign: bytes, start: int) -> None:
        """Begin to leave out what is in brackets, or end it."""
        opens = sign in b"[{"
        if self._depth:
            self._depth += 1 if opens else -1
            if not self._depth:
                self._begin = start
        elif self._key_end is not None:
            self._keep_to(start)
            if opens and _COLON.fullmatch(self.kept, self._key_end):
                self._keep_to(start + 1)
                self._depth = 1
            self._key_end = None

    def _keep_to(self, end: int) -> None:
        self.kept += self._data[self._begin : end]
        self._begin = end
        if len(self.kept) > self._cap:
            raise TooMuchError
