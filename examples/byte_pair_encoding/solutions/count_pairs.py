"""Stage 1: count the pairs of neighbours in a sequence.

A tokenizer begins with single bytes: every text is a list of numbers from 0 to
255. Byte-pair encoding then looks for two neighbours that occur together often,
such as "t" and "h", and makes them one token. To find them, it has to count.
"""

from itertools import pairwise


def count_pairs(ids: list[int]) -> dict[tuple[int, int], int]:
    """How often each pair of neighbours occurs.

        ids: a list of n numbers  ->  a dictionary from pairs to counts

    A pair is a tuple (left, right). Pairs may overlap: each number but the first
    and the last belongs to two of them, so the counts add up to n - 1.

    >>> count_pairs([1, 2, 3, 1, 2]) == {(1, 2): 2, (2, 3): 1, (3, 1): 1}
    True
    >>> count_pairs([7, 7, 7]) == {(7, 7): 2}
    True
    >>> count_pairs([5]) == {}
    True

    The dictionary holds only pairs that occur, in any order. `ids` is not changed.

    Traps:
    - (1, 2) and (2, 1) are two different pairs.
    - n numbers have n - 1 pairs: the last number begins none.
    """
    ### BEGIN SOLUTION
    counts: dict[tuple[int, int], int] = {}
    # As if the list lay beside itself, shifted by one: each column is a pair.
    for pair in pairwise(ids):
        counts[pair] = counts.get(pair, 0) + 1
    return counts
    ### END SOLUTION
