"""Known misconceptions of the stage count_pairs."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from grader.misconceptions import misconception

Counts = dict[tuple[int, int], int]


@misconception(
    "pairs_without_overlap",
    replaces="count_pairs",
    says="You cut the list into pieces of two. Pairs overlap: a number is the right one of a "
    "pair and the left one of the next.",
    hint=1,
)
def pairs_without_overlap(ids: list[int]) -> Counts:
    return dict(Counter(zip(ids[::2], ids[1::2], strict=False)))


@misconception(
    "pairs_in_any_order",
    replaces="count_pairs",
    says="You count (1, 2) and (2, 1) as the same pair. The left one and the right one have "
    "their places.",
    hint=1,
)
def pairs_in_any_order(ids: list[int]) -> Counts:
    return dict(Counter((min(p), max(p)) for p in pairwise(ids)))


@misconception(
    "pairs_counted_once",
    replaces="count_pairs",
    says="Every count is 1: a pair that comes again starts over. Add to the count it already has.",
    hint=3,
)
def pairs_counted_once(ids: list[int]) -> Counts:
    return dict.fromkeys(pairwise(ids), 1)


@misconception(
    "pairs_without_the_last",
    replaces="count_pairs",
    says="The last pair is missing: n numbers have n - 1 pairs, and you stop after n - 2.",
    hint=2,
)
def pairs_without_the_last(ids: list[int]) -> Counts:
    return dict(Counter((ids[i], ids[i + 1]) for i in range(len(ids) - 2)))
