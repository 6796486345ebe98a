"""Known misconceptions of the stage encode."""

from __future__ import annotations

from grader.misconceptions import misconception

Pair = tuple[int, int]


def _merged(ids: list[int], pair: Pair, new_id: int) -> list[int]:
    merged: list[int] = []
    for each in ids:
        if merged and (merged[-1], each) == pair:
            merged[-1] = new_id
        else:
            merged.append(each)
    return merged


def _encoded(ids: list[int], merges: list[tuple[int, Pair]]) -> list[int]:
    for new_id, pair in merges:
        ids = _merged(ids, pair, new_id)
    return ids


@misconception(
    "encode_characters",
    replaces="encode",
    says="You begin with the numbers of the characters (`ord`). Begin with the bytes of the "
    "text in UTF-8: a character may have several.",
    hint=1,
)
def encode_characters(text: str, merges: list[Pair]) -> list[int]:
    return _encoded([ord(letter) for letter in text], list(enumerate(merges, start=256)))


@misconception(
    "encode_from_the_last",
    replaces="encode",
    says="You apply the last merge first. The first merge comes first, because later ones are "
    "made of its token.",
    hint=2,
)
def encode_from_the_last(text: str, merges: list[Pair]) -> list[int]:
    return _encoded(list(text.encode()), list(enumerate(merges, start=256))[::-1])


@misconception(
    "encode_from_255",
    replaces="encode",
    says="Your new tokens begin at 255, which is a byte already: the first merge is the token 256.",
    hint=3,
)
def encode_from_255(text: str, merges: list[Pair]) -> list[int]:
    return _encoded(list(text.encode()), list(enumerate(merges, start=255)))


@misconception(
    "encode_from_257",
    replaces="encode",
    says="Your new tokens begin at 257: the bytes end at 255, so the first merge is the token 256.",
    hint=3,
)
def encode_from_257(text: str, merges: list[Pair]) -> list[int]:
    return _encoded(list(text.encode()), list(enumerate(merges, start=257)))


@misconception(
    "encode_in_the_order_of_the_text",
    replaces="encode",
    says="You merge whatever pair comes first in the text. The order in which the merges were "
    "learnt decides.",
    hint=2,
)
def encode_in_the_order_of_the_text(text: str, merges: list[Pair]) -> list[int]:
    ids = list(text.encode())
    known = {pair: new_id for new_id, pair in enumerate(merges, start=256)}
    place = 0
    while place < len(ids) - 1:
        new_id = known.get((ids[place], ids[place + 1]))
        if new_id is None:
            place += 1
        else:
            ids[place : place + 2] = [new_id]
            place = 0
    return ids
