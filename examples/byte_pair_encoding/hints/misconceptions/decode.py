"""Known misconceptions of the stage decode."""

from __future__ import annotations

from grader.misconceptions import misconception

Pair = tuple[int, int]


def _known(ids: list[int], merges: list[Pair], first: int = 0) -> list[bytes]:
    known = [bytes([byte]) for byte in range(256)]
    for left, right in merges:
        known.append(known[left] + known[right])
    for token in ids:
        if not first <= token < len(known):
            raise ValueError(token)
    return known


@misconception(
    "decode_each_token",
    replaces="decode",
    says="You decode each token by itself. A character's bytes may be spread over several "
    "tokens: join all bytes first.",
    hint=3,
)
def decode_each_token(ids: list[int], merges: list[Pair]) -> str:
    known = _known(ids, merges)
    return "".join(known[token].decode("utf-8", "replace") for token in ids)


@misconception(
    "decode_right_before_left",
    replaces="decode",
    says="You put the right part of a merged token before the left one.",
    hint=1,
)
def decode_right_before_left(ids: list[int], merges: list[Pair]) -> str:
    _known(ids, merges)
    known = [bytes([byte]) for byte in range(256)]
    for left, right in merges:
        known.append(known[right] + known[left])
    return b"".join(known[token] for token in ids).decode("utf-8", "replace")


@misconception(
    "decode_latin",
    replaces="decode",
    says="You make a character of each byte. The bytes are UTF-8, in which a character may "
    "have several.",
    hint=3,
)
def decode_latin(ids: list[int], merges: list[Pair]) -> str:
    known = _known(ids, merges)
    return b"".join(known[token] for token in ids).decode("latin-1")


@misconception(
    "decode_drops_what_is_broken",
    replaces="decode",
    says="You drop bytes that are not UTF-8. Replace them, to show that something was there.",
    hint=3,
)
def decode_drops_what_is_broken(ids: list[int], merges: list[Pair]) -> str:
    known = _known(ids, merges)
    return b"".join(known[token] for token in ids).decode("utf-8", "ignore")


@misconception(
    "decode_negative_tokens",
    replaces="decode",
    says="A negative token counts from the end of your list, so you read another one. Refuse "
    "it with a ValueError.",
    hint=4,
)
def decode_negative_tokens(ids: list[int], merges: list[Pair]) -> str:
    known = _known(ids, merges, first=-256)
    return b"".join(known[token] for token in ids).decode("utf-8", "replace")
