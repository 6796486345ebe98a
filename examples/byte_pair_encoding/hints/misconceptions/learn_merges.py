"""Known misconceptions of the stage learn_merges."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from grader.misconceptions import misconception

Pair = tuple[int, int]


def _pairs(ids: list[int]) -> list[Pair]:
    return list(pairwise(ids))


def _merged(ids: list[int], pair: Pair, new_id: int) -> list[int]:
    merged: list[int] = []
    for each in ids:
        if merged and (merged[-1], each) == pair:
            merged[-1] = new_id
        else:
            merged.append(each)
    return merged


def _learnt(ids: list[int], num_merges: int, first: int = 256, fewest: int = 2) -> list[Pair]:
    merges: list[Pair] = []
    while len(merges) < num_merges:
        counts = Counter(_pairs(ids))
        if not counts or max(counts.values()) < fewest:
            break
        best = max(counts, key=lambda pair: counts[pair])
        ids = _merged(ids, best, first + len(merges))
        merges.append(best)
    return merges


@misconception(
    "learn_from_the_first_counts",
    replaces="learn_merges",
    says="You take the most frequent pairs of the original bytes. Count again after each "
    "merge: the new token has new neighbours.",
    hint=2,
)
def learn_from_the_first_counts(ids: list[int], num_merges: int) -> list[Pair]:
    common = Counter(_pairs(ids)).most_common(num_merges)
    return [pair for pair, count in common if count > 1]


@misconception(
    "learn_the_last_of_equals",
    replaces="learn_merges",
    says="When several pairs occur equally often, you take the last one. Take the one that "
    "stands first in the sequence.",
    hint=3,
)
def learn_the_last_of_equals(ids: list[int], num_merges: int) -> list[Pair]:
    merges: list[Pair] = []
    while len(merges) < num_merges:
        counts = Counter(_pairs(ids))
        best = max(reversed(counts), key=lambda pair: counts[pair], default=None)
        if best is None or counts[best] < 2:
            break
        ids = _merged(ids, best, 256 + len(merges))
        merges.append(best)
    return merges


@misconception(
    "learn_the_largest_of_equals",
    replaces="learn_merges",
    says="When several pairs occur equally often, you take the one with the larger numbers. "
    "Take the one that stands first in the sequence.",
    hint=3,
)
def learn_the_largest_of_equals(ids: list[int], num_merges: int) -> list[Pair]:
    merges: list[Pair] = []
    while len(merges) < num_merges:
        counts = Counter(_pairs(ids))
        best = max(counts, key=lambda pair: (counts[pair], pair), default=None)
        if best is None or counts[best] < 2:
            break
        ids = _merged(ids, best, 256 + len(merges))
        merges.append(best)
    return merges


@misconception(
    "learn_single_pairs",
    replaces="learn_merges",
    says="You also merge pairs that occur once. Stop when no pair occurs twice.",
    hint=4,
)
def learn_single_pairs(ids: list[int], num_merges: int) -> list[Pair]:
    return _learnt(ids, num_merges, fewest=1)


@misconception(
    "learn_from_255",
    replaces="learn_merges",
    says="Your first new token is 255, which is a byte already. The bytes end at 255, so the "
    "first new token is 256.",
    hint=5,
)
def learn_from_255(ids: list[int], num_merges: int) -> list[Pair]:
    return _learnt(ids, num_merges, first=255)


@misconception(
    "learn_one_more",
    replaces="learn_merges",
    says="You return one merge too many: `num_merges` is the maximum.",
    hint=4,
)
def learn_one_more(ids: list[int], num_merges: int) -> list[Pair]:
    return _learnt(ids, num_merges + 1)
