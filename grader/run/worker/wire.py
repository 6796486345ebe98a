"""Frames between the checker and a worker: a small JSON header and raw bytes.

The reader of a frame checks it: lengths against a cap before reading, the size of the JSON before
parsing, one deadline for the whole frame.
"""

from __future__ import annotations

import hashlib
import json
import math
import socket
import struct
import time
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from typing import Any

_LENGTHS = struct.Struct("<III")
_CHUNK = 1 << 16  # bytes to request at once if reading ahead is allowed
_PIECE = 1 << 20  # bytes to read at once, at most
HEADER_CAP = 1 << 20  # bytes of JSON in one frame from a worker
ARRAYS_CAP = 128 << 20  # bytes of array data in one frame
_PER_HEADER_BYTE = 16  # bytes of Python objects that one byte of JSON may become
_PIECES_CAP = 1 << 17  # values, lists and objects in the JSON of a worker's frame, at most
_NESTING_CAP = 64  # nested lists and objects in it, at most; a packed value needs fewer
_DIGITS_CAP = 310  # digits of an integer, which `Packer` keeps below 1024 bits
TRUSTED_HEADER_CAP = 64 << 20  # the checker's frames carry the submission
JSON = json.JSONEncoder(separators=(",", ":"), check_circular=False)


class WireError(Exception):
    """The other side sent something that the protocol does not allow."""


class Closed(Exception):
    """The other side is gone."""


class DeadlineError(Exception):
    """The other side did not answer in time."""


class Frame:
    """One message: `header` is plain JSON data, `data` the concatenated bytes of its arrays.

    `aside` travels along but is not part of the message. A received frame has the `digest` of its
    header and data, in `size` roughly the memory that it takes, and in `left` the seconds that its
    receiver had left until the deadline: 0 if they were not enough to unpack it.
    """

    __slots__ = ("_encoded", "_header", "aside", "data", "digest", "left", "size")

    def __init__(
        self,
        header: dict[str, Any] | None,
        data: bytes = b"",
        aside: Mapping[str, Any] | None = None,
        *,
        size: int = 0,
        digest: bytes = b"",
        encoded: bytes | None = None,
    ) -> None:
        self._header = header
        self._encoded = encoded
        self.data = data
        self.aside = aside or {}
        self.left = math.inf
        self.size = size
        self.digest = digest

    @property
    def header(self) -> dict[str, Any]:
        """The header, parsed from the received bytes on first use. Raises WireError."""
        if self._header is None:
            self._header, self._encoded = _object(self._encoded or b"", math.inf), None
        return self._header

    @property
    def target(self) -> Mapping[str, Any]:
        """What a request calls: a function, or an object of the other side's."""
        return self.header.get("target") or {}

    @property
    def handle(self) -> int | None:
        """The number of the object that a reply returns, if it returns one."""
        value = self.header.get("value")
        handle = value.get("handle") if isinstance(value, dict) else None
        return handle if isinstance(handle, int) else None

    @property
    def encoded(self) -> bytes:
        """The header as bytes. Raises WireError."""
        if self._encoded is None:
            try:
                self._encoded = JSON.encode(self.header).encode()
            except RecursionError:
                raise WireError("the values are nested too deeply to send") from None
        return self._encoded

    def sealed(self) -> Frame:
        """The same message, with its digest, as if it had been received."""
        self.digest = self.digest or _digest(self.encoded, self.data)
        return self

    def beside(self, aside: Mapping[str, Any]) -> Frame:
        """The same message with this beside it."""
        return Frame(self._header, self.data, aside, encoded=self._encoded)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same message."""
        if not isinstance(other, Frame):
            return NotImplemented
        return self.data == other.data and self.header == other.header

    __hash__ = None  # type: ignore[assignment]


def _digest(header: bytes, data: bytes) -> bytes:
    """A digest of 256 bits: equal digests share a verdict, so nobody may be able to make two."""
    hashed = hashlib.blake2b(len(header).to_bytes(8, "little"), digest_size=32)
    hashed.update(header)
    hashed.update(data)
    return hashed.digest()


# A moment of `time.monotonic()`, or a function that returns one and may move it.
Deadline = float | Callable[[], float]


class Channel:
    """Frames over a connected stream socket.

    `sends` and `receives` cap the bytes of JSON in a frame of each direction. A channel that reads
    `ahead` takes whatever the socket holds, so no other code may read from it.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        sends: int = HEADER_CAP,
        receives: int = HEADER_CAP,
        ahead: bool = False,
    ) -> None:
        self._socket = connection
        self._sends = sends
        self._receives = receives
        self._ahead = ahead
        self._buffer = bytearray()

    def send(self, frame: Frame, deadline: Deadline | None = None) -> None:
        """Send one frame; `deadline` is a value of `time.monotonic()`, or gives one that moves on.

        Raises DeadlineError when the other side does not read, Closed when it is gone, WireError if
        the frame is too large.
        """
        header, data = frame.encoded, frame.data
        aside = JSON.encode(frame.aside).encode() if frame.aside else b""
        if len(header) > self._sends or len(data) > ARRAYS_CAP:
            raise WireError("its values are too large to send")
        if _pieces(header) > _pieces_cap(self._sends):
            raise WireError("its values are too many to send")
        head = _LENGTHS.pack(len(header), len(data), len(aside)) + header + aside
        try:
            if len(data) < 1 << 16:
                self._write(head + data, deadline)
            else:
                self._write(head, deadline)
                self._write(data, deadline)
        except TimeoutError:
            raise DeadlineError from None
        except OSError as error:
            raise Closed from error

    def receive(self, deadline: Deadline | None = None, known: Container[bytes] = ()) -> Frame:
        """Read one frame; if its digest is in `known`, its header stays unparsed.

        Raises DeadlineError if it is not read and parsed by the deadline, Closed at the end of the
        stream, and WireError for anything that is not a frame or exceeds the caps.
        """
        lengths = _LENGTHS.unpack(self._read(_LENGTHS.size, deadline))
        header_length, data_length, aside_length = lengths
        if max(header_length, aside_length) > self._receives or data_length > ARRAYS_CAP:
            raise WireError("a frame is larger than the cap")
        raw = self._read(header_length, deadline)
        aside = self._read(aside_length, deadline)
        data = self._read(data_length, deadline)
        digest = _digest(raw, data)
        size = _PER_HEADER_BYTE * header_length + aside_length + data_length
        cap = _pieces_cap(self._receives)
        told = _object(aside, cap) if aside else None
        # An unknown header is parsed now, because it may be invalid.
        header = None if digest in known else _object(raw, cap)
        encoded = raw if header is None else None
        frame = Frame(header, data, told, size=size, digest=digest, encoded=encoded)
        if deadline is not None:
            frame.left = _moment(deadline) - time.monotonic()
            if frame.left <= 0:
                raise DeadlineError
        return frame

    def close(self) -> None:
        """Close the socket; the other side reads the end of the stream."""
        self._socket.close()

    def interrupt(self) -> None:
        """End all transfer; both sides read the end of the stream. Called from another thread."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _write(self, data: bytes, deadline: Deadline | None) -> None:
        view = memoryview(data)
        while view:
            try:
                self._socket.settimeout(_left(deadline))
                view = view[self._socket.send(view) :]
            except TimeoutError:
                if _is_over(deadline):
                    raise

    def _read(self, count: int, deadline: Deadline | None) -> bytes:
        buffer = self._buffer
        while len(buffer) < count:
            missing = count - len(buffer)
            try:
                self._socket.settimeout(_left(deadline))
                most = max(missing, _CHUNK) if self._ahead else missing
                got = self._socket.recv(min(most, _PIECE))
            except TimeoutError:
                if _is_over(deadline):
                    raise DeadlineError from None
                continue
            except OSError as error:
                raise Closed from error
            if not got:
                raise Closed
            buffer += got
        with memoryview(buffer) as view:
            read = bytes(view[:count])
        del buffer[:count]
        return read


def _integer(digits: str) -> int:
    """The integer of these digits; more digits take disproportionately longer to parse."""
    if len(digits) > _DIGITS_CAP:
        raise ValueError("an integer is too long")
    return int(digits)


_PARSER = json.JSONDecoder(parse_int=_integer)


def _object(text: bytes, most: float) -> dict[str, Any]:
    """The object of a header. Raises WireError for too many pieces, before it is built."""
    if _pieces(text) > most:
        raise WireError("a frame's header has too many values")
    try:
        found = _PARSER.decode(text.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise WireError("a frame's header is not JSON") from None
    if not isinstance(found, dict):
        raise WireError("a frame's header is not an object")
    if _opened(text) > _NESTING_CAP and _is_too_deep(found):
        raise WireError("a frame's header is nested too deeply")
    return found


def _opened(text: bytes) -> int:
    """How many lists and objects the JSON has, at most."""
    return text.count(b"[") + text.count(b"{")


def _pieces(text: bytes) -> int:
    """How many values, lists and objects the JSON has, at most."""
    return _opened(text) + text.count(b",")


def _pieces_cap(header_cap: int) -> float:
    """The most pieces of a header; there is no limit for the checker's, which carry source code."""
    return _PIECES_CAP if header_cap <= HEADER_CAP else math.inf


def _is_too_deep(value: Any) -> bool:
    """Whether lists and objects are nested deeper than in any packed value."""
    level = [value]
    for _ in range(_NESTING_CAP):
        containers = [each for each in level if isinstance(each, (list, dict))]
        level = [
            item
            for each in containers
            for item in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


def _left(deadline: Deadline | None) -> float | None:
    if deadline is None:
        return None
    left = _moment(deadline) - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _moment(deadline: Deadline) -> float:
    return deadline() if callable(deadline) else deadline


def _is_over(deadline: Deadline | None) -> bool:
    """Whether no time is left; the deadline may have moved while a socket was waited for."""
    return deadline is not None and _moment(deadline) <= time.monotonic()
