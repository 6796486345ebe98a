"""Frames: what is sent arrives as it was, and nothing hostile gets through."""

import socket
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from grader.run.worker import wire
from grader.run.worker.packing import Packer, Unpacker
from grader.run.worker.wire import Channel, Closed, DeadlineError, Frame, WireError

Ends = tuple[Channel, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A channel and the bare other end of its socket."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), theirs


def soon() -> float:
    return time.monotonic() + 5


@pytest.mark.parametrize("size", [0, 1, (1 << 16) - 1, 1 << 16, 3 << 20])
def test_a_frame_arrives_as_it_was_sent(ends: Ends, size: int) -> None:
    channel, other_end = ends
    frame = Frame({"op": "call", "n": [1, 2]}, bytes(range(256)) * (size // 256) + b"x" * size)
    sender = threading.Thread(target=Channel(other_end).send, args=(frame, soon()))
    sender.start()
    assert channel.receive(soon()) == frame
    sender.join()


def test_frames_do_not_run_into_each_other(ends: Ends) -> None:
    channel, other_end = ends
    for number in range(3):
        Channel(other_end).send(Frame({"n": number}, bytes(number)))
    assert [channel.receive(soon()).header["n"] for _ in range(3)] == [0, 1, 2]


def test_reading_ahead_frames_stay_apart(ends: Ends) -> None:
    channel, other_end = Channel(ends[0]._socket, ahead=True), ends[1]
    frames = [
        Frame({"n": n}, bytes(size), {"x": n} if n else None)
        for n, size in enumerate((3, 0, 200_000, 5))
    ]
    sender = threading.Thread(target=lambda: [Channel(other_end).send(f) for f in frames])
    sender.start()
    received = [channel.receive(soon()) for _ in frames]
    sender.join()
    assert received == frames and [frame.aside for frame in received] == [
        {},
        {"x": 1},
        {"x": 2},
        {"x": 3},
    ]


def test_what_goes_along_is_no_part_of_a_frame(ends: Ends) -> None:
    channel, other_end = ends
    for frame in (Frame({"n": 1}, b"data"), Frame({"n": 1}, b"data", {"told": 1}), Frame({"n": 1})):
        Channel(other_end).send(frame)
    plain, told, other = (channel.receive(soon()) for _ in range(3))
    assert plain.digest == told.digest != other.digest
    assert (plain.aside, told.aside) == ({}, {"told": 1})


def test_the_header_of_a_known_frame_is_read_when_it_is_asked_for(ends: Ends) -> None:
    channel, other_end = ends
    for aside in ({}, {"told": 1}):
        Channel(other_end).send(Frame({"n": 1}, b"data", aside))
    first = channel.receive(soon())
    again = channel.receive(soon(), {first.digest})
    assert again._header is None
    assert again == first and (again.digest, again.aside) == (first.digest, {"told": 1})


def raw(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<III", len(header), len(data), 0) + header + data


HOSTILE_BYTES = {
    "more beyond its cap": struct.pack("<III", 2, 0, wire.HEADER_CAP + 1),
    "more that is no object": struct.pack("<III", 2, 0, 2) + b"{}[]",
    "a header beyond its cap": struct.pack("<III", wire.HEADER_CAP + 1, 0, 0),
    "arrays beyond their cap": struct.pack("<III", 2, wire.ARRAYS_CAP + 1, 0),
    "the largest lengths": struct.pack("<III", *[0xFFFFFFFF] * 3),
    "text that is no frame": b"HTTP/1.1 200 OK\r\n\r\n",
    "an empty header": raw(b""),
    "a header that is not JSON": raw(b"{]"),
    "a pickle": raw(b"\x80\x04\x95\x00"),
    "a header that is not text": raw(b"\xff\xfe\xfd"),
    "a list": raw(b"[]"),
    "a number": raw(b"5"),
    "null": raw(b"null"),
    "two objects": raw(b"{}{}"),
    "brackets without end": raw(b"[" * 200_000),
    "objects without end": raw(b'{"a":' * 200_000),
    "a number of many digits": raw(b'{"a":' + b"9" * 100_000 + b"}"),
}


@pytest.mark.parametrize("data", HOSTILE_BYTES.values(), ids=HOSTILE_BYTES)
def test_bytes_that_are_no_frame_are_refused(ends: Ends, data: bytes) -> None:
    channel, other_end = ends
    sender = threading.Thread(target=lambda: other_end.sendall(data))
    sender.start()
    with pytest.raises(WireError):
        channel.receive(soon())
    sender.join()


def test_a_frame_beyond_the_caps_is_not_sent_at_all(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, other_end = ends
    channel = Channel(ends[0]._socket, sends=100)
    monkeypatch.setattr(wire, "ARRAYS_CAP", 100)
    for frame in (Frame({"a": "x" * 100}), Frame({}, b"x" * 101)):
        with pytest.raises(WireError, match="too large to send"):
            channel.send(frame)
    channel.send(Frame({"still": "in step"}))
    assert Channel(other_end).receive(soon()).header == {"still": "in step"}


def test_values_too_deep_for_json_are_not_sent(ends: Ends) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(WireError, match="too deeply"):
        ends[0].send(Frame({"a": deep}))


def test_a_silent_peer_meets_the_deadline(ends: Ends) -> None:
    channel, _ = ends
    with pytest.raises(DeadlineError):
        channel.receive(time.monotonic() + 0.05)
    with pytest.raises(DeadlineError):
        channel.receive(time.monotonic() - 1)


def test_a_peer_that_dribbles_bytes_meets_the_same_deadline(ends: Ends) -> None:
    channel, other_end = ends
    stop = threading.Event()

    def dribble() -> None:
        for byte in raw(b'{"op":"' + b"x" * 1000 + b'"}'):
            other_end.sendall(bytes([byte]))
            if stop.wait(0.02):
                return

    sender = threading.Thread(target=dribble)
    sender.start()
    start = time.monotonic()
    try:
        with pytest.raises(DeadlineError):
            channel.receive(start + 0.2)
        assert 0.2 <= time.monotonic() - start < 5  # the whole frame would take 20 seconds
    finally:
        stop.set()
        sender.join()


def test_a_peer_that_never_reads_meets_the_deadline(ends: Ends) -> None:
    channel, _ = ends
    start = time.monotonic()
    with pytest.raises(DeadlineError):
        channel.send(Frame({}, bytes(16 << 20)), start + 0.2)
    assert 0.2 <= time.monotonic() - start < 5


def test_a_peer_that_is_gone_is_told_from_one_that_is_slow(ends: Ends) -> None:
    channel, other_end = ends
    other_end.close()
    with pytest.raises(Closed):
        channel.receive(soon())
    with pytest.raises(Closed):
        channel.send(Frame({}, bytes(1 << 20)), soon())


@pytest.mark.parametrize("sent", [1, 7, 8, 9, 12], ids=str)
def test_a_frame_that_stops_halfway_is_the_end(ends: Ends, sent: int) -> None:
    channel, other_end = ends
    other_end.sendall(raw(b'{"a":1}', b"xy")[:sent])
    other_end.close()
    with pytest.raises(Closed):
        channel.receive(soon())


def test_a_closed_channel_is_the_end_for_the_other_side(ends: Ends) -> None:
    channel, other_end = ends
    channel.close()
    with pytest.raises(Closed):
        Channel(other_end).receive(soon())


def keys(numbers: Iterable[int]) -> bytes:
    pairs = ",".join(f"[{number},0]" for number in numbers)
    return f'{{"value":{{"dict":[{pairs}]}}}}'.encode()


def listed(item: str, count: int) -> bytes:
    return f'{{"value":{{"list":[{",".join([item] * count)}]}}}}'.encode()


ONE_HASH = b",".join(b"%d" % (k * (2**61 - 1)) for k in range(9))
MANY = b",".join(b"%d" % k for k in range(10_001))

SLOW = {
    "keys of one hash": keys(k * (2**61 - 1) for k in range(30_000)),
    "fewer of them": keys(k * (2**61 - 1) for k in range(300)),
    "a set of one hash": listed("0", 1).replace(b'"list":[0]', b'"set":[%s]' % ONE_HASH),
    "a set of too many": listed("0", 1).replace(b'"list":[0]', b'"set":[%s]' % MANY),
    "many values": listed("0", 200_000),
    "many objects": listed("{}", 100_000),
    "many lists": listed("[]", 100_000),
    "many arrays": b'{"arrays":[' + b'{"shape":[],"dtype":"int8"},' * 35_000 + b"0]}",
    "a number of many digits": listed("9" * 400, 1),
    "lists in lists": b'{"value":' + b"[" * 100 + b"]" * 100 + b"}",
    "objects in objects": b'{"value":' + b'{"a":' * 100 + b"0" + b"}" * 101,
}


def value_read(channel: Channel) -> Any:
    frame = channel.receive(soon())
    return Unpacker(frame).unpack(frame.header["value"])


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW)
def test_a_reply_that_is_slow_to_read_is_refused_before_it_is_built(
    ends: Ends, text: bytes
) -> None:
    channel, other_end = ends
    raw = struct.pack("<III", len(text), 0, 0) + text
    writer = threading.Thread(target=other_end.sendall, args=(raw,))
    writer.start()
    start = time.process_time()
    with pytest.raises(WireError):
        value_read(channel)
    assert time.process_time() - start < 1
    writer.join()


def test_what_goes_along_with_a_reply_is_bounded_in_the_same_way(ends: Ends) -> None:
    text = SLOW["lists in lists"]
    ends[1].sendall(struct.pack("<III", 2, 0, len(text)) + b"{}" + text)
    with pytest.raises(WireError):
        ends[0].receive(soon())


def test_too_many_values_are_not_sent(ends: Ends) -> None:
    packer = Packer()
    frame = packer.frame({"value": packer.pack([[0] * 10_000] * 20)})
    with pytest.raises(WireError, match="too many"):
        ends[0].send(frame, soon())
